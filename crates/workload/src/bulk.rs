//! `bulk`: one transfer.

use gargalo_settings::{Error, settings};
use gargalo_units::Bytes;

settings! {
    /// One transfer, as fast as the network allows.
    pub struct Bulk: Copy as "Bulk", checked by Bulk::possible {
        /// Bytes to transfer; MB is decimal (1,000,000 bytes), MiB is binary. Default: unlimited, until the flow
        /// stops.
        bytes: Option<Bytes> = None;
    }
}

impl Bulk {
    /// An unlimited transfer.
    pub const ENDLESS: Self = Self { bytes: None };

    /// A transfer of this size.
    pub const fn of(bytes: Bytes) -> Self {
        Self { bytes: Some(bytes) }
    }

    fn possible(&self) -> Result<(), Error> {
        if self.bytes.is_some_and(Bytes::is_zero) {
            let help = "leave it out for an unlimited transfer";
            return Err(Error::of("bytes", "bytes is zero").help(help));
        }
        Ok(())
    }
}
