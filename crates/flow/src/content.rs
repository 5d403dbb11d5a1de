//! The content of flows: zeros, or a pattern by which the receiver can verify every byte.

use std::sync::OnceLock;

use bytes::{Bytes, BytesMut};

/// Bytes written at once.
pub const PIECE: u64 = 64 << 10;
/// Most bytes in a piece.
pub const LARGEST: u64 = 4 * PIECE;

/// The key of the data that one side of a flow sends.
pub const fn key(flow: u64, sender: usize) -> u64 {
    flow * 2 + sender as u64
}

/// Returns at most `want` bytes of a stream, starting at `offset`.
pub fn piece(key: Option<u64>, offset: u64, want: u64) -> Bytes {
    static ZEROS: OnceLock<Bytes> = OnceLock::new();
    let n = want.min(LARGEST) as usize;
    match key {
        None => ZEROS
            .get_or_init(|| Bytes::from(vec![0; LARGEST as usize]))
            .slice(..n),
        Some(key) => {
            let mut out = BytesMut::with_capacity(n + 8);
            let mut at = offset;
            while out.len() < n {
                let word = word(key, at / 8).to_le_bytes();
                out.extend_from_slice(&word[(at % 8) as usize..]);
                at = (at / 8 + 1) * 8;
            }
            out.truncate(n);
            out.freeze()
        }
    }
}

/// Whether `data` equals what [`piece`] generates at `offset`.
pub fn is_right(key: u64, offset: u64, data: &[u8]) -> bool {
    let mut at = offset;
    let mut rest = data;
    while !rest.is_empty() {
        let from = (at % 8) as usize;
        let word = word(key, at / 8).to_le_bytes();
        let n = rest.len().min(8 - from);
        let (now, later) = rest.split_at(n);
        if *now != word[from..from + n] {
            return false;
        }
        at += n as u64;
        rest = later;
    }
    true
}

/// A finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit of key and index affects the result.
fn word(key: u64, index: u64) -> u64 {
    let mut z = key.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fit_together_and_every_change_is_seen() {
        let whole = piece(Some(7), 0, 1000);
        for (from, to) in [(0, 1), (3, 17), (8, 16), (511, 1000)] {
            let part = piece(Some(7), from as u64, (to - from) as u64);
            assert_eq!(part, whole[from..to]);
            assert!(is_right(7, from as u64, &part));
            // A single byte may match by chance.
            let differs = |key, at: usize| part.len() < 3 || !is_right(key, at as u64, &part);
            assert!(differs(8, from) && differs(7, from + 1) && differs(7, from + 8));
        }
        for i in 0..whole.len() {
            let mut bad = whole.to_vec();
            bad[i] ^= 1;
            assert!(!is_right(7, 0, &bad));
        }
    }

    /// With key 1 the first word is the first number of SplitMix64 with seed 0.
    #[test]
    fn content_is_the_same_in_every_version() {
        let words = |key, offset| {
            let bytes = piece(Some(key), offset, 8);
            u64::from_le_bytes(bytes[..].try_into().unwrap())
        };
        assert_eq!(words(1, 0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(words(7, 8), 0xe099_ec6c_d736_3ca5);
        assert_eq!([key(3, 0), key(3, 1)], [6, 7]);
        assert!(!piece(None, 5, 100).iter().any(|b| *b != 0));
        assert_eq!(piece(None, 0, u64::MAX).len() as u64, LARGEST);
    }
}
