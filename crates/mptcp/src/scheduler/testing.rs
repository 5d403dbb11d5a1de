//! Path states for the tests of schedulers.

use gargalo_units::{Duration, Instant, Rate};

use super::{Choice, Context, PathView, Scheduler};

pub(super) const MSS: u64 = 1000;

/// A ready path: round trip in ms, window and bytes in flight in segments, in congestion avoidance.
pub(super) fn path(id: u32, rtt_ms: u64, cwnd: u64, in_flight: u64) -> PathView {
    let rtt = Duration::from_millis(rtt_ms);
    PathView {
        id,
        srtt: Some(rtt),
        rttvar: Some(rtt / 8),
        latest_rtt: Some(rtt),
        min_rtt: Some(rtt),
        rto: rtt * 3,
        cwnd: cwnd * MSS,
        ssthresh: Some(cwnd * MSS),
        in_slow_start: false,
        in_flight: in_flight * MSS,
        queued: 0,
        held: in_flight * MSS,
        mss: MSS,
        delivery_rate: Some(Rate::from_bps_f64(
            (cwnd * MSS * 8) as f64 / rtt.as_secs_f64(),
        )),
        pacing_rate: None,
        backup: false,
        in_loss: false,
        usable: true,
        can_send: in_flight < cwnd || in_flight == 0,
        sent_packets: 1000,
        lost_packets: 0,
        version: 0,
    }
}

pub(super) fn context(paths: &[PathView]) -> Context<'_> {
    Context {
        now: Instant::from_nanos(1_000_000_000),
        paths,
        labels: &[],
        unsent: 1 << 40,
        more: false,
        window: 1 << 30,
        window_room: 1 << 29,
        blocked: 0,
    }
}

/// The least window, in bytes, with which a scheduler chooses path `i`.
pub(super) fn least_window(s: &mut dyn Scheduler, context: &Context<'_>, i: usize) -> u64 {
    let mut chooses = |window| s.select(&Context { window, ..*context }) == Choice::Send(i);
    let (mut low, mut high) = (0, 1 << 30);
    assert!(chooses(high) && !chooses(low));
    while high - low > 1 {
        let middle = u64::midpoint(low, high);
        if chooses(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}
