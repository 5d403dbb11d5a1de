//! Runs targets without support of the compiler: the corpus, then a given number of mutations of it.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rand_pcg::Pcg64;

use crate::failure::{AtWork, again, hash};
use crate::{Target, mutate};

/// Runs targets; the inputs are the same for the same seed, number and corpus.
#[derive(Clone, Debug)]
pub struct Runner {
    /// Seed of the mutations.
    pub seed: u64,
    /// Number of generated inputs.
    pub inputs: u64,
    /// Directory for failing inputs.
    pub failures: PathBuf,
    /// An input that takes longer than this has failed, and the process ends.
    pub patience: Duration,
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Inputs of the corpus.
    pub kept: u64,
    /// Generated inputs.
    pub made: u64,
    /// Total bytes of all inputs.
    pub bytes: u64,
    /// Longest time that one input took.
    pub slowest: Duration,
}

impl Runner {
    /// Creates a runner with the target's own number of inputs.
    pub fn new(target: &Target) -> Self {
        Self {
            seed: 1,
            inputs: target.inputs,
            failures: PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/failures")),
            patience: Duration::from_secs(120),
        }
    }

    /// Runs the corpus first, then generated inputs.
    ///
    /// # Errors
    /// Returns a sentence that names the file of the failing input and the command that runs it again, or the file
    /// that could not be read or written.
    pub fn run(&self, target: &Target) -> Result<Report, String> {
        let dir = crate::corpus(target);
        let kept = read_all(&dir).map_err(|e| format!("cannot read {}: {e}", dir.display()))?;
        let made = (0..self.inputs).map(|i| {
            let stream = hash(target.name.as_bytes());
            let mut rng = Pcg64::new(u128::from(self.seed) << 64 | u128::from(i), stream.into());
            mutate::mutated(target, &kept, &mut rng)
        });
        let mut report = self.feed(target, kept.iter().cloned().chain(made))?;
        report.kept = kept.len() as u64;
        report.made = self.inputs;
        Ok(report)
    }

    /// Runs these files.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn replay(&self, target: &Target, files: &[PathBuf]) -> Result<Report, String> {
        let mut inputs = Vec::new();
        for f in files {
            inputs.push(fs::read(f).map_err(|e| format!("cannot read {}: {e}", f.display()))?);
        }
        let kept = inputs.len() as u64;
        let report = self.feed(target, inputs.into_iter())?;
        Ok(Report { kept, ..report })
    }

    fn feed(
        &self,
        target: &Target,
        inputs: impl Iterator<Item = Vec<u8>>,
    ) -> Result<Report, String> {
        let mut report = Report::default();
        let mut at_work = AtWork::new(&self.failures, target)
            .map_err(|e| format!("cannot write to {}: {e}", self.failures.display()))?;
        let began = Mutex::new(Instant::now());
        let path = at_work.path().to_owned();
        let (_running, over) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let running = _running;
            scope.spawn(|| self.watch(target, &began, &path, over));
            for input in inputs {
                at_work
                    .set(&input)
                    .map_err(|e| format!("cannot write to {}: {e}", path.display()))?;
                let start = Instant::now();
                *lock(&began) = start;
                report.bytes += input.len() as u64;
                if catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err() {
                    return Err(format!(
                        "{} failed; {}",
                        target.name,
                        at_work.keep(target, &input)
                    ));
                }
                report.slowest = report.slowest.max(start.elapsed());
            }
            at_work.done();
            drop(running);
            Ok(report)
        })
    }

    /// Ends the process when an input takes too long: no other limit stops it.
    fn watch(
        &self,
        target: &Target,
        began: &Mutex<Instant>,
        path: &Path,
        over: mpsc::Receiver<()>,
    ) {
        while over.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
            let spent = lock(began).elapsed();
            if spent > self.patience {
                eprintln!(
                    "{}: one input takes longer than {} s; {}",
                    target.name,
                    self.patience.as_secs(),
                    again(target, path)
                );
                process::exit(1);
            }
        }
    }
}

fn lock(began: &Mutex<Instant>) -> std::sync::MutexGuard<'_, Instant> {
    began
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Reads the files of a directory, ordered by name; empty if the directory does not exist.
fn read_all(dir: &Path) -> io::Result<Vec<Vec<u8>>> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry?.path());
    }
    paths.sort();
    paths.into_iter().map(fs::read).collect()
}
