//! The goals of coupling, tested on a network of packets: no more than a fair share of a common bottleneck, and
//! traffic that moves away from congested paths.

use gargalo_units::Bytes;

use crate::testing::multipath::{Link, World};

const QUEUE: Bytes = Bytes::new(100_000);
const SEEDS: std::ops::Range<u64> = 1..6;
const LOSS_BASED: [&str; 3] = ["lia", "olia", "balia"];

/// Segments a second of every subflow, means of the seeds.
fn mean(links: &[u64], secs: u64, connect: impl Fn(&mut World)) -> Vec<Vec<f64>> {
    let one = |seed| {
        let links = links.iter().map(|&mbps| Link::new(mbps, QUEUE)).collect();
        let mut world = World::new(links, seed);
        connect(&mut world);
        world.run(20);
        world.run(secs)
    };
    let mut sum: Vec<Vec<f64>> = Vec::new();
    for rates in SEEDS.map(one) {
        sum.resize(rates.len(), Vec::new());
        for (s, r) in sum.iter_mut().zip(rates) {
            s.resize(r.len(), 0.0);
            for (s, r) in s.iter_mut().zip(r) {
                *s += r / SEEDS.count() as f64;
            }
        }
    }
    sum
}

/// The rate of a connection of `name` on a bottleneck that it shares with a Reno flow of 40 ms, relative to the
/// Reno flow's.
fn over_reno(name: &str, rtts_ms: &[u64]) -> f64 {
    let paths: Vec<(usize, u64)> = rtts_ms.iter().map(|&ms| (0, ms)).collect();
    let rates = mean(&[20], 150, |world| {
        world.connect(name, &paths);
        world.connect("reno", &[(0, 40)]);
    });
    rates[0].iter().sum::<f64>() / rates[1][0]
}

#[test]
fn two_subflows_on_a_shared_bottleneck_take_no_more_than_one_tcp() {
    let uncoupled = over_reno("reno", &[40, 40]);
    assert!(uncoupled > 1.8, "two flows take two shares: {uncoupled}");
    for name in LOSS_BASED {
        let ratio = over_reno(name, &[40, 40]);
        println!("{name}: {ratio:.2} of one TCP");
        assert!((0.85..=1.15).contains(&ratio), "{name}: {ratio}");
    }
}

#[test]
fn with_different_round_trip_times_they_take_what_one_tcp_would_on_the_best() {
    let one = over_reno("reno", &[20]);
    let uncoupled = over_reno("reno", &[20, 80]);
    assert!(uncoupled > 1.15 * one, "{uncoupled}, one: {one}");
    for name in LOSS_BASED {
        let ratio = over_reno(name, &[20, 80]) / one;
        println!("{name}: {ratio:.2} of one TCP");
        assert!((0.8..=1.15).contains(&ratio), "{name}: {ratio}");
    }
}

/// Two links of 20 Mbit/s, one Reno flow on the first and four on the second: rates of the
/// connection's subflows, and of the flows on the second.
fn disjoint(name: &str) -> (f64, f64, f64) {
    let rates = mean(&[20, 20], 100, |world| {
        world.connect(name, &[(0, 40), (1, 40)]);
        world.connect("reno", &[(0, 40)]);
        for _ in 0..4 {
            world.connect("reno", &[(1, 40)]);
        }
    });
    let others = rates[2..].iter().map(|r| r[0]).sum();
    (rates[0][0], rates[0][1], others)
}

#[test]
fn on_disjoint_paths_traffic_leaves_the_congested_one() {
    let share = |name: &str| {
        let (first, second, others) = disjoint(name);
        let share = second / (first + second);
        println!("{name}: {first:.0} + {second:.0} ({share:.3}), the others there {others:.0}");
        // Goal 1 of RFC 6356: not worse than a flow on the best path, which has half of it.
        assert!(first + second > 0.85 * 1250.0, "{name}");
        (share, others)
    };
    let reno = share("reno");
    let [lia, olia, balia] = LOSS_BASED.map(share);
    // A fifth of the second link and half of the first.
    assert!((0.25..0.35).contains(&reno.0));
    // Windows inversely proportional to the loss rates, and less where the optimum is nothing at all:
    // OLIA keeps little more than probes.
    assert!(lia.0 < 0.6 * reno.0);
    assert!(balia.0 < 0.95 * lia.0);
    assert!(olia.0 < 0.5 * lia.0);
    // Pareto: flows without another path gain what the connection gives up.
    assert!(reno.1 < lia.1 && lia.1 < balia.1 && balia.1 < olia.1);
}

/// Mean queueing delays of a connection alone on two links, in ms.
fn queues(name: &str, links: [u64; 2]) -> [f64; 2] {
    let links = links.map(|mbps| Link::new(mbps, QUEUE)).into();
    let mut world = World::new(links, 1);
    world.connect(name, &[(0, 40), (1, 40)]);
    world.run(20);
    for subflow in &mut world.connections[0] {
        subflow.queueing();
    }
    world.run(30);
    [0, 1].map(|i| 1e3 * world.connections[0][i].queueing())
}

#[test]
fn wvegas_makes_queueing_delays_equal() {
    for links in [[15, 5], [10, 10], [30, 10], [40, 20]] {
        let [a, b] = queues("wvegas", links);
        println!("{links:?}: {a:.2} and {b:.2} ms");
        assert!((0.85..=1.15).contains(&(a / b)), "{links:?}: {a} and {b}");
    }
    // Uncoupled, the same number of segments waits everywhere, three times as long at a third of the rate.
    let [a, b] = queues("vegas", [15, 5]);
    assert!(b > 2.5 * a, "{a} and {b}");
}

#[test]
fn wvegas_leaves_the_path_with_the_longer_queue() {
    let share = |name: &str| {
        let rates = mean(&[20, 20], 50, |world| {
            world.connect(name, &[(0, 40), (1, 40)]);
            world.connect(name, &[(1, 40)]);
        });
        println!("{name}: {rates:.0?}");
        rates[0][1] / (rates[0][0] + rates[0][1])
    };
    let (vegas, wvegas) = (share("vegas"), share("wvegas"));
    assert!(wvegas < 0.6 * vegas, "{wvegas}, uncoupled {vegas}");
}
