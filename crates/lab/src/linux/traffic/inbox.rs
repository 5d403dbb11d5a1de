//! Passes the ends of flows that start during a run to their running hosts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::eventfd::EventFd;

/// Ends of flows in transit to a host, or to all hosts of a thread.
#[derive(Debug)]
pub struct Inbox<T> {
    waiting: Mutex<Vec<T>>,
    filled: AtomicBool,
    closed: AtomicBool,
    /// Wakes the thread that takes them.
    wake: Option<EventFd>,
}

impl<T> Inbox<T> {
    /// Creates an empty inbox; `wake` is written to when an item arrives.
    pub fn new(wake: Option<EventFd>) -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            filled: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            wake,
        })
    }

    /// Adds an item.
    pub fn push(&self, item: T) {
        self.lock().push(item);
        self.filled.store(true, Ordering::Release);
        self.wake();
    }

    /// Closes the inbox: no item will follow.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether items wait.
    pub fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Acquire)
    }

    /// Whether no item waits and none will follow.
    pub fn is_over(&self) -> bool {
        self.closed.load(Ordering::Acquire) && !self.is_filled()
    }

    /// Takes the waiting items.
    pub fn take(&self) -> Vec<T> {
        if !self.is_filled() {
            return Vec::new();
        }
        let mut waiting = self.lock();
        self.filled.store(false, Ordering::Release);
        std::mem::take(&mut *waiting)
    }

    /// The event that wakes the receiving thread.
    pub(crate) fn waker(&self) -> Option<&EventFd> {
        self.wake.as_ref()
    }

    /// Clears the wake-up event.
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
