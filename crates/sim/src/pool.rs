//! The contents of packets on their way, laid out in the order in which they were sent.

use crate::packet::{Body, Content};

/// Contents of a block. Its memory is used again when all of them are gone: a packet that stays long keeps that of a
/// block.
const BLOCK: usize = 32;

/// Stores contents by handle. Packets leave a path in about the order in which they were sent; so contents stand in
/// that order, in blocks, and the processor fetches ahead what is needed next. (A list of single free places mixes them
/// up within some round trips: with thousands of packets on their way each one was a cache miss.)
#[derive(Debug, Default)]
pub struct Pool {
    /// Blocks of `BLOCK` places.
    places: Vec<Option<Body>>,
    /// How many contents each block holds.
    held: Vec<u8>,
    /// Empty blocks, except the one that is being filled.
    free: Vec<u32>,
    /// The next place, and the end of its block, which is the one that is being filled.
    next: usize,
    end: usize,
}

impl Pool {
    /// Stores a content and returns its handle.
    #[inline(always)]
    #[expect(
        clippy::mem_forget,
        reason = "an empty place: code that drops contents is long"
    )]
    pub fn insert(&mut self, body: Body) -> u32 {
        let place = self.reserve();
        std::mem::forget(self.places[place as usize].replace(body));
        place
    }

    /// Takes a place without a content, to be [released](Self::release).
    #[inline(always)]
    pub fn reserve(&mut self) -> u32 {
        if self.next == self.end {
            self.next = self.empty_block();
            self.end = self.next + BLOCK;
        }
        let place = self.next;
        self.next += 1;
        self.held[place / BLOCK] += 1;
        place as u32
    }

    #[cold]
    fn empty_block(&mut self) -> usize {
        if let Some(block) = self.free.pop() {
            return block as usize * BLOCK;
        }
        let start = self.places.len();
        assert!(
            u32::try_from(start + BLOCK).is_ok(),
            "four billion packets fit no memory"
        );
        self.places
            .extend(std::iter::repeat_with(|| None).take(BLOCK));
        self.held.push(0);
        start
    }

    /// Removes and returns a content.
    #[inline(always)]
    pub fn remove(&mut self, handle: u32) -> Option<Body> {
        let body = self.places.get_mut(handle as usize)?.take()?;
        self.release(handle);
        Some(body)
    }

    /// Removes a content that nobody needs.
    #[inline(always)]
    #[expect(
        clippy::mem_forget,
        reason = "of what has nothing on the heap: code that drops contents is long"
    )]
    pub fn discard(&mut self, handle: u32) {
        let Some(place) = self.places.get_mut(handle as usize) else {
            return;
        };
        let Some(body) = place else { return };
        match &body.content {
            Content::Tcp(segment) if segment.is_flat() => std::mem::forget(place.take()),
            _ => *place = None,
        }
        self.release(handle);
    }

    /// Gives back a place that has no content.
    #[inline(always)]
    pub fn release(&mut self, place: u32) {
        let block = place as usize / BLOCK;
        self.held[block] -= 1;
        if self.held[block] == 0 {
            self.empty(block);
        }
    }

    fn empty(&mut self, block: usize) {
        if self.end == (block + 1) * BLOCK {
            self.next = block * BLOCK;
        } else {
            self.free.push(block as u32);
        }
    }

    /// The content of a handle; `None` if it was removed.
    #[inline]
    pub fn get(&self, handle: u32) -> Option<&Body> {
        self.places.get(handle as usize)?.as_ref()
    }

    /// The content of a handle, to be modified; `None` if it was removed.
    #[inline]
    pub fn get_mut(&mut self, handle: u32) -> Option<&mut Body> {
        self.places.get_mut(handle as usize)?.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::packet::Datagram;

    fn body(number: u32) -> Body {
        Body {
            flow: number,
            generation: 0,
            side: 0,
            interfaces: (0, 0),
            route: 0,
            content: Content::Udp(Datagram {
                bytes: 0,
                number: 0,
                sent_at: gargalo_units::Instant::ZERO,
                ports: (0, 0),
            }),
        }
    }

    #[test]
    fn contents_stand_in_the_order_in_which_they_came_and_empty_blocks_are_used_again() {
        let mut pool = Pool::default();
        let blocks = |pool: &Pool| pool.places.len() / BLOCK;
        let first: Vec<u32> = (0..100).map(|i| pool.insert(body(i))).collect();
        assert!(first.is_sorted());
        assert_eq!(blocks(&pool), 4);
        // All but one of the first block.
        for &handle in &first[1..64] {
            assert!(pool.remove(handle).is_some());
        }
        for i in 0..60 {
            pool.insert(body(i));
        }
        assert_eq!(blocks(&pool), 4);
        pool.insert(body(0));
        assert_eq!(blocks(&pool), 5);
    }

    #[test]
    fn a_block_that_empties_while_it_is_filled_begins_again() {
        let mut pool = Pool::default();
        for i in 0..1000 {
            let handle = pool.insert(body(i));
            assert_eq!(pool.remove(handle).map(|b| b.flow), Some(i));
            assert!(pool.remove(handle).is_none());
        }
        assert_eq!(pool.places.len(), BLOCK);
    }

    proptest! {
        /// Against a map; and no memory is lost: emptied, it takes as much again without growing.
        #[test]
        fn it_agrees_with_a_map(
            steps in proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..400),
        ) {
            let mut pool = Pool::default();
            let mut model = BTreeMap::new();
            for (i, (adds, which)) in steps.into_iter().enumerate() {
                if adds || model.is_empty() {
                    let handle = pool.insert(body(i as u32));
                    prop_assert!(model.insert(handle, i as u32).is_none());
                } else {
                    let handle = *model.keys().nth(which.index(model.len())).unwrap();
                    let expected = model.remove(&handle);
                    prop_assert_eq!(pool.get(handle).map(|b| b.flow), expected);
                    prop_assert_eq!(pool.remove(handle).map(|b| b.flow), expected);
                    prop_assert!(pool.get(handle).is_none() && pool.remove(handle).is_none());
                }
            }
            for handle in model.into_keys() {
                pool.remove(handle);
            }
            let places = pool.places.len();
            for i in 0..places {
                pool.insert(body(i as u32));
            }
            prop_assert_eq!(pool.places.len(), places);
        }
    }
}
