//! Packets that are put ahead of their events make the results that they make with an event at the end of every link.

mod support;

use gargalo_flow::{FlowSpec, LinkSpec, Node, Outcome, Topology, TransportSpec};
use gargalo_link::queue::{CoDelConfig, FqCoDelConfig, PieConfig, QueueLimit};
use gargalo_link::{
    Delay, Jitter, JitterDistribution, LinkConfig, LossModel, QueueConfig, RateModel, Reorder,
};
use gargalo_sim::Recording;
use gargalo_tcp::Config;
use gargalo_units::{Bytes, Duration, Instant, Rate};
use gargalo_workload::{Cbr, Workload};
use rand::RngExt;
use rand_pcg::Pcg64;
use support::*;

/// Everything but the number of events.
fn results(out: &Outcome) -> String {
    format!(
        "{:?} {:?} {:?} {:?} {} {:?}",
        out.flows, out.links, out.samples, out.last, out.packets, out.end
    )
}

/// A link of any kind; coarse times make ties.
fn link(rng: &mut Pcg64) -> LinkConfig {
    let delay = Duration::from_millis([0, 0, 1, 5, 20][rng.random_range(0..5)]);
    let packets = rng.random_range(5..200);
    let queue = match rng.random_range(0..8) {
        0 => QueueConfig::CoDel(CoDelConfig::default()),
        1 => QueueConfig::FqCoDel(FqCoDelConfig::default()),
        2 => QueueConfig::Pie(PieConfig::default()),
        _ => QueueConfig::DropTail(QueueLimit::Packets(packets)),
    };
    let later = Instant::ZERO + Duration::from_millis(700);
    let rate = Rate::from_mbps([2, 8, 12, 100, 1000][rng.random_range(0..5)]);
    let rate = match rng.random_range(0..6) {
        0 => RateModel::Unlimited,
        1 => RateModel::Steps(vec![(Instant::ZERO, rate), (later, Rate::from_mbps(5))]),
        _ => RateModel::Constant(rate),
    };
    let delay = match rng.random_range(0..8) {
        0 => Delay::Steps(vec![
            (Instant::ZERO, delay),
            (later, delay + Duration::from_millis(3)),
        ]),
        _ => Delay::Constant(delay),
    };
    let jitter = Jitter {
        scale: Duration::from_millis(1),
        distribution: JitterDistribution::Uniform,
    };
    LinkConfig {
        rate,
        delay,
        queue,
        jitter: rng.random_bool(0.1).then_some(jitter),
        reorder: rng.random_bool(0.1).then(|| Reorder::new(0.05)),
        duplicate: if rng.random_bool(0.1) { 0.05 } else { 0.0 },
        loss: match rng.random_bool(0.2) {
            true => LossModel::Independent(0.01),
            false => LossModel::NONE,
        },
        outages: match rng.random_bool(0.1) {
            true => vec![(later, later + Duration::from_millis(200))],
            false => Vec::new(),
        },
        ..LinkConfig::default()
    }
}

/// Routers in a row, each with hosts.
fn topology(rng: &mut Pcg64) -> (Topology, u32) {
    let routers = rng.random_range(1..4);
    let hosts = rng.random_range(2..6);
    let node = |name: String, is_host| Node { name, is_host };
    let mut nodes: Vec<Node> = (0..hosts).map(|i| node(format!("h{i}"), true)).collect();
    nodes.extend((0..routers).map(|i| node(format!("r{i}"), false)));
    let mut ends: Vec<(u32, u32)> = (1..routers).map(|i| (hosts + i - 1, hosts + i)).collect();
    ends.extend((0..hosts).map(|h| (h, hosts + h % routers)));
    let links = ends.into_iter().enumerate().map(|(i, (a, b))| LinkSpec {
        name: format!("l{i}"),
        a,
        b,
        up: link(rng),
        down: link(rng),
    });
    let links = links.collect();
    (Topology { nodes, links }, hosts)
}

fn flows(rng: &mut Pcg64, hosts: u32) -> Vec<FlowSpec> {
    let mut made = Vec::new();
    for id in 0..rng.random_range(1..7) {
        let from = rng.random_range(0..hosts);
        let to = (from + rng.random_range(1..hosts)) % hosts;
        let control = ["reno", "cubic", "bbr"][rng.random_range(0..3)];
        let cbr = Cbr::constant(Rate::from_mbps(4), Bytes::new(1000));
        let (transport, workload) = match rng.random_range(0..4) {
            0 => (TransportSpec::Udp, Workload::Cbr(cbr)),
            1 => (tcp(control, Config::modern()), bulk(300_000)),
            _ => (tcp(control, Config::modern()), ENDLESS),
        };
        let mut one = flow(id, from, to, transport, workload);
        one.start = Instant::ZERO + Duration::from_millis(100 * rng.random_range(0..3));
        if rng.random_bool(0.3) {
            one.stop = Some(Instant::ZERO + Duration::from_millis(1_000));
        }
        made.push(one);
    }
    made
}

fn world(seed: u64, every_event: bool) -> Option<Outcome> {
    let mut rng = Pcg64::new(u128::from(seed), 7);
    let (topology, hosts) = topology(&mut rng);
    let flows = flows(&mut rng, hosts);
    let mut settings = settings(seed, 2.0);
    settings.every_event = every_event;
    settings.recording = Recording {
        interval: Some(Duration::from_millis(10)),
        flows: true,
        links: true,
        events: true,
        ..Recording::default()
    };
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    settings.measure = rng.random_bool(0.5).then(|| (at(500), at(1_500)));
    let mut world = gargalo_sim::World::new(topology, settings).unwrap();
    for f in flows {
        world.add_flow(f).unwrap();
    }
    // A flow over links that take no time is refused.
    world.run(&mut |_| std::ops::ControlFlow::Continue(())).ok()
}

#[test]
fn packets_ahead_change_no_result() {
    let (mut events, mut ahead) = (0, 0);
    let mut ran = 0;
    for seed in 0..100 {
        let (every, fewer) = (world(seed, true), world(seed, false));
        assert_eq!(every.is_some(), fewer.is_some(), "seed {seed}");
        let (Some(every), Some(fewer)) = (every, fewer) else {
            continue;
        };
        assert!(results(&every) == results(&fewer), "seed {seed}");
        events += every.events;
        ahead += fewer.events;
        ran += 1;
    }
    assert!(ran > 80, "{ran}");
    assert!(ahead < events * 19 / 20, "{ahead} of {events}");
}
