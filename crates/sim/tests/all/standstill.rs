//! Networks in which nothing takes time: what has an end arrives at once, what has none is refused, and
//! the caller is asked all the while.

use std::ops::ControlFlow;

use crate::support::{ENDLESS, bulk, flow, mptcp, pipe, settings, simple, tcp};
use gargalo_flow::{FlowSpec, LinkSpec, Node, Outcome, Phase, Topology};
use gargalo_link::{Delay, LinkConfig, Policer};
use gargalo_sim::{BuildError, World};
use gargalo_tcp::Config;
use gargalo_units::{Bytes, Duration, Instant, Rate};
use gargalo_workload::Workload;

/// Two hosts and a link that takes no time, or only on the way back.
fn network(delay: Duration) -> Topology {
    let down = LinkConfig {
        delay: Delay::Constant(delay),
        ..LinkConfig::default()
    };
    simple(LinkConfig::default(), down)
}

fn config() -> Config {
    Config {
        receive_buffer: Bytes::new(1 << 20),
        ..Config::modern()
    }
}

fn cubic(workload: Workload) -> FlowSpec {
    flow(0, 0, 1, tcp("cubic", config()), workload)
}

fn try_run(topology: Topology, seconds: f64, spec: FlowSpec) -> Result<Outcome, BuildError> {
    let mut world = World::new(topology, settings(1, seconds)).unwrap();
    world.add_flow(spec).unwrap();
    world.run(&mut |_| ControlFlow::Continue(()))
}

#[test]
fn a_flow_without_an_end_is_refused_where_nothing_takes_time() {
    for transport in [tcp("cubic", config()), mptcp(config())] {
        let spec = flow(7, 0, 1, transport, ENDLESS);
        let name = format!("{:?}", spec.transport);
        match try_run(network(Duration::ZERO), 1.0, spec) {
            Err(BuildError::Standstill {
                id, links, at_s, ..
            }) => assert_eq!((id, links.as_str(), at_s), (7, "link", 0.0)),
            other => panic!("{name:.20}: {other:?}"),
        }
    }
}

#[test]
fn the_refusal_names_flow_links_and_keys() {
    let refused = try_run(network(Duration::ZERO), 1.0, cubic(ENDLESS)).unwrap_err();
    let text = refused.to_string();
    for part in [
        "flow0",
        "number 0",
        "over link",
        "delay or a rate",
        "workload.bulk.bytes",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_transfer_with_an_end_arrives_at_once() {
    // Much more than the flow without an end may get.
    let done = try_run(network(Duration::ZERO), 1.0, cubic(bulk(300 << 20))).unwrap();
    assert_eq!(done.flows[0].completion, Some(Duration::ZERO));
    assert_eq!(done.end, Instant::ZERO);
}

#[test]
fn a_delay_on_the_way_back_is_enough() {
    let done = try_run(network(Duration::from_millis(1)), 0.5, cubic(ENDLESS)).unwrap();
    assert!(done.flows[0].delivered > Bytes::new(64 << 20), "{done:?}");
    assert!(!done.interrupted);
}

#[test]
fn a_flow_that_only_its_window_limits_is_refused_above_any_simulated_rate() {
    let there_and_back = |ms| {
        let link = LinkConfig {
            delay: Delay::Constant(Duration::from_millis(ms)),
            ..LinkConfig::default()
        };
        simple(link.clone(), link)
    };
    // 64 MiB in 2 ms.
    let fast = flow(3, 0, 1, tcp("cubic", Config::modern()), ENDLESS);
    let refused = try_run(there_and_back(1), 10.0, fast).unwrap_err();
    let BuildError::NoRate { id, at_s, .. } = &refused else {
        panic!("{refused:?}");
    };
    assert!((*id, *at_s < 0.2) == (3, true), "{refused:?}");
    let text = refused.to_string();
    for part in ["flow3", "(link)", "a rate", "receive_buffer"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // 1 MiB in 20 ms.
    let done = try_run(there_and_back(10), 3.0, cubic(ENDLESS)).unwrap();
    assert!(done.flows[0].delivered > Bytes::new(100_000_000));
    // A transfer with an end may take all it can.
    let whole = flow(0, 0, 1, tcp("cubic", Config::modern()), bulk(100 << 20));
    let done = try_run(there_and_back(1), 10.0, whole).unwrap();
    assert!(done.flows[0].completion.is_some());
}

/// Three hosts: links from the first to the second, from the third to the first, and from the third to the second.
fn three(configs: [LinkConfig; 3]) -> Topology {
    let node = |name: &str| Node {
        name: name.into(),
        is_host: true,
    };
    let ends = [("there", 0, 1), ("back", 2, 0), ("other", 2, 1)];
    let links = ends
        .into_iter()
        .zip(configs)
        .map(|((name, a, b), config)| LinkSpec {
            name: name.into(),
            a,
            b,
            up: config.clone(),
            down: config,
        });
    Topology {
        nodes: ["a", "b", "c"].map(node).into(),
        links: links.collect(),
    }
}

/// A link without rate, with this delay and room for jumbo frames.
fn wide(ms: u64) -> LinkConfig {
    LinkConfig {
        delay: Delay::Constant(Duration::from_millis(ms)),
        mtu: 9_000,
        ..LinkConfig::default()
    }
}

fn jumbo(id: u64, (from, to): (u32, u32), window: u64, workload: Workload) -> FlowSpec {
    let config = Config {
        mss: 8_948,
        receive_buffer: Bytes::new(window),
        ..Config::modern()
    };
    flow(id, from, to, tcp("cubic", config), workload)
}

fn try_all(topology: Topology, seconds: f64, flows: Vec<FlowSpec>) -> Result<Outcome, BuildError> {
    let mut world = World::new(topology, settings(1, seconds)).unwrap();
    for f in flows {
        world.add_flow(f).unwrap();
    }
    world.run(&mut |_| ControlFlow::Continue(()))
}

#[test]
fn the_refusal_names_the_links_of_the_route_in_their_order() {
    // From the second host over the first to the third.
    let mut topology = three([1, 1, 1].map(wide));
    topology.links.pop();
    topology.nodes[0].is_host = false;
    let refused = try_all(topology, 1.0, vec![jumbo(5, (1, 2), 64 << 20, ENDLESS)]).unwrap_err();
    let BuildError::NoRate {
        links,
        id,
        bytes,
        within_s,
        at_s,
        ..
    } = &refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!((links.as_str(), *id), ("there, back", 5));
    // 10 Gbit/s for a second, at once or sooner.
    assert!(
        (1_250_000_001..1_500_000_000).contains(&bytes.get()),
        "{refused:?}"
    );
    assert!(within_s == at_s && *at_s < 1.0, "{refused:?}");
}

/// The limit is of bytes in a second, of flows without an end, over links without a rate: more than that in all may
/// arrive in a longer time, in a transfer, or over a fast link.
#[test]
fn neither_a_long_run_nor_a_transfer_nor_a_fast_link_is_a_race() {
    let fast = pipe(
        Rate::from_mbps(100_000),
        Duration::from_millis(5),
        1_000_000,
    );
    let fast = LinkConfig { mtu: 9_000, ..fast };
    let flows = vec![
        // 400 MB/s at the most.
        jumbo(0, (0, 1), 8 << 20, ENDLESS),
        jumbo(1, (2, 0), 64 << 20, bulk(1_400_000_000)),
        jumbo(2, (2, 1), 64 << 20, ENDLESS),
    ];
    let done = try_all(three([wide(10), wide(10), fast]), 4.0, flows).unwrap();
    let got: Vec<u64> = done.flows.iter().map(|f| f.delivered.get()).collect();
    assert!(
        got[0] > 1_300_000_000 && got[1] == 1_400_000_000 && got[2] > 3_000_000_000,
        "{got:?}"
    );
}

/// While a transfer arrives at one instant, what flows without an end had got before does not count.
#[test]
fn a_transfer_at_one_instant_is_no_fault_of_another_flow() {
    let rated = LinkConfig {
        mtu: 9_000,
        ..pipe(Rate::from_mbps(1_000), Duration::from_millis(5), 1_000)
    };
    let timeless = wide(0);
    let mut transfer = jumbo(1, (2, 0), 8 << 20, bulk(1_500_000_000));
    transfer.start = crate::support::secs(1.0);
    let flows = vec![jumbo(0, (0, 1), 8 << 20, ENDLESS), transfer];
    let done = try_all(three([rated.clone(), timeless, rated]), 1.1, flows).unwrap();
    assert!(
        done.flows[0].delivered > Bytes::new(80 << 20),
        "{:?}",
        done.flows[0]
    );
    assert_eq!(done.flows[1].completion, Some(Duration::ZERO));
}

/// A policer passes what it passes in time: a flow over it does not creep, nor does one beside it that takes time.
#[test]
fn a_policed_flow_does_not_creep_where_nothing_takes_time() {
    let policed = LinkConfig {
        policer: Some(Policer {
            rate: Rate::from_mbps(50),
            burst: Bytes::new(100_000),
        }),
        ..wide(0)
    };
    let rated = LinkConfig {
        mtu: 9_000,
        ..pipe(Rate::from_mbps(2_000), Duration::from_millis(1), 1_000)
    };
    let flows = vec![
        jumbo(0, (0, 1), 1 << 20, ENDLESS),
        jumbo(1, (2, 1), 8 << 20, ENDLESS),
    ];
    let done = try_all(three([policed, wide(1), rated]), 0.9, flows).unwrap();
    assert!(done.flows[0].delivered > Bytes::ZERO);
    assert!(done.flows[1].delivered > Bytes::new(100_000_000));
}

#[test]
fn a_world_that_was_stopped_does_nothing() {
    let mut world = World::new(network(Duration::from_millis(1)), settings(1, 1.0)).unwrap();
    world.add_flow(cubic(bulk(1 << 20))).unwrap();
    world.stop();
    let done = world.run(&mut |_| ControlFlow::Continue(())).unwrap();
    assert!(done.interrupted);
    assert_eq!(
        (done.packets, done.events, done.flows.len(), done.end),
        (0, 0, 0, Instant::ZERO)
    );
}

#[test]
fn the_caller_is_asked_by_work_and_not_by_time() {
    let mut world = World::new(network(Duration::ZERO), settings(1, 1.0)).unwrap();
    world.add_flow(cubic(bulk(64 << 20))).unwrap();
    let (mut before, mut most, mut asked) = (0, 0, 0);
    world
        .run(&mut |p| {
            assert_eq!((p.phase, p.now), (Phase::Running, Instant::ZERO));
            let work = p.packets + p.events;
            most = most.max(work - before);
            (before, asked) = (work, asked + 1);
            ControlFlow::Continue(())
        })
        .unwrap();
    // A thousand packets, and what one end may send at once.
    assert!(asked > 20 && most < 3_000, "{asked} times, {most} between");
    assert!(asked < 2 + before / 1_000, "{asked} times for {before}");
}

#[test]
fn the_caller_stops_it_in_the_middle_of_an_instant() {
    let mut world = World::new(network(Duration::ZERO), settings(1, 1.0)).unwrap();
    world.add_flow(cubic(ENDLESS)).unwrap();
    let done = world.run(&mut |_| ControlFlow::Break(())).unwrap();
    assert!(done.interrupted);
    assert!(done.packets < 3_000, "{} packets", done.packets);
    assert_eq!(done.flows.len(), 1);
}

#[test]
fn an_event_in_the_past_is_an_error_in_every_build() {
    let spec = FlowSpec {
        start: crate::support::secs(0.2),
        stop: Some(crate::support::secs(0.1)),
        ..cubic(ENDLESS)
    };
    match try_run(network(Duration::from_millis(1)), 1.0, spec) {
        Err(BuildError::TimeReversed { now_s, event_s, .. }) => {
            assert_eq!((now_s, event_s), (0.2, 0.1));
        }
        other => panic!("{other:?}"),
    }
}
