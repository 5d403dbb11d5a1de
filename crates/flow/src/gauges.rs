//! Internal quantities of a TCP sender's congestion control.

use std::sync::Arc;

use gargalo_tcp::{Endpoint, Notice};
use gargalo_units::{Bytes, Instant, Rate};

use crate::samples::Gauge;

/// The internal quantities of a sender's congestion control and of the sender itself; none before the handshake is
/// complete.
pub fn gauges(time: Instant, flow: u64, cause: &str, sender: &Endpoint) -> Vec<Gauge> {
    let s = sender.snapshot(time);
    if s.cwnd.is_zero() {
        return Vec::new();
    }
    let mut values = vec![
        ("congestion_window_bytes", s.cwnd.as_f64()),
        ("bytes_in_flight", s.in_flight.as_f64()),
        (
            "slow_start_threshold_bytes",
            s.ssthresh.map_or(f64::NAN, Bytes::as_f64),
        ),
        ("pacing_rate_bps", rate(s.pacing_rate)),
        ("delivery_rate_bps", rate(s.delivery_rate)),
    ];
    sender.gauges(&mut values);
    let cause: Arc<str> = cause.into();
    let gauge = |(name, value): (&'static str, f64)| Gauge {
        time,
        flow,
        cause: Arc::clone(&cause),
        phase: s.phase,
        name,
        value: (!value.is_nan()).then_some(value),
    };
    values.into_iter().map(gauge).collect()
}

fn rate(r: Option<Rate>) -> f64 {
    r.map_or(f64::NAN, |r| r.as_bps() as f64)
}

/// Reports the notices of an endpoint. Returns the causes for a record of its congestion control, joined by `+`: a
/// phase other than `before`, and the kinds of notices. Empty: no cause.
pub fn causes(
    endpoint: &mut Endpoint,
    before: &mut &'static str,
    mut show: impl FnMut(&Notice),
) -> String {
    let mut causes = Vec::new();
    let phase = endpoint.phase();
    if *before != phase {
        *before = phase;
        causes.push("phase");
    }
    while let Some(notice) = endpoint.poll_notice() {
        if !causes.contains(&notice.kind()) {
            causes.push(notice.kind());
        }
        show(&notice);
    }
    causes.join("+")
}
