//! Two random paths compared with the better one of them alone, with several receive buffers; exits 1 when a pair
//! stays below 95% (where losses are random, in the mean of five runs): `cargo run --release -p gargalo-mptcp
//! --example path_pairs -- [pairs] [first seed] [scheduler]`.

#[path = "../tests/common/mod.rs"]
mod common;

use std::process::ExitCode;

use common::pairs::{BUFFERS, Pair};

/// Required goodput of both together, relative to the better one alone.
const BOUND: f64 = 0.95;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let n: u64 = args
        .next()
        .map_or(200, |n| n.parse().expect("a number of pairs"));
    let first: u64 = args.next().map_or(0, |n| n.parse().expect("a seed"));
    let name = args.next().unwrap_or("window-aware".to_owned());
    let mut below = 0;
    let columns = BUFFERS.iter().map(|b| Some(*b)).chain([None]);
    for buffer in columns {
        let mut ratios: Vec<f64> = Vec::new();
        let mut gains: Vec<f64> = Vec::new();
        for seed in first..first + n {
            let pair = Pair::random(seed);
            let pair = buffer.map_or(pair, |b| pair.with_buffer(b));
            let outcome = pair.judge(&name, BOUND);
            let [a, b] = outcome.single;
            ratios.push(outcome.ratio());
            gains.push(outcome.both / (a + b));
            if outcome.ratio() < BOUND {
                below += 1;
                println!(
                    "below: {pair}: alone {a:.2} and {b:.2} Mbit/s, together {:.2}: {:.3}",
                    outcome.both,
                    outcome.ratio()
                );
            }
        }
        let quantile = |values: &mut Vec<f64>, f: f64| {
            values.sort_by(f64::total_cmp);
            values[((values.len() - 1) as f64 * f) as usize]
        };
        let buffer = buffer.map_or("random".to_owned(), |b| format!("{} kB", b / 1000));
        let r = [0.0, 0.05, 0.25, 0.5, 1.0].map(|f| quantile(&mut ratios, f));
        println!(
            "{name}, {n} pairs, buffer {buffer}: of the better alone: least {:.3}, 5% {:.3}, quarter {:.3}, median \
             {:.3}, most {:.3}; of the sum: median {:.3}",
            r[0],
            r[1],
            r[2],
            r[3],
            r[4],
            quantile(&mut gains, 0.5)
        );
    }
    println!("{below} below {BOUND}");
    if below == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
