//! What a connection knows of itself, for diagnosis.

use super::Endpoint;
use crate::Detail;

impl Endpoint {
    /// The state of loss recovery and what the handshake agreed on; costs a look at all segments in flight.
    pub fn detail(&self) -> Detail {
        let sender = self.sender.as_ref();
        let fin = u64::from(self.receiver.is_finished());
        Detail {
            scaling: self.scaling,
            sack: self.receiver.uses_sack(),
            timestamps: self.timestamps.is_enabled(),
            received_mss: self.receiver.ack().full_size(),
            received_bytes: self.receiver.next() - fin,
            ..sender.map_or_else(Detail::default, |s| s.detail())
        }
    }
}
