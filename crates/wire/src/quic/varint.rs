//! Variable-length integers (RFC 9000 §16).

/// What is left to be read.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// So many bytes; `None` if there are fewer.
    #[inline]
    pub fn take(&mut self, n: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(n).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// An integer of variable length.
    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let bytes = self.take(1 << (first >> 6))?;
        let mut value = u64::from(first & 0x3f);
        for b in &bytes[1..] {
            value = value << 8 | u64::from(*b);
        }
        Some(value)
    }

    /// An integer of so many bytes in network order, at most 8.
    #[inline]
    pub fn integer(&mut self, bytes: u64) -> Option<u64> {
        let bytes = self.take(bytes)?;
        Some(bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_rfc_9000_are_read() {
        // Appendix A.1.
        for (bytes, value) in [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            let mut reader = Reader(bytes);
            assert_eq!(reader.varint(), Some(value));
            assert!(reader.0.is_empty());
            assert_eq!(Reader(&bytes[..bytes.len() - 1]).varint(), None);
        }
    }

    #[test]
    fn integers_are_in_network_order() {
        let mut reader = Reader(&[1, 2, 3]);
        assert_eq!(
            (reader.integer(2), reader.integer(2), reader.integer(1)),
            (Some(258), None, Some(3))
        );
    }
}
