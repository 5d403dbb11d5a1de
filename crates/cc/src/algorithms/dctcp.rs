//! DCTCP (RFC 8257; Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010).
//!
//! The window is reduced in proportion to the share of marked bytes. It needs a receiver that reports each mark
//! (`ecn = "dctcp"`, RFC 8257 §3.2, which is the default for this algorithm) and a queue that marks by its
//! instantaneous length (`queue = "step"`).
//!
//! # Differences from the RFC's text
//! - §3.3: where one acknowledgement both ends an observation window and causes a reduction, the
//!   reduction comes first and takes the alpha of the window before.
//! - §3.3: selectively acknowledged bytes are counted at once, and not when the hole below is filled.

use gargalo_settings::settings;
use gargalo_units::Bytes;

use crate::event::{Acked, Cause, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{ReduceFrom, Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

settings! {
    /// Parameters of [`Dctcp`]; the defaults are those of RFC 8257. Marks reduce cwnd (§3.3) and
    /// not FlightSize.
    pub struct DctcpParams: Copy as "Dctcp", const {
        /// Weight g of the newest window in the share of marked bytes (§4.2: 1/16).
        gain: f64 = 1.0 / 16.0, in 1e-4..=1.0;
        /// Share of marked bytes assumed before the first window has ended; 1 makes the first mark
        /// halve the window (DCTCP.Alpha, §3.3).
        initial_alpha: f64 = 1.0, in 0.0..=1.0;
        /// Window kept after a loss, as a fraction (§3.5: as in TCP).
        beta: f64 = 0.5, in 0.01..=0.99;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams {
            reduce_from: ReduceFrom::Cwnd,
            ..WindowParams::DEFAULT
        };
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "dctcp",
    aliases: &[],
    summary: "reduces in proportion to the share of bytes marked: short queues in data centres",
    source: "RFC 8257; Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010",
    params: DctcpParams::params,
    build: |params, init| {
        Ok(Box::new(Dctcp::build(
            DctcpParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// Reno whose response to marks is proportional to the share of marked bytes.
#[derive(Clone, Debug)]
pub struct Dctcp {
    params: DctcpParams,
    /// The share of bytes marked, averaged (DCTCP.Alpha).
    alpha: f64,
    /// In the current observation window (DCTCP.BytesAcked, DCTCP.BytesMarked).
    acked: Bytes,
    marked: Bytes,
}

impl Dctcp {
    /// In slow start.
    pub fn build(params: DctcpParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            alpha: params.initial_alpha,
            acked: Bytes::ZERO,
            marked: Bytes::ZERO,
        };
        WindowBased::new(policy, params.window, init)
    }

    /// An observation window has ended: alpha = alpha * (1 - g) + g * M (§3.3 steps 5 to 8).
    fn end_window(&mut self) {
        if !self.acked.is_zero() {
            let share = self.marked.min(self.acked).as_f64() / self.acked.as_f64();
            let g = self.params.gain;
            self.alpha = (self.alpha * (1.0 - g) + g * share).clamp(0.0, 1.0);
        }
        self.acked = Bytes::ZERO;
        self.marked = Bytes::ZERO;
    }
}

impl Policy for Dctcp {
    #[inline]
    fn observe(&mut self, _window: &mut Window, ack: &Acked, _path: &Path<'_>) {
        self.acked += ack.bytes;
        self.marked += ack.ce_bytes;
        if ack.round_start {
            self.end_window();
        }
    }

    #[inline]
    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, _path: &Path<'_>) {
        window.additive_increase(acked);
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        let kept = match event.cause {
            Cause::Ecn => 1.0 - self.alpha / 2.0, // §3.3 step 9
            Cause::Loss | Cause::Timeout { .. } => self.params.beta,
        };
        window.reduction_base(event).mul_f64(kept)
    }

    /// Measurements are kept when a loss was spurious.
    fn restore(&mut self, _before: &Self) {}

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("alpha", self.alpha));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::event::Spurious;
    use crate::testing::{MSS, ack, congestion, init, path};
    use gargalo_units::{Duration, Instant};

    fn dctcp() -> WindowBased<Dctcp> {
        Dctcp::build(DctcpParams::DEFAULT, &init())
    }

    fn p() -> Path<'static> {
        path(Duration::from_micros(500))
    }

    /// A window of ten segments of which `marked` carry a mark.
    fn window(d: &mut WindowBased<Dctcp>, marked: u64) {
        for i in 0..10 {
            let ce = if i < marked { MSS } else { Bytes::ZERO };
            let a = Acked {
                ce_bytes: ce,
                round_start: i == 9,
                in_recovery: true, // keeps the window as it is
                ..ack(MSS.get())
            };
            d.on_ack(&a, &p());
        }
    }

    #[test]
    fn alpha_is_an_average_over_windows() {
        let mut d = dctcp();
        assert_eq!(d.policy().alpha, 1.0);
        window(&mut d, 0);
        assert_eq!(d.policy().alpha, 15.0 / 16.0);
        window(&mut d, 4);
        let want = 15.0 / 16.0 * 15.0 / 16.0 + 0.4 / 16.0;
        assert!((d.policy().alpha - want).abs() < 1e-12);
        for _ in 0..300 {
            window(&mut d, 3);
        }
        assert!((d.policy().alpha - 0.3).abs() < 1e-6);
    }

    #[test]
    fn a_mark_takes_half_of_alpha() {
        let mut d = dctcp();
        d.on_congestion(&congestion(Cause::Ecn, MSS * 10), &p());
        assert_eq!((d.cwnd(), d.ssthresh()), (MSS * 5, Some(MSS * 5)));
        let mut d = Dctcp::build(
            DctcpParams {
                initial_alpha: 0.2,
                ..DctcpParams::DEFAULT
            },
            &init(),
        );
        d.on_congestion(&congestion(Cause::Ecn, MSS * 3), &p());
        assert_eq!(d.cwnd(), MSS * 9, "of cwnd, not of what is in flight");
    }

    #[test]
    fn without_marks_for_long_a_mark_takes_next_to_nothing() {
        let mut d = dctcp();
        for _ in 0..1000 {
            window(&mut d, 0);
        }
        d.on_congestion(&congestion(Cause::Ecn, MSS * 10), &p());
        assert_eq!(d.cwnd(), MSS * 10);
        assert_eq!(d.phase(), "recovery");
    }

    #[test]
    fn a_loss_halves_whatever_alpha_is() {
        let mut d = dctcp();
        for _ in 0..100 {
            window(&mut d, 0);
        }
        d.on_congestion(&congestion(Cause::Loss, MSS * 10), &p());
        assert_eq!(d.cwnd(), MSS * 5);
    }

    #[test]
    fn a_spurious_loss_gives_back_the_window_and_keeps_alpha() {
        let mut d = dctcp();
        d.on_congestion(&congestion(Cause::Loss, MSS * 10), &p());
        window(&mut d, 0);
        let spurious = Spurious {
            now: Instant::ZERO,
            cause: Cause::Loss,
        };
        d.on_spurious(&spurious, &p());
        assert_eq!((d.cwnd(), d.ssthresh()), (MSS * 10, None));
        assert_eq!(d.policy().alpha, 15.0 / 16.0);
    }

    #[test]
    fn grows_as_reno() {
        let mut d = dctcp();
        d.on_congestion(&congestion(Cause::Ecn, MSS * 10), &p());
        d.on_recovered(Instant::ZERO, &p());
        for _ in 0..5 {
            d.on_ack(&ack(MSS.get()), &p());
        }
        let got = d.window().segments();
        assert!((got - 5.92).abs() < 0.05, "{got}"); // 5 + 5 * about 1/5.4
    }

    #[test]
    fn more_marked_than_acknowledged_is_everything() {
        let mut d = dctcp();
        let a = Acked {
            ce_bytes: MSS * 9,
            round_start: true,
            ..ack(MSS.get())
        };
        d.on_ack(&a, &p());
        assert_eq!(d.policy().alpha, 1.0);
        d.on_ack(
            &Acked {
                round_start: true,
                ..ack(0)
            },
            &p(),
        );
        assert_eq!(d.policy().alpha, 1.0, "nothing acknowledged tells nothing");
    }
}
