//! Pacing rate, quantum and window (draft §5.6).

use gargalo_units::{Bytes, Duration, Rate};

use super::{BoundedBbr, Recovery, State, Version};
use crate::event::Acked;
use crate::path_model::{MIN_RATE, NOMINAL_RTT, volume};
use crate::window::MAX_WINDOW;

const MAX_QUANTUM: Bytes = Bytes::new(64 * 1024);

impl<V: Version> BoundedBbr<V> {
    pub(crate) fn pacing_gain(&self) -> f64 {
        let p = &self.params;
        match self.state {
            State::Startup => p.startup_pacing_gain,
            State::Drain => p.drain_pacing_gain,
            State::Down => p.down_pacing_gain,
            State::Up => p.up_pacing_gain,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
        }
    }

    pub(crate) fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::ProbeRtt => self.params.probe_rtt_cwnd_gain,
            state => self.version.cwnd_gain(&self.params, state),
        }
    }

    pub(crate) fn init_pacing_rate(&mut self, srtt: Option<Duration>) {
        let rtt = srtt.unwrap_or(NOMINAL_RTT).max(Duration::from_nanos(1));
        self.has_seen_rtt = srtt.is_some();
        let nominal = self.cwnd / rtt;
        self.pacing_rate = nominal
            .mul_f64(self.params.startup_pacing_gain)
            .max(MIN_RATE);
    }

    /// SetPacingRateWithGain: `gain` times the bandwidth, less the pacing margin. Until the pipe is full, only the
    /// first round-trip time lowers the rate.
    pub(crate) fn set_pacing_rate(&mut self, gain: f64, srtt: Option<Duration>) {
        if !self.has_seen_rtt && srtt.is_some() {
            self.init_pacing_rate(srtt);
        }
        let gain = gain * (1.0 - self.params.pacing_margin);
        let rate = self.bw.mul_f64(gain).max(MIN_RATE);
        if self.full_bw.is_reached() || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// The amount sent in a millisecond, within bounds.
    pub(crate) fn quantum(&self) -> Bytes {
        Bytes::new(self.pacing_rate.as_bps() / 8_000)
            .min(MAX_QUANTUM)
            .max(self.mss * self.version.least_quantum(self.pacing_rate))
    }

    pub(crate) fn min_cwnd(&self) -> Bytes {
        self.mss * self.params.min_window
    }

    /// BDPMultiple: `gain` bandwidth-delay products.
    pub(crate) fn bdp(&self, bw: Rate, gain: f64) -> Bytes {
        match self.min_rtt.get() {
            Some(rtt) => volume(bw, rtt).mul_f64(gain).min(MAX_WINDOW),
            None => self.initial_window,
        }
    }

    /// TargetInflight: a bandwidth-delay product, at most cwnd.
    pub(crate) fn target_inflight(&self) -> Bytes {
        self.bdp(self.bw, 1.0).min(self.cwnd)
    }

    /// QuantizationBudget: room for full-sized bursts at both ends, and for probing where the
    /// bandwidth-delay product is small.
    fn quantized(&self, window: Bytes) -> Bytes {
        let window = window.max(self.quantum() * 3).max(self.min_cwnd());
        if self.state == State::Up {
            window + self.mss * 2
        } else {
            window
        }
    }

    /// Inflight: `gain` bandwidth-delay products, after QuantizationBudget.
    pub(crate) fn inflight(&self, bw: Rate, gain: f64) -> Bytes {
        self.quantized(self.bdp(bw, gain))
    }

    pub(crate) fn with_headroom(&self) -> Bytes {
        self.long_term
            .with_headroom(self.params.headroom, self.mss, self.min_cwnd())
    }

    pub(crate) fn probe_rtt_cwnd(&self) -> Bytes {
        self.bdp(self.bw, self.params.probe_rtt_cwnd_gain)
            .max(self.min_cwnd())
    }

    /// SetCwnd: after an acknowledgement, by packet conservation or by the gain, then within the bounds of the model.
    pub(crate) fn set_cwnd(&mut self, ack: &Acked) {
        let lost = std::mem::take(&mut self.repair.newly_lost);
        if self.repair.phase == Recovery::Fast && self.version.conserves_packets() {
            self.cwnd = self
                .repair
                .conservation
                .modulate(self.cwnd, ack, lost, self.mss);
        }
        if !self.repair.conservation.is_active() {
            self.approach_target(ack);
        }
        self.bound_cwnd();
    }

    fn approach_target(&mut self, ack: &Acked) {
        let extra = self
            .aggregation
            .extra_acked
            .get()
            .mul_f64(self.params.extra_acked_gain);
        let most = self.quantized(self.bdp(self.bw, self.cwnd_gain()) + extra);
        if self.full_bw.is_reached() {
            self.cwnd = (self.cwnd + ack.bytes).min(most);
        } else if self.cwnd < most || self.delivered < self.initial_window {
            self.cwnd += ack.bytes;
        }
        self.cwnd = self.cwnd.max(self.min_cwnd());
    }

    /// BoundCwndForProbeRTT and BoundCwndForModel.
    fn bound_cwnd(&mut self) {
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.long_term.inflight,
            State::Cruise | State::ProbeRtt => self.with_headroom(),
            State::Startup | State::Drain => Bytes::MAX,
        };
        let cap = cap.min(self.short_term.inflight).max(self.min_cwnd());
        self.cwnd = self.cwnd.min(cap).min(MAX_WINDOW).max(self.mss);
    }

    // --- the last good window (draft §5.6.4.4) ---

    pub(crate) fn save_cwnd(&mut self) {
        let unmodulated = self.repair.phase == Recovery::None && self.state != State::ProbeRtt;
        self.repair.prior_cwnd = if unmodulated {
            self.cwnd
        } else {
            self.repair.prior_cwnd.max(self.cwnd)
        };
    }

    pub(crate) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.repair.prior_cwnd);
        self.bound_cwnd();
    }
}
