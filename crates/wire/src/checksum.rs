//! The Internet checksum (RFC 1071).

/// A running one's-complement sum of 16-bit big-endian words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum(u64);

impl Checksum {
    /// Nothing summed yet.
    pub const fn new() -> Self {
        Self(0)
    }

    /// Adds bytes; an odd last byte is padded with zero, so only the last piece may be odd.
    #[inline]
    pub fn add_bytes(mut self, bytes: &[u8]) -> Self {
        // 32-bit words: the sum is the same modulo 2^16 - 1, and 64 bits hold four billion of them.
        let (words, rest) = bytes.as_chunks::<4>();
        for w in words {
            self.0 += u64::from(u32::from_be_bytes(*w));
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        self.0 += u64::from(u32::from_be_bytes(last));
        self
    }

    /// Adds a 16-bit word.
    #[inline]
    pub const fn add_u16(mut self, word: u16) -> Self {
        self.0 += word as u64;
        self
    }

    /// Adds a 32-bit word.
    #[inline]
    pub const fn add_u32(mut self, word: u32) -> Self {
        self.0 += word as u64;
        self
    }

    /// The complement of the sum, as the header field carries it. Zero when the summed bytes include a correct
    /// checksum.
    #[inline]
    pub const fn finish(self) -> u16 {
        let mut n = self.0;
        while n > 0xffff {
            n = (n >> 16) + (n & 0xffff);
        }
        !(n as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn example_of_rfc_1071_section_3() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Checksum::new().add_bytes(&bytes).finish(), !0xddf2);
    }

    proptest! {
        #[test]
        fn sums_like_the_definition(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut sum = 0u32;
            for pair in bytes.chunks(2) {
                let word = u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]);
                sum += u32::from(word);
                sum = (sum >> 16) + (sum & 0xffff);
            }
            prop_assert_eq!(Checksum::new().add_bytes(&bytes).finish(), !(sum as u16));
        }
    }
}
