//! Data packets per second of both ends together, over a link of 1 Gbit/s and 20 ms.
//!
//! `cargo bench -p gargalo-quic`; prints wall-clock figures.

#[path = "../tests/pair/mod.rs"]
mod pair;

use std::time::Instant;

use gargalo_quic::{Config, Congestion, Crypto, Stack};
use gargalo_settings::{Switch, Window};
use gargalo_units::{Bytes as Size, Duration};
use pair::{CLIENT, Link, Pair, SERVER, ours, pair};

fn run(name: &str, crypto: Crypto, pacing: bool, congestion: &Congestion, total: u64) {
    let config = Config {
        crypto,
        pacing,
        datagram_size: 1252,
        mtu_discovery: Switch::Off,
        initial_window: Window::Bytes(Size::new(12_520)),
        ..Config::default()
    };
    let mut link = Link::new(1000, 10);
    link.buffer = 1_250_000;
    let mut p = pair(1, &config, congestion, link);
    p.keep = false;
    p.apps[CLIENT].bulk = total;
    p.apps[SERVER].unchecked = true;
    let start = Instant::now();
    p.run_until(Duration::from_secs(100), Pair::is_settled);
    let seconds = start.elapsed().as_secs_f64();
    let stats = p.ends[CLIENT].stats();
    let sent = stats.sender.sent_packets.get().unwrap_or(0);
    println!(
        "{name:12} {:8.0} data packets/s, {:.2} s wall, {:.0} Mbit/s virtual, {} lost",
        sent as f64 / seconds,
        seconds,
        total as f64 * 8.0 / (p.now - gargalo_units::Instant::ZERO).as_secs_f64() / 1e6,
        stats.sender.lost_packets
    );
}

fn main() {
    let total = std::env::var("MEGABYTES").map_or(500, |m| m.parse().unwrap()) * 1_000_000;
    let only = std::env::args().nth(1).filter(|a| !a.starts_with('-'));
    for (name, crypto, pacing, congestion) in [
        ("tls cubic", Crypto::Tls, true, ours("cubic")),
        ("tls bbr", Crypto::Tls, true, ours("bbr")),
        ("null cubic", Crypto::Null, true, ours("cubic")),
        ("null noq", Crypto::Null, true, Congestion::NoqCubic),
        ("null unpaced", Crypto::Null, false, ours("cubic")),
    ] {
        if only.as_ref().is_none_or(|o| name.contains(o.as_str())) {
            run(name, crypto, pacing, &congestion, total);
        }
    }
}
