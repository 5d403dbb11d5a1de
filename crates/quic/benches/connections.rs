//! Memory and time of many connections: each completes its handshake, is idle or has sent a megabyte.
//!
//! `cargo bench -p gargalo-quic --bench connections [-- null]`; prints resident memory (Linux).

#[path = "../tests/pair/mod.rs"]
mod pair;

use std::time::Instant;

use gargalo_quic::{Config, Crypto, Realm};
use gargalo_units::Duration;
use pair::{CLIENT, Link, Pair, SERVER, init, ours, pair_in};

const CONNECTIONS: u64 = 1000;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:"));
    line.and_then(|l| l.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}

fn main() {
    // One kind a process: the second would be given what the first has freed.
    let null = std::env::args().any(|a| a == "null");
    let crypto = if null { Crypto::Null } else { Crypto::Tls };
    {
        let config = Config {
            crypto,
            ..Config::default()
        };
        let realm = Realm::new(1).unwrap();
        let before = resident_kib();
        let start = Instant::now();
        let mut pairs: Vec<Pair> = (0..CONNECTIONS)
            .map(|i| {
                let mut ends = [init(CLIENT, i), init(SERVER, i)];
                let port = 10_000 + i as u16;
                ends[0].local.set_port(port);
                ends[1].remote.set_port(port);
                let links = [Link::new(100, 10); 2];
                let mut p = pair_in(&realm, [&config; 2], &ours("cubic"), links, ends);
                p.keep = false;
                p.apps[CLIENT].to_send = vec![1000];
                p.run_until(Duration::from_secs(5), Pair::is_settled);
                p
            })
            .collect();
        let handshakes = start.elapsed().as_secs_f64();
        let idle = resident_kib();
        for p in &mut pairs {
            p.apps[CLIENT].bulk = 1_000_000;
            p.apps[SERVER].unchecked = true;
            p.poke();
            p.run_until(Duration::from_secs(5), Pair::is_settled);
        }
        let after = resident_kib();
        println!(
            "{crypto:?}: {CONNECTIONS} connections in {handshakes:.2} s; {} KiB each after the \
             handshake, {} KiB after a megabyte",
            (idle - before) / CONNECTIONS,
            (after - before) / CONNECTIONS
        );
    }
}
