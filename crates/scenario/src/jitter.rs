//! Start jitter: flows start later than written, by a time that follows from the seed.

use gargalo_flow::rng;
use gargalo_link::{Delay, LinkConfig, RateModel};
use gargalo_units::Duration;
use rand::Rng;

use crate::resolved::{Flow, Scenario};
use crate::streams::Streams;

/// Whether the network changes over time, so that the start matters even for a flow that meets no other.
fn varies(scenario: &Scenario) -> bool {
    let direction = |c: &LinkConfig| {
        let rate = match &c.rate {
            RateModel::Unlimited | RateModel::Constant(_) => false,
            RateModel::Steps(steps) => steps.len() > 1,
            RateModel::Trace(_) => true,
        };
        let delay = match &c.delay {
            Delay::Constant(_) => false,
            Delay::Steps(steps) => steps.len() > 1,
        };
        rate || delay || !c.outages.is_empty()
    };
    scenario
        .links
        .iter()
        .any(|l| direction(&l.up) || direction(&l.down))
}

/// The start jitter of each flow, in their order.
///
/// It is uniform between zero and [`Flow::start_jitter`], from a stream of its own for each flow. Where the network is
/// constant, the least of them is subtracted: moving all flows alike would only shift the clock. Where it changes with
/// time (traces, steps, outages), they are as drawn: a single flow meets it in another phase, too.
pub(crate) fn later(scenario: &Scenario, streams: &Streams) -> Vec<Duration> {
    let fixed = |f: &&Flow| f.arrivals.is_none() && f.source.is_none();
    let drawn: Vec<Duration> = scenario
        .flows
        .iter()
        .map(|f| {
            let most = f.start_jitter.as_nanos();
            if most == 0 {
                return Duration::ZERO;
            }
            let name = &streams.names[f.id as usize];
            let draw = rng::stream(scenario.seed, &format!("start/{name}")).next_u64();
            Duration::from_nanos(((u128::from(draw) * u128::from(most)) >> 64) as u64)
        })
        .collect();
    let of_fixed = scenario.flows.iter().filter(fixed);
    let least = match varies(scenario) {
        true => Duration::ZERO,
        false => of_fixed
            .map(|f| drawn[f.id as usize])
            .min()
            .unwrap_or_default(),
    };
    let moved = |(f, d): (&Flow, &Duration)| match f.start_jitter.is_zero() {
        true => Duration::ZERO,
        false => *d - least,
    };
    scenario.flows.iter().zip(&drawn).map(moved).collect()
}
