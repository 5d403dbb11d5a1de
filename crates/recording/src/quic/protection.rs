//! Protection of packets, and how it is taken off (RFC 9001 §5, RFC 9369 §3.3).

use std::ops::Range;

use gargalo_wire::quic::Version;
use ring::aead::quic::{AES_128, AES_256, CHACHA20, HeaderProtectionKey};
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, HKDF_SHA384, KeyType, Prk, Salt};

use crate::secrets::Secret;

/// From where in a packet number, taken as one of four bytes, the sample of the header's protection begins.
const SAMPLE_AT: usize = 4;
const SAMPLE: usize = 16;
impl Secret {
    /// The cipher suites that it may be of. A key log does not say which; a packet that opens does.
    pub fn suites(&self) -> &'static [Suite] {
        match self.bytes().len() {
            32 => &[Suite::Aes128, Suite::ChaCha20],
            _ => &[Suite::Aes256],
        }
    }

    fn prk(&self, suite: Suite) -> Prk {
        let hash = match suite {
            Suite::Aes256 => HKDF_SHA384,
            _ => HKDF_SHA256,
        };
        Prk::new_less_safe(hash, self.bytes())
    }
}

/// A cipher suite of TLS 1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// TLS_AES_128_GCM_SHA256.
    Aes128,
    /// TLS_AES_256_GCM_SHA384.
    Aes256,
    /// TLS_CHACHA20_POLY1305_SHA256.
    ChaCha20,
}

/// A length of key material.
#[derive(Clone, Copy, Debug)]
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label (RFC 8446 §7.1) without a context, into `out`.
fn expand(prk: &Prk, label: &str, out: &mut [u8]) -> Option<()> {
    const PREFIX: &[u8] = b"tls13 ";
    let length = u16::try_from(out.len()).ok()?.to_be_bytes();
    let label_length = [u8::try_from(PREFIX.len() + label.len()).ok()?];
    let info = [&length[..], &label_length, PREFIX, label.as_bytes(), &[0]];
    let okm = prk.expand(&info, Length(out.len())).ok()?;
    okm.fill(out).ok()
}

/// A label of a version: "key", "iv", "hp", "ku".
fn label(version: Version, word: &str) -> String {
    match version {
        Version::One => format!("quic {word}"),
        Version::Two => format!("quicv2 {word}"),
    }
}

/// A key that opens packets.
#[derive(Debug)]
pub struct PacketKey {
    version: Version,
    suite: Suite,
    secret: Secret,
    key: LessSafeKey,
    iv: [u8; aead::NONCE_LEN],
}

impl PacketKey {
    /// That of a secret.
    pub fn new(version: Version, suite: Suite, secret: Secret) -> Option<Self> {
        let algorithm = match suite {
            Suite::Aes128 => &aead::AES_128_GCM,
            Suite::Aes256 => &aead::AES_256_GCM,
            Suite::ChaCha20 => &aead::CHACHA20_POLY1305,
        };
        let prk = secret.prk(suite);
        let (mut key, mut iv) = ([0; 32], [0; aead::NONCE_LEN]);
        let key = &mut key[..algorithm.key_len()];
        expand(&prk, &label(version, "key"), key)?;
        expand(&prk, &label(version, "iv"), &mut iv)?;
        let key = LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?);
        Some(Self {
            version,
            suite,
            secret,
            key,
            iv,
        })
    }

    /// The key after this one (RFC 9001 §6).
    pub fn next(&self) -> Option<Self> {
        let mut secret = [0; 48];
        let secret = &mut secret[..self.secret.bytes().len()];
        expand(
            &self.secret.prk(self.suite),
            &label(self.version, "ku"),
            secret,
        )?;
        Self::new(self.version, self.suite, Secret::new(secret)?)
    }

    fn nonce(&self, number: u64) -> [u8; aead::NONCE_LEN] {
        let mut nonce = self.iv;
        for (byte, n) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= n;
        }
        nonce
    }

    /// Decrypts a packet whose header is not protected any more into `room`; where its payload is there, if it is of
    /// this key.
    pub fn open(
        &self,
        bytes: &[u8],
        bare: &Bare,
        number: u64,
        room: &mut Vec<u8>,
    ) -> Option<Range<usize>> {
        room.clear();
        room.extend_from_slice(bytes);
        let (header, payload) = room.split_at_mut_checked(bare.payload_at)?;
        let start = bare.payload_at - bare.number_length;
        *header.first_mut()? = bare.first;
        let low = (bare.low as u32).to_be_bytes();
        header[start..].copy_from_slice(&low[4 - bare.number_length..]);
        let nonce = Nonce::assume_unique_for_key(self.nonce(number));
        let payload = self
            .key
            .open_in_place(nonce, Aad::from(&*header), payload)
            .ok()?;
        Some(bare.payload_at..bare.payload_at + payload.len())
    }
}

/// What the protection of a header hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bare {
    /// Its first byte.
    pub first: u8,
    /// Bytes of the packet number.
    pub number_length: usize,
    /// These bytes.
    pub low: u64,
    payload_at: usize,
}

impl Bare {
    /// Whether the key is one of the second, fourth, … of a connection (RFC 9001 §6); of a short header.
    pub const fn key_phase(&self) -> bool {
        self.first & 4 != 0
    }

    /// The packet number, after the largest one so far of its space (RFC 9000, appendix A.3).
    pub fn number(&self, largest: Option<u64>) -> u64 {
        let expected = largest.map_or(0, |n| n + 1);
        let window = 1u64 << (8 * self.number_length);
        let candidate = (expected & !(window - 1)) | self.low;
        if candidate + window / 2 <= expected && candidate < (1 << 62) - window {
            candidate + window
        } else if candidate > expected + window / 2 && candidate >= window {
            candidate - window
        } else {
            candidate
        }
    }
}

/// The bits of a short header's first byte that are hidden (RFC 9001 §5.4.1).
pub const HIDDEN: u8 = 0x1f;
/// Those where the reserved two are the loss bits of draft-ferrieuxhamchaoui-quic-lossbits, which anybody may read.
pub const HIDDEN_BESIDE_LOSS_BITS: u8 = 0x07;

/// A key that takes the protection off headers; it stays when packets get another key.
pub struct HeaderKey(HeaderProtectionKey);

impl std::fmt::Debug for HeaderKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HeaderKey")
    }
}

impl HeaderKey {
    /// That of a secret.
    pub fn new(version: Version, suite: Suite, secret: &Secret) -> Option<Self> {
        let algorithm = match suite {
            Suite::Aes128 => &AES_128,
            Suite::Aes256 => &AES_256,
            Suite::ChaCha20 => &CHACHA20,
        };
        let mut key = [0; 32];
        let key = &mut key[..algorithm.key_len()];
        expand(&secret.prk(suite), &label(version, "hp"), key)?;
        HeaderProtectionKey::new(algorithm, key).ok().map(Self)
    }

    /// What is hidden in a header whose packet number begins at `number_at`; `None` if too few bytes follow. `short`
    /// has the bits of a short header's first byte that are hidden.
    pub fn bare(&self, bytes: &[u8], number_at: usize, short: u8) -> Option<Bare> {
        let sample_at = number_at + SAMPLE_AT;
        let mask = self
            .0
            .new_mask(bytes.get(sample_at..sample_at + SAMPLE)?)
            .ok()?;
        let hidden = if bytes[0] & 0x80 == 0 { short } else { 0x0f };
        let first = bytes[0] ^ (mask[0] & hidden);
        let number_length = usize::from(first & 3) + 1;
        let payload_at = number_at + number_length;
        let number = bytes.get(number_at..payload_at)?;
        let low = number.iter().zip(&mask[1..]);
        let low = low.fold(0, |n, (byte, mask)| n << 8 | u64::from(byte ^ mask));
        Some(Bare {
            first,
            number_length,
            low,
            payload_at,
        })
    }
}

/// The secrets of both ends' Initial packets, the client's first: anybody knows them who has seen the connection
/// identifier to which the first one was sent (RFC 9001 §5.2).
pub fn initial_secrets(version: Version, to: &[u8]) -> Option<[Secret; 2]> {
    let salt: [u8; 20] = match version {
        Version::One => [
            0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8,
            0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
        ],
        Version::Two => [
            0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26,
            0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
        ],
    };
    let prk = Salt::new(HKDF_SHA256, &salt).extract(to);
    let of = |label| {
        let mut secret = [0; 32];
        expand(&prk, label, &mut secret)?;
        Secret::new(&secret)
    };
    Some([of("client in")?, of("server in")?])
}

/// The other way, for tests.
#[cfg(test)]
impl PacketKey {
    /// The payload of a packet, encrypted.
    pub fn seal(&self, number: u64, header: &[u8], payload: &[u8]) -> Vec<u8> {
        let nonce = Nonce::assume_unique_for_key(self.nonce(number));
        let mut sealed = payload.to_vec();
        self.key
            .seal_in_place_append_tag(nonce, Aad::from(header), &mut sealed)
            .unwrap();
        sealed
    }
}

#[cfg(test)]
impl HeaderKey {
    /// Protects the header of a packet; `short` as in [`HeaderKey::bare`].
    pub fn protect(&self, packet: &mut [u8], number_at: usize, short: u8) {
        let sample = &packet[number_at + SAMPLE_AT..][..SAMPLE];
        let mask = self.0.new_mask(sample).unwrap();
        let number_length = usize::from(packet[0] & 3) + 1;
        packet[0] ^= mask[0] & if packet[0] & 0x80 == 0 { short } else { 0x0f };
        for (byte, mask) in packet[number_at..][..number_length]
            .iter_mut()
            .zip(&mask[1..])
        {
            *byte ^= mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(digits: &str) -> Vec<u8> {
        let digits: String = digits.split_whitespace().collect();
        (0..digits.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap())
            .collect()
    }

    /// Key, initialization vector, and key of headers.
    fn derived(version: Version, suite: Suite, secret: &Secret) -> [Vec<u8>; 3] {
        let length = if suite == Suite::Aes128 { 16 } else { 32 };
        [("key", length), ("iv", 12), ("hp", length)].map(|(word, length)| {
            let mut out = vec![0; length];
            expand(&secret.prk(suite), &label(version, word), &mut out).unwrap();
            out
        })
    }

    #[test]
    fn initial_keys_are_those_of_the_rfcs() {
        // RFC 9001, appendix A.1; RFC 9369, appendix A.1.
        let to = hex("8394c8f03e515708");
        for (version, expected) in [
            (
                Version::One,
                [
                    [
                        "1f369613dd76d5467730efcbe3b1a22d",
                        "fa044b2f42a3fd3b46fb255c",
                        "9f50449e04a0e810283a1e9933adedd2",
                    ],
                    [
                        "cf3a5331653c364c88f0f379b6067e37",
                        "0ac1493ca1905853b0bba03e",
                        "c206b8d9b9f0f37644430b490eeaa314",
                    ],
                ],
            ),
            (
                Version::Two,
                [
                    [
                        "8b1a0bc121284290a29e0971b5cd045d",
                        "91f73e2351d8fa91660e909f",
                        "45b95e15235d6f45a6b19cbcb0294ba9",
                    ],
                    [
                        "82db637861d55e1d011f19ea71d5d2a7",
                        "dd13c276499c0249d3310652",
                        "edf6d05c83121201b436e16877593c3a",
                    ],
                ],
            ),
        ] {
            let secrets = initial_secrets(version, &to).unwrap();
            for (secret, expected) in secrets.iter().zip(expected) {
                assert_eq!(derived(version, Suite::Aes128, secret), expected.map(hex));
            }
        }
    }

    #[test]
    fn the_servers_initial_of_the_rfc_opens() {
        // RFC 9001, appendix A.3.
        let packet = hex(
            "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb3
             8cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84
             022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc42158407dd074ee",
        );
        let payload = hex(
            "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a045a1200
             130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00
             020304",
        );
        let [_, server] = initial_secrets(Version::One, &hex("8394c8f03e515708")).unwrap();
        let header = HeaderKey::new(Version::One, Suite::Aes128, &server).unwrap();
        let key = PacketKey::new(Version::One, Suite::Aes128, server).unwrap();
        let bare = header.bare(&packet, 18, HIDDEN).unwrap();
        assert_eq!((bare.first, bare.number_length, bare.low), (0xc1, 2, 1));
        let mut room = Vec::new();
        let found = key
            .open(&packet, &bare, bare.number(None), &mut room)
            .unwrap();
        assert_eq!(room[found], payload);
        // Another number, or another bit, is another packet.
        assert_eq!(key.open(&packet, &bare, 2, &mut room), None);
        let mut changed = packet.clone();
        changed[60] ^= 1;
        assert_eq!(key.open(&changed, &bare, 1, &mut room), None);
        assert_eq!(key.open(&packet[..19], &bare, 1, &mut room), None);
    }

    #[test]
    fn the_short_header_of_the_rfc_opens_with_chacha20() {
        // RFC 9001, appendix A.5.
        let secret = Secret::new(&hex(
            "9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b",
        ))
        .unwrap();
        assert_eq!(secret.suites(), [Suite::Aes128, Suite::ChaCha20]);
        let expected = [
            "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8",
            "e0459b3474bdd0e44a41c144",
            "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4",
        ];
        assert_eq!(
            derived(Version::One, Suite::ChaCha20, &secret),
            expected.map(hex)
        );
        let header = HeaderKey::new(Version::One, Suite::ChaCha20, &secret).unwrap();
        let key = PacketKey::new(Version::One, Suite::ChaCha20, secret).unwrap();
        let next = "1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9";
        assert_eq!(key.next().unwrap().secret, Secret::new(&hex(next)).unwrap());
        let packet = hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb");
        let bare = header.bare(&packet, 1, HIDDEN).unwrap();
        assert_eq!(
            (bare.first, bare.number_length, bare.key_phase()),
            (0x42, 3, false)
        );
        let number = bare.number(Some(654_360_563));
        assert_eq!(number, 654_360_564);
        let mut room = Vec::new();
        let found = key.open(&packet, &bare, number, &mut room).unwrap();
        assert_eq!(room[found], [1]);
    }

    #[test]
    fn numbers_are_those_nearest_to_the_one_expected() {
        let of = |low, number_length, largest| {
            let bare = Bare {
                first: 0,
                number_length,
                low,
                payload_at: 0,
            };
            bare.number(largest)
        };
        // RFC 9000, appendix A.3.
        assert_eq!(of(0x9b32, 2, Some(0xa82f_30ea)), 0xa82f_9b32);
        assert_eq!(
            (of(0, 1, None), of(255, 1, Some(256)), of(1, 1, Some(255))),
            (0, 255, 257)
        );
        assert_eq!(of(0xffff_ffff, 4, Some((1 << 62) - 1)), (1 << 62) - 1);
    }
}
