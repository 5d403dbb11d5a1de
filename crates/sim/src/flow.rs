//! Flows: a transport connection (or datagram stream) between two hosts and the application on it.

use std::sync::Arc;

use gargalo_flow::{Counts, FlowSample, FlowSpec, Marks, MisbehavingReceiver, TransportSpec};
use gargalo_tcp as tcp;
use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Instant};
use rand_pcg::Pcg64;

use crate::drive_mptcp::MptcpSide;
use crate::drive_quic::QuicSide;
use crate::generator::Parent;
use gargalo_workload::wire::WireBytes;
use gargalo_workload::{Action, App};

/// Times of the queue's entries for one timer, latest first; lazily kept.
///
/// Re-arming later costs nothing: the old entry fires, finds nothing due and is replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LazyTimer {
    pending: [Instant; Self::DEPTH],
    len: u8,
}

impl LazyTimer {
    /// RTO, TLP, delayed acknowledgement, pacing: at most so many spans nest in practice.
    const DEPTH: usize = 4;

    pub(crate) const fn new() -> Self {
        Self {
            pending: [Instant::MAX; Self::DEPTH],
            len: 0,
        }
    }

    /// Wants to be woken at `at`: whether an entry has to be pushed.
    #[inline]
    pub(crate) fn arm(&mut self, at: Instant) -> bool {
        if at == Instant::MAX {
            return false;
        }
        let n = usize::from(self.len);
        if n > 0 && self.pending[n - 1] <= at {
            return false;
        }
        if n == Self::DEPTH {
            // The forgotten entry will fire and be ignored.
            self.pending[n - 1] = at;
        } else {
            self.pending[n] = at;
            self.len += 1;
        }
        true
    }

    /// An entry fired at `now`: whether it is one of ours.
    #[inline]
    pub(crate) fn fire(&mut self, now: Instant) -> bool {
        let n = usize::from(self.len);
        if n > 0 && self.pending[n - 1] == now {
            self.len -= 1;
            true
        } else {
            false
        }
    }
}

/// One end of a flow.
#[derive(Debug)]
pub(crate) struct Side {
    /// The connection over TCP; `None` for others and after a side has finished.
    pub endpoint: Option<Box<tcp::Endpoint>>,
    /// The connection over Multipath TCP.
    pub mptcp: Option<Box<MptcpSide>>,
    /// The connection over QUIC.
    pub quic: Option<Box<QuicSide>>,
    /// What makes a misbehaving of it.
    pub misbehaving: Option<Box<MisbehavingReceiver>>,
    pub timer: LazyTimer,
    /// First hop of the route to the other side.
    pub route: u32,
    /// Bytes the application has asked to write and the transport has not taken yet.
    pub backlog: u64,
    /// Close once the backlog is written.
    pub close: bool,
    /// Stream position of the next byte to write and to read, for content checks.
    pub written: u64,
    pub read: u64,
    /// Bytes put on the wire, with IP headers.
    pub wire: u64,
}

impl Side {
    pub(crate) fn new(route: u32) -> Self {
        Self {
            endpoint: None,
            mptcp: None,
            quic: None,
            misbehaving: None,
            timer: LazyTimer::new(),
            route,
            backlog: 0,
            close: false,
            written: 0,
            read: 0,
            wire: 0,
        }
    }

    /// Takes note of what the application wants written and closed.
    #[inline]
    pub(crate) fn want(&mut self, action: Action) {
        self.backlog = self.backlog.saturating_add(action.write);
        self.close |= action.close;
    }
}

/// A flow as it runs.
#[derive(Debug)]
pub(crate) struct Flow {
    pub spec: Arc<FlowSpec>,
    pub id: u64,
    pub generation: u32,
    pub sides: [Side; 2],
    pub app: App,
    pub app_timer: LazyTimer,
    /// When the application wants its timer.
    pub app_due: Instant,
    pub rng: Pcg64,
    pub start: Instant,
    /// When the client's application could write for the first time.
    pub connected: Option<Instant>,
    pub first_byte: Option<Instant>,
    pub completed: Option<Instant>,
    /// Bytes delivered in the direction of the workload.
    pub delivered: u64,
    pub rtt: Quantiles,
    /// Counts at the edges of the measured window.
    pub marks: Marks,
    pub udp_sent: u64,
    /// Payload of these datagrams.
    pub udp_sent_bytes: u64,
    /// Datagrams from the receiver.
    pub udp_replies: u64,
    pub udp_lost: u64,
    pub ce_marks: u64,
    pub corrupted: bool,
    pub failure: Option<&'static str>,
    /// When the application is stopped.
    pub stop: Instant,
    /// When the client moves.
    pub migrate: Instant,
    /// The page it belongs to, until that was told of its end.
    pub parent: Option<Parent>,
    /// Phase of its sender's congestion control when it was last looked into.
    pub phase: &'static str,
}

impl Flow {
    /// What its sender's stack has counted; nothing over UDP.
    pub(crate) fn stats(&mut self) -> tcp::Stats {
        let sender = &mut self.sides[self.app.sender()];
        if let Some(tcp) = &sender.endpoint {
            return tcp.stats();
        }
        if let Some(mptcp) = &sender.mptcp {
            return mptcp.connection.stats().tcp;
        }
        let Some(quic) = &mut sender.quic else {
            return tcp::Stats::default();
        };
        let s = quic.endpoint.stats();
        tcp::Stats {
            sent_packets: s.sent_packets,
            sent_bytes: s.sent_bytes,
            retransmitted_packets: s.retransmitted_packets,
            lost_packets: s.lost_packets,
            timeouts: s.timeouts,
            spurious: s.spurious,
            ..tcp::Stats::default()
        }
    }

    /// What rates are made of, from what its sender's stack has counted.
    pub(crate) fn counts(&self, stats: &tcp::Stats) -> Counts {
        let udp = matches!(self.spec.transport, TransportSpec::Udp);
        let pick = |datagrams: u64, other: u64| if udp { datagrams } else { other };
        let sender = self.app.sender();
        Counts {
            delivered: self.delivered,
            sent: pick(self.udp_sent_bytes, stats.sent_bytes),
            sent_packets: pick(self.udp_sent, stats.sent_packets),
            retransmitted_packets: stats.retransmitted_packets,
            lost_packets: pick(self.udp_lost, stats.lost_packets),
            wire: WireBytes {
                forward: self.sides[sender].wire,
                reverse: self.sides[1 - sender].wire,
            },
        }
    }

    /// The state of its sender, if it has one.
    pub(crate) fn sample(&mut self, now: Instant) -> Option<FlowSample> {
        let side = &mut self.sides[self.app.sender()];
        let (time, flow, delivered) = (now, self.id, Bytes::new(self.delivered));
        macro_rules! sample {
            ($s:expr) => {{
                let s = $s;
                FlowSample {
                    time,
                    flow,
                    cwnd: s.cwnd,
                    ssthresh: s.ssthresh,
                    in_flight: s.in_flight,
                    srtt: s.srtt,
                    pacing_rate: s.pacing_rate,
                    delivery_rate: s.delivery_rate,
                    delivered,
                    phase: s.phase,
                    out_of_order: None,
                }
            }};
        }
        match (&side.endpoint, &mut side.quic) {
            (Some(tcp), _) => Some(sample!(tcp.snapshot(now))),
            (None, Some(quic)) => Some(sample!(quic.endpoint.snapshot())),
            // No window: the rate is what there is.
            (None, None) => self.app.rates().map(|r| FlowSample {
                time,
                flow,
                cwnd: Bytes::ZERO,
                ssthresh: None,
                in_flight: Bytes::ZERO,
                srtt: r.rtt,
                pacing_rate: Some(r.rate),
                delivery_rate: r.received,
                delivered,
                phase: r.phase,
                out_of_order: None,
            }),
        }
    }

    /// What fair queueing sees of the five-tuple of one direction.
    #[inline]
    pub(crate) fn hash(&self, side: usize) -> u32 {
        let x = (self.id * 2 + side as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (x >> 32) as u32
    }
}

/// Content of byte `offset` of a verified stream: a function of flow, direction and position whose
/// period is not a power of two, so that shifted or swapped segments are noticed.
#[inline]
pub(crate) fn pattern(flow: u64, side: usize, offset: u64) -> u8 {
    let x = (offset ^ (flow << 17) ^ ((side as u64) << 61)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x >> 56) as u8 ^ (offset / 251) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lazy_timers_push_only_when_earlier() {
        let at = Instant::from_nanos;
        let mut t = LazyTimer::new();
        assert!(t.arm(at(100)));
        assert!(!t.arm(at(200)), "the entry at 100 will look again");
        assert!(t.arm(at(50)));
        assert!(t.fire(at(50)));
        assert!(!t.arm(at(150)), "the entry at 100 is still there");
        assert!(t.fire(at(100)));
        assert!(t.arm(at(150)));
        assert!(!t.fire(at(149)));
    }
}
