//! Networks in which nothing takes time: what has an end arrives at once, what has none is refused, and
//! the caller is asked all the while.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::support::{ENDLESS, bulk, flow, settings, simple, tcp};
use gargalo_flow::{FlowSpec, MptcpSpec, Outcome, Phase, Registered, Topology, TransportSpec};
use gargalo_link::{Delay, LinkConfig};
use gargalo_mptcp::path_manager::Registered as PathManager;
use gargalo_mptcp::scheduler::Registered as Scheduler;
use gargalo_sim::{BuildError, World};
use gargalo_tcp::Config;
use gargalo_units::{Bytes, Duration, Instant};
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

fn reno() -> Arc<Registered> {
    Arc::new(Registered::new("reno", gargalo_cc::Params::default()).unwrap())
}

fn mptcp() -> TransportSpec {
    let config = gargalo_mptcp::Config {
        tcp: config().into(),
        scheduler: Arc::new(Scheduler::new("round-robin", Default::default()).unwrap()),
        path_manager: Arc::new(PathManager::new("full-mesh", Default::default()).unwrap()),
        ..gargalo_mptcp::Config::default()
    };
    TransportSpec::Mptcp(Box::new(MptcpSpec {
        config: config.into(),
        congestion: reno(),
        tls: None,
        links: None,
        backups: Vec::new(),
        gateways: Vec::new(),
        changes: Vec::new(),
    }))
}

#[test]
fn a_flow_without_an_end_is_refused_where_nothing_takes_time() {
    for transport in [tcp("cubic", config()), mptcp()] {
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
