//! Window-aware, the default: a path is used if what it carries arrives before the faster ones have
//! filled the peer's window, or finished; so that the whole is never slower than its best part.
//!
//! In the spirit of BLEST (Ferlin et al., 2016) and ECF (Lim et al., 2017), with these differences:
//! - How long a segment takes is the latest round trip, corrected by what is in flight at the latest delivery
//!   rate: up to twice as long, as a queue grows before its first acknowledgement comes back, and down to the
//!   least round trip, as it is gone when a path has idled.
//! - All faster paths together count, not only the fastest, by their windows and by what they delivered.
//! - A path that is filled, so that more of it would only wait in a queue, comes after one that is not: in
//!   a small window what waits in queues is what the other path lacks. A quarter of the window is only for
//!   paths that are not filled.
//! - Waiting for the end of the data (ECF) is considered only when the end is in sight: a send buffer
//!   that the application fills as fast as it empties is no end.
//!
//! Path s is used if nobody is faster. Else let T_s be its predicted time, F the faster paths, and
//! T' = (T_s + min_F T_f) / 2 the time that its segment holds the window: half a round trip there, and half
//! of one of the fastest path, whose acknowledgements tell of it. With X_f(T') = what f sends in T'
//! (doubling per round trip in slow start, cwnd T' / rtt_f or delivery rate T' otherwise), s is used if
//! c sum_F X_f(T') + what s itself sends in T' + one segment <= window; and, at the end of the data,
//! if no f could deliver all that waits before T_s. The care c is 1 + (lambda - 1) times the share of F in
//! what all of them send: if F is most of it, s has little to give and much to spoil. lambda rises by
//! `step` when a window was blocked nevertheless, at most once per T_s, and falls slowly.

use gargalo_cc::params::{Param, Values};
use gargalo_units::{Duration, Instant};

use super::{Choice, Context, Entry, PathView, Scheduler};

const PARAMS: [Param; 3] = [
    Param::number("lambda", "least factor of the estimate", 1.3, 1.0, 10.0),
    Param::number(
        "lambda_max",
        "largest factor of the estimate",
        4.0,
        1.0,
        100.0,
    ),
    Param::number(
        "step",
        "growth of the factor when a window was blocked",
        0.2,
        0.0,
        10.0,
    ),
];

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "window-aware",
    summary: "uses a slower path only where it cannot hold up the faster ones (the default)",
    source: "this project, after BLEST (IFIP Networking 2016) and ECF (CoNEXT 2017)",
    params: &PARAMS,
    build: |params| {
        let v = Values::check(ENTRY.name, ENTRY.params, params)?;
        Ok(Box::new(WindowAware::new(
            v.number("lambda"),
            v.number("lambda_max"),
            v.number("step"),
        )))
    },
};

#[derive(Debug)]
struct WindowAware {
    least: f64,
    most: f64,
    step: f64,
    lambda: f64,
    /// Lambda changes no more before this.
    settled_at: Instant,
    blocked: u64,
    /// Predicted times of the paths at hand in seconds; infinite for those that are no candidates.
    times: Vec<f64>,
}

/// What a path carries beyond its bandwidth-delay product when it is filled.
const FILLED: f64 = 1.25;

/// This part of the window is not for filled paths.
const SPARED: u64 = 4;

/// Seconds until a segment sent now on `p` is acknowledged.
fn predicted(p: &PathView) -> f64 {
    // An unknown path is slow until a copy has explored it.
    let latest = p.latest_rtt.or(p.srtt).unwrap_or(p.rto);
    let measured = latest.as_secs_f64().max(1e-9);
    // What the latest acknowledgement does not tell: what has been sent since.
    let growth = match p.delivery_rate {
        Some(rate) if !rate.is_zero() => {
            (p.in_flight + p.mss) as f64 / rate.bytes_per_sec() / measured
        }
        _ => 1.0,
    };
    // Nor what has left the queue since: a path that idled would look as slow as when it was full.
    let least = p.min_rtt.map_or(1.0, |m| m.as_secs_f64() / measured);
    measured * growth.clamp(least.min(1.0), 2.0)
}

/// Bytes that `p` sends within `time` seconds.
fn sends_within(p: &PathView, time: f64) -> f64 {
    let Some(rtt) = p.srtt else { return 0.0 };
    let rounds = time / rtt.as_secs_f64().max(1e-9);
    let cwnd = p.cwnd as f64;
    if p.in_slow_start {
        return cwnd * (libm::exp2(rounds.clamp(1.0, 16.0)) - 1.0);
    }
    let by_window = (cwnd + (rounds - 1.0).max(0.0) / 2.0 * p.mss as f64) * rounds;
    let by_rate = p.delivery_rate.map_or(0.0, |r| r.bytes_per_sec() * time);
    by_window.max(by_rate)
}

impl WindowAware {
    fn new(least: f64, most: f64, step: f64) -> Self {
        Self {
            least,
            most: most.max(least),
            step,
            lambda: least,
            settled_at: Instant::ZERO,
            blocked: 0,
            times: Vec::new(),
        }
    }

    fn adapt(&mut self, time: f64, context: &Context<'_>) {
        if context.now < self.settled_at {
            return;
        }
        let step = if context.blocked > self.blocked {
            self.step
        } else {
            -self.step / 20.0
        };
        self.blocked = context.blocked;
        self.lambda = (self.lambda + step).clamp(self.least, self.most);
        self.settled_at = context.now + Duration::from_secs_f64(time.min(10.0));
    }

    /// Whether a segment on path `i` is in nobody's way.
    fn is_harmless(&self, i: usize, context: &Context<'_>) -> bool {
        let (slow, time) = (&context.paths[i], self.times[i]);
        let least = self.times.iter().copied().fold(f64::INFINITY, f64::min);
        if least >= time {
            return true; // nobody is faster
        }
        // There on this path, and back with an acknowledgement of the fastest.
        let holds = (time + least) / 2.0;
        let mut ahead = 0.0;
        for (fast, takes) in context.paths.iter().zip(&self.times) {
            if *takes >= time {
                continue;
            }
            ahead += sends_within(fast, holds);
            // What waits and what f sends after its next round trip, before `time`.
            if !context.more && sends_within(fast, time - takes) >= context.unsent as f64 {
                return false;
            }
        }
        let own = slow.in_flight as f64 * (holds / time) + slow.mss as f64;
        let window = context.window as f64;
        // The smaller the share of the faster paths, the less harm does it that one of them is blocked.
        let share = ahead / (ahead + sends_within(slow, holds)).max(1.0);
        let care = 1.0 + (self.lambda - 1.0) * share;
        care * ahead + own <= window
    }
}

/// Whether `p` carries so much that more would only wait in a queue.
fn is_filled(p: &PathView) -> bool {
    let (Some(rate), Some(min_rtt)) = (p.delivery_rate, p.min_rtt) else {
        return false;
    };
    let holds = rate.bytes_per_sec() * min_rtt.as_secs_f64();
    (p.in_flight + p.mss) as f64 > FILLED * holds + (4 * p.mss) as f64
}

impl Scheduler for WindowAware {
    fn minds_window(&self) -> bool {
        true
    }

    fn select(&mut self, context: &Context<'_>) -> Choice {
        self.times.clear();
        self.times.resize(context.paths.len(), f64::INFINITY);
        let mut best: Option<usize> = None;
        let mut unfilled: Option<usize> = None;
        for (i, p) in context.candidates() {
            let time = predicted(p);
            self.times[i] = time;
            if !p.can_send {
                continue;
            }
            if best.is_none_or(|j| time < self.times[j]) {
                best = Some(i);
            }
            if unfilled.is_none_or(|j| time < self.times[j]) && !is_filled(p) {
                unfilled = Some(i);
            }
        }
        let Some(i) = best else {
            return Choice::Wait;
        };
        if let Some(j) = unfilled
            && j != i
            && self.is_harmless(j, context)
        {
            return Choice::Send(j);
        }
        self.adapt(self.times[i], context);
        // What only waits in queues leaves room for the paths that will have none.
        if unfilled.is_none()
            && context.paths.len() > 1
            && context.window_room < context.window / SPARED
        {
            return Choice::Wait;
        }
        if self.is_harmless(i, context) {
            Choice::Send(i)
        } else {
            Choice::Wait
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MSS, context, path};
    use super::*;
    use gargalo_units::Rate;

    fn aware() -> WindowAware {
        WindowAware::new(1.0, 4.0, 0.2)
    }

    /// 10 Mbit/s at 200 ms and 100 Mbit/s at 10 ms, the fast one full.
    fn unequal() -> [PathView; 2] {
        [path(0, 200, 250, 100), path(1, 10, 125, 125)]
    }

    #[test]
    fn the_fastest_while_it_has_room() {
        let mut paths = unequal();
        paths[1].can_send = true;
        let mut c = context(&paths);
        c.window = 10 * MSS;
        assert_eq!(aware().select(&c), Choice::Send(1));
        let lone = [paths[0]];
        let mut c = context(&lone);
        c.window = 10 * MSS;
        assert_eq!(aware().select(&c), Choice::Send(0));
    }

    #[test]
    fn a_slower_path_needs_a_window_for_both() {
        // It holds the window for (200 + 10.08) / 2 ms: 10.504 rounds of 125 + 4.75 segments, 1362.9; 53.5
        // are its own.
        let paths = unequal();
        let mut c = context(&paths);
        c.window = 1417 * MSS;
        assert_eq!(aware().select(&c), Choice::Send(0));
        c.window -= MSS;
        assert_eq!(aware().select(&c), Choice::Wait);
        // Nobody is faster: no reason to wait.
        let mut paths = unequal();
        paths[1].in_loss = true;
        let mut c = context(&paths);
        c.window = MSS;
        assert_eq!(aware().select(&c), Choice::Send(0));
    }

    #[test]
    fn a_queue_that_grows_makes_a_path_slow_before_its_round_trip_does() {
        let mut p = path(0, 100, 100, 60);
        let close = |p: &PathView, t: f64| (predicted(p) - t).abs() < 1e-9;
        assert!(close(&p, 0.1), "61 segments at 1 MB/s");
        p.delivery_rate = Some(Rate::from_bps(480_000 * 8));
        assert!(close(&p, 61_000.0 / 480_000.0));
        p.delivery_rate = Some(Rate::from_bps(1000));
        assert!(close(&p, 0.2), "old rates are not believed");
        p.delivery_rate = Some(Rate::from_bps(480_000 * 8));
        p.in_flight = 0;
        assert!(close(&p, 0.1), "an idle path has no queue");
        p.latest_rtt = Some(Duration::from_millis(300));
        assert!(close(&p, 0.1), "it has left the queue");
        p.min_rtt = Some(Duration::from_millis(250));
        assert!(close(&p, 0.25), "not below the least");
        p.delivery_rate = None;
        assert!(close(&p, 0.3));
        p.latest_rtt = None;
        assert!(close(&p, 0.1));
        p.srtt = None;
        assert!(close(&p, 0.3), "an unknown path is as slow as its timeout");
    }

    #[test]
    fn a_filled_path_comes_after_one_that_is_not() {
        // 10 segments are the product of rate and round trip; 17 are more than 5/4 of it and 4.
        let mut paths = [path(0, 90, 90, 2), path(1, 20, 10, 16)];
        paths[1].can_send = true;
        let mut c = context(&paths);
        assert_eq!(aware().select(&c), Choice::Send(0));
        // Not if that needs the window of the filled one.
        c.window = 20 * MSS;
        assert_eq!(aware().select(&c), Choice::Send(1));
        paths[1].in_flight = 15 * MSS;
        assert_eq!(aware().select(&context(&paths)), Choice::Send(1));
        // Both filled: the faster one.
        paths[1].in_flight = 16 * MSS;
        paths[0].in_flight = 130 * MSS;
        assert_eq!(aware().select(&context(&paths)), Choice::Send(1));
        // The last quarter of the window waits for a path that is not filled.
        let mut c = context(&paths);
        c.window_room = c.window / 4;
        assert_eq!(aware().select(&c), Choice::Send(1));
        c.window_room -= 1;
        assert_eq!(aware().select(&c), Choice::Wait);
        c.paths = &paths[1..];
        assert_eq!(aware().select(&c), Choice::Send(0), "alone it may fill all");
        // Nothing was measured: not known to be filled.
        paths[1].delivery_rate = None;
        assert_eq!(aware().select(&context(&paths)), Choice::Send(1));
    }

    #[test]
    fn the_end_of_the_data_waits_for_who_delivers_it_first() {
        let paths = unequal();
        let mut c = context(&paths);
        // Within 189.9 ms the fast path sends 18.99 (125 + 9) segments.
        c.unsent = 2544 * MSS;
        assert_eq!(aware().select(&c), Choice::Wait);
        c.unsent = 2545 * MSS;
        assert_eq!(aware().select(&c), Choice::Send(0));
        c.unsent = MSS;
        c.more = true;
        assert_eq!(aware().select(&c), Choice::Send(0));
    }

    #[test]
    fn without_a_usable_path_it_waits_and_backups_are_last() {
        let mut paths = [path(0, 20, 10, 2), path(1, 40, 10, 2)];
        paths[0].backup = true;
        assert_eq!(aware().select(&context(&paths)), Choice::Send(1));
        paths[1].can_send = false;
        assert_eq!(aware().select(&context(&paths)), Choice::Wait);
        paths[1].usable = false;
        assert_eq!(aware().select(&context(&paths)), Choice::Send(0));
        paths[0].in_loss = true;
        assert_eq!(aware().select(&context(&paths)), Choice::Wait);
        assert_eq!(aware().select(&context(&[])), Choice::Wait);
    }

    #[test]
    fn of_equals_the_earlier_and_no_room_is_no_obstacle() {
        let mut paths = [path(0, 20, 10, 2), path(1, 20, 10, 2)];
        assert_eq!(aware().select(&context(&paths)), Choice::Send(0));
        // A window overrun by what was sent again, or none at all.
        for (cwnd, in_flight) in [(10, 10), (5, 9), (0, 0)] {
            paths[0].cwnd = cwnd * MSS;
            paths[0].in_flight = in_flight * MSS;
            assert_eq!(aware().select(&context(&paths[..1])), Choice::Send(0));
        }
    }

    #[test]
    fn blocked_windows_make_it_careful() {
        let paths = unequal();
        let mut c = context(&paths);
        c.window = 1500 * MSS;
        let mut s = aware();
        c.blocked = 1;
        assert_eq!(
            s.select(&c),
            Choice::Wait,
            "1363 (1 + 0.2 * 0.91) + 54 > 1500"
        );
        for i in 1..=20 {
            c.now = Instant::from_nanos(1_000_000_000 + i * 200_000_000);
            s.select(&c);
        }
        assert_eq!(s.select(&c), Choice::Send(0));
    }
}
