//! Ten million segments (or as many as the first argument says; the second is the seed) of attackers reach a host
//! that listens for Multipath TCP: forged joins, and options that fill whole segments. Legitimate connections run
//! at the same time; prints the results: `cargo run --release -p gargalo-host --example join_attack`.

#[path = "../tests/common/mod.rs"]
mod common;

use std::process::ExitCode;

use common::join_attack::{KINDS, attack_joins};
use gargalo_testkit::{attack_of, resident};

/// Segments in a millisecond.
const BURST: u64 = 40;
/// The share of its goodput that the legitimate connection must keep.
const KEPT: f64 = 0.9;

fn main() -> ExitCode {
    let (total, seed) = attack_of();
    let alone = attack_joins(seed, 1_000, 0, &mut || {});
    let mut memory = Vec::new();
    let out = attack_joins(seed, total, BURST, &mut || memory.extend(resident()));
    for (name, n) in KINDS.iter().zip(out.made) {
        println!("{n:>9} {name}");
    }
    let [up, down] = out.moved;
    println!(
        "the honest connection: {up} bytes up, {down} bytes down, all right; {:.1} Mbit/s, without attack {:.1}",
        out.goodput, alone.goodput
    );
    println!("one that came later: {} bytes", out.moved_late);
    println!(
        "most subflows: {}, most connections: {}, joins refused: {}",
        out.most_subflows, out.most_connections, out.joins_refused
    );
    println!(
        "resident memory, MiB: first {:?}, most {:?}, last {:?}",
        memory.first(),
        memory.iter().max(),
        memory.last()
    );
    let holds = out.goodput > KEPT * alone.goodput && out.moved_late == 1 << 20;
    ExitCode::from(u8::from(!holds))
}
