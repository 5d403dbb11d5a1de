//! The functions of a library's table, for a type that implements [`Stack`].

use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::time::Duration;

use super::abi::{self, NONE, feature};
use super::host::{self, Call, nanos};
use super::{Config, Event, Offered, Path, Stack, Stats};

/// Exports a type that implements [`Stack`] as the library's QUIC implementation.
#[macro_export]
macro_rules! export_stack {
    ($stack:ty) => {
        /// The library's table.
        #[unsafe(no_mangle)]
        pub extern "C" fn gargalo_stack_v1() -> *const $crate::stack::abi::Table {
            static TABLE: std::sync::OnceLock<$crate::stack::abi::Table> =
                std::sync::OnceLock::new();
            TABLE.get_or_init($crate::stack::export::table::<$stack>)
        }
    };
}

/// The table of a type; its strings are never freed. For [`export_stack!`](crate::export_stack).
pub fn table<S: Stack>() -> abi::Table {
    let about = S::ABOUT;
    let has = |bit: u32| about.features & bit != 0;
    let text = |s: &str| CString::new(s).unwrap_or_default().into_raw().cast_const();
    let list = |of: &[&str]| {
        let mut texts: Vec<*const c_char> = of.iter().map(|s| text(s)).collect();
        texts.push(std::ptr::null());
        texts.leak().as_ptr()
    };
    let says = about.specifications.len() == about.congestion.len();
    abi::Table {
        abi: abi::ABI,
        features: about.features,
        size: size_of::<abi::Table>() as u64,
        name: text(about.name),
        version: text(about.version),
        congestion: list(about.congestion),
        create: Some(create::<S>),
        destroy: Some(destroy::<S>),
        datagram_in: Some(datagram_in::<S>),
        datagram_out: Some(datagram_out::<S>),
        next_timer: Some(next_timer::<S>),
        timeout: Some(timeout::<S>),
        open_stream: Some(open_stream::<S>),
        write: Some(write::<S>),
        unacknowledged: about.tells_unacknowledged.then_some(unacknowledged::<S>),
        migrate: has(feature::MIGRATION).then_some(migrate::<S>),
        close: Some(close::<S>),
        is_over: Some(is_over::<S>),
        stats: Some(stats::<S>),
        specifications: match says {
            true => list(about.specifications),
            false => std::ptr::null(),
        },
        prepare: Some(prepare::<S>),
        open_unidirectional_stream: has(feature::UNIDIRECTIONAL)
            .then_some(open_unidirectional_stream::<S>),
        send_datagram: has(feature::DATAGRAMS).then_some(send_datagram::<S>),
        reset_stream: has(feature::CANCEL).then_some(reset_stream::<S>),
        stop_sending: has(feature::CANCEL).then_some(stop_sending::<S>),
        set_urgency: has(feature::URGENCY).then_some(set_urgency::<S>),
        update_keys: has(feature::KEY_UPDATE).then_some(update_keys::<S>),
        open_path: has(feature::MULTIPATH).then_some(open_path::<S>),
        paths: has(feature::MULTIPATH).then_some(paths::<S>),
        packet_too_big: Some(packet_too_big::<S>),
    }
}

/// What a pointer of the host's points to.
struct Object<S> {
    stack: S,
    host: *const abi::Host,
    /// Nanoseconds.
    now: u64,
    /// The word that the host was last given, and those of the paths.
    phase: CString,
    path_phases: Vec<Option<CString>>,
    /// It has panicked: later calls do nothing.
    broken: bool,
}

/// Calls the object's stack; `missing` is the result after a panic.
///
/// # Safety
/// `object` must be of [`create`] with the same `S`, and not in use.
unsafe fn call<S: Stack, R>(
    object: *mut c_void,
    now: Option<u64>,
    missing: R,
    work: impl FnOnce(&mut S, Duration) -> R,
) -> R {
    // SAFETY: the caller answers for the pointer.
    let object = unsafe { &mut *object.cast::<Object<S>>() };
    if object.broken {
        return missing;
    }
    object.now = now.map_or(object.now, |t| object.now.max(t));
    let at = Call {
        now: Duration::from_nanos(object.now),
        host: NonNull::new(object.host.cast_mut()),
    };
    host::during(at, || {
        let stack = &mut object.stack;
        catch_unwind(AssertUnwindSafe(|| work(stack, at.now))).unwrap_or_else(|panic| {
            object.broken = true;
            host::event(Event::Failed(&panic_text(&*panic)));
            missing
        })
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the library panicked: {}", text.unwrap_or("no message"))
}

unsafe extern "C" fn prepare<S: Stack>() {
    // A panic leaves it to the first connection to fail.
    let _ = catch_unwind(S::prepare);
}

unsafe extern "C" fn create<S: Stack>(
    config: *const abi::Config,
    host: *const abi::Host,
    now: u64,
    error: *mut c_char,
    room: usize,
) -> *mut c_void {
    let at = Call {
        now: Duration::from_nanos(now),
        host: NonNull::new(host.cast_mut()),
    };
    let made = host::during(at, || {
        catch_unwind(|| {
            // SAFETY: the host gives a configuration that is valid during this call.
            let config = unsafe { read_config(config) }?;
            S::create(&config, at.now)
        })
        .unwrap_or_else(|panic| Err(panic_text(&*panic)))
    });
    match made {
        Ok(stack) => Box::into_raw(Box::new(Object {
            stack,
            host,
            now,
            phase: CString::default(),
            path_phases: Vec::new(),
            broken: false,
        }))
        .cast(),
        Err(why) => {
            let mut end = why.len().min(room.saturating_sub(1));
            while !why.is_char_boundary(end) {
                end -= 1;
            }
            if room > 0 {
                // SAFETY: the host gives `room` bytes, and `end` is below.
                unsafe {
                    std::ptr::copy_nonoverlapping(why.as_ptr(), error.cast(), end);
                    *error.add(end) = 0;
                }
            }
            std::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn destroy<S: Stack>(object: *mut c_void) {
    // SAFETY: the pointer is of `create`, and this is its last use.
    let object = unsafe { Box::from_raw(object.cast::<Object<S>>()) };
    let at = Call {
        now: Duration::from_nanos(object.now),
        host: None,
    };
    host::during(at, || {
        // After a panic, and without a host to report another to.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(object)));
    });
}

unsafe extern "C" fn datagram_in<S: Stack>(
    object: *mut c_void,
    now: u64,
    path: *const abi::Path,
    data: *mut u8,
    length: usize,
) {
    // SAFETY: the host's pointers are valid during this call, `data` for `length` bytes.
    unsafe {
        let (path, data) = (&*path, slice_mut(data, length));
        call::<S, _>(object, Some(now), (), |stack, now| {
            if let (Some(local), Some(remote)) = (path.local.socket(), path.remote.socket()) {
                let ecn = path.ecn;
                stack.datagram_in(now, &Path { local, remote, ecn }, data);
            }
        });
    }
}

unsafe extern "C" fn datagram_out<S: Stack>(
    object: *mut c_void,
    now: u64,
    path: *mut abi::Path,
    out: *mut u8,
    room: usize,
) -> usize {
    // SAFETY: the host's pointers are valid during this call, `out` for `room` bytes.
    unsafe {
        let (path, out) = (&mut *path, slice_mut(out, room));
        call::<S, _>(object, Some(now), 0, |stack, now| {
            let Some((length, sent)) = stack.datagram_out(now, out) else {
                return 0;
            };
            *path = host::abi_path(&sent);
            length
        })
    }
}

unsafe extern "C" fn next_timer<S: Stack>(object: *mut c_void) -> u64 {
    // SAFETY: the pointer is of `create`.
    let at = unsafe { call::<S, _>(object, None, None, |stack, _| stack.next_timer()) };
    at.map_or(NONE, nanos)
}

unsafe extern "C" fn timeout<S: Stack>(object: *mut c_void, now: u64) {
    // SAFETY: as above.
    unsafe { call::<S, _>(object, Some(now), (), |stack, now| stack.timeout(now)) }
}

unsafe extern "C" fn open_stream<S: Stack>(object: *mut c_void, now: u64) -> i64 {
    // SAFETY: as above.
    let id = unsafe { call::<S, _>(object, Some(now), None, |stack, now| stack.open_stream(now)) };
    id.and_then(|id| i64::try_from(id).ok()).unwrap_or(-1)
}

unsafe extern "C" fn write<S: Stack>(
    object: *mut c_void,
    now: u64,
    stream: u64,
    data: *const u8,
    length: usize,
    fin: c_int,
) -> usize {
    // SAFETY: as above; `data` is valid for `length` bytes.
    unsafe {
        let data = slice(data, length);
        call::<S, _>(object, Some(now), 0, |stack, now| {
            stack.write(now, stream, data, fin != 0)
        })
    }
}

unsafe extern "C" fn unacknowledged<S: Stack>(object: *mut c_void) -> u64 {
    // SAFETY: as above.
    let bytes = unsafe { call::<S, _>(object, None, None, |stack, _| stack.unacknowledged()) };
    bytes.unwrap_or(NONE)
}

unsafe extern "C" fn migrate<S: Stack>(object: *mut c_void, now: u64, local: *const abi::Address) {
    // SAFETY: as above; the address is valid during this call.
    unsafe {
        let local = (*local).socket();
        call::<S, _>(object, Some(now), (), |stack, now| {
            if let Some(local) = local {
                stack.migrate(now, local);
            }
        });
    }
}

unsafe extern "C" fn open_unidirectional_stream<S: Stack>(object: *mut c_void, now: u64) -> i64 {
    // SAFETY: as above.
    let id = unsafe {
        call::<S, _>(object, Some(now), None, |stack, now| {
            stack.open_unidirectional_stream(now)
        })
    };
    id.and_then(|id| i64::try_from(id).ok()).unwrap_or(-1)
}

unsafe extern "C" fn send_datagram<S: Stack>(
    object: *mut c_void,
    now: u64,
    data: *const u8,
    length: usize,
) -> c_int {
    // SAFETY: as above; `data` is valid for `length` bytes.
    let offered = unsafe {
        let data = slice(data, length);
        call::<S, _>(object, Some(now), Offered::Later, |stack, now| {
            stack.send_datagram(now, data)
        })
    };
    match offered {
        Offered::Taken => 1,
        Offered::Later => 0,
        Offered::Refused => -1,
    }
}

unsafe extern "C" fn reset_stream<S: Stack>(object: *mut c_void, now: u64, stream: u64) {
    // SAFETY: as above.
    unsafe { call::<S, _>(object, Some(now), (), |s, now| s.reset_stream(now, stream)) }
}

unsafe extern "C" fn stop_sending<S: Stack>(object: *mut c_void, now: u64, stream: u64) {
    // SAFETY: as above.
    unsafe { call::<S, _>(object, Some(now), (), |s, now| s.stop_sending(now, stream)) }
}

unsafe extern "C" fn set_urgency<S: Stack>(
    object: *mut c_void,
    now: u64,
    stream: u64,
    urgency: u8,
) {
    // SAFETY: as above.
    unsafe {
        call::<S, _>(object, Some(now), (), |s, now| {
            s.set_urgency(now, stream, urgency);
        });
    }
}

unsafe extern "C" fn update_keys<S: Stack>(object: *mut c_void, now: u64) -> c_int {
    // SAFETY: as above.
    unsafe { call::<S, _>(object, Some(now), false, |s, now| s.update_keys(now)) }.into()
}

unsafe extern "C" fn open_path<S: Stack>(object: *mut c_void, now: u64, path: *const abi::Path) {
    // SAFETY: as above; the path is valid during this call.
    unsafe {
        let path = &*path;
        call::<S, _>(object, Some(now), (), |stack, now| {
            if let (Some(local), Some(remote)) = (path.local.socket(), path.remote.socket()) {
                stack.open_path(now, local, remote);
            }
        });
    }
}

unsafe extern "C" fn paths<S: Stack>(
    object: *mut c_void,
    out: *mut abi::StackPath,
    room: usize,
) -> usize {
    // SAFETY: as above; `out` is valid for `room` paths.
    unsafe {
        let told = call::<S, _>(object, None, Vec::new(), |stack, _| stack.paths());
        let words = told.iter().map(|p| p.sender.phase.as_deref());
        let words = words.map(|w| w.map(host::c_string)).collect();
        let kept = &mut (*object.cast::<Object<S>>()).path_phases;
        *kept = words;
        for (i, (path, word)) in told.iter().zip(kept.iter()).take(room).enumerate() {
            out.add(i).write(abi::StackPath {
                id: path.id,
                local: path.local.into(),
                remote: path.remote.into(),
                opened: nanos(path.opened),
                closed: path.closed.map_or(NONE, nanos),
                received_bytes: path.received_bytes,
                sender: abi::Stats {
                    phase: word.as_ref().map_or(std::ptr::null(), |w| w.as_ptr()),
                    ..to_abi_stats(&path.sender)
                },
            });
        }
        told.len()
    }
}

unsafe extern "C" fn packet_too_big<S: Stack>(
    object: *mut c_void,
    now: u64,
    path: *const abi::Path,
    mtu: u64,
) {
    // SAFETY: as above; the path is valid during this call.
    unsafe {
        let path = &*path;
        call::<S, _>(object, Some(now), (), |stack, now| {
            if let (Some(local), Some(remote)) = (path.local.socket(), path.remote.socket()) {
                stack.packet_too_big(now, local, remote, mtu);
            }
        });
    }
}

unsafe extern "C" fn close<S: Stack>(object: *mut c_void, now: u64) {
    // SAFETY: as above.
    unsafe { call::<S, _>(object, Some(now), (), |stack, now| stack.close(now)) }
}

unsafe extern "C" fn is_over<S: Stack>(object: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { call::<S, _>(object, None, true, |stack, _| stack.is_over()) }.into()
}

unsafe extern "C" fn stats<S: Stack>(object: *mut c_void, out: *mut abi::Stats) {
    // SAFETY: as above; `out` is valid for the size that it states.
    unsafe {
        let given = call::<S, _>(object, None, Stats::default(), |stack, _| stack.stats());
        let size = (*out).size;
        let word = given.phase.as_deref().map(host::c_string);
        let kept = &mut (*object.cast::<Object<S>>()).phase;
        let stats = abi::Stats {
            size,
            phase: word.map_or(std::ptr::null(), |word| {
                *kept = word;
                kept.as_ptr()
            }),
            ..to_abi_stats(&given)
        };
        let known = usize::try_from(size).unwrap_or(usize::MAX);
        std::ptr::copy_nonoverlapping(
            (&raw const stats).cast::<u8>(),
            out.cast::<u8>(),
            known.min(size_of::<abi::Stats>()),
        );
    }
}

fn to_abi_stats(s: &Stats) -> abi::Stats {
    abi::Stats {
        sent_packets: s.sent_packets.unwrap_or(NONE),
        sent_bytes: s.sent_bytes.unwrap_or(NONE),
        retransmitted_packets: s.retransmitted_packets.unwrap_or(NONE),
        lost_packets: s.lost_packets.unwrap_or(NONE),
        timeouts: s.timeouts.unwrap_or(NONE),
        spurious: s.spurious.unwrap_or(NONE),
        cwnd: s.cwnd.unwrap_or(NONE),
        ssthresh: s.ssthresh.unwrap_or(NONE),
        in_flight: s.in_flight.unwrap_or(NONE),
        srtt: s.srtt.map_or(NONE, nanos),
        pacing_rate: s.pacing_rate.unwrap_or(NONE),
        delivery_rate: s.delivery_rate.unwrap_or(NONE),
        ..abi::Stats::default()
    }
}

/// # Safety
/// `data` must be null or valid for `length` bytes for `'a`.
unsafe fn slice<'a>(data: *const u8, length: usize) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller answers for it.
    unsafe { std::slice::from_raw_parts(data, length) }
}

/// # Safety
/// As for [`slice`], and nothing else uses the bytes.
unsafe fn slice_mut<'a>(data: *mut u8, length: usize) -> &'a mut [u8] {
    if data.is_null() || length == 0 {
        return &mut [];
    }
    // SAFETY: the caller answers for it.
    unsafe { std::slice::from_raw_parts_mut(data, length) }
}

/// # Safety
/// The configuration and all that it points to must be valid for `'a`.
unsafe fn read_config<'a>(config: *const abi::Config) -> Result<Config<'a>, String> {
    // SAFETY: the caller answers for the pointers; the size comes first, so it is there in every version.
    unsafe {
        let size = (*config).size;
        if size < size_of::<abi::Config>() as u64 {
            return Err(format!("the host's configuration has only {size} bytes"));
        }
        let c = &*config;
        let text = |what: &str, p: *const c_char| -> Result<&'a str, String> {
            if p.is_null() {
                return Err(format!("no {what} is given"));
            }
            CStr::from_ptr(p)
                .to_str()
                .map_err(|_| format!("the {what} is not valid UTF-8"))
        };
        let bytes = |b: abi::Bytes| slice(b.data, b.length);
        let address = |what: &str, a: &abi::Address| {
            a.socket()
                .ok_or_else(|| format!("the {what} address is neither IPv4 nor IPv6"))
        };
        let datagram = |n: u32| {
            u16::try_from(n).map_err(|_| format!("a datagram of {n} bytes is more than UDP has"))
        };
        Ok(Config {
            local: address("local", &c.local)?,
            remote: address("remote", &c.remote)?,
            congestion: text("congestion control", c.congestion)?,
            server_name: text("server name", c.server_name)?,
            alpn: text("application protocol", c.alpn)?,
            certificate: bytes(c.certificate),
            private_key: bytes(c.private_key),
            ticket_key: bytes(c.ticket_key),
            session: bytes(c.session),
            initial_window: c.initial_window,
            stream_window: c.stream_window,
            connection_window: c.connection_window,
            send_window: c.send_window,
            idle_timeout: Duration::from_nanos(c.idle_timeout),
            initial_rtt: Duration::from_nanos(c.initial_rtt),
            max_streams: c.max_streams,
            datagram_size: datagram(c.datagram_size)?,
            max_datagram_size: datagram(c.max_datagram_size)?,
            is_server: c.is_server != 0,
            early_data: c.early_data != 0,
            retry: c.retry != 0,
            ecn: c.ecn != 0,
            pacing: c.pacing != 0,
            qlog: c.qlog != 0,
            secrets: c.secrets != 0,
            notices: c.notices != 0,
            options: text("options", c.options)?,
            max_unidirectional_streams: c.max_unidirectional_streams,
            max_datagram_frame: c.max_datagram_frame,
            packets: c.packets != 0,
            max_paths: c.max_paths,
        })
    }
}
