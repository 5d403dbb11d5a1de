//! The functions by which a stack reports to the host during a call.

use std::ffi::{c_char, c_int, c_void};

use bytes::BytesMut;
use gargalo_plugin::stack::abi;
use gargalo_quic::Event;
use gargalo_quic::foreign::{Outgoing, Pending};
use gargalo_units::{Duration, Ecn};
use rand::Rng;

use super::text;

/// The functions that a stack may call.
pub(super) fn host(pending: *mut Pending) -> abi::Host {
    abi::Host {
        context: pending.cast(),
        random,
        event,
        received,
        session,
        secret,
        qlog,
        notice,
        rtt_sample,
        send,
    }
}

/// What the stack has reported.
///
/// # Safety
/// `at` must be what [`host`] was given, and no other reference to it may exist: calls of a stack hold none.
unsafe fn pending<'a>(at: *mut c_void) -> &'a mut Pending {
    // SAFETY: the caller answers for it.
    unsafe { &mut *at.cast::<Pending>() }
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
    let (pending, out) = unsafe { (pending(at), std::slice::from_raw_parts_mut(out, length)) };
    pending.rng.fill_bytes(out);
}

unsafe extern "C" fn event(at: *mut c_void, kind: u32, value: u32, why: *const c_char) {
    // SAFETY: a stack passes its context on.
    let pending = unsafe { pending(at) };
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
    let (pending, data) = unsafe { (pending(at), slice(data, length)) };
    pending.received(stream, data, fin != 0);
}

unsafe extern "C" fn session(at: *mut c_void, data: *const u8, length: usize) {
    // SAFETY: a stack passes its context on, and `length` bytes.
    let (pending, data) = unsafe { (pending(at), slice(data, length)) };
    pending.keep_session(data);
}

unsafe extern "C" fn secret(at: *mut c_void, line: *const c_char) {
    // SAFETY: a stack passes its context on.
    let pending = unsafe { pending(at) };
    if let Some(line) = text(line) {
        pending.secret(&line);
    }
}

unsafe extern "C" fn qlog(at: *mut c_void, data: *const u8, length: usize) {
    // SAFETY: a stack passes its context on, and `length` bytes.
    let (pending, data) = unsafe { (pending(at), slice(data, length)) };
    pending.qlog(data);
}

unsafe extern "C" fn notice(at: *mut c_void, kind: *const c_char, detail: *const c_char) {
    // SAFETY: a stack passes its context on.
    let pending = unsafe { pending(at) };
    if let Some(kind) = text(kind) {
        pending.notice(&kind, || text(detail).unwrap_or_default());
    }
}

unsafe extern "C" fn rtt_sample(at: *mut c_void, rtt: u64) {
    // SAFETY: a stack passes its context on.
    unsafe { pending(at) }.rtt_sample(Duration::from_nanos(rtt));
}

unsafe extern "C" fn send(at: *mut c_void, path: *const abi::Path, data: *const u8, length: usize) {
    // SAFETY: a stack passes its context on, a path or null, and `length` bytes.
    let (pending, path, data) = unsafe { (pending(at), path.as_ref(), slice(data, length)) };
    if let Some((path, remote)) = path.and_then(|p| Some((p, p.remote.socket()?))) {
        pending.send(Outgoing {
            payload: BytesMut::from(data),
            remote,
            ecn: Ecn::from_bits(path.ecn & 3),
        });
    }
}
