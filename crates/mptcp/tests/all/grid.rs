//! The default scheduler in cells like those of the grid (`examples/scheduler_grid.rs`): no worse than the best
//! path alone, and not beaten by another scheduler by more than 5%.

use crate::common::Path;
use crate::common::grid::{Cell, OF_BEST_PATH, OF_OTHERS, Outcome, outcomes, sample};
use gargalo_mptcp::scheduler::{DEFAULT, SCHEDULERS};

/// Rates in Mbit/s and delays in ms.
#[track_caller]
fn holds(paths: &[(u64, u64)], buffer: Option<u64>, control: &'static str) {
    let cell = Cell {
        paths: paths.iter().map(|p| Path::new(p.0, p.1)).collect(),
        buffer,
        control,
    };
    let (got, alone) = (cell.together(DEFAULT), cell.best_alone());
    println!("{cell}: {got:.2} Mbit/s, best path {alone:.2}");
    assert!(
        got >= OF_BEST_PATH * alone,
        "{cell}: {got:.2} of {alone:.2}"
    );
    for entry in SCHEDULERS.iter().filter(|e| e.name != DEFAULT) {
        let other = cell.together(entry.name);
        println!("  {} {other:.2}", entry.name);
        assert!(
            got >= OF_OTHERS * other,
            "{cell}: {got:.2}, {} {other:.2}",
            entry.name
        );
    }
}

/// As in `examples/mptcp-five-paths.toml`.
const FIVE: [(u64, u64); 5] = [(10, 40), (25, 25), (50, 15), (75, 10), (100, 5)];

#[test]
fn model_based_controls_use_both_paths() {
    holds(&[(50, 5), (50, 150)], None, "bbr");
    holds(&[(50, 5), (50, 150)], None, "bbr3");
}

#[test]
fn five_paths_in_small_buffers() {
    for buffer in [64_000, 256_000, 1_000_000] {
        holds(&FIVE, Some(buffer), "cubic");
    }
}

#[test]
fn a_narrow_near_path_beside_a_wide_far_one() {
    holds(&[(2, 5), (200, 100)], Some(1_000_000), "cubic");
    holds(&[(10, 4), (190, 70)], Some(256_000), "cubic");
    holds(&[(92, 29), (10, 7)], Some(128_000), "cubic");
}

#[test]
fn the_best_path_of_a_tiny_window_and_alike_ones() {
    holds(&[(300, 50), (50, 2)], Some(64_000), "cubic");
    holds(&[(94, 3), (45, 61)], Some(1_000_000), "reno");
    holds(&[(20, 20), (20, 20)], Some(4_000_000), "bbr");
}

/// Cells of the sample, its seed, and how many of them may miss a bound.
const SAMPLE: (usize, u64, usize) = (24, 1, 1);

#[test]
fn few_cells_of_a_sample_miss_a_bound() {
    let (count, seed, most) = SAMPLE;
    let cells = sample(count, seed, None);
    assert_eq!(cells.len(), count);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let run = |i| Outcome::of(i, DEFAULT, false);
    let mut done = outcomes(&cells, jobs, run);
    done.retain(|o| !o.fits());
    let list: Vec<String> = done.iter().map(Outcome::to_string).collect();
    assert!(done.len() <= most, "{} of {count}: {list:#?}", done.len());
}
