//! Internal quantities of a sender's congestion control.

use std::sync::Arc;

use gargalo_tcp::Endpoint;
use gargalo_units::{Bytes, Instant, Rate};

use crate::samples::{FlowSample, Gauge, Reached};

/// The internal quantities of a TCP sender's congestion control and of the sender itself; none before the handshake is
/// complete.
pub fn gauges(time: Instant, flow: u64, cause: &str, sender: &Endpoint) -> Vec<Gauge> {
    let sample = FlowSample::of_tcp(time, flow, Reached::default(), sender.snapshot(time));
    let mut more = Vec::new();
    sender.gauges(&mut more);
    gauges_of(&sample, cause, &more)
}

/// What a sender's sample has of its congestion control, and `more` by name; none while it has no window.
pub fn gauges_of(sample: &FlowSample, cause: &str, more: &[(&'static str, f64)]) -> Vec<Gauge> {
    if sample.cwnd.is_zero() {
        return Vec::new();
    }
    let bytes = |b: Option<Bytes>| b.map_or(f64::NAN, Bytes::as_f64);
    let rate = |r: Option<Rate>| r.map_or(f64::NAN, |r| r.as_bps() as f64);
    let values = [
        ("congestion_window_bytes", sample.cwnd.as_f64()),
        ("bytes_in_flight", bytes(sample.in_flight)),
        ("slow_start_threshold_bytes", bytes(sample.ssthresh)),
        ("pacing_rate_bps", rate(sample.pacing_rate)),
        ("delivery_rate_bps", rate(sample.delivery_rate)),
    ];
    let cause: Arc<str> = cause.into();
    let gauge = |(name, value): &(&'static str, f64)| Gauge {
        time: sample.time,
        flow: sample.flow,
        cause: Arc::clone(&cause),
        phase: sample.phase,
        name,
        value: (!value.is_nan()).then_some(*value),
    };
    values.iter().chain(more).map(gauge).collect()
}

/// The causes for a record of a congestion control, joined by `+`: a phase other than `before`, and kinds of notices.
/// Empty: no cause.
pub fn causes(
    phase: &'static str,
    before: &mut &'static str,
    notices: impl Iterator<Item = &'static str>,
) -> String {
    let mut causes = Vec::new();
    if *before != phase {
        *before = phase;
        causes.push("phase");
    }
    for kind in notices {
        if !causes.contains(&kind) {
            causes.push(kind);
        }
    }
    causes.join("+")
}
