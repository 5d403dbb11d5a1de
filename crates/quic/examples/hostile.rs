//! Ten million packets (or as many as the first argument says; the second is the seed) of malicious peers, half of
//! them without keys, half with keys; prints the results: `cargo run --release -p gargalo-quic --example hostile`.

#[path = "../tests/pair/mod.rs"]
mod pair;

use gargalo_testkit::{attack_of, resident};
use pair::abuse::NAMES;
use pair::attack::{OUTSIDE, attack};

fn main() {
    let (total, seed) = attack_of();
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
