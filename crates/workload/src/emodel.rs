//! Quality of a call by delay and loss: the E-model of ITU-T G.107 in the simplified form of R. G.
//! Cole and J. H. Rosenbluth, "Voice over IP Performance Monitoring", ACM SIGCOMM Computer
//! Communication Review 31(2), 2001.

use gargalo_units::Duration;

/// Sensitivity of a codec to losses: impairment `base + slope * ln(1 + sensitivity * loss)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairment {
    /// Impairment without loss.
    pub base: f64,
    /// Factor of the logarithm.
    pub slope: f64,
    /// Factor of the share of lost packets.
    pub sensitivity: f64,
}

/// G.711 with packet-loss concealment, random losses (Cole and Rosenbluth, section 3.2).
pub const G711: Impairment = Impairment {
    base: 0.0,
    slope: 30.0,
    sensitivity: 15.0,
};

/// G.729A, random losses (Cole and Rosenbluth, section 3.2).
pub const G729: Impairment = Impairment {
    base: 11.0,
    slope: 40.0,
    sensitivity: 10.0,
};

/// R with all parameters at their defaults and no delay (ITU-T G.107 clause 7.7; the paper has 94.2,
/// from the edition of its time).
const DEFAULT_R: f64 = 93.2;

/// Transmission rating R, 0 to about 93, of a call with this mouth-to-ear delay and share of packets
/// lost or late.
pub fn rating(codec: Impairment, delay: Duration, loss: f64) -> f64 {
    let ms = delay.as_secs_f64() * 1e3;
    let by_delay = 0.024 * ms + 0.11 * (ms - 177.3).max(0.0);
    let by_loss = codec.base + codec.slope * libm::log1p(codec.sensitivity * loss.clamp(0.0, 1.0));
    (DEFAULT_R - by_delay - by_loss).max(0.0)
}

/// Mean opinion score, 1 to 4.5, of a rating (ITU-T G.107 annex B).
pub fn mos(r: f64) -> f64 {
    if r <= 0.0 {
        1.0
    } else if r >= 100.0 {
        4.5
    } else {
        // Dips just below 1 for R under 6.5.
        (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_the_recommendation() {
        // ITU-T G.107 table B.1 and clause 7.7 (defaults: R = 93.2, MOS = 4.41).
        for (r, score) in [
            (90.0, 4.34),
            (80.0, 4.03),
            (70.0, 3.60),
            (60.0, 3.10),
            (50.0, 2.58),
            (93.2, 4.41),
        ] {
            assert!((mos(r) - score).abs() < 0.01, "{r}: {}", mos(r));
        }
        assert_eq!((mos(-5.0), mos(3.0), mos(101.0)), (1.0, 1.0, 4.5));
    }

    #[test]
    fn delay_and_loss_cost_what_the_paper_says() {
        let r = |ms, loss| rating(G711, Duration::from_millis(ms), loss);
        assert!((r(0, 0.0) - 93.2).abs() < 1e-9);
        assert!((r(100, 0.0) - 90.8).abs() < 1e-9);
        // The delay impairment rises faster above 177.3 ms.
        assert!((r(300, 0.0) - (93.2 - 7.2 - 0.11 * 122.7)).abs() < 1e-9);
        // Table of the paper: 10% loss costs G.711 27.5 points, G.729A 11 + 27.7.
        assert!((r(0, 0.1) - (93.2 - 27.489)).abs() < 0.01);
        let g729 = rating(G729, Duration::ZERO, 0.1);
        assert!((g729 - (93.2 - 11.0 - 27.726)).abs() < 0.01);
    }
}
