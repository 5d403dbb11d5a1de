//! Speed of the engine with Multipath TCP: five paths of 200 Mbit/s each and one subflow on each, beside
//! five TCP flows on the same five paths; prints data packets per wall-clock second and the ratio.
//! Arguments: congestion control, scheduler, path manager, virtual seconds, repetitions, and `tcp` or `mptcp` to run
//! only one of them, for a profiler.

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Instant as Clock;

use gargalo_cc::{Params, Registered};
use gargalo_flow::{LinkSpec, MptcpSpec, Node, Outcome, Topology, TransportSpec};
use gargalo_mptcp::{path_manager, scheduler};
use gargalo_tcp::Config;
use gargalo_units::{Bytes, Duration, Rate, SenderCounters};
use support::{ENDLESS, flow, pipe, run, settings, tcp};

const PATHS: u32 = 5;

/// Pairs of hosts joined by links: all paths between one pair, or each between a pair of its own.
fn topology(pairs: u32) -> Topology {
    let link = pipe(Rate::from_mbps(200), Duration::from_millis(10), 340);
    let hosts = (0..2 * pairs).map(|i| Node {
        name: format!("host{i}"),
        is_host: true,
    });
    let links = (0..PATHS).map(|i| LinkSpec {
        name: format!("path{i}"),
        a: 2 * (i % pairs),
        b: 2 * (i % pairs) + 1,
        up: link.clone(),
        down: link.clone(),
    });
    Topology {
        nodes: hosts.collect(),
        links: links.collect(),
    }
}

fn report(name: &str, seconds: f64, run: impl Fn() -> Outcome) -> f64 {
    let start = Clock::now();
    let out = run();
    let wall = start.elapsed().as_secs_f64();
    let mut counters = SenderCounters::default();
    out.flows.iter().for_each(|f| counters += f.counters);
    let packets = counters.sent_packets.get().unwrap_or(0);
    let rate = packets as f64 / wall;
    let delivered: u64 = out.flows.iter().map(|f| f.delivered.get()).sum();
    println!(
        "{name:6} {packets} data packets in {wall:.3} s: {rate:.0} packets/s, {:.1} ns per event, \
         {} events, goodput {:.1} Mbit/s, {} lost",
        wall * 1e9 / out.events as f64,
        out.events,
        delivered as f64 * 8.0 / 1e6 / seconds,
        counters.lost_packets,
    );
    rate
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |i: usize, default: &str| args.get(i).cloned().unwrap_or_else(|| default.into());
    let congestion = arg(0, "cubic");
    let scheduler = arg(1, scheduler::DEFAULT);
    let manager = arg(2, path_manager::DEFAULT);
    let seconds: f64 = arg(3, "60").parse().expect("seconds");
    let repetitions: u32 = arg(4, "1").parse().expect("a number of repetitions");
    let config = Config {
        receive_buffer: Bytes::new(16_000_000),
        ..Config::modern()
    };
    let multipath = || {
        let config = gargalo_mptcp::Config {
            tcp: Arc::new(config.clone()),
            scheduler: Arc::new(
                scheduler::Registered::new(&scheduler, Params::new()).expect("a scheduler"),
            ),
            path_manager: Arc::new(
                path_manager::Registered::new(&manager, Params::new()).expect("a path manager"),
            ),
            ..gargalo_mptcp::Config::default()
        };
        let congestion = Registered::new(&congestion, Params::new()).expect("a congestion control");
        TransportSpec::Mptcp(Box::new(MptcpSpec {
            config: Arc::new(config),
            congestion: Arc::new(congestion),
            tls: None,
            links: None,
            backups: Vec::new(),
            gateways: Vec::new(),
            changes: Vec::new(),
        }))
    };
    let only = arg(5, "");
    for _ in 0..repetitions {
        let flows_of_tcp = || {
            report("tcp", seconds, || {
                let flows = (0..PATHS).map(|i| {
                    let transport = tcp(&congestion, config.clone());
                    flow(u64::from(i), 2 * i, 2 * i + 1, transport, ENDLESS)
                });
                run(topology(PATHS), settings(1, seconds), flows.collect())
            })
        };
        let mptcp = || {
            report("mptcp", seconds, || {
                let flows = vec![flow(0, 0, 1, multipath(), ENDLESS)];
                run(topology(1), settings(1, seconds), flows)
            })
        };
        match only.as_str() {
            "tcp" => _ = flows_of_tcp(),
            "mptcp" => _ = mptcp(),
            _ => {
                let many = flows_of_tcp();
                println!("ratio {:.2}", mptcp() / many);
            }
        }
    }
}
