//! Ten thousand random networks (or as many as the first argument says, from the seed of the second on):
//! every byte arrives exactly once, or the connection ends with an explained error:
//! `cargo run --release -p gargalo-mptcp --example random_networks`.

#[path = "../tests/common/mod.rs"]
mod common;

fn main() {
    let mut args = std::env::args().skip(1);
    let n: u64 = args
        .next()
        .map_or(10_000, |n| n.parse().expect("a number of networks"));
    let first: u64 = args.next().map_or(0, |n| n.parse().expect("a seed"));
    let [multipath, plain, excused] = common::networks::run_all(first..first + n);
    println!(
        "{n} networks: everything arrived in {multipath} with multipath to the end, in {plain} after falling back to \
         plain TCP; {excused} ended in an error that the network explains"
    );
}
