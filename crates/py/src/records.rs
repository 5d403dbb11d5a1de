//! The records a congestion control written in Python is given: seconds, bytes, bits per second.

use std::fmt;

use gargalo_cc as cc;
use gargalo_units::{Bytes, Duration, Instant};
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::False;

fn seconds(d: Option<Duration>) -> Option<f64> {
    d.map(Duration::as_secs_f64)
}

fn time(t: Instant) -> f64 {
    t.as_secs_f64()
}

fn bytes(b: Bytes) -> u64 {
    b.get()
}

/// Defines a Python class that is a view of a record of `gargalo-cc`: it holds a copy of it, and computes an attribute
/// when it is read. Attributes cannot be set.
macro_rules! record {
    ($(#[doc = $doc:literal])+ $name:ident of |$r:ident: $raw:ty| {
        $( $(#[doc = $fdoc:literal])+ $field:ident: $ty:ty = $value:expr, )+
    }) => {
        $(#[doc = $doc])+
        #[pyclass(module = "gargalo")]
        pub struct $name {
            /// What it shows.
            pub raw: $raw,
        }

        #[pymethods]
        impl $name {
            $(
                $(#[doc = $fdoc])+
                #[getter]
                fn $field(&self) -> $ty {
                    let $r = &self.raw;
                    $value
                }
            )+

            fn __repr__(&self) -> String {
                format!("{self:?}")
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    $( .field(stringify!($field), &self.$field()) )+
                    .finish()
            }
        }
    };
}

/// An object that is lent to each call of a method, and filled anew for the next one. What a class has kept is left to
/// it, and the next call gets another object.
#[derive(Debug)]
pub struct Reused<T>(Option<Py<T>>);

impl<T> Default for Reused<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Reused<T>
where
    T: PyClass<Frozen = False> + Into<PyClassInitializer<T>>,
{
    /// The object with this value.
    #[inline]
    #[expect(deprecated, reason = "what replaces get_refcnt needs unsafe code")]
    pub fn lend<'py>(&mut self, py: Python<'py>, value: T) -> PyResult<Bound<'py, T>> {
        if let Some(object) = &self.0
            && object.get_refcnt(py) == 1
            && let Ok(mut place) = object.try_borrow_mut(py)
        {
            *place = value;
            drop(place);
            return Ok(object.bind(py).clone());
        }
        let object = Bound::new(py, value)?;
        self.0 = Some(object.clone().unbind());
        Ok(object)
    }
}

/// One acknowledgement, or several that are reported together.
#[derive(Clone, Copy, Debug)]
pub struct Acks {
    /// Their sums, and else the values of the last.
    pub ack: cc::Acked,
    /// How many.
    pub count: u64,
    /// The least round-trip sample among them.
    pub least_rtt: Option<Duration>,
}

impl From<&cc::Acked> for Acks {
    fn from(ack: &cc::Acked) -> Self {
        Self {
            ack: *ack,
            count: 1,
            least_rtt: ack.rtt,
        }
    }
}

impl Acks {
    /// Whether the next acknowledgement may be reported with these.
    pub fn fits(&self, next: &cc::Acked) -> bool {
        self.ack.in_recovery == next.in_recovery && self.ack.cwnd_limited == next.cwnd_limited
    }

    /// Adds the next acknowledgement.
    pub fn add(&mut self, next: &cc::Acked) {
        let sum = self.ack;
        self.ack = cc::Acked {
            bytes: sum.bytes + next.bytes,
            acknowledged: sum.acknowledged + next.acknowledged,
            ce_bytes: sum.ce_bytes + next.ce_bytes,
            rtt: next.rtt.or(sum.rtt),
            sent_at: next.sent_at.or(sum.sent_at),
            in_flight_before: sum.in_flight_before,
            sample: next.sample.or(sum.sample),
            ..*next
        };
        self.count += 1;
        self.least_rtt = [self.least_rtt, next.rtt].into_iter().flatten().min();
    }
}

/// What [`cc::Path`] shows.
#[derive(Clone, Debug)]
pub struct PathState {
    mss: Bytes,
    srtt: Option<Duration>,
    latest_rtt: Option<Duration>,
    min_rtt: Option<Duration>,
    in_flight: Bytes,
    siblings: Vec<cc::Sibling>,
    index: usize,
}

impl From<&cc::Path<'_>> for Path {
    #[inline]
    fn from(p: &cc::Path<'_>) -> Self {
        Self {
            raw: PathState {
                mss: p.mss,
                srtt: p.srtt,
                latest_rtt: p.latest_rtt,
                min_rtt: p.min_rtt,
                in_flight: p.in_flight,
                siblings: p.siblings.to_vec(),
                index: p.index,
            },
        }
    }
}

impl Path {
    /// Maximum segment size.
    pub fn segment(&self) -> Bytes {
        self.raw.mss
    }
}

record! {
    /// What a controller starts from.
    Init of |r: (cc::Init, u64)| {
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
    /// The handshake is complete.
    Established of |r: cc::Established| {
        /// When, in seconds.
        now: f64 = time(r.now),
        /// The initial window in bytes: smaller than that of `Init` if packets of the handshake were lost, and other if
        /// the two ends agreed on other segments.
        window: u64 = bytes(r.window),
    }
}

record! {
    /// A packet is about to leave.
    Sent of |r: cc::Sent| {
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
        /// `app_limited` of the last packet before, if nothing was in flight.
        was_app_limited: Option<bool> = r.idle.map(|i| i.was_app_limited),
    }
}

record! {
    /// An acknowledgement that delivered something new or carried an RTT sample.
    Acked of |r: Acks| {
        /// When, in seconds.
        now: f64 = time(r.ack.now),
        /// Newly delivered bytes.
        bytes: u64 = bytes(r.ack.bytes),
        /// Bytes that a window may grow for: acknowledged cumulatively. Data that was only reported selectively counts
        /// when it is acknowledged.
        acknowledged: u64 = bytes(r.ack.acknowledged),
        /// Of the delivered bytes, those marked Congestion Experienced.
        ce_bytes: u64 = bytes(r.ack.ce_bytes),
        /// Round-trip sample in seconds.
        rtt: Option<f64> = seconds(r.ack.rtt),
        /// When the newest segment acknowledged here was sent, in seconds.
        sent_at: Option<f64> = r.ack.sent_at.map(time),
        /// Bytes in flight before this acknowledgement.
        in_flight_before: u64 = bytes(r.ack.in_flight_before),
        /// Bytes in flight after it.
        in_flight: u64 = bytes(r.ack.in_flight),
        /// The window, not the application, limited sending during the last round trip.
        cwnd_limited: bool = r.ack.cwnd_limited,
        /// The transport is in recovery; it paces the reduction itself.
        in_recovery: bool = r.ack.in_recovery,
        /// A round trip ended with this acknowledgement.
        round_start: bool = r.ack.round_start,
        /// How many acknowledgements this stands for: 1, or more if `ack_interval` is "round".
        count: u64 = r.count,
        /// The least round-trip sample of these, in seconds.
        least_rtt: Option<f64> = seconds(r.least_rtt),
        /// Delivery-rate sample.
        sample: Option<RateSample> = r.ack.sample.map(|raw| RateSample { raw }),
    }
}

record! {
    /// A delivery-rate sample.
    RateSample of |r: cc::RateSample| {
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
    Lost of |r: cc::Lost| {
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
    Congestion of |r: cc::Congestion| {
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
    Spurious of |r: cc::Spurious| {
        /// When that became known, in seconds.
        now: f64 = time(r.now),
        /// The cause that is withdrawn: "loss", "ecn" or "timeout".
        cause: &'static str = cause(r.cause).0,
    }
}

record! {
    /// The path a controller serves.
    Path of |r: PathState| {
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
        siblings: Vec<Sibling> = r.siblings.iter().map(|&raw| Sibling { raw }).collect(),
        /// Which of `siblings` this path is.
        index: usize = r.index,
    }
}

record! {
    /// What a coupled congestion control may know of a subflow.
    Sibling of |r: cc::Sibling| {
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
