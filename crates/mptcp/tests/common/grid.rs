//! Cells of a grid of paths, buffers and congestion controls: the goodput of a scheduler in each, compared with the
//! best of its paths alone and with the other schedulers.
//!
//! A path alone is a connection with one subflow of the same stack: it carries the same options, so that both
//! goodputs include the overhead of MPTCP.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use gargalo_mptcp::scheduler::SCHEDULERS;
use gargalo_units::{Duration, Rate};
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::pairs::between;
use super::{Net, Path, config, scheduler};

/// Receive buffers of the grid in bytes; `None` is the default.
pub const BUFFERS: [Option<u64>; 6] = [
    Some(64_000),
    Some(128_000),
    Some(256_000),
    Some(1_000_000),
    Some(4_000_000),
    None,
];
/// Congestion controls of the grid.
pub const CONTROLS: [&str; 4] = ["cubic", "reno", "bbr", "bbr3"];
/// Pairs of paths in the grid.
pub const PAIRS: u64 = 500;
/// Required goodput of several paths, relative to the best one alone.
pub const OF_BEST_PATH: f64 = 0.98;
/// Required goodput of a scheduler, relative to any other.
pub const OF_OTHERS: f64 = 0.95;

/// Paths, a receive buffer and a congestion control.
#[derive(Clone, Debug)]
pub struct Cell {
    pub paths: Vec<Path>,
    pub buffer: Option<u64>,
    pub control: &'static str,
}

/// 1 to 300 Mbit/s, 1 to 150 ms one way, both log-uniform; 0.5 to 2 bandwidth-delay products of queue (at
/// least 20 packets).
fn random_path(rng: &mut Pcg64) -> Path {
    let rate = Rate::from_bps_f64(between(rng, 1e6, 300e6));
    let delay = Duration::from_secs_f64(between(rng, 1e-3, 150e-3));
    let product = (rate * (delay * 2)).get() as f64;
    let queue = ((product * between(rng, 0.5, 2.0)) as u64).max(30_000);
    Path {
        rate,
        delay,
        queue,
        ..Path::new(1, 1)
    }
}

impl Cell {
    /// The cells number `i` of all, below `PAIRS` times buffers times controls.
    pub fn of_grid(i: u64) -> Self {
        let (buffers, controls) = (BUFFERS.len() as u64, CONTROLS.len() as u64);
        let mut rng = Pcg64::new(u128::from(i / (buffers * controls)), 16);
        Self {
            paths: vec![random_path(&mut rng), random_path(&mut rng)],
            buffer: BUFFERS[(i / controls % buffers) as usize],
            control: CONTROLS[(i % controls) as usize],
        }
    }

    /// Goodput of a bulk transfer in Mbit/s over these paths: 4 s and 12 round trips of the longest path of
    /// the cell, after a start as long.
    fn goodput(&self, paths: &[Path], name: &str) -> f64 {
        let longest = self.paths.iter().map(|p| p.delay * 2).max();
        let time = Duration::from_secs(4) + longest.unwrap_or_default() * 12;
        let default = gargalo_tcp::Config::default().receive_buffer.get();
        let mut c = config(self.buffer.unwrap_or(default));
        c.scheduler = scheduler(name);
        Net::new(paths, c, self.control, 1).goodput(time, time)
    }

    /// Goodput of this scheduler over all paths.
    pub fn together(&self, name: &str) -> f64 {
        self.goodput(&self.paths, name)
    }

    /// Goodput of the best path alone.
    pub fn best_alone(&self) -> f64 {
        let alone = |p: &Path| self.goodput(std::slice::from_ref(p), "lowest-latency");
        self.paths.iter().map(alone).fold(0.0, f64::max)
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.control)?;
        for p in &self.paths {
            write!(
                f,
                " [{:.1} Mbit/s {:.1} ms queue {} kB]",
                p.rate.as_bps() as f64 * 1e-6,
                p.delay.as_secs_f64() * 1e3,
                p.queue / 1000,
            )?;
        }
        match self.buffer {
            Some(b) => write!(f, " buffer {} kB", b / 1000),
            None => write!(f, " default buffer"),
        }
    }
}

/// Cells drawn by a seed: at most `count`, of one congestion control or of all.
pub fn sample(count: usize, seed: u64, control: Option<&str>) -> Vec<u64> {
    let all = PAIRS * (BUFFERS.len() * CONTROLS.len()) as u64;
    let fits = |i: &u64| control.is_none_or(|c| c == Cell::of_grid(*i).control);
    let mut cells: Vec<u64> = (0..all).filter(fits).collect();
    cells.shuffle(&mut Pcg64::new(u128::from(seed), 17));
    cells.truncate(count);
    cells
}

/// The result of a scheduler in a cell, and its references.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub index: u64,
    /// Goodputs in Mbit/s: of the scheduler, of the best path alone, of the best of the others by name (zero if
    /// none of them was run).
    pub got: f64,
    pub alone: f64,
    pub other: (f64, &'static str),
}

impl Outcome {
    /// Runs a cell with a scheduler, over each path alone, and, unless `only`, with all other schedulers.
    pub fn of(index: u64, scheduler: &str, only: bool) -> Self {
        let cell = Cell::of_grid(index);
        let others = SCHEDULERS.iter().map(|e| e.name);
        let others = others.filter(|n| !only && *n != scheduler);
        let other = others
            .map(|n| (cell.together(n), n))
            .fold((0.0, ""), |a, b| if b.0 > a.0 { b } else { a });
        Self {
            index,
            got: cell.together(scheduler),
            alone: cell.best_alone(),
            other,
        }
    }

    pub fn of_path(&self) -> f64 {
        self.got / self.alone
    }

    pub fn of_other(&self) -> f64 {
        self.got / self.other.0
    }

    /// Whether it reaches the required goodputs.
    pub fn fits(&self) -> bool {
        self.of_path() >= OF_BEST_PATH && self.of_other() >= OF_OTHERS
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {}: {:.2} Mbit/s, best path {:.2} ({:.3}), {} {:.2} ({:.3})",
            self.index,
            Cell::of_grid(self.index),
            self.got,
            self.alone,
            self.of_path(),
            self.other.1,
            self.other.0,
            self.of_other()
        )
    }
}

/// Runs cells on `jobs` threads, in any order.
pub fn outcomes(cells: &[u64], jobs: usize, run: impl Fn(u64) -> Outcome + Sync) -> Vec<Outcome> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(&i) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = run(i);
                    done.lock().expect("no thread panics").push(outcome);
                }
            });
        }
    });
    done.into_inner().expect("no thread panics")
}
