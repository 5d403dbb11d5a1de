//! The interface for a layer that distributes one stream over several endpoints (Multipath TCP, RFC 8684).
//!
//! Such a layer wraps the endpoint: it adds its options to the segments of [`Endpoint::poll_transmit`], reads those
//! of the segments it passes to [`Endpoint::handle`], and keeps the window that all its endpoints share. An
//! endpoint used without this interface is plain TCP, at no cost.

use gargalo_cc::Sibling;
use gargalo_units::{Instant, Seq};
use gargalo_wire::tcp::{Flags, Segment};

use super::{Endpoint, Transmit};
use crate::State;

/// A send window without effect: the upper layer enforces the real one.
const UNBOUND: u64 = 1 << 60;

/// Whether new data could be sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// This many bytes: the congestion window less the bytes in flight, at least one segment.
    Open(u64),
    /// Not before this instant: the sender is paced.
    Paced(Instant),
    /// Not before an acknowledgement: the window is full, retransmissions have priority, or the connection is not
    /// open.
    Full,
}

impl Endpoint {
    /// Hands the receive window to an upper layer, which grants the peer `bytes` beyond the data received in order
    /// (RFC 8684 §3.3.1). Call it again when the number changes; with `None` the endpoint uses its own window
    /// again.
    #[inline]
    pub fn share_window(&mut self, bytes: Option<u64>) {
        self.receiver.share_window(bytes);
    }

    /// The ranges of the peer's stream received and not read, from the first byte after its SYN: sorted and
    /// disjoint; empty ranges among them.
    pub fn buffered_ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.receiver.buffered_ranges()
    }

    /// Hands the send window to an upper layer, which writes no more than it was granted, or (`false`) back to this
    /// endpoint.
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

    /// Reserves `len` bytes of every data segment for options of the upper layer. Segments that were sent before are
    /// not split: sent again, they have room for the options that they had.
    pub fn reserve_options(&mut self, now: Instant, len: u16) {
        self.size.reserved = len;
        let payload = self.payload_size();
        if let Some(sender) = &mut self.sender {
            sender.set_room(now, payload);
        }
    }

    /// Payload of a full segment: the minimum of the negotiated MSS and the path's, less options.
    pub(super) fn payload_size(&self) -> u16 {
        self.size.payload(&self.timestamps)
    }

    /// Requests an acknowledgement at once, independently of the state of this endpoint.
    pub fn demand_ack(&mut self) {
        self.receiver.demand_ack();
    }

    /// Sends a segment without data just before the expected sequence number, which the peer must answer, like a
    /// keep-alive probe (RFC 9293 §3.8.4).
    pub fn probe(&mut self) {
        self.timers.probe_due |= self.state.is_synchronised();
    }

    /// Halves the congestion window without a congestion event, because the data of this path holds up other paths;
    /// returns `false` if it recovers or has just learned of a gap, which changes nothing.
    pub fn halve_window(&mut self) -> bool {
        let sender = self.sender.as_mut();
        sender.is_some_and(|s| s.halve_window())
    }

    /// After a retransmission timeout: retransmits the first unacknowledged segment although the timer has backed
    /// off (RFC 6298 §5.5). Its acknowledgement shows that an outage is over. Other segments of the peer do not, as
    /// our direction may still be interrupted.
    pub fn probe_path(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.probe_path();
        }
    }

    /// An acknowledgement without data, for an option that does not fit beside data; `None` while the connection is
    /// not open.
    pub fn pure_ack(&mut self, now: Instant) -> Option<Transmit> {
        (self.state.is_synchronised() && self.state != State::TimeWait)
            .then(|| self.send_ack(now))
            .flatten()
    }

    /// Bytes of our stream that the peer has acknowledged.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        self.seq.una
    }

    /// Bytes of our stream that were sent at least once.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.seq.sent
    }

    /// Position in our stream of a segment that [`poll_transmit`](Self::poll_transmit) gave.
    #[inline]
    pub fn sent_position(&self, seq: Seq) -> Option<u64> {
        seq.unwrap_near(self.seq.send_base, self.seq.una)
    }

    /// Position in the peer's stream of a segment that arrived; negative before the first byte.
    #[inline]
    pub fn received_position(&self, seq: Seq) -> i64 {
        self.receiver.next() as i64 + i64::from(seq.distance(self.ack_seq()))
    }

    /// Bytes estimated to be in the network, as in [`Endpoint::snapshot`].
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.sender.as_ref().map_or(0, |s| s.pipe())
    }

    /// Segments with data that were sent, as in [`Endpoint::stats`].
    #[inline]
    pub fn sent_packets(&self) -> u64 {
        let sender = self.sender.as_ref();
        sender
            .and_then(|s| s.counters().sent_packets.get())
            .unwrap_or(0)
    }

    /// Segments marked lost, as in [`Endpoint::stats`].
    #[inline]
    pub fn lost_packets(&self) -> u64 {
        let sender = self.sender.as_ref();
        sender
            .and_then(|s| s.counters().lost_packets.get())
            .unwrap_or(0)
    }

    /// Whether new data could be sent at `now`, regardless of the peer's window.
    #[inline]
    pub fn room(&self, now: Instant) -> Room {
        match &self.sender {
            Some(sender) if self.state.may_send() && !self.writes.closed => sender.room(now),
            _ => Room::Full,
        }
    }

    /// Sets whether the upper layer has more data than it has written. A layer that writes only as much as there is
    /// [room](Self::room) for says so, so that the sender counts as limited by the network and not by the
    /// application.
    #[inline]
    pub fn set_more(&mut self, more: bool) {
        if let Some(sender) = &mut self.sender {
            sender.set_more(more);
        }
    }

    /// The upper layer leaves this endpoint without data now, though there may be [room](Self::room) and more data
    /// follows: delivery-rate samples are application-limited until it writes again.
    #[inline]
    pub fn leave_unused(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.leave_unused();
        }
    }

    /// Whether an open connection would accept this segment: inside the window, not old, with an acknowledgement of
    /// sent data (RFC 9293 §3.10.7.4, RFC 7323 §5, RFC 5961 §5).
    pub fn accepts(&self, now: Instant, segment: &Segment) -> bool {
        if !self.state.is_synchronised() || !segment.flags.contains(Flags::ACK) {
            return false;
        }
        let timely = match segment.options.timestamps {
            Some(t) => !self.timestamps.is_enabled() || !self.timestamps.is_old(now, t.value),
            None => !self.timestamps.is_enabled(),
        };
        let offset = self.received_position(segment.seq);
        let acked = i64::from(segment.ack.distance(self.seq.of(self.seq.una)));
        timely
            && self.receiver.accepts(offset, segment.sequence_len())
            && acked <= (self.seq.outstanding()) as i64
            && -acked <= self.peer.largest() as i64
    }

    /// A tail loss probe was sent and is not answered (RFC 8985 §7).
    #[inline]
    pub fn is_probing(&self) -> bool {
        self.sender.as_ref().is_some_and(|s| s.is_probing())
    }

    /// The view of this endpoint for the coupled congestion control of another; `None` before the connection is
    /// open.
    pub fn sibling(&self) -> Option<Sibling> {
        let sender = self.sender.as_ref()?;
        Some(sender.sibling(self.state.may_send()))
    }

    /// Sets the coupled endpoints and the index of this one among them.
    pub fn set_siblings(&mut self, siblings: &[Sibling], index: usize) {
        if let Some(sender) = &mut self.sender {
            sender.set_siblings(siblings, index);
        }
    }
}
