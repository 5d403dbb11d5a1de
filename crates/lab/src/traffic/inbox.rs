//! How a running host gets ends of flows that start while it runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::eventfd::EventFd;

/// Ends of flows on their way to a host, or to all hosts of a thread.
#[derive(Debug)]
pub struct Inbox<T> {
    waiting: Mutex<Vec<T>>,
    filled: AtomicBool,
    closed: AtomicBool,
    /// Wakes the thread that takes them.
    wake: Option<EventFd>,
}

impl<T> Inbox<T> {
    /// An empty one; `wake` is written to when something has come.
    pub fn new(wake: Option<EventFd>) -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            filled: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            wake,
        })
    }

    /// Puts one in.
    pub fn push(&self, item: T) {
        self.lock().push(item);
        self.filled.store(true, Ordering::Release);
        self.wake();
    }

    /// Nothing will come any more.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake();
    }

    /// Something waits.
    pub fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Acquire)
    }

    /// Nothing waits and nothing will come.
    pub fn is_over(&self) -> bool {
        self.closed.load(Ordering::Acquire) && !self.is_filled()
    }

    /// Takes what waits.
    pub fn take(&self) -> Vec<T> {
        if !self.is_filled() {
            return Vec::new();
        }
        let mut waiting = self.lock();
        self.filled.store(false, Ordering::Release);
        std::mem::take(&mut *waiting)
    }

    /// What wakes the thread that takes them.
    pub(crate) fn waker(&self) -> Option<&EventFd> {
        self.wake.as_ref()
    }

    /// The wake-up was seen.
    pub(crate) fn clear(&self) {
        if let Some(wake) = &self.wake {
            let _ = wake.read();
        }
    }

    fn wake(&self) {
        if let Some(wake) = &self.wake {
            let _ = wake.write(1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
