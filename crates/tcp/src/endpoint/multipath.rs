//! What a layer needs that spreads one stream over several endpoints (Multipath TCP, RFC 8684).
//!
//! Such a layer wraps the endpoint: it adds its options to what [`Endpoint::poll_transmit`] gives, reads
//! those of what it hands to [`Endpoint::handle`], and keeps the window that all its endpoints share.
//! An endpoint of which none of this is asked is plain TCP and pays nothing for it.

use gargalo_cc::Sibling;
use gargalo_units::{Instant, Seq};
use gargalo_wire::tcp::{Flags, Segment};

use super::path::payload_of;
use super::{Endpoint, Transmit};
use crate::State;
use crate::handshake::LEAST_MSS;

/// A send window that does not bind: the layer above keeps the real one.
const UNBOUND: u64 = 1 << 60;

/// Whether new data could leave at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// So many bytes: the congestion window less what is in flight, at least one segment.
    Open(u64),
    /// Not before this instant: the sender is paced.
    Paced(Instant),
    /// Not before an acknowledgement: the window is full or retransmissions come first, or the
    /// connection is not open.
    Full,
}

impl Endpoint {
    /// The receive window belongs to a layer above, which grants the peer `bytes` beyond what has arrived
    /// in order (RFC 8684 §3.3.1). To be called again when the number changes; `None` makes the endpoint
    /// keep its own window again.
    #[inline]
    pub fn share_window(&mut self, bytes: Option<u64>) {
        self.receiver.share_window(bytes);
    }

    /// The send window belongs to a layer above, which writes no more than it was granted, or (`false`)
    /// to this endpoint.
    pub fn leave_send_window(&mut self, to_layer_above: bool) {
        self.ignores_window = to_layer_above;
    }

    /// SND.WND for the sender.
    #[inline]
    pub(super) fn usable_window(&self) -> u64 {
        if self.ignores_window {
            UNBOUND
        } else {
            self.peer.bytes()
        }
    }

    /// The window field of a segment of the peer without SYN, in bytes.
    #[inline]
    pub fn scaled_window(&self, field: u16) -> u64 {
        self.peer.scaled(field)
    }

    /// Leaves `len` bytes of every data segment to options of the layer above.
    pub fn reserve_options(&mut self, now: Instant, len: u16) {
        self.reserved = len;
        let payload = self.payload_size();
        if let Some(sender) = &mut self.sender {
            sender.set_mss(now, payload);
        }
    }

    /// Payload of a full segment: what was agreed on, what the path carries, what options leave.
    pub(super) fn payload_size(&self) -> u16 {
        payload_of(self.path_mss, &self.timestamps)
            .min(self.agreed_mss)
            .saturating_sub(self.reserved)
            .max(LEAST_MSS.min(self.agreed_mss))
    }

    /// An acknowledgement is to leave at once, though nothing of this endpoint asks for it.
    pub fn demand_ack(&mut self) {
        self.receiver.demand_ack();
    }

    /// The peer is made to answer by a segment without data just before what it expects, as by a keep-alive
    /// probe (RFC 9293 §3.8.4).
    pub fn probe(&mut self) {
        self.timers.probe_due |= self.state.is_synchronised();
    }

    /// After a retransmission timeout: the first segment that is not acknowledged goes once more, though the
    /// timer has backed off (RFC 6298 §5.5). Its acknowledgement shows that an outage is over; nothing else
    /// that the peer sends does, as it may not hear us.
    pub fn ask(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.ask();
        }
    }

    /// An acknowledgement without data, to carry an option that data leaves no room for; `None` while the
    /// connection is not open.
    pub fn pure_ack(&mut self, now: Instant) -> Option<Transmit> {
        (self.state.is_synchronised() && self.state != State::TimeWait)
            .then(|| self.send_ack(now))
            .flatten()
    }

    /// Bytes of our stream that the peer has acknowledged.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        self.una
    }

    /// Bytes of our stream that have left at least once.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Position in our stream of a segment that [`poll_transmit`](Self::poll_transmit) gave.
    #[inline]
    pub fn sent_position(&self, seq: Seq) -> Option<u64> {
        seq.unwrap_near(self.send_base, self.una)
    }

    /// Position in the peer's stream of a segment that arrived; negative before the first byte.
    #[inline]
    pub fn received_position(&self, seq: Seq) -> i64 {
        self.receiver.next() as i64 + i64::from(seq.distance(self.ack_seq()))
    }

    /// Bytes believed to be in the network, as in [`Endpoint::snapshot`].
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.sender.as_ref().map_or(0, |s| s.pipe())
    }

    /// Segments with data that were sent, as in [`Endpoint::stats`].
    #[inline]
    pub fn sent_packets(&self) -> u64 {
        self.sender.as_ref().map_or(0, |s| s.sent_packets())
    }

    /// Segments marked lost, as in [`Endpoint::stats`].
    #[inline]
    pub fn lost_packets(&self) -> u64 {
        self.sender.as_ref().map_or(0, |s| s.lost_packets())
    }

    /// Whether new data could leave at `now`, the peer's window apart.
    #[inline]
    pub fn room(&self, now: Instant) -> Room {
        match &self.sender {
            Some(sender) if self.state.may_send() && !self.close_wanted => sender.room(now),
            _ => Room::Full,
        }
    }

    /// Whether the layer above has more data than it has written: one that writes only what there is
    /// [room](Self::room) for says so, and the congestion control knows that the network is the limit.
    #[inline]
    pub fn set_more(&mut self, more: bool) {
        if let Some(sender) = &mut self.sender {
            sender.set_more(more);
        }
    }

    /// The layer above gives this endpoint nothing now, though it may have [room](Self::room) and more was
    /// said to follow: delivery rates measured until it does are no measure of the network.
    #[inline]
    pub fn leave_unused(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.leave_unused();
        }
    }

    /// Whether this segment would be believed by a connection that is open: inside the window, not old,
    /// with an acknowledgement of something sent (RFC 9293 §3.10.7.4, RFC 7323 §5, RFC 5961 §5).
    pub fn believes(&self, now: Instant, segment: &Segment) -> bool {
        if !self.state.is_synchronised() || !segment.flags.contains(Flags::ACK) {
            return false;
        }
        let timely = match segment.options.timestamps {
            Some(t) => !self.timestamps.is_enabled() || !self.timestamps.is_old(now, t.value),
            None => !self.timestamps.is_enabled(),
        };
        let offset = self.received_position(segment.seq);
        let acked = i64::from(segment.ack.distance(self.send_base + self.una as u32));
        timely
            && self.receiver.accepts(offset, segment.sequence_len())
            && acked <= (self.sent - self.una) as i64
            && -acked <= self.peer.largest() as i64
    }

    /// A tail loss probe was sent and is not answered (RFC 8985 §7).
    #[inline]
    pub fn is_probing(&self) -> bool {
        self.sender.as_ref().is_some_and(|s| s.is_probing())
    }

    /// What a coupled congestion control of another endpoint may know of this one; `None` before the
    /// connection is open.
    pub fn sibling(&self) -> Option<Sibling> {
        let sender = self.sender.as_ref()?;
        Some(sender.sibling(self.state.may_send()))
    }

    /// The endpoints among which this one is coupled, and its place among them.
    pub fn set_siblings(&mut self, siblings: &[Sibling], index: usize) {
        if let Some(sender) = &mut self.sender {
            sender.set_siblings(siblings, index);
        }
    }
}
