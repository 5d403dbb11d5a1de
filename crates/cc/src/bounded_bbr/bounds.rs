use gargalo_units::{Bytes, Rate};

use crate::window::MAX_WINDOW;

/// The delivery process of the last round trip, measured between losses (draft §5.5.10.3).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latest {
    /// BBR.bw_latest: the greatest delivery rate in the round.
    pub(crate) bw: Rate,
    /// BBR.inflight_latest: the greatest volume delivered in a sampling interval of the round.
    pub(crate) inflight: Bytes,
    /// BBR.loss_round_delivered: the round ends when a segment sent at this total of delivered bytes, or later, is
    /// acknowledged.
    round_end: Bytes,
    /// BBR.loss_round_start: whether the latest acknowledgement ended a round and began the next.
    round_start: bool,
    /// BBR.is_loss_in_round: a segment was marked lost in the round.
    pub(crate) loss: bool,
}

impl Latest {
    /// Whether the latest acknowledgement ended such a round trip.
    #[inline]
    pub(crate) fn is_round_start(&self) -> bool {
        self.round_start
    }

    /// An acknowledgement without a sample.
    #[inline]
    pub(crate) fn no_sample(&mut self) {
        self.round_start = false;
    }

    /// UpdateLatestDeliverySignals: takes a sample with this rate and delivered volume; `prior` is the total of
    /// delivered bytes when its segment was sent, `delivered` the total now.
    #[inline]
    pub(crate) fn update(&mut self, rate: Rate, volume: Bytes, prior: Bytes, delivered: Bytes) {
        self.bw = self.bw.max(rate);
        self.inflight = self.inflight.max(volume);
        self.round_start = prior >= self.round_end;
        if self.round_start {
            self.round_end = delivered;
        }
    }

    /// AdvanceLatestDeliverySignals: if a round has begun, its maxima start with this sample.
    #[inline]
    pub(crate) fn advance(&mut self, rate: Rate, volume: Bytes) {
        if self.round_start {
            self.bw = rate;
            self.inflight = volume;
        }
    }

    /// ResetCongestionSignals: clears the loss mark and the maxima of the round.
    pub(crate) fn reset(&mut self) {
        self.loss = false;
        self.bw = Rate::ZERO;
        self.inflight = Bytes::ZERO;
    }

    /// A loss: the round of losses begins with the first one. Returns whether this is the first.
    pub(crate) fn note_loss(&mut self, delivered: Bytes) -> bool {
        let first = !self.loss;
        if first {
            self.round_end = delivered;
        }
        self.loss = true;
        first
    }
}

/// Upper bounds from losses since the last probe for bandwidth; [`Rate::MAX`] and [`Bytes::MAX`] if
/// there were none (BBR.bw_shortterm, BBR.inflight_shortterm).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortTerm {
    pub(crate) bw: Rate,
    pub(crate) inflight: Bytes,
}

impl ShortTerm {
    pub(crate) const NONE: Self = Self {
        bw: Rate::MAX,
        inflight: Bytes::MAX,
    };

    /// A round trip with loss (InitLowerBounds, LossLowerBounds): not below what was delivered, nor
    /// below `beta` times what it was.
    pub(crate) fn on_loss(&mut self, latest: &Latest, max_bw: Rate, cwnd: Bytes, beta: f64) {
        if self.bw == Rate::MAX {
            self.bw = max_bw;
        }
        self.bw = latest.bw.max(self.bw.mul_f64(beta));
        self.inflight = latest.inflight.max(self.inflight_or(cwnd).mul_f64(beta));
    }

    /// The bound on data in flight, set to cwnd if there was none.
    pub(crate) fn inflight_or(&self, cwnd: Bytes) -> Bytes {
        if self.inflight == Bytes::MAX {
            cwnd
        } else {
            self.inflight
        }
    }

    /// The looser of two.
    pub(crate) fn looser(self, other: Self) -> Self {
        Self {
            bw: self.bw.max(other.bw),
            inflight: self.inflight.max(other.inflight),
        }
    }
}

/// The data that could be in flight without too much loss at the latest probe (BBR.inflight_longterm), and its
/// growth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongTerm {
    /// [`Bytes::MAX`] until loss has set it.
    pub(crate) inflight: Bytes,
    /// BBR.bw_probe_up_acked: bytes acknowledged and not yet counted for growth.
    acked: Bytes,
    /// BBR.probe_up_acked_per_inc: bytes acknowledged per segment of growth; [`Bytes::MAX`]: no growth.
    acked_per_segment: Bytes,
    /// BBR.bw_probe_up_rounds: rounds of growth in this probe, each with twice the growth of the one before; at most
    /// 30.
    rounds: u32,
}

impl LongTerm {
    pub(crate) const NONE: Self = Self {
        inflight: Bytes::MAX,
        acked: Bytes::ZERO,
        acked_per_segment: Bytes::MAX,
        rounds: 0,
    };

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.inflight != Bytes::MAX
    }

    /// PROBE_BW_REFILL begins: the next probe grows the bound by one segment in its first round.
    pub(crate) fn prepare(&mut self) {
        self.rounds = 0;
        self.acked = Bytes::ZERO;
    }

    /// PROBE_BW_UP has ended.
    pub(crate) fn stop(&mut self) {
        self.acked_per_segment = Bytes::MAX;
    }

    /// Twice as many segments a round from now on (RaiseInflightLongtermSlope).
    pub(crate) fn raise_slope(&mut self, cwnd: Bytes, mss: Bytes) {
        self.acked_per_segment = (cwnd / (1 << self.rounds)).max(mss);
        self.rounds = (self.rounds + 1).min(30);
    }

    /// Raises the bound to `inflight`.
    #[inline]
    pub(crate) fn raise_to(&mut self, inflight: Bytes) {
        if self.is_set() {
            self.inflight = self.inflight.max(inflight.min(MAX_WINDOW));
        }
    }

    /// `acked` bytes came back while the bound was used to the full.
    pub(crate) fn grow(&mut self, acked: Bytes, mss: Bytes) {
        self.acked += acked;
        if self.is_set() && self.acked >= self.acked_per_segment {
            let segments = self.acked.get() / self.acked_per_segment.get().max(1);
            self.acked -= self.acked_per_segment * segments;
            self.raise_to(self.inflight + mss * segments);
        }
    }

    /// The bound less some room for others (InflightWithHeadroom).
    pub(crate) fn with_headroom(&self, headroom: f64, mss: Bytes, floor: Bytes) -> Bytes {
        if !self.is_set() {
            return Bytes::MAX;
        }
        let room = self.inflight.mul_f64(headroom).max(mss);
        self.inflight.saturating_sub(room).max(floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1000);

    #[test]
    fn a_round_with_loss_cuts_to_what_was_delivered_but_at_most_by_beta() {
        let latest = Latest {
            bw: Rate::from_mbps(9),
            inflight: MSS * 50,
            ..Latest::default()
        };
        let mut s = ShortTerm::NONE;
        s.on_loss(&latest, Rate::from_mbps(10), MSS * 100, 0.7);
        assert_eq!((s.bw, s.inflight), (Rate::from_mbps(9), MSS * 70));
        s.on_loss(&latest, Rate::from_mbps(10), MSS * 100, 0.7);
        assert_eq!((s.bw, s.inflight), (Rate::from_mbps(9), MSS * 50));
    }

    #[test]
    fn the_loss_round_starts_with_the_first_loss() {
        let mut l = Latest::default();
        let b = Bytes::new;
        l.update(Rate::from_mbps(1), b(10), b(0), b(10));
        assert!(l.is_round_start());
        assert!(l.note_loss(b(15)) && !l.note_loss(b(20)));
        l.update(Rate::from_mbps(2), b(8), b(14), b(24));
        assert!(!l.is_round_start());
        l.update(Rate::from_mbps(1), b(8), b(15), b(25));
        assert!(l.is_round_start());
        assert_eq!((l.bw, l.inflight), (Rate::from_mbps(2), b(10)));
        l.advance(Rate::from_mbps(1), b(8));
        assert_eq!((l.bw, l.inflight), (Rate::from_mbps(1), b(8)));
    }

    #[test]
    fn headroom_is_fifteen_percent_and_at_least_a_segment() {
        let long = |n| LongTerm {
            inflight: MSS * n,
            ..LongTerm::NONE
        };
        let room = |l: LongTerm| l.with_headroom(0.15, MSS, MSS * 4);
        assert_eq!(room(long(100)), MSS * 85);
        assert_eq!(room(long(6)), MSS * 5);
        assert_eq!(room(long(4)), MSS * 4);
        assert_eq!(room(LongTerm::NONE), Bytes::MAX);
    }

    #[test]
    fn the_bound_grows_by_one_two_four_segments_a_round() {
        let cwnd = MSS * 64;
        let mut l = LongTerm {
            inflight: cwnd,
            ..LongTerm::NONE
        };
        l.prepare();
        let mut grown = Vec::new();
        for _ in 0..8 {
            l.raise_slope(cwnd, MSS);
            let before = l.inflight;
            for _ in 0..64 {
                l.grow(MSS, MSS);
            }
            grown.push((l.inflight - before).get() / 1000);
        }
        // Never more than a segment for each one acknowledged.
        assert_eq!(grown, [1, 2, 4, 8, 16, 32, 64, 64]);
        l.stop();
        let before = l.inflight;
        l.grow(MSS * 1000, MSS);
        assert_eq!(l.inflight, before);
    }
}
