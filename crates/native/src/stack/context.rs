//! What a stack tells the host during a call, and the functions by which it does.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::{c_char, c_int, c_void};
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use gargalo_plugin::stack::abi;
use gargalo_quic::{Chunk, Event, Notice, Realm, Session};
use gargalo_units::Duration;
use rand::Rng;
use rand_pcg::Pcg64;

use super::text;

/// Different words that stacks may use for kinds of notices and phases, and the greatest length of one.
const MOST_WORDS: usize = 256;
const LONGEST_WORD: usize = 32;
/// Bytes of a session that are kept.
const LARGEST_SESSION: usize = 1 << 16;

/// What one end has told and the world has not taken.
pub(super) struct Context {
    pub(super) rng: Pcg64,
    pub(super) realm: Realm,
    /// Whose session it is; `None` for a server.
    pub(super) session: Option<Session>,
    pub(super) events: VecDeque<Event>,
    pub(super) chunks: VecDeque<Chunk>,
    pub(super) secrets: VecDeque<String>,
    pub(super) notices: VecDeque<Notice>,
    pub(super) records: bool,
    pub(super) rtt: Option<Duration>,
    pub(super) qlog: Option<Box<dyn Write + Send + Sync>>,
    /// Data may be written.
    pub(super) connected: bool,
    /// The connection has ended.
    pub(super) ended: bool,
}

impl Context {
    /// Ends the connection, once.
    pub(super) fn end(&mut self, event: Event) {
        if self.ended {
            return;
        }
        self.ended = true;
        self.notice("close", || match &event {
            Event::Failed(why) => why.clone(),
            _ => String::new(),
        });
        self.events.push_back(event);
    }

    fn notice(&mut self, kind: &'static str, detail: impl FnOnce() -> String) {
        if self.records {
            self.notices.push_back(Notice {
                kind,
                detail: detail(),
            });
        }
    }

    fn connect(&mut self, early: bool) {
        if !self.connected {
            self.connected = true;
            self.events.push_back(Event::Connected { early });
        }
    }
}

/// The word, kept until the process ends; "other" if stacks use too many or too long ones.
pub(super) fn word(text: &str) -> &'static str {
    static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = words.get(text) {
        return known;
    }
    if words.len() >= MOST_WORDS || text.len() > LONGEST_WORD {
        return "other";
    }
    let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
    words.insert(kept);
    kept
}

/// The functions that a stack may call.
pub(super) fn host(context: *mut Context) -> abi::Host {
    abi::Host {
        context: context.cast(),
        random,
        event,
        received,
        session,
        secret,
        qlog,
        notice,
        rtt_sample,
    }
}

/// The context of a call.
///
/// # Safety
/// `at` must be what [`host`] was given, and no other reference to it may exist: calls of a stack hold none.
unsafe fn context<'a>(at: *mut c_void) -> &'a mut Context {
    // SAFETY: the caller answers for it.
    unsafe { &mut *at.cast::<Context>() }
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
    let (context, out) = unsafe { (context(at), std::slice::from_raw_parts_mut(out, length)) };
    context.rng.fill_bytes(out);
}

unsafe extern "C" fn event(at: *mut c_void, kind: u32, value: u32, why: *const c_char) {
    // SAFETY: a stack passes its context on.
    let context = unsafe { context(at) };
    if context.ended {
        return;
    }
    match kind {
        abi::event::EARLY => {
            context.connect(true);
            context.notice("zero-rtt", || "keys".to_owned());
        }
        abi::event::CONNECTED => {
            context.connect(false);
            let zero_rtt = match value {
                abi::early::ACCEPTED => Some(true),
                abi::early::REJECTED => Some(false),
                _ => None,
            };
            context
                .events
                .push_back(Event::HandshakeComplete { zero_rtt });
            context.notice("handshake", || "complete".to_owned());
            if let Some(accepted) = zero_rtt {
                let outcome = if accepted { "accepted" } else { "rejected" };
                context.notice("zero-rtt", || outcome.to_owned());
            }
        }
        abi::event::CLOSED => context.end(Event::Closed),
        abi::event::FAILED => {
            let why = text(why).unwrap_or_else(|| "the stack does not say why".to_owned());
            context.end(Event::Failed(why));
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
    let (context, data) = unsafe { (context(at), slice(data, length)) };
    context.chunks.push_back(Chunk {
        stream,
        data: Bytes::copy_from_slice(data),
        end: fin != 0,
    });
}

unsafe extern "C" fn session(at: *mut c_void, data: *const u8, length: usize) {
    // SAFETY: a stack passes its context on, and `length` bytes.
    let (context, data) = unsafe { (context(at), slice(data, length)) };
    if let Some(of) = &context.session
        && length <= LARGEST_SESSION
    {
        context.realm.keep_session(of.clone(), data.to_vec());
    }
}

unsafe extern "C" fn secret(at: *mut c_void, line: *const c_char) {
    // SAFETY: a stack passes its context on.
    let context = unsafe { context(at) };
    if let Some(line) = text(line) {
        context.secrets.push_back(line.trim_end().to_owned());
    }
}

unsafe extern "C" fn qlog(at: *mut c_void, data: *const u8, length: usize) {
    // SAFETY: a stack passes its context on, and `length` bytes.
    let (context, data) = unsafe { (context(at), slice(data, length)) };
    if let Some(file) = &mut context.qlog
        && let Err(e) = file.write_all(data)
    {
        context.qlog = None;
        context.notice("qlog", || format!("not written further: {e}"));
    }
}

unsafe extern "C" fn notice(at: *mut c_void, kind: *const c_char, detail: *const c_char) {
    // SAFETY: a stack passes its context on.
    let context = unsafe { context(at) };
    if let Some(kind) = text(kind) {
        context.notice(word(&kind), || text(detail).unwrap_or_default());
    }
}

unsafe extern "C" fn rtt_sample(at: *mut c_void, rtt: u64) {
    // SAFETY: a stack passes its context on.
    unsafe { context(at) }.rtt = Some(Duration::from_nanos(rtt));
}
