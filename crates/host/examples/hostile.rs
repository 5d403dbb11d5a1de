//! Ten million forged datagrams (or as many as the first argument says; the second is the seed) into live
//! transfers, half of them over IPv6; prints the results: `cargo run --release -p gargalo-host --example hostile`.

#[path = "../tests/common/mod.rs"]
mod common;

use common::attack::attack;
use common::forge::NAMES;
use gargalo_testkit::{attack_of, resident};

fn main() {
    let (total, seed) = attack_of();
    for v6 in [false, true] {
        let start = std::time::Instant::now();
        let mut memory = Vec::new();
        let out = attack(v6, seed, total / 2, 50, &mut |_| memory.extend(resident()));
        let family = if v6 { "IPv6" } else { "IPv4" };
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{family}: {} datagrams forged in {seconds:.1} s ({:.0} s of virtual time)",
            out.injected,
            out.world.now.as_secs_f64()
        );
        let [up, down] = out.moved;
        println!("  the transfer was right to the last byte: {up} bytes up, {down} bytes down");
        for (name, n) in NAMES.iter().zip(out.forger.made) {
            println!("  {n:>9} {name}");
        }
        println!("  resident memory over time, MiB: {memory:?}");
        println!("  most connections at once: {}", out.most_connections);
        println!("  server: {:?}", out.world.hosts[1].stats());
    }
}
