//! Window-aware, the default: a path is used if its data arrives before the faster ones have filled the peer's
//! window or completed the transfer, so that the connection is never slower than its best paths alone.
//!
//! It follows BLEST (Ferlin et al., 2016) and ECF (Lim et al., 2017), with these differences:
//! - It considers when a segment arrives, not when its subflow-level acknowledgement returns: the DATA_ACK returns
//!   on the path that delivers it first.
//! - The predicted time of a segment is the latest round-trip time, corrected by the bytes in flight at the latest
//!   delivery rate: up to twice as long while a queue builds up that no acknowledgement has shown yet, and down to
//!   the minimum round-trip time, as the queue has drained when a path was idle.
//! - All faster paths are considered, not only the fastest. The rate of a path is its delivery rate if it has a
//!   queue, or else what its window and its pacing allow: a path that was not used for long has delivered little
//!   and can carry more.
//! - The part of the window held by slower paths is counted exactly, not by their bytes in flight, part of which
//!   has arrived already. Otherwise they would send in bursts, once per round trip, and the window would alternate
//!   between empty and full.
//! - A path that is filled, so that more data would only wait in its queue, is used after one that is not, and gets
//!   no data while the window is scarce: data that waits in queues is missing on the other paths.
//! - Waiting for the end of the data (ECF) is considered only when the end is in sight: not while the application
//!   keeps refilling the send buffer.
//!
//! Path s is used if no path is faster. Else let A_s be the time until its segment arrives, F the faster paths, and
//! H = A_s + (the shortest return time of all paths) the time that its segment holds the window. With X_f(H) = what
//! f sends in H (doubling per round trip in slow start without a queue, rate H otherwise), s is used if c sum_F
//! X_f(H) + the bytes held by s and slower paths + one segment <= window; and, at the end of the data, if no f
//! could deliver all waiting data before A_s. So the total rate is at most window / H, and no path is used that
//! increases H by more than its own rate gains. The safety factor c is 1 + (lambda - 1) times the share of F in the
//! total rate: if F is most of it, s can add little and block much. lambda rises by `step` when a window was
//! blocked nevertheless, at most once per A_s, and falls slowly.

use gargalo_cc::params::Declared;
use gargalo_settings::settings;
use gargalo_units::{Duration, Instant};

use super::{Choice, Context, Entry, PathView, Scheduler};

settings! {
    /// Parameters of [`WindowAware`].
    struct WindowAwareParams: Copy as "WindowAware", const {
        /// Smallest factor of the estimate.
        lambda: f64 = 1.05, in 1.0..=10.0;
        /// Largest factor of the estimate.
        lambda_max: f64 = 4.0, in 1.0..=100.0;
        /// Growth of the factor when a window was blocked.
        step: f64 = 0.2, in 0.0..=10.0;
    }
}

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "window-aware",
    aliases: &[],
    summary: "uses a slower path only where it cannot hold up the faster ones (the default)",
    source: "this project, after BLEST (IFIP Networking 2016) and ECF (CoNEXT 2017)",
    params: WindowAwareParams::params,
    build: |params| {
        let params = WindowAwareParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(WindowAware::new(params)))
    },
};

#[derive(Debug)]
struct WindowAware {
    least: f64,
    most: f64,
    step: f64,
    lambda: f64,
    /// Lambda does not change again before this.
    settled_at: Instant,
    blocked: u64,
    /// The current paths, by index.
    paths: Vec<Path>,
    /// Seconds that the fastest acknowledgement takes.
    back: f64,
}

/// Bytes in flight of a filled path, as a multiple of its bandwidth-delay product.
const FILLED: f64 = 1.25;

/// A smoothed round-trip time of this multiple of the minimum shows a queue.
const QUEUED: f64 = 1.25;

/// The window is scarce if it is smaller than this multiple of what the paths carry.
const SCARCE: f64 = 1.6;

fn seconds(d: Option<Duration>) -> Option<f64> {
    d.map(|d| d.as_secs_f64().max(1e-9))
}

/// What follows from the measurements of a path, computed when they change: an acknowledgement changes them, sending
/// does not. Times are in seconds, rates in bytes per second.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// The [`PathView::version`] of these measurements; 0: unknown, so they are computed each time.
    version: u64,
    mss: u64,
    /// The round-trip time without correction.
    measured: f64,
    /// The delivery rate.
    rate: Option<f64>,
    /// Bounds of the corrected round-trip time.
    least: f64,
    most: f64,
    /// Time that an acknowledgement takes: half of the minimum round-trip time.
    returns: f64,
    /// Bytes in flight, with one more segment, above which it is filled.
    filled_above: f64,
    /// What it could carry.
    carries: f64,
    srtt: Option<f64>,
    /// The window, if it doubles in each round trip.
    doubles: Option<f64>,
    /// When a segment sent now arrives; infinite for a path that is not a candidate.
    arrives: f64,
}

impl Path {
    fn of(view: &PathView) -> Self {
        let (srtt, min_rtt) = (seconds(view.srtt), seconds(view.min_rtt));
        let rate = view.delivery_rate.filter(|r| !r.is_zero());
        let rate = rate.map(|r| r.bytes_per_sec());
        // With a queue the delivery rate is that of the bottleneck.
        let has_queue = match (srtt, min_rtt) {
            (Some(srtt), Some(least)) => srtt > QUEUED * least,
            _ => false,
        };
        // A path without a sample counts as slow until a copy has probed it.
        let latest = view.latest_rtt.or(view.srtt).unwrap_or(view.rto);
        let measured = latest.as_secs_f64().max(1e-9);
        let by_window = srtt.map_or(0.0, |rtt| view.cwnd as f64 / rtt);
        let by_window = view
            .pacing_rate
            .map_or(by_window, |r| by_window.min(r.bytes_per_sec()));
        Self {
            version: view.version,
            mss: view.mss,
            measured,
            rate,
            least: min_rtt.unwrap_or(measured).min(measured),
            most: if has_queue { 2.0 * measured } else { measured },
            returns: min_rtt.or(srtt).unwrap_or(0.0) / 2.0,
            filled_above: match (rate, min_rtt) {
                (Some(rate), Some(least)) => FILLED * rate * least + (4 * view.mss) as f64,
                _ => f64::INFINITY,
            },
            carries: match rate {
                Some(rate) if has_queue => rate,
                Some(rate) => rate.max(by_window),
                None => by_window,
            },
            srtt,
            doubles: (view.in_slow_start && !has_queue).then_some(view.cwnd as f64),
            arrives: f64::INFINITY,
        }
    }

    /// Seconds until a segment sent now is acknowledged, with `bytes` in flight, the segment included.
    #[inline]
    fn predicted(&self, bytes: f64) -> f64 {
        // Correction for data sent and data that left the queue since the latest acknowledgement. A delivery rate
        // measured without a queue is the used rate, not the available one.
        match self.rate {
            Some(rate) => {
                let takes = bytes / rate;
                if takes < self.least {
                    self.least
                } else if takes > self.most {
                    self.most
                } else {
                    takes
                }
            }
            None => self.measured,
        }
    }

    /// Bytes that it sends within `time` seconds.
    #[inline]
    fn sends_within(&self, time: f64) -> f64 {
        match (self.srtt, self.doubles) {
            (None, _) => 0.0,
            (Some(rtt), Some(cwnd)) => cwnd * (libm::exp2((time / rtt).clamp(1.0, 16.0)) - 1.0),
            (Some(_), None) => self.carries * time,
        }
    }
}

/// Bytes in flight after one more segment.
#[inline]
fn next_in_flight(p: &PathView) -> f64 {
    (p.in_flight + p.mss) as f64
}

impl WindowAware {
    fn new(params: WindowAwareParams) -> Self {
        Self {
            least: params.lambda,
            most: params.lambda_max.max(params.lambda),
            step: params.step,
            lambda: params.lambda,
            settled_at: Instant::ZERO,
            blocked: 0,
            paths: Vec::new(),
            back: 0.0,
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

    /// Whether a segment on path `i` delays no other path.
    fn is_harmless(&self, i: usize, context: &Context<'_>) -> bool {
        let (slow, time) = (&self.paths[i], self.paths[i].arrives);
        // It holds the window until it has arrived and its acknowledgement has returned on the fastest path.
        let holds = time + self.back;
        let mut ahead = 0.0;
        let mut own = slow.mss as f64;
        for (view, fast) in context.paths.iter().zip(&self.paths) {
            let takes = fast.arrives;
            if takes >= time {
                own += view.held as f64;
                continue;
            }
            ahead += fast.sends_within(holds);
            // The waiting data, against what f sends after its next round trip and before `time`.
            if !context.more && fast.sends_within(time - takes) >= context.unsent as f64 {
                return false;
            }
        }
        if ahead == 0.0 {
            return true; // no path is faster
        }
        let window = context.window as f64;
        // The smaller the share of the faster paths, the less harm a block of one of them does.
        let share = ahead / (ahead + slow.sends_within(holds)).max(1.0);
        let care = 1.0 + (self.lambda - 1.0) * share;
        care * ahead + own <= window
    }

    /// Whether the window cannot hold what all paths carry while the slowest segment is in flight.
    fn is_scarce(&self, context: &Context<'_>) -> bool {
        let mut all = 0.0;
        let mut longest: f64 = 0.0;
        for path in self.paths.iter().filter(|p| p.arrives.is_finite()) {
            all += path.carries;
            let takes = path.arrives + self.back;
            if takes > longest {
                longest = takes;
            }
        }
        SCARCE * all * longest > context.window as f64
    }
}

impl Scheduler for WindowAware {
    fn minds_window(&self) -> bool {
        true
    }

    fn select(&mut self, context: &Context<'_>) -> Choice {
        self.paths.truncate(context.paths.len());
        for view in &context.paths[self.paths.len()..] {
            self.paths.push(Path::of(view));
        }
        let mut back = f64::INFINITY;
        let mut best: Option<(usize, f64)> = None;
        let mut unfilled: Option<(usize, f64)> = None;
        let mut several = 0;
        let is_candidate = context.candidate();
        for (i, (p, path)) in context.paths.iter().zip(&mut self.paths).enumerate() {
            if !is_candidate(p) {
                path.arrives = f64::INFINITY;
                continue;
            }
            if path.version != p.version || p.version == 0 {
                *path = Path::of(p);
            }
            let bytes = next_in_flight(p);
            let time = path.predicted(bytes) - path.returns;
            path.arrives = time;
            if path.returns < back {
                back = path.returns;
            }
            several += 1;
            if !p.can_send {
                continue;
            }
            if best.is_none_or(|b| time < b.1) {
                best = Some((i, time));
            }
            // A path that carries so much that more data would only wait in a queue is filled.
            if unfilled.is_none_or(|b| time < b.1) && bytes <= path.filled_above {
                unfilled = Some((i, time));
            }
        }
        self.back = back;
        let Some((i, time)) = best else {
            return Choice::Wait;
        };
        if let Some((j, _)) = unfilled
            && self.is_harmless(j, context)
        {
            return Choice::Send(j);
        }
        self.adapt(time, context);
        // Data that would only wait in a queue is held back, to leave window for the other paths.
        if several > 1 && self.is_scarce(context) {
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
    use super::super::testing::{MSS, context, least_window, path};
    use super::*;
    use gargalo_units::Rate;

    fn sends_within(p: &PathView, time: f64) -> f64 {
        Path::of(p).sends_within(time)
    }

    fn predicted(p: &PathView) -> f64 {
        Path::of(p).predicted(next_in_flight(p))
    }

    fn aware() -> WindowAware {
        WindowAware::new(WindowAwareParams {
            lambda: 1.0,
            ..WindowAwareParams::DEFAULT
        })
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
        // It holds the window for 100 + 5 ms, in which the fast one sends 1312.5 segments; 100 and this one
        // are its own.
        let paths = unequal();
        let mut c = context(&paths);
        c.window = 1414 * MSS;
        assert_eq!(aware().select(&c), Choice::Send(0));
        c.window -= MSS;
        assert_eq!(aware().select(&c), Choice::Wait);
        // Data that has arrived holds no window, although it is in flight until its path acknowledges it.
        let mut paths = unequal();
        paths[0].held = 99 * MSS;
        c.paths = &paths;
        assert_eq!(aware().select(&c), Choice::Send(0));
        // No path is faster: no reason to wait.
        let mut paths = unequal();
        paths[1].in_loss = true;
        let mut c = context(&paths);
        c.window = MSS;
        assert_eq!(aware().select(&c), Choice::Send(0));
    }

    #[test]
    fn what_a_path_could_send_is_its_rate_only_if_a_queue_stands() {
        // 10 segments per 100 ms were delivered, the window has 100.
        let mut p = path(0, 100, 100, 10);
        p.delivery_rate = Some(Rate::from_bps(100_000 * 8));
        let close = |p: &PathView, n: f64| (sends_within(p, 0.1) - n * 1e3).abs() < 1.0;
        assert!(close(&p, 100.0));
        p.pacing_rate = Some(Rate::from_bps(400_000 * 8));
        assert!(close(&p, 40.0));
        p.in_slow_start = true;
        assert!(close(&p, 100.0));
        p.min_rtt = Some(Duration::from_millis(70));
        assert!(close(&p, 10.0));
    }

    #[test]
    fn a_queue_that_grows_makes_a_path_slow_before_its_round_trip_does() {
        let mut p = path(0, 100, 100, 60);
        let close = |p: &PathView, t: f64| (predicted(p) - t).abs() < 1e-9;
        assert!(close(&p, 0.1), "61 segments at 1 MB/s");
        p.delivery_rate = Some(Rate::from_bps(480_000 * 8));
        assert!(close(&p, 0.1), "no queue: it was not asked for more");
        p.min_rtt = Some(Duration::from_millis(50));
        assert!(close(&p, 61_000.0 / 480_000.0));
        p.delivery_rate = Some(Rate::from_bps(1000));
        assert!(close(&p, 0.2), "old rates are not accepted");
        p.delivery_rate = Some(Rate::from_bps(480_000 * 8));
        p.in_flight = 0;
        assert!(close(&p, 0.05), "an idle path has no queue");
        p.latest_rtt = Some(Duration::from_millis(300));
        assert!(close(&p, 0.05), "it has left the queue");
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
        // Not if that needs the window of the filled one; and more of that one would only wait.
        c.window = 20 * MSS;
        assert_eq!(aware().select(&c), Choice::Wait);
        paths[1].in_flight = 15 * MSS;
        let mut c = context(&paths);
        assert_eq!(aware().select(&c), Choice::Send(1));
        c.window = 20 * MSS;
        assert_eq!(aware().select(&c), Choice::Send(1));
        // Both filled: the faster one, unless the window is scarce. Within 45 + 10 ms they carry 82.5
        // segments, and 132 are 1.6 times that.
        paths[1].in_flight = 16 * MSS;
        paths[0].in_flight = 130 * MSS;
        let mut c = context(&paths);
        assert_eq!(aware().select(&c), Choice::Send(1));
        c.window = 133 * MSS;
        assert_eq!(aware().select(&c), Choice::Send(1));
        c.window = 131 * MSS;
        assert_eq!(aware().select(&c), Choice::Wait);
        c.paths = &paths[1..];
        assert_eq!(aware().select(&c), Choice::Send(0), "alone it may fill all");
        // Without a measurement a path does not count as filled.
        paths[1].delivery_rate = None;
        assert_eq!(aware().select(&context(&paths)), Choice::Send(1));
    }

    #[test]
    fn the_end_of_the_data_waits_for_who_delivers_it_first() {
        let paths = unequal();
        let mut c = context(&paths);
        // Data that the fast path sends within 95 ms arrives earlier.
        c.unsent = 1187 * MSS;
        assert_eq!(aware().select(&c), Choice::Wait);
        c.unsent = 1188 * MSS;
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
        // A window exceeded by retransmissions, or a closed one.
        for (cwnd, in_flight) in [(10, 10), (5, 9), (0, 0)] {
            paths[0].cwnd = cwnd * MSS;
            paths[0].in_flight = in_flight * MSS;
            assert_eq!(aware().select(&context(&paths[..1])), Choice::Send(0));
        }
    }

    #[test]
    fn what_follows_from_measurements_is_computed_again_when_the_version_changes() {
        let mut paths = unequal();
        let mut s = aware();
        for (i, p) in paths.iter_mut().enumerate() {
            p.version = 1 + i as u64;
        }
        let mut select = |paths: &[PathView]| s.select(&context(paths));
        assert_eq!(select(&paths), Choice::Send(0), "the fast one is full");
        // What sending changes is read each time.
        paths[1].can_send = true;
        paths[1].in_flight = 0;
        assert_eq!(select(&paths), Choice::Send(1));
        // Then the first is the fast one, and after that the slow one, with a version and without one.
        let slow = paths[1];
        paths[0].in_flight = 0;
        for (version, millis, expected) in [(3, 2, 0), (0, 300, 1)] {
            let rtt = Some(Duration::from_millis(millis));
            (paths[0].srtt, paths[0].latest_rtt, paths[0].min_rtt) = (rtt, rtt, rtt);
            paths[0].version = version;
            assert_eq!(select(&paths), Choice::Send(expected));
        }
        // A path that takes the place of another.
        assert_eq!(select(&[slow]), Choice::Send(0));
    }

    #[test]
    fn blocked_windows_make_it_careful() {
        let paths = unequal();
        let mut c = context(&paths);
        let mut s = aware();
        c.blocked = 1;
        c.window = 1413 * MSS;
        assert_eq!(s.select(&c), Choice::Wait);
        c.window = 1500 * MSS;
        let answer = s.select(&c);
        assert_eq!(answer, Choice::Wait, "1312.5 (1 + 0.2 * 0.91) + 101 > 1500");
        for i in 1..=20 {
            c.now = Instant::from_nanos(1_000_000_000 + i * 200_000_000);
            s.select(&c);
        }
        assert_eq!(s.select(&c), Choice::Send(0));
    }

    #[test]
    fn the_window_that_a_slower_path_needs_is_that_of_all_paths_while_it_holds_one() {
        // A slow path that has room; the others are full: round trip and window, and whether in slow start.
        type Full = (u64, u64, bool);
        let cases: [(&[Full], f64); 5] = [
            // It holds its segment for 100 ms and the 5 ms in which an acknowledgement returns on the fastest.
            (&[(10, 125, false)], 0.105 * 12_500.0),
            (
                &[(10, 125, false), (20, 40, false)],
                0.105 * (12_500.0 + 2000.0),
            ),
            (
                &[(20, 40, false), (10, 125, false)],
                0.105 * (12_500.0 + 2000.0),
            ),
            // 2^(110 / 20) windows but one in slow start; and 16 doublings at most.
            (&[(20, 40, true)], 40.0 * (f64::exp2(5.5) - 1.0)),
            (&[(2, 3, true)], 3.0 * 65_535.0),
        ];
        for (full, ahead) in cases {
            let mut paths = vec![path(0, 200, 250, 100)];
            for (id, (rtt, cwnd, starting)) in (1..).zip(full) {
                let mut p = path(id, *rtt, *cwnd, *cwnd);
                p.in_slow_start = *starting;
                paths.push(p);
            }
            // What a still slower path holds counts as well, and what a path in loss does not.
            let mut slower = path(8, 900, 40, 40);
            slower.held = 30 * MSS;
            paths.push(slower);
            let window = least_window(&mut aware(), &context(&paths), 0);
            let expected = (ahead + 101.0 + 30.0) * MSS as f64;
            assert!(
                (window as f64 - expected).abs() < 2.0,
                "{window} {expected}"
            );
        }
    }

    #[test]
    fn the_factor_rises_by_a_step_and_falls_by_a_twentieth_within_its_bounds() {
        let paths = unequal();
        let mut s = WindowAware::new(WindowAwareParams::DEFAULT);
        let mut c = context(&paths);
        // Within 105 ms the fast path sends 1312.5 segments and the slow one 131.25.
        let share = 1312.5 / (1312.5 + 131.25);
        let mut blocked = 0;
        let mut now = 1_000;
        let mut factor = |after: u64, more: u64| {
            now += after;
            blocked += more;
            c.now = Instant::from_nanos(1_000_000 * now);
            c.blocked = blocked;
            c.window = 1;
            assert_eq!(s.select(&c), Choice::Wait);
            let window = least_window(&mut s, &c, 0) as f64 / MSS as f64;
            1.0 + ((window - 101.0) / 1312.5 - 1.0) / share
        };
        let close = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-4, "{got}");
        close(factor(0, 0), 1.05);
        close(factor(100, 1), 1.25);
        // Not again before the segment would have arrived, in 100 ms.
        close(factor(99, 1), 1.25);
        close(factor(1, 0), 1.45);
        close(factor(100, 0), 1.44);
        close(factor(100, 0), 1.43);
        for _ in 0..20 {
            factor(100, 1);
        }
        close(factor(100, 1), 4.0);
        for _ in 0..400 {
            factor(100, 0);
        }
        close(factor(100, 0), 1.05);
    }

    #[test]
    fn the_smaller_of_window_and_pacing_is_what_a_path_could_carry() {
        let mut p = path(0, 100, 100, 10);
        let carried = |p: &PathView| (sends_within(p, 1.0) / MSS as f64).round() as u64;
        assert_eq!(carried(&p), 1000);
        p.delivery_rate = None;
        assert_eq!(carried(&p), 1000);
        p.pacing_rate = Some(Rate::from_bps(2_000_000 * 8));
        assert_eq!(carried(&p), 1000);
        p.pacing_rate = Some(Rate::from_bps(300_000 * 8));
        assert_eq!(carried(&p), 300);
        p.delivery_rate = Some(Rate::from_bps(700_000 * 8));
        assert_eq!(carried(&p), 700, "it has carried more");
        // A smoothed round trip of more than 5/4 of the least one shows a queue.
        p.delivery_rate = Some(Rate::from_bps(100_000 * 8));
        p.min_rtt = Some(Duration::from_millis(80));
        assert_eq!(carried(&p), 300);
        p.min_rtt = Some(Duration::from_millis(79));
        assert_eq!(carried(&p), 100);
        p.srtt = None;
        assert_eq!(carried(&p), 0);
    }

    #[test]
    fn of_two_paths_with_room_the_one_that_delivers_first_is_used() {
        // Ten segments take 10 ms at 1 MB/s; half of the least round trip is the way back.
        let mut paths = [path(0, 40, 40, 2), path(1, 30, 30, 2)];
        assert_eq!(aware().select(&context(&paths)), Choice::Send(1));
        // A queue of its own makes it later: 60 ms of data less 15, against 40 less 20.
        paths[1].in_flight = 35 * MSS;
        paths[1].min_rtt = Some(Duration::from_millis(20));
        assert_eq!(aware().select(&context(&paths)), Choice::Send(0));
        paths[1].in_flight = 2 * MSS;
        assert_eq!(aware().select(&context(&paths)), Choice::Send(1));
    }
}
