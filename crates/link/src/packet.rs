use gargalo_units::Ecn;

/// A packet as a link sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<P> {
    /// Size on this link in bytes: IP header and all above it.
    pub bytes: u32,
    /// A hash of the five-tuple (fair queueing classifies by it).
    pub flow: u32,
    /// ECN field; queues may set CE.
    pub ecn: Ecn,
    /// Whatever the world carries; `Copy` handles keep the hot path free of allocation.
    pub payload: P,
}
