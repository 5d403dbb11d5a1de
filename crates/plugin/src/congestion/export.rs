//! Controllers of `gargalo_cc` behind the functions of the interface.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

pub use gargalo_cc::Algorithm;
use gargalo_cc::{self as cc, Controller, ParamKind, ParamValue, Params};
use gargalo_units::{Bytes, Duration, Instant};
use rand_pcg::Pcg64;

use super::abi;

/// Holds the table of a library.
pub type Once = OnceLock<abi::Table>;

/// The table of these algorithms; made once. Called by [`export_congestion`](crate::export_congestion).
pub fn table(algorithms: &'static [Algorithm], once: &'static Once) -> *const abi::Table {
    once.get_or_init(|| {
        let listed: Vec<_> = algorithms.iter().map(algorithm).collect();
        abi::Table {
            abi: abi::ABI,
            algorithm_count: listed.len() as u32,
            algorithms: listed.leak().as_ptr(),
            sizes: abi::SIZES,
        }
    })
}

fn algorithm(entry: &'static Algorithm) -> abi::Algorithm {
    let parameters: Vec<_> = (entry.params)().iter().map(parameter).collect();
    abi::Algorithm {
        name: text(entry.name),
        summary: text(entry.summary),
        source: text(entry.source),
        parameter_count: parameters.len() as u32,
        parameters: parameters.leak().as_ptr(),
        flags: if watches_sends(entry) {
            abi::WATCHES_SENDS
        } else {
            0
        },
        data: ptr::from_ref(entry).cast(),
        create: Some(create),
        destroy: Some(destroy),
        clone: Some(clone),
        on_ack: Some(on_ack),
        on_congestion: Some(on_congestion),
        on_send: Some(on_send),
        on_loss: Some(on_loss),
        on_spurious: Some(on_spurious),
        on_recovered: Some(on_recovered),
        on_established: Some(on_established),
        on_mss: Some(on_mss),
        halve: Some(halve),
        gauges: Some(gauges),
    }
}

/// Asks a controller, since the interface says it of an algorithm.
fn watches_sends(entry: &Algorithm) -> bool {
    let init = cc::Init {
        now: Instant::ZERO,
        mss: Bytes::new(1448),
        initial_window: Bytes::new(14_480),
        rng: Pcg64::new(0, 0),
    };
    let built = catch_unwind(|| (entry.build)(&Params::new(), init).map(|c| c.watches_sends()));
    !matches!(built, Ok(Ok(false)))
}

fn parameter(param: &cc::Param) -> abi::Parameter {
    let mut choices = ptr::null();
    let (kind, default_value, minimum, maximum) = match param.kind {
        ParamKind::Number {
            default,
            min,
            max,
            integer: false,
        } => (abi::kind::NUMBER, default, min, max),
        ParamKind::Number {
            default, min, max, ..
        } => (abi::kind::INTEGER, default, min, max),
        ParamKind::Bool { default } => (abi::kind::SWITCH, f64::from(u8::from(default)), 0.0, 1.0),
        ParamKind::Choice {
            default,
            choices: all,
        } => {
            choices = text(&all.join(","));
            let at = all.iter().position(|c| *c == default).unwrap_or(0);
            (abi::kind::CHOICE, at as f64, 0.0, 0.0)
        }
        ParamKind::Duration { default, min, max } => {
            let [default, min, max] = [default, min, max].map(|d| d.as_nanos() as f64);
            (abi::kind::DURATION, default, min, max)
        }
    };
    abi::Parameter {
        name: text(param.name),
        doc: text(param.doc),
        choices,
        default_value,
        minimum,
        maximum,
        kind,
        reserved: 0,
    }
}

/// The value of a parameter as a scenario would give it.
fn value(param: &cc::Param, value: f64) -> ParamValue {
    match param.kind {
        ParamKind::Number { .. } => value.into(),
        ParamKind::Bool { .. } => (value != 0.0).into(),
        ParamKind::Choice { default, choices } => {
            (*choices.get(value as usize).unwrap_or(&default)).into()
        }
        ParamKind::Duration { .. } => {
            ParamValue::Text(Duration::from_nanos(value as u64).to_string())
        }
    }
}

/// A text that lives as long as the process, ended by a zero; each is made once.
fn text(text: &str) -> *const c_char {
    static TEXTS: Mutex<BTreeMap<String, CString>> = Mutex::new(BTreeMap::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if !texts.contains_key(text) {
        let whole: Vec<u8> = text.bytes().filter(|b| *b != 0).collect();
        // No zero is left in it.
        texts.insert(text.to_owned(), CString::new(whole).unwrap_or_default());
    }
    texts.get(text).map_or(c"".as_ptr(), |t| t.as_ptr())
}

/// What a host holds of a controller.
struct Object {
    controller: Box<dyn Controller>,
    /// The latest phase, and its text.
    phase: (&'static str, *const c_char),
}

impl Object {
    fn give(controller: Box<dyn Controller>) -> *mut c_void {
        let phase = ("", ptr::null());
        Box::into_raw(Box::new(Self { controller, phase })).cast()
    }

    #[inline]
    fn write(&mut self, state: &mut abi::State) {
        let c = &self.controller;
        let phase = c.phase();
        if !ptr::eq(phase, self.phase.0) || self.phase.1.is_null() {
            self.phase = (phase, text(phase));
        }
        state.cwnd_bytes = c.cwnd().as_f64();
        state.ssthresh_bytes = c.ssthresh().map_or(abi::UNSET, Bytes::as_f64);
        state.pacing_rate_bps = c.pacing_rate().map_or(abi::UNSET, |r| r.as_bps() as f64);
        state.send_quantum_bytes = c.send_quantum().map_or(abi::UNSET, Bytes::as_f64);
        state.phase = self.phase.1;
        state.flags = 0;
        if c.in_slow_start() {
            state.flags |= abi::SLOW_START;
        }
        if c.governs_recovery() {
            state.flags |= abi::GOVERNS_RECOVERY;
        }
    }
}

/// Why something panicked, as a text for the host.
#[cold]
fn panicked(panic: &(dyn Any + Send)) -> *const c_char {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text(&format!("panicked: {}", said.unwrap_or("without a text")))
}

/// Does something with a controller and writes its numbers; a panic becomes an error of the state.
///
/// # Safety
/// `object` is of [`Object::give`], not destroyed and not in use; `state` is valid.
#[inline]
unsafe fn with(object: *mut c_void, state: *mut abi::State, act: impl FnOnce(&mut dyn Controller)) {
    // SAFETY: the caller answers for both.
    let (object, state) = unsafe { (&mut *object.cast::<Object>(), &mut *state) };
    let done = catch_unwind(AssertUnwindSafe(|| {
        act(&mut *object.controller);
        object.write(state);
    }));
    if let Err(panic) = done {
        state.error = panicked(&*panic);
    }
}

/// [`with`] a record and the path.
///
/// # Safety
/// As of [`with`]; `record` and `path` are valid.
#[inline]
unsafe fn event<T>(
    object: *mut c_void,
    record: *const T,
    path: *const abi::Path,
    state: *mut abi::State,
    act: impl FnOnce(&mut dyn Controller, &T, &cc::Path<'_>),
) {
    // SAFETY: the caller answers for all pointers; siblings are as many as the path says.
    unsafe {
        let (record, path) = (&*record, &*path);
        let siblings = siblings(path);
        let view = view(path, &siblings);
        with(object, state, |controller| act(controller, record, &view));
    }
}

#[inline]
fn span(ns: u64) -> Option<Duration> {
    (ns != abi::NONE).then(|| Duration::from_nanos(ns))
}

#[inline]
fn view<'a>(path: &abi::Path, siblings: &'a [cc::Sibling]) -> cc::Path<'a> {
    cc::Path {
        mss: Bytes::new(path.mss_bytes),
        srtt: span(path.srtt_ns),
        latest_rtt: span(path.latest_rtt_ns),
        min_rtt: span(path.min_rtt_ns),
        in_flight: Bytes::new(path.in_flight_bytes),
        siblings,
        index: path.index as usize,
        sack: true,
    }
}

/// # Safety
/// The siblings of `path` are as many as it says.
#[inline]
unsafe fn siblings(path: &abi::Path) -> Vec<cc::Sibling> {
    if path.sibling_count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller answers for it.
    let raw = unsafe { std::slice::from_raw_parts(path.siblings, path.sibling_count as usize) };
    let sibling = |s: &abi::Sibling| cc::Sibling {
        cwnd: Bytes::new(s.cwnd_bytes),
        srtt: span(s.srtt_ns),
        min_rtt: span(s.min_rtt_ns),
        mss: Bytes::new(s.mss_bytes),
        since_loss: Bytes::new(s.since_loss_bytes),
        between_losses: Bytes::new(s.between_losses_bytes),
        rate: s.rate_bytes_per_s,
        can_send: s.can_send != 0,
    };
    raw.iter().map(sibling).collect()
}

unsafe extern "C" fn create(
    data: *const c_void,
    init: *const abi::Init,
    state: *mut abi::State,
) -> *mut c_void {
    // SAFETY: `data` is what `algorithm` put into the table; the host answers for the other pointers.
    let (entry, init, state) = unsafe { (&*data.cast::<Algorithm>(), &*init, &mut *state) };
    let made = catch_unwind(AssertUnwindSafe(|| {
        let declared = (entry.params)();
        let values: &[f64] = if declared.is_empty() {
            &[]
        } else {
            // SAFETY: the host gives a value for each parameter of the table.
            unsafe { std::slice::from_raw_parts(init.parameters, declared.len()) }
        };
        let given = declared.iter().zip(values);
        let given = given.map(|(p, v)| (p.name.to_owned(), value(p, *v)));
        let draw = || {
            // SAFETY: the host is valid, and this is a call for the controller that it belongs to.
            u128::from(unsafe {
                let host = &*init.host;
                (host.random)(host.context)
            })
        };
        let (seed, stream) = (draw() << 64 | draw(), draw() << 64 | draw());
        let init = cc::Init {
            now: Instant::from_nanos(init.now_ns),
            mss: Bytes::new(init.mss_bytes),
            initial_window: Bytes::new(init.initial_window_bytes),
            rng: Pcg64::new(seed, stream),
        };
        (entry.build)(&given.collect(), init).map_err(|e| e.to_string())
    }));
    let object = match made {
        Ok(Ok(controller)) => Object::give(controller),
        Ok(Err(why)) => {
            state.error = text(&why);
            return ptr::null_mut();
        }
        Err(panic) => {
            state.error = panicked(&*panic);
            return ptr::null_mut();
        }
    };
    // SAFETY: the object has just been made.
    unsafe { with(object, state, |_| ()) };
    object
}

unsafe extern "C" fn destroy(object: *mut c_void) {
    // SAFETY: made by `Object::give`; the host uses it no more.
    let object = unsafe { Box::from_raw(object.cast::<Object>()) };
    // There is no caller to report a panic to, and nothing of the object is used again.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(object)));
}

unsafe extern "C" fn clone(object: *const c_void, _: *const abi::Host) -> *mut c_void {
    // SAFETY: made by `Object::give`, and not changed during the call.
    let object = unsafe { &*object.cast::<Object>() };
    let copy = catch_unwind(AssertUnwindSafe(|| object.controller.clone_box()));
    copy.map_or(ptr::null_mut(), Object::give)
}

unsafe extern "C" fn on_ack(
    object: *mut c_void,
    record: *const abi::Acked,
    path: *const abi::Path,
    state: *mut abi::State,
) {
    // SAFETY: the host answers for the pointers, as in all functions below.
    unsafe {
        event(object, record, path, state, |c, a, path| {
            let sample = |s: &abi::RateSample| cc::RateSample {
                delivered: Bytes::new(s.delivered_bytes),
                lost: Bytes::new(s.lost_bytes),
                interval: Duration::from_nanos(s.interval_ns),
                send_elapsed: Duration::from_nanos(s.send_elapsed_ns),
                ack_elapsed: Duration::from_nanos(s.ack_elapsed_ns),
                prior_delivered: Bytes::new(s.prior_delivered_bytes),
                total_delivered: Bytes::new(s.total_delivered_bytes),
                tx_in_flight: Bytes::new(s.tx_in_flight_bytes),
                app_limited: s.app_limited != 0,
                retransmission: s.retransmission != 0,
            };
            let ack = cc::Acked {
                now: Instant::from_nanos(a.now_ns),
                bytes: Bytes::new(a.bytes),
                acknowledged: Bytes::new(a.acknowledged_bytes),
                ce_bytes: Bytes::new(a.ce_bytes),
                rtt: span(a.rtt_ns),
                sent_at: (a.sent_at_ns != abi::NONE).then(|| Instant::from_nanos(a.sent_at_ns)),
                in_flight_before: Bytes::new(a.in_flight_before_bytes),
                in_flight: Bytes::new(a.in_flight_bytes),
                cwnd_limited: a.cwnd_limited != 0,
                in_recovery: a.in_recovery != 0,
                round_start: a.round_start != 0,
                sample: (a.has_sample != 0).then(|| sample(&a.sample)),
            };
            c.on_ack(&ack, path);
        });
    }
}

fn cause(cause: u32, consecutive: u32) -> cc::Cause {
    match cause {
        abi::cause::LOSS => cc::Cause::Loss,
        abi::cause::ECN => cc::Cause::Ecn,
        _ => cc::Cause::Timeout { consecutive },
    }
}

unsafe extern "C" fn on_congestion(
    object: *mut c_void,
    record: *const abi::Congestion,
    path: *const abi::Path,
    state: *mut abi::State,
) {
    // SAFETY: as in `on_ack`.
    unsafe {
        event(object, record, path, state, |c, e, path| {
            let event = cc::Congestion {
                now: Instant::from_nanos(e.now_ns),
                cause: cause(e.cause, e.consecutive),
                lost: Bytes::new(e.lost_bytes),
                in_flight: Bytes::new(e.in_flight_bytes),
            };
            c.on_congestion(&event, path);
        });
    }
}

unsafe extern "C" fn on_send(
    object: *mut c_void,
    record: *const abi::Sent,
    path: *const abi::Path,
    state: *mut abi::State,
) {
    // SAFETY: as in `on_ack`.
    unsafe {
        event(object, record, path, state, |c, s, path| {
            let restart = s.restart_window_bytes;
            let sent = cc::Sent {
                now: Instant::from_nanos(s.now_ns),
                bytes: Bytes::new(s.bytes),
                in_flight: Bytes::new(s.in_flight_bytes),
                app_limited: s.app_limited != 0,
                retransmission: s.retransmission != 0,
                idle: span(s.idle_ns).map(|duration| cc::Idle {
                    duration,
                    rto: Duration::from_nanos(s.rto_ns),
                    restart_window: (restart != abi::NONE).then(|| Bytes::new(restart)),
                    was_app_limited: s.was_app_limited != 0,
                }),
            };
            c.on_send(&sent, path);
        });
    }
}

unsafe extern "C" fn on_loss(
    object: *mut c_void,
    record: *const abi::Lost,
    path: *const abi::Path,
    state: *mut abi::State,
) {
    // SAFETY: as in `on_ack`.
    unsafe {
        event(object, record, path, state, |c, l, path| {
            let lost = cc::Lost {
                now: Instant::from_nanos(l.now_ns),
                bytes: Bytes::new(l.bytes),
                state: cc::SendState {
                    sent_at: Instant::from_nanos(l.sent_at_ns),
                    first_sent_at: Instant::from_nanos(l.first_sent_at_ns),
                    delivered: Bytes::new(l.delivered_bytes),
                    delivered_at: Instant::from_nanos(l.delivered_at_ns),
                    lost: Bytes::new(l.lost_bytes),
                    in_flight: Bytes::new(l.tx_in_flight_bytes),
                    app_limited: l.app_limited != 0,
                },
                new_burst: l.new_burst != 0,
                in_flight: Bytes::new(l.in_flight_bytes),
            };
            c.on_loss(&lost, path);
        });
    }
}

unsafe extern "C" fn on_spurious(
    object: *mut c_void,
    record: *const abi::Spurious,
    path: *const abi::Path,
    state: *mut abi::State,
) {
    // SAFETY: as in `on_ack`.
    unsafe {
        event(object, record, path, state, |c, s, path| {
            let event = cc::Spurious {
                now: Instant::from_nanos(s.now_ns),
                cause: cause(s.cause, s.consecutive),
            };
            c.on_spurious(&event, path);
        });
    }
}

unsafe extern "C" fn on_recovered(
    object: *mut c_void,
    now_ns: u64,
    path: *const abi::Path,
    state: *mut abi::State,
) {
    // SAFETY: as in `on_ack`.
    unsafe {
        event(object, &raw const now_ns, path, state, |c, now, path| {
            c.on_recovered(Instant::from_nanos(*now), path);
        });
    }
}

unsafe extern "C" fn on_established(
    object: *mut c_void,
    record: *const abi::Established,
    path: *const abi::Path,
    state: *mut abi::State,
) {
    // SAFETY: as in `on_ack`.
    unsafe {
        event(object, record, path, state, |c, e, path| {
            let established = cc::Established {
                now: Instant::from_nanos(e.now_ns),
                window: Bytes::new(e.window_bytes),
            };
            c.on_established(&established, path);
        });
    }
}

unsafe extern "C" fn on_mss(object: *mut c_void, path: *const abi::Path, state: *mut abi::State) {
    // SAFETY: as in `on_ack`.
    unsafe { event(object, &(), path, state, |c, (), path| c.on_mss(path)) }
}

unsafe extern "C" fn halve(object: *mut c_void, state: *mut abi::State) {
    // SAFETY: as in `on_ack`.
    unsafe { with(object, state, |c| c.halve()) }
}

unsafe extern "C" fn gauges(object: *const c_void, gauge: abi::Gauge, context: *mut c_void) {
    // SAFETY: made by `Object::give`, and not changed during the call.
    let object = unsafe { &*object.cast::<Object>() };
    let listed = catch_unwind(AssertUnwindSafe(|| {
        let mut all = Vec::new();
        object.controller.gauges(&mut all);
        all
    }));
    // A controller that panics here has no gauges; its events report what is wrong with it.
    for (name, value) in listed.unwrap_or_default() {
        // SAFETY: the context is of this call, and the text lives as long as the process.
        unsafe { gauge(context, text(name), value) };
    }
}
