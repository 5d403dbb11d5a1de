//! The records of `gargalo_cc` as plug-ins take them.

use gargalo_cc as cc;
use gargalo_plugin::congestion::abi;
use gargalo_units::{Bytes, Duration, Instant};

#[inline]
fn span(d: Option<Duration>) -> u64 {
    d.map_or(abi::NONE, Duration::as_nanos)
}

#[inline]
pub(super) fn path(path: &cc::Path<'_>, siblings: &[abi::Sibling]) -> abi::Path {
    abi::Path {
        mss_bytes: path.mss.get(),
        srtt_ns: span(path.srtt),
        latest_rtt_ns: span(path.latest_rtt),
        min_rtt_ns: span(path.min_rtt),
        in_flight_bytes: path.in_flight.get(),
        siblings: siblings.as_ptr(),
        sibling_count: siblings.len() as u64,
        index: path.index as u64,
    }
}

pub(super) fn sibling(s: &cc::Sibling) -> abi::Sibling {
    abi::Sibling {
        cwnd_bytes: s.cwnd.get(),
        srtt_ns: span(s.srtt),
        min_rtt_ns: span(s.min_rtt),
        mss_bytes: s.mss.get(),
        since_loss_bytes: s.since_loss.get(),
        between_losses_bytes: s.between_losses.get(),
        rate_bytes_per_s: s.rate,
        can_send: s.can_send.into(),
    }
}

pub(super) fn sent(s: &cc::Sent) -> abi::Sent {
    let restart = s.idle.and_then(|i| i.restart_window);
    abi::Sent {
        now_ns: s.now.as_nanos(),
        bytes: s.bytes.get(),
        in_flight_bytes: s.in_flight.get(),
        idle_ns: span(s.idle.map(|i| i.duration)),
        rto_ns: span(s.idle.map(|i| i.rto)),
        restart_window_bytes: restart.map_or(abi::NONE, Bytes::get),
        app_limited: s.app_limited.into(),
        retransmission: s.retransmission.into(),
        was_app_limited: s.idle.is_some_and(|i| i.was_app_limited).into(),
        reserved: 0,
    }
}

#[inline]
pub(super) fn acked(a: &cc::Acked) -> abi::Acked {
    abi::Acked {
        now_ns: a.now.as_nanos(),
        bytes: a.bytes.get(),
        acknowledged_bytes: a.acknowledged.get(),
        ce_bytes: a.ce_bytes.get(),
        rtt_ns: span(a.rtt),
        sent_at_ns: a.sent_at.map_or(abi::NONE, Instant::as_nanos),
        in_flight_before_bytes: a.in_flight_before.get(),
        in_flight_bytes: a.in_flight.get(),
        sample: a.sample.map_or_else(Default::default, |s| sample(&s)),
        has_sample: a.sample.is_some().into(),
        cwnd_limited: a.cwnd_limited.into(),
        in_recovery: a.in_recovery.into(),
        round_start: a.round_start.into(),
    }
}

pub(super) fn established(e: &cc::Established) -> abi::Established {
    abi::Established {
        now_ns: e.now.as_nanos(),
        window_bytes: e.window.get(),
    }
}

#[inline]
fn sample(s: &cc::RateSample) -> abi::RateSample {
    abi::RateSample {
        delivered_bytes: s.delivered.get(),
        lost_bytes: s.lost.get(),
        interval_ns: s.interval.as_nanos(),
        send_elapsed_ns: s.send_elapsed.as_nanos(),
        ack_elapsed_ns: s.ack_elapsed.as_nanos(),
        prior_delivered_bytes: s.prior_delivered.get(),
        total_delivered_bytes: s.total_delivered.get(),
        tx_in_flight_bytes: s.tx_in_flight.get(),
        app_limited: s.app_limited.into(),
        retransmission: s.retransmission.into(),
    }
}

pub(super) fn lost(l: &cc::Lost) -> abi::Lost {
    abi::Lost {
        now_ns: l.now.as_nanos(),
        bytes: l.bytes.get(),
        in_flight_bytes: l.in_flight.get(),
        sent_at_ns: l.state.sent_at.as_nanos(),
        first_sent_at_ns: l.state.first_sent_at.as_nanos(),
        delivered_bytes: l.state.delivered.get(),
        delivered_at_ns: l.state.delivered_at.as_nanos(),
        lost_bytes: l.state.lost.get(),
        tx_in_flight_bytes: l.state.in_flight.get(),
        app_limited: l.state.app_limited.into(),
        new_burst: l.new_burst.into(),
    }
}

fn cause(cause: cc::Cause) -> (u32, u32) {
    match cause {
        cc::Cause::Loss => (abi::cause::LOSS, 0),
        cc::Cause::Ecn => (abi::cause::ECN, 0),
        cc::Cause::Timeout { consecutive } => (abi::cause::TIMEOUT, consecutive),
    }
}

pub(super) fn congestion(c: &cc::Congestion) -> abi::Congestion {
    let (cause, consecutive) = cause(c.cause);
    abi::Congestion {
        now_ns: c.now.as_nanos(),
        lost_bytes: c.lost.get(),
        in_flight_bytes: c.in_flight.get(),
        cause,
        consecutive,
    }
}

pub(super) fn spurious(s: &cc::Spurious) -> abi::Spurious {
    let (cause, consecutive) = cause(s.cause);
    abi::Spurious {
        now_ns: s.now.as_nanos(),
        cause,
        consecutive,
    }
}
