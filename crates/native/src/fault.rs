//! What a plug-in did wrong during a run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Which function of which plug-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the plug-in's file.
    pub file: &'static str,
    /// The name that scenarios use.
    pub name: &'static str,
    /// Name of the interface's function.
    pub function: &'static str,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}()", self.file, self.name, self.function)
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Wrong {
    /// A number is not valid.
    Number {
        /// Name of the field that holds the number.
        field: &'static str,
        /// The value that the plug-in has set.
        value: f64,
        /// The valid values, in words.
        valid: String,
    },
    /// A text is not valid.
    Text {
        /// Name of the field that holds the text.
        field: &'static str,
        /// Why the text is not valid.
        why: String,
    },
    /// The plug-in reported an error or panicked, with this message.
    Said(String),
    /// The call returned neither an object nor an error message.
    Nothing,
    /// The call computed for too long.
    Loop {
        /// Processor time, seconds.
        seconds: u64,
    },
    /// The call waited for too long.
    Stuck {
        /// Time for which the call has waited, in seconds.
        seconds: u64,
    },
}

/// A plug-in's failure: where and what.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The function whose call failed.
    pub place: Place,
    /// The failure of that call.
    pub wrong: Wrong,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.place;
        match &self.wrong {
            Wrong::Number {
                field,
                value,
                valid,
            } => write!(f, "{place} set {field} to {value}; it must be {valid}"),
            Wrong::Text { field, why } => write!(f, "{place}: {field}: {why}"),
            Wrong::Said(text) => write!(f, "{place}: {text}"),
            Wrong::Nothing => write!(f, "{place} returned NULL and no error"),
            Wrong::Loop { seconds } => {
                write!(
                    f,
                    "{place} has computed for {seconds} s and not returned: a loop"
                )
            }
            Wrong::Stuck { seconds } => {
                write!(f, "{place} has waited for {seconds} s and not returned")
            }
        }
    }
}

impl std::error::Error for Fault {}

static RUNS: Mutex<BTreeMap<u64, Weak<Faults>>> = Mutex::new(BTreeMap::new());
static ANY_STUCK: AtomicBool = AtomicBool::new(false);

/// Whether a call of this process does not return: its thread takes time that nothing else wants, until the process
/// ends.
pub fn has_stuck_calls() -> bool {
    ANY_STUCK.load(Ordering::Acquire)
}

/// The first failure of a run's plug-ins. After it no function of them is called in that run.
#[derive(Debug)]
pub struct Faults {
    id: u64,
    raised: AtomicBool,
    stuck: AtomicBool,
    ends_process: AtomicBool,
    first: Mutex<Option<Fault>>,
}

impl Faults {
    /// For a run.
    pub fn new() -> Arc<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let faults = Arc::new(Self {
            id: COUNT.fetch_add(1, Ordering::Relaxed),
            raised: AtomicBool::new(false),
            stuck: AtomicBool::new(false),
            ends_process: AtomicBool::new(false),
            first: Mutex::new(None),
        });
        let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|_, run| run.strong_count() > 0);
        runs.insert(faults.id, Arc::downgrade(&faults));
        drop(runs);
        faults
    }

    /// From now on a call that does not return ends the process with exit code 1, after what failed is printed: nothing
    /// else in it can go on.
    pub fn end_process_if_stuck(&self) {
        self.ends_process.store(true, Ordering::Relaxed);
    }

    /// Those of a run, by its number, while the run is there.
    pub(crate) fn of_run(id: u64) -> Option<Arc<Self>> {
        let runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(&id).and_then(Weak::upgrade)
    }

    /// Its number in this process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether something failed.
    #[inline]
    pub fn raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Whether a call does not return, so that the run will not end by itself.
    pub fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Acquire)
    }

    /// The first failure.
    pub fn first(&self) -> Option<Fault> {
        self.first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Keeps a failure if it is the first.
    pub(crate) fn put(&self, fault: Fault) {
        let never_returns = matches!(fault.wrong, Wrong::Loop { .. } | Wrong::Stuck { .. });
        if never_returns && self.ends_process.load(Ordering::Relaxed) {
            eprintln!("error: {fault}");
            std::process::exit(1);
        }
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(fault);
        self.raised.store(true, Ordering::Relaxed);
        if never_returns {
            ANY_STUCK.store(true, Ordering::Release);
            self.stuck.store(true, Ordering::Release);
        }
    }
}
