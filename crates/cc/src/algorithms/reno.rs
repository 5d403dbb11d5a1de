//! Reno (RFC 5681) with appropriate byte counting (RFC 3465).
//!
//! The window grows by what is acknowledged, not by how many acknowledgements there are; the
//! literal RFC 5681 is [`super::newreno`]. Fast retransmit and fast recovery belong to the transport.

use gargalo_units::Bytes;

use crate::event::{Acked, Cause, Congestion};
use crate::params::{BuildError, Param, Params, Values};
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

/// Parameters of [`Reno`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenoParams {
    /// Multiplicative decrease on loss: 1/2 (RFC 5681 equation 4).
    pub beta: f64,
    /// Multiplicative decrease on ECN marks: 1/2 (RFC 3168 §6.1.2); 0.8 is RFC 8511's alternative
    /// backoff.
    pub beta_ecn: f64,
    /// The shared part.
    pub window: WindowParams,
}

impl RenoParams {
    /// The values of RFC 5681.
    pub const DEFAULT: Self = Self {
        beta: 0.5,
        beta_ecn: 0.5,
        window: WindowParams::STANDARD,
    };

    /// From checked values whose table includes [`OWN`] and the window's.
    pub(super) fn read(v: &Values<'_>) -> Self {
        Self {
            beta: v.number("beta"),
            beta_ecn: v.number("beta_ecn"),
            window: WindowParams::read(v),
        }
    }

    fn from_params(params: &Params) -> Result<Self, BuildError> {
        let v = Values::check(ALGORITHM.name, ALGORITHM.params, params)?;
        Ok(Self::read(&v))
    }
}

impl Default for RenoParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The entries of [`RenoParams`] without those of the window.
pub(super) const OWN: [Param; 2] = [
    Param::number(
        "beta",
        "window kept after a loss, as a fraction",
        RenoParams::DEFAULT.beta,
        0.01,
        0.99,
    ),
    Param::number(
        "beta_ecn",
        "window kept after an ECN mark, as a fraction (RFC 8511: 0.8)",
        RenoParams::DEFAULT.beta_ecn,
        0.01,
        0.99,
    ),
];

/// The table of [`RenoParams`].
pub(super) const PARAMS: [Param; 2 + WindowParams::PARAMS] = RenoParams::DEFAULT.window.after(OWN);

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "reno",
    aliases: &[],
    summary: "one segment more per round trip, half the window on loss",
    source: "RFC 5681, RFC 3465",
    params: &PARAMS,
    build: |params, init| {
        Ok(Box::new(Reno::build(
            RenoParams::from_params(params)?,
            &init,
        )))
    },
};

/// Additive increase, multiplicative decrease.
#[derive(Clone, Debug)]
pub struct Reno {
    params: RenoParams,
}

impl Reno {
    /// In slow start.
    pub fn build(params: RenoParams, init: &Init) -> WindowBased<Self> {
        WindowBased::new(Self::policy(params), params.window, init)
    }

    /// For algorithms that are Reno but for their increase.
    pub(super) fn policy(params: RenoParams) -> Self {
        Self { params }
    }
}

impl Policy for Reno {
    #[inline]
    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, _path: &Path<'_>) {
        window.additive_increase(acked);
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        let beta = match event.cause {
            Cause::Ecn => self.params.beta_ecn,
            Cause::Loss | Cause::Timeout { .. } => self.params.beta,
        };
        window.reduction_base(event).mul_f64(beta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::event::Spurious;
    use crate::testing::{MSS, ack, congestion, init, path};
    use gargalo_units::{Duration, Instant};

    fn reno() -> WindowBased<Reno> {
        Reno::build(RenoParams::DEFAULT, &init())
    }

    #[test]
    fn one_segment_per_window_of_acknowledged_bytes() {
        let p = path(Duration::from_millis(100));
        let mut r = reno();
        r.on_congestion(&congestion(Cause::Loss, MSS * 10), &p);
        r.on_recovered(Instant::ZERO, &p);
        assert_eq!(r.cwnd(), MSS * 5); // FlightSize / 2
        assert_eq!(r.ssthresh(), Some(MSS * 5));
        for acks in [5, 6, 7] {
            let before = r.cwnd();
            for _ in 0..acks {
                r.on_ack(&ack(MSS.get()), &p);
            }
            // SMSS * SMSS / cwnd per acknowledgement falls as cwnd grows: somewhat less than one.
            let grown = (r.cwnd() - before).as_f64() / MSS.as_f64();
            assert!((0.85..=1.0).contains(&grown), "{grown}");
        }
    }

    #[test]
    fn delayed_acks_do_not_slow_it_down() {
        let p = path(Duration::from_millis(100));
        let (mut each, mut second) = (reno(), reno());
        for r in [&mut each, &mut second] {
            r.on_congestion(&congestion(Cause::Loss, MSS * 10), &p);
        }
        for _ in 0..500 {
            each.on_ack(&ack(MSS.get()), &p);
            each.on_ack(&ack(MSS.get()), &p);
            second.on_ack(&ack(2 * MSS.get()), &p);
        }
        assert!(each.cwnd() - second.cwnd() <= MSS);
    }

    #[test]
    fn floor_is_two_segments_on_loss_and_one_on_timeout() {
        let p = path(Duration::from_millis(100));
        let mut r = reno();
        r.on_congestion(&congestion(Cause::Loss, MSS), &p);
        assert_eq!((r.cwnd(), r.ssthresh()), (MSS * 2, Some(MSS * 2)));
        r.on_congestion(&congestion(Cause::Timeout { consecutive: 1 }, MSS), &p);
        assert_eq!((r.cwnd(), r.ssthresh()), (MSS, Some(MSS * 2)));
    }

    #[test]
    fn spurious_loss_is_undone() {
        let p = path(Duration::from_millis(100));
        let mut r = reno();
        r.on_congestion(&congestion(Cause::Loss, MSS * 10), &p);
        r.on_spurious(
            &Spurious {
                now: Instant::ZERO,
                cause: Cause::Loss,
            },
            &p,
        );
        assert_eq!((r.cwnd(), r.ssthresh()), (MSS * 10, None));
    }
}
