//! The timers of all connections.

use std::collections::BTreeSet;

use gargalo_units::Instant;

/// Deadlines in order, at most one for each slot. Lazy: a deadline that moves back stays where it is
/// until it fires, since nearly every segment moves one.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Instant, u32)>);

impl Timers {
    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.first().map(|(t, _)| *t)
    }

    /// Sets the deadline of a slot to `wanted` ([`Instant::MAX`]: never); `armed` is the deadline in the set.
    #[inline]
    pub(crate) fn arm(&mut self, slot: u32, armed: &mut Instant, wanted: Instant) {
        if wanted < *armed {
            self.disarm(slot, armed);
            self.0.insert((wanted, slot));
            *armed = wanted;
        }
    }

    pub(crate) fn disarm(&mut self, slot: u32, armed: &mut Instant) {
        if *armed < Instant::MAX {
            self.0.remove(&(*armed, slot));
            *armed = Instant::MAX;
        }
    }

    /// Number of deadlines.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes the slot with the earliest deadline that has passed; the caller sets its `armed` to
    /// [`Instant::MAX`].
    pub(crate) fn pop(&mut self, now: Instant) -> Option<u32> {
        let first = *self.0.first()?;
        (first.0 <= now).then(|| {
            self.0.pop_first();
            first.1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_woken_at_its_earliest_deadline_and_once() {
        let at = Instant::from_nanos;
        let mut timers = Timers::default();
        let (mut a, mut b) = (Instant::MAX, Instant::MAX);
        timers.arm(1, &mut a, at(50));
        timers.arm(2, &mut b, at(40));
        timers.arm(1, &mut a, at(30));
        timers.arm(1, &mut a, at(90));
        assert_eq!(timers.next(), Some(at(30)));
        assert_eq!(timers.pop(at(29)), None);
        assert_eq!(timers.pop(at(60)), Some(1));
        assert_eq!(timers.pop(at(60)), Some(2));
        assert_eq!(timers.pop(Instant::MAX), None);
        timers.disarm(1, &mut Instant::MAX.clone());
    }
}
