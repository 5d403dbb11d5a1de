//! Stream offsets and sequence numbers.

use gargalo_units::Seq;

/// The sequence variables of a connection (RFC 9293 §3.3.1), as 64-bit offsets in the two streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequences {
    /// Sequence number of offset 0 of our stream as the sender counts.
    pub(super) send_base: Seq,
    /// Sequence number of offset 0 of the peer's stream.
    pub(super) receive_base: Seq,
    /// SND.UNA as an offset.
    pub(super) una: u64,
    /// Highest offset ever sent, FIN included (SND.MAX).
    pub(super) sent: u64,
}

impl Sequences {
    /// Nothing is sent or received yet; `isn` is our initial sequence number, that of the SYN.
    pub(super) fn new(isn: Seq) -> Self {
        Self {
            send_base: isn + 1,
            receive_base: Seq::new(0),
            una: 0,
            sent: 0,
        }
    }

    /// Sequence number of an offset in our stream.
    #[inline]
    pub(super) fn of(&self, offset: u64) -> Seq {
        self.send_base + offset as u32
    }

    /// Sequence number of an offset in the peer's stream.
    #[inline]
    pub(super) fn of_peer(&self, offset: u64) -> Seq {
        self.receive_base + offset as u32
    }

    /// Bytes that were sent and are not acknowledged, a FIN included.
    #[inline]
    pub(super) fn outstanding(&self) -> u64 {
        self.sent - self.una
    }
}
