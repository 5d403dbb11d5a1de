//! The choice of the kind of device.

/// The kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// TUN if possible, otherwise a pair of Ethernet devices.
    Best {
        /// Several segments may pass in one system call, as with a network card that offloads segmentation.
        offload: bool,
    },
    /// A pair of Ethernet devices.
    Veth,
}

impl Default for Choice {
    fn default() -> Self {
        Self::Best { offload: true }
    }
}
