//! wVegas, weighted Vegas (Cao, Xu and Fu, "Delay-based congestion control for Multipath TCP", ICNP 2012;
//! draft-xu-mptcp-congestion-control-05): the connection keeps a number of segments in queues, divided between its
//! subflows by their rates, which equalises the queueing delays of all paths.
//!
//! Everything else is [`super::vegas`]'s. Alone on a path it equals, to the byte, Vegas with
//! alpha = `total_alpha`, beta = alpha + 1 and a slow start that doubles every round.
//!
//! # Where the sources differ or leave a choice
//! - Between alpha and alpha + 1 segments the window does not change, as in Linux with its integers.
//! - The rate of another subflow is its current cwnd/srtt; Linux used that of its latest update, zero
//!   before the first.
//! - The round-trip time of a round is the least of its samples, as in our Vegas; Linux used the mean.
//!   The base is the transport's least round-trip time.
//! - The queue is drained only from a backlog of alpha on, and by one subflow of several. Linux drained
//!   at any backlog: with exact clocks the queue doubles from one segment to two, and the window would
//!   be halved before it ever held alpha.
//! - A drained window grows back as far as ssthresh in slow start, as in Linux.
//! - After a loss alpha starts again with `initial_alpha` (Linux). Losses and marks halve.

use gargalo_settings::settings;
use gargalo_units::{Bytes, Duration};

use super::vegas::{Vegas, VegasParams};
use crate::coupled::{has_siblings, other_rates, seconds};
use crate::event::{Acked, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::round_rtt::Round;
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

settings! {
    /// Parameters of [`Wvegas`]; the defaults are those of the draft and the authors' Linux module.
    pub struct WvegasParams: Copy as "Wvegas", const {
        /// Segments that all subflows together keep in queues, shared by rate.
        total_alpha: f64 = 10.0, in 0.0..=1e4;
        /// Segments that a subflow keeps in the queue before its share is known, and at least.
        initial_alpha: f64 = 2.0, in 0.0..=1e4;
        /// Segments in the queue above which slow start ends (γ).
        gamma: f64 = 1.0, in 0.0..=1e4;
        /// The queue is drained when its delay is this many times the least since the last time; 0:
        /// never.
        drain: f64 = 2.0, in 0.0..=1e4;
        /// Window kept after a loss or mark, as a fraction.
        decrease: f64 = 0.5, in 0.01..=0.99;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl WvegasParams {
    /// A subflow's share of `total_alpha`.
    fn alpha(&self, weight: f64) -> f64 {
        (weight * self.total_alpha).max(self.initial_alpha)
    }

    /// The parameters of the underlying Vegas.
    fn vegas(&self) -> VegasParams {
        VegasParams {
            alpha: self.total_alpha,
            beta: self.total_alpha + 1.0,
            gamma: self.gamma,
            alternate: false,
            decrease: self.decrease,
            window: self.window,
            ..VegasParams::DEFAULT
        }
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "wvegas",
    aliases: &[],
    summary: "multipath: Vegas that shares its segments in queues between the subflows by their rates",
    source: "Y. Cao, M. Xu, X. Fu, Delay-based congestion control for Multipath TCP, ICNP 2012; \
             draft-xu-mptcp-congestion-control-05",
    params: WvegasParams::params,
    build: |params, init| {
        Ok(Box::new(Wvegas::build(
            WvegasParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// Vegas with a share of the connection's backlog.
#[derive(Clone, Debug)]
pub struct Wvegas {
    params: WvegasParams,
    vegas: Vegas,
    /// Segments this subflow keeps in the queue.
    alpha: f64,
    /// Least queueing delay of a round since the queue was drained.
    least: Option<Duration>,
}

impl Wvegas {
    /// In slow start.
    pub fn build(params: WvegasParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            vegas: Vegas::policy(params.vegas(), init),
            alpha: params.initial_alpha,
            least: None,
        };
        WindowBased::new(policy, params.window, init)
    }

    /// Drains the queue if it has grown since its minimum, so that the base round-trip times of all flows that
    /// share it can be measured.
    fn drain(&mut self, window: &mut Window, round: &Round, path: &Path<'_>) {
        if self.params.drain == 0.0 || round.backlog() < self.alpha || !has_siblings(path) {
            return;
        }
        let delay = round.queueing();
        let least = self.least.map_or(delay, |l| l.min(delay));
        self.least = Some(least);
        // Equality, that of the first round above all, is no growth.
        if delay <= least || seconds(delay) < self.params.drain * seconds(least) {
            return;
        }
        let kept = seconds(round.base) / (2.0 * seconds(round.rtt));
        let two = window.mss() * 2;
        let drained = window.cwnd().mul_f64(kept).max(two).min(window.cwnd());
        window.set_cwnd(drained);
        self.vegas.restart(window);
        self.least = None;
    }
}

/// The share of this subflow, as measured in `round`, in the connection's rate.
fn weight(round: &Round, path: &Path<'_>) -> f64 {
    let own = round.cwnd * path.mss.as_f64() / seconds(round.rtt);
    let all = own + other_rates(path);
    if all > 0.0 { own / all } else { 1.0 }
}

impl Policy for Wvegas {
    fn observe(&mut self, window: &mut Window, ack: &Acked, path: &Path<'_>) {
        let Self {
            params,
            vegas,
            alpha,
            ..
        } = self;
        let judged = vegas.steer(window, ack, path, |round| {
            if round.backlog() >= *alpha {
                *alpha = params.alpha(weight(round, path));
            }
            (*alpha, *alpha + 1.0)
        });
        if let Some(round) = judged {
            self.drain(window, &round, path);
        }
    }

    fn slow_start(&mut self, window: &mut Window, ack: &Acked, path: &Path<'_>) -> Bytes {
        self.vegas.slow_start(window, ack, path)
    }

    fn increase(&mut self, _window: &mut Window, _acked: Bytes, _ack: &Acked, _path: &Path<'_>) {}

    fn decrease(&mut self, window: &Window, event: &Congestion, path: &Path<'_>) -> Bytes {
        self.vegas.decrease(window, event, path)
    }

    fn reduced(&mut self, window: &mut Window, _event: &Congestion) {
        self.vegas.restart(window);
        self.alpha = self.params.initial_alpha;
        self.least = None;
    }

    /// The state has only measurements, which remain valid.
    fn restore(&mut self, _before: &Self) {}

    fn gauges(&self, window: &Window, out: &mut Vec<(&'static str, f64)>) {
        self.vegas.gauges(window, out);
        out.push(("alpha_segments", self.alpha));
    }
}

#[cfg(test)]
mod tests;
