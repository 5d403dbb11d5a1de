//! Limited slow start (RFC 3742): beyond a window of max_ssthresh, at most max_ssthresh/2 segments of
//! growth per round trip.

use super::Growth;

/// The constant of RFC 3742 §2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitedParams {
    /// max_ssthresh in segments.
    pub max_ssthresh: f64,
}

impl LimitedParams {
    /// The value RFC 3742 §3 uses.
    pub const DEFAULT: Self = Self {
        max_ssthresh: 100.0,
    };

    /// RFC 3742 §2: with K = int(cwnd / (0.5 max_ssthresh)), an acknowledgement adds MSS/K.
    pub fn growth(self, cwnd: f64) -> Growth {
        Growth::Divided(if cwnd <= self.max_ssthresh {
            1
        } else {
            ((cwnd / (0.5 * self.max_ssthresh)) as u64).max(1)
        })
    }
}

impl Default for LimitedParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_of_section_2() {
        // max_ssthresh 100: K is 2 from 101 to 149, 3 from 150, 20 at 1000.
        for (cwnd, k) in [
            (10.0, 1),
            (100.0, 1),
            (101.0, 2),
            (149.9, 2),
            (150.0, 3),
            (1000.0, 20),
        ] {
            assert_eq!(
                LimitedParams::DEFAULT.growth(cwnd),
                Growth::Divided(k),
                "{cwnd}"
            );
        }
    }

    #[test]
    fn reaches_83000_segments_in_the_round_trips_of_section_3() {
        // RFC 3742 §3: from max_ssthresh it takes about (cwnd - max_ssthresh) / (max_ssthresh / 2)
        // round trips more: 836 with max_ssthresh 100 after log2(100) for a window of 41,900.
        let mut cwnd: f64 = 100.0;
        let mut rounds = 0;
        while cwnd < 41_900.0 {
            let Growth::Divided(k) = LimitedParams::DEFAULT.growth(cwnd) else {
                panic!("never ends by itself")
            };
            cwnd += cwnd / k as f64;
            rounds += 1;
        }
        assert!((780..=840).contains(&rounds), "{rounds}");
    }
}
