//! Objects of a request workload: when each was asked for and arrived.

use gargalo_units::{Bytes, Duration, Instant};
/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectResult {
    /// Number of the object in its flow, from 0.
    pub object: u32,
    /// Its size.
    pub size: Bytes,
    /// When it was asked for.
    pub requested: Instant,
    /// When its first byte arrived.
    pub first_byte: Option<Instant>,
    /// When its last byte arrived.
    pub completed: Option<Instant>,
}

impl ObjectResult {
    /// From the request to the last byte.
    pub fn completion(&self) -> Option<Duration> {
        self.completed.map(|t| t.saturating_since(self.requested))
    }
}

/// Objects that were asked for, in the order in which they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestResult {
    /// One for each object asked for.
    pub objects: Vec<ObjectResult>,
}

/// Keeps the times of a flow's objects, or nothing if the flow has no row.
#[derive(Debug)]
pub(super) struct Log {
    objects: Option<Vec<ObjectResult>>,
}

impl Log {
    pub(super) fn new(keeps: bool) -> Self {
        Self {
            objects: keeps.then(Vec::new),
        }
    }

    /// The next object was asked for.
    pub(super) fn requested(&mut self, now: Instant, size: Bytes) {
        if let Some(list) = &mut self.objects {
            list.push(ObjectResult {
                object: list.len() as u32,
                size,
                requested: now,
                first_byte: None,
                completed: None,
            });
        }
    }

    /// Bytes of an object arrived, maybe its last.
    #[inline]
    pub(super) fn arrived(&mut self, now: Instant, object: usize, is_last: bool) {
        if let Some(o) = self.objects.as_mut().and_then(|list| list.get_mut(object)) {
            o.first_byte.get_or_insert(now);
            if is_last {
                o.completed.get_or_insert(now);
            }
        }
    }

    pub(super) fn result(&self) -> Option<RequestResult> {
        let objects = self.objects.clone()?;
        Some(RequestResult { objects })
    }
}
