//! The scoreboard compared with a slow reference that examines every segment on every call.

use gargalo_units::{Bytes, Duration};
use proptest::prelude::*;

use super::*;

const MSS: u32 = 1000;
const RTT: Duration = Duration::from_millis(10);

/// A segment in the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slow {
    start: u64,
    len: u32,
    fin: bool,
    sacked: bool,
    lost: bool,
    retransmitted: bool,
    sent_at: Instant,
    /// Three segments above have been acknowledged before: it is not examined again.
    counted: bool,
}

impl Slow {
    fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
    fn in_pipe(&self) -> bool {
        !self.sacked && !self.lost
    }
}

/// The calls of a callback: start, length.
type Reported = Vec<(u64, u32)>;

#[derive(Default)]
struct Oracle(Vec<Slow>);

impl Oracle {
    fn acknowledge(&mut self, ack: u64) -> Reported {
        let mut reported = Reported::new();
        for s in &mut self.0 {
            if s.end() <= ack {
                if !s.sacked {
                    reported.push((s.start, s.len));
                }
            } else if s.start < ack {
                let part = (ack - s.start) as u32;
                if !s.sacked {
                    reported.push((s.start, part));
                }
                s.start = ack;
                s.len -= part;
            }
        }
        self.0.retain(|s| s.end() > ack);
        reported
    }

    fn sack(&mut self, left: u64, right: u64) -> Reported {
        let mut reported = Reported::new();
        for s in &mut self.0 {
            if s.start >= left && s.end() <= right && !s.sacked {
                s.sacked = true;
                s.lost = false;
                reported.push((s.start, s.len));
            }
        }
        reported
    }

    fn detect_by_count(&mut self) -> Reported {
        let mut reported = Reported::new();
        for i in 0..self.0.len() {
            let from_here = self.0[i..].iter().filter(|s| s.sacked).count();
            let s = &mut self.0[i];
            if from_here < 3 || s.counted {
                continue;
            }
            s.counted = true;
            if s.in_pipe() && !s.retransmitted {
                s.lost = true;
                reported.push((s.start, s.len));
            }
        }
        reported
    }

    /// Losses, originals first, then retransmissions in the order of sending; and what is next.
    fn detect_by_time(&mut self, now: Instant, newest: (Instant, u64)) -> (Reported, Instant) {
        let mut reported = Vec::new();
        let mut next = Instant::MAX;
        for s in &mut self.0 {
            if !s.in_pipe() || (s.sent_at, s.end()) >= newest {
                continue;
            }
            if s.sent_at + RTT <= now {
                s.lost = true;
                reported.push((s.retransmitted, s.sent_at, (s.start, s.len)));
            } else {
                next = next.min(s.sent_at + RTT);
            }
        }
        reported.sort_by_key(|t| (t.0, t.1));
        (reported.into_iter().map(|t| t.2).collect(), next)
    }

    fn mark_all_lost(&mut self) -> Reported {
        let reneged = self.0.first().is_some_and(|s| s.sacked);
        let mut reported = Reported::new();
        for s in &mut self.0 {
            s.sacked &= !reneged;
            if s.in_pipe() {
                s.lost = true;
                reported.push((s.start, s.len));
            }
        }
        reported
    }

    fn split(&mut self, mss: u32) {
        for s in std::mem::take(&mut self.0) {
            let mut rest = s;
            rest.counted = false;
            while rest.len - u32::from(rest.fin) > mss {
                self.0.push(Slow {
                    len: mss,
                    fin: false,
                    ..rest
                });
                rest.start += u64::from(mss);
                rest.len -= mss;
            }
            self.0.push(rest);
        }
    }
}

/// An operation; its numbers are scaled to the current state. The latest block comes `Again`, up to another offset.
#[derive(Clone, Copy, Debug)]
enum Op {
    Send { len: u32 },
    SendMany { count: u8 },
    Acknowledge { part: u16 },
    AcknowledgeWhole { count: u8 },
    Sack { from: u16, segments: u8 },
    SackBytes { from: u16, to: u16 },
    Again { to: u16 },
    AcknowledgeToBlock,
    Count,
    Time { newest: u16 },
    Resend { count: u8 },
    Probe,
    FirstLost,
    Timeout,
    Undo,
    Split { mss: u16 },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (1..=MSS).prop_map(|len| Op::Send { len }),
        4 => (1u8..12).prop_map(|count| Op::SendMany { count }),
        1 => any::<u16>().prop_map(|part| Op::Acknowledge { part }),
        3 => (0u8..6).prop_map(|count| Op::AcknowledgeWhole { count }),
        6 => (any::<u16>(), 1u8..6).prop_map(|(from, segments)| Op::Sack { from, segments }),
        1 => (any::<u16>(), any::<u16>()).prop_map(|(from, to)| Op::SackBytes { from, to }),
        1 => any::<u16>().prop_map(|to| Op::Again { to }),
        1 => Just(Op::AcknowledgeToBlock),
        3 => Just(Op::Count),
        3 => any::<u16>().prop_map(|newest| Op::Time { newest }),
        4 => (1u8..8).prop_map(|count| Op::Resend { count }),
        1 => Just(Op::Probe),
        1 => Just(Op::FirstLost),
        1 => Just(Op::Timeout),
        1 => Just(Op::Undo),
        1 => (300u16..1000).prop_map(|mss| Op::Split { mss }),
    ]
}

/// The scoreboard and the reference side by side.
struct Both {
    fast: Scoreboard,
    slow: Oracle,
    now: Instant,
    nxt: u64,
    fin: bool,
    /// Where the latest block started.
    left: u64,
}

impl Both {
    fn new() -> Self {
        Self {
            fast: Scoreboard::default(),
            slow: Oracle::default(),
            now: Instant::ZERO,
            nxt: 0,
            fin: false,
            left: 0,
        }
    }

    fn tick(&mut self) -> Instant {
        self.now += Duration::from_millis(1);
        self.now
    }

    fn state(&mut self) -> SendState {
        SendState {
            sent_at: self.tick(),
            in_flight: Bytes::ZERO,
            ..SendState::default()
        }
    }

    fn send(&mut self, len: u32, fin: bool) {
        if self.fin {
            return;
        }
        self.fin = fin;
        let state = self.state();
        let (start, len) = (self.nxt, len + u32::from(fin));
        self.fast.push(start, len, fin, state);
        self.slow.0.push(Slow {
            start,
            len,
            fin,
            sacked: false,
            lost: false,
            retransmitted: false,
            sent_at: state.sent_at,
            counted: false,
        });
        self.nxt += u64::from(len);
    }

    /// A segment by a number of any size.
    fn pick(&self, n: u16) -> usize {
        usize::from(n) * self.slow.0.len() / 65_536
    }

    fn una(&self) -> u64 {
        self.slow.0.first().map_or(self.nxt, |s| s.start)
    }

    /// An offset in flight by a number of any size.
    fn at(&self, n: u16) -> u64 {
        self.una() + (self.nxt - self.una()) * u64::from(n) / 65_536
    }

    fn acknowledge(&mut self, ack: u64) {
        let mut reported = Reported::new();
        self.fast
            .acknowledge(ack, |s| reported.push((s.start, s.len)));
        assert_eq!(reported, self.slow.acknowledge(ack));
    }

    fn sack(&mut self, left: u64, right: u64) {
        self.left = left;
        let mut reported = Reported::new();
        self.fast
            .sack(left, right, |s| reported.push((s.start, s.len)));
        assert_eq!(reported, self.slow.sack(left, right));
    }

    fn resend(&mut self, index: u64, sent: Sent) {
        let state = self.state();
        self.fast.resent(index, state);
        let found = self.slow.0.iter_mut().find(|s| s.start == sent.start);
        let s = found.expect("the oracle has it too");
        assert_eq!((s.len, s.fin), (sent.len, sent.fin));
        s.lost = false;
        s.retransmitted = true;
        s.sent_at = state.sent_at;
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Send { len } => self.send(len, len % 97 == 0),
            Op::SendMany { count } => (0..count).for_each(|_| self.send(MSS, false)),
            Op::Acknowledge { part } => self.acknowledge(self.at(part)),
            Op::AcknowledgeToBlock => self.acknowledge(self.left.max(self.una())),
            Op::AcknowledgeWhole { count } => {
                let ack = self
                    .slow
                    .0
                    .get(usize::from(count))
                    .map_or(self.nxt, |s| s.start);
                self.acknowledge(ack);
            }
            Op::Sack { from, segments } => {
                let first = self.pick(from);
                let last = (first + usize::from(segments)).min(self.slow.0.len());
                if first < last {
                    let right = self.slow.0[last - 1].end();
                    self.sack(self.slow.0[first].start, right);
                }
            }
            Op::SackBytes { from, to } => {
                let (a, b) = (self.at(from), self.at(to));
                self.sack(a.min(b), a.max(b));
            }
            Op::Again { to } => {
                let left = self.left.max(self.una());
                self.sack(left, self.at(to).max(left));
            }
            Op::Count => {
                let mut reported = Reported::new();
                self.fast
                    .detect_by_count(DUP_THRESH, |s| reported.push((s.start, s.len)));
                assert_eq!(reported, self.slow.detect_by_count());
            }
            Op::Time { newest } => {
                let Some(s) = self.slow.0.get(self.pick(newest)).copied() else {
                    return;
                };
                let now = self.tick();
                let newest = (s.sent_at, s.end());
                let due =
                    |s: &Sent| ((s.state.sent_at, s.end()) < newest).then(|| s.state.sent_at + RTT);
                let mut reported = Reported::new();
                let next = self
                    .fast
                    .detect_by_time(now, due, |s| reported.push((s.start, s.len)));
                assert_eq!((reported, next), self.slow.detect_by_time(now, newest));
            }
            Op::Resend { count } => {
                for _ in 0..count {
                    if let Some((index, sent)) = self.fast.next_lost() {
                        self.resend(index, sent);
                    }
                }
            }
            Op::Probe => {
                let last = self.slow.0.iter().rfind(|s| !s.sacked).map(|s| s.start);
                let found = self.fast.last_unsacked();
                assert_eq!(found.map(|f| f.1.start), last);
                if let Some((index, sent)) = found {
                    self.resend(index, sent);
                }
            }
            Op::FirstLost => {
                let reported = self.fast.mark_first_lost().map(|s| s.start);
                let expected = self.slow.0.first_mut().filter(|s| s.in_pipe()).map(|s| {
                    s.lost = true;
                    s.start
                });
                assert_eq!(reported, expected);
            }
            Op::Timeout => {
                let mut reported = Reported::new();
                self.fast.mark_all_lost(|s| reported.push((s.start, s.len)));
                assert_eq!(reported, self.slow.mark_all_lost());
            }
            Op::Undo => {
                self.fast.unmark_lost();
                self.slow.0.iter_mut().for_each(|s| s.lost = false);
            }
            Op::Split { mss } => {
                self.fast.split(u32::from(mss));
                self.slow.split(u32::from(mss));
            }
        }
    }

    fn compare(&mut self) {
        let all = &self.slow.0;
        let count = |f: fn(&Slow) -> bool| all.iter().filter(|s| f(s)).count();
        let pipe: u64 = all
            .iter()
            .filter(|s| s.in_pipe())
            .map(|s| u64::from(s.len))
            .sum();
        assert_eq!(self.fast.pipe(), pipe, "pipe");
        assert_eq!(self.fast.len(), all.len(), "segments");
        assert_eq!(self.fast.is_empty(), all.is_empty());
        assert_eq!(self.fast.sacked() as usize, count(|s| s.sacked), "sacked");
        assert_eq!(self.fast.has_lost(), count(|s| s.lost) > 0, "lost");
        let lowest = all.iter().find(|s| s.lost).map(|s| s.start);
        assert_eq!(self.fast.next_lost().map(|n| n.1.start), lowest, "next");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_oracle(ops in prop::collection::vec(op(), 1..120)) {
        let mut both = Both::new();
        for op in ops {
            both.apply(op);
            both.compare();
        }
    }
}

/// Counts the entries visited by [`Scoreboard::sack`] in the worst case that receivers produce: blocks that grow by
/// a segment per acknowledgement.
#[test]
fn growing_blocks_are_jumped_over() {
    let mut board = Scoreboard::default();
    let n = 20_000u64;
    for i in 0..n {
        board.push(i * 1000, 1000, false, SendState::default());
    }
    let mut delivered = 0;
    for i in 2..n {
        // Walking from the hole each time would make 2·10^8 steps.
        board.sack(1000, i * 1000, |_| delivered += 1);
    }
    assert_eq!(delivered, n - 2);
    assert_eq!(board.entries[1].run as u64, n - 2);
}

/// A block that starts inside a segment does not cover it, until everything before the block is acknowledged.
#[test]
fn a_block_covers_the_rest_of_a_segment() {
    let mut board = Scoreboard::default();
    let mut delivered = Vec::new();
    board.push(0, 1000, false, SendState::default());
    board.sack(500, 1000, |s| delivered.push((s.start, s.len)));
    board.acknowledge(500, |s| delivered.push((s.start, s.len)));
    board.sack(500, 1000, |s| delivered.push((s.start, s.len)));
    assert_eq!(delivered, [(0, 500), (500, 500)]);

    let mut plain = Scoreboard::default();
    let mut delivered = Vec::new();
    plain.push(0, 1000, false, SendState::default());
    plain.sack(500, 1000, |_| unreachable!("the segment is not covered"));
    plain.acknowledge_plain(500, |run| delivered.push((run.start, 500)));
    plain.sack(500, 1000, |s| delivered.push((s.start, s.len)));
    assert_eq!(delivered, [(0, 500), (500, 500)]);
}

#[test]
fn the_third_segment_acknowledged_above_a_hole_makes_it_lost() {
    let mut board = Scoreboard::default();
    for i in 0..6 {
        board.push(i * 1000, 1000, false, SendState::default());
    }
    let mut lost = Vec::new();
    for right in [2000, 3000, 4000] {
        assert!(lost.is_empty());
        board.sack(1000, right, |_| ());
        board.detect_by_count(DUP_THRESH, |s| lost.push(s.start));
    }
    assert_eq!(lost, [0]);
    // RFC 6675 §4: sent, not acknowledged, not lost.
    assert_eq!(board.pipe(), 2000);
}

/// A mark that was undone and set again is of the same transmission.
#[test]
fn a_transmission_is_lost_once() {
    let mut board = Scoreboard::default();
    let state = |ms| SendState {
        sent_at: Instant::ZERO + Duration::from_millis(ms),
        ..SendState::default()
    };
    board.push(0, MSS, false, state(0));
    let mut marked = Vec::new();
    for _ in 0..2 {
        board.mark_all_lost(|s| marked.push(s.was_lost));
        board.unmark_lost();
    }
    assert_eq!(marked, [false, true]);
    board.mark_all_lost(|_| ());
    board.resent(0, state(5));
    board.mark_all_lost(|s| marked.push(s.was_lost));
    assert_eq!(marked, [false, true, false]);
}
