//! Worlds for tests.
#![allow(dead_code)]

use std::ops::ControlFlow;
use std::sync::Arc;

use gargalo_flow::{
    FlowSpec, LinkSpec, MptcpSpec, Node, Outcome, Registered, TcpSpec, Topology, TransportSpec,
};
use gargalo_link::queue::QueueLimit;
use gargalo_link::{Delay, LinkConfig, QueueConfig, RateModel};
use gargalo_mptcp::path_manager::Registered as PathManager;
use gargalo_mptcp::scheduler::Registered as Scheduler;
use gargalo_sim::{Recording, Settings, World};
use gargalo_tcp::Config;
use gargalo_units::{Bytes, Duration, Instant, Rate};
use gargalo_workload::{Bulk, Workload};

pub fn secs(s: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(s)
}

pub fn pipe(rate: Rate, delay: Duration, packets: u64) -> LinkConfig {
    LinkConfig {
        rate: RateModel::Constant(rate),
        delay: Delay::Constant(delay),
        queue: QueueConfig::DropTail(QueueLimit::Packets(packets)),
        ..LinkConfig::default()
    }
}

/// Two hosts, one link.
pub fn simple(up: LinkConfig, down: LinkConfig) -> Topology {
    let host = |name: &str| Node {
        name: name.into(),
        is_host: true,
    };
    Topology {
        nodes: vec![host("client"), host("server")],
        links: vec![LinkSpec {
            name: "link".into(),
            a: 0,
            b: 1,
            up,
            down,
        }],
    }
}

/// `pairs` hosts on each side, nodes in the order left…, right…, left router, right router; link 0
/// is the bottleneck.
pub fn dumbbell(pairs: u32, access: LinkConfig, bottleneck: LinkConfig) -> Topology {
    let (left_router, right_router) = (2 * pairs, 2 * pairs + 1);
    let mut nodes = Vec::new();
    let mut links = vec![LinkSpec {
        name: "bottleneck".into(),
        a: left_router,
        b: right_router,
        up: bottleneck.clone(),
        down: bottleneck,
    }];
    for (side, router) in [("left", left_router), ("right", right_router)] {
        for i in 0..pairs {
            let node = nodes.len() as u32;
            nodes.push(Node {
                name: format!("{side}{i}"),
                is_host: true,
            });
            links.push(LinkSpec {
                name: format!("{side}{i}"),
                a: node,
                b: router,
                up: access.clone(),
                down: access.clone(),
            });
        }
    }
    for name in ["router-left", "router-right"] {
        nodes.push(Node {
            name: name.into(),
            is_host: false,
        });
    }
    Topology { nodes, links }
}

pub fn tcp(congestion: &str, config: Config) -> TransportSpec {
    let congestion = Arc::new(Registered::new(congestion, gargalo_cc::Params::default()).unwrap());
    TransportSpec::Tcp(TcpSpec {
        config: config.into(),
        congestion,
        tls: None,
        misbehaviour: gargalo_flow::Misbehaviour::None,
    })
}

/// Multipath TCP over all pairs of addresses, with Reno.
pub fn mptcp(tcp: Config) -> TransportSpec {
    let config = gargalo_mptcp::Config {
        tcp: tcp.into(),
        scheduler: Arc::new(Scheduler::new("round-robin", Default::default()).unwrap()),
        path_manager: Arc::new(PathManager::new("full-mesh", Default::default()).unwrap()),
        ..gargalo_mptcp::Config::default()
    };
    TransportSpec::Mptcp(Box::new(MptcpSpec {
        config: config.into(),
        congestion: Arc::new(Registered::new("reno", gargalo_cc::Params::default()).unwrap()),
        tls: None,
        links: None,
        backups: Vec::new(),
        gateways: Vec::new(),
        changes: Vec::new(),
    }))
}

pub fn flow(id: u64, from: u32, to: u32, transport: TransportSpec, workload: Workload) -> FlowSpec {
    FlowSpec {
        id,
        label: format!("flow{id}").into(),
        stream: id.to_string().into(),
        from,
        to,
        path: 0,
        start: Instant::ZERO,
        stop: None,
        transport,
        workload: Arc::new(workload),
        arrivals: None,
        group: None,
        rows: true,
    }
}

pub fn bulk(bytes: u64) -> Workload {
    Workload::Bulk(Bulk::of(Bytes::new(bytes)))
}

pub const ENDLESS: Workload = Workload::Bulk(Bulk::ENDLESS);

pub fn settings(seed: u64, seconds: f64) -> Settings {
    Settings {
        seed,
        end: secs(seconds),
        stop_when_idle: true,
        recording: Recording::default(),
        measure: None,
        verify: false,
        every_event: false,
        captures: None,
        qlog: None,
    }
}

pub fn run(topology: Topology, settings: Settings, flows: Vec<FlowSpec>) -> Outcome {
    let mut world = World::new(topology, settings).unwrap();
    for f in flows {
        world.add_flow(f).unwrap();
    }
    world.run(&mut |_| ControlFlow::Continue(())).unwrap()
}
