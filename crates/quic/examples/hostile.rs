//! Ten million packets (or as many as the first argument says; the second is the seed) that no honest peer
//! sends, half of them by somebody without keys, half by a peer that has them; prints what came of it:
//! `cargo run --release -p gargalo-quic --example hostile`.

#[path = "../tests/pair/mod.rs"]
mod pair;

use pair::abuse::NAMES;
use pair::attack::{OUTSIDE, attack};

/// Resident memory in MiB, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}

fn main() {
    let mut args = std::env::args().skip(1);
    let total = args
        .next()
        .map_or(10_000_000, |n| n.parse().expect("a number of packets"));
    let seed = args.next().map_or(1, |n| n.parse().expect("a seed"));
    let mut memory = Vec::new();
    let out = attack(seed, total, &mut || memory.extend(resident()));
    println!(
        "without keys: {} datagrams; {} honest connections, every byte arrived; most answers to one: {}",
        out.outside.iter().sum::<u64>(),
        out.honest,
        out.most_answers
    );
    for (name, n) in OUTSIDE.iter().zip(out.outside) {
        println!("  {n:>9} {name}");
    }
    println!(
        "with keys: {} packets in {} connections, of which {} ended",
        out.inside.iter().sum::<u64>(),
        out.abused,
        out.ended
    );
    for (name, n) in NAMES.iter().zip(out.inside) {
        println!("  {n:>9} {name}");
    }
    println!(
        "resident memory, MiB: first {:?}, most {:?}, last {:?}",
        memory.first(),
        memory.iter().max(),
        memory.last()
    );
}
