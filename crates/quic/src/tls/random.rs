//! Randomness and key exchange of TLS from a seeded generator.
//!
//! rustls requires a `&'static` random source, while each endpoint has its own generator. So the static object uses
//! the generator that the endpoint running on this thread has set, and fails if there is none: it never falls back
//! to the operating system.

use std::cell::Cell;

use rand::Rng;
use rand_pcg::Pcg64;
use rustls::crypto::{
    ActiveKeyExchange, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup,
};
use rustls::{Error, NamedGroup, PeerMisbehaved};
use x25519_dalek::{PublicKey, StaticSecret};

thread_local! {
    static LENT: Cell<Option<Pcg64>> = const { Cell::new(None) };
}

/// Runs `work` with TLS drawing from `rng`.
#[inline]
pub(crate) fn with<R>(rng: &mut Pcg64, work: impl FnOnce() -> R) -> R {
    LENT.set(Some(rng.clone()));
    let result = work();
    if let Some(after) = LENT.take() {
        *rng = after;
    }
    result
}

/// The random source of all TLS configurations.
#[derive(Debug)]
pub(crate) struct SeededRandom;

impl SecureRandom for SeededRandom {
    fn fill(&self, buf: &mut [u8]) -> Result<(), GetRandomFailed> {
        let mut rng = LENT.take().ok_or(GetRandomFailed)?;
        rng.fill_bytes(buf);
        LENT.set(Some(rng));
        Ok(())
    }
}

/// X25519 (RFC 7748) with scalars from [`SeededRandom`].
#[derive(Debug)]
pub(crate) struct X25519;

impl SupportedKxGroup for X25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut scalar = [0; 32];
        SeededRandom.fill(&mut scalar)?;
        let secret = StaticSecret::from(scalar);
        let public = PublicKey::from(&secret);
        Ok(Box::new(Exchange { secret, public }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }

    fn ffdhe_group(&self) -> Option<rustls::ffdhe_groups::FfdheGroup<'static>> {
        None
    }
}

struct Exchange {
    secret: StaticSecret,
    public: PublicKey,
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let invalid = || Error::from(PeerMisbehaved::InvalidKeyShare);
        let peer: [u8; 32] = peer.try_into().map_err(|_| invalid())?;
        let shared = self.secret.diffie_hellman(&PublicKey::from(peer));
        if !shared.was_contributory() {
            return Err(invalid());
        }
        Ok(SharedSecret::from(&shared.as_bytes()[..]))
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_bytes()
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn only_a_lent_generator_is_drawn_from() {
        let mut buf = [0; 8];
        assert!(SeededRandom.fill(&mut buf).is_err());
        let mut a = Pcg64::seed_from_u64(7);
        let mut b = a.clone();
        with(&mut a, || SeededRandom.fill(&mut buf)).unwrap();
        let mut expected = [0; 8];
        b.fill_bytes(&mut expected);
        assert_eq!(buf, expected);
        assert_eq!(a, b, "the generator has advanced by what was drawn");
        assert!(SeededRandom.fill(&mut buf).is_err());
    }

    #[test]
    fn both_sides_agree_and_small_order_points_are_refused() {
        let mut rng = Pcg64::seed_from_u64(1);
        with(&mut rng, || {
            let (a, b) = (X25519.start().unwrap(), X25519.start().unwrap());
            let (pa, pb) = (a.pub_key().to_vec(), b.pub_key().to_vec());
            assert_ne!(pa, pb);
            let (sa, sb) = (a.complete(&pb).unwrap(), b.complete(&pa).unwrap());
            assert_eq!(sa.secret_bytes(), sb.secret_bytes());
            assert!(X25519.start().unwrap().complete(&[0; 32]).is_err());
            assert!(X25519.start().unwrap().complete(&[9; 31]).is_err());
        });
    }
}
