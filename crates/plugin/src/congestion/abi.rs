//! The structures of `gargalo_congestion.h`, field by field; the header documents them.

use std::ffi::{c_char, c_void};

/// The version of the interface.
pub const ABI: u32 = 2;
/// The exported function, of the same name in every version: its table begins with the version.
pub const SYMBOL: &str = "gargalo_congestion_v1";
/// A number that is missing, in records.
pub const NONE: u64 = u64::MAX;
/// A number that is missing, in [`State`].
pub const UNSET: f64 = -1.0;

/// What the host offers to one controller.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Argument of [`Host::random`].
    pub context: *mut c_void,
    /// 64 random bits of the controller's stream.
    pub random: unsafe extern "C" fn(*mut c_void) -> u64,
    /// Cube root. This and the next three functions have the same result on every machine, to the last bit.
    pub cbrt: extern "C" fn(f64) -> f64,
    /// The exponential function: e to the power of the argument.
    pub exp: extern "C" fn(f64) -> f64,
    /// Natural logarithm of the argument.
    pub log: extern "C" fn(f64) -> f64,
    /// The first argument to the power of the second.
    pub pow: extern "C" fn(f64, f64) -> f64,
}

/// How a path begins.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Init {
    /// When the path is opened.
    pub now_ns: u64,
    /// Maximum segment size.
    pub mss_bytes: u64,
    /// The transport's initial window.
    pub initial_window_bytes: u64,
    /// Values of the parameters, as declared.
    pub parameters: *const f64,
    /// Valid as long as the controller.
    pub host: *const Host,
}

/// Another path of the connection.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Sibling {
    /// Settled window: the slow-start threshold while it recovers, the congestion window otherwise.
    pub cwnd_bytes: u64,
    /// Smoothed round-trip time, or [`NONE`].
    pub srtt_ns: u64,
    /// Least round-trip time, or [`NONE`].
    pub min_rtt_ns: u64,
    /// Maximum segment size.
    pub mss_bytes: u64,
    /// Acknowledged since the last loss.
    pub since_loss_bytes: u64,
    /// Acknowledged between the last two.
    pub between_losses_bytes: u64,
    /// Current delivery rate in bytes (not bits) per second.
    pub rate_bytes_per_s: f64,
    /// Established and not failed.
    pub can_send: u64,
}

/// The path as it is at a call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Maximum segment size.
    pub mss_bytes: u64,
    /// Smoothed round-trip time, or [`NONE`].
    pub srtt_ns: u64,
    /// Latest round-trip time, or [`NONE`].
    pub latest_rtt_ns: u64,
    /// Least round-trip time, or [`NONE`].
    pub min_rtt_ns: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// All paths of the connection.
    pub siblings: *const Sibling,
    /// Length of `siblings`; 0 where the transport has one path.
    pub sibling_count: u64,
    /// Which of them this is.
    pub index: u64,
}

/// The handshake is complete.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Established {
    /// Time of the event on the world's clock.
    pub now_ns: u64,
    /// The initial window.
    pub window_bytes: u64,
}

/// A packet is about to be sent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Time of the transmission on the world's clock.
    pub now_ns: u64,
    /// Payload of the packet.
    pub bytes: u64,
    /// In flight before it.
    pub in_flight_bytes: u64,
    /// Time since the last transmission, or [`NONE`].
    pub idle_ns: u64,
    /// Retransmission timeout, with `idle_ns`.
    pub rto_ns: u64,
    /// Window to restart from, or [`NONE`].
    pub restart_window_bytes: u64,
    /// Less to send than the window allows.
    pub app_limited: u32,
    /// 1: the packet is a retransmission.
    pub retransmission: u32,
    /// With `idle_ns`: `app_limited` of the last packet before.
    pub was_app_limited: u32,
    /// Padding; always 0.
    pub reserved: u32,
}

/// A sample of the delivery rate.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// Delivered over the interval.
    pub delivered_bytes: u64,
    /// Lost over the interval.
    pub lost_bytes: u64,
    /// The longer of the next two.
    pub interval_ns: u64,
    /// Duration of the send phase: the time in which the delivered data was sent.
    pub send_elapsed_ns: u64,
    /// Duration of the acknowledgement phase: the time in which the data was acknowledged.
    pub ack_elapsed_ns: u64,
    /// Total delivered when the newest acknowledged segment was sent.
    pub prior_delivered_bytes: u64,
    /// Total delivered now.
    pub total_delivered_bytes: u64,
    /// In flight when that segment was sent.
    pub tx_in_flight_bytes: u64,
    /// The application limited the sender then.
    pub app_limited: u32,
    /// The segment was a retransmission.
    pub retransmission: u32,
}

/// One incoming acknowledgement.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Time of arrival on the world's clock.
    pub now_ns: u64,
    /// Newly delivered: acknowledged cumulatively or selectively.
    pub bytes: u64,
    /// Newly acknowledged cumulatively (N of RFC 5681 section 3.1).
    pub acknowledged_bytes: u64,
    /// Delivered with a mark.
    pub ce_bytes: u64,
    /// Round-trip sample, or [`NONE`].
    pub rtt_ns: u64,
    /// When the newest segment acknowledged was sent, or [`NONE`].
    pub sent_at_ns: u64,
    /// In flight before.
    pub in_flight_before_bytes: u64,
    /// In flight after.
    pub in_flight_bytes: u64,
    /// Valid with `has_sample`.
    pub sample: RateSample,
    /// Whether there is a sample.
    pub has_sample: u32,
    /// The window limited sending.
    pub cwnd_limited: u32,
    /// No window grows.
    pub in_recovery: u32,
    /// A round trip ended.
    pub round_start: u32,
}

/// A segment was marked lost.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// Time of the marking on the world's clock.
    pub now_ns: u64,
    /// Payload of the segment.
    pub bytes: u64,
    /// In flight after the marking.
    pub in_flight_bytes: u64,
    /// When it was sent last.
    pub sent_at_ns: u64,
    /// Start of its sampling interval.
    pub first_sent_at_ns: u64,
    /// Total delivered then.
    pub delivered_bytes: u64,
    /// Latest delivery then.
    pub delivered_at_ns: u64,
    /// Total lost then.
    pub lost_bytes: u64,
    /// In flight then, with it.
    pub tx_in_flight_bytes: u64,
    /// The application limited the sender then.
    pub app_limited: u32,
    /// First loss of the round trip.
    pub new_burst: u32,
}

/// Values of [`Congestion::cause`] and [`Spurious::cause`].
pub mod cause {
    /// Losses found by acknowledgements.
    pub const LOSS: u32 = 0;
    /// Congestion Experienced marks.
    pub const ECN: u32 = 1;
    /// The retransmission timer expired.
    pub const TIMEOUT: u32 = 2;
}

/// A congestion event.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// Time of the event on the world's clock.
    pub now_ns: u64,
    /// Marked lost so far.
    pub lost_bytes: u64,
    /// In flight when it was found.
    pub in_flight_bytes: u64,
    /// One of the values in [`cause`].
    pub cause: u32,
    /// Timeouts in a row.
    pub consecutive: u32,
}

/// The latest congestion event was spurious.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Spurious {
    /// When that became known.
    pub now_ns: u64,
    /// Cause of the event that was spurious: one of the values in [`cause`].
    pub cause: u32,
    /// Timeouts in a row.
    pub consecutive: u32,
}

/// Bit of [`State::flags`]: the window about doubles each round trip.
pub const SLOW_START: u32 = 1;
/// Bit of [`State::flags`]: the window is obeyed during recovery.
pub const GOVERNS_RECOVERY: u32 = 2;

/// The numbers of a controller.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Congestion window: at least one segment, at most 2^40.
    pub cwnd_bytes: f64,
    /// Slow-start threshold, or [`UNSET`].
    pub ssthresh_bytes: f64,
    /// Pacing rate, or [`UNSET`].
    pub pacing_rate_bps: f64,
    /// Largest burst, or [`UNSET`].
    pub send_quantum_bytes: f64,
    /// One word; a constant.
    pub phase: *const c_char,
    /// What has gone wrong, or null.
    pub error: *const c_char,
    /// Flags of the controller: [`SLOW_START`], [`GOVERNS_RECOVERY`].
    pub flags: u32,
    /// Padding; not read.
    pub reserved: u32,
}

/// Values of [`Parameter::kind`].
pub mod kind {
    /// A number from `minimum` to `maximum`.
    pub const NUMBER: u32 = 0;
    /// A whole number.
    pub const INTEGER: u32 = 1;
    /// 0 or 1.
    pub const SWITCH: u32 = 2;
    /// The index of a name.
    pub const CHOICE: u32 = 3;
    /// Nanoseconds from `minimum` to `maximum`; scenarios give a unit, as in "20ms".
    pub const DURATION: u32 = 4;
}

/// A parameter of an algorithm.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Key in scenarios.
    pub name: *const c_char,
    /// One line about it.
    pub doc: *const c_char,
    /// Names separated by commas, or null.
    pub choices: *const c_char,
    /// Value where a scenario does not set the parameter.
    pub default_value: f64,
    /// Least valid value.
    pub minimum: f64,
    /// Greatest valid value.
    pub maximum: f64,
    /// One of the values in [`kind`].
    pub kind: u32,
    /// Padding; not read.
    pub reserved: u32,
}

/// Takes a gauge: context, name, value.
pub type Gauge = unsafe extern "C" fn(*mut c_void, *const c_char, f64);

/// Reports an event to a controller with a record `T`.
pub type On<T> = unsafe extern "C" fn(*mut c_void, *const T, *const Path, *mut State);
/// Reports an event to a controller with a number.
pub type OnNumber = unsafe extern "C" fn(*mut c_void, u64, *const Path, *mut State);

/// Bit of [`Algorithm::flags`]: each packet is reported.
pub const WATCHES_SENDS: u32 = 1;

/// An algorithm of a library: its name, its parameters and its functions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// Name in scenarios.
    pub name: *const c_char,
    /// One line about it.
    pub summary: *const c_char,
    /// Where it is specified.
    pub source: *const c_char,
    /// Array of `parameter_count` parameters.
    pub parameters: *const Parameter,
    /// Length of `parameters`.
    pub parameter_count: u32,
    /// Flags of the algorithm: [`WATCHES_SENDS`].
    pub flags: u32,
    /// Argument of `create`.
    pub data: *const c_void,
    /// Makes a controller.
    pub create: Option<unsafe extern "C" fn(*const c_void, *const Init, *mut State) -> *mut c_void>,
    /// Frees a controller.
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    /// Returns a copy of a controller with the same state, for another host.
    pub clone: Option<unsafe extern "C" fn(*const c_void, *const Host) -> *mut c_void>,
    /// Data was acknowledged.
    pub on_ack: Option<On<Acked>>,
    /// The window should shrink.
    pub on_congestion: Option<On<Congestion>>,
    /// A packet is about to leave.
    pub on_send: Option<On<Sent>>,
    /// A segment was marked lost.
    pub on_loss: Option<On<Lost>>,
    /// The latest event was spurious.
    pub on_spurious: Option<On<Spurious>>,
    /// Recovery has ended.
    pub on_recovered: Option<OnNumber>,
    /// The handshake is complete.
    pub on_established: Option<On<Established>>,
    /// The segment size changed.
    pub on_mss: Option<unsafe extern "C" fn(*mut c_void, *const Path, *mut State)>,
    /// Half of the window is to be given up.
    pub halve: Option<unsafe extern "C" fn(*mut c_void, *mut State)>,
    /// Reports the gauges.
    pub gauges: Option<unsafe extern "C" fn(*const c_void, Gauge, *mut c_void)>,
}

/// What the exported function returns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Version of the interface that the library was built for; [`ABI`] is the one that is understood.
    pub abi: u32,
    /// How many algorithms.
    pub algorithm_count: u32,
    /// Array of `algorithm_count` algorithms.
    pub algorithms: *const Algorithm,
    /// Sizes of the structures that the library was compiled with; equal to [`SIZES`] if the layouts agree.
    pub sizes: [u32; 13],
}

// SAFETY: a table and what it points to are constants of a library that stays loaded.
unsafe impl Sync for Table {}
// SAFETY: as above.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Algorithm {}
// SAFETY: as above.
unsafe impl Send for Algorithm {}

/// The exported function.
pub type Entry = unsafe extern "C" fn() -> *const Table;

/// The sizes of all structures, in the order of the header.
pub const SIZES: [u32; 13] = [
    size_of::<Host>() as u32,
    size_of::<Init>() as u32,
    size_of::<Sibling>() as u32,
    size_of::<Path>() as u32,
    size_of::<Established>() as u32,
    size_of::<Sent>() as u32,
    size_of::<RateSample>() as u32,
    size_of::<Acked>() as u32,
    size_of::<Lost>() as u32,
    size_of::<Congestion>() as u32,
    size_of::<Spurious>() as u32,
    size_of::<State>() as u32,
    (size_of::<Parameter>() + size_of::<Algorithm>()) as u32,
];
