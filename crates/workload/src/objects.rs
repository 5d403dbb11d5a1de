//! Objects of a request workload: when each was requested and received.

use gargalo_units::{Bytes, Duration, Instant};
/// The result of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectResult {
    /// Number of the object in its flow, from 0.
    pub object: u32,
    /// Size of the object's content.
    pub size: Bytes,
    /// When it was requested.
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

/// Requested objects, in the order of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestResult {
    /// One for each requested object.
    pub objects: Vec<ObjectResult>,
}

/// The log of a flow's objects; empty if the flow has no rows.
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

    /// Records the request of the next object.
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

    /// Records received bytes of an object, possibly its last.
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
