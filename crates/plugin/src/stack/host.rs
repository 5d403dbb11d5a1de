//! What the host offers during a call: to the object that is called, on the thread that calls it.
//!
//! Outside of a call there is no time and no random number, and the functions that report do nothing.

use std::cell::Cell;
use std::ffi::CString;
use std::ptr::{self, NonNull};
use std::time::Duration;

use super::abi::{self, NONE, early, event};
use super::{EarlyData, Event, Packet, Path};

/// As the host takes it.
pub(super) fn abi_path(path: &Path) -> abi::Path {
    abi::Path {
        local: path.local.into(),
        remote: path.remote.into(),
        ecn: path.ecn,
        reserved: [0; 7],
    }
}

/// A call to an object.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) now: Duration,
    /// None while the object is freed.
    pub(super) host: Option<NonNull<abi::Host>>,
}

thread_local! {
    /// Null outside of a call. It is looked for once in a call: that is a function in a library that is loaded late.
    static CALL: Cell<*const Call> = const { Cell::new(ptr::null()) };
}

/// Runs a call; afterwards the one around it, if any, goes on.
#[inline]
pub(super) fn during<R>(call: Call, work: impl FnOnce() -> R) -> R {
    struct Restore<'a>(&'a Cell<*const Call>, *const Call);
    impl Drop for Restore<'_> {
        fn drop(&mut self) {
            self.0.set(self.1);
        }
    }
    CALL.with(|current| {
        let _restore = Restore(current, current.replace(&raw const call));
        work()
    })
}

/// The call under way in this thread.
fn current() -> Option<Call> {
    // SAFETY: the pointer is null, or that of a call that `during` keeps as long as it is here.
    unsafe { CALL.get().as_ref() }.copied()
}

/// The host, of which the reference must not outlive this call.
fn host<R>(work: impl FnOnce(&abi::Host) -> R) -> Option<R> {
    let pointer = current()?.host?;
    // SAFETY: `export` sets the pointer for the time of a call only, and the host's structure lives as long as the
    // object that is called.
    Some(work(unsafe { pointer.as_ref() }))
}

/// Time of the call since the start of the run.
pub fn now() -> Option<Duration> {
    current().map(|call| call.now)
}

/// Fills `out` with random bytes of the object's own stream; returns false outside of a call.
#[must_use]
pub fn random(out: &mut [u8]) -> bool {
    // SAFETY: the buffer has the given length.
    host(|h| unsafe { (h.random)(h.context, out.as_mut_ptr(), out.len()) }).is_some()
}

/// Reports an event.
pub fn event(event: Event<'_>) {
    let (kind, value, text) = match event {
        Event::Early => (event::EARLY, 0, None),
        Event::Connected(data) => {
            let value = match data {
                EarlyData::None => early::NONE,
                EarlyData::Accepted => early::ACCEPTED,
                EarlyData::Rejected => early::REJECTED,
                EarlyData::Resent => early::RESENT,
            };
            (event::CONNECTED, value, None)
        }
        Event::Closed => (event::CLOSED, 0, None),
        Event::Failed(why) => (event::FAILED, 0, Some(c_string(why))),
    };
    let text = text.as_ref().map_or(std::ptr::null(), |t| t.as_ptr());
    // SAFETY: the text is null or ends with 0, and lives until after the call.
    host(|h| unsafe { (h.event)(h.context, kind, value, text) });
}

/// Stream data has arrived, in order, each byte once; `fin`: the stream ends after it.
pub fn received(stream: u64, data: &[u8], fin: bool) {
    // SAFETY: the data has the given length.
    host(|h| unsafe { (h.received)(h.context, stream, data.as_ptr(), data.len(), fin.into()) });
}

/// Client: a session to resume from later, as bytes of the library's own choice.
pub fn session(data: &[u8]) {
    // SAFETY: as above.
    host(|h| unsafe { (h.session)(h.context, data.as_ptr(), data.len()) });
}

/// A line for an `SSLKEYLOGFILE`, without the end of line.
pub fn secret(line: &str) {
    let line = c_string(line);
    // SAFETY: the line ends with 0.
    host(|h| unsafe { (h.secret)(h.context, line.as_ptr()) });
}

/// A line for an `SSLKEYLOGFILE` from its parts, as TLS libraries report them.
pub fn secret_parts(label: &str, client_random: &[u8], value: &[u8]) {
    secret(&format!("{label} {} {}", hex(client_random), hex(value)));
}

/// Bytes of a qlog file.
pub fn qlog(data: &[u8]) {
    // SAFETY: the data has the given length.
    host(|h| unsafe { (h.qlog)(h.context, data.as_ptr(), data.len()) });
}

/// Something worth a row in the table of events: a word such as "loss", and details.
pub fn notice(kind: &str, detail: &str) {
    let (kind, detail) = (c_string(kind), c_string(detail));
    // SAFETY: both end with 0.
    host(|h| unsafe { (h.notice)(h.context, kind.as_ptr(), detail.as_ptr()) });
}

/// A round-trip sample.
pub fn rtt_sample(rtt: Duration) {
    // SAFETY: the context is the host's own.
    host(|h| unsafe { (h.rtt_sample)(h.context, nanos(rtt)) });
}

/// A datagram that is sent now, before those of [`Stack::datagram_out`](super::Stack::datagram_out): an answer of a
/// server that has no connection yet.
pub fn send(path: &Path, data: &[u8]) {
    let path = abi_path(path);
    // SAFETY: the data has the given length, and both live until after the call.
    host(|h| unsafe { (h.send)(h.context, &raw const path, data.as_ptr(), data.len()) });
}

/// A datagram has arrived (RFC 9221).
pub fn datagram(data: &[u8]) {
    // SAFETY: the data has the given length.
    host(|h| unsafe { (h.datagram)(h.context, data.as_ptr(), data.len()) });
}

/// The peer asks for the end of a stream: the host calls [`Stack::reset_stream`](super::Stack::reset_stream).
pub fn stopped(stream: u64) {
    // SAFETY: the context is the host's own.
    host(|h| unsafe { (h.stopped)(h.context, stream) });
}

/// The peer has reset a stream.
pub fn reset(stream: u64) {
    // SAFETY: as above.
    host(|h| unsafe { (h.reset)(h.context, stream) });
}

/// Something has happened to a packet.
pub fn packet(packet: Packet) {
    let packet = abi::Packet {
        number: packet.number,
        size: packet.size,
        event: packet.event as u8,
        kind: packet.kind as u8,
        ack_eliciting: packet.ack_eliciting.into(),
        reserved: 0,
    };
    // SAFETY: the packet lives until after the call.
    host(|h| unsafe { (h.packet)(h.context, &raw const packet) });
}

/// A round-trip sample of a path, in place of [`rtt_sample`].
pub fn path_rtt_sample(path: u64, rtt: Duration) {
    // SAFETY: the context is the host's own.
    host(|h| unsafe { (h.path_rtt_sample)(h.context, path, nanos(rtt)) });
}

/// [`qlog`] for what writes to a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct QlogFile;

impl std::io::Write for QlogFile {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        qlog(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// [`secret`] for what writes lines of an `SSLKEYLOGFILE`, each in one piece.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyLogFile;

impl std::io::Write for KeyLogFile {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        String::from_utf8_lossy(data).lines().for_each(secret);
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An array of random bytes.
///
/// # Panics
/// Outside of a call.
pub fn random_array<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    assert!(random(&mut out), "outside of a call");
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Text for C; it ends before the first zero byte, if it has one.
pub(super) fn c_string(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

/// Nanoseconds; far times are the greatest that is not [`NONE`].
pub(super) fn nanos(t: Duration) -> u64 {
    u64::try_from(t.as_nanos()).map_or(NONE - 1, |n| n.min(NONE - 1))
}
