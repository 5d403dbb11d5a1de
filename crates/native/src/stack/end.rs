//! One end of a connection of a library's stack.

use std::ffi::{CString, c_void};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use bytes::{Bytes, BytesMut};
use gargalo_plugin::stack::abi;
use gargalo_quic::{
    ALPN, Chunk, Config, Datagram, Error, Event, Handshake, INITIAL_RTT, Init, Known, MAX_STREAMS,
    Notice, Realm, SERVER_NAME, Session, Snapshot, Stack, Stats, StreamId,
};
use gargalo_units::{Bytes as Size, Duration, Ecn, Instant, Rate};

use super::context::{Context, host, word};
use super::{Functions, NativeStack};

/// The largest UDP payload (IPv4).
const LARGEST_DATAGRAM: usize = 65_507;
/// Room for the sentence of a failure.
const ERROR_ROOM: usize = 512;
/// Datagrams in one instant, and timers in a row that are not later than the present, before a stack counts as one that
/// never ends.
const MOST_AT_ONCE: u32 = 100_000;

/// One end.
pub(super) struct End {
    functions: Functions,
    name: String,
    /// The library's object; not null.
    stack: *mut c_void,
    /// What the stack tells; from a box, and freed with this. It is used between calls only.
    context: *mut Context,
    /// The stack may keep a pointer to it.
    _host: Box<abi::Host>,
    now: Instant,
    local: SocketAddr,
    /// The local address of which the stack knows.
    known_local: SocketAddr,
    scratch: Box<[u8]>,
    sent_datagrams: u64,
    sent_datagram_bytes: u64,
    ce_marks: u64,
    /// Datagrams since the time advanced, and timers in a row that were due at once.
    at_once: u32,
    due_at_once: u32,
}

// SAFETY: the interface allows calls from any thread, one at a time, and `&mut self` makes them so.
unsafe impl Send for End {}

impl End {
    pub(super) fn new(
        of: &NativeStack,
        realm: &Realm,
        config: &Config,
        init: Init,
        is_client: bool,
    ) -> Result<Self, Error> {
        let (client, server) = match is_client {
            true => (init.local.ip(), init.remote.ip()),
            false => (init.remote.ip(), init.local.ip()),
        };
        let early = config.handshake == Handshake::ZeroRtt;
        let session = is_client.then(|| Session {
            stack: of.name.clone(),
            client,
            server,
        });
        let resumed = session.as_ref().filter(|_| early);
        let resumed = resumed.and_then(|s| realm.take_session(s));
        let ticket_key = match is_client {
            true => Vec::new(),
            false => realm.ticket_key(server).to_vec(),
        };
        let strings = [config.congestion.name.as_str(), SERVER_NAME, ALPN].map(CString::new);
        let [Ok(congestion), Ok(server_name), Ok(alpn)] = strings else {
            return Err(Error::Option("a name has a zero byte".to_owned()));
        };
        let (qlog, title) = init.qlog.unzip();
        drop(title);
        let most = config.discovered().unwrap_or(config.datagram_size);
        let wanted = abi::Config {
            size: size_of::<abi::Config>() as u64,
            local: address(init.local),
            remote: address(init.remote),
            congestion: congestion.as_ptr(),
            server_name: server_name.as_ptr(),
            alpn: alpn.as_ptr(),
            certificate: bytes(realm.certificate()),
            private_key: bytes(if is_client { &[] } else { realm.private_key() }),
            ticket_key: bytes(&ticket_key),
            session: bytes(resumed.as_deref().unwrap_or_default()),
            initial_window: config.initial_window().get(),
            stream_window: config.stream_window,
            connection_window: config.connection_window,
            send_window: config.send_window,
            idle_timeout: config.idle_timeout.as_nanos(),
            initial_rtt: INITIAL_RTT.as_nanos(),
            max_streams: MAX_STREAMS.into(),
            datagram_size: config.datagram_size.into(),
            max_datagram_size: u32::from(match of.features.mtu_discovery {
                true => most,
                false => config.datagram_size,
            }),
            is_server: (!is_client).into(),
            early_data: early.into(),
            retry: config.retry.into(),
            ecn: config.ecn.into(),
            pacing: config.pacing.into(),
            qlog: qlog.is_some().into(),
            secrets: init.secrets.into(),
            notices: true.into(),
        };
        let context = Box::into_raw(Box::new(Context {
            rng: init.rng,
            realm: realm.clone(),
            session,
            events: Default::default(),
            chunks: Default::default(),
            secrets: Default::default(),
            notices: Default::default(),
            records: false,
            rtt: None,
            qlog,
            connected: false,
            ended: false,
        }));
        let host = Box::new(host(context));
        let mut why = [0_u8; ERROR_ROOM];
        // SAFETY: everything that the structures point to is alive, and the library follows the header.
        let stack = unsafe {
            (of.functions.create)(
                &raw const wanted,
                &raw const *host,
                init.now.as_nanos(),
                why.as_mut_ptr().cast(),
                why.len() - 1,
            )
        };
        if stack.is_null() {
            // SAFETY: it is from the box above, and the library has no object that could use it.
            drop(unsafe { Box::from_raw(context) });
            let length = why.iter().position(|b| *b == 0).unwrap_or(why.len());
            let why = String::from_utf8_lossy(&why[..length]).into_owned();
            let name = &of.name;
            return Err(Error::Option(format!("stack {name}: {why}")));
        }
        Ok(Self {
            functions: of.functions,
            name: of.name.clone(),
            stack,
            context,
            _host: host,
            now: init.now,
            local: init.local,
            known_local: init.local,
            scratch: vec![0; LARGEST_DATAGRAM].into(),
            sent_datagrams: 0,
            sent_datagram_bytes: 0,
            ce_marks: 0,
            at_once: 0,
            due_at_once: 0,
        })
    }

    /// What the stack has told.
    fn told(&mut self) -> &mut Context {
        // SAFETY: it is from a box that lives as long as this, and no call of the stack is under way.
        unsafe { &mut *self.context }
    }

    /// What the stack has told, to look at.
    fn tells(&self) -> &Context {
        // SAFETY: as in `told`; `&self` allows no other reference that changes it.
        unsafe { &*self.context }
    }

    fn advance(&mut self, now: Instant) -> u64 {
        if now > self.now {
            self.now = now;
            self.at_once = 0;
        }
        self.now.as_nanos()
    }

    /// The stack does something that the interface does not allow: the connection ends, and the reason names the stack.
    fn fault(&mut self, what: &str) {
        let why = format!("stack {}: {what}", self.name);
        self.told().end(Event::Failed(why));
    }

    fn can_write(&self) -> bool {
        let told = self.tells();
        told.connected && !told.ended
    }
}

impl Stack for End {
    fn handle(
        &mut self,
        now: Instant,
        mut payload: BytesMut,
        ecn: Ecn,
        _local: SocketAddr,
        remote: SocketAddr,
    ) {
        self.ce_marks += u64::from(ecn == Ecn::Ce);
        let now = self.advance(now);
        let path = abi::Path {
            // Datagrams to the old address of a migrated client still arrive, but are no reason to move back.
            local: address(self.known_local),
            remote: address(remote),
            ecn: ecn as u8,
            reserved: [0; 7],
        };
        // SAFETY: the object is alive, and the payload belongs to this call.
        unsafe {
            (self.functions.datagram_in)(
                self.stack,
                now,
                &raw const path,
                payload.as_mut_ptr(),
                payload.len(),
            );
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let now = self.advance(now);
        // SAFETY: the object is alive.
        unsafe { (self.functions.timeout)(self.stack, now) };
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        if self.is_over() {
            return None;
        }
        // SAFETY: the object is alive.
        let at = unsafe { (self.functions.next_timer)(self.stack) };
        if at == abi::NONE {
            return None;
        }
        let at = Instant::from_nanos(at);
        if at > self.now {
            self.due_at_once = 0;
            return Some(at);
        }
        self.due_at_once += 1;
        if self.due_at_once > MOST_AT_ONCE {
            self.fault("next_timer is never later than the present");
            return None;
        }
        Some(self.now + Duration::from_nanos(1))
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let now = self.advance(now);
        self.at_once += 1;
        if self.at_once > MOST_AT_ONCE {
            self.fault("datagram_out never returns 0");
            return None;
        }
        let mut path = abi::Path::default();
        // SAFETY: the object is alive, and the room is as large as said.
        let length = unsafe {
            (self.functions.datagram_out)(
                self.stack,
                now,
                &raw mut path,
                self.scratch.as_mut_ptr(),
                self.scratch.len(),
            )
        };
        if length == 0 {
            return None;
        }
        let Some(payload) = self.scratch.get(..length) else {
            self.fault(&format!(
                "datagram_out returned {length} bytes, more than the room of {LARGEST_DATAGRAM}"
            ));
            return None;
        };
        let Some(remote) = socket(&path.remote) else {
            self.fault("datagram_out left no remote address in the path");
            return None;
        };
        self.sent_datagrams += 1;
        self.sent_datagram_bytes += length as u64;
        Some(Datagram {
            payload: BytesMut::from(payload),
            ecn: Ecn::from_bits(path.ecn & 3),
            // A stack that does not know its address leaves it empty.
            // Of a single path; a client does not notice a NAT rebinding.
            local: self.local,
            remote,
        })
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.told().events.pop_front()
    }

    fn poll_read(&mut self) -> Option<Chunk> {
        self.told().chunks.pop_front()
    }

    fn open(&mut self, now: Instant) -> Option<StreamId> {
        if !self.can_write() {
            return None;
        }
        let now = self.advance(now);
        // SAFETY: the object is alive.
        let stream = unsafe { (self.functions.open_stream)(self.stack, now) };
        StreamId::try_from(stream).ok()
    }

    fn write(&mut self, now: Instant, stream: StreamId, data: Bytes) -> usize {
        if !self.can_write() || data.is_empty() {
            return 0;
        }
        let now = self.advance(now);
        // SAFETY: the object is alive, and the data is as long as said.
        let taken = unsafe {
            (self.functions.write)(self.stack, now, stream, data.as_ptr(), data.len(), 0)
        };
        if taken > data.len() {
            let offered = data.len();
            self.fault(&format!("write took {taken} bytes of {offered}"));
            return 0;
        }
        taken
    }

    fn write_room(&mut self, stream: StreamId) -> u64 {
        if !self.can_write() {
            return 0;
        }
        // SAFETY: the object is alive.
        unsafe { (self.functions.write_room)(self.stack, stream) as u64 }
    }

    fn finish(&mut self, now: Instant, stream: StreamId) {
        if self.can_write() {
            let now = self.advance(now);
            // SAFETY: the object is alive; there is no data.
            unsafe { (self.functions.write)(self.stack, now, stream, [].as_ptr(), 0, 1) };
        }
    }

    fn close(&mut self, now: Instant) {
        if self.tells().ended {
            return;
        }
        let now = self.advance(now);
        // SAFETY: the object is alive.
        unsafe { (self.functions.close)(self.stack, now) };
        self.told().end(Event::Closed);
    }

    fn all_acknowledged(&mut self) -> bool {
        // SAFETY: the object is alive.
        let left = self
            .functions
            .unacknowledged
            .map(|f| unsafe { f(self.stack) });
        left.unwrap_or(0) == 0
    }

    fn is_over(&self) -> bool {
        // SAFETY: the object is alive.
        self.tells().ended && unsafe { (self.functions.is_over)(self.stack) } != 0
    }

    fn migrate(&mut self, now: Instant, local: SocketAddr) {
        let rebound = self.local.ip() == local.ip();
        self.local = local;
        if let Some(migrate) = self.functions.migrate.filter(|_| !rebound) {
            let now = self.advance(now);
            self.known_local = local;
            let to = address(local);
            // SAFETY: the object is alive.
            unsafe { migrate(self.stack, now, &raw const to) };
        }
    }

    fn stats(&mut self) -> Stats {
        let s = self.raw_stats();
        let known = |n: u64| n != abi::NONE;
        let or_zero = |n: u64| if known(n) { n } else { 0 };
        Stats {
            sent_packets: or_zero(s.sent_packets),
            sent_bytes: or_zero(s.sent_bytes),
            retransmitted_packets: or_zero(s.retransmitted_packets),
            lost_packets: or_zero(s.lost_packets),
            timeouts: or_zero(s.timeouts),
            spurious: or_zero(s.spurious),
            ce_marks: self.ce_marks,
            sent_datagrams: self.sent_datagrams,
            sent_datagram_bytes: self.sent_datagram_bytes,
            known: Known {
                sent_packets: known(s.sent_packets),
                sent_bytes: known(s.sent_bytes),
                retransmitted_packets: known(s.retransmitted_packets),
                lost_packets: known(s.lost_packets),
                timeouts: known(s.timeouts),
                spurious: known(s.spurious),
            },
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        let s = self.raw_stats();
        let some = |n: u64| (n != abi::NONE).then_some(n);
        Snapshot {
            cwnd: Size::new(some(s.cwnd).unwrap_or(0)),
            ssthresh: some(s.ssthresh).map(Size::new),
            in_flight: some(s.in_flight).map(Size::new),
            srtt: some(s.srtt).map(Duration::from_nanos),
            pacing_rate: some(s.pacing_rate).map(Rate::from_bps),
            delivery_rate: some(s.delivery_rate).map(Rate::from_bps),
            phase: super::text(s.phase).map_or("", |p| word(&p)),
        }
    }

    fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.told().rtt.take()
    }

    fn record_notices(&mut self) {
        self.told().records = true;
    }

    fn poll_notice(&mut self) -> Option<Notice> {
        self.told().notices.pop_front()
    }

    fn poll_secret(&mut self) -> Option<String> {
        self.told().secrets.pop_front()
    }
}

impl End {
    fn raw_stats(&mut self) -> abi::Stats {
        let mut stats = abi::Stats::default();
        // SAFETY: the object is alive.
        unsafe { (self.functions.stats)(self.stack, &raw mut stats) };
        stats
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // SAFETY: the object is alive, and nobody uses it after this; then the context is free, which is from a box.
        unsafe {
            (self.functions.destroy)(self.stack);
            drop(Box::from_raw(self.context));
        }
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End")
            .field("stack", &self.name)
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}

fn bytes(of: &[u8]) -> abi::Bytes {
    abi::Bytes {
        data: of.as_ptr(),
        length: of.len(),
    }
}

fn address(of: SocketAddr) -> abi::Address {
    let mut made = abi::Address {
        port: of.port(),
        ..abi::Address::default()
    };
    match of.ip() {
        IpAddr::V4(ip) => {
            made.ip[..4].copy_from_slice(&ip.octets());
            made.ip_length = 4;
        }
        IpAddr::V6(ip) => {
            made.ip = ip.octets();
            made.ip_length = 16;
        }
    }
    made
}

fn socket(of: &abi::Address) -> Option<SocketAddr> {
    let ip: IpAddr = match of.ip_length {
        4 => <[u8; 4]>::try_from(&of.ip[..4]).ok()?.into(),
        16 => of.ip.into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, of.port))
}
