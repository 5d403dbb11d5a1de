//! How far the clocks of places are apart, by the TCP connections that both have seen.

use std::collections::BTreeMap;

use super::rows::SameClock;
use crate::Known;
use crate::tcp::{Connection, Half, Offset};

/// For two places the offset by the connection that has most data.
#[derive(Debug, Default)]
pub struct Offsets {
    all: BTreeMap<(usize, usize), (u64, Offset)>,
}

impl Offsets {
    /// Those of all places of different clocks.
    pub fn of(flows: &[Known], same_clock: &SameClock<'_>) -> Self {
        let mut found = Self::default();
        for flow in flows {
            if let Known::Tcp(connection) = flow {
                found.add(connection, same_clock);
            }
        }
        found
    }

    fn add(&mut self, connection: &Connection, same_clock: &SameClock<'_>) {
        let sender = connection.sender();
        let Some((near, far)) = connection.places_of(sender) else {
            return;
        };
        if same_clock(near.place, far.place) {
            return;
        }
        let sent = near.halves[sender].as_ref().map_or(0, Half::sent);
        let (key, reversed) = ((near.place, far.place), (far.place, near.place));
        let has_more = |key| self.all.get(key).is_some_and(|(most, _)| *most >= sent);
        if has_more(&key) || has_more(&reversed) {
            return;
        }
        if let Some(offset) = Connection::offset(sender, near, far) {
            self.all.remove(&reversed);
            self.all.insert(key, (sent, offset));
        }
    }

    /// What must be taken from times at the second place to have those at the first.
    pub fn between(&self, near: usize, far: usize) -> Option<Offset> {
        let there = self.all.get(&(near, far)).map(|(_, offset)| *offset);
        there.or_else(|| Some(self.all.get(&(far, near))?.1.inverted()))
    }
}
