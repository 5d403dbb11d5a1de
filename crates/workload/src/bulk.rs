//! `bulk`: one transfer.

use gargalo_settings::{Error, settings};
use gargalo_units::Bytes;

settings! {
    /// One transfer, as fast as the network lets it.
    pub struct Bulk: Copy as "Bulk", checked by Bulk::possible {
        /// Bytes to carry; decimal (1 MB is 1,000,000 bytes; MiB when meant). Default: until the flow stops.
        bytes: Option<Bytes> = None;
    }
}

impl Bulk {
    /// Without end.
    pub const ENDLESS: Self = Self { bytes: None };

    /// Of so many bytes.
    pub const fn of(bytes: Bytes) -> Self {
        Self { bytes: Some(bytes) }
    }

    fn possible(&self) -> Result<(), Error> {
        if self.bytes.is_some_and(Bytes::is_zero) {
            let help = "leave it out to send without end";
            return Err(Error::of("bytes", "bytes is zero").help(help));
        }
        Ok(())
    }
}
