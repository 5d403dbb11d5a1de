//! Packets that are put ahead of their events make the results that they make with an event at the end of every link.

use std::path::Path;

use crate::support::*;
use gargalo_flow::{
    CaptureEnds, CaptureSpec, FlowSpec, LinkSpec, Node, Outcome, Topology, TransportSpec,
};
use gargalo_link::queue::{
    CoDelConfig, DualPi2Config, FqCoDelConfig, PieConfig, QueueLimit, RedConfig, StepConfig,
};
use gargalo_link::{
    Delay, DeliveryTrace, Jitter, JitterDistribution, LinkConfig, LossModel, Policer, QueueConfig,
    RateModel, Reorder, Strip,
};
use gargalo_sim::Recording;
use gargalo_tcp::Config;
use gargalo_units::{Bytes, Duration, Instant, Rate};
use gargalo_workload::{Cbr, Workload};
use rand::RngExt;
use rand_pcg::Pcg64;

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
    let queue = match rng.random_range(0..14) {
        0 => QueueConfig::CoDel(CoDelConfig::default()),
        1 => QueueConfig::FqCoDel(FqCoDelConfig::default()),
        2 => QueueConfig::Pie(PieConfig::default()),
        3 => QueueConfig::DualPi2(DualPi2Config::default()),
        4 => QueueConfig::Red(RedConfig::default()),
        5 => QueueConfig::Step(StepConfig::default()),
        6 => QueueConfig::DropTail(QueueLimit::Bytes(Bytes::new(packets * 300))),
        7 => QueueConfig::DropTail(QueueLimit::Time(Duration::from_millis(packets / 5))),
        _ => QueueConfig::DropTail(QueueLimit::Packets(packets)),
    };
    let later = Instant::ZERO + Duration::from_millis(700);
    let rate = Rate::from_mbps([2, 8, 12, 100, 1000][rng.random_range(0..5)]);
    let rate = match rng.random_range(0..8) {
        0 => RateModel::Unlimited,
        2 => {
            let trace = DeliveryTrace::parse("1\n1\n2\n5\n5\n9\n").unwrap();
            RateModel::Trace(trace.into())
        }
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
    let policer = Policer {
        rate: Rate::from_mbps(6),
        burst: Bytes::new(15_000),
    };
    LinkConfig {
        rate,
        delay,
        queue,
        mtu: if rng.random_bool(0.05) { 1100 } else { 1500 },
        policer: rng.random_bool(0.05).then_some(policer),
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

/// Routers in a row or in a ring, each with hosts.
fn topology(rng: &mut Pcg64) -> (Topology, u32) {
    let routers = rng.random_range(1..5);
    let hosts = rng.random_range(2..6);
    let node = |name: String, is_host| Node { name, is_host };
    let mut nodes: Vec<Node> = (0..hosts).map(|i| node(format!("h{i}"), true)).collect();
    nodes.extend((0..routers).map(|i| node(format!("r{i}"), false)));
    let mut ends: Vec<(u32, u32)> = (1..routers).map(|i| (hosts + i - 1, hosts + i)).collect();
    if routers > 2 && rng.random_bool(0.5) {
        ends.push((hosts + routers - 1, hosts));
    }
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

/// A run of a random network; with `captured` some ends of some links are captured, in this file.
fn world(seed: u64, every_event: bool, captured: Option<&Path>) -> Option<Outcome> {
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
    settings.captures = captured.map(|path| {
        let some = topology.links.iter().filter(|_| rng.random_bool(0.3));
        CaptureSpec {
            path: path.into(),
            links: some.map(|l| l.name.clone()).collect(),
            ends: [CaptureEnds::From, CaptureEnds::To, CaptureEnds::Both][rng.random_range(0..3)],
            payload: false,
            comment: String::new(),
        }
    });
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
        let (every, fewer) = (world(seed, true, None), world(seed, false, None));
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

#[test]
fn a_capture_is_the_same_with_events_where_it_is_taken_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (mut events, mut fewer) = (0, 0);
    let (mut ran, mut bytes) = (0, 0);
    for seed in 0..100 {
        let go = |every_event| {
            let path = folder.path().join("captured");
            let out = world(seed, every_event, Some(&path))?;
            Some((out, std::fs::read(&path).unwrap()))
        };
        let (Some(every), Some(there)) = (go(true), go(false)) else {
            continue;
        };
        assert!(every.1 == there.1, "the capture of seed {seed}");
        assert!(results(&every.0) == results(&there.0), "seed {seed}");
        let without = world(seed, false, None).unwrap();
        assert!(results(&without) == results(&there.0), "seed {seed}");
        events += every.0.events;
        fewer += there.0.events;
        bytes += there.1.len();
        ran += 1;
    }
    assert!(ran > 80 && bytes > 1 << 20, "{ran} with {bytes} bytes");
    assert!(fewer < events * 97 / 100, "{fewer} of {events}");
}

/// Two hosts with this number of routers between them.
fn row(routers: u32, link: &LinkConfig) -> Topology {
    let node = |i| Node {
        name: format!("n{i}"),
        is_host: i < 2,
    };
    // The hosts are 0 and 1.
    let ends = (1..=routers).map(|i| (if i == 1 { 0 } else { i }, i + 1));
    let ends = ends.chain([(routers + 1, 1)]);
    let links = ends.map(|(a, b)| LinkSpec {
        name: format!("l{b}"),
        a,
        b,
        up: link.clone(),
        down: link.clone(),
    });
    Topology {
        nodes: (0..routers + 2).map(node).collect(),
        links: links.collect(),
    }
}

/// A packet has one event, at its host, and a third of one for each router more: links look whether something has come.
/// With an event for each link it has as many as links.
#[test]
fn routers_on_the_way_cost_no_events() {
    let plain = pipe(Rate::from_mbps(100), Duration::from_millis(2), 1000);
    let codel = LinkConfig {
        queue: QueueConfig::CoDel(CoDelConfig::default()),
        ..plain.clone()
    };
    for link in [plain, codel] {
        let per_packet = |routers, every_event| {
            let cbr = Cbr::constant(Rate::from_mbps(8), Bytes::new(972));
            let one = flow(0, 0, 1, TransportSpec::Udp, Workload::Cbr(cbr));
            let mut settings = settings(1, 1.0);
            settings.every_event = every_event;
            let out = run(row(routers, &link), settings, vec![one]);
            assert!(out.packets > 900);
            // Without the timer of the application.
            (out.events - out.packets) as f64 / out.packets as f64
        };
        for routers in [1, 2, 5, 8] {
            let (fewer, every) = (per_packet(routers, false), per_packet(routers, true));
            assert!(
                fewer < 1.01 + 0.34 * f64::from(routers - 1),
                "{fewer} at {routers} routers"
            );
            assert!(
                every > f64::from(routers) + 0.9,
                "{every} at {routers} routers"
            );
        }
    }
}

/// Packets that are put ahead into such a link, behind a router, lose the same options as those with an event.
#[test]
fn a_middlebox_takes_the_options_of_packets_that_are_ahead() {
    let plain = pipe(Rate::from_mbps(100), Duration::from_millis(2), 1000);
    for (strip, falls_back) in [(Strip::None, false), (Strip::All, true), (Strip::Syn, true)] {
        let go = |every_event| {
            let mut topology = row(1, &plain);
            topology.links[1].up.strip_mptcp = strip;
            let mut settings = settings(1, 20.0);
            settings.every_event = every_event;
            settings.recording.events = true;
            let one = flow(0, 0, 1, mptcp(Config::modern()), bulk(100_000));
            run(topology, settings, vec![one])
        };
        let fewer = go(false);
        assert!(results(&fewer) == results(&go(true)), "{strip:?}");
        assert!(fewer.flows[0].completion.is_some());
        let events = &fewer.samples.events;
        assert_eq!(
            events.iter().any(|e| e.kind == "fallback"),
            falls_back,
            "{strip:?}"
        );
    }
}

/// Three flows that send a datagram each at the same instants, which take a millisecond each at the last link.
fn bursts(
    last: LinkConfig,
    (interval, measure): (Option<Duration>, Option<(Instant, Instant)>),
    every_event: bool,
) -> Outcome {
    let access = pipe(Rate::from_mbps(1000), Duration::from_millis(1), 1000);
    let host = |name: &str, is_host| Node {
        name: name.into(),
        is_host,
    };
    let link = |name: &str, a, b, up: &LinkConfig| LinkSpec {
        name: name.into(),
        a,
        b,
        up: up.clone(),
        down: access.clone(),
    };
    let topology = Topology {
        nodes: vec![host("a", true), host("b", true), host("r", false)],
        links: vec![link("access", 0, 2, &access), link("last", 2, 1, &last)],
    };
    let flows = (0..3).map(|id| {
        let cbr = Cbr::constant(Rate::from_bps(155_520), Bytes::new(972));
        let mut one = flow(id, 0, 1, TransportSpec::Udp, Workload::Cbr(cbr));
        one.stop = Some(Instant::ZERO + Duration::from_millis(170));
        one
    });
    let mut settings = settings(1, 1.0);
    settings.every_event = every_event;
    settings.measure = measure;
    settings.recording = Recording {
        interval,
        links: true,
        ..Recording::default()
    };
    run(topology, settings, flows.collect())
}

#[test]
fn a_sample_at_the_instant_of_a_departure_delays_no_packet() {
    let mut last = pipe(Rate::from_mbps(8), Duration::from_millis(5), 100);
    last.queue = QueueConfig::CoDel(CoDelConfig::default());
    // Packets of 1000 bytes leave the first link each 8 us, from 1.008 ms on.
    let beat = Some(Duration::from_micros(8));
    for every_event in [true, false] {
        let quiet = bursts(last.clone(), (None, None), every_event);
        let sampled = bursts(last.clone(), (beat, None), every_event);
        assert_eq!(format!("{:?}", quiet.flows), format!("{:?}", sampled.flows));
    }
}

#[test]
fn an_edge_of_the_window_between_a_packet_and_its_departure_changes_nothing() {
    let mut last = pipe(Rate::from_mbps(8), Duration::from_millis(5), 100);
    last.queue = QueueConfig::CoDel(CoDelConfig::default());
    for us in (50_900..51_200).step_by(8) {
        let edge = Instant::ZERO + Duration::from_micros(us);
        let of = |every| bursts(last.clone(), (None, Some((edge, secs(1.0)))), every);
        assert_eq!(results(&of(true)), results(&of(false)), "{edge}");
    }
}
