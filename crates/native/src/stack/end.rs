//! One end of a connection of a library's stack.

use std::ffi::{CString, c_void};
use std::fmt;
use std::net::SocketAddr;

use bytes::BytesMut;
use gargalo_plugin::stack::abi;
use gargalo_quic::foreign::{Callbacks, Outgoing, Path, PathState, Pending, Request, Sender};
use gargalo_quic::{ALPN, Error, Event, INITIAL_RTT, MAX_STREAMS, Offered, SERVER_NAME, StreamId};
use gargalo_units::{Bytes as Size, Duration, Ecn, Instant, Rate, SenderCounters};

use super::context::{Context, host};
use super::{Functions, NativeStack, function};
use crate::calls::{Callee, calling_as};
use crate::fault::Faults;

/// The largest UDP payload (IPv4).
const LARGEST_DATAGRAM: usize = 65_507;
/// The largest DATAGRAM frame to accept, as RFC 9221 §3 recommends: any that fits into a packet.
const LARGEST_FRAME: u32 = 65_535;
/// Room for the paths of a connection, those that were abandoned included.
const MOST_PATHS: usize = 16;
/// Room for the sentence of a failure.
const ERROR_ROOM: usize = 512;

/// One end of a connection of a native stack: the library's object and what it has reported.
pub(super) struct End {
    functions: Functions,
    callee: &'static Callee,
    /// Number of the run in [`Faults`], where failures are recorded.
    run: u64,
    /// The library's object; not null.
    stack: *mut c_void,
    /// What the stack has reported; from a box, and freed with this. It is used between calls only.
    pending: *mut Pending,
    /// Who may report; the host's functions have a pointer to it.
    context: Box<Context>,
    /// The stack may keep a pointer to it.
    _host: Box<abi::Host>,
    scratch: Box<[u8]>,
}

// SAFETY: the interface allows calls from any thread, one at a time: those that change something take `&mut self`, and
// without `Sync` no other thread has a reference.
unsafe impl Send for End {}

impl End {
    pub(super) fn new(
        of: &NativeStack,
        faults: &Faults,
        request: &Request<'_>,
        pending: Pending,
    ) -> Result<Self, Error> {
        let config = request.config;
        let strings = [request.congestion, SERVER_NAME, ALPN, &request.options].map(CString::new);
        let [Ok(congestion), Ok(server_name), Ok(alpn), Ok(options)] = strings else {
            return Err(Error::Option("a name has a zero byte".to_owned()));
        };
        let wanted = abi::Config {
            size: size_of::<abi::Config>() as u64,
            local: request.local.into(),
            remote: request.remote.into(),
            congestion: congestion.as_ptr(),
            server_name: server_name.as_ptr(),
            alpn: alpn.as_ptr(),
            certificate: bytes(request.certificate),
            private_key: bytes(request.private_key),
            ticket_key: bytes(&request.ticket_key),
            session: bytes(&request.session),
            initial_window: config.initial_window().get(),
            stream_window: config.stream_window,
            connection_window: config.connection_window,
            send_window: config.send_window,
            idle_timeout: config.idle_timeout.as_nanos(),
            initial_rtt: INITIAL_RTT.as_nanos(),
            max_streams: MAX_STREAMS.into(),
            datagram_size: config.datagram_size.into(),
            max_datagram_size: request.max_datagram_size.into(),
            is_server: (!request.is_client).into(),
            early_data: request.early_data.into(),
            retry: config.retry.into(),
            ecn: config.ecn.into(),
            pacing: config.pacing.into(),
            qlog: request.qlog.into(),
            secrets: request.secrets.into(),
            notices: true.into(),
            options: options.as_ptr(),
            max_unidirectional_streams: request.max_unidirectional_streams.unwrap_or(0).into(),
            max_datagram_frame: if request.datagrams { LARGEST_FRAME } else { 0 },
            packets: request.packets.into(),
            reserved: [0; 3],
            max_paths: config.paths().into(),
        };
        let pending = Box::into_raw(Box::new(pending));
        let context = Box::new(Context::new(pending));
        let host = Box::new(host(&raw const *context));
        let mut why = [0_u8; ERROR_ROOM];
        let (callee, run) = (of.callee, faults.id());
        // SAFETY: everything that the structures point to is alive, and the library follows the header.
        let create = || unsafe {
            (of.functions.create)(
                &raw const wanted,
                &raw const *host,
                request.now.as_nanos(),
                why.as_mut_ptr().cast(),
                why.len() - 1,
            )
        };
        let stack = calling_as(callee, function::CREATE, run, |caller| {
            context.during(caller, create)
        });
        if stack.is_null() {
            // SAFETY: it is from the box above, and the library has no object that could use it.
            drop(unsafe { Box::from_raw(pending) });
            let length = why.iter().position(|b| *b == 0).unwrap_or(why.len());
            let why = String::from_utf8_lossy(&why[..length]).into_owned();
            let name = of.name();
            return Err(Error::Option(format!("stack {name}: {why}")));
        }
        Ok(Self {
            functions: of.functions,
            callee,
            run,
            stack,
            pending,
            context,
            _host: host,
            scratch: vec![0; LARGEST_DATAGRAM].into(),
        })
    }

    /// Does a call of one of the functions, which the watching thread sees; `call` is nothing but that call.
    fn call<T>(&self, function: usize, call: impl FnOnce(&Functions, *mut c_void) -> T) -> T {
        let called = || call(&self.functions, self.stack);
        let result = calling_as(self.callee, function, self.run, |caller| {
            self.context.during(caller, called)
        });
        if let Some(why) = self.context.strange() {
            self.pending(|all| all.end(Event::Failed(why)));
        }
        result
    }
}

impl Callbacks for End {
    fn datagram_in(&mut self, now: Instant, payload: &mut [u8], path: &Path) {
        let path = abi::Path {
            local: path.local.into(),
            remote: path.remote.into(),
            ecn: path.ecn as u8,
            reserved: [0; 7],
        };
        let (at, data, length) = (now.as_nanos(), payload.as_mut_ptr(), payload.len());
        // SAFETY: the object is alive, and the payload belongs to this call.
        self.call(function::DATAGRAM_IN, |f, stack| unsafe {
            (f.datagram_in)(stack, at, &raw const path, data, length);
        });
    }

    fn datagram_out(&mut self, now: Instant) -> Result<Option<Outgoing>, String> {
        let mut path = abi::Path::default();
        let (out, room) = (self.scratch.as_mut_ptr(), self.scratch.len());
        // SAFETY: the object is alive, and the room is as large as said.
        let length = self.call(function::DATAGRAM_OUT, |f, stack| unsafe {
            (f.datagram_out)(stack, now.as_nanos(), &raw mut path, out, room)
        });
        if length == 0 {
            return Ok(None);
        }
        let Some(payload) = self.scratch.get(..length) else {
            return Err(format!(
                "returned {length} bytes, more than the room of {LARGEST_DATAGRAM}"
            ));
        };
        let remote = path
            .remote
            .socket()
            .ok_or("left no remote address in the path")?;
        Ok(Some(Outgoing {
            payload: BytesMut::from(payload),
            // It may be left empty.
            local: path.local.socket(),
            remote,
            ecn: Ecn::from_bits(path.ecn & 3),
        }))
    }

    fn next_timer(&mut self) -> Option<Instant> {
        // SAFETY: the object is alive.
        let at = self.call(function::NEXT_TIMER, |f, stack| unsafe {
            (f.next_timer)(stack)
        });
        known(at).map(Instant::from_nanos)
    }

    fn timeout(&mut self, now: Instant) {
        // SAFETY: the object is alive.
        self.call(function::TIMEOUT, |f, stack| unsafe {
            (f.timeout)(stack, now.as_nanos());
        });
    }

    fn open_stream(&mut self, now: Instant) -> Option<StreamId> {
        // SAFETY: the object is alive.
        let stream = self.call(function::OPEN_STREAM, |f, stack| unsafe {
            (f.open_stream)(stack, now.as_nanos())
        });
        StreamId::try_from(stream).ok()
    }

    fn write(&mut self, now: Instant, stream: StreamId, data: &[u8], fin: bool) -> usize {
        let (at, from, length) = (now.as_nanos(), data.as_ptr(), data.len());
        // SAFETY: the object is alive, and the data is as long as said.
        self.call(function::WRITE, |f, stack| unsafe {
            (f.write)(stack, at, stream, from, length, fin.into())
        })
    }

    fn open_unidirectional_stream(&mut self, now: Instant) -> Option<StreamId> {
        let open = self.functions.open_unidirectional_stream?;
        // SAFETY: the object is alive.
        let stream = self.call(function::OPEN_UNIDIRECTIONAL_STREAM, |_, stack| unsafe {
            open(stack, now.as_nanos())
        });
        StreamId::try_from(stream).ok()
    }

    fn reset_stream(&mut self, now: Instant, stream: StreamId) {
        if let Some(reset) = self.functions.reset_stream {
            // SAFETY: the object is alive.
            self.call(function::RESET_STREAM, |_, stack| unsafe {
                reset(stack, now.as_nanos(), stream);
            });
        }
    }

    fn stop_sending(&mut self, now: Instant, stream: StreamId) {
        if let Some(stop) = self.functions.stop_sending {
            // SAFETY: the object is alive.
            self.call(function::STOP_SENDING, |_, stack| unsafe {
                stop(stack, now.as_nanos(), stream);
            });
        }
    }

    fn set_urgency(&mut self, now: Instant, stream: StreamId, urgency: u8) {
        if let Some(set) = self.functions.set_urgency {
            // SAFETY: the object is alive.
            self.call(function::SET_URGENCY, |_, stack| unsafe {
                set(stack, now.as_nanos(), stream, urgency);
            });
        }
    }

    fn send_datagram(&mut self, now: Instant, data: &[u8]) -> Offered {
        let Some(send) = self.functions.send_datagram else {
            return Offered::Refused;
        };
        let (at, from, length) = (now.as_nanos(), data.as_ptr(), data.len());
        // SAFETY: the object is alive, and the data is as long as said.
        match self.call(function::SEND_DATAGRAM, |_, stack| unsafe {
            send(stack, at, from, length)
        }) {
            0 => Offered::Later,
            1.. => Offered::Taken,
            _ => Offered::Refused,
        }
    }

    fn update_keys(&mut self, now: Instant) -> bool {
        let Some(update) = self.functions.update_keys else {
            return false;
        };
        // SAFETY: the object is alive.
        let begun = self.call(function::UPDATE_KEYS, |_, stack| unsafe {
            update(stack, now.as_nanos())
        });
        begun != 0
    }

    fn open_path(&mut self, now: Instant, local: SocketAddr, remote: SocketAddr) {
        if let Some(open) = self.functions.open_path {
            let path = abi::Path {
                local: local.into(),
                remote: remote.into(),
                ..abi::Path::default()
            };
            // SAFETY: the object is alive.
            self.call(function::OPEN_PATH, |_, stack| unsafe {
                open(stack, now.as_nanos(), &raw const path);
            });
        }
    }

    fn paths(&mut self) -> Vec<PathState> {
        let Some(paths) = self.functions.paths else {
            return Vec::new();
        };
        let mut out = [abi::StackPath::default(); MOST_PATHS];
        let to = out.as_mut_ptr();
        // SAFETY: the object is alive, and the room is as large as said.
        let count = self.call(function::PATHS, |_, stack| unsafe {
            paths(stack, to, MOST_PATHS)
        });
        let known = out.iter().take(count);
        known.filter_map(|path| self.path(path)).collect()
    }

    fn packet_too_big(&mut self, now: Instant, local: SocketAddr, remote: SocketAddr, mtu: u32) {
        if let Some(report) = self.functions.packet_too_big {
            let path = abi::Path {
                local: local.into(),
                remote: remote.into(),
                ..abi::Path::default()
            };
            // SAFETY: the object is alive.
            self.call(function::PACKET_TOO_BIG, |_, stack| unsafe {
                report(stack, now.as_nanos(), &raw const path, mtu.into());
            });
        }
    }

    fn unacknowledged(&mut self) -> Option<u64> {
        let unacknowledged = self.functions.unacknowledged?;
        // SAFETY: the object is alive.
        Some(self.call(function::UNACKNOWLEDGED, |_, stack| unsafe {
            unacknowledged(stack)
        }))
    }

    fn migrate(&mut self, now: Instant, local: SocketAddr) {
        if let Some(migrate) = self.functions.migrate {
            let to = local.into();
            // SAFETY: the object is alive.
            self.call(function::MIGRATE, |_, stack| unsafe {
                migrate(stack, now.as_nanos(), &raw const to);
            });
        }
    }

    fn close(&mut self, now: Instant) {
        // SAFETY: the object is alive.
        self.call(function::CLOSE, |f, stack| unsafe {
            (f.close)(stack, now.as_nanos());
        });
    }

    fn is_over(&self) -> bool {
        // SAFETY: the object is alive.
        let over = self.call(function::IS_OVER, |f, stack| unsafe { (f.is_over)(stack) });
        over != 0
    }

    fn stats(&mut self) -> Sender {
        let mut s = abi::Stats::default();
        // SAFETY: the object is alive.
        self.call(function::STATS, |f, stack| unsafe {
            (f.stats)(stack, &raw mut s);
        });
        self.sender(&s)
    }

    fn pending<R>(&self, access: impl FnOnce(&mut Pending) -> R) -> R {
        // SAFETY: it is from a box that lives as long as this, and no call of the stack is under way: `access` has no
        // way to this object.
        access(unsafe { &mut *self.pending })
    }
}

impl End {
    /// What the library has told of a sender; its word must not have been freed.
    fn sender(&self, s: &abi::Stats) -> Sender {
        Sender {
            counters: SenderCounters {
                sent_packets: known(s.sent_packets).into(),
                sent_bytes: known(s.sent_bytes).into(),
                retransmitted_packets: known(s.retransmitted_packets).into(),
                lost_packets: known(s.lost_packets).into(),
                timeouts: known(s.timeouts).into(),
                spurious_losses: known(s.spurious).into(),
                ..SenderCounters::UNKNOWN
            },
            cwnd: known(s.cwnd).map(Size::new),
            ssthresh: known(s.ssthresh).map(Size::new),
            in_flight: known(s.in_flight).map(Size::new),
            srtt: known(s.srtt).map(Duration::from_nanos),
            pacing_rate: known(s.pacing_rate).map(Rate::from_bps),
            delivery_rate: known(s.delivery_rate).map(Rate::from_bps),
            phase: super::text(s.phase).map_or("", |p| self.pending(|all| all.label(&p))),
        }
    }

    /// A path as the library has told it; `None`: it has no valid addresses or number.
    fn path(&self, path: &abi::StackPath) -> Option<PathState> {
        Some(PathState {
            id: u32::try_from(path.id).ok()?,
            local: path.local.socket()?,
            remote: path.remote.socket()?,
            opened: Instant::from_nanos(path.opened),
            closed: known(path.closed).map(Instant::from_nanos),
            received_bytes: path.received_bytes,
            sender: self.sender(&path.sender),
        })
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // SAFETY: the object is alive, and nobody uses it after this.
        self.call(function::DESTROY, |f, stack| unsafe { (f.destroy)(stack) });
        // SAFETY: it is from a box, and the object that used it is gone.
        drop(unsafe { Box::from_raw(self.pending) });
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End")
            .field("stack", &self.callee.name)
            .finish_non_exhaustive()
    }
}

/// A number that the library reports.
fn known(n: u64) -> Option<u64> {
    (n != abi::NONE).then_some(n)
}

fn bytes(of: &[u8]) -> abi::Bytes {
    abi::Bytes {
        data: of.as_ptr(),
        length: of.len(),
    }
}
