//! Reports of flows to the sources that started them.

use std::sync::{Arc, Mutex, PoisonError};

/// Notices that flows send.
#[derive(Clone, Debug, Default)]
pub struct Notices(Arc<Mutex<Vec<Notice>>>);

/// An event of the flow with this identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// It has completed, failed or been stopped.
    Over(u64),
    /// Both ends have closed: its counts are final.
    Closed(u64),
}

impl Notices {
    /// Adds a notice.
    pub fn push(&self, notice: Notice) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(notice);
    }

    /// Removes and returns all notices.
    pub fn take(&self) -> Vec<Notice> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all)
    }
}
