//! Datagrams that two places have seen: which of them were lost in between, and how long the others took.
//!
//! A datagram has the same mark wherever it is seen: that of its header of RTP, or else of its IP identification, its
//! size and the beginning of its payload. What passes a place is kept by its mark, up to a number; beyond it a half of
//! the marks is no longer looked at, the same half at all places (hash-based selection, RFC 5475, section 6.2), so
//! that memory is bounded, files may be read one after another, and what is left are still whole crossings.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use gargalo_units::Instant;

use crate::rtp;

/// Most datagrams that are kept of all conversations together: 50 MB.
const MOST: usize = 1 << 21;
/// Bytes of payload that tell datagrams apart; captures of headers have that much.
const LOOKED_AT: usize = 32;
/// Datagrams with the same mark are told apart if they are so far apart: identifications and sequence numbers of 16
/// bits come again.
const APART_S: f64 = 1.0;
/// Of those that arrive so many must have been seen before; otherwise marks are changed on the way.
const LEAST_KNOWN: f64 = 0.9;
/// Where all marks come again, nothing takes longer.
const LONGEST_S: f64 = 10.0;

/// What a datagram is known by. `payload` is what was kept of `length` bytes.
pub fn mark(ident: u16, length: u32, payload: &[u8], rtp: Option<rtp::Header>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match rtp {
        // Translators of addresses may change the identification.
        Some(header) => header.hash(&mut hasher),
        None => {
            let most = LOOKED_AT.min(length as usize);
            (ident, length, payload.get(..most)).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Which marks are looked at.
#[derive(Debug, Default)]
pub struct Selection {
    /// Of 2 to the power of this many one is.
    level: u32,
    kept: usize,
}

impl Selection {
    const fn takes(&self, mark: u64) -> bool {
        mark.trailing_zeros() >= self.level
    }

    /// Whether a half of what is kept is to be forgotten, with [`Selection::halve`] and then [`Marks::thin`] of all.
    pub const fn is_full(&self) -> bool {
        self.kept > MOST
    }

    /// Takes a half of the marks that it took before.
    pub const fn halve(&mut self) {
        self.level += 1;
        self.kept = 0;
    }

    /// Whether all marks are taken.
    pub const fn is_all(&self) -> bool {
        self.level == 0
    }
}

/// A datagram that has passed.
#[derive(Clone, Copy, Debug)]
struct Passed {
    mark: u64,
    time: Instant,
    /// Its number among all that passed here.
    number: u64,
}

/// The datagrams of one direction that passed a place.
#[derive(Debug, Default)]
pub struct Marks {
    kept: Vec<Passed>,
    all: u64,
}

impl Marks {
    /// A datagram passes.
    pub fn pass(&mut self, mark: u64, time: Instant, selection: &mut Selection) {
        if selection.takes(mark) {
            let number = self.all;
            self.kept.push(Passed { mark, time, number });
            selection.kept += 1;
        }
        self.all += 1;
    }

    /// Forgets what is no longer selected.
    pub fn thin(&mut self, selection: &mut Selection) {
        self.kept.retain(|p| selection.takes(p.mark));
        self.kept.shrink_to_fit();
        selection.kept += self.kept.len();
    }

    /// What became of these datagrams on their way to another place, by the time that each of both was watched; `None`
    /// if they cannot be told apart, or are not the same there.
    pub fn crossed(
        &self,
        other: &Self,
        watched: [Span; 2],
        clocks: Clocks,
        selection: &Selection,
    ) -> Option<Crossing> {
        let (sent, arrived) = (sorted(&self.kept), sorted(&other.kept));
        let mut once = Vec::new();
        matched(&sent, &arrived, &mut |s, a| {
            if let ([s], [a]) = (s, a) {
                once.push(later(s, a));
            }
        });
        once.sort_unstable_by(f64::total_cmp);
        let usual = once.get(once.len() / 2).copied();
        if usual.is_none() && clocks == Clocks::Two {
            return None;
        }
        let mut found = Pairing::default();
        matched(&sent, &arrived, &mut |s, a| found.add(s, a, usual));
        found.crossing(watched, selection)
    }
}

/// The first and the last packet of a place, of whatever flow.
pub type Span = (Instant, Instant);

/// Whether two places have one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// Their times can be compared.
    One,
    /// They cannot, or not yet.
    Two,
}

/// What became of the datagrams of one direction between two places.
#[derive(Debug)]
pub struct Crossing {
    /// When each that arrived had been seen at the first place, and how much later it was seen at the second, in
    /// seconds, each by the clock of its place.
    pub later: Vec<(f64, f64)>,
    /// Share of the datagrams that did not arrive.
    pub loss: f64,
}

/// Datagrams that were seen at both places, or at one.
#[derive(Debug, Default)]
struct Pairing {
    both: Vec<(Passed, Passed)>,
    first_only: Vec<Passed>,
    second_only: Vec<Passed>,
    ambiguous: usize,
}

impl Pairing {
    /// Takes all datagrams with one mark, in the order of time. `usual` is how much later datagrams are at the second
    /// place; without it they have one clock.
    fn add(&mut self, sent: &[Passed], arrived: &[Passed], usual: Option<f64>) {
        let near = |a: &Passed, b: &Passed| later(a, b) < APART_S;
        if sent.windows(2).any(|w| near(&w[0], &w[1])) {
            self.ambiguous += sent.len();
            return;
        }
        // Of copies that a link made the first counts.
        let copy = |i: &usize| *i > 0 && near(&arrived[*i - 1], &arrived[*i]);
        let arrivals = (0..arrived.len()).filter(|i| !copy(i)).map(|i| &arrived[i]);
        let gaps = sent.windows(2).map(|w| later(&w[0], &w[1]));
        let gap = gaps.fold(f64::INFINITY, f64::min);
        let (usual, most_off) = match usual {
            Some(usual) => (usual, gap / 2.0),
            // The next arrival that is not beyond the next datagram with this mark.
            None => (gap.min(LONGEST_S) / 2.0, gap.min(LONGEST_S) / 2.0),
        };
        let (mut sent, mut arrivals) = (sent.iter().peekable(), arrivals.peekable());
        while let (Some(s), Some(a)) = (sent.peek(), arrivals.peek()) {
            let off = later(s, a) - usual;
            if off.abs() <= most_off {
                self.both.push((**s, **a));
                sent.next();
                arrivals.next();
            } else if off > 0.0 {
                self.first_only.extend(sent.next());
            } else {
                self.second_only.extend(arrivals.next());
            }
        }
        self.first_only.extend(sent);
        self.second_only.extend(arrivals);
    }

    fn crossing(mut self, [first, second]: [Span; 2], selection: &Selection) -> Option<Crossing> {
        let later_by = || self.both.iter().map(|(s, a)| later(s, a));
        let least = later_by().reduce(f64::min)?;
        let most = later_by().reduce(f64::max)?;
        // What arrives while the first place is watched has been seen there.
        let begun = first.0.as_secs_f64() + most;
        let unknown = self.second_only.iter().filter(|a| seconds(a) > begun);
        let all = self.both.len() + self.ambiguous + unknown.count();
        if (self.both.len() as f64) < LEAST_KNOWN * all as f64 {
            return None;
        }
        self.both.sort_unstable_by_key(|(s, _)| s.number);
        let loss = match (self.both.first(), self.both.last()) {
            // Where a part is looked at, all are counted from the first of that part to the last.
            (Some(a), Some(b)) if !selection.is_all() => {
                let sent = b.0.number - a.0.number + 1;
                let arrived = (b.1.number + 1).saturating_sub(a.1.number);
                sent.saturating_sub(arrived) as f64 / sent as f64
            }
            _ => {
                let watched = second.0.as_secs_f64() - least..=second.1.as_secs_f64() - most;
                let lost = self
                    .first_only
                    .iter()
                    .filter(|s| watched.contains(&seconds(s)));
                let lost = lost.count();
                lost as f64 / (lost + self.both.len()) as f64
            }
        };
        let later = self.both.iter().map(|(s, a)| (seconds(s), later(s, a)));
        Some(Crossing {
            later: later.collect(),
            loss,
        })
    }
}

fn seconds(passed: &Passed) -> f64 {
    passed.time.as_secs_f64()
}

/// How much later the second was seen.
fn later(first: &Passed, second: &Passed) -> f64 {
    // By differences of nanoseconds: seconds since the beginning of a long capture have fewer digits.
    let (first, second) = (first.time.as_nanos(), second.time.as_nanos());
    (i128::from(second) - i128::from(first)) as f64 / 1e9
}

fn sorted(kept: &[Passed]) -> Vec<Passed> {
    let mut sorted = kept.to_vec();
    sorted.sort_unstable_by_key(|p| (p.mark, p.time, p.number));
    sorted
}

/// Gives the datagrams with each mark to `each`, as both places have seen them.
fn matched(sent: &[Passed], arrived: &[Passed], each: &mut dyn FnMut(&[Passed], &[Passed])) {
    let same = |a: &Passed, b: &Passed| a.mark == b.mark;
    let mut others = arrived.chunk_by(same).peekable();
    for group in sent.chunk_by(same) {
        let mark = group[0].mark;
        while let Some(before) = others.next_if(|g| g[0].mark < mark) {
            each(&[], before);
        }
        each(
            group,
            others.next_if(|g| g[0].mark == mark).unwrap_or_default(),
        );
    }
    others.for_each(|group| each(&[], group));
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Span = (Instant::ZERO, Instant::from_nanos(u64::MAX / 4));

    fn at(seconds: f64) -> Instant {
        Instant::from_nanos((seconds * 1e9).round() as u64)
    }

    fn numbered(ident: u64) -> u64 {
        mark(ident as u16, 100, &[], None)
    }

    /// Datagrams with these identifications, one every 10 ms, of which the second place sees those that `delay` has a
    /// time for; its clock is ahead by 5 s.
    fn stream(
        count: u64,
        ident: impl Fn(u64) -> u64,
        delay: impl Fn(u64) -> Option<f64>,
    ) -> ([Marks; 2], Selection) {
        let mut selection = Selection::default();
        let mut marks = [Marks::default(), Marks::default()];
        let mut arrivals = Vec::new();
        for n in 0..count {
            let sent = n as f64 / 100.0;
            let mark = numbered(ident(n));
            marks[0].pass(mark, at(sent), &mut selection);
            arrivals.extend(delay(n).map(|d| (at(sent + d + 5.0), mark)));
        }
        arrivals.sort_unstable();
        for (time, mark) in arrivals {
            marks[1].pass(mark, time, &mut selection);
        }
        (marks, selection)
    }

    fn crossed((marks, selection): &([Marks; 2], Selection)) -> Option<Crossing> {
        marks[0].crossed(&marks[1], [WHOLE; 2], Clocks::Two, selection)
    }

    #[test]
    fn lost_ones_and_times_of_the_others_are_found_whatever_the_order() {
        // Each tenth is lost; every third takes longer, and is passed by others.
        let took = |n: u64| if n.is_multiple_of(3) { 0.035 } else { 0.02 };
        let delay = |n: u64| (n % 10 != 4).then_some(took(n));
        let found = crossed(&stream(1_000, |n| n, delay)).unwrap();
        assert!((found.loss - 0.1).abs() < 1e-9);
        assert_eq!(found.later.len(), 900);
        for (sent, later) in found.later {
            let n = (sent * 100.0).round() as u64;
            assert!((later - 5.0 - delay(n).unwrap()).abs() < 1e-9);
        }
    }

    #[test]
    fn marks_that_come_again_are_told_apart_by_time() {
        // A number that comes again after 10 s, beside some that do not.
        let again = |n: u64| if n < 3_000 { n % 1_000 } else { n };
        let delay = |n: u64| (n % 50 != 7).then_some(0.02 + (n % 7) as f64 / 1e3);
        let found = crossed(&stream(3_200, again, delay)).unwrap();
        assert!((found.loss - 0.02).abs() < 1e-9, "{}", found.loss);
        let range = 5.02 - 1e-9..5.026 + 1e-9;
        assert!(found.later.iter().all(|(_, d)| range.contains(d)));
        // All alike.
        assert!(crossed(&stream(1_000, |_| 0, delay)).is_none());
    }

    #[test]
    fn with_one_clock_all_marks_may_come_again() {
        let mut selection = Selection::default();
        let mut marks = [Marks::default(), Marks::default()];
        for n in 0..1_000u64 {
            let (mark, time) = (numbered(n % 200), n as f64 / 100.0);
            marks[0].pass(mark, at(time), &mut selection);
            if n % 20 != 3 {
                marks[1].pass(mark, at(time + 0.3), &mut selection);
            }
        }
        let [first, second] = &marks;
        let found = first.crossed(second, [WHOLE; 2], Clocks::One, &selection);
        let found = found.unwrap();
        assert!((found.loss - 0.05).abs() < 1e-9);
        assert!(found.later.iter().all(|(_, d)| (d - 0.3).abs() < 1e-9));
    }

    #[test]
    fn copies_count_once_and_marks_that_change_on_the_way_are_unknown() {
        let mut selection = Selection::default();
        let mut marks = [Marks::default(), Marks::default()];
        for n in 0..100u64 {
            let mark = numbered(n);
            marks[0].pass(mark, at(n as f64), &mut selection);
            (0..2).for_each(|_| marks[1].pass(mark, at(n as f64 + 0.02), &mut selection));
        }
        let [first, second] = &marks;
        let found = first.crossed(second, [WHOLE; 2], Clocks::One, &selection);
        let found = found.unwrap();
        assert_eq!((found.loss, found.later.len()), (0.0, 100));
        // Only some are known there.
        let mut other = Marks::default();
        for n in 0..100u64 {
            let number = if n < 50 { n } else { n + 10_000 };
            other.pass(numbered(number), at(n as f64 + 0.02), &mut selection);
        }
        let found = first.crossed(&other, [WHOLE; 2], Clocks::One, &selection);
        assert!(found.is_none());
    }

    #[test]
    fn what_was_sent_when_the_other_place_was_not_watched_is_not_lost() {
        let (marks, selection) = stream(100, |n| n, |n| (30..70).contains(&n).then_some(0.02));
        let second = (at(5.315), at(5.715));
        let found = marks[0].crossed(&marks[1], [WHOLE, second], Clocks::Two, &selection);
        assert_eq!(found.unwrap().loss, 0.0);
        assert!(crossed(&(marks, selection)).unwrap().loss > 0.5);
    }

    #[test]
    fn beyond_a_number_the_same_half_is_looked_at_at_both_places_and_all_are_counted() {
        let (mut marks, mut selection) = stream(60_000, |n| n, |n| (n % 8 != 0).then_some(0.02));
        for _ in 0..3 {
            selection.halve();
            marks.iter_mut().for_each(|m| m.thin(&mut selection));
        }
        assert!((5_000..9_000).contains(&marks[0].kept.len()));
        assert_eq!(selection.kept, marks[0].kept.len() + marks[1].kept.len());
        let found = crossed(&(marks, selection)).unwrap();
        assert!((found.loss - 0.125).abs() < 1e-3, "{}", found.loss);
        assert!(found.later.iter().all(|(_, d)| (d - 5.02).abs() < 1e-9));
    }

    #[test]
    fn payload_tells_datagrams_apart_as_far_as_both_have_kept_it() {
        let of = |payload: &[u8]| mark(0, 1_000, payload, None);
        let mut payload = [7; 100];
        let whole = of(&payload);
        assert_eq!(of(&payload[..60]), whole);
        payload[31] = 8;
        assert_ne!(of(&payload), whole);
        // A capture that has kept less does not tell.
        assert_eq!(of(&payload[..20]), of(&[]));
    }
}
