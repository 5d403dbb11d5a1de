//! NewReno as RFC 5681 and RFC 6582 specify it: the window grows by acknowledgements, not by bytes.
//!
//! In slow start every acknowledgement adds min(N, SMSS), in congestion avoidance SMSS * SMSS / cwnd (equations 2
//! and 3), so that a receiver that delays acknowledgements halves the growth. Recovery from partial
//! acknowledgements, the distinguishing part of NewReno, is done by the transport: `recovery = "newreno"` there
//! turns SACK off. [`super::reno`] is the same with appropriate byte counting.

use gargalo_settings::settings;
use gargalo_units::Bytes;

use crate::event::{Acked, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

settings! {
    /// Parameters of [`NewReno`]; the defaults are those of RFC 5681.
    pub struct NewRenoParams: Copy as "NewReno", const {
        /// Window kept after a loss or mark, as a fraction (RFC 5681 equation 4: 1/2).
        beta: f64 = 0.5, in 0.01..=0.99;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams {
            abc_limit: 1,
            ..WindowParams::DEFAULT
        };
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "newreno",
    aliases: &[],
    summary: "Reno that counts acknowledgements instead of bytes, the baseline of older studies",
    source: "RFC 5681 equations 2 to 4, RFC 6582",
    params: NewRenoParams::params,
    build: |params, init| {
        Ok(Box::new(NewReno::build(
            NewRenoParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// One segment more per window of acknowledgements, half the window on loss.
#[derive(Clone, Debug)]
pub struct NewReno {
    params: NewRenoParams,
}

impl NewReno {
    /// In slow start.
    pub fn build(params: NewRenoParams, init: &Init) -> WindowBased<Self> {
        WindowBased::new(Self { params }, params.window, init)
    }
}

impl Policy for NewReno {
    #[inline]
    fn increase(&mut self, window: &mut Window, _acked: Bytes, _ack: &Acked, _path: &Path<'_>) {
        window.additive_increase(window.mss());
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        window.reduction_base(event).mul_f64(self.params.beta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::event::Cause;
    use crate::testing::{MSS, ack, congestion, init, path};
    use gargalo_units::Duration;

    fn newreno() -> WindowBased<NewReno> {
        NewReno::build(NewRenoParams::DEFAULT, &init())
    }

    #[test]
    fn slow_start_adds_one_segment_an_acknowledgement() {
        let p = path(Duration::from_millis(100));
        let mut n = newreno();
        n.on_ack(&ack(2 * MSS.get()), &p); // a delayed acknowledgement of two segments
        assert_eq!(n.cwnd(), MSS * 11);
        n.on_ack(&ack(400), &p); // equation 2: no more than was acknowledged
        assert_eq!(n.cwnd(), MSS * 11 + Bytes::new(400));
    }

    #[test]
    fn equation_3_whatever_is_acknowledged() {
        let p = path(Duration::from_millis(100));
        let mut n = newreno();
        n.on_congestion(&congestion(Cause::Loss, MSS * 10), &p);
        n.on_recovered(gargalo_units::Instant::ZERO, &p);
        for bytes in [2 * MSS.get(), MSS.get(), 100] {
            let before = n.cwnd().as_f64();
            n.on_ack(&ack(bytes), &p);
            let want = MSS.as_f64() * MSS.as_f64() / before;
            assert!((n.cwnd().as_f64() - before - want).abs() <= 1.0);
        }
    }

    #[test]
    fn delayed_acknowledgements_halve_the_growth() {
        let p = path(Duration::from_millis(100));
        let (mut each, mut second) = (newreno(), newreno());
        for n in [&mut each, &mut second] {
            n.on_congestion(&congestion(Cause::Loss, MSS * 200), &p);
            n.window_mut().set_cwnd(MSS * 100);
            n.on_recovered(gargalo_units::Instant::ZERO, &p);
        }
        for _ in 0..500 {
            each.on_ack(&ack(MSS.get()), &p);
            each.on_ack(&ack(MSS.get()), &p);
            second.on_ack(&ack(2 * MSS.get()), &p);
        }
        let grown = |n: &WindowBased<NewReno>| n.window().segments() - 100.0;
        let ratio = grown(&each) / grown(&second);
        assert!((1.85..2.05).contains(&ratio), "{ratio}");
    }

    #[test]
    fn half_the_flight_on_loss() {
        let p = path(Duration::from_millis(100));
        let mut n = newreno();
        n.on_congestion(&congestion(Cause::Loss, MSS * 8), &p);
        assert_eq!((n.cwnd(), n.ssthresh()), (MSS * 4, Some(MSS * 4)));
    }
}
