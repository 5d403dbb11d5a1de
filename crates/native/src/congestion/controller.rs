//! A controller of a library as a [`gargalo_cc::Controller`].

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use gargalo_cc as cc;
use gargalo_cc::window::MAX_WINDOW;
use gargalo_plugin::congestion::abi;
use gargalo_units::{Bytes, Instant, Rate};
use rand::Rng;
use rand_pcg::Pcg64;

use super::plugin::{Algorithm, function};
use super::records;
use crate::calls::calling;
use crate::fault::{Fault, Faults, Wrong};
use crate::names::keep;

/// Fastest pacing rate, bit/s: far beyond any link, and exact as a float.
const MAX_RATE: f64 = (1_u64 << 53) as f64;
/// Longest text of an error that is read.
const LONGEST_ERROR: usize = 1000;

/// What a controller calls of the host's; it stays at its place as long as the controller lives.
struct Host {
    offered: abi::Host,
    rng: UnsafeCell<Pcg64>,
}

impl Host {
    /// The pointers of `offered` lead to the new host itself: it is not to be moved, only freed as a box.
    fn new(rng: Pcg64) -> NonNull<Self> {
        let host = Box::new(Self {
            offered: abi::Host {
                context: ptr::null_mut(),
                random,
                cbrt,
                exp,
                log,
                pow,
            },
            rng: UnsafeCell::new(rng),
        });
        let host = Box::into_raw(host);
        // SAFETY: the box has just been given up, so the pointer is valid and the only one.
        unsafe {
            (*host).offered.context = (*host).rng.get().cast();
            NonNull::new_unchecked(host)
        }
    }

    /// What the plug-in is given.
    fn offered(host: NonNull<Self>) -> *const abi::Host {
        // SAFETY: a host lives until its controller is dropped.
        unsafe { &raw const (*host.as_ptr()).offered }
    }
}

/// # Safety
/// `context` is that of a [`Host`], whose controller makes this call.
unsafe extern "C" fn random(context: *mut c_void) -> u64 {
    // SAFETY: only this function uses the generator, and calls for one controller come one after another.
    let rng = unsafe { &mut *context.cast::<Pcg64>() };
    rng.next_u64()
}
extern "C" fn cbrt(x: f64) -> f64 {
    libm::cbrt(x)
}
extern "C" fn exp(x: f64) -> f64 {
    libm::exp(x)
}
extern "C" fn log(x: f64) -> f64 {
    libm::log(x)
}
extern "C" fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// The numbers of the latest state that was valid.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    cwnd: Bytes,
    ssthresh: Option<Bytes>,
    pacing_rate: Option<Rate>,
    send_quantum: Option<Bytes>,
    flags: u32,
    phase: &'static str,
}

pub(super) struct NativeController {
    algorithm: &'static Algorithm,
    /// What `create` or `clone` returned; null only after a fault.
    object: *mut c_void,
    host: NonNull<Host>,
    state: abi::State,
    /// The state that `numbers` are of.
    seen: abi::State,
    numbers: Numbers,
    /// The text that `numbers.phase` was read from.
    phase: *const c_char,
    /// The latest segment size.
    mss: Bytes,
    siblings: Vec<abi::Sibling>,
    run: u64,
    faults: Arc<Faults>,
}

// SAFETY: a plug-in's controller may be used by any thread, one at a time; functions that take a constant controller do
// not change it. The header requires both. The host is used by calls of that controller alone.
unsafe impl Send for NativeController {}
// SAFETY: as above.
unsafe impl Sync for NativeController {}

impl fmt::Debug for NativeController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeController")
            .field("algorithm", &self.algorithm.name())
            .field("numbers", &self.numbers)
            .finish_non_exhaustive()
    }
}

impl NativeController {
    pub(super) fn new(
        algorithm: &'static Algorithm,
        values: &[f64],
        init: cc::Init,
        faults: Arc<Faults>,
    ) -> Result<Self, Fault> {
        let begin = abi::State {
            cwnd_bytes: 0.0,
            ssthresh_bytes: abi::UNSET,
            pacing_rate_bps: abi::UNSET,
            send_quantum_bytes: abi::UNSET,
            phase: ptr::null(),
            error: ptr::null(),
            flags: 0,
            reserved: 0,
        };
        let mut new = Self {
            algorithm,
            object: ptr::null_mut(),
            host: Host::new(init.rng),
            state: begin,
            seen: begin,
            numbers: Numbers {
                cwnd: init.mss,
                ssthresh: None,
                pacing_rate: None,
                send_quantum: None,
                flags: 0,
                phase: "",
            },
            phase: ptr::null(),
            mss: init.mss,
            siblings: Vec::new(),
            run: faults.id(),
            faults,
        };
        let record = abi::Init {
            now_ns: init.now.as_nanos(),
            mss_bytes: init.mss.get(),
            initial_window_bytes: init.initial_window.get(),
            parameters: values.as_ptr(),
            host: Host::offered(new.host),
        };
        let create = algorithm.required.create;
        let (data, state) = (algorithm.table.data, &raw mut new.state);
        new.object = calling(algorithm.callee, function::CREATE, new.run, || {
            // SAFETY: the records are valid during the call, and the host as long as the controller.
            unsafe { create(data, &raw const record, state) }
        });
        let checked = match new.object.is_null() && new.state.error.is_null() {
            true => Err(Wrong::Nothing),
            false => new.check(init.mss),
        };
        if let Err(wrong) = checked {
            new.fail(function::CREATE, wrong);
        }
        match new.faults.first() {
            Some(fault) => Err(fault),
            None => Ok(new),
        }
    }

    #[cold]
    fn fail(&self, function: usize, wrong: Wrong) {
        self.faults.put(Fault {
            place: self.algorithm.callee.place(function),
            wrong,
        });
    }

    /// Calls a function, unless something has failed in this run, and takes the numbers that it leaves.
    #[inline]
    fn tell(
        &mut self,
        function: usize,
        mss: Bytes,
        call: impl FnOnce(*mut c_void, *mut abi::State),
    ) {
        if self.faults.raised() {
            return;
        }
        let (object, state) = (self.object, &raw mut self.state);
        calling(self.algorithm.callee, function, self.run, || {
            call(object, state);
        });
        if let Err(wrong) = self.check(mss) {
            self.fail(function, wrong);
        }
    }

    /// [`NativeController::tell`] with a record and the path.
    #[inline]
    fn event<T>(&mut self, number: usize, on: abi::On<T>, record: &T, path: &cc::Path<'_>) {
        self.view(path);
        let view = records::path(path, &self.siblings);
        self.tell(number, path.mss, |object, state| {
            // SAFETY: the object is the library's, the function is its for such objects, and all records are valid
            // during the call.
            unsafe { on(object, record, &raw const view, state) };
        });
    }

    /// [`NativeController::tell`] with a number and the path.
    fn event_number(&mut self, number: usize, on: abi::OnNumber, record: u64, path: &cc::Path<'_>) {
        self.view(path);
        let view = records::path(path, &self.siblings);
        self.tell(number, path.mss, |object, state| {
            // SAFETY: as in `event`.
            unsafe { on(object, record, &raw const view, state) };
        });
    }

    /// Takes note of the segment size, and copies what siblings there are.
    #[inline]
    fn view(&mut self, path: &cc::Path<'_>) {
        self.mss = path.mss;
        if !path.siblings.is_empty() {
            self.siblings.clear();
            self.siblings
                .extend(path.siblings.iter().map(records::sibling));
        }
    }

    /// Takes over the state if it is valid.
    #[inline]
    fn check(&mut self, mss: Bytes) -> Result<(), Wrong> {
        let s = &self.state;
        if !s.error.is_null() {
            return Err(Wrong::Said(said(s.error)));
        }
        let most = MAX_WINDOW.as_f64();
        let (cwnd, least) = (s.cwnd_bytes, mss.as_f64());
        if !(cwnd >= least && cwnd <= most) {
            return Err(invalid("cwnd_bytes", cwnd, least, most, false));
        }
        // What is as it was needs no conversion.
        let (seen, numbers) = (&mut self.seen, &mut self.numbers);
        if s.ssthresh_bytes.to_bits() != seen.ssthresh_bytes.to_bits() {
            let ssthresh = optional("ssthresh_bytes", s.ssthresh_bytes, most)?;
            numbers.ssthresh = ssthresh.map(Bytes::from_f64);
        }
        if s.pacing_rate_bps.to_bits() != seen.pacing_rate_bps.to_bits() {
            let rate = optional("pacing_rate_bps", s.pacing_rate_bps, MAX_RATE)?;
            numbers.pacing_rate = rate.map(Rate::from_bps_f64);
        }
        if s.send_quantum_bytes.to_bits() != seen.send_quantum_bytes.to_bits() {
            let quantum = optional("send_quantum_bytes", s.send_quantum_bytes, most)?;
            numbers.send_quantum = quantum.map(Bytes::from_f64);
        }
        numbers.cwnd = Bytes::from_f64(cwnd);
        numbers.flags = s.flags;
        *seen = *s;
        let phase = s.phase;
        if phase != self.phase || phase.is_null() {
            self.take_phase(phase)?;
        }
        Ok(())
    }

    fn take_phase(&mut self, phase: *const c_char) -> Result<(), Wrong> {
        self.numbers.phase = if !phase.is_null() {
            name("phase", phase)?
        } else if self.state.flags & abi::SLOW_START != 0 {
            "slow-start"
        } else {
            "congestion-avoidance"
        };
        self.phase = phase;
        Ok(())
    }
}

/// A number that may be missing.
#[inline]
fn optional(field: &'static str, value: f64, most: f64) -> Result<Option<f64>, Wrong> {
    if value == abi::UNSET {
        Ok(None)
    } else if value >= 1.0 && value <= most {
        Ok(Some(value))
    } else {
        Err(invalid(field, value, 1.0, most, true))
    }
}

#[cold]
fn invalid(field: &'static str, value: f64, least: f64, most: f64, may_be_unset: bool) -> Wrong {
    let unset = if may_be_unset {
        ", or GARGALO_UNSET"
    } else {
        ""
    };
    let what = if least > 1.0 { " (a segment)" } else { "" };
    Wrong::Number {
        field,
        value,
        valid: format!("a number from {least}{what} to {most}{unset}"),
    }
}

/// A text of a plug-in, cut if it is long.
fn said(text: *const c_char) -> String {
    // SAFETY: the header requires a text that ends in a zero.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    text.chars().take(LONGEST_ERROR).collect()
}

/// A name that lives as long as the process.
fn name(field: &'static str, text: *const c_char) -> Result<&'static str, Wrong> {
    // SAFETY: the header requires a constant that ends in a zero.
    let text = unsafe { CStr::from_ptr(text) };
    let why = |why: String| Wrong::Text { field, why };
    let text = text
        .to_str()
        .map_err(|_| why("not UTF-8 text".to_owned()))?;
    keep(text).map_err(|e| why(e.to_string()))
}

/// Where gauges are put.
struct Gauges<'a> {
    out: &'a mut Vec<(&'static str, f64)>,
    wrong: Option<Wrong>,
}

/// # Safety
/// `context` is the [`Gauges`] of the call that this is made from, and `text` a constant that ends in a zero.
unsafe extern "C" fn gauge(context: *mut c_void, text: *const c_char, value: f64) {
    // SAFETY: the caller answers for it.
    let gauges = unsafe { &mut *context.cast::<Gauges<'_>>() };
    if text.is_null() {
        let why = "its name is NULL".to_owned();
        gauges.wrong = Some(Wrong::Text {
            field: "a gauge",
            why,
        });
        return;
    }
    match name("a gauge", text) {
        Ok(name) => gauges.out.push((name, value)),
        Err(wrong) => gauges.wrong = Some(wrong),
    }
}

impl cc::Controller for NativeController {
    #[inline]
    fn on_send(&mut self, sent: &cc::Sent, path: &cc::Path<'_>) {
        let Some(on_send) = self.algorithm.table.on_send else {
            return;
        };
        if sent.idle.is_some() || self.watches_sends() {
            self.event(function::ON_SEND, on_send, &records::sent(sent), path);
        }
    }

    fn watches_sends(&self) -> bool {
        self.algorithm.table.on_send.is_some()
            && self.algorithm.table.flags & abi::WATCHES_SENDS != 0
    }

    #[inline]
    fn on_ack(&mut self, ack: &cc::Acked, path: &cc::Path<'_>) {
        let on_ack = self.algorithm.required.on_ack;
        self.event(function::ON_ACK, on_ack, &records::acked(ack), path);
    }

    fn on_loss(&mut self, lost: &cc::Lost, path: &cc::Path<'_>) {
        if let Some(on_loss) = self.algorithm.table.on_loss {
            self.event(function::ON_LOSS, on_loss, &records::lost(lost), path);
        }
    }

    fn on_congestion(&mut self, event: &cc::Congestion, path: &cc::Path<'_>) {
        let on_congestion = self.algorithm.required.on_congestion;
        let record = records::congestion(event);
        self.event(function::ON_CONGESTION, on_congestion, &record, path);
    }

    fn on_spurious(&mut self, event: &cc::Spurious, path: &cc::Path<'_>) {
        if let Some(on_spurious) = self.algorithm.table.on_spurious {
            let record = records::spurious(event);
            self.event(function::ON_SPURIOUS, on_spurious, &record, path);
        }
    }

    fn on_recovered(&mut self, now: Instant, path: &cc::Path<'_>) {
        if let Some(on_recovered) = self.algorithm.table.on_recovered {
            let now = now.as_nanos();
            self.event_number(function::ON_RECOVERED, on_recovered, now, path);
        }
    }

    fn halve(&mut self) {
        if let Some(halve) = self.algorithm.table.halve {
            self.tell(function::HALVE, self.mss, |object, state| {
                // SAFETY: as in `event`.
                unsafe { halve(object, state) };
            });
        }
    }

    fn on_established(&mut self, established: &cc::Established, path: &cc::Path<'_>) {
        match self.algorithm.table.on_established {
            Some(on_established) => {
                let record = records::established(established);
                self.event(function::ON_ESTABLISHED, on_established, &record, path);
            }
            None => self.on_mss(path),
        }
    }

    fn on_mss(&mut self, path: &cc::Path<'_>) {
        self.view(path);
        let Some(on_mss) = self.algorithm.table.on_mss else {
            self.state.cwnd_bytes = self.state.cwnd_bytes.max(path.mss.as_f64());
            self.numbers.cwnd = self.numbers.cwnd.max(path.mss);
            return;
        };
        let view = records::path(path, &self.siblings);
        self.tell(function::ON_MSS, path.mss, |object, state| {
            // SAFETY: as in `event`.
            unsafe { on_mss(object, &raw const view, state) };
        });
    }

    #[inline]
    fn cwnd(&self) -> Bytes {
        self.numbers.cwnd
    }

    #[inline]
    fn ssthresh(&self) -> Option<Bytes> {
        self.numbers.ssthresh
    }

    #[inline]
    fn in_slow_start(&self) -> bool {
        self.numbers.flags & abi::SLOW_START != 0
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        self.numbers.pacing_rate
    }

    #[inline]
    fn send_quantum(&self) -> Option<Bytes> {
        self.numbers.send_quantum
    }

    #[inline]
    fn governs_recovery(&self) -> bool {
        self.numbers.flags & abi::GOVERNS_RECOVERY != 0
    }

    fn phase(&self) -> &'static str {
        self.numbers.phase
    }

    fn gauges(&self, out: &mut Vec<(&'static str, f64)>) {
        let Some(gauges) = self.algorithm.table.gauges else {
            return;
        };
        if self.faults.raised() {
            return;
        }
        let mut list = Gauges { out, wrong: None };
        let context = (&raw mut list).cast();
        calling(self.algorithm.callee, function::GAUGES, self.run, || {
            // SAFETY: the function is the library's for such objects, and adds gauges only during the call.
            unsafe { gauges(self.object, gauge, context) };
        });
        if let Some(wrong) = list.wrong {
            self.fail(function::GAUGES, wrong);
        }
    }

    fn clone_box(&self) -> Box<dyn cc::Controller> {
        // SAFETY: the generator is used by calls of this controller alone, and none is under way.
        let rng = unsafe { (*self.host.as_ref().rng.get()).clone() };
        let host = Host::new(rng);
        let clone = self.algorithm.required.clone;
        let object = if self.faults.raised() {
            ptr::null_mut()
        } else {
            let object = calling(self.algorithm.callee, function::CLONE, self.run, || {
                // SAFETY: the function is the library's for such objects, and the host is valid as long as the copy.
                unsafe { clone(self.object, Host::offered(host)) }
            });
            if object.is_null() {
                self.fail(function::CLONE, Wrong::Nothing);
            }
            object
        };
        Box::new(Self {
            algorithm: self.algorithm,
            object,
            host,
            state: self.state,
            seen: self.seen,
            numbers: self.numbers,
            phase: self.phase,
            mss: self.mss,
            siblings: Vec::new(),
            run: self.run,
            faults: Arc::clone(&self.faults),
        })
    }
}

impl Drop for NativeController {
    fn drop(&mut self) {
        if !self.object.is_null() {
            let destroy = self.algorithm.required.destroy;
            calling(self.algorithm.callee, function::DESTROY, self.run, || {
                // SAFETY: the object is the library's, and nobody uses it any more.
                unsafe { destroy(self.object) };
            });
        }
        // SAFETY: made by `Box::into_raw` in `Host::new`, and freed here alone.
        drop(unsafe { Box::from_raw(self.host.as_ptr()) });
    }
}
