//! BLEST, blocking estimation: a slower path is not used if the data that the fastest one could send during its
//! round trip would then not fit into the peer's window.
//!
//! When the path f with the lowest round-trip time has no room, let s be the best of those that have. During one
//! round trip of s, n = rtt_s / rtt_f rounds, f sends X bytes: cwnd (2^n - 1) in slow start, (cwnd + (n - 1) / 2
//! segments) n in congestion avoidance. If lambda X exceeds the window less what s has in flight and the segment,
//! nothing is sent. lambda grows when windows were blocked nevertheless, and shrinks otherwise, once per round trip
//! of s.

use gargalo_cc::params::Declared;
use gargalo_settings::settings;
use gargalo_units::Instant;

use super::{Choice, Context, Entry, PathView, Scheduler};

settings! {
    /// Parameters of [`Blest`].
    struct BlestParams: Copy as "Blest", const {
        /// Initial factor of the estimate (lambda).
        lambda: f64 = 1.2, in 1.0..=10.0;
        /// Largest factor of the estimate.
        lambda_max: f64 = 1.3, in 1.0..=10.0;
        /// Growth of the factor after a blocked window; it shrinks by a quarter of this.
        step: f64 = 0.04, in 0.0..=1.0;
    }
}

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "blest",
    aliases: &[],
    summary: "waits for the fastest path where a slower one would block the window",
    source: "Ferlin et al., BLEST, IFIP Networking 2016; Linux MPTCP v0.9x, mptcp_blest",
    params: BlestParams::params,
    build: |params| {
        let params = BlestParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(Blest {
            lambda: params.lambda,
            most: params.lambda_max.max(params.lambda),
            step: params.step,
            adapted_at: Instant::ZERO,
            blocked: 0,
        }))
    },
};

/// Rounds of growth that the estimate takes into account.
const MOST_ROUNDS: f64 = 16.0;

/// Bytes that `fast` sends during one round trip of `slow`.
pub(super) fn sends_meanwhile(fast: &PathView, rounds: f64) -> f64 {
    let (cwnd, mss) = (fast.cwnd as f64, fast.mss as f64);
    let n = rounds.clamp(1.0, MOST_ROUNDS);
    if fast.in_slow_start {
        cwnd * (libm::exp2(n) - 1.0)
    } else {
        (cwnd + (n - 1.0) / 2.0 * mss) * rounds.max(1.0)
    }
}

#[derive(Debug)]
struct Blest {
    lambda: f64,
    most: f64,
    step: f64,
    adapted_at: Instant,
    /// Number of blocked windows when lambda was last adapted.
    blocked: u64,
}

impl Blest {
    fn adapt(&mut self, slow: &PathView, context: &Context<'_>) {
        if context.now - self.adapted_at < slow.latency() {
            return;
        }
        self.adapted_at = context.now;
        let step = if context.blocked > self.blocked {
            self.step
        } else {
            -self.step / 4.0
        };
        self.blocked = context.blocked;
        self.lambda = (self.lambda + step).clamp(1.0, self.most);
    }
}

impl Scheduler for Blest {
    fn select(&mut self, context: &Context<'_>) -> Choice {
        let Some((fast, f)) = context.candidates().min_by_key(|(_, p)| p.latency()) else {
            return Choice::Wait;
        };
        if f.can_send {
            return Choice::Send(fast);
        }
        let Some(slow) = context.lowest_latency() else {
            return Choice::Wait;
        };
        let s = &context.paths[slow];
        self.adapt(s, context);
        let (Some(rtt_f), Some(rtt_s)) = (f.srtt, s.srtt) else {
            return Choice::Send(slow);
        };
        let rounds = rtt_s.as_secs_f64() / rtt_f.as_secs_f64().max(1e-9);
        let ahead = self.lambda * sends_meanwhile(f, rounds);
        if ahead > context.window as f64 - (s.mss + s.in_flight) as f64 {
            Choice::Wait
        } else {
            Choice::Send(slow)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MSS, context, least_window, path};
    use super::*;
    use gargalo_cc::params::Params;

    fn blest() -> Box<dyn Scheduler> {
        (ENTRY.build)(&Params::new()).unwrap()
    }

    #[test]
    fn the_fastest_while_it_has_room() {
        let paths = [path(0, 200, 10, 2), path(1, 10, 10, 2)];
        let mut c = context(&paths);
        c.window = 1;
        assert_eq!(blest().select(&c), Choice::Send(1));
    }

    #[test]
    fn a_slower_path_only_if_the_window_outlasts_it() {
        // Fast: 10 segments, 4 rounds of 25 ms: (10 + 1.5) * 4 = 46 segments. No window was blocked: times
        // 1.19 = 54.74.
        let paths = [path(0, 100, 20, 5), path(1, 25, 10, 10)];
        let mut c = context(&paths);
        c.window = (55 + 6) * MSS;
        assert_eq!(blest().select(&c), Choice::Send(0));
        c.window = (54 + 6) * MSS;
        assert_eq!(blest().select(&c), Choice::Wait);
        // In slow start: 10 * 15 = 150 segments, times 1.19 = 178.5.
        let mut paths = paths;
        paths[1].in_slow_start = true;
        let mut c = context(&paths);
        c.window = (179 + 6) * MSS;
        assert_eq!(blest().select(&c), Choice::Send(0));
        c.window -= MSS;
        assert_eq!(blest().select(&c), Choice::Wait);
    }

    #[test]
    fn lambda_learns_from_blocked_windows() {
        let paths = [path(0, 100, 20, 5), path(1, 25, 10, 10)];
        let mut c = context(&paths);
        // Enough at lambda 1.2, too little at 1.24: 46 * 1.24 = 57.04.
        c.window = (57 + 6) * MSS;
        let mut b = blest();
        c.blocked = 1;
        assert_eq!(b.select(&c), Choice::Wait);
        // Round trips without blocking reduce it again.
        let mut answers = Vec::new();
        for i in 1..6 {
            c.now = Instant::from_nanos(1_000_000_000 + i * 100_000_000);
            answers.push(b.select(&c));
        }
        assert_eq!(answers.last(), Some(&Choice::Send(0)));
    }

    #[test]
    fn the_window_that_a_slower_path_needs_follows_from_what_the_fast_one_sends_meanwhile() {
        // Round trip and bytes in flight of the slow path; round trip, window and slow start of the fast one; segments
        // that it sends meanwhile.
        for (slow, in_flight, fast, cwnd, starting, sent) in [
            (100, 5, 25, 10, false, 46.0),
            (100, 7, 50, 10, false, 21.0),
            (100, 5, 25, 10, true, 150.0),
            // Growth is considered for 16 rounds, and one round at least.
            (800, 5, 20, 4, false, (4.0 + 7.5) * 40.0),
            (800, 5, 20, 4, true, 4.0 * 65_535.0),
            (100, 5, 100, 4, true, 4.0),
        ] {
            let mut paths = [path(0, slow, 90, in_flight), path(1, fast, cwnd, cwnd)];
            paths[1].in_slow_start = starting;
            paths[1].srtt = Some(gargalo_units::Duration::from_millis(fast));
            if slow == fast {
                paths.swap(0, 1);
            }
            let i = usize::from(slow == fast);
            let window = least_window(&mut *blest(), &context(&paths), i);
            let expected = 1.19 * sent * MSS as f64 + ((1 + in_flight) * MSS) as f64;
            assert!(
                (window as f64 - expected).abs() <= 1.0,
                "{window} {expected}"
            );
        }
    }

    #[test]
    fn lambda_rises_by_a_step_and_falls_by_a_quarter_once_in_a_round_trip() {
        let paths = [path(0, 100, 20, 5), path(1, 25, 10, 10)];
        let mut b = blest();
        let mut c = context(&paths);
        // Milliseconds, blocked windows in all, lambda.
        for (ms, blocked, lambda) in [
            (1000, 0, 1.19),
            (1099, 1, 1.19),
            (1100, 1, 1.23),
            (1200, 2, 1.27),
            (1300, 3, 1.3),
            (1400, 3, 1.29),
            (1500, 3, 1.28),
        ] {
            c.now = Instant::from_nanos(1_000_000 * ms);
            c.blocked = blocked;
            let window = least_window(&mut *b, &c, 0) as f64;
            let got = (window / MSS as f64 - 6.0) / 46.0;
            assert!((got - lambda).abs() < 1e-4, "{ms}: {got}");
        }
        for k in 0..100 {
            c.now = Instant::from_nanos(1_000_000_000 * (2 + k));
            b.select(&c);
        }
        let window = least_window(&mut *b, &c, 0);
        assert_eq!(window, (46 + 6) * MSS, "it is never below 1");
    }

    #[test]
    fn without_a_round_trip_time_of_either_path_there_is_nothing_to_estimate() {
        let mut paths = [path(0, 100, 20, 5), path(1, 25, 10, 10)];
        paths[0].srtt = None;
        let mut c = context(&paths);
        c.window = 1;
        assert_eq!(blest().select(&c), Choice::Send(0));
    }
}
