//! The payload of a full segment.

use crate::config::TIMESTAMPS_LEN;
use crate::handshake::LEAST_MSS;
use crate::timestamps::Timestamps;

/// What bounds the payload of a segment: the path, the handshake and options of an upper layer (RFC 6691).
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentSize {
    pub(super) is_ipv6: bool,
    /// The path MTU as an MSS without options; `None` if it is not known.
    pub(super) path: Option<u16>,
    /// Payload of a segment as agreed in the handshake.
    pub(super) agreed: u16,
    /// Bytes per segment that an upper layer needs for its options.
    pub(super) reserved: u16,
}

impl SegmentSize {
    /// As configured, before the handshake.
    pub(super) fn new(mss: u16, is_ipv6: bool) -> Self {
        Self {
            is_ipv6,
            path: None,
            agreed: mss,
            reserved: 0,
        }
    }

    /// Payload of a full segment: the minimum of the negotiated MSS and the path's, less options.
    pub(super) fn payload(&self, timestamps: &Timestamps) -> u16 {
        payload_of(self.path, timestamps)
            .min(self.agreed)
            .saturating_sub(self.reserved)
            .max(LEAST_MSS.min(self.agreed))
    }

    /// The MSS that any path carries: the minimum MTU of IPv6 is 1280 bytes, and path MTU discovery over IPv4 goes
    /// down to 552 (Linux).
    pub(super) fn least_path(&self) -> u16 {
        if self.is_ipv6 { 1220 } else { 512 }
    }
}

/// Payload of a segment on a path with this MSS; `None`: unlimited.
pub(super) fn payload_of(path_mss: Option<u16>, timestamps: &Timestamps) -> u16 {
    let options = if timestamps.is_enabled() {
        TIMESTAMPS_LEN
    } else {
        0
    };
    path_mss.map_or(u16::MAX, |mss| mss.saturating_sub(options).max(LEAST_MSS))
}
