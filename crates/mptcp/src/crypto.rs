//! Keys, tokens and message authentication codes (RFC 8684 §3.1, §3.2, §3.4.1).

use std::net::{IpAddr, SocketAddr};

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// A host's key of a connection, with token and initial data sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    key: u64,
    token: u32,
    idsn: u64,
}

impl Key {
    /// Derives token and initial data sequence number: the first 32 and the last 64 bits of the key's
    /// SHA-256 (RFC 8684 §3.2 and §3.1).
    pub fn new(key: u64) -> Self {
        let hash = Sha256::digest(key.to_be_bytes());
        let mut token = [0; 4];
        let mut idsn = [0; 8];
        token.copy_from_slice(&hash[..4]);
        idsn.copy_from_slice(&hash[24..]);
        Self {
            key,
            token: u32::from_be_bytes(token),
            idsn: u64::from_be_bytes(idsn),
        }
    }
    /// The key itself.
    pub const fn get(self) -> u64 {
        self.key
    }
    /// The token that identifies the connection at this host in MP_JOIN.
    pub const fn token(self) -> u32 {
        self.token
    }
    /// Data sequence number before the first byte that this host sends.
    pub const fn idsn(self) -> u64 {
        self.idsn
    }
}

fn hmac(first: u64, second: u64, message: &[&[u8]]) -> [u8; 32] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&first.to_be_bytes());
    key[8..].copy_from_slice(&second.to_be_bytes());
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    for part in message {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// The authentication code of MP_JOIN of the host with `own` key and nonce (RFC 8684 §3.2).
pub fn join_hmac(own: Key, peer: Key, own_nonce: u32, peer_nonce: u32) -> [u8; 32] {
    let message = [&own_nonce.to_be_bytes()[..], &peer_nonce.to_be_bytes()];
    hmac(own.key, peer.key, &message)
}

/// The leftmost 64 bits, for the SYN-ACK.
pub fn leftmost_64(code: &[u8; 32]) -> u64 {
    let mut out = [0; 8];
    out.copy_from_slice(&code[..8]);
    u64::from_be_bytes(out)
}

/// The leftmost 160 bits, for the third packet.
pub fn leftmost_160(code: &[u8; 32]) -> [u8; 20] {
    let mut out = [0; 20];
    out.copy_from_slice(&code[..20]);
    out
}

/// The authentication code of ADD_ADDR by the host with `own` key: the rightmost 64 bits (RFC 8684
/// §3.4.1). Port 0 stands for none.
pub fn address_hmac(own: Key, peer: Key, id: u8, address: SocketAddr) -> u64 {
    let port = address.port().to_be_bytes();
    let code = match address.ip() {
        IpAddr::V4(ip) => hmac(own.key, peer.key, &[&[id], &ip.octets(), &port]),
        IpAddr::V6(ip) => hmac(own.key, peer.key, &[&[id], &ip.octets(), &port]),
    };
    let mut out = [0; 8];
    out.copy_from_slice(&code[24..]);
    u64::from_be_bytes(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    // Expected values: hashlib and hmac of Python's standard library.
    const A: u64 = 0x0123_4567_89ab_cdef;
    const B: u64 = 0xfedc_ba98_7654_3210;

    #[test]
    fn token_and_first_number_are_the_two_ends_of_the_hash() {
        let key = Key::new(A);
        assert_eq!(key.token(), TOKEN);
        assert_eq!(key.idsn(), IDSN);
    }

    #[test]
    fn each_side_authenticates_with_its_own_key_first() {
        let (a, b) = (Key::new(A), Key::new(B));
        let code = join_hmac(a, b, 0x1111_2222, 0x3333_4444);
        assert_eq!(leftmost_64(&code), JOIN);
        assert_eq!(leftmost_160(&code)[..8], JOIN.to_be_bytes());
        assert_ne!(code, join_hmac(b, a, 0x3333_4444, 0x1111_2222));
    }

    #[test]
    fn an_address_is_authenticated_with_its_port() {
        let (a, b) = (Key::new(A), Key::new(B));
        let ip = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 2));
        assert_eq!(address_hmac(a, b, 3, SocketAddr::new(ip, 0)), ADDRESS);
        assert_eq!(
            address_hmac(a, b, 3, SocketAddr::new(ip, 8080)),
            ADDRESS_PORT
        );
    }

    #[test]
    fn an_address_of_16_octets_is_authenticated_with_all_of_them() {
        let (a, b) = (Key::new(A), Key::new(B));
        let of = |ip: &str, id| address_hmac(a, b, id, SocketAddr::new(ip.parse().unwrap(), 0));
        let first = of("2001:db8::1", 3);
        for other in [
            of("2001:db8::2", 3),
            of("2001:db9::1", 3),
            of("2001:db8::1", 4),
            of("0.0.0.1", 3),
        ] {
            assert_ne!(first, other);
        }
    }

    const TOKEN: u32 = 0x55c5_3f5d;
    const IDSN: u64 = 0x5707_62cd_38be_9818;
    const JOIN: u64 = 0x1553_0245_eb8d_7304;
    const ADDRESS: u64 = 0xfa20_8fcd_b985_6cbc;
    const ADDRESS_PORT: u64 = 0x2db0_213b_3686_e9a1;
}
