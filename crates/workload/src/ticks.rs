//! Packets at a constant rate, continuously or in on periods.

use gargalo_settings::{Error, kinds, settings};
use gargalo_units::{Bytes, Duration, Instant, Rate};
use rand::{Rng, RngExt};
use rand_pcg::Pcg64;

use super::{Action, Application};

kinds! {
    /// Random length of a period.
    pub enum Period: Copy as "PeriodMap", checked by Period::possible {
        plain {
            /// A constant value.
            Fixed(Duration);
        }
        tables {
            /// Exponentially distributed with this mean.
            "exponential" => Exponential(Duration);
        }
    }
}

settings! {
    /// Packets at a constant rate.
    pub struct Cbr as "Cbr", checked by Cbr::possible {
        /// Payload rate: constant, or steps over time.
        rate: CbrRate;
        /// Payload of a packet.
        packet_size: Bytes = Bytes::new(1000), in Bytes::new(1)..=LARGEST_PAYLOAD;
    }
}

kinds! {
    /// Payload rate that changes.
    pub enum CbrRate as "CbrRateMap", checked by CbrRate::in_order {
        plain {
            /// A constant value.
            Constant(Rate);
        }
        tables {
            /// Pairs of an instant of the run and the rate from then on; the first instant is 0s. A rate of zero is
            /// a pause.
            "steps" => Steps(Vec<(Instant, Rate)>);
        }
    }
}

settings! {
    /// A constant rate in on periods, no packets in off periods.
    pub struct OnOff: Copy as "OnOff", checked by OnOff::possible {
        /// Payload rate while on.
        rate: Rate;
        /// Payload of a packet.
        packet_size: Bytes = Bytes::new(1000), in Bytes::new(1)..=LARGEST_PAYLOAD;
        /// Length of the on periods.
        on: Period;
        /// Length of the off periods.
        off: Period;
    }
}

/// Largest payload of a UDP datagram over IPv4.
pub(crate) const LARGEST_PAYLOAD: Bytes = Bytes::new(65_507);

impl Cbr {
    /// Always the same rate.
    pub const fn constant(rate: Rate, packet_size: Bytes) -> Self {
        Self {
            rate: CbrRate::Constant(rate),
            packet_size,
        }
    }

    fn possible(&self) -> Result<(), Error> {
        // The fastest: zero is a pause.
        let steps = self.rate.steps();
        let most = steps.iter().map(|s| s.1).max().unwrap_or(Rate::ZERO);
        spaced(most, self.packet_size)
    }
}

impl CbrRate {
    /// Pairs of an instant and the rate from then on; the first instant is the start.
    pub fn steps(&self) -> Vec<(Instant, Rate)> {
        match self {
            Self::Constant(rate) => vec![(Instant::ZERO, *rate)],
            Self::Steps(steps) => steps.clone(),
        }
    }

    fn in_order(&self) -> Result<(), Error> {
        let Self::Steps(steps) = self else {
            return Ok(());
        };
        if steps.first().is_none_or(|s| s.0 != Instant::ZERO) {
            let error = Error::of("steps", "the first step is not at 0s");
            return Err(error.help("begin with the rate at 0s"));
        }
        if steps.windows(2).any(|w| w[0].0 >= w[1].0) {
            let error = Error::of("steps", "a step does not come after the one before");
            return Err(error.help("sort the steps"));
        }
        Ok(())
    }
}

impl OnOff {
    fn possible(&self) -> Result<(), Error> {
        spaced(self.rate, self.packet_size)
    }
}

/// Checks that packets of this size at this rate are not sent at the same instant.
fn spaced(rate: Rate, packet_size: Bytes) -> Result<(), Error> {
    if rate.is_zero() {
        return Err(Error::of("rate", "a rate of zero").help("give a rate, like \"1Mbit/s\""));
    }
    if u128::from(rate.as_bps()) > u128::from(packet_size.bits()) * 1_000_000_000 {
        let error = Error::of("rate", "less than a nanosecond between two packets");
        return Err(error.help("give a lower rate or larger packets"));
    }
    Ok(())
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
    /// Mean length; of a fixed period its length.
    pub const fn mean(&self) -> Duration {
        match self {
            Self::Fixed(d) | Self::Exponential(d) => *d,
        }
    }

    fn possible(&self) -> Result<(), Error> {
        if self.mean().is_zero() {
            return Err(Error::new("a period of zero").help("give a length, like \"1s\""));
        }
        Ok(())
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
    /// Later changes of the spacing, latest first; [`Duration::MAX`] is a pause.
    later: Vec<(Instant, Duration)>,
    periods: Option<(Period, Period)>,
    on_until: Instant,
}

impl Application for TickApp {
    fn on_start(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        self.tick(now, rng)
    }
    fn on_timer(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        self.tick(now, rng)
    }
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
            later: Vec::new(),
            periods,
            on_until,
        }
    }

    /// Pairs of an instant and the rate from then on.
    pub(super) fn stepped(rate: &[(Instant, Rate)], packet_size: Bytes) -> Self {
        let spacing = |r: Rate| {
            if r.is_zero() {
                Duration::MAX
            } else {
                packet_size / r
            }
        };
        let mut app = Self::new(Rate::MAX, packet_size, None);
        app.later = rate.iter().rev().map(|(t, r)| (*t, spacing(*r))).collect();
        app
    }

    fn tick(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        while let Some((at, spacing)) = self.later.last()
            && *at <= now
        {
            self.spacing = *spacing;
            self.later.pop();
        }
        let step = self.later.last().map_or(Instant::MAX, |s| s.0);
        if self.spacing == Duration::MAX {
            return Action {
                timer: Some(step),
                ..Action::default()
            };
        }
        if now < self.on_until {
            return Action {
                write: self.packet,
                timer: Some(step.min(now + self.spacing)),
                ..Action::default()
            };
        }
        let Some((on, off)) = self.periods else {
            return Action::default();
        };
        // The off period ends, or the flow starts with an off period: an on period follows.
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
    use crate::{App, Workload};

    #[test]
    fn a_rate_changes_when_it_is_said_to_and_zero_is_a_pause() {
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        let workload = Workload::Cbr(Cbr {
            rate: CbrRate::Steps(vec![
                (at(0), Rate::from_bps(8000)),
                (at(10), Rate::ZERO),
                (at(20), Rate::from_bps(80_000)),
                (at(21), Rate::from_bps(8000)),
            ]),
            packet_size: Bytes::new(100),
        });
        let mut rng = crate::stream(7, "t");
        let mut app = App::new(&workload, true, || crate::stream(7, "sizes"));
        let mut sent = [0; 30];
        let mut action = app.on_start(Instant::ZERO, &mut rng);
        let mut now = Instant::ZERO;
        while now < at(30) {
            sent[now.as_secs_f64() as usize] += action.write;
            now = action.timer.unwrap();
            action = app.on_timer(now, &mut rng);
        }
        assert_eq!(sent[0..10], [1000; 10]);
        assert_eq!(sent[10..20], [0; 10]);
        assert_eq!((sent[20], sent[21]), (10_000, 1000));
    }

    #[test]
    fn steps_begin_at_zero_and_each_comes_after_the_one_before() {
        use gargalo_settings::Setting;
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        let steps = |times: &[u64]| {
            let steps = times.iter().map(|s| (at(*s), Rate::from_mbps(1)));
            CbrRate::Steps(steps.collect()).check()
        };
        assert!(steps(&[0, 1, 2]).is_ok());
        for wrong in [&[0, 2, 1][..], &[0, 1, 1], &[0, 0], &[1, 2], &[]] {
            assert!(steps(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn on_off_keeps_its_mean_rate() {
        let workload = Workload::OnOff(OnOff {
            rate: Rate::from_mbps(1),
            packet_size: Bytes::new(125),
            on: Period::Exponential(Duration::from_millis(100)),
            off: Period::Exponential(Duration::from_millis(300)),
        });
        let mut rng = crate::stream(7, "t");
        let mut app = App::new(&workload, true, || crate::stream(7, "sizes"));
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
