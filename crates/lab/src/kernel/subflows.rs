//! The subflows of a connection of the kernel's as they come and go: the kernel forgets the ones that have
//! ended, and tells of none when it opened.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use gargalo_sim::{Counts, Edge, Marks, SubflowResult, SubflowSample};
use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Duration, Instant};

use super::info::TcpInfo;
use super::multipath;
use crate::multipath::SubflowReport;
use crate::netlink::sockets::Sockets;
use crate::traffic::Recorder;

/// How often they are looked at: times of subflows are late by no more than this, and what one that ends
/// counted after the last look is not known.
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
    /// As it stood when it was last seen alive.
    info: TcpInfo,
    congestion: Option<String>,
    /// At the edges of the measured window.
    marks: Marks,
}

impl Subflow {
    fn is_between(&self, ends: (SocketAddr, SocketAddr)) -> bool {
        (self.local, self.remote) == ends
    }
}

impl Subflows {
    /// When to look next.
    pub(super) fn due(&self) -> Instant {
        self.looked.map_or(Instant::ZERO, |t| t + OFTEN)
    }

    /// Looks how they stand. When the connection `is_ending` they end with it, and not before.
    pub(super) fn look(&mut self, now: Instant, socket: BorrowedFd<'_>, is_ending: bool) {
        self.looked = Some(now);
        let all: Vec<_> = multipath::subflows(socket).collect();
        for s in self.known.iter_mut().filter(|s| s.closed.is_none()) {
            let may_send = |(ends, i): &(_, TcpInfo)| s.is_between(*ends) && i.may_send();
            if !is_ending && !all.iter().any(may_send) {
                s.closed = Some(now);
            }
        }
        for (ends, info) in all.into_iter().filter(|(_, i)| i.counts()) {
            match self.known.iter_mut().find(|s| s.is_between(ends)) {
                Some(s) => s.info = info,
                None if !info.may_send() => {}
                None => self.known.push(Subflow {
                    local: ends.0,
                    remote: ends.1,
                    opened: now,
                    closed: None,
                    info,
                    congestion: None,
                    marks: Marks::default(),
                }),
            }
        }
    }

    /// Asks for the congestion control of those that are open.
    pub(super) fn ask_for_congestion(&mut self, sockets: &Sockets) {
        for s in self.known.iter_mut().filter(|s| s.closed.is_none()) {
            let name = sockets.congestion(s.local, s.remote);
            s.congestion = name.or(s.congestion.take());
        }
    }

    /// Some subflow's congestion control was never asked for.
    pub(super) fn has_unasked(&self) -> bool {
        self.open().any(|(_, s)| s.congestion.is_none())
    }

    /// Congestion controls that ran, each once.
    pub(super) fn congestion(&self) -> impl Iterator<Item = &str> {
        self.known.iter().filter_map(|s| s.congestion.as_deref())
    }

    /// What the kernel knows, or last knew, of each.
    pub(super) fn infos(&self) -> impl Iterator<Item = &TcpInfo> {
        self.known.iter().map(|s| &s.info)
    }

    /// The same of those that are open, with their numbers.
    fn open(&self) -> impl Iterator<Item = (usize, &Subflow)> {
        let all = self.known.iter().enumerate();
        all.filter(|(_, s)| s.closed.is_none())
    }

    /// Rows of the samples.
    pub(super) fn samples(
        &self,
        time: Instant,
        flow: u64,
        recorder: &Recorder,
    ) -> impl Iterator<Item = SubflowSample> {
        self.open().map(move |(id, subflow)| {
            let i = &subflow.info;
            let s = i.sample(time, flow, Bytes::ZERO);
            SubflowSample {
                time,
                flow,
                subflow: id as u32,
                link: recorder.links_of(subflow.local, subflow.remote).0,
                cwnd: s.cwnd,
                ssthresh: s.ssthresh,
                in_flight: s.in_flight,
                srtt: s.srtt,
                delivery_rate: s.delivery_rate,
                sent: Bytes::new(i.totals().sent_bytes),
                delivered: Bytes::new(i.acknowledged_bytes()),
                phase: s.phase,
            }
        })
    }

    /// An edge of the measured window passes.
    pub(super) fn mark(&mut self, edge: Edge, recorder: &Recorder) {
        let reports = self.reports(recorder);
        for (s, mut report) in self.known.iter_mut().zip(reports) {
            report.result.mark(edge);
            s.marks = report.result.marks;
        }
    }

    /// What became of each.
    pub(super) fn reports(&self, recorder: &Recorder) -> Vec<SubflowReport> {
        let one = |(id, s): (usize, &Subflow)| {
            let (link, reverse_link) = recorder.links_of(s.local, s.remote);
            let totals = s.info.totals();
            let mut rtt = Quantiles::default();
            s.info.srtt().into_iter().for_each(|t| rtt.record(t));
            SubflowReport {
                local: s.local,
                remote: s.remote,
                received_bytes: s.info.received_bytes(),
                result: SubflowResult {
                    id: id as u32,
                    link,
                    reverse_link,
                    gateway: None,
                    opened: s.opened,
                    closed: s.closed,
                    backup: false,
                    delivered: Bytes::new(s.info.acknowledged_bytes()),
                    stats: gargalo_tcp::Stats {
                        sent_packets: totals.sent_packets,
                        sent_bytes: totals.sent_bytes,
                        retransmitted_packets: totals.retransmitted_packets,
                        lost_packets: totals.lost_packets,
                        ce_marks: s.info.ce_marks(),
                        ..gargalo_tcp::Stats::default()
                    },
                    rtt,
                    marks: s.marks.clone(),
                    inside: Counts::default(),
                },
            }
        };
        self.known.iter().enumerate().map(one).collect()
    }
}
