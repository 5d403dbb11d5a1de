//! Proportional rate reduction (RFC 9937, which replaces RFC 6937): in recovery, send in proportion to the delivered
//! data until the pipe has shrunk to ssthresh. Below that the slow start reduction bound holds for acknowledgements
//! that advance SND.UNA and show no further loss, the conservative bound for all others; the choice between the two
//! is no option any more.
//!
//! Amounts are bytes, or whole segments as in Linux, which rounds them up and so sends up to a segment earlier.

/// One recovery; all amounts in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prr {
    ssthresh: u64,
    /// RecoverFS: in flight before the acknowledgement that began recovery, without what had been selectively
    /// acknowledged (Linux: the window).
    flight: u64,
    /// What amounts are rounded to: a byte, or a segment.
    unit: u64,
    delivered: u64,
    out: u64,
}

impl Prr {
    pub(crate) fn new(ssthresh: u64, flight: u64) -> Self {
        Self {
            ssthresh,
            flight: flight.max(1),
            unit: 1,
            delivered: 0,
            out: 0,
        }
    }

    /// In whole segments of `mss` bytes; `window` is the congestion window before the reduction.
    pub(crate) fn in_segments(ssthresh: u64, window: u64, mss: u64) -> Self {
        let whole = |bytes: u64| (bytes / mss).max(1) * mss;
        Self {
            unit: mss,
            ..Self::new(whole(ssthresh), whole(window))
        }
    }

    #[inline]
    pub(crate) fn on_send(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// The window after an acknowledgement that delivered `delivered` bytes and left `pipe` in
    /// flight; `safe`: it advanced the left edge and showed no further loss (the SSRB condition).
    #[inline]
    pub(crate) fn on_ack(&mut self, delivered: u64, pipe: u64, mss: u64, safe: bool) -> u64 {
        self.delivered += delivered;
        let mut quota = if pipe > self.ssthresh {
            let owed = (u128::from(self.delivered) * u128::from(self.ssthresh))
                .div_ceil(u128::from(self.flight) * u128::from(self.unit));
            (owed as u64 * self.unit).saturating_sub(self.out)
        } else {
            // Packet conservation, plus one segment per acknowledgement that shows no further loss.
            let conserve = self.delivered.saturating_sub(self.out).max(delivered);
            let limit = conserve + if safe { mss } else { 0 };
            (self.ssthresh - pipe).min(limit)
        };
        if self.out == 0 {
            quota = quota.max(mss); // forces the fast retransmit
        }
        pipe + quota
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    #[test]
    fn halves_the_rate_over_one_round_trip() {
        // RFC 6937 §4 figure 1: 20 segments in flight, one lost, ssthresh 10: of 19
        // acknowledgements about every second lets a segment out.
        let mut prr = Prr::new(10 * MSS, 20 * MSS);
        let mut pipe = 19 * MSS;
        let mut sent = 0;
        for _ in 0..19 {
            pipe -= MSS;
            let cwnd = prr.on_ack(MSS, pipe, MSS, false);
            while pipe + MSS <= cwnd {
                pipe += MSS;
                prr.on_send(MSS);
                sent += 1;
            }
        }
        assert_eq!(sent, 10);
        assert_eq!(pipe, 10 * MSS);
    }

    #[test]
    fn conserves_packets_while_losses_are_found_or_nothing_advances() {
        // The pipe is below ssthresh: one segment out for one delivered, two if recovery makes progress.
        let mut prr = Prr::new(10 * MSS, 20 * MSS);
        prr.on_send(MSS);
        prr.delivered = MSS;
        assert_eq!(prr.on_ack(MSS, 4 * MSS, MSS, false), 5 * MSS);
        prr.on_send(MSS);
        assert_eq!(prr.on_ack(MSS, 4 * MSS, MSS, true), 6 * MSS);
    }

    #[test]
    fn in_segments_half_of_one_is_one() {
        // Half of a window of eleven is five segments; of every eleven delivered five leave, and each half counts.
        let mut prr = Prr::in_segments(5500, 11_500, MSS);
        assert_eq!((prr.ssthresh, prr.flight), (5 * MSS, 11 * MSS));
        let mut pipe = 11 * MSS;
        let mut sent = Vec::new();
        for k in 1..=6 {
            pipe -= MSS;
            if prr.on_ack(MSS, pipe, MSS, false) >= pipe + MSS {
                pipe += MSS;
                prr.on_send(MSS);
                sent.push(k);
            }
        }
        assert_eq!(sent, [1, 3, 5]);
    }

    #[test]
    fn forces_the_fast_retransmit() {
        // Delivered are 1000 of 20000 bytes: 500 bytes may leave, less than a segment.
        let mut prr = Prr::new(10 * MSS, 20 * MSS);
        assert_eq!(prr.on_ack(MSS, 18 * MSS, MSS, false), 19 * MSS);
        prr.on_send(MSS);
        assert_eq!(prr.on_ack(MSS, 18 * MSS, MSS, false), 18 * MSS);
    }

    #[test]
    fn grows_back_to_ssthresh_after_heavy_loss() {
        // 20 in flight, 16 lost: the pipe is below ssthresh, and every acknowledgement may add one.
        let mut prr = Prr::new(10 * MSS, 20 * MSS);
        let mut pipe = 4 * MSS;
        for _ in 0..30 {
            pipe -= MSS;
            let cwnd = prr.on_ack(MSS, pipe, MSS, true);
            let room = (cwnd - pipe) / MSS * MSS;
            assert!(room <= 2 * MSS, "a burst of {room}");
            pipe += room;
            prr.on_send(room);
        }
        assert!((9 * MSS..=10 * MSS).contains(&pipe), "{pipe}");
    }
}
