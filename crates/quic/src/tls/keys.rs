//! Keys of servers that protect tokens and stateless resets, from fixed bytes.

use noq_proto::crypto::{CryptoError, HandshakeTokenKey};
use ring::{aead, hkdf};

/// Seals address tokens: a key for each nonce (HKDF-SHA256), then AES-256-GCM.
pub(crate) struct TokenKey(hkdf::Prk);

impl TokenKey {
    pub(crate) fn new(master: &[u8]) -> Self {
        Self(hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(master))
    }

    fn key(&self, nonce: u128) -> Result<aead::LessSafeKey, CryptoError> {
        let nonce = nonce.to_le_bytes();
        let info = [&nonce[..]];
        let okm = self
            .0
            .expand(&info, &aead::AES_256_GCM)
            .map_err(|_| CryptoError)?;
        Ok(aead::LessSafeKey::new(aead::UnboundKey::from(okm)))
    }
}

fn zero() -> aead::Nonce {
    // Each key seals one token.
    aead::Nonce::assume_unique_for_key([0; 12])
}

impl HandshakeTokenKey for TokenKey {
    fn seal(&self, nonce: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        self.key(nonce)?
            .seal_in_place_append_tag(zero(), aead::Aad::empty(), data)
            .map_err(|_| CryptoError)
    }

    fn open<'a>(&self, nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let plain = self
            .key(nonce)?
            .open_in_place(zero(), aead::Aad::empty(), data)
            .map_err(|_| CryptoError)?;
        Ok(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_what_it_sealed_and_nothing_else() {
        let key = TokenKey::new(&[1; 64]);
        let mut data = b"address".to_vec();
        key.seal(5, &mut data).unwrap();
        assert_eq!(data.len(), 7 + 16);
        assert_eq!(key.open(5, &mut data.clone()).unwrap(), b"address");
        assert!(key.open(6, &mut data.clone()).is_err());
        assert!(TokenKey::new(&[2; 64]).open(5, &mut data.clone()).is_err());
        data[0] ^= 1;
        assert!(key.open(5, &mut data).is_err());
    }
}
