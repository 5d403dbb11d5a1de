//! The server's certificate, made from fixed bytes.

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::Error;

/// The name of every server; `.test` is reserved (RFC 6761).
pub const SERVER_NAME: &str = "gargalo.test";

/// PKCS #8 version 1 around an Ed25519 key (RFC 8410 §7).
const PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// A self-signed certificate and its key. Ed25519 signatures are deterministic and always 64 bytes, so that all
/// handshakes have the same size.
pub(crate) fn make(
    key: [u8; 32],
) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), Error> {
    let tls = |e: rcgen::Error| Error::Tls(e.to_string());
    let pkcs8 = PrivatePkcs8KeyDer::from([&PREFIX[..], &key].concat());
    let pair = KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &PKCS_ED25519).map_err(tls)?;
    let mut params = CertificateParams::new([SERVER_NAME.to_owned()]).map_err(tls)?;
    params.serial_number = Some(SerialNumber::from(1));
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(2999, 1, 1);
    let certificate = params.self_signed(&pair).map_err(tls)?;
    Ok((certificate.der().clone(), pkcs8.into()))
}
