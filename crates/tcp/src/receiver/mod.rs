//! The receiving half: reassembly, acknowledgement policy, SACK blocks, window.

mod ack;
mod assembler;
mod autotune;
mod ready;
mod window;

use gargalo_units::{Duration, Instant};
use gargalo_wire::tcp::Payload;

use crate::event::Chunk;
use ack::AckPolicy;
use autotune::Autotune;
use window::Window;

pub use assembler::{Assembler, Inserted};
pub use ready::Ready;
pub(crate) use window::{initial_window, shift_for};

/// The receiver of one connection.
///
/// Offsets count bytes of the peer's stream: 0 is the first one after its SYN; the FIN occupies one
/// offset after the last byte.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// RCV.NXT as an offset.
    next: u64,
    /// Offset up to which the application has read.
    read: u64,
    /// Offset of the peer's FIN; `u64::MAX`: not seen.
    fin: u64,
    ready: Ready,
    assembler: Assembler,
    /// Maximum number of pieces of content stored ahead of a hole. It bounds the overhead that a peer can cause
    /// with very short segments.
    most_pieces: usize,
    window: Window,
    ack: AckPolicy,
    autotune: Option<Box<Autotune>>,
    /// Duplicate data to report in the next acknowledgement (RFC 2883).
    duplicate: Option<(u64, u64)>,
    use_sack: bool,
    use_dsack: bool,
}

/// The configuration of a receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiverConfig {
    /// Receive buffer in bytes, the largest if it grows.
    pub(crate) buffer: u64,
    /// Receive buffer at the start, and what needs no growth in the first round trip, if it grows.
    pub(crate) autotuning: Option<(u64, u64)>,
    /// MSS in bytes.
    pub(crate) mss: u64,
    /// Maximum number of segments per acknowledgement.
    pub(crate) ack_every: u32,
    /// Or after this time.
    pub(crate) ack_timeout: Duration,
    /// Number of segments at the start that are acknowledged at once.
    pub(crate) quick_acks: u32,
}

/// A segment's place in the peer's stream.
#[derive(Debug)]
pub(crate) struct Piece {
    /// Offset of the first byte; negative before the stream's first.
    pub(crate) offset: i64,
    pub(crate) payload: Payload,
    pub(crate) fin: bool,
    /// It ends a write of the peer (PSH).
    pub(crate) push: bool,
}

/// The result of processing a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    /// New data is readable.
    pub(crate) readable: bool,
    /// The peer's FIN is now in order.
    pub(crate) fin: bool,
}

impl Receiver {
    pub(crate) fn new(config: &ReceiverConfig) -> Self {
        let autotune = config
            .autotuning
            .map(|(initial, first)| Autotune::new(initial, config.buffer, config.mss, first));
        let mut window = Window::new(config.buffer, config.mss);
        if let Some(autotune) = &autotune {
            window.resize(autotune.bounds());
        }
        Self {
            next: 0,
            read: 0,
            fin: u64::MAX,
            ready: Ready::default(),
            assembler: Assembler::default(),
            most_pieces: usize::try_from(config.buffer / 256).map_or(usize::MAX, |n| n.max(1024)),
            window,
            ack: AckPolicy::new(config.ack_every, config.ack_timeout, config.quick_acks),
            autotune: autotune.map(Box::new),
            duplicate: None,
            use_sack: false,
            use_dsack: false,
        }
    }

    /// Applies the negotiated options; `mss` is the payload of a full segment.
    pub(crate) fn negotiate(&mut self, mss: u16, shift: u8, sack: bool, dsack: bool) {
        self.ack.set_mss(u32::from(mss));
        self.window.set_mss(u64::from(mss));
        self.window.scale(shift);
        self.use_sack = sack;
        self.use_dsack = sack && dsack;
    }

    /// The window is shared with other receivers: `bytes` beyond the data received in order.
    pub(crate) fn share_window(&mut self, bytes: Option<u64>) {
        self.window.share(bytes, self.next);
    }

    /// RCV.NXT as an offset.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Bytes ready to be read.
    #[inline]
    pub(crate) fn unread(&self) -> u64 {
        // The FIN, once taken, is the last offset and not a byte.
        self.next - self.read - u64::from(self.is_finished())
    }

    /// Bytes received and not read, in order or behind a hole.
    pub(crate) fn buffered(&self) -> u64 {
        self.unread() + self.assembler.len()
    }

    /// The ranges received and not read, as offsets: sorted and disjoint.
    pub(crate) fn buffered_ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let unread = (self.read, self.read + self.unread());
        std::iter::once(unread).chain(self.assembler.ranges())
    }

    /// The most bytes read in a round trip; zero without automatic tuning.
    pub(crate) fn space(&self) -> u64 {
        self.autotune.as_ref().map_or(0, |a| a.space())
    }

    /// SACK was agreed.
    pub(crate) fn uses_sack(&self) -> bool {
        self.use_sack
    }

    /// The FIN has arrived in order.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.fin < self.next
    }

    /// Whether a segment of `len` sequence numbers at `offset` is acceptable (RFC 9293 §3.10.7.4,
    /// table 6).
    #[inline]
    pub(crate) fn accepts(&self, offset: i64, len: u32) -> bool {
        // Offsets stay far below i64::MAX: 63 bits of bytes take longer than any run.
        let (next, edge) = (self.next as i64, self.window.edge().max(self.next) as i64);
        if len == 0 {
            return offset == next || (offset > next && offset < edge);
        }
        offset < edge && offset + i64::from(len) > next
    }

    /// Processes the data of an acceptable segment. In the common case, in order and without a hole, it costs a few
    /// additions.
    #[inline(always)]
    pub(crate) fn on_segment(&mut self, now: Instant, piece: Piece) -> Received {
        let len = piece.payload.len();
        let in_order = piece.offset == self.next as i64
            && self.assembler.is_empty()
            && piece.offset + i64::from(len) <= self.window.edge() as i64
            && self.fin == u64::MAX;
        if in_order && !piece.fin {
            self.next += u64::from(len);
            self.tune(now, u64::from(len));
            self.ack.on_in_order(now, len, piece.push);
            self.keep(piece.payload);
            return Received {
                readable: true,
                fin: false,
            };
        }
        self.on_other(now, piece)
    }

    /// A data segment echoes one of ours, sent `rtt` ago.
    #[inline]
    pub(crate) fn on_echo(&mut self, echo: u32, rtt: Duration) {
        if let Some(autotune) = &mut self.autotune {
            autotune.on_echo(echo, rtt, self.read == self.next);
        }
    }

    /// Whether [`Self::on_echo`] is of use.
    #[inline]
    pub(crate) fn is_autotuned(&self) -> bool {
        self.autotune.is_some()
    }

    /// `len` bytes arrived in order: the window may grow.
    #[inline]
    fn tune(&mut self, now: Instant, len: u64) {
        if self.autotune.is_some() {
            self.tune_window(now, len);
        }
    }

    #[inline(never)]
    fn tune_window(&mut self, now: Instant, len: u64) {
        let Some(autotune) = &mut self.autotune else {
            return;
        };
        if self.window.is_shared() {
            return;
        }
        if autotune.on_data(now, len, self.read, self.next, self.window.edge()) {
            self.window.resize(autotune.bounds());
            self.ack.quicken();
        }
    }

    /// Removes data outside the window and data received before; returns the latter (RFC 9293 §3.10.7.4).
    fn trim(&self, piece: &mut Piece) -> Option<(u64, u64)> {
        let (next, len) = (self.next as i64, piece.payload.len());
        let end = piece.offset + i64::from(len);
        let mut duplicate = None;
        if piece.offset < next {
            let (from, to) = (piece.offset.max(0), end.min(next));
            duplicate = (from < to).then_some((from as u64, to as u64));
            let cut = (next - piece.offset).min(i64::from(len)) as u32;
            piece.payload = piece.payload.slice(cut, len);
            // A FIN behind removed bytes keeps its offset.
            piece.offset += i64::from(cut);
            if piece.offset < next {
                piece.fin = false;
            }
        }
        // No data follows a FIN; data that does is removed like data outside the window.
        let edge = self.window.edge().max(self.next).min(self.fin) as i64;
        let end = piece.offset + i64::from(piece.payload.len());
        if end > edge {
            let keep = (edge - piece.offset).max(0) as u32;
            piece.payload = piece.payload.slice(0, keep);
            piece.fin = false;
        }
        duplicate
    }

    #[inline(never)]
    fn on_other(&mut self, now: Instant, mut piece: Piece) -> Received {
        let below = self.trim(&mut piece);
        let (offset, len) = (piece.offset as u64, u64::from(piece.payload.len()));
        let push = piece.push;
        let mut received = Received::default();
        let mut duplicate = below;
        // A FIN before data that has already arrived is invalid.
        if piece.fin && self.fin == u64::MAX && self.assembler.end() <= offset + len {
            self.fin = offset + len;
        }
        let had_hole = !self.assembler.is_empty();
        if len > 0 && offset == self.next {
            self.next += len;
            self.tune(now, len);
            if had_hole && duplicate.is_none() {
                duplicate = self.assembler.first_before(self.next);
            }
            self.keep(piece.payload);
            if had_hole {
                let ready = &mut self.ready;
                self.next = self.assembler.drain(self.next, |c| match c {
                    Chunk::Synthetic(n) => ready.push_synthetic(n),
                    Chunk::Real(bytes) => ready.push_real(bytes),
                });
            }
            received.readable = true;
        } else if len > 0 && !self.assembler.is_full(self.most_pieces) {
            let inserted = self.assembler.insert(offset, &piece.payload);
            duplicate = duplicate.or(inserted.duplicate);
        }
        if self.next == self.fin {
            self.next += 1;
            received.fin = true;
        }
        // RFC 5681 §4.2: at once for data out of order, for a partly filled hole, and for a FIN or a duplicate, so
        // that the peer can continue.
        if had_hole || !received.readable || piece.fin || received.fin || duplicate.is_some() {
            self.ack.demand();
            if self.use_dsack && duplicate.is_some() {
                self.duplicate = duplicate;
            }
        } else {
            self.ack.on_in_order(now, len as u32, push);
        }
        received
    }

    #[inline]
    fn keep(&mut self, payload: Payload) {
        match payload.bytes() {
            None => self.ready.push_synthetic(u64::from(payload.len())),
            Some(bytes) => self.ready.push_real(bytes.clone()),
        }
    }

    /// Returns at most `max` bytes in order.
    #[inline]
    pub(crate) fn read(&mut self, max: u64) -> Option<Chunk> {
        if max == 0 {
            return None;
        }
        let chunk = self.ready.pop(max)?;
        self.read += chunk.len();
        if !self.is_finished() && self.window.wants_update(self.read, self.next) {
            self.ack.demand();
        }
        Some(chunk)
    }

    /// The window field for a segment that leaves now; notes that the acknowledgement leaves.
    #[inline]
    pub(crate) fn acknowledge(&mut self) -> u16 {
        self.ack.on_sent();
        self.window.advertise(self.read, self.next)
    }

    /// The window field of a segment with SYN.
    pub(crate) fn initial_window(&self) -> u16 {
        self.window.initial()
    }

    /// Blocks for the SACK option, at most `max`: a duplicate first (RFC 2883 §4), then the range
    /// that changed last, then others (RFC 2018 §4).
    #[inline]
    pub(crate) fn sack_blocks(&mut self, max: usize, mut report: impl FnMut(u64, u64)) {
        let mut room = max;
        if let Some((s, e)) = self.duplicate.take()
            && room > 0
        {
            report(s, e);
            room -= 1;
        }
        if self.use_sack && !self.assembler.is_empty() {
            self.assembler.blocks(room, report);
        }
    }

    /// Whether the next acknowledgement must be sent without data, because data arrived out of order or twice.
    #[inline]
    pub(crate) fn stands_alone(&self) -> bool {
        self.duplicate.is_some() || !self.assembler.is_empty()
    }

    /// Whether the next acknowledgement has blocks to carry.
    #[inline]
    pub(crate) fn has_blocks(&self) -> bool {
        self.duplicate.is_some() || (self.use_sack && !self.assembler.is_empty())
    }

    /// When received data must be acknowledged.
    #[inline]
    pub(crate) fn ack(&self) -> &AckPolicy {
        &self.ack
    }

    /// Demands an acknowledgement now.
    #[inline]
    pub(crate) fn demand_ack(&mut self) {
        self.ack.demand();
    }

    /// The timer of the delayed acknowledgement may have fired.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        self.ack.on_timeout(now);
    }
}
