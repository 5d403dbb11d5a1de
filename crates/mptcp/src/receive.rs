//! The receiver of the connection: one buffer and one window for all subflows (RFC 8684 §3.3.1, §3.3.4).

use gargalo_tcp::Chunk;
use gargalo_tcp::stream::{Assembler, Ready};
use gargalo_wire::tcp::Payload;

/// Reassembles the data of the subflows.
#[derive(Debug)]
pub(crate) struct Receive {
    /// First byte not arrived in order; past the end once DATA_FIN is in order.
    next: u64,
    /// The position up to which the application has read.
    read: u64,
    /// Position of DATA_FIN.
    fin: Option<u64>,
    ready: Ready,
    waiting: Assembler,
    most_pieces: usize,
    buffer: u64,
    /// Right edge of the advertised window; it never moves back.
    edge: u64,
    /// Growth of the edge that is announced at once.
    step: u64,
    /// Bytes received twice or beyond the edge.
    pub(crate) duplicates: u64,
}

/// The result of received data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) readable: bool,
    /// A hole was filled, or there is data behind one.
    pub(crate) disorder: bool,
    /// All of it was received before.
    pub(crate) useless: bool,
}

impl Receive {
    pub(crate) fn new(buffer: u64, mss: u64) -> Self {
        Self {
            next: 0,
            read: 0,
            fin: None,
            ready: Ready::default(),
            waiting: Assembler::default(),
            most_pieces: usize::try_from(buffer / 256).map_or(usize::MAX, |n| n.max(1024)),
            buffer,
            edge: buffer,
            step: (buffer / 2).min(mss).max(1),
            duplicates: 0,
        }
    }

    /// The value of DATA_ACK.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }
    #[inline]
    pub(crate) fn unread(&self) -> u64 {
        self.next - self.read - u64::from(self.is_finished())
    }
    /// DATA_FIN is in order.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|f| f < self.next)
    }
    /// Bytes received ahead of a hole.
    pub(crate) fn out_of_order(&self) -> u64 {
        self.waiting.len()
    }

    /// Bytes received and not read, each counted once, with the ranges in `more`, which subflows hold and may have in
    /// common with each other and with what is stored here.
    pub(crate) fn buffered(&self, more: impl Iterator<Item = (i64, i64)>) -> u64 {
        let next = self.next as i64;
        let limit = self.fin.unwrap_or(u64::MAX).min(self.edge) as i64;
        let inside = |(from, to): (i64, i64)| (from.max(next), to.min(limit));
        let stored = self
            .waiting
            .ranges()
            .map(|(from, to)| (from as i64, to as i64));
        let mut ahead: Vec<_> = stored.chain(more.map(inside)).collect();
        ahead.sort_unstable();
        let (mut end, mut bytes) = (next, 0);
        for (from, to) in ahead {
            bytes += (to - from.max(end)).max(0) as u64;
            end = end.max(to);
        }
        self.unread() + bytes
    }

    /// Moves the edge as far as the buffer allows and returns the window from [`Self::next`] on.
    #[inline]
    pub(crate) fn window(&mut self) -> u64 {
        let limit = self.read + self.buffer;
        if limit >= self.edge + self.step {
            self.edge = limit;
        }
        self.edge.saturating_sub(self.next)
    }

    /// Number of in-order bytes after which an acknowledgement of their own is sent.
    #[inline]
    pub(crate) fn ack_threshold(&self) -> u64 {
        (self.buffer / 16).max(2 * self.step)
    }

    /// Whether reading made the window grow enough for an update: to twice the advertised one (as for plain TCP).
    #[inline]
    pub(crate) fn wants_update(&self) -> bool {
        let limit = self.read + self.buffer;
        let known = self.edge.saturating_sub(self.next);
        limit >= self.edge + self.step && limit.saturating_sub(self.next) >= 2 * known
    }

    /// Stores a chunk at position `at`. Data received before and data beyond the window is dropped.
    #[inline]
    pub(crate) fn take(&mut self, at: i64, chunk: Chunk) -> Arrived {
        let len = chunk.len();
        let end = at.saturating_add(len as i64);
        let limit = self.fin.unwrap_or(u64::MAX).min(self.edge) as i64;
        if at == self.next as i64 && end <= limit {
            let waits = !self.waiting.is_empty();
            if !waits || self.waiting.first_before(end as u64).is_none() {
                self.next += len;
                self.keep(chunk);
                if waits {
                    self.take_waiting();
                }
                return self.arrived(waits);
            }
        }
        self.take_other(at, chunk, limit)
    }

    /// Appends data received as plain TCP: it was acknowledged already, so it is stored whatever the window.
    pub(crate) fn take_plain(&mut self, chunk: Chunk) -> Arrived {
        self.edge = self.edge.max(self.next + chunk.len());
        self.take(self.next as i64, chunk)
    }

    fn take_other(&mut self, at: i64, chunk: Chunk, limit: i64) -> Arrived {
        let len = chunk.len();
        let payload = match chunk {
            Chunk::Real(bytes) => Payload::real(bytes),
            Chunk::Synthetic(n) => Payload::synthetic(n.min(u64::from(u32::MAX)) as u32),
        };
        let next = self.next as i64;
        if at > next && at.saturating_add(len as i64) <= limit {
            return self.store(at as u64, &payload);
        }
        let cut = (next.saturating_sub(at)).clamp(0, len as i64) as u32;
        let keep = limit.saturating_sub(at).clamp(0, len as i64) as u32;
        self.duplicates += u64::from(cut) + (len - u64::from(keep));
        if cut >= keep {
            return Arrived {
                useless: true,
                ..self.arrived(false)
            };
        }
        let payload = payload.slice(cut, keep);
        self.store((at + i64::from(cut)) as u64, &payload)
    }

    /// Stores data inside the window.
    fn store(&mut self, at: u64, payload: &Payload) -> Arrived {
        if at > self.next && self.waiting.is_full(self.most_pieces) {
            self.duplicates += u64::from(payload.len());
            return self.arrived(true);
        }
        let before = self.waiting.len();
        self.waiting.insert(at, payload);
        // What a piece repeats may lie in several ranges, with holes between them.
        self.duplicates += u64::from(payload.len()) - (self.waiting.len() - before);
        if at == self.next {
            self.take_waiting();
        }
        self.arrived(true)
    }

    /// Takes what has become contiguous.
    fn take_waiting(&mut self) {
        let ready = &mut self.ready;
        self.next = self.waiting.drain(self.next, |c| match c {
            Chunk::Synthetic(n) => ready.push_synthetic(n),
            Chunk::Real(bytes) => ready.push_real(bytes),
        });
    }

    fn arrived(&mut self, disorder: bool) -> Arrived {
        if self.fin == Some(self.next) {
            self.next += 1;
        }
        Arrived {
            readable: self.unread() > 0,
            disorder,
            useless: false,
        }
    }

    #[inline]
    fn keep(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Synthetic(n) => self.ready.push_synthetic(n),
            Chunk::Real(bytes) => self.ready.push_real(bytes),
        }
    }

    /// Stores a DATA_FIN at position `at`. The first one is used, unless data beyond it was received.
    pub(crate) fn finish(&mut self, at: i64) {
        let Ok(at) = u64::try_from(at) else { return };
        if self.fin.is_none() && at >= self.next && at >= self.waiting.end() && at <= self.edge {
            self.fin = Some(at);
            self.arrived(false);
        }
    }

    /// Ends the peer's stream here without DATA_FIN: a plain FIN after fallback.
    pub(crate) fn finish_here(&mut self) {
        self.finish(self.next as i64);
    }

    #[inline]
    pub(crate) fn read(&mut self, max: u64) -> Option<Chunk> {
        if max == 0 {
            return None;
        }
        let chunk = self.ready.pop(max)?;
        self.read += chunk.len();
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use rand::RngExt;
    use rand_pcg::Pcg64;

    fn text(r: &mut Receive) -> String {
        let mut out = String::new();
        while let Some(Chunk::Real(b)) = r.read(u64::MAX) {
            out += std::str::from_utf8(&b).unwrap();
        }
        out
    }
    fn real(s: &'static str) -> Chunk {
        Chunk::Real(Bytes::from_static(s.as_bytes()))
    }

    #[test]
    fn disorder_repeats_and_overlap() {
        let mut r = Receive::new(100, 10);
        let arrived = r.take(6, real("world"));
        assert!(arrived.disorder && !arrived.readable && !arrived.useless);
        assert_eq!(r.out_of_order(), 5);
        assert!(r.take(-1, real("?hel")).readable);
        assert!(r.take(2, real("llo wo")).readable);
        assert_eq!((r.next(), r.out_of_order()), (11, 0));
        assert!(r.take(0, real("hello world")).useless);
        assert_eq!(text(&mut r), "hello world");
        assert_eq!(r.duplicates, 1 + 1 + 2 + 11);
    }

    #[test]
    fn all_parts_that_a_piece_repeats_are_counted() {
        // Two ranges with holes around them, then a piece over both: from a hole on, or from the next byte.
        for (from, piece) in [(1, "123456789"), (0, "0123456789")] {
            let mut r = Receive::new(100, 10);
            r.take(2, real("23"));
            r.take(6, real("678"));
            let arrived = r.take(from, real(piece));
            assert!(!arrived.useless);
            assert_eq!(r.duplicates, 2 + 3, "{piece}");
            r.take(0, real("0"));
            assert_eq!(text(&mut r), "0123456789");
        }
    }

    #[test]
    fn what_is_held_in_several_places_counts_once() {
        let mut r = Receive::new(100, 10);
        r.take(0, real("hello"));
        r.take(8, real("89a"));
        // Two subflows hold the same and more; one has what was read, or lies beyond the window.
        let held = [
            (-3, 2),
            (6, 9),
            (6, 8),
            (20, 30),
            (25, 35),
            (95, 120),
            (4, 4),
        ];
        assert_eq!(r.buffered(std::iter::empty()), 5 + 3);
        assert_eq!(r.buffered(held.into_iter()), 5 + 5 + 15 + 5);
        assert_eq!(text(&mut r), "hello");
        assert_eq!(r.buffered(held.into_iter()), 5 + 15 + 5);
    }

    #[test]
    fn the_window_is_one_and_holds() {
        let mut r = Receive::new(10, 2);
        assert_eq!(r.window(), 10);
        r.take(4, real("456789ab"));
        assert_eq!(r.out_of_order(), 6, "two bytes exceed the edge");
        r.take(0, real("0123"));
        assert_eq!((r.next(), r.window()), (10, 0));
        r.take(10, real("a"));
        assert_eq!(r.next(), 10);
        assert!(!r.wants_update());
        assert_eq!(r.read(1).map(|c| c.len()), Some(1));
        assert_eq!(r.window(), 0, "a single byte is not worth it");
        r.read(5);
        assert!(r.wants_update());
        assert_eq!(r.window(), 6);
    }

    #[test]
    fn plain_tcp_has_acknowledged_what_it_brings() {
        let mut r = Receive::new(4, 2);
        r.take_plain(real("hello "));
        assert!(r.take_plain(real("world")).readable);
        assert_eq!((r.next(), r.window(), r.duplicates), (11, 0, 0));
        assert_eq!(text(&mut r), "hello world");
        assert_eq!(r.window(), 4);
    }

    #[test]
    fn a_fin_counts_once_it_is_in_order_and_only_where_it_can_be() {
        let mut r = Receive::new(100, 10);
        r.take(3, real("def"));
        r.finish(4);
        r.finish(-1);
        r.finish(1000);
        assert_eq!(r.fin, None);
        r.finish(6);
        r.finish(7);
        assert!(!r.is_finished());
        r.take(6, real("beyond"));
        r.take(0, real("abc"));
        assert!(r.is_finished());
        assert_eq!((r.next(), r.unread()), (7, 6));
        assert_eq!(text(&mut r), "abcdef");
    }

    /// A stream of which every byte is looked at, as long as `STREAM`.
    #[derive(Debug)]
    struct Model {
        has: Vec<bool>,
        next: u64,
        edge: u64,
        fin: Option<u64>,
        duplicates: u64,
    }

    const STREAM: u64 = 200;

    impl Model {
        fn limit(&self) -> u64 {
            self.fin.unwrap_or(u64::MAX).min(self.edge)
        }
        fn ahead(&self) -> u64 {
            (self.next..STREAM)
                .filter(|i| self.has[*i as usize])
                .count() as u64
        }
        /// Returns whether the data was in disorder, and whether none of it was missing and allowed.
        fn take(&mut self, at: i64, len: u64) -> (bool, bool) {
            let (expected, waits) = (self.next, self.ahead() > 0);
            let limit = self.limit();
            let inside = |i: i64| i >= expected as i64 && i < limit as i64;
            let range = at..at + len as i64;
            let useless = !range.clone().any(inside);
            let whole = at == expected as i64 && range.clone().all(inside);
            for i in range {
                let is_new = inside(i) && !std::mem::replace(&mut self.has[i as usize], true);
                self.duplicates += u64::from(!is_new);
            }
            while self.fin != Some(self.next) && self.has[self.next as usize] {
                self.next += 1;
            }
            (!useless && (waits || !whole), useless)
        }
    }

    #[test]
    fn every_byte_inside_the_window_is_kept_once_and_all_others_are_counted() {
        let content: Vec<u8> = (0..STREAM as u8 + 40).collect();
        let content = Bytes::from(content);
        for seed in 0..200 {
            let mut rng = Pcg64::new(seed, 1);
            let buffer = rng.random_range(8..60);
            let mut r = Receive::new(buffer, 4);
            let mut m = Model {
                has: vec![false; STREAM as usize],
                next: 0,
                edge: buffer,
                fin: None,
                duplicates: 0,
            };
            let mut read = 0;
            for _ in 0..150 {
                if rng.random_bool(0.4)
                    && let Some(Chunk::Real(bytes)) = r.read(rng.random_range(0..20))
                {
                    let to = read + bytes.len();
                    assert_eq!(bytes, content[read..to]);
                    read = to;
                    m.edge = r.window() + r.next();
                }
                if rng.random_bool(0.03) {
                    // Only where no data has been received, and where it could be.
                    let at = rng.random_range(0..STREAM);
                    let after = (at..STREAM).all(|i| !m.has[i as usize]);
                    if m.fin.is_none() && at >= m.next && after && at <= m.edge {
                        m.fin = Some(at);
                    }
                    r.finish(at as i64);
                }
                let finished = m.fin == Some(m.next);
                assert_eq!(r.is_finished(), finished);
                if finished || m.edge > STREAM - 20 {
                    break;
                }
                let from = if rng.random_bool(0.4) {
                    m.next as i64
                } else {
                    (m.next as i64 + rng.random_range(-12..30)).max(0)
                };
                let len = rng.random_range(1..12);
                let part = content.slice(from as usize..(from + len) as usize);
                let (disorder, useless) = m.take(from, len as u64);
                let arrived = r.take(from, Chunk::Real(part));
                let finished = m.fin == Some(m.next);
                let expected = Arrived {
                    readable: m.next > read as u64,
                    disorder,
                    useless,
                };
                assert_eq!(arrived, expected, "{from} {len} {m:?}");
                assert_eq!(r.next(), m.next + u64::from(finished));
                assert_eq!(r.unread(), m.next - read as u64);
                assert_eq!(r.out_of_order(), m.ahead());
                assert_eq!(r.buffered(std::iter::empty()), r.unread() + m.ahead());
                assert_eq!(r.duplicates, m.duplicates);
            }
        }
    }

    #[test]
    fn an_edge_that_is_announced_is_a_segment_away_at_least() {
        // (buffer, segment, smallest growth): half of the buffer at most, and a byte at least.
        for (buffer, mss, step) in [(1000, 100, 100), (100, 80, 50), (1, 9, 1)] {
            let mut r = Receive::new(buffer, mss);
            assert_eq!(r.ack_threshold(), (buffer / 16).max(2 * step));
            r.take(0, Chunk::Synthetic(buffer));
            assert_eq!(r.window(), 0);
            r.read(step - 1);
            assert_eq!((r.wants_update(), r.window()), (false, 0));
            r.read(1);
            assert_eq!((r.wants_update(), r.window()), (true, step));
            assert!(!r.wants_update(), "it is known now");
        }
        // An update is worth its packet if the window becomes twice the known one.
        let mut r = Receive::new(1000, 100);
        r.take(0, Chunk::Synthetic(700));
        r.read(299);
        assert_eq!(r.read(0), None);
        assert!(!r.wants_update());
        r.read(1);
        assert!(r.wants_update(), "600 instead of 300");
        assert_eq!(r.window(), 600);
        assert_eq!(Receive::new(16_000, 100).ack_threshold(), 1000);
    }

    #[test]
    fn the_pieces_behind_a_hole_are_bounded_whatever_the_window() {
        // A piece per 256 bytes of the buffer, and 1024 in a small one.
        for (buffer, most) in [(100_000, 1024), (1 << 20, 4096)] {
            let mut r = Receive::new(buffer, 1000);
            for i in 1..=most + 10 {
                assert!(r.take(2 * i, real("x")).disorder);
            }
            assert_eq!((r.out_of_order(), r.duplicates), (most as u64, 10));
            // What fills the hole is taken.
            assert!(r.take(0, real("abc")).readable);
            assert_eq!((r.next(), r.duplicates), (3, 11));
        }
    }

    #[test]
    fn plain_tcp_ends_its_stream_where_it_is() {
        let mut r = Receive::new(100, 10);
        r.take_plain(real("hello"));
        assert!(!r.is_finished());
        r.finish_here();
        assert!(r.is_finished());
        assert_eq!((r.next(), r.unread()), (6, 5));
        assert_eq!(text(&mut r), "hello");
    }
}
