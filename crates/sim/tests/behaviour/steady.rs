//! Alone on a link that does not change.

use super::*;

#[test]
fn fills_a_clean_link() {
    each(|name, traits| {
        let out = alone(name, bottleneck(name, RATE, RTT, BDP), 40.0, ENDLESS);
        within(
            "utilisation",
            utilisation(&out, RATE, 10.0, 40.0),
            traits.fills,
        )
    });
}

#[test]
fn holds_the_queue_it_is_known_for() {
    each(|name, traits| {
        let end = 2.0 * traits.settled;
        let out = alone(name, bottleneck(name, RATE, RTT, 4 * BDP), end, ENDLESS);
        let queue = 1e3 * median_queue(&out, traits.settled, end);
        within("median queueing delay in ms", queue, traits.queue)
    });
}
