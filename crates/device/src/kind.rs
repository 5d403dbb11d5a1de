//! Which kind of device is made.

/// How devices are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// TUN if possible, else a pair of Ethernet devices.
    Best {
        /// Several segments may cross in one system call, as with a network card that segments.
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
