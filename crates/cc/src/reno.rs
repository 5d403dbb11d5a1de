//! Reno (RFC 5681) with appropriate byte counting (RFC 3465).
//!
//! "newreno" is the same controller: what NewReno (RFC 6582) adds, the handling of partial
//! acknowledgements during fast recovery, belongs to the transport.

use gargalo_units::{Bytes, Instant};

use crate::Controller;
use crate::event::{Acked, Cause, Congestion, Sent, Spurious};
use crate::params::{BuildError, Param, Params, Values};
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};

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

    fn from_params(params: &Params) -> Result<Self, BuildError> {
        let v = Values::check(ALGORITHM.name, ALGORITHM.params, params)?;
        Ok(Self {
            beta: v.number("beta"),
            beta_ecn: v.number("beta_ecn"),
            window: WindowParams::read(&v),
        })
    }
}

impl Default for RenoParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

const WINDOW: [Param; 3] = RenoParams::DEFAULT.window.table();

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "reno",
    aliases: &["newreno"],
    summary: "one segment more per round trip, half the window on loss",
    source: "RFC 5681, RFC 3465; NewReno's recovery (RFC 6582) is the transport's",
    params: &[
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
        WINDOW[0],
        WINDOW[1],
        WINDOW[2],
    ],
    build: |params, init| Ok(Box::new(Reno::new(RenoParams::from_params(params)?, &init))),
};

/// Additive increase, multiplicative decrease.
#[derive(Clone, Debug)]
pub struct Reno {
    window: Window,
    params: RenoParams,
}

impl Reno {
    /// In slow start.
    pub fn new(params: RenoParams, init: &Init) -> Self {
        Self {
            window: Window::new(init, params.window),
            params,
        }
    }
}

impl Controller for Reno {
    fn on_send(&mut self, sent: &Sent, _path: &Path<'_>) {
        self.window.on_send(sent);
    }

    fn on_ack(&mut self, ack: &Acked, _path: &Path<'_>) {
        let left = self.window.slow_start(ack);
        if !left.is_zero() {
            self.window.additive_increase(left);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, _path: &Path<'_>) {
        let beta = match event.cause {
            Cause::Ecn => self.params.beta_ecn,
            Cause::Loss | Cause::Timeout { .. } => self.params.beta,
        };
        let target = self.window.reduction_base(event).mul_f64(beta);
        self.window.reduce(event, target);
    }

    fn on_spurious(&mut self, event: &Spurious, _path: &Path<'_>) {
        self.window.undo(event);
    }

    fn on_recovered(&mut self, _now: Instant, _path: &Path<'_>) {
        self.window.on_recovered();
    }

    fn on_mss(&mut self, path: &Path<'_>) {
        self.window.on_mss(path.mss);
    }

    fn cwnd(&self) -> Bytes {
        self.window.cwnd()
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.window.ssthresh()
    }

    fn phase(&self) -> &'static str {
        self.window.phase()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, ack, congestion, init, path};
    use gargalo_units::Duration;

    fn reno() -> Reno {
        Reno::new(RenoParams::DEFAULT, &init())
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
