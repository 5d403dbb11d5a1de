//! The records a congestion control written in Python is given: seconds, bytes, bits per second.

use gargalo_cc as cc;
use gargalo_units::{Bytes, Duration, Instant};
use pyo3::prelude::*;

fn seconds(d: Option<Duration>) -> Option<f64> {
    d.map(Duration::as_secs_f64)
}

fn time(t: Instant) -> f64 {
    t.as_secs_f64()
}

fn bytes(b: Bytes) -> u64 {
    b.get()
}

/// Defines a frozen Python class whose attributes are the fields, made from a record of `gargalo-cc`.
macro_rules! record {
    ($(#[doc = $doc:literal])+ $name:ident from |$r:ident: $rust:ty| { $( $(#[doc = $fdoc:literal])+ $field:ident: $ty:ty = $value:expr, )+ }) => {
        $(#[doc = $doc])+
        #[pyclass(frozen, get_all, module = "gargalo")]
        #[derive(Clone, Debug)]
        pub struct $name {
            $( $(#[doc = $fdoc])+ pub $field: $ty, )+
        }

        impl From<$rust> for $name {
            fn from($r: $rust) -> Self {
                Self { $( $field: $value, )+ }
            }
        }

        #[pymethods]
        impl $name {
            fn __repr__(&self) -> String {
                format!("{self:?}")
            }
        }
    };
}

record! {
    /// What a controller starts from.
    Init from |r: (&cc::Init, u64)| {
        /// When the path is opened, in seconds.
        now: f64 = time(r.0.now),
        /// Maximum segment size: payload bytes.
        mss: u64 = bytes(r.0.mss),
        /// The transport's initial window in bytes (RFC 6928).
        initial_window: u64 = bytes(r.0.initial_window),
        /// Seed for the controller's own random stream, derived from the run's.
        seed: u64 = r.1,
    }
}

record! {
    /// A packet is about to leave.
    Sent from |r: &cc::Sent| {
        /// When, in seconds.
        now: f64 = time(r.now),
        /// Its payload in bytes.
        bytes: u64 = bytes(r.bytes),
        /// Bytes in flight before this packet.
        in_flight: u64 = bytes(r.in_flight),
        /// The sender has less to send than the window allows.
        app_limited: bool = r.app_limited,
        /// It repeats data.
        retransmission: bool = r.retransmission,
        /// Seconds since the last packet, if nothing was in flight.
        idle: Option<f64> = seconds(r.idle.map(|i| i.duration)),
        /// The retransmission timeout in seconds, if nothing was in flight.
        rto: Option<f64> = seconds(r.idle.map(|i| i.rto)),
        /// The restart window in bytes, if the transport restarts after idle periods.
        restart_window: Option<u64> = r.idle.and_then(|i| i.restart_window).map(bytes),
    }
}

record! {
    /// An acknowledgement that delivered something new or carried an RTT sample.
    Acked from |r: &cc::Acked| {
        /// When, in seconds.
        now: f64 = time(r.now),
        /// Newly delivered bytes.
        bytes: u64 = bytes(r.bytes),
        /// Bytes that a window may grow for: acknowledged cumulatively. Data that was only reported selectively counts
        /// when it is acknowledged.
        acknowledged: u64 = bytes(r.acknowledged),
        /// Of the delivered bytes, those marked Congestion Experienced.
        ce_bytes: u64 = bytes(r.ce_bytes),
        /// Round-trip sample in seconds.
        rtt: Option<f64> = seconds(r.rtt),
        /// When the newest segment acknowledged here was sent, in seconds.
        sent_at: Option<f64> = r.sent_at.map(time),
        /// Bytes in flight before this acknowledgement.
        in_flight_before: u64 = bytes(r.in_flight_before),
        /// Bytes in flight after it.
        in_flight: u64 = bytes(r.in_flight),
        /// The window, not the application, limited sending during the last round trip.
        cwnd_limited: bool = r.cwnd_limited,
        /// The transport is in recovery; it paces the reduction itself.
        in_recovery: bool = r.in_recovery,
        /// A round trip ended with this acknowledgement.
        round_start: bool = r.round_start,
        /// Delivery-rate sample.
        sample: Option<RateSample> = r.sample.as_ref().map(RateSample::from),
    }
}

record! {
    /// A delivery-rate sample.
    RateSample from |r: &cc::RateSample| {
        /// Bytes delivered over the interval.
        delivered: u64 = bytes(r.delivered),
        /// Bytes lost over the interval.
        lost: u64 = bytes(r.lost),
        /// Length of the interval in seconds.
        interval: f64 = r.interval.as_secs_f64(),
        /// delivered / interval in bit/s.
        delivery_rate: u64 = r.delivery_rate().as_bps(),
        /// Total delivered when the newest acknowledged segment was sent, in bytes: a round clock.
        prior_delivered: u64 = bytes(r.prior_delivered),
        /// Total delivered now, in bytes.
        total_delivered: u64 = bytes(r.total_delivered),
        /// Bytes in flight when the newest acknowledged segment was sent.
        tx_in_flight: u64 = bytes(r.tx_in_flight),
        /// The application limited the sender then.
        app_limited: bool = r.app_limited,
        /// The newest acknowledged segment was a retransmission.
        retransmission: bool = r.retransmission,
    }
}

record! {
    /// A segment was marked lost.
    Lost from |r: &cc::Lost| {
        /// When, in seconds.
        now: f64 = time(r.now),
        /// Its payload in bytes.
        bytes: u64 = bytes(r.bytes),
        /// When it was (last) sent, in seconds.
        sent_at: f64 = time(r.state.sent_at),
        /// Bytes in flight when it was sent, itself included.
        tx_in_flight: u64 = bytes(r.state.in_flight),
        /// The first loss in the current round trip.
        new_burst: bool = r.new_burst,
        /// Bytes in flight after the marking.
        in_flight: u64 = bytes(r.in_flight),
    }
}

const fn cause(c: cc::Cause) -> (&'static str, u32) {
    match c {
        cc::Cause::Loss => ("loss", 0),
        cc::Cause::Ecn => ("ecn", 0),
        cc::Cause::Timeout { consecutive } => ("timeout", consecutive),
    }
}

record! {
    /// A congestion event.
    Congestion from |r: &cc::Congestion| {
        /// When, in seconds.
        now: f64 = time(r.now),
        /// "loss", "ecn" or "timeout".
        cause: &'static str = cause(r.cause).0,
        /// Timeouts in a row without new data acknowledged; 0 unless the cause is a timeout.
        consecutive: u32 = cause(r.cause).1,
        /// Bytes marked lost so far in this event.
        lost: u64 = bytes(r.lost),
        /// Bytes in flight when it was detected, before loss marking (RFC 5681's FlightSize).
        in_flight: u64 = bytes(r.in_flight),
    }
}

record! {
    /// The latest congestion event was spurious.
    Spurious from |r: &cc::Spurious| {
        /// When that became known, in seconds.
        now: f64 = time(r.now),
        /// The cause that is withdrawn: "loss", "ecn" or "timeout".
        cause: &'static str = cause(r.cause).0,
    }
}

record! {
    /// The path a controller serves.
    Path from |r: &cc::Path<'_>| {
        /// Maximum segment size: payload bytes.
        mss: u64 = bytes(r.mss),
        /// Smoothed round-trip time in seconds.
        srtt: Option<f64> = seconds(r.srtt),
        /// Latest round-trip sample in seconds.
        latest_rtt: Option<f64> = seconds(r.latest_rtt),
        /// Least round-trip time of the connection in seconds.
        min_rtt: Option<f64> = seconds(r.min_rtt),
        /// Bytes in flight.
        in_flight: u64 = bytes(r.in_flight),
        /// All subflows of the connection in a fixed order; empty for single-path transports.
        siblings: Vec<Sibling> = r.siblings.iter().map(Sibling::from).collect(),
        /// Which of `siblings` this path is.
        index: usize = r.index,
    }
}

record! {
    /// What a coupled congestion control may know of a subflow.
    Sibling from |r: &cc::Sibling| {
        /// Settled window in bytes: ssthresh while recovering, cwnd otherwise.
        cwnd: u64 = bytes(r.cwnd),
        /// Smoothed round-trip time in seconds.
        srtt: Option<f64> = seconds(r.srtt),
        /// Least round-trip time in seconds.
        min_rtt: Option<f64> = seconds(r.min_rtt),
        /// Maximum segment size: payload bytes.
        mss: u64 = bytes(r.mss),
        /// Bytes acknowledged since the last loss.
        since_loss: u64 = bytes(r.since_loss),
        /// Bytes acknowledged between the last two losses.
        between_losses: u64 = bytes(r.between_losses),
        /// Delivery rate in bit/s.
        rate: f64 = r.rate * 8.0,
        /// Established and not failed.
        can_send: bool = r.can_send,
    }
}
