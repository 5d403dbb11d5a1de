use gargalo_units::Ecn;

/// A packet on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet<P> {
    /// Size on this link in bytes: IP header and everything after it.
    pub bytes: u32,
    /// A hash of the five-tuple; fair queueing classifies by it.
    pub flow: u32,
    /// ECN field; queues may set CE.
    pub ecn: Ecn,
    /// The payload of the simulator or lab; `Copy` handles keep the hot path free of allocation.
    pub payload: P,
}
