//! The state of a sender over time.

use gargalo_units::{Duration, Rate};

/// Most samples; beyond, those of a span of time are one.
const MOST_SAMPLES: usize = 1 << 16;
/// Time between samples where only packets are told.
const SAMPLE_EVERY_NS: i64 = 10_000_000;

/// Metrics of the sender; each update has only what has changed.
#[derive(Clone, Copy, Default)]
pub struct Metrics {
    pub congestion_window: Option<u64>,
    pub slow_start_threshold: Option<u64>,
    pub bytes_in_flight: Option<u64>,
    pub smoothed_rtt: Option<Duration>,
    pub pacing_rate: Option<Rate>,
    pub phase: &'static str,
}

/// State at an instant.
#[derive(Clone, Copy)]
pub struct Sample {
    pub time: i64,
    pub metrics: Metrics,
    pub acked: u64,
    pub received: u64,
}

/// Samples of bounded number: those with the latest state of each span of time.
#[derive(Default)]
pub struct Samples {
    pub all: Vec<Sample>,
    /// Length of such a span.
    span_ns: i64,
    /// When the span of the last sample began.
    begun_ns: i64,
}

impl Samples {
    /// Adds one.
    pub fn add(&mut self, sample: Sample) {
        match self.all.last_mut() {
            Some(last) if sample.time <= self.begun_ns.saturating_add(self.span_ns) => {
                let time = last.time.max(sample.time);
                *last = Sample { time, ..sample };
            }
            _ => {
                self.begun_ns = sample.time;
                self.all.push(sample);
            }
        }
        if self.all.len() > MOST_SAMPLES {
            let whole = sample.time.saturating_sub(self.all[0].time);
            self.span_ns = self.span_ns.max(whole / (MOST_SAMPLES as i64 / 2));
            std::mem::take(&mut self.all)
                .into_iter()
                .for_each(|s| self.add(s));
        }
    }

    /// Whether the last one is long ago.
    pub fn is_due(&self, time: i64) -> bool {
        let last = self.all.last().map_or(i64::MIN, |s| s.time);
        time.saturating_sub(last) >= SAMPLE_EVERY_NS
    }
}
