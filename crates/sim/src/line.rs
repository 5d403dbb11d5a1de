//! Packets that have left the queue of a link, in lists by where they arrive.
//!
//! A packet that goes from link to link goes from list to list. Its node stays where it is, at the number of the
//! packet's place in the [pool](crate::pool::Pool), so nothing is moved or allocated on its way, and neighbours in
//! memory are packets that were sent one after another.

use gargalo_flow::DirectionId;
use gargalo_link::Flight;
use gargalo_units::Instant;

use crate::packet::Handle;

/// The end of a list.
const NONE: u32 = u32::MAX;

/// A packet that will arrive, and the direction that it comes from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coming {
    pub flight: Flight<Handle>,
    pub from: DirectionId,
}

impl Coming {
    /// When it arrives in the order of events.
    #[inline]
    pub fn order(&self) -> (Instant, DirectionId) {
        (self.flight.arrival(), self.from)
    }
}

/// A list: the places of its ends.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    first: u32,
    last: u32,
}

impl Default for Line {
    fn default() -> Self {
        let (first, last) = (NONE, NONE);
        Self { first, last }
    }
}

impl Line {
    /// Whether no packet is in it.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

#[derive(Clone, Debug, Default)]
struct Node {
    coming: Coming,
    /// Its neighbours. What the first has before it, and the last behind it, means nothing.
    next: u32,
    previous: u32,
}

/// The nodes of all lists, by place. A place is in one list at most.
#[derive(Debug, Default)]
pub struct Nodes(Vec<Node>);

impl Nodes {
    /// The first packet of a list.
    #[inline(always)]
    pub fn first(&self, line: Line) -> Option<&Coming> {
        // There is no place of the number `NONE`.
        self.0.get(line.first as usize).map(|n| &n.coming)
    }

    /// The last packet of a list.
    #[inline(always)]
    pub fn last(&self, line: Line) -> Option<&Coming> {
        self.0.get(line.last as usize).map(|n| &n.coming)
    }

    /// Takes the first packet out of a list; returns it with its place.
    #[inline(always)]
    pub fn take_first(&mut self, line: &mut Line) -> Option<(u32, &mut Coming)> {
        let place = line.first;
        let node = self.0.get_mut(place as usize)?;
        if place == line.last {
            *line = Line::default();
        } else {
            line.first = node.next;
        }
        Some((place, &mut node.coming))
    }

    /// The packet of a place.
    #[inline(always)]
    pub fn coming(&self, place: u32) -> &Coming {
        &self.0[place as usize].coming
    }

    /// Keeps a packet at a place, in no list yet.
    #[inline(always)]
    pub fn keep(&mut self, place: u32, coming: Coming) -> &mut Coming {
        if place as usize >= self.0.len() {
            self.grow(place);
        }
        let kept = &mut self.0[place as usize].coming;
        *kept = coming;
        kept
    }

    /// Puts the packet of a place at the end of a list.
    #[inline(always)]
    pub fn append(&mut self, line: &mut Line, place: u32) {
        let previous = line.last;
        let node = &mut self.0[place as usize];
        (node.next, node.previous) = (NONE, previous);
        match self.0.get_mut(previous as usize) {
            Some(last) => last.next = place,
            None => line.first = place,
        }
        line.last = place;
    }

    /// Puts the packet of a place into a list before those that come later, if these are no more than `most`; returns
    /// whether it is the first then.
    pub fn insert(&mut self, line: &mut Line, place: u32, most: usize) -> Option<bool> {
        let order = self.coming(place).order();
        let (mut next, mut previous) = (NONE, line.last);
        let mut passed = 0;
        while let Some(node) = self.0.get(previous as usize)
            && node.coming.order() > order
        {
            passed += 1;
            if passed > most {
                return None;
            }
            next = previous;
            previous = if next == line.first {
                NONE
            } else {
                node.previous
            };
        }
        let node = &mut self.0[place as usize];
        (node.next, node.previous) = (next, previous);
        match self.0.get_mut(previous as usize) {
            Some(node) => node.next = place,
            None => line.first = place,
        }
        match self.0.get_mut(next as usize) {
            Some(node) => node.previous = place,
            None => line.last = place,
        }
        Some(previous == NONE)
    }

    #[cold]
    fn grow(&mut self, place: u32) {
        self.0.resize(place as usize + 1, Node::default());
    }
}

#[cfg(test)]
mod tests {
    use gargalo_link::{Ecn, Link, LinkConfig, Packet};
    use gargalo_units::Duration;
    use proptest::prelude::*;
    use rand_pcg::Pcg64;

    use super::*;

    /// A packet that arrives some milliseconds after the start.
    fn coming(millis: u64, from: DirectionId) -> Coming {
        let config = LinkConfig {
            delay: gargalo_link::Delay::Constant(Duration::from_millis(millis)),
            ..LinkConfig::default()
        };
        let mut link = Link::new(config, Pcg64::new(1, 1)).unwrap();
        let packet = Packet {
            bytes: 0,
            flow: 0,
            ecn: Ecn::NotEct,
            payload: Handle::default(),
        };
        let flight = link.pass(Instant::ZERO, packet).unwrap();
        Coming { flight, from }
    }

    proptest! {
        /// Two lists against vectors: packets are appended, put before up to three others, and taken.
        #[test]
        fn lists_agree_with_vectors(
            steps in proptest::collection::vec((any::<bool>(), prop::option::of((0u64..9, 0u32..3))), 1..200),
        ) {
            let mut nodes = Nodes::default();
            let mut lines = [Line::default(); 2];
            let mut model = [Vec::new(), Vec::new()];
            for (place, (which, step)) in (0u32..).zip(steps) {
                let (line, model) = (&mut lines[usize::from(which)], &mut model[usize::from(which)]);
                let Some((millis, from)) = step else {
                    let taken = nodes.take_first(line).map(|(place, c)| (c.order(), place));
                    prop_assert_eq!(taken, (!model.is_empty()).then(|| model.remove(0)));
                    continue;
                };
                let coming = coming(millis, from);
                let later = model.iter().filter(|(order, _)| *order > coming.order()).count();
                nodes.keep(place, coming);
                let (inserted, at) = (nodes.insert(line, place, 3), model.len() - later);
                prop_assert_eq!(inserted, (later <= 3).then_some(at == 0));
                if inserted.is_some() {
                    model.insert(at, (coming.order(), place));
                }
                prop_assert_eq!(line.is_empty(), model.is_empty());
                prop_assert_eq!(nodes.first(*line).map(Coming::order), model.first().map(|m| m.0));
                prop_assert_eq!(nodes.last(*line).map(Coming::order), model.last().map(|m| m.0));
            }
        }

        /// What is appended comes out in its order, whatever places it has.
        #[test]
        fn appended_packets_come_in_order(places in proptest::collection::hash_set(0u32..500, 1..60)) {
            let (mut nodes, mut line) = (Nodes::default(), Line::default());
            for &place in &places {
                nodes.keep(place, coming(1, place));
                nodes.append(&mut line, place);
            }
            for place in places {
                prop_assert_eq!(nodes.take_first(&mut line).map(|(p, c)| (p, c.from)), Some((place, place)));
            }
            prop_assert!(line.is_empty() && nodes.take_first(&mut line).is_none());
        }
    }
}
