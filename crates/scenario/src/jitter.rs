//! When flows really start: later than they say by a time that follows from the seed.

use gargalo_sim::rng;
use gargalo_units::Duration;
use rand::Rng;

use crate::resolved::{Flow, Scenario};

/// How much later than it says each flow starts, in their order.
///
/// Uniform between zero and [`Flow::start_jitter`], from a stream of its own for each flow, less the least of
/// them: to move all flows alike would change nothing but the clock.
pub(crate) fn later(scenario: &Scenario) -> Vec<Duration> {
    let fixed = |f: &&Flow| f.arrivals.is_none() && f.source.is_none();
    let drawn: Vec<Duration> = scenario
        .flows
        .iter()
        .map(|f| {
            let most = f.start_jitter.as_nanos();
            if most == 0 {
                return Duration::ZERO;
            }
            let draw = rng::stream(scenario.seed, &format!("start/{}", f.id)).next_u64();
            Duration::from_nanos(((u128::from(draw) * u128::from(most)) >> 64) as u64)
        })
        .collect();
    let of_fixed = scenario.flows.iter().filter(fixed);
    let least = of_fixed.map(|f| drawn[f.id as usize]).min();
    let least = least.unwrap_or_default();
    let moved = |(f, d): (&Flow, &Duration)| match f.start_jitter.is_zero() {
        true => Duration::ZERO,
        false => *d - least,
    };
    scenario.flows.iter().zip(&drawn).map(moved).collect()
}
