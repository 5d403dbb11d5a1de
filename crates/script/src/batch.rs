//! Several scripts at a time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::setup::{Choices, Report, Source, run_source};

/// How often the caller is asked whether to continue.
const WATCH: Duration = Duration::from_millis(50);

/// Runs scripts, at most `jobs` at a time: on the kernel they mostly wait. `done` receives the number of each script
/// and what became of it, in the order in which they end; while `watch` gives `false`, no other script is started.
pub fn run_all(
    sources: &[Source],
    choices: &Choices,
    jobs: usize,
    done: &mut dyn FnMut(usize, Report),
    watch: &mut dyn FnMut() -> bool,
) {
    let queue: Mutex<VecDeque<usize>> = Mutex::new((0..sources.len()).collect());
    let stop = AtomicBool::new(false);
    let (sender, reports) = channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, sources.len().max(1)) {
            let (sender, queue, stop) = (sender.clone(), &queue, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let next = queue
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .pop_front();
                    let Some((i, source)) = next.and_then(|i| Some((i, sources.get(i)?))) else {
                        return;
                    };
                    if sender.send((i, run_source(source, choices))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        loop {
            match reports.recv_timeout(WATCH) {
                Ok((i, report)) => done(i, report),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !watch() {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
}
