//! What a packet costs, part by part: prints packets of data, packets of all kinds and events of a run, whose
//! instructions `benches/budget.py` counts. Arguments: what is run, its links without a queue, virtual seconds.
//!
//! `udp` and `tcp` are twenty flows between two hosts, `+bottleneck` adds a link at which they queue. `queue` is the
//! queue of events alone.

#[path = "../tests/support/mod.rs"]
mod support;

use gargalo_flow::{LinkSpec, Node, Topology, TransportSpec};
use gargalo_sim::event::EventQueue;
use gargalo_tcp::Config;
use gargalo_units::{Bytes, Duration, Instant, Rate};
use gargalo_workload::{Cbr, Workload};
use support::{ENDLESS, flow, pipe, run, settings, tcp};

const FLOWS: u64 = 20;
/// Mbit/s, which the datagrams of all flows take to nine tenths.
const BOTTLENECK: u64 = 100;
/// Bytes of a datagram: with its headers as long as a full segment.
const DATAGRAM: u64 = 1472;

/// Routers in a row between two hosts.
fn chain(links: u32, bottleneck: bool) -> Topology {
    let node = |name: String, is_host| Node { name, is_host };
    let mut nodes = vec![node("sender".into(), true), node("receiver".into(), true)];
    let fast = pipe(
        Rate::from_mbps(100 * BOTTLENECK),
        Duration::from_millis(1),
        100_000,
    );
    let slow = pipe(Rate::from_mbps(BOTTLENECK), Duration::from_millis(20), 250);
    let mut all = vec![fast; links as usize];
    if bottleneck {
        all.insert(all.len() / 2, slow);
    }
    let last = all.len() - 1;
    let mut a = 0;
    let links = all.into_iter().enumerate().map(|(i, config)| {
        let b = match i == last {
            true => 1,
            false => {
                nodes.push(node(format!("router{i}"), false));
                nodes.len() as u32 - 1
            }
        };
        let link = LinkSpec {
            name: format!("link{i}"),
            a,
            b,
            up: config.clone(),
            down: config,
        };
        a = b;
        link
    });
    let links = links.collect();
    Topology { nodes, links }
}

fn network(what: &[&str], links: u32, seconds: f64) {
    let datagrams = || {
        let rate = Rate::from_bps(Rate::from_mbps(BOTTLENECK).as_bps() / FLOWS * 9 / 10);
        let cbr = Workload::Cbr(Cbr::constant(rate, Bytes::new(DATAGRAM)));
        (TransportSpec::Udp, cbr)
    };
    let flows = (0..FLOWS).map(|id| {
        let (transport, workload) = match what.contains(&"udp") {
            true => datagrams(),
            false => (tcp("reno", Config::modern()), ENDLESS),
        };
        flow(id, 0, 1, transport, workload)
    });
    let topology = chain(links, what.contains(&"bottleneck"));
    let out = run(topology, settings(1, seconds), flows.collect());
    println!(
        "{} {} {}",
        out.links[0].sent_packets, out.packets, out.events
    );
}

/// Events of a queue in which a hundred wait.
fn queue(rounds: f64) {
    let mut queue = EventQueue::new();
    for target in 0..100 {
        queue.push(Instant::from_nanos(u64::from(target)), target);
    }
    let rounds = 1_000_000.0 * rounds;
    let mut random = 1_u64;
    for _ in 0..rounds as u64 {
        if let Some(entry) = queue.pop() {
            // A linear congruential generator (Knuth's MMIX): up to 2 ms, in a few instructions.
            random = random.wrapping_mul(6_364_136_223_846_793_005);
            random = random.wrapping_add(1_442_695_040_888_963_407);
            queue.push(
                entry.time() + Duration::from_nanos(random >> 43),
                entry.target(),
            );
        }
    }
    println!("0 0 {rounds}");
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, links, seconds] = &args[..] else {
        panic!("give what is run, the number of links without a queue, and virtual seconds");
    };
    let seconds = seconds.parse().expect("seconds");
    match what.as_str() {
        "queue" => queue(seconds),
        what => {
            let what: Vec<&str> = what.split('+').collect();
            network(&what, links.parse().expect("a number of links"), seconds);
        }
    }
}
