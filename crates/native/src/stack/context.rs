//! The functions by which a stack reports to the host during a call.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use bytes::BytesMut;
use gargalo_plugin::stack::abi;
use gargalo_quic::Event;
use gargalo_quic::foreign::{Outgoing, Packet, PacketEvent, PacketKind, Pending};
use gargalo_units::{Duration, Ecn};
use rand::Rng;

use super::text;
use crate::calls::{Mark, Slot};

/// What the functions of the host are given: where reports go, and who may report now.
#[derive(Debug)]
pub(super) struct Context {
    pending: *mut Pending,
    /// The [`Mark`] of the thread that is in a call.
    caller: AtomicPtr<Slot>,
    /// 1 + the index in [`NAMES`] of a function that was called by another thread, or outside of a call; 0: none.
    strange: AtomicUsize,
}

/// The host's functions.
const NAMES: [&str; 14] = [
    "random",
    "event",
    "received",
    "session",
    "secret",
    "qlog",
    "notice",
    "rtt_sample",
    "send",
    "datagram",
    "stopped",
    "reset",
    "packet",
    "path_rtt_sample",
];

impl Context {
    /// Reports go to `pending`, which outlives this.
    pub(super) fn new(pending: *mut Pending) -> Self {
        Self {
            pending,
            caller: AtomicPtr::default(),
            strange: AtomicUsize::new(0),
        }
    }

    /// Does a call, in which the thread that makes it may report.
    #[inline]
    pub(super) fn during<T>(&self, caller: Mark, call: impl FnOnce() -> T) -> T {
        self.caller.store(caller.pointer(), Ordering::Relaxed);
        let result = call();
        self.caller.store(Mark::NONE.pointer(), Ordering::Relaxed);
        result
    }

    /// A sentence about a function of the host that was called when it must not be, once for each.
    pub(super) fn strange(&self) -> Option<String> {
        if self.strange.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let which = self.strange.swap(0, Ordering::Relaxed);
        let name = which.checked_sub(1).and_then(|i| NAMES.get(i))?;
        Some(format!(
            "called the host's function {name} from a thread of its own, or outside of a call: there is neither time \
             nor a random number there"
        ))
    }
}

/// The functions that a stack may call; they get `context`.
pub(super) fn host(context: *const Context) -> abi::Host {
    abi::Host {
        context: context.cast_mut().cast(),
        random,
        event,
        received,
        session,
        secret,
        qlog,
        notice,
        rtt_sample,
        send,
        datagram,
        stopped,
        reset,
        packet,
        path_rtt_sample,
    }
}

/// Where reports go, if this thread is in a call of the stack; else it is noted which of [`NAMES`] was called.
///
/// # Safety
/// `at` must be what [`host`] was given.
unsafe fn pending<'a>(at: *mut c_void, function: usize) -> Option<&'a mut Pending> {
    // SAFETY: the caller answers for it; it is shared, and all that changes is atomic.
    let context = unsafe { &*at.cast::<Context>() };
    let me = Mark::current();
    if me == Mark::NONE || context.caller.load(Ordering::Relaxed) != me.pointer() {
        context.strange.store(1 + function, Ordering::Relaxed);
        return None;
    }
    // SAFETY: this thread is in the call, so that no other one has a reference, and calls of a stack hold none.
    Some(unsafe { &mut *context.pending })
}

/// The bytes of a stack.
///
/// # Safety
/// `data` must have `length` bytes, which nobody changes as long as they are used.
unsafe fn slice<'a>(data: *const u8, length: usize) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller answers for it.
    unsafe { std::slice::from_raw_parts(data, length) }
}

unsafe extern "C" fn random(at: *mut c_void, out: *mut u8, length: usize) {
    if out.is_null() || length == 0 {
        return;
    }
    // SAFETY: a stack passes its context on, and room for `length` bytes.
    let (pending, out) = unsafe { (pending(at, 0), std::slice::from_raw_parts_mut(out, length)) };
    match pending {
        Some(pending) => pending.rng.fill_bytes(out),
        None => out.fill(0),
    }
}

unsafe extern "C" fn event(at: *mut c_void, kind: u32, value: u32, why: *const c_char) {
    // SAFETY: a stack passes its context on.
    let Some(pending) = (unsafe { pending(at, 1) }) else {
        return;
    };
    match kind {
        abi::event::EARLY => pending.early(),
        abi::event::CONNECTED => {
            let zero_rtt = match value {
                abi::early::ACCEPTED => Some(true),
                abi::early::REJECTED | abi::early::RESENT => Some(false),
                _ => None,
            };
            pending.handshake(zero_rtt, value == abi::early::RESENT);
        }
        abi::event::CLOSED => pending.end(Event::Closed),
        abi::event::FAILED => {
            let why = text(why).unwrap_or_else(|| "the stack does not say why".to_owned());
            pending.end(Event::Failed(why));
        }
        // A later version of the interface may have more.
        _ => {}
    }
}

unsafe extern "C" fn received(
    at: *mut c_void,
    stream: u64,
    data: *const u8,
    length: usize,
    fin: c_int,
) {
    // SAFETY: a stack passes its context on, and `length` bytes.
    let (pending, data) = unsafe { (pending(at, 2), slice(data, length)) };
    if let Some(pending) = pending {
        pending.received(stream, data, fin != 0);
    }
}

unsafe extern "C" fn session(at: *mut c_void, data: *const u8, length: usize) {
    // SAFETY: a stack passes its context on, and `length` bytes.
    let (pending, data) = unsafe { (pending(at, 3), slice(data, length)) };
    if let Some(pending) = pending {
        pending.keep_session(data);
    }
}

unsafe extern "C" fn secret(at: *mut c_void, line: *const c_char) {
    // SAFETY: a stack passes its context on.
    let pending = unsafe { pending(at, 4) };
    if let (Some(pending), Some(line)) = (pending, text(line)) {
        pending.secret(&line);
    }
}

unsafe extern "C" fn qlog(at: *mut c_void, data: *const u8, length: usize) {
    // SAFETY: a stack passes its context on, and `length` bytes.
    let (pending, data) = unsafe { (pending(at, 5), slice(data, length)) };
    if let Some(pending) = pending {
        pending.qlog(data);
    }
}

unsafe extern "C" fn notice(at: *mut c_void, kind: *const c_char, detail: *const c_char) {
    // SAFETY: a stack passes its context on.
    let pending = unsafe { pending(at, 6) };
    if let (Some(pending), Some(kind)) = (pending, text(kind)) {
        pending.notice(&kind, || text(detail).unwrap_or_default());
    }
}

unsafe extern "C" fn rtt_sample(at: *mut c_void, rtt: u64) {
    // SAFETY: a stack passes its context on.
    if let Some(pending) = unsafe { pending(at, 7) } {
        pending.rtt_sample(Duration::from_nanos(rtt));
    }
}

unsafe extern "C" fn send(at: *mut c_void, path: *const abi::Path, data: *const u8, length: usize) {
    // SAFETY: a stack passes its context on, a path or null, and `length` bytes.
    let (pending, path, data) = unsafe { (pending(at, 8), path.as_ref(), slice(data, length)) };
    let path = path.and_then(|p| Some((p, p.remote.socket()?)));
    if let (Some(pending), Some((path, remote))) = (pending, path) {
        pending.send(Outgoing {
            payload: BytesMut::from(data),
            local: path.local.socket(),
            remote,
            ecn: Ecn::from_bits(path.ecn & 3),
        });
    }
}

unsafe extern "C" fn datagram(at: *mut c_void, data: *const u8, length: usize) {
    // SAFETY: a stack passes its context on, and `length` bytes.
    let (pending, data) = unsafe { (pending(at, 9), slice(data, length)) };
    if let Some(pending) = pending {
        pending.datagram(data);
    }
}

unsafe extern "C" fn stopped(at: *mut c_void, stream: u64) {
    // SAFETY: a stack passes its context on.
    if let Some(pending) = unsafe { pending(at, 10) } {
        pending.stopped(stream);
    }
}

unsafe extern "C" fn reset(at: *mut c_void, stream: u64) {
    // SAFETY: a stack passes its context on.
    if let Some(pending) = unsafe { pending(at, 11) } {
        pending.reset(stream);
    }
}

unsafe extern "C" fn packet(at: *mut c_void, packet: *const abi::Packet) {
    // SAFETY: a stack passes its context on, and a packet or null.
    let (pending, packet) = unsafe { (pending(at, 12), packet.as_ref()) };
    let (Some(pending), Some(p)) = (pending, packet) else {
        return;
    };
    let event = usize::from(p.event).checked_sub(1);
    let event = event.and_then(|i| PacketEvent::ALL.get(i));
    // A later version of the interface may have more.
    if let (Some((_, event)), Some((_, kind))) = (event, PacketKind::ALL.get(usize::from(p.kind))) {
        pending.packet(Packet {
            event: *event,
            kind: *kind,
            number: p.number,
            size: (p.size > 0).then_some(p.size),
            ack_eliciting: p.ack_eliciting != 0,
        });
    }
}

unsafe extern "C" fn path_rtt_sample(at: *mut c_void, path: u64, rtt: u64) {
    // SAFETY: a stack passes its context on.
    let pending = unsafe { pending(at, 13) };
    if let (Some(pending), Ok(path)) = (pending, u32::try_from(path)) {
        pending.path_rtt_sample(path, Duration::from_nanos(rtt));
    }
}
