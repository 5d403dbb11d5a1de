//! Reno (RFC 5681) with appropriate byte counting (RFC 3465).
//!
//! The window grows per acknowledged byte, not per acknowledgement; the literal RFC 5681 is [`super::newreno`].
//! Fast retransmit and fast recovery belong to the transport.

use gargalo_settings::settings;
use gargalo_units::Bytes;

use crate::event::{Acked, Cause, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

settings! {
    /// Parameters of [`Reno`]; the defaults are those of RFC 5681.
    pub struct RenoParams: Copy as "Reno", const {
        /// Window kept after a loss, as a fraction (RFC 5681 equation 4: 1/2).
        beta: f64 = 0.5, in 0.01..=0.99;
        /// Window kept after an ECN mark, as a fraction (RFC 3168 §6.1.2: 1/2; RFC 8511: 0.8).
        beta_ecn: f64 = 0.5, in 0.01..=0.99;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "reno",
    aliases: &[],
    summary: "one segment more per round trip, half the window on loss",
    source: "RFC 5681, RFC 3465",
    params: RenoParams::params,
    build: |params, init| {
        Ok(Box::new(Reno::build(
            RenoParams::from_params(ALGORITHM.name, params)?,
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

    /// For algorithms that differ from Reno only in their increase.
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
