//! Mappings between the stream of a subflow and that of the connection (RFC 8684 §3.3.1).
//!
//! Positions count bytes: 0 is the first one after the SYN, or after the initial data sequence number.

use std::collections::VecDeque;

use gargalo_wire::mptcp::DataNumber;

/// A mapping of a range of a subflow's stream to the connection's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// Position of the first byte in the subflow.
    pub(crate) subflow: u64,
    /// Its position in the connection; negative for data before the first byte.
    pub(crate) data: i64,
    pub(crate) len: u32,
    pub(crate) checksum: Option<u16>,
}

impl Mapping {
    /// Position in the subflow after the last byte.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.subflow + u64::from(self.len)
    }
    /// Position in the connection after the last byte.
    #[inline]
    pub(crate) fn data_end(&self) -> i64 {
        self.data + i64::from(self.len)
    }
}

/// The mappings assigned to a subflow and not acknowledged on it, without gaps in the subflow's stream.
#[derive(Debug, Default)]
pub(crate) struct Sent(VecDeque<Mapping>);

impl Sent {
    pub(crate) fn push(&mut self, mapping: Mapping) {
        self.0.push_back(mapping);
    }
    /// Removes everything before `subflow`; calls `gone` for each removed mapping.
    #[inline]
    pub(crate) fn release(&mut self, subflow: u64, mut gone: impl FnMut(&Mapping)) {
        while let Some(m) = self.0.front() {
            if m.end() > subflow {
                break;
            }
            gone(m);
            self.0.pop_front();
        }
    }
    /// The mapping of the byte at `subflow`.
    #[inline]
    pub(crate) fn find(&self, subflow: u64) -> Option<&Mapping> {
        // Nearly always the newest one: data is sent right after it was written.
        if let Some(last) = self.0.back()
            && last.subflow <= subflow
        {
            return (subflow < last.end()).then_some(last);
        }
        let i = self.0.partition_point(|m| m.end() <= subflow);
        self.0.get(i).filter(|m| m.subflow <= subflow)
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.0.iter()
    }
}

/// The received mappings of a subflow's unread data: sorted and disjoint.
#[derive(Debug, Default)]
pub(crate) struct Received(VecDeque<Mapping>);

impl Received {
    /// Stores a mapping. A mapped byte keeps its mapping: of a mapping that repeats or contradicts earlier ones
    /// only the rest is stored, and nothing if it has a checksum, which covers the whole mapping. Returns `false`
    /// if there are `most` mappings already.
    #[inline]
    pub(crate) fn insert(&mut self, mapping: Mapping, most: usize) -> bool {
        let follows = self
            .0
            .back()
            .is_none_or(|last| last.end() <= mapping.subflow);
        if follows {
            if self.0.len() >= most {
                return false;
            }
            self.0.push_back(mapping);
            return true;
        }
        self.insert_between(mapping, most)
    }

    fn insert_between(&mut self, mapping: Mapping, most: usize) -> bool {
        let mut i = self.0.partition_point(|m| m.end() <= mapping.subflow);
        let mut at = mapping.subflow;
        let end = mapping.end();
        if mapping.checksum.is_some() && self.0.get(i).is_some_and(|m| m.subflow < end) {
            return true;
        }
        while at < end {
            let (start, stop) = self
                .0
                .get(i)
                .map_or((u64::MAX, u64::MAX), |m| (m.subflow, m.end()));
            let to = start.min(end);
            if at < to {
                if self.0.len() >= most {
                    return false;
                }
                let piece = Mapping {
                    subflow: at,
                    data: mapping.data + (at - mapping.subflow) as i64,
                    len: (to - at) as u32,
                    checksum: mapping.checksum,
                };
                self.0.insert(i, piece);
                i += 1;
            }
            at = stop.max(to);
            i += 1;
        }
        true
    }

    /// The parts of the connection's stream that a range of the subflow's stream is mapped to.
    pub(crate) fn of_range(&self, from: u64, to: u64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let first = self.0.partition_point(|m| m.end() <= from);
        let mappings = self.0.range(first..).take_while(move |m| m.subflow < to);
        mappings.map(move |m| {
            let (from, to) = (from.max(m.subflow), to.min(m.end()));
            let at = |position: u64| m.data.saturating_add((position - m.subflow) as i64);
            (at(from), at(to))
        })
    }

    /// The mapping of the byte at `subflow`; earlier mappings are removed.
    #[inline]
    pub(crate) fn at(&mut self, subflow: u64) -> Option<Mapping> {
        while let Some(m) = self.0.front() {
            if m.end() > subflow {
                return (m.subflow <= subflow).then_some(*m);
            }
            self.0.pop_front();
        }
        None
    }
}

/// The position closest to `near` that `number` can stand for, with `base` being position 0.
#[inline]
pub(crate) fn position(number: DataNumber, base: u64, near: u64) -> i64 {
    let expected = base.wrapping_add(near);
    let distance = match number {
        DataNumber::Short(n) => i64::from(n.wrapping_sub(expected as u32) as i32),
        DataNumber::Long(n) => n.wrapping_sub(expected) as i64,
    };
    (near as i64).saturating_add(distance)
}

/// `position` as a number.
#[inline]
pub(crate) fn number(position: i64, base: u64, long: bool) -> DataNumber {
    let n = base.wrapping_add(position as u64);
    if long {
        DataNumber::Long(n)
    } else {
        DataNumber::Short(n as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;
    use rand_pcg::Pcg64;
    use std::collections::BTreeMap;

    fn map(subflow: u64, data: i64, len: u32) -> Mapping {
        Mapping {
            subflow,
            data,
            len,
            checksum: None,
        }
    }
    fn all(r: &Received) -> Vec<(u64, i64, u32)> {
        r.0.iter().map(|m| (m.subflow, m.data, m.len)).collect()
    }

    #[test]
    fn a_range_is_mapped_in_parts() {
        let mut r = Received::default();
        for m in [map(0, 100, 10), map(10, 500, 10), map(30, 0, 5)] {
            r.insert(m, 10);
        }
        let of = |from, to| r.of_range(from, to).collect::<Vec<_>>();
        assert_eq!(of(5, 12), [(105, 110), (500, 502)]);
        assert_eq!(of(20, 30), []);
        assert_eq!(of(15, 99), [(505, 510), (0, 5)]);
    }

    #[test]
    fn numbers_stand_for_the_closest_position() {
        let base = u64::MAX - 10;
        for at in [0i64, 5, 10, 11, 12, 1 << 33] {
            for near in [at as u64, (at + 1000) as u64] {
                assert_eq!(position(number(at, base, true), base, near), at);
                assert_eq!(position(number(at, base, false), base, near), at);
            }
        }
        assert_eq!(position(number(-1, base, false), base, 0), -1);
        assert_eq!(position(number(-1, base, true), base, 7), -1);
    }

    #[test]
    fn sent_mappings_are_found_and_released() {
        let mut s = Sent::default();
        s.push(map(0, 100, 10));
        s.push(map(10, 300, 5));
        s.push(map(15, 305, 5));
        let find = |s: &Sent, at| s.find(at).map(|m| m.data);
        assert_eq!(find(&s, 0), Some(100));
        assert_eq!(find(&s, 9), Some(100));
        assert_eq!(find(&s, 10), Some(300));
        assert_eq!(find(&s, 19), Some(305));
        assert_eq!(find(&s, 20), None);
        let mut gone = Vec::new();
        s.release(14, |m| gone.push(m.data));
        assert_eq!(gone, [100]);
        assert_eq!((find(&s, 9), find(&s, 12)), (None, Some(300)));
    }

    #[test]
    fn the_first_mapping_of_a_byte_holds() {
        let mut r = Received::default();
        assert!(r.insert(map(10, 100, 10), 99));
        assert!(r.insert(map(30, 500, 10), 99));
        // Repeats, contradicts and fills at once.
        assert!(r.insert(map(5, 0, 40), 99));
        assert_eq!(
            all(&r),
            [
                (5, 0, 5),
                (10, 100, 10),
                (20, 15, 10),
                (30, 500, 10),
                (40, 35, 5)
            ]
        );
        assert!(r.insert(map(5, 0, 40), 5));
        assert_eq!(r.at(4), None);
        assert_eq!(r.at(12).map(|m| m.data), Some(100));
        assert_eq!(r.at(44).map(|m| m.data), Some(35));
        assert_eq!(r.at(45), None);
    }

    #[test]
    fn what_has_a_checksum_counts_as_a_whole() {
        let mut r = Received::default();
        r.insert(map(10, 100, 10), 99);
        let mut sum = map(5, 0, 40);
        sum.checksum = Some(1);
        assert!(r.insert(sum, 99));
        assert_eq!(all(&r).len(), 1);
        assert!(!r.insert(map(50, 0, 1), 1));
        assert!(!r.insert(map(0, 0, 1), 1));
    }

    #[test]
    fn each_byte_of_a_subflow_has_the_first_mapping_that_it_was_given() {
        for seed in 0..200 {
            let mut rng = Pcg64::new(seed, 1);
            let mut r = Received::default();
            // The byte of the connection, by that of the subflow.
            let mut model: BTreeMap<u64, i64> = BTreeMap::new();
            let mut read = 0;
            for _ in 0..40 {
                let from = read + rng.random_range(0..60);
                let mut m = map(from, rng.random_range(-50..5000), rng.random_range(1..30));
                let has_some = model.range(m.subflow..m.end()).next().is_some();
                if rng.random_bool(0.2) {
                    m.checksum = Some(1);
                }
                assert!(r.insert(m, 1000));
                if m.checksum.is_none() || !has_some {
                    for k in 0..u64::from(m.len) {
                        model.entry(from + k).or_insert(m.data + k as i64);
                    }
                }
                for (a, b) in r.0.iter().zip(r.0.iter().skip(1)) {
                    assert!(a.end() <= b.subflow && a.len > 0);
                }
                let (a, b) = (
                    read + rng.random_range(0..40),
                    read + rng.random_range(0..60),
                );
                let bytes = r.of_range(a, b.max(a)).flat_map(|(from, to)| from..to);
                assert!(bytes.eq(model.range(a..b.max(a)).map(|m| *m.1)));
                if rng.random_bool(0.5) {
                    read += rng.random_range(0..20);
                    let found = r.at(read).map(|m| m.data + (read - m.subflow) as i64);
                    assert_eq!(found, model.get(&read).copied());
                }
            }
        }
    }

    #[test]
    fn as_many_mappings_are_stored_as_are_allowed() {
        let mut r = Received::default();
        assert!(r.insert(map(10, 0, 5), 2) && r.insert(map(30, 0, 5), 2));
        assert!(!r.insert(map(50, 0, 5), 2), "behind the others");
        assert!(!r.insert(map(20, 0, 5), 2), "between them");
        assert!(r.insert(map(12, 9, 3), 2), "a repetition needs no place");
        assert!(r.insert(map(20, 0, 5), 3));
        assert_eq!(all(&r), [(10, 0, 5), (20, 0, 5), (30, 0, 5)]);
    }

    #[test]
    fn a_mapping_is_released_when_its_last_byte_is_acknowledged() {
        let mut s = Sent::default();
        for m in [map(0, 100, 10), map(10, 300, 5)] {
            s.push(m);
        }
        let mut released = |to| {
            let mut gone = Vec::new();
            s.release(to, |m| gone.push(m.data_end()));
            (gone, s.iter().count())
        };
        assert_eq!(released(9), (vec![], 2));
        assert_eq!(released(10), (vec![110], 1));
        assert_eq!(released(99), (vec![305], 0));
    }
}
