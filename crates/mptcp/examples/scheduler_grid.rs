//! A scheduler on a grid of 500 random pairs of paths, 6 receive buffers and 4 congestion controls: cells in
//! which it has less than 0.98 of the best path alone, or in which another scheduler has over 5% more.
//!
//! `cargo run --release -p gargalo-mptcp --example scheduler_grid -- [--sample N] [--seed S]
//! [--scheduler NAME] [--control NAME] [--alone] [--jobs N] [--list]`: a sample of N cells drawn by the seed
//! (all 12,000 without; that takes hours), `--alone` leaves the other schedulers out, `--list` prints each
//! cell. Exits with 1 if a cell misses a bound.

#[path = "../tests/common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::process::ExitCode;

use common::grid::{BUFFERS, CONTROLS, OF_BEST_PATH, OF_OTHERS, Outcome, outcomes, sample};
use gargalo_mptcp::scheduler::DEFAULT;

/// Worst cells that are shown for each bound.
const SHOWN: usize = 12;

struct Options {
    sample: usize,
    seed: u64,
    scheduler: String,
    control: Option<String>,
    alone: bool,
    jobs: usize,
    list: bool,
}

impl Options {
    fn read() -> Self {
        let mut o = Self {
            sample: usize::MAX,
            seed: 0,
            scheduler: DEFAULT.to_owned(),
            control: None,
            alone: false,
            jobs: 1,
            list: false,
        };
        let mut args = std::env::args().skip(1);
        while let Some(name) = args.next() {
            let mut value = || {
                args.next()
                    .unwrap_or_else(|| panic!("{name} needs a value"))
            };
            match name.as_str() {
                "--sample" => o.sample = value().parse().expect("a number of cells"),
                "--seed" => o.seed = value().parse().expect("a seed"),
                "--scheduler" => o.scheduler = value(),
                "--control" => o.control = Some(value()),
                "--jobs" => o.jobs = value().parse().expect("a number of threads"),
                "--alone" => o.alone = true,
                "--list" => o.list = true,
                _ => panic!("{name} is no option: see the head of the source"),
            }
        }
        o
    }
}

fn run(o: &Options) -> Vec<Outcome> {
    let cells = sample(o.sample, o.seed, o.control.as_deref());
    outcomes(&cells, o.jobs, |i| {
        let outcome = Outcome::of(i, &o.scheduler, o.alone);
        if o.list {
            println!("{outcome}");
        }
        outcome
    })
}

/// How many cells fall below a bound, and the worst of them.
fn judge(outcomes: &mut [Outcome], what: &str, bound: f64, ratio: fn(&Outcome) -> f64) -> usize {
    outcomes.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let below = outcomes.partition_point(|o| ratio(o) < bound);
    let share = 100.0 * below as f64 / outcomes.len() as f64;
    println!("{below} cells ({share:.1}%) below {bound} of {what}");
    for o in &outcomes[..below.min(SHOWN)] {
        println!("  {o}");
    }
    below
}

fn main() -> ExitCode {
    let o = Options::read();
    let mut outcomes = run(&o);
    println!("{}, {} cells", o.scheduler, outcomes.len());
    let mut below = judge(&mut outcomes, "the best path alone", OF_BEST_PATH, |o| {
        o.of_path()
    });
    if !o.alone {
        below += judge(&mut outcomes, "another scheduler", OF_OTHERS, |o| {
            o.of_other()
        });
        let mut by: BTreeMap<&str, usize> = BTreeMap::new();
        for b in outcomes.iter().filter(|b| b.of_other() < OF_OTHERS) {
            *by.entry(b.other.1).or_default() += 1;
        }
        println!("beaten most by: {by:?}");
    }
    for (i, name) in CONTROLS.iter().enumerate() {
        let of = |b: &&Outcome| b.index % CONTROLS.len() as u64 == i as u64;
        let (fit, all) = (
            outcomes.iter().filter(of).filter(|b| b.fits()),
            outcomes.iter().filter(of),
        );
        println!(
            "{name}: {} of {} cells meet the bounds",
            fit.count(),
            all.count()
        );
    }
    for (i, buffer) in BUFFERS.iter().enumerate() {
        let of = |b: &&Outcome| b.index / CONTROLS.len() as u64 % BUFFERS.len() as u64 == i as u64;
        let (fit, all) = (
            outcomes.iter().filter(of).filter(|b| b.fits()),
            outcomes.iter().filter(of),
        );
        println!(
            "buffer {buffer:?}: {} of {} cells meet the bounds",
            fit.count(),
            all.count()
        );
    }
    println!(
        "{} of {} cells meet the bounds",
        outcomes.iter().filter(|b| b.fits()).count(),
        outcomes.len()
    );
    ExitCode::from(u8::from(below > 0))
}
