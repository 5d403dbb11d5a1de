//! The server's certificate, made from fixed bytes.

use p256::SecretKey;
use p256::elliptic_curve::sec1::ToEncodedPoint;
use p256::pkcs8::EncodePrivateKey;
use rcgen::{
    CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PublicKeyData, SerialNumber,
    SignatureAlgorithm, SigningKey, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::P256Key;
use crate::Error;

/// The name of every server; `.test` is reserved (RFC 6761).
pub const SERVER_NAME: &str = "gargalo.test";

/// PKCS #8 version 1 around an Ed25519 key (RFC 8410 §7).
const PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// The kind of a certificate's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// Signatures are deterministic and always 64 bytes, so that all handshakes have the same size.
    Ed25519,
    /// For stacks that cannot use Ed25519. With RFC 6979 signatures are deterministic, of 70 to 72 bytes.
    P256,
}

type Made = (CertificateDer<'static>, PrivateKeyDer<'static>);

/// A self-signed certificate and its key.
pub(crate) fn make(key: [u8; 32], kind: KeyKind) -> Result<Made, Error> {
    match kind {
        KeyKind::Ed25519 => {
            let pkcs8 = PrivatePkcs8KeyDer::from([&PREFIX[..], &key].concat());
            let pair = KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &PKCS_ED25519).map_err(tls)?;
            sign(&pair, pkcs8)
        }
        KeyKind::P256 => {
            let failed = || Error::Tls("no key of P-256".to_owned());
            // Below the order of the group, and not zero.
            let mut scalar = key;
            scalar[0] &= 0x7f;
            scalar[31] |= 1;
            let secret = SecretKey::from_slice(&scalar).map_err(|_| failed())?;
            // With the public key in it, without which some libraries refuse it.
            let pkcs8 = secret.to_pkcs8_der().map_err(|_| failed())?;
            let pkcs8 = PrivatePkcs8KeyDer::from(pkcs8.as_bytes().to_vec());
            let signer = P256Key::from_pkcs8(pkcs8.secret_pkcs8_der()).ok_or_else(failed)?;
            let point = secret.public_key().to_encoded_point(false);
            sign(&Deterministic(signer, point.as_bytes().to_vec()), pkcs8)
        }
    }
}

fn tls(e: rcgen::Error) -> Error {
    Error::Tls(e.to_string())
}

fn sign(pair: &impl SigningKey, pkcs8: PrivatePkcs8KeyDer<'static>) -> Result<Made, Error> {
    let mut params = CertificateParams::new([SERVER_NAME.to_owned()]).map_err(tls)?;
    params.serial_number = Some(SerialNumber::from(1));
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(2999, 1, 1);
    let certificate = params.self_signed(pair).map_err(tls)?;
    Ok((certificate.der().clone(), pkcs8.into()))
}

/// A key of P-256 and its public point, for rcgen.
struct Deterministic(P256Key, Vec<u8>);

impl PublicKeyData for Deterministic {
    fn der_bytes(&self) -> &[u8] {
        &self.1
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

impl SigningKey for Deterministic {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(self.0.signature(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_follow_from_the_key() {
        for kind in [KeyKind::Ed25519, KeyKind::P256] {
            for key in [[0; 32], [0xff; 32]] {
                let (first, second) = (make(key, kind).unwrap(), make(key, kind).unwrap());
                assert_eq!(first.0, second.0);
                assert_eq!(first.1.secret_der(), second.1.secret_der());
                assert_ne!(first.0, make([1; 32], kind).unwrap().0);
            }
        }
    }
}
