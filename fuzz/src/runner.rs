//! Runs targets without any help of the compiler: kept inputs, then mutations of them, so many.

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

/// Runs targets; the same inputs whenever seed, number and kept inputs are the same.
#[derive(Clone, Debug)]
pub struct Runner {
    /// Of the mutations.
    pub seed: u64,
    /// How many inputs are made.
    pub inputs: u64,
    /// Where failing inputs go.
    pub failures: PathBuf,
    /// An input that takes longer has failed; ends the process.
    pub patience: Duration,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Inputs that were kept.
    pub kept: u64,
    /// Inputs that were made.
    pub made: u64,
    /// Their bytes altogether.
    pub bytes: u64,
    /// The longest time that one took.
    pub slowest: Duration,
}

impl Runner {
    /// With the target's own number of inputs.
    pub fn new(target: &Target) -> Self {
        Self {
            seed: 1,
            inputs: target.inputs,
            failures: PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/failures")),
            patience: Duration::from_secs(120),
        }
    }

    /// Kept inputs first, then made ones.
    ///
    /// # Errors
    /// A sentence that names the file of the input that failed and the command that runs it again, or what
    /// could not be read or written.
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

    /// These files.
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

    /// Ends the process when an input takes too long: nothing else stops it.
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

/// The files of a directory by name; none if it is not there.
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
