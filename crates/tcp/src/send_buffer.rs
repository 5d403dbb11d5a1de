use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use gargalo_wire::tcp::Payload;

/// The stream from the first unacknowledged byte to the last one written.
///
/// Runs of real bytes and of synthetic ones, found by binary search; a synthetic transfer of any
/// size is one run.
#[derive(Debug, Default)]
pub struct SendBuffer {
    runs: VecDeque<Run>,
    /// Offset of the first byte kept.
    start: u64,
    /// Offset after the last byte written.
    end: u64,
    /// Real bytes that the runs keep alive, released ones of the first run included.
    real: usize,
}

#[derive(Debug)]
struct Run {
    /// Offset of the first byte.
    at: u64,
    len: u64,
    /// The content; `None`: synthetic bytes, which have none.
    bytes: Option<Bytes>,
}

impl SendBuffer {
    /// Bytes written and not yet acknowledged.
    #[inline]
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Offset after the last byte written.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends as much of `data` as `limit` bytes in the buffer allow; returns how much.
    pub fn write(&mut self, mut data: Bytes, limit: u64) -> usize {
        let room = limit.saturating_sub(self.len());
        let n = usize::try_from(room).unwrap_or(usize::MAX).min(data.len());
        if n == 0 {
            return 0;
        }
        data.truncate(n);
        self.real += n;
        self.runs.push_back(Run {
            at: self.end,
            len: n as u64,
            bytes: Some(data),
        });
        self.end += n as u64;
        n
    }

    /// Appends as much of `n` bytes without content as `limit` bytes in the buffer allow, and no more than
    /// the offsets can count; returns how many.
    #[inline]
    pub fn write_synthetic(&mut self, n: u64, limit: u64) -> u64 {
        // Half the offset space stays free, so that arithmetic on offsets cannot overflow.
        let countable = (u64::MAX / 2).saturating_sub(self.end);
        let n = n.min(limit.saturating_sub(self.len())).min(countable);
        if n == 0 {
            return 0;
        }
        match self.runs.back_mut() {
            Some(run) if run.bytes.is_none() => run.len += n,
            _ => self.runs.push_back(Run {
                at: self.end,
                len: n,
                bytes: None,
            }),
        }
        self.end += n;
        n
    }

    /// Releases everything before `offset`.
    #[inline]
    pub fn release(&mut self, offset: u64) {
        self.start = offset.clamp(self.start, self.end);
        let whole = |run: &Run| run.at + run.len <= self.start;
        if self.runs.front().is_some_and(whole) {
            self.release_runs();
        }
    }

    #[inline(never)]
    fn release_runs(&mut self) {
        while let Some(run) = self.runs.front() {
            if run.at + run.len > self.start {
                break;
            }
            self.real -= run.bytes.as_ref().map_or(0, Bytes::len);
            self.runs.pop_front();
        }
    }

    /// Removes the first `n` bytes; the next byte gets offset 0. Only allowed before any release.
    pub fn skip(&mut self, n: u64) {
        self.release(n);
        let by = self.start;
        for run in &mut self.runs {
            let cut = by.saturating_sub(run.at);
            run.at = (run.at + cut) - by;
            run.len -= cut;
            if let Some(bytes) = &mut run.bytes {
                bytes.advance(usize::try_from(cut).unwrap_or(usize::MAX).min(bytes.len()));
            }
        }
        self.real = self
            .runs
            .iter()
            .filter_map(|r| r.bytes.as_ref())
            .map(Bytes::len)
            .sum();
        self.end -= by;
        self.start = 0;
    }

    /// The bytes `offset..offset + len`, as far as they are kept. Real and synthetic bytes in one
    /// segment make it real, the synthetic ones being zero.
    #[inline]
    pub fn payload(&self, offset: u64, len: u32) -> Payload {
        if self.real == 0 {
            let end = (offset + u64::from(len)).min(self.end);
            return Payload::synthetic(end.saturating_sub(offset.max(self.start)) as u32);
        }
        self.mixed(offset, len)
    }

    fn mixed(&self, offset: u64, len: u32) -> Payload {
        let from = offset.max(self.start);
        let to = (offset + u64::from(len)).min(self.end);
        if from >= to {
            return Payload::EMPTY;
        }
        let first = self.runs.partition_point(|r| r.at + r.len <= from);
        let piece = |run: &Run| {
            let a = from.max(run.at) - run.at;
            let b = to.min(run.at + run.len) - run.at;
            (a as usize, b as usize)
        };
        let covering = || self.runs.range(first..).take_while(|r| r.at < to);
        if covering().all(|r| r.bytes.is_none()) {
            return Payload::synthetic((to - from) as u32);
        }
        if let (Some(run), true) = (self.runs.get(first), covering().nth(1).is_none())
            && let Some(bytes) = &run.bytes
        {
            let (a, b) = piece(run);
            return Payload::real(bytes.slice(a..b));
        }
        let mut out = BytesMut::with_capacity((to - from) as usize);
        for run in covering() {
            let (a, b) = piece(run);
            match &run.bytes {
                Some(bytes) => out.extend_from_slice(&bytes[a..b]),
                None => out.resize(out.len() + (b - a), 0),
            }
        }
        Payload::real(out.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> SendBuffer {
        let mut b = SendBuffer::default();
        assert_eq!(b.write(Bytes::from_static(b"hello "), u64::MAX), 6);
        assert_eq!(b.write(Bytes::from_static(b"world"), u64::MAX), 5);
        assert_eq!(b.write_synthetic(3, u64::MAX), 3);
        assert_eq!(b.write_synthetic(2, u64::MAX), 2);
        assert_eq!(b.write(Bytes::from_static(b"!"), u64::MAX), 1);
        b
    }

    #[test]
    fn any_slice_of_the_stream_is_found() {
        let b = filled();
        let whole = b"hello world\0\0\0\0\0!";
        for from in 0..whole.len() {
            for to in from..=whole.len() {
                let p = b.payload(from as u64, (to - from) as u32);
                assert_eq!(p.len() as usize, to - from);
                if let Some(real) = p.bytes() {
                    assert_eq!(&real[..], &whole[from..to]);
                } else {
                    assert!(whole[from..to].iter().all(|c| *c == 0));
                }
            }
        }
        assert_eq!(b.payload(16, 9).len(), 1);
        assert!(b.payload(40, 9).is_empty());
    }

    #[test]
    fn release_frees_room_and_keeps_the_rest() {
        let mut b = filled();
        assert_eq!(b.write(Bytes::from_static(b"abc"), 17), 0);
        assert_eq!(b.write_synthetic(3, 17), 0);
        b.release(8);
        assert_eq!(b.len(), 9);
        assert_eq!(b.payload(8, 3).bytes().unwrap(), &b"rld"[..]);
        assert_eq!(b.write(Bytes::from_static(b"abc"), 11), 2);
        assert_eq!(b.write_synthetic(u64::MAX, 15), 4);
        b.release(100);
        assert_eq!((b.len(), b.real, b.runs.len()), (0, 0, 0));
    }

    #[test]
    fn a_skipped_start_moves_the_origin() {
        let mut b = filled();
        b.skip(8);
        assert_eq!(b.len(), 9);
        assert_eq!(b.payload(0, 9).bytes().unwrap(), &b"rld\0\0\0\0\0!"[..]);
        b.skip(4);
        assert_eq!(b.payload(0, 9).bytes().unwrap(), &b"\0\0\0\0!"[..]);
        assert_eq!(b.write(Bytes::from_static(b"?"), u64::MAX), 1);
        b.release(4);
        assert_eq!(b.payload(4, 2).bytes().unwrap(), &b"!?"[..]);
    }

    #[test]
    fn an_endless_transfer_is_one_run() {
        let mut b = SendBuffer::default();
        assert_eq!(b.write_synthetic(u64::MAX, u64::MAX), u64::MAX / 2);
        assert_eq!(b.write_synthetic(1, u64::MAX), 0);
        assert_eq!(b.payload(1 << 40, 1448).len(), 1448);
        assert_eq!(b.runs.len(), 1);
    }
}
