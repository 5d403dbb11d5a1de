//! What the application says about the end of its data: whether more follows, and where segments must end.

use std::collections::VecDeque;

use crate::config::{Config, Nagle};

/// No record ends.
pub(super) const NO_CUT: u64 = u64::MAX;

/// When the last piece of the data, which does not fill a segment, is held back, and where segments end.
///
/// The names in brackets are those of socket options and flags of Linux.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) nagle: Nagle,
    /// Until it is switched off (`TCP_CORK`).
    cork: bool,
    /// Until the next write, an acknowledgement or the persist timer: more follows the last write (`MSG_MORE`).
    more: bool,
    /// The data ends with such a write: no PSH.
    unpushed: bool,
    /// Until the next write: what is there leaves whatever else is set (`TCP_NODELAY` on a connection in use).
    released: bool,
    /// Ends of records that were not sent yet, but the first: no segment has data of two of them (`MSG_EOR`).
    cuts: VecDeque<u64>,
    /// The first of them; [`NO_CUT`]: none.
    cut: u64,
    /// End of the latest new segment that was not full (SND.SML of Minshall's rule).
    pub(super) small_end: u64,
}

impl Hold {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            nagle: config.nagle,
            cork: config.cork,
            more: false,
            unpushed: false,
            released: false,
            cuts: VecDeque::new(),
            cut: NO_CUT,
            small_end: 0,
        }
    }

    /// Data was written.
    #[inline]
    pub(crate) fn on_write(&mut self, more: bool) {
        self.more = more;
        self.unpushed = more;
        self.released = false;
    }

    /// A record ends at `offset`, the end of the data.
    pub(crate) fn end_record(&mut self, offset: u64) {
        if self.cut == NO_CUT {
            self.cut = offset;
        } else if self.cuts.back().map_or(self.cut, |last| *last) < offset {
            self.cuts.push_back(offset);
        }
    }

    /// The first `n` bytes are not counted any more.
    pub(crate) fn skip(&mut self, n: u64) {
        let ends: Vec<u64> = std::iter::once(self.cut)
            .chain(self.cuts.drain(..))
            .filter(|end| *end != NO_CUT && *end > n)
            .collect();
        self.cut = NO_CUT;
        for end in ends {
            self.end_record(end - n);
        }
    }

    pub(crate) fn set_cork(&mut self, on: bool) {
        self.cork = on;
        if !on && self.nagle == Nagle::Off {
            self.released = true;
        }
    }

    pub(crate) fn set_nagle(&mut self, nagle: Nagle) {
        self.nagle = nagle;
        if nagle == Nagle::Off {
            self.release();
        }
    }

    pub(crate) fn is_corked(&self) -> bool {
        self.cork
    }

    fn release(&mut self) {
        self.more = false;
        self.released = true;
    }

    /// An acknowledgement has arrived: it sends what `MSG_MORE` has held back.
    #[inline]
    pub(crate) fn on_ack(&mut self) {
        self.more = false;
    }

    /// Whether a piece that does not fill a segment is held back; `waits` by Nagle's algorithm.
    #[inline]
    pub(super) fn holds(&self, waits: bool) -> bool {
        self.more || (!self.released && (self.cork || waits))
    }

    /// Whether such a piece would be held back with nothing in flight: only a timer sends it.
    #[inline]
    pub(super) fn is_held_alone(&self) -> bool {
        self.holds(false)
    }

    /// Whether the end of the data is to be delivered at once (PSH).
    #[inline]
    pub(super) fn pushes(&self) -> bool {
        !self.unpushed
    }

    /// Where the next segment must end.
    #[inline]
    pub(super) fn cut(&self) -> u64 {
        self.cut
    }

    /// Everything before `nxt` was sent.
    #[inline]
    pub(super) fn pass(&mut self, nxt: u64) {
        while self.cut <= nxt {
            self.cut = self.cuts.pop_front().unwrap_or(NO_CUT);
        }
    }
}
