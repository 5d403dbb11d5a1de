//! The subflows of a kernel connection as they open and close: the kernel discards those that have ended, and does not
//! report when a subflow opened.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use gargalo_flow::{Edge, Marks, Reached, SubflowResult, SubflowSample};
use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Duration, Instant};

use super::info::TcpInfo;
use super::multipath;
use crate::linux::sockets::Sockets;
use crate::linux::traffic::Recorder;
use crate::multipath::SubflowReport;

/// Polling interval: times of subflows are late by at most this, and what a subflow that ends counted after the last
/// poll is not known.
const OFTEN: Duration = Duration::from_millis(5);

/// All subflows that a connection has had, in the order in which they could carry data.
#[derive(Default)]
pub(super) struct Subflows {
    known: Vec<Subflow>,
    looked: Option<Instant>,
}

struct Subflow {
    local: SocketAddr,
    remote: SocketAddr,
    opened: Instant,
    closed: Option<Instant>,
    /// Its state when it was last seen open.
    info: TcpInfo,
    congestion: Option<String>,
    /// It is a backup; `None`: the kernel does not report it.
    backup: Option<bool>,
    /// Counts at the edges of the measured window.
    marks: Marks,
}

impl Subflow {
    fn is_between(&self, ends: (SocketAddr, SocketAddr)) -> bool {
        (self.local, self.remote) == ends
    }
}

impl Subflows {
    /// When the next poll is due.
    pub(super) fn due(&self) -> Instant {
        self.looked.map_or(Instant::ZERO, |t| t + OFTEN)
    }

    /// Polls the subflows. When the connection `is_ending` they end with it, and not before.
    pub(super) fn look(&mut self, now: Instant, socket: BorrowedFd<'_>, is_ending: bool) {
        self.looked = Some(now);
        self.update(now, multipath::subflows(socket).collect(), is_ending);
    }

    /// Updates the state with the kernel's subflows, by their addresses.
    fn update(
        &mut self,
        now: Instant,
        all: Vec<((SocketAddr, SocketAddr), TcpInfo)>,
        is_ending: bool,
    ) {
        for s in self.known.iter_mut().filter(|s| s.closed.is_none()) {
            // If its counters start from zero again, another subflow has taken its addresses between two polls.
            let may_send = |(ends, i): &(_, TcpInfo)| {
                s.is_between(*ends) && i.may_send() && i.is_later_than(&s.info)
            };
            if !is_ending && !all.iter().any(may_send) {
                s.closed = Some(now);
            }
        }
        for (ends, info) in all.into_iter().filter(|(_, i)| i.counts()) {
            // Of those with the same addresses, the latest; if that has ended, a subflow that may send is a new one.
            match self.known.iter_mut().rfind(|s| s.is_between(ends)) {
                Some(s) if s.closed.is_none() || !info.may_send() => s.info = info,
                _ if !info.may_send() => {}
                _ => self.known.push(Subflow {
                    local: ends.0,
                    remote: ends.1,
                    opened: now,
                    closed: None,
                    info,
                    congestion: None,
                    backup: None,
                    marks: Marks::default(),
                }),
            }
        }
    }

    /// Queries the congestion control of open subflows, and whether they are backups.
    pub(super) fn ask(&mut self, sockets: &Sockets) {
        for s in self.known.iter_mut().filter(|s| s.closed.is_none()) {
            if let Some(about) = sockets.about(s.local, s.remote) {
                s.congestion = Some(about.congestion);
                s.backup = about.backup.or(s.backup);
            }
        }
    }

    /// Whether some subflow was never queried.
    pub(super) fn has_unasked(&self) -> bool {
        self.open().any(|(_, s)| s.congestion.is_none())
    }

    /// The congestion controls that ran, without repetition.
    pub(super) fn congestion(&self) -> impl Iterator<Item = &str> {
        self.known.iter().filter_map(|s| s.congestion.as_deref())
    }

    /// The kernel's current or last information about each subflow.
    pub(super) fn infos(&self) -> impl Iterator<Item = &TcpInfo> {
        self.known.iter().map(|s| &s.info)
    }

    /// The open subflows with their numbers.
    fn open(&self) -> impl Iterator<Item = (usize, &Subflow)> {
        let all = self.known.iter().enumerate();
        all.filter(|(_, s)| s.closed.is_none())
    }

    /// Builds the rows of the samples.
    pub(super) fn samples(
        &self,
        time: Instant,
        flow: u64,
        recorder: &Recorder,
    ) -> impl Iterator<Item = SubflowSample> {
        self.open().map(move |(id, subflow)| {
            let i = &subflow.info;
            let s = i.sample(time, flow, Reached::default());
            SubflowSample {
                time,
                flow,
                subflow: id as u32,
                link: recorder.links_of(subflow.local, subflow.remote).0,
                cwnd: s.cwnd,
                ssthresh: s.ssthresh,
                in_flight: s.in_flight.unwrap_or_default(),
                srtt: s.srtt,
                delivery_rate: s.delivery_rate,
                sent: i.counters().sent_bytes,
                delivered: Bytes::new(i.acknowledged_bytes()),
                phase: s.phase,
            }
        })
    }

    /// Takes the counts at an edge of the measured window.
    pub(super) fn mark(&mut self, edge: Edge, recorder: &Recorder) {
        let reports = self.reports(recorder);
        for (s, mut report) in self.known.iter_mut().zip(reports) {
            report.result.mark(edge);
            s.marks = report.result.marks;
        }
    }

    /// The results of the subflows.
    pub(super) fn reports(&self, recorder: &Recorder) -> Vec<SubflowReport> {
        let one = |(id, s): (usize, &Subflow)| {
            let links = recorder.links_of(s.local, s.remote);
            let mut rtt = Quantiles::default();
            s.info.srtt().into_iter().for_each(|t| rtt.record(t));
            SubflowReport {
                local: s.local,
                remote: s.remote,
                received_bytes: s.info.received_bytes(),
                result: SubflowResult {
                    closed: s.closed,
                    backup: s.backup,
                    delivered: Bytes::new(s.info.acknowledged_bytes()),
                    counters: s.info.counters(),
                    rtt,
                    marks: s.marks.clone(),
                    ..SubflowResult::opened(id as u32, links, None, s.opened)
                },
            }
        };
        self.known.iter().enumerate().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds the start of a `tcp_info`: its state, and counts of segments at their offsets.
    fn info(state: u8, segments: u32) -> TcpInfo {
        let mut bytes = [0; 256];
        bytes[0] = state;
        bytes[136..140].copy_from_slice(&segments.to_ne_bytes());
        bytes[140..144].copy_from_slice(&segments.to_ne_bytes());
        TcpInfo::from_bytes(&bytes)
    }

    #[test]
    fn a_subflow_with_the_addresses_of_one_that_ended_is_another() {
        let ends = (
            "10.0.0.1:40000".parse().unwrap(),
            "10.0.0.2:80".parse().unwrap(),
        );
        let at = |ms: u64| Instant::from_nanos(1_000_000 * ms);
        let mut s = Subflows::default();
        let (established, closing) = (1, 4);
        s.update(at(5), vec![(ends, info(established, 10))], false);
        s.update(at(10), vec![(ends, info(closing, 20))], false);
        s.update(at(15), vec![(ends, info(closing, 21))], false);
        s.update(at(20), Vec::new(), false);
        s.update(at(25), vec![(ends, info(established, 30))], false);
        s.update(at(30), vec![(ends, info(established, 40))], false);
        // It ended and was opened again between two polls.
        s.update(at(35), vec![(ends, info(established, 4))], false);
        let times: Vec<_> = s.known.iter().map(|s| (s.opened, s.closed)).collect();
        let expected = [
            (at(5), Some(at(10))),
            (at(25), Some(at(35))),
            (at(35), None),
        ];
        assert_eq!(times, expected);
    }
}
