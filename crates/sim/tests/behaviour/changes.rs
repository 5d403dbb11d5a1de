//! A path that changes under a flow.

use super::*;
use gargalo_link::{Delay, RateModel};

#[test]
fn survives_a_capacity_drop_to_a_tenth_and_takes_it_back() {
    each(|name, traits| {
        let mut link = bottleneck(name, RATE, RTT, BDP);
        let tenth = Rate::from_mbps(10);
        link.rate = RateModel::Steps(vec![
            (Instant::ZERO, RATE),
            (secs(20.0), tenth),
            (secs(40.0), RATE),
        ]);
        let out = alone(name, link, 70.0, ENDLESS);
        let low = utilisation(&out, tenth, 25.0, 40.0);
        let back = utilisation(&out, RATE, 55.0, 70.0);
        within("utilisation of a tenth", low, (0.9, 1.15))?;
        within("utilisation afterwards", back, traits.returns)
    });
}

#[test]
fn finds_its_way_when_the_route_doubles_the_round_trip_time() {
    each(|name, traits| {
        let mut link = bottleneck(name, RATE, RTT, 2 * BDP);
        link.delay = Delay::Steps(vec![(Instant::ZERO, RTT / 2), (secs(20.0), RTT)]);
        let out = alone(name, link, 60.0, ENDLESS);
        let after = utilisation(&out, RATE, 40.0, 60.0);
        within("utilisation", after, traits.reroutes)
    });
}
