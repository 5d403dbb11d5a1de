//! Flows: a transport connection (or datagram stream) between two hosts and the application on it.

use std::sync::Arc;

use gargalo_flow::{Conversation, FlowSample, FlowSpec, MisbehavingReceiver, Reached};
use gargalo_tcp::{self as tcp, State};
use gargalo_units::{Ecn, Instant, SenderCounters};

use crate::mptcp::MptcpSide;
use crate::net::Net;
use crate::packet::{Body, Content, IPV4_HEADER};
use crate::quic::QuicSide;
use gargalo_wire::tcp::Segment;
use gargalo_workload::wire::WireBytes;

/// Times of a timer's entries in the event queue, latest first; maintained lazily.
///
/// Re-arming for a later time costs nothing: the old entry fires, finds nothing due and is replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LazyTimer {
    pending: [Instant; Self::DEPTH],
    len: u8,
}

impl LazyTimer {
    /// RTO, TLP, delayed acknowledgement, pacing: at most this many intervals nest in practice.
    const DEPTH: usize = 4;

    pub(crate) const fn new() -> Self {
        Self {
            pending: [Instant::MAX; Self::DEPTH],
            len: 0,
        }
    }

    /// Arms the timer for `at`; returns whether an entry must be pushed into the event queue.
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
            // The dropped entry will fire and be ignored.
            self.pending[n - 1] = at;
        } else {
            self.pending[n] = at;
            self.len += 1;
        }
        true
    }

    /// Handles an entry that fired at `now`; returns whether it belongs to this timer.
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

/// A connection at one end of a flow.
#[derive(Debug)]
pub(crate) enum End {
    Tcp(Box<tcp::Endpoint>),
    Mptcp(Box<MptcpSide>),
    Quic(Box<QuicSide>),
}

impl End {
    #[inline]
    pub(crate) fn poll_timeout(&mut self) -> Option<Instant> {
        match self {
            Self::Tcp(e) => e.poll_timeout(),
            Self::Mptcp(m) => m.connection.poll_timeout(),
            Self::Quic(q) => q.end.endpoint.poll_timeout(),
        }
    }

    #[inline]
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Tcp(e) => e.handle_timeout(now),
            Self::Mptcp(m) => m.connection.handle_timeout(now),
            Self::Quic(q) => q.end.endpoint.handle_timeout(now),
        }
    }

    /// Whether nothing more will come from it; `failed`: the flow has failed.
    pub(crate) fn is_over(&self, failed: bool) -> bool {
        match self {
            Self::Tcp(e) => match e.state() {
                State::Closed | State::TimeWait => true,
                State::Listen => failed,
                _ => false,
            },
            Self::Mptcp(m) => match m.connection.state() {
                State::Closed | State::TimeWait => true,
                State::Listen => failed,
                _ => false,
            },
            Self::Quic(q) => q.end.is_over(),
        }
    }

    /// The network reports that a packet of it was larger than the MTU of a link; returns whether that concerns it.
    pub(crate) fn on_too_big(&mut self, now: Instant, packet: &Body, mtu: u32) -> bool {
        match (self, &packet.content) {
            (Self::Tcp(endpoint), Content::Tcp(segment)) => {
                let concerned = lowers_mss(endpoint, segment, mtu);
                if concerned {
                    endpoint.set_mss(now, mss_of(mtu));
                }
                concerned
            }
            (Self::Mptcp(side), Content::Tcp(segment)) => {
                let (from, to) = packet.interfaces;
                let addresses = gargalo_mptcp::Addresses {
                    local: side.address(from, segment.src_port),
                    remote: side.peer_address(to, segment.dst_port),
                };
                let subflow = side.connection.endpoint(addresses);
                let concerned = subflow.is_some_and(|e| lowers_mss(e, segment, mtu));
                if concerned {
                    side.connection.set_mss(now, addresses, mss_of(mtu));
                }
                concerned
            }
            (Self::Quic(side), Content::Quic(datagram)) => {
                let (local, remote) = (datagram.from.into(), datagram.to.into());
                let endpoint = &mut side.end.endpoint;
                endpoint.on_packet_too_big(now, local, remote, mtu);
                true
            }
            _ => false,
        }
    }

    /// What its stack has counted as a sender.
    pub(crate) fn counters(&mut self) -> SenderCounters {
        match self {
            Self::Tcp(e) => e.stats().sender,
            Self::Mptcp(m) => m.connection.stats().tcp.sender,
            Self::Quic(q) => q.end.endpoint.stats().sender,
        }
    }
}

/// Whether an error about a segment that was too large tells its sender something new (RFC 5927 §4.1).
fn lowers_mss(endpoint: &tcp::Endpoint, segment: &Segment, mtu: u32) -> bool {
    let known = endpoint.path_mss();
    endpoint.is_outstanding(segment.seq) && known.is_none_or(|known| mss_of(mtu) < known)
}

/// The largest segment for an MTU, options not counted (RFC 6691).
fn mss_of(mtu: u32) -> u16 {
    let mss = mtu.saturating_sub(IPV4_HEADER + gargalo_wire::tcp::HEADER_LEN as u32);
    u16::try_from(mss).unwrap_or(u16::MAX)
}

/// One end of a flow.
#[derive(Debug)]
pub(crate) struct Side {
    /// Its connection; `None` over UDP.
    pub end: Option<End>,
    /// How it misbehaves as a receiver.
    pub misbehaving: Option<Box<MisbehavingReceiver>>,
    pub timer: LazyTimer,
    /// Phase of its congestion control at the last check.
    pub phase: &'static str,
    /// First hop of the route to the other side.
    pub route: u32,
    /// Bytes put on the wire, IP headers included.
    pub wire: u64,
}

impl Side {
    pub(crate) fn new(route: u32) -> Self {
        Self {
            end: None,
            misbehaving: None,
            timer: LazyTimer::new(),
            phase: "",
            route,
            wire: 0,
        }
    }

    pub(crate) fn mptcp(&mut self) -> Option<&mut MptcpSide> {
        match &mut self.end {
            Some(End::Mptcp(m)) => Some(m),
            _ => None,
        }
    }

    pub(crate) fn quic(&mut self) -> Option<&mut QuicSide> {
        match &mut self.end {
            Some(End::Quic(q)) => Some(q),
            _ => None,
        }
    }
}

/// What the packets of one end of a flow have in common; see [`Body`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    flow: u32,
    generation: u32,
    side: u8,
    /// The interface of both hosts on its path.
    interface: u8,
    route: u32,
    hash: u32,
}

impl Origin {
    /// Sends a packet; returns its bytes on the wire.
    #[inline]
    pub(crate) fn transmit(self, now: Instant, net: &mut Net, ecn: Ecn, content: Content) -> u64 {
        let body = Body {
            flow: self.flow,
            generation: self.generation,
            side: self.side,
            interfaces: (self.interface, self.interface),
            route: self.route,
            content,
        };
        net.transmit(now, ecn, self.hash, body)
    }
}

/// The page that a flow belongs to: index of the source and number of the page.
pub(crate) type Parent = (u32, u32);

/// A running flow.
#[derive(Debug)]
pub(crate) struct Flow {
    pub spec: Arc<FlowSpec>,
    pub id: u64,
    pub generation: u32,
    pub sides: [Side; 2],
    /// The applications at both ends, and measurements.
    pub talk: Conversation,
    pub app_timer: LazyTimer,
    pub start: Instant,
    /// When the application is stopped.
    pub stop: Instant,
    /// When the client changes its address.
    pub migrate: Instant,
    /// The page that it belongs to, until the page's source has been notified of its end.
    pub parent: Option<Parent>,
    /// Its TCP sender has no window yet, so there is nothing to sample.
    pub opening: bool,
}

impl Flow {
    /// What its sender's stack has counted; nothing over UDP.
    pub(crate) fn counters(&mut self) -> SenderCounters {
        let sender = &mut self.sides[self.talk.sender()];
        sender.end.as_mut().map(End::counters).unwrap_or_default()
    }

    /// Bytes that both hosts have put on the wire: in the direction of the data, and in the opposite direction.
    pub(crate) fn wire(&self) -> WireBytes {
        let sender = self.talk.sender();
        WireBytes {
            forward: self.sides[sender].wire,
            reverse: self.sides[1 - sender].wire,
        }
    }

    /// When the application, its stop or a change of addresses is due.
    #[inline]
    pub(crate) fn due(&self) -> Instant {
        self.talk.due().min(self.stop).min(self.migrate)
    }

    /// How much of its data has reached the receiver.
    pub(crate) fn reached(&mut self) -> Reached {
        let receiver = &mut self.sides[1 - self.talk.sender()];
        let buffered = match &mut receiver.end {
            Some(End::Tcp(tcp)) => Some(tcp.buffered()),
            Some(End::Mptcp(mptcp)) => Some(mptcp.connection.buffered()),
            Some(End::Quic(quic)) => quic.end.endpoint.buffered(),
            None => Some(0),
        };
        self.talk.reached(buffered)
    }

    /// Samples its sender, if it has one.
    pub(crate) fn sample(&mut self, now: Instant) -> Option<FlowSample> {
        let (id, reached) = (self.id, self.reached());
        let side = &mut self.sides[self.talk.sender()];
        match &mut side.end {
            Some(End::Tcp(tcp)) => Some(FlowSample::of_tcp(now, id, reached, tcp.snapshot(now))),
            Some(End::Quic(quic)) => {
                let s = quic.end.endpoint.snapshot();
                Some(FlowSample::of_quic(now, id, reached, s))
            }
            Some(End::Mptcp(_)) => None,
            None => self.talk.sample(now, self.id),
        }
    }

    /// Sends a packet of one end, by the route to the other.
    #[inline]
    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        (slot, side): (u32, usize),
        net: &mut Net,
        ecn: Ecn,
        content: Content,
    ) {
        let origin = self.origin(slot, side);
        self.sides[side].wire += origin.transmit(now, net, ecn, content);
    }

    /// What the packets of one end have in common.
    #[inline]
    pub(crate) fn origin(&self, slot: u32, side: usize) -> Origin {
        Origin {
            flow: slot,
            generation: self.generation,
            side: 1 - side as u8,
            interface: self.spec.path,
            route: self.sides[side].route,
            hash: self.hash(side),
        }
    }

    /// The hash of the five-tuple of one direction, for fair queueing.
    #[inline]
    pub(crate) fn hash(&self, side: usize) -> u32 {
        // Flows that start later have greater generations, whatever their places in the scenario.
        let x = (u64::from(self.generation) * 2 + side as u64).wrapping_sub(1);
        let x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (x >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

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

    proptest! {
        /// Beside a queue: whatever was wanted, the timer fires at that time or before, when its owner asks again; and
        /// each of its entries fires once, except those that were pushed out by earlier ones.
        #[test]
        fn lazy_timers_are_never_late(steps in proptest::collection::vec(prop::option::of(0u64..40), 1..200)) {
            let mut timer = LazyTimer::new();
            // How many entries the queue has at each time.
            let mut queue = BTreeMap::<u64, u32>::new();
            let (mut now, mut wanted) = (0, None::<u64>);
            // An entry may have been pushed out, and still be in the queue.
            let mut has_strays = false;
            for step in steps {
                let Some(delay) = step else {
                    let Some((time, n)) = queue.pop_first() else { continue };
                    now = time;
                    prop_assert!(wanted.is_none_or(|at| at >= now), "{wanted:?} at {now}");
                    let fired = (0..n).filter(|_| timer.fire(Instant::from_nanos(now))).count();
                    if let Some(at) = wanted {
                        prop_assert!(at > now || fired == 1, "due at {at}, fired {fired} times of {n}");
                    }
                    wanted = wanted.filter(|at| *at > now);
                    if let Some(at) = wanted && timer.arm(Instant::from_nanos(at)) {
                        *queue.entry(at).or_default() += 1;
                    }
                    continue;
                };
                let at = now + 1 + delay;
                wanted = Some(wanted.map_or(at, |before| before.min(at)));
                let has_earlier = queue.keys().any(|t| *t <= at);
                if timer.arm(Instant::from_nanos(at)) {
                    prop_assert!(!has_earlier || has_strays, "an entry for {at} beside {queue:?}");
                    *queue.entry(at).or_default() += 1;
                }
                prop_assert!(queue.keys().any(|t| *t <= at), "{at} after {queue:?}");
                let entries: u32 = queue.values().sum();
                has_strays = entries > 0 && (has_strays || entries > LazyTimer::DEPTH as u32);
            }
            prop_assert!(!timer.arm(Instant::MAX), "never is no time");
        }
    }
}
