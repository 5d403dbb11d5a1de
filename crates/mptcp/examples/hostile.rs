//! Ten million segments with forged or changed multipath options (or as many as the first argument says; the second
//! is the seed) into live transfers; prints the results: `cargo run --release -p gargalo-mptcp --example hostile`.
//! Attacks on a listening host with legitimate connections are in the example `join_attack` of gargalo-host.

#[path = "../tests/common/mod.rs"]
mod common;

use common::attack::attack;
use common::forge::NAMES;
use gargalo_testkit::{attack_of, resident};

fn main() {
    let (total, seed) = attack_of();
    let mut memory = Vec::new();
    let out = attack(seed, total, &mut || memory.extend(resident()));
    println!(
        "{} segments forged, {} connections, {} bytes read and right",
        out.forged, out.connections, out.read
    );
    println!(
        "{} connections ended, {} stood still, {} fell back to plain TCP",
        out.ended, out.stalled, out.fallbacks
    );
    for (name, n) in NAMES.iter().zip(out.forger.made) {
        println!("  {n:>9} {name}");
    }
    println!(
        "most subflows at once: {}, most bytes out of order: {}",
        out.most_subflows, out.most_out_of_order
    );
    println!(
        "resident memory, MiB: first {:?}, most {:?}, last {:?}",
        memory.first(),
        memory.iter().max(),
        memory.last()
    );
}
