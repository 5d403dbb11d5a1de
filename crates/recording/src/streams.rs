//! Which bytes of streams were sent, acknowledged or received, each once.

use std::collections::BTreeMap;

/// Most streams, and most ranges of all of them; the oldest are forgotten, whose data is over.
const MOST: usize = 1 << 18;

/// Bytes of all streams of a direction.
#[derive(Debug, Default)]
pub struct Streams {
    each: BTreeMap<u64, Stream>,
    ranges: usize,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Stream {
    /// From where to where, apart from each other.
    ranges: BTreeMap<u64, u64>,
    size: Option<u64>,
}

/// A part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub stream: u64,
    pub offset: u64,
    pub length: u64,
    pub is_last: bool,
}

impl Streams {
    /// Adds a part; how many of its bytes are new.
    pub fn add(&mut self, part: Part) -> u64 {
        let end = part.offset.saturating_add(part.length);
        let stream = self.each.entry(part.stream).or_default();
        if part.is_last {
            stream.size = Some(end);
        }
        if part.length == 0 {
            self.forget();
            return 0;
        }
        let (mut from, mut to, mut known) = (part.offset, end, 0);
        while let Some((&a, &b)) = stream.ranges.range(..=to).next_back()
            && b >= from
        {
            known += b.min(end).saturating_sub(a.max(part.offset));
            stream.ranges.remove(&a);
            self.ranges -= 1;
            (from, to) = (from.min(a), to.max(b));
        }
        stream.ranges.insert(from, to);
        self.ranges += 1;
        let new = (end - part.offset).saturating_sub(known);
        self.bytes = self.bytes.saturating_add(new);
        self.forget();
        new
    }

    /// Bytes, each once.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether all data that `sent` has is here to its end. The streams that HTTP/3 keeps open for itself do not count:
    /// of a connection with requests, all unidirectional ones.
    pub fn are_all_of(&self, sent: &Self) -> bool {
        let of_requests = |id: u64| id & 2 == 0;
        let any = sent.each.keys().any(|id| of_requests(*id));
        let mut counted = sent.each.iter().filter(|(id, _)| !any || of_requests(**id));
        sent.bytes > 0
            && counted.all(|(id, stream)| {
                let here = self.each.get(id);
                stream.size.is_some_and(|size| {
                    size == 0 || here.is_some_and(|s| s.ranges.get(&0) == Some(&size))
                })
            })
    }

    fn forget(&mut self) {
        while self.each.len() > MOST || self.ranges > MOST {
            let Some((_, stream)) = self.each.pop_first() else {
                return;
            };
            self.ranges -= stream.ranges.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn part(offset: u64, length: u64, is_last: bool) -> Part {
        Part {
            stream: 0,
            offset,
            length,
            is_last,
        }
    }

    proptest! {
        #[test]
        fn each_byte_counts_once(parts in prop::collection::vec((0u64..60, 0u64..20), 0..40)) {
            let (mut streams, mut model) = (Streams::default(), BTreeSet::new());
            for (offset, length) in parts {
                let before = model.len();
                model.extend(offset..offset + length);
                let new = streams.add(part(offset, length, false));
                prop_assert_eq!(new, (model.len() - before) as u64);
            }
            prop_assert_eq!(streams.bytes(), model.len() as u64);
        }
    }

    #[test]
    fn all_is_there_when_every_stream_with_requests_is_there_to_its_end() {
        let (mut sent, mut acked) = (Streams::default(), Streams::default());
        // A control stream of HTTP/3, which stays open.
        sent.add(Part {
            stream: 3,
            ..part(0, 9, false)
        });
        sent.add(part(0, 10, true));
        acked.add(part(0, 4, false));
        assert!(!acked.are_all_of(&sent));
        acked.add(part(4, 6, false));
        assert!(acked.are_all_of(&sent));
        assert!(!acked.are_all_of(&Streams::default()));
    }

    #[test]
    fn memory_has_a_bound() {
        let mut streams = Streams::default();
        for i in 0..2 * MOST as u64 {
            streams.add(Part {
                stream: i / 3,
                ..part(2 * (i % 3), 1, false)
            });
        }
        assert!(streams.each.len() <= MOST && streams.ranges <= MOST);
        assert_eq!(streams.bytes(), 2 * MOST as u64);
    }
}
