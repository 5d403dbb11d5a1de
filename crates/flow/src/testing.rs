//! Flows for tests.

use std::collections::{BTreeMap, VecDeque};
use std::mem::take;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::BytesMut;
use gargalo_cc::{Params, Registered};
use gargalo_quic::{
    Chunk, Config, Datagram, Direction, Error, Event, Implementation, Init, Notice, Offered,
    PathSnapshot, Realm, Snapshot, Stack, Stats, StreamId, Uses,
};
use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Duration, Ecn, Instant, SenderCounters};
use gargalo_workload::wire::WireBytes;
use gargalo_workload::{Bulk, Workload};

use crate::misbehaviour::Misbehaviour;
use crate::result::FlowResult;
use crate::spec::{FlowSpec, QuicSpec, TcpSpec, TransportSpec};
use crate::window::Counts;

/// An instant so many milliseconds after the start.
pub fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A transfer of so many bytes.
pub fn bulk(bytes: u64) -> Workload {
    Workload::Bulk(Bulk::of(Bytes::new(bytes)))
}

/// TCP with Reno.
pub fn reno() -> TcpSpec {
    TcpSpec {
        config: Arc::default(),
        congestion: Arc::new(Registered::new("reno", Params::default()).unwrap()),
        tls: None,
        misbehaviour: Misbehaviour::None,
    }
}

/// A flow with a row, from the start of the run.
pub fn flow(transport: TransportSpec, workload: Workload) -> FlowSpec {
    FlowSpec {
        id: 7,
        label: "flow".into(),
        stream: "7".into(),
        from: 0,
        to: 1,
        path: 0,
        start: Instant::ZERO,
        stop: None,
        transport,
        workload: workload.into(),
        arrivals: None,
        group: None,
        rows: true,
    }
}

/// What became of a flow over TCP that sent nothing.
pub fn result() -> FlowResult {
    FlowResult {
        id: 0,
        template: 0,
        hosts: (0, 1),
        label: "g".into(),
        transport: "tcp",
        congestion: "reno".into(),
        start: Instant::ZERO,
        end: Instant::ZERO,
        handshake: None,
        first_byte: None,
        completion: None,
        delivered: Bytes::ZERO,
        counters: SenderCounters::default(),
        ce_marks: 0,
        rtt: Quantiles::new(),
        inside: Counts::default(),
        one_way: false,
        corrupted: false,
        failure: None,
        wire: WireBytes::default(),
        application: None,
        multipath: None,
    }
}

/// A QUIC stack that does what a test tells it, and shows what was done with it.
#[derive(Clone, Debug, Default)]
pub struct Told(Arc<Mutex<Script>>);

/// What a stack is told to return, and what it was given.
#[derive(Debug, Default)]
pub struct Script {
    pub events: VecDeque<Event>,
    pub notices: VecDeque<Notice>,
    pub chunks: VecDeque<Chunk>,
    pub snapshot: Snapshot,
    pub paths: Vec<PathSnapshot>,
    pub rtt: Vec<(u32, Duration)>,
    /// Streams that may be opened.
    pub streams: u64,
    /// Bytes that may be written to each stream.
    pub room: u64,
    /// Everything written has been acknowledged.
    pub acknowledged: bool,
    pub over: bool,
    opened: u64,
    pub written: BTreeMap<StreamId, Vec<u8>>,
    pub finished: Vec<StreamId>,
    pub reset: Vec<StreamId>,
    pub stopped: Vec<StreamId>,
    pub urgency: Vec<(StreamId, u8)>,
    /// Answers to datagrams that are offered; `Taken` after the last.
    pub offers: VecDeque<Offered>,
    pub sent: Vec<bytes::Bytes>,
    pub frames: VecDeque<bytes::Bytes>,
    pub key_updates: Vec<Instant>,
    pub closed: bool,
}

impl Told {
    /// The script, to be changed and looked at.
    pub fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap()
    }

    /// The sizes of what was written, by stream.
    pub fn written(&self) -> Vec<(StreamId, usize)> {
        let written = &self.script().written;
        written.iter().map(|(s, data)| (*s, data.len())).collect()
    }
}

impl Stack for Told {
    fn handle(&mut self, _: Instant, _: BytesMut, _: Ecn, _: SocketAddr, _: SocketAddr) {}
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
    fn poll_transmit(&mut self, _: Instant) -> Option<Datagram> {
        None
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.script().events.pop_front()
    }
    fn poll_read(&mut self) -> Option<Chunk> {
        self.script().chunks.pop_front()
    }
    fn open(&mut self, _: Instant, direction: Direction) -> Option<StreamId> {
        let mut script = self.script();
        let kind = match direction {
            Direction::Bidirectional => 0,
            Direction::Unidirectional => 2,
        };
        let stream = 4 * script.opened + kind;
        script.streams = script.streams.checked_sub(1)?;
        script.opened += 1;
        Some(stream)
    }
    fn write(&mut self, _: Instant, stream: StreamId, data: bytes::Bytes) -> usize {
        let room = self.write_room(stream) as usize;
        let taken = data.len().min(room);
        let written = &mut self.script().written;
        written.entry(stream).or_default().extend(&data[..taken]);
        taken
    }
    fn write_room(&mut self, stream: StreamId) -> u64 {
        let script = self.script();
        script.room - script.written.get(&stream).map_or(0, |w| w.len() as u64)
    }
    fn finish(&mut self, _: Instant, stream: StreamId) {
        self.script().finished.push(stream);
    }
    fn reset(&mut self, _: Instant, stream: StreamId) {
        self.script().reset.push(stream);
    }
    fn stop(&mut self, _: Instant, stream: StreamId) {
        self.script().stopped.push(stream);
    }
    fn set_urgency(&mut self, _: Instant, stream: StreamId, urgency: u8) {
        self.script().urgency.push((stream, urgency));
    }
    fn send_datagram(&mut self, _: Instant, data: &bytes::Bytes) -> Offered {
        let mut script = self.script();
        let answer = script.offers.pop_front().unwrap_or(Offered::Taken);
        if answer == Offered::Taken {
            script.sent.push(data.clone());
        }
        answer
    }
    fn poll_datagram(&mut self) -> Option<bytes::Bytes> {
        self.script().frames.pop_front()
    }
    fn update_keys(&mut self, now: Instant) -> bool {
        self.script().key_updates.push(now);
        true
    }
    fn close(&mut self, _: Instant) {
        self.script().closed = true;
    }
    fn all_acknowledged(&mut self) -> bool {
        self.script().acknowledged
    }
    fn is_over(&self) -> bool {
        self.script().over
    }
    fn migrate(&mut self, _: Instant, _: SocketAddr) {}
    fn stats(&mut self) -> Stats {
        Stats::default()
    }
    fn snapshot(&mut self) -> Snapshot {
        self.script().snapshot
    }
    fn take_rtt_sample(&mut self) -> Option<Duration> {
        None
    }
    fn record_notices(&mut self) {}
    fn poll_notice(&mut self) -> Option<Notice> {
        self.script().notices.pop_front()
    }
    fn poll_secret(&mut self) -> Option<String> {
        None
    }
    fn paths(&mut self) -> Vec<PathSnapshot> {
        self.script().paths.clone()
    }
    fn take_path_rtt_samples(&mut self) -> Vec<(u32, Duration)> {
        take(&mut self.script().rtt)
    }
}

impl Implementation for Told {
    fn name(&self) -> &str {
        "told"
    }
    fn check(&self, _: &Config, _: Uses, _: bool) -> Result<(), Error> {
        Ok(())
    }
    fn end(&self, _: &Realm, _: &Config, _: Init, _: bool) -> Result<Box<dyn Stack>, Error> {
        Ok(Box::new(self.clone()))
    }
}

/// QUIC, with stacks that do what they are told.
pub fn quic() -> QuicSpec {
    QuicSpec {
        config: Config::default(),
        stacks: [Arc::new(Told::default()), Arc::new(Told::default())],
        congestion_name: "reno".into(),
    }
}
