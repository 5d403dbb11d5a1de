//! Tahoe (Jacobson, "Congestion avoidance and control", SIGCOMM 1988): slow start, congestion
//! avoidance and fast retransmit, without fast recovery.
//!
//! After every loss the window is one segment, and slow start runs up to half of the data in flight.
//! The transport still knows which segments are missing (the original sent everything again from the
//! first hole on); the window opens during the repair, as there is no recovery for Tahoe.

use gargalo_settings::settings;
use gargalo_units::Bytes;

use crate::event::{Acked, Cause, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

settings! {
    /// Parameters of [`Tahoe`]; the defaults are the published values. Acknowledgements are
    /// counted, as in 1988.
    pub struct TahoeParams: Copy as "Tahoe", const {
        /// ssthresh after a loss or mark, as a fraction of the data in flight (1/2).
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
    name: "tahoe",
    aliases: &[],
    summary: "slow start from one segment after every loss: the first congestion control of TCP",
    source: "V. Jacobson, Congestion avoidance and control, SIGCOMM 1988",
    params: TahoeParams::params,
    build: |params, init| {
        Ok(Box::new(Tahoe::build(
            TahoeParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// Reno without fast recovery.
#[derive(Clone, Debug)]
pub struct Tahoe {
    params: TahoeParams,
}

impl Tahoe {
    /// In slow start.
    pub fn build(params: TahoeParams, init: &Init) -> WindowBased<Self> {
        WindowBased::new(Self { params }, params.window, init)
    }
}

impl Policy for Tahoe {
    fn slow_start(&mut self, window: &mut Window, ack: &Acked, _path: &Path<'_>) -> Bytes {
        window.slow_start(&Acked {
            in_recovery: false,
            ..*ack
        })
    }

    #[inline]
    fn increase(&mut self, window: &mut Window, _acked: Bytes, _ack: &Acked, _path: &Path<'_>) {
        window.additive_increase(window.mss());
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        window.reduction_base(event).mul_f64(self.params.beta)
    }

    fn reduced(&mut self, window: &mut Window, event: &Congestion) {
        if event.cause == Cause::Loss {
            window.set_cwnd(window.mss());
        }
    }

    fn governs_recovery(&self) -> bool {
        true
    }

    fn phase(&self, window: &Window) -> &'static str {
        if window.in_slow_start() {
            "slow-start"
        } else {
            "congestion-avoidance"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::testing::{MSS, ack, congestion, init, path};
    use gargalo_units::Duration;

    #[test]
    fn loss_means_one_segment_and_slow_start_to_half() {
        let p = path(Duration::from_millis(100));
        let mut t = Tahoe::build(TahoeParams::DEFAULT, &init());
        t.on_congestion(&congestion(Cause::Loss, MSS * 8), &p);
        assert_eq!((t.cwnd(), t.ssthresh()), (MSS, Some(MSS * 4)));
        assert_eq!(t.phase(), "slow-start");
        for want in [2, 3, 4] {
            // During the repair too.
            t.on_ack(
                &Acked {
                    in_recovery: true,
                    ..ack(MSS.get())
                },
                &p,
            );
            assert_eq!(t.cwnd(), MSS * want);
        }
        t.on_ack(&ack(MSS.get()), &p);
        assert_eq!(t.cwnd(), MSS * 4 + Bytes::new(250));
        assert_eq!(t.phase(), "congestion-avoidance");
    }

    #[test]
    fn an_ecn_mark_halves() {
        let p = path(Duration::from_millis(100));
        let mut t = Tahoe::build(TahoeParams::DEFAULT, &init());
        t.on_congestion(&congestion(Cause::Ecn, MSS * 8), &p);
        assert_eq!(t.cwnd(), MSS * 4);
    }
}
