//! Keys of ECDSA with P-256, for rustls, whose signatures follow from the key and the message (RFC 6979): those of ring
//! have random parts.

use std::sync::Arc;

use p256::SecretKey;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use p256::pkcs8::DecodePrivateKey;
use rustls::pki_types::CertificateDer;
use rustls::server::ResolvesServerCert;
use rustls::sign::{self, CertifiedKey, Signer, SingleCertAndKey};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};

/// A private key.
#[derive(Clone, Debug)]
pub struct P256Key(SigningKey);

impl P256Key {
    /// Reads one as PKCS #8 has it; `None` for keys of other kinds.
    pub fn from_pkcs8(der: &[u8]) -> Option<Self> {
        let key = SecretKey::from_pkcs8_der(der).ok()?;
        Some(Self(key.into()))
    }

    /// The signature of a message, in DER.
    pub fn signature(&self, message: &[u8]) -> Vec<u8> {
        let signature: Signature = self.0.sign(message);
        signature.to_der().as_bytes().to_vec()
    }

    /// What a server with this certificate presents.
    pub fn resolver(self, certificate: CertificateDer<'static>) -> Arc<dyn ResolvesServerCert> {
        let key = CertifiedKey::new(vec![certificate], Arc::new(self));
        Arc::new(SingleCertAndKey::from(key))
    }
}

impl sign::SigningKey for P256Key {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let ours = offered.contains(&self.scheme());
        ours.then(|| Box::new(self.clone()) as Box<dyn Signer>)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }
}

impl Signer for P256Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.signature(message))
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ECDSA_NISTP256_SHA256
    }
}
