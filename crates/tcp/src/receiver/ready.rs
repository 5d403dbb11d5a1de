use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::event::Chunk;

/// Pieces shorter than this are merged, to limit the overhead per piece.
pub const SHORT: usize = 256;

/// Data in order that the application has not read.
#[derive(Debug, Default)]
pub struct Ready {
    /// Bytes without content after everything else: all there is, while a transfer has no content.
    synthetic: u64,
    chunks: VecDeque<Chunk>,
    /// The bytes of short pieces after them, if nothing synthetic follows.
    short: BytesMut,
}

impl Ready {
    /// Appends `n` bytes without content.
    #[inline]
    pub fn push_synthetic(&mut self, n: u64) {
        self.synthetic += n;
        if !self.short.is_empty() {
            self.join_short();
        }
    }

    /// Appends content; short pieces are merged, so that single-byte segments take no extra memory.
    pub fn push_real(&mut self, bytes: Bytes) {
        if self.synthetic > 0 {
            let n = std::mem::take(&mut self.synthetic);
            self.chunks.push_back(Chunk::Synthetic(n));
        }
        if bytes.len() < SHORT {
            self.short.extend_from_slice(&bytes);
        } else {
            self.join_short();
            self.chunks.push_back(Chunk::Real(bytes));
        }
    }

    fn join_short(&mut self) {
        if !self.short.is_empty() {
            let bytes = self.short.split().freeze();
            self.chunks.push_back(Chunk::Real(bytes));
        }
    }

    /// Takes at most `max` bytes.
    #[inline]
    pub fn pop(&mut self, max: u64) -> Option<Chunk> {
        if !self.chunks.is_empty() || !self.short.is_empty() {
            return self.pop_stored(max);
        }
        let n = self.synthetic.min(max);
        self.synthetic -= n;
        (n > 0).then_some(Chunk::Synthetic(n))
    }

    #[inline(never)]
    fn pop_stored(&mut self, max: u64) -> Option<Chunk> {
        if self.chunks.is_empty() {
            self.join_short();
        }
        match self.chunks.front_mut()? {
            Chunk::Synthetic(n) if *n > max => {
                *n -= max;
                Some(Chunk::Synthetic(max))
            }
            Chunk::Real(bytes) if bytes.len() as u64 > max => {
                Some(Chunk::Real(bytes.split_to(max as usize)))
            }
            _ => self.chunks.pop_front(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_pieces_come_together_and_everything_in_order() {
        let mut ready = Ready::default();
        let long = Bytes::from(vec![b'l'; SHORT]);
        for piece in ["a", "b", "c"] {
            ready.push_real(Bytes::from_static(piece.as_bytes()));
        }
        ready.push_real(long.clone());
        ready.push_real(Bytes::from_static(b"d"));
        ready.push_synthetic(2);
        ready.push_synthetic(3);
        ready.push_real(Bytes::from_static(b"e"));
        let real = |text: &'static str| Chunk::Real(Bytes::from_static(text.as_bytes()));
        assert_eq!(ready.pop(2), Some(real("ab")));
        let rest: Vec<_> = std::iter::from_fn(|| ready.pop(1 << 20)).collect();
        let expected = [
            real("c"),
            Chunk::Real(long),
            real("d"),
            Chunk::Synthetic(5),
            real("e"),
        ];
        assert_eq!(rest, expected);
    }

    #[test]
    fn what_is_read_in_small_steps_ends_where_content_begins_and_no_step_is_empty() {
        let mut ready = Ready::default();
        ready.push_synthetic(5);
        ready.push_real(Bytes::from_static(b"abcd"));
        ready.push_synthetic(4);
        let read: Vec<_> = std::iter::from_fn(|| ready.pop(2)).collect();
        let real = |text: &'static str| Chunk::Real(Bytes::from_static(text.as_bytes()));
        let expected = [
            Chunk::Synthetic(2),
            Chunk::Synthetic(2),
            Chunk::Synthetic(1),
            real("ab"),
            real("cd"),
            Chunk::Synthetic(2),
            Chunk::Synthetic(2),
        ];
        assert_eq!(read, expected);
        // As much as there is, exactly.
        ready.push_synthetic(3);
        ready.push_real(Bytes::from_static(b"e"));
        assert_eq!(ready.pop(3), Some(Chunk::Synthetic(3)));
        assert_eq!(ready.pop(3), Some(real("e")));
    }

    #[test]
    fn a_stream_of_single_bytes_is_one_chunk() {
        let mut ready = Ready::default();
        for _ in 0..100_000 {
            ready.push_real(Bytes::from_static(b"x"));
        }
        assert_eq!(ready.pop(u64::MAX).map(|c| c.len()), Some(100_000));
        assert_eq!(ready.pop(u64::MAX), None);
    }
}
