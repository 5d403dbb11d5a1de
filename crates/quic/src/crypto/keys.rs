//! Packet keys with observers, and packet keys that do not encrypt.

use std::sync::Arc;

use bytes::BytesMut;
use noq_proto::PathId;
use noq_proto::crypto::{CryptoError, HeaderKey, PacketKey};

use super::meter::Meter;
use crate::qlog::{Direction, Trace};
use crate::types::CID;

/// Length of AEAD tags and header protection samples (RFC 9001 §5.3, §5.4.2).
const TAG: usize = 16;

/// A packet key that passes the plaintext to observers.
pub(super) struct Observed {
    pub(super) inner: Box<dyn PacketKey>,
    /// Counts application data.
    pub(super) meter: Option<Arc<Meter>>,
    /// Gets all packets.
    pub(super) trace: Option<Arc<Trace>>,
}

impl PacketKey for Observed {
    #[inline]
    fn encrypt(&self, path: PathId, packet: u64, buf: &mut [u8], header_len: usize) {
        let end = buf.len().saturating_sub(self.inner.tag_len());
        if let Some((header, payload)) = buf[..end].split_at_checked(header_len) {
            if let Some(meter) = &self.meter {
                meter.packet(path, payload);
            }
            if let Some(trace) = &self.trace {
                trace.packet(Direction::Out, packet, header, payload, buf.len());
            }
        }
        self.inner.encrypt(path, packet, buf, header_len);
    }

    #[inline]
    fn decrypt(
        &self,
        path: PathId,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let size = header.len() + payload.len();
        self.inner.decrypt(path, packet, header, payload)?;
        if let Some(meter) = &self.meter {
            meter.arrived(path, payload);
        }
        if let Some(trace) = &self.trace {
            trace.packet(Direction::In, packet, header, payload, size);
        }
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

/// Does not encrypt, and writes a checksum in place of the tag. The limits are those of the key it replaces, so
/// that key updates happen at the same packets.
pub(super) struct NullPacket {
    /// Identifies the key: packets of another one are not accepted.
    generation: u64,
    confidentiality: u64,
    integrity: u64,
}

impl NullPacket {
    pub(super) fn instead_of(key: &dyn PacketKey, generation: u64) -> Self {
        Self {
            generation,
            confidentiality: key.confidentiality_limit(),
            integrity: key.integrity_limit(),
        }
    }
}

impl NullPacket {
    /// A sum over 64-bit words: fast, and not cryptographic.
    #[inline]
    fn checksum(&self, path: PathId, packet: u64, header: &[u8], payload: &[u8]) -> [u8; TAG] {
        let number = packet ^ u64::from(path != PathId::ZERO) << 63;
        let sum = sum(header, payload).wrapping_add(self.generation << 48);
        let mut tag = [0; TAG];
        tag[..8].copy_from_slice(&sum.to_be_bytes());
        tag[8..].copy_from_slice(&number.to_be_bytes());
        tag
    }
}

impl PacketKey for NullPacket {
    fn encrypt(&self, path: PathId, packet: u64, buf: &mut [u8], header_len: usize) {
        let end = buf.len() - TAG;
        let (content, tag) = buf.split_at_mut(end);
        let (header, payload) = content.split_at(header_len);
        tag.copy_from_slice(&self.checksum(path, packet, header, payload));
    }

    fn decrypt(
        &self,
        path: PathId,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let end = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        let (content, tag) = payload.split_at(end);
        if tag != self.checksum(path, packet, header, content) {
            return Err(CryptoError);
        }
        payload.truncate(end);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        self.confidentiality
    }

    fn integrity_limit(&self) -> u64 {
        self.integrity
    }
}

#[inline]
fn sum(header: &[u8], payload: &[u8]) -> u64 {
    let length = (header.len() as u64) << 32 | payload.len() as u64;
    words(header)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(words(payload))
        .wrapping_add(length)
}

#[inline]
fn words(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words
        .iter()
        .fold(u64::from_le_bytes(last).rotate_left(1), |sum, w| {
            sum.wrapping_add(u64::from_le_bytes(*w))
        })
}

/// Changes the frames of a packet that is protected by [`Crypto::Null`](crate::Crypto::Null) and corrects its
/// checksum, so that tests can act as a malicious peer that has the keys. For datagrams with one 1-RTT packet;
/// others are unchanged, and `false` is returned.
pub fn change_frames(datagram: &mut BytesMut, change: impl FnOnce(&mut Vec<u8>)) -> bool {
    let Some(first) = datagram.first() else {
        return false;
    };
    // A short header (RFC 9000 §17.3.1): connection identifier and packet number follow.
    let header = 1 + CID + usize::from(first & 3) + 1;
    let Some(end) = datagram.len().checked_sub(TAG) else {
        return false;
    };
    if first & 0xc0 != 0x40 || header > end {
        return false;
    }
    let (content, tag) = datagram.split_at(end);
    let (header, frames) = content.split_at(header);
    // The part of the sum from the key's generation is kept.
    let known = sum(header, frames);
    let mut own = [0; 8];
    own.copy_from_slice(&tag[..8]);
    let generation = u64::from_be_bytes(own).wrapping_sub(known);
    let (header, mut frames, number) = (header.to_vec(), frames.to_vec(), tag[8..].to_vec());
    change(&mut frames);
    let tag = sum(&header, &frames).wrapping_add(generation);
    datagram.clear();
    datagram.extend_from_slice(&header);
    datagram.extend_from_slice(&frames);
    datagram.extend_from_slice(&tag.to_be_bytes());
    datagram.extend_from_slice(&number);
    true
}

/// Header protection without encryption.
pub(super) struct NullHeader;

impl HeaderKey for NullHeader {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> NullPacket {
        of_generation(3)
    }

    fn of_generation(generation: u64) -> NullPacket {
        NullPacket {
            generation,
            confidentiality: 1,
            integrity: 1,
        }
    }

    #[test]
    fn any_changed_bit_is_noticed() {
        let mut packet: Vec<u8> = (0..60).collect();
        key().encrypt(PathId::ZERO, 77, &mut packet, 9);
        let open = |packet: &[u8], number| {
            let mut payload = BytesMut::from(&packet[9..]);
            key()
                .decrypt(PathId::ZERO, number, &packet[..9], &mut payload)
                .map(|()| payload)
        };
        assert_eq!(open(&packet, 77).unwrap()[..], (9..44).collect::<Vec<u8>>());
        assert!(open(&packet, 78).is_err());
        let mut payload = BytesMut::from(&packet[9..]);
        let other = of_generation(4);
        assert!(
            other
                .decrypt(PathId::ZERO, 77, &packet[..9], &mut payload)
                .is_err()
        );
        for bit in 0..packet.len() * 8 {
            let mut wrong = packet.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&wrong, 77).is_err(), "bit {bit}");
        }
        assert!(open(&packet[..20], 77).is_err());
    }
}
