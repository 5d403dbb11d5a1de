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
    let mut causes = String::new();
    let mut add = |cause: &str| {
        if causes.is_empty() {
            causes.push_str(cause);
        } else if causes.split('+').all(|known| known != cause) {
            causes.push('+');
            causes.push_str(cause);
        }
    };
    if *before != phase {
        *before = phase;
        add("phase");
    }
    notices.for_each(add);
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_without_a_value_is_undefined() {
        let mut sample = FlowSample::over_paths(Instant::ZERO, 3, Reached::default());
        assert!(gauges_of(&sample, "sample", &[("alpha", 0.5)]).is_empty());
        sample.cwnd = Bytes::new(14_600);
        sample.delivery_rate = Some(Rate::from_mbps(8));
        sample.phase = "slow-start";
        let gauges = gauges_of(&sample, "loss", &[("alpha", 0.5), ("beta", f64::NAN)]);
        let values: Vec<_> = gauges.iter().map(|g| (g.name, g.value)).collect();
        assert_eq!(
            values,
            [
                ("congestion_window_bytes", Some(14_600.0)),
                ("bytes_in_flight", Some(0.0)),
                ("slow_start_threshold_bytes", None),
                ("pacing_rate_bps", None),
                ("delivery_rate_bps", Some(8e6)),
                ("alpha", Some(0.5)),
                ("beta", None),
            ]
        );
        assert!(gauges.iter().all(|g| g.flow == 3 && &*g.cause == "loss"));
        assert!(gauges.iter().all(|g| g.phase == "slow-start"));
    }

    #[test]
    fn a_record_has_each_of_its_causes_once() {
        let mut before = "slow-start";
        let mut of =
            |phase, notices: &[&'static str]| causes(phase, &mut before, notices.iter().copied());
        assert_eq!(of("slow-start", &[]), "");
        assert_eq!(
            of("recovery", &["loss", "loss", "recovery"]),
            "phase+loss+recovery"
        );
        assert_eq!(of("recovery", &["loss"]), "loss");
        assert_eq!(of("slow-start", &[]), "phase");
    }
}
