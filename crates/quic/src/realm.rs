//! What all QUIC endpoints of a world share: certificate, TLS configurations, tickets, and the clock that
//! TLS reads.

use crate::Error;

/// What all QUIC endpoints of a world share. Cheap to clone; clones are the same realm.
#[derive(Clone, Debug)]
pub struct Realm {}

impl Realm {
    /// A realm whose randomness comes from `seed` alone.
    ///
    /// # Errors
    /// When the certificate cannot be made.
    pub fn new(seed: u64) -> Result<Self, Error> {
        let _ = seed;
        todo!()
    }
}
