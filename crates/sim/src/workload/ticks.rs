//! Packets at a constant rate, all the time or in on periods.

use gargalo_units::{Bytes, Duration, Instant, Rate};
use rand::{Rng, RngExt};
use rand_pcg::Pcg64;

use super::Action;

/// Length of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Always the same.
    Fixed(Duration),
    /// Exponentially distributed with this mean.
    Exponential(Duration),
}

impl Period {
    /// Draws a length.
    pub fn draw<R: Rng>(&self, rng: &mut R) -> Duration {
        match self {
            Self::Fixed(d) => *d,
            Self::Exponential(mean) => exponential(*mean, rng),
        }
    }
}

impl Period {
    /// Mean length.
    pub const fn mean(&self) -> Duration {
        match self {
            Self::Fixed(d) | Self::Exponential(d) => *d,
        }
    }
}

/// An exponentially distributed span with the given mean, by inversion.
pub fn exponential<R: Rng>(mean: Duration, rng: &mut R) -> Duration {
    let u: f64 = rng.random();
    mean.mul_f64(-libm::log(1.0 - u))
}

/// State of a constant-rate or on-off workload.
#[derive(Debug)]
pub struct TickApp {
    packet: u64,
    spacing: Duration,
    periods: Option<(Period, Period)>,
    on_until: Instant,
}

impl TickApp {
    pub(super) fn new(rate: Rate, packet_size: Bytes, periods: Option<(Period, Period)>) -> Self {
        let on_until = match periods {
            Some(_) => Instant::ZERO,
            None => Instant::MAX,
        };
        Self {
            packet: packet_size.get(),
            spacing: packet_size / rate,
            periods,
            on_until,
        }
    }

    pub(super) fn tick(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        if now < self.on_until {
            return Action {
                write: self.packet,
                timer: Some(now + self.spacing),
                ..Action::default()
            };
        }
        let Some((on, off)) = self.periods else {
            return Action::default();
        };
        // The off period ends, or the flow begins: an on period starts after a silence.
        let start = if self.on_until == Instant::ZERO {
            now
        } else {
            now + off.draw(rng)
        };
        self.on_until = start + on.draw(rng) + Duration::from_nanos(1);
        Action {
            timer: Some(start),
            ..Action::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{App, Workload};

    #[test]
    fn on_off_keeps_its_mean_rate() {
        let workload = Workload::OnOff {
            rate: Rate::from_mbps(1),
            packet_size: Bytes::new(125),
            on: Period::Exponential(Duration::from_millis(100)),
            off: Period::Exponential(Duration::from_millis(300)),
        };
        let mut rng = crate::rng::stream(7, "t");
        let mut app = App::new(&workload, true, || crate::rng::stream(7, "sizes"));
        let mut now = Instant::ZERO;
        let mut sent = 0;
        let mut action = app.on_start(now, &mut rng);
        while now < Instant::ZERO + Duration::from_secs(1000) {
            sent += action.write;
            now = action.timer.unwrap();
            action = app.on_timer(now, &mut rng);
        }
        let mean = sent as f64 * 8.0 / 1000.0;
        // A quarter of 1 Mbit/s: 2,500 periods give a standard error of about 2%.
        assert!((mean - 250_000.0).abs() < 20_000.0, "mean rate {mean}");
    }
}
