//! Propagation delay, route changes, jitter, and the order of arrival.

use gargalo_settings::{Error, kinds, names, settings};
use gargalo_units::{Duration, Instant};
use rand_pcg::Pcg64;

use crate::chance::{normal, split, uniform, uniform_positive};
use crate::reorder::{Reorder, Reorderer};

kinds! {
    /// Propagation delay: the time from the departure of a packet's last byte to its arrival.
    pub enum Delay as "DelayMap", checked by Delay::in_order {
        plain {
            /// A constant delay.
            Constant(Duration);
        }
        tables {
            /// Pairs of an instant and the delay from then on (a route change); the first instant is 0s, the others
            /// increase. The delay at the time of departure applies to a packet. Packets keep their order unless
            /// the link reorders.
            "steps" => Steps(Vec<(Instant, Duration)>);
        }
    }
}

impl Default for Delay {
    fn default() -> Self {
        Self::Constant(Duration::ZERO)
    }
}

settings! {
    ///  Random variation of the delay, drawn for each packet independently: half the width of a uniform
    /// distribution, or
    /// a table that names another one. The total delay is never negative. A packet that would overtake an earlier one
    /// arrives with it instead, unless the link reorders, so that at high packet rates the mean delay grows towards
    /// the upper end of the distribution.
    pub struct Jitter: Copy as "JitterMap" | scale {
        /// Half the width of a uniform distribution, the standard deviation of the others.
        scale: Duration;
        /// Its shape; all have mean zero.
        distribution: JitterDistribution = JitterDistribution::Uniform;
    }
}

names! {
    /// Shape of the jitter; all have mean zero.
    pub enum JitterDistribution {
        /// Uniform between minus and plus the scale.
        Uniform = "uniform",
        /// Normal with the scale as standard deviation.
        Normal = "normal",
        /// Pareto with shape 3, shifted to mean zero and scaled to standard deviation 1: a heavy right tail; few
        /// packets arrive very late, most slightly early (at most 0.58 scales).
        Pareto = "pareto",
    }
}

impl Delay {
    /// The smallest delay at any time.
    pub fn minimum(&self) -> Duration {
        match self {
            Self::Constant(d) => *d,
            Self::Steps(steps) => steps.iter().map(|s| s.1).min().unwrap_or_default(),
        }
    }

    fn in_order(&self) -> Result<(), Error> {
        match self {
            Self::Constant(_) => Ok(()),
            Self::Steps(steps) => check_steps(steps.iter().map(|s| s.0)),
        }
    }
}

impl From<Duration> for Delay {
    fn from(delay: Duration) -> Self {
        Self::Constant(delay)
    }
}

/// Steps begin at zero and go forward.
pub(crate) fn check_steps(mut times: impl Iterator<Item = Instant>) -> Result<(), Error> {
    let error = |message: String| Error::of("steps", message);
    let Some(first) = times.next() else {
        return Err(error("there are no steps".to_owned()).help("give at least one at 0s"));
    };
    if first != Instant::ZERO {
        return Err(error(format!(
            "the first step is at {first}; it must be at 0s"
        )));
    }
    let mut last = first;
    for t in times {
        if t <= last {
            let message = format!("the step at {t} does not come after {last}");
            return Err(error(message).help("sort the steps"));
        }
        last = t;
    }
    Ok(())
}

/// What happens to packets of a link behind its queue: aggregation, delay, jitter, reordering.
#[derive(Clone, Debug)]
pub(crate) struct Propagation {
    /// The base delay at the last departure.
    current: Duration,
    /// All but a constant delay, if any: kept out of the common case.
    varying: Option<Box<Varying>>,
}

#[derive(Clone, Debug)]
struct Varying {
    steps: Vec<(Instant, Duration)>,
    next_step: usize,
    /// Packets leave at multiples of this time.
    aggregation: Option<Duration>,
    jitter: Option<(Jitter, Pcg64)>,
    reorder: Option<Reorderer>,
    latest: Instant,
}

impl Propagation {
    pub(crate) fn new(
        delay: &Delay,
        aggregation: Option<Duration>,
        jitter: Option<Jitter>,
        reorder: Option<&Reorder>,
        mut rng: Pcg64,
    ) -> Self {
        let jitter = jitter.filter(|j| !j.scale.is_zero());
        let aggregation = aggregation.filter(|time| !time.is_zero());
        let (jitter_rng, reorder_rng) = (split(&mut rng), split(&mut rng));
        let (current, steps) = match delay {
            Delay::Constant(d) => (*d, Vec::new()),
            Delay::Steps(s) => (s.first().map_or(Duration::ZERO, |s| s.1), s.clone()),
        };
        let constant =
            steps.len() <= 1 && aggregation.is_none() && jitter.is_none() && reorder.is_none();
        let varying = (!constant).then(|| {
            Box::new(Varying {
                steps,
                next_step: 1,
                aggregation,
                jitter: jitter.map(|j| (j, jitter_rng)),
                reorder: reorder.map(|r| Reorderer::new(r, reorder_rng)),
                latest: Instant::ZERO,
            })
        });
        Self { current, varying }
    }

    /// Whether a later departure never means an earlier arrival.
    pub(crate) fn keeps_order(&self) -> bool {
        self.varying.as_ref().is_none_or(|v| v.reorder.is_none())
    }

    /// The delay, if it is the same for all packets.
    #[inline]
    pub(crate) fn constant(&self) -> Option<Duration> {
        self.varying.is_none().then_some(self.current)
    }

    /// The arrival time of a packet that left at `departure`; departures do not decrease.
    #[inline]
    pub(crate) fn arrival(&mut self, departure: Instant) -> Instant {
        match &mut self.varying {
            None => departure + self.current,
            Some(v) => v.arrival(departure, &mut self.current),
        }
    }
}

impl Varying {
    fn arrival(&mut self, departure: Instant, current: &mut Duration) -> Instant {
        let departure = match self.aggregation {
            Some(time) => next_multiple(departure, time),
            None => departure,
        };
        while let Some((_, delay)) = self
            .steps
            .get(self.next_step)
            .filter(|(from, _)| *from <= departure)
        {
            *current = *delay;
            self.next_step += 1;
        }
        let mut delay = *current;
        if let Some((jitter, rng)) = &mut self.jitter {
            delay = jitter.apply(delay, rng);
        }
        let arrival = departure + delay;
        match &mut self.reorder {
            Some(r) => r.displace(departure, arrival),
            None => {
                self.latest = self.latest.max(arrival);
                self.latest
            }
        }
    }
}

/// The first multiple of a time, which is not zero, that is not before an instant.
fn next_multiple(at: Instant, of: Duration) -> Instant {
    let next = at.as_nanos().checked_next_multiple_of(of.as_nanos());
    next.map_or(Instant::MAX, Instant::from_nanos)
}

impl Jitter {
    fn apply(&self, delay: Duration, rng: &mut Pcg64) -> Duration {
        let x = match self.distribution {
            JitterDistribution::Uniform => 2.0 * uniform(rng) - 1.0,
            JitterDistribution::Normal => normal(rng),
            // Shape 3: mean 3/2, variance 3/4.
            JitterDistribution::Pareto => {
                (1.0 / libm::cbrt(uniform_positive(rng)) - 1.5) / libm::sqrt(0.75)
            }
        };
        let offset = Duration::from_secs_f64(x.abs() * self.scale.as_secs_f64());
        if x < 0.0 {
            delay - offset
        } else {
            delay + offset
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gargalo_settings::Setting;

    const MS: Duration = Duration::from_millis(1);

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    #[test]
    fn a_shorter_route_does_not_reorder() {
        let delay = Delay::Steps(vec![
            (ms(0), Duration::from_millis(50)),
            (ms(10), Duration::from_millis(20)),
        ]);
        delay.check().unwrap();
        let mut p = Propagation::new(&delay, None, None, None, Pcg64::new(1, 1));
        assert_eq!(p.arrival(ms(9)), ms(59));
        assert_eq!(p.arrival(ms(10)), ms(59));
        assert_eq!(p.arrival(ms(50)), ms(70));
        let reorder = Reorder {
            late: Some(MS),
            ..Reorder::new(0.0)
        };
        let mut p = Propagation::new(&delay, None, None, Some(&reorder), Pcg64::new(1, 1));
        assert!(!p.keeps_order());
        assert_eq!(p.arrival(ms(9)), ms(59));
        assert_eq!(p.arrival(ms(10)), ms(30));
    }

    #[test]
    fn aggregated_packets_leave_together_at_multiples_of_a_time() {
        let delay = Delay::Constant(Duration::from_millis(10));
        let every = Some(Duration::from_millis(4));
        let mut p = Propagation::new(&delay, every, None, None, Pcg64::new(1, 1));
        assert_eq!((p.constant(), p.keeps_order()), (None, true));
        let sent = [0, 1, 3, 4, 5, 9, 16].map(ms);
        assert_eq!(
            sent.map(|at| p.arrival(at)),
            [10, 14, 14, 14, 18, 22, 26].map(ms)
        );
        assert_eq!(p.arrival(Instant::MAX), Instant::MAX);
    }

    #[test]
    fn jitter_has_mean_zero_and_its_scale() {
        for (distribution, deviation) in [
            (JitterDistribution::Uniform, 1.0 / 3f64.sqrt()),
            (JitterDistribution::Normal, 1.0),
            (JitterDistribution::Pareto, 1.0),
        ] {
            let jitter = Jitter {
                distribution,
                scale: MS,
            };
            let mut rng = Pcg64::new(9, 9);
            let n = 400_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..n {
                let d = jitter.apply(Duration::from_secs(1), &mut rng);
                let x = (d.as_secs_f64() - 1.0) * 1e3;
                sum += x;
                squares += x * x;
            }
            let n = f64::from(n);
            assert!((sum / n).abs() < 0.01, "{distribution:?} {}", sum / n);
            // The fourth moment of Pareto(3) is infinite: its sample deviation converges slowly.
            let got = (squares / n).sqrt();
            assert!(
                (got / deviation - 1.0).abs() < 0.15,
                "{distribution:?} {got}"
            );
        }
    }

    #[test]
    fn jitter_keeps_order_and_never_goes_back_in_time() {
        let jitter = Jitter {
            distribution: JitterDistribution::Normal,
            scale: Duration::from_millis(5),
        };
        let delay = Delay::Constant(MS);
        let mut p = Propagation::new(&delay, None, Some(jitter), None, Pcg64::new(1, 1));
        let mut last = Instant::ZERO;
        for i in 0..10_000 {
            let departure = Instant::from_nanos(i * 10_000);
            let arrival = p.arrival(departure);
            assert!(arrival >= last && arrival >= departure);
            last = arrival;
        }
    }

    #[test]
    fn steps_are_checked() {
        let steps = |s: &[u64]| {
            let steps = s.iter().map(|t| (ms(*t), MS));
            Delay::Steps(steps.collect()).check()
        };
        assert!(steps(&[0, 5, 9]).is_ok());
        assert!(steps(&[]).is_err());
        assert!(steps(&[1, 5]).is_err());
        assert!(steps(&[0, 5, 5]).is_err());
    }
}
