//! Recordings of real traffic: what captures show, as the tables of a run.
//!
//! [`read`] takes files as a stream: packets are looked at one by one, and of a connection is kept what is in flight
//! and what has been concluded. What a capture cannot show is missing in the tables; what could not be read is told in
//! the [`Recording`]'s notes. Nothing here panics on a file, whatever it has.
#![forbid(unsafe_code)]

pub mod capture;
mod crossings;
mod description;
mod error;
mod facts;
mod input;
mod logs;
mod multipath;
mod names;
mod packet;
mod places;
mod quic;
mod rtp;
mod secrets;
mod streams;
mod tables;
mod tcp;
mod udp;

use std::collections::HashMap;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use gargalo_trace::Tables;
use gargalo_units::{Duration, Instant};

pub use error::Error;
pub use facts::{Facts, File, Flow, LeftOut};

use capture::{Content, Frame, Record};
use crossings::Selection;
use input::Input;
use logs::{Link, Log, Logged};
use multipath::{Joined, Multipath};
use names::Names;
use packet::{Packet, Transport, Unused};
use places::Places;
use quic::Identifiers;
use secrets::Secrets;
use tcp::Connection;
use udp::Conversation;

/// Frames between two looks at whether to go on.
const LOOK_EVERY: u64 = 4_096;
/// Most flows of a recording: what a scan of all ports makes is not worth the memory.
const MOST_FLOWS: usize = 1 << 20;

/// What the caller wants.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time between two samples of a flow.
    pub interval: Duration,
    /// Name hosts, ports and files by numbers.
    pub anonymise: bool,
    /// Keep each packet with data of TCP and of decrypted QUIC: some 100 bytes of memory for each.
    pub packets: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(100),
            anonymise: false,
            packets: false,
        }
    }
}

/// What files of captured packets show.
#[derive(Debug)]
pub struct Recording {
    /// Flows, samples and events, as those of a run.
    pub tables: Tables,
    /// What else is known.
    pub facts: Facts,
}

/// Reads captures; `go_on` is told the share of the files that has been read, 0 to 1, and packets so far, and may
/// break.
///
/// Several files are of the same traffic: a connection that two of them show is one flow.
///
/// # Errors
/// When a file cannot be opened or is no capture, or `go_on` breaks.
pub fn read(
    files: &[PathBuf],
    options: &Options,
    go_on: &mut dyn FnMut(f64, u64) -> ControlFlow<()>,
) -> Result<Recording, Error> {
    let mut inputs = Vec::with_capacity(files.len());
    for path in files {
        inputs.push((path, Source::open(path, options.interval)?));
    }
    let begun = inputs.iter().filter_map(|(_, s)| s.begun_ns()).min();
    let all: u64 = inputs.iter().map(|(_, s)| s.size()).sum::<u64>().max(1);
    let mut reading = Reading::new(begun.unwrap_or(0), options.clone());
    for (_, source) in &mut inputs {
        if let Source::Log { log, .. } = source {
            reading.secrets.add(std::mem::take(&mut log.secrets));
        }
    }
    let mut before = 0;
    for (path, source) in inputs {
        let size = source.size();
        let mut told =
            |read: u64, packets: u64| go_on((before + read) as f64 / all as f64, packets);
        match source {
            Source::Capture { .. } => reading.read_capture(path, &mut told)?,
            Source::Log { log, kind, .. } => reading.add_log(path, kind, log),
        }
        before += size;
    }
    Ok(reading.finish())
}

/// The kind of log that begins with these bytes, up to 64 KiB; `None` if it is none.
pub fn kind_of_log(start: &[u8]) -> Option<&'static str> {
    logs::KINDS.iter().find(|k| (k.is)(start)).map(|k| k.name)
}

/// What a file is.
enum Source {
    /// A capture, which is read when it is its turn, and the time of its first packet.
    Capture { begun_ns: Option<u64>, size: u64 },
    /// A log, which has been read.
    Log {
        log: Log,
        kind: &'static str,
        size: u64,
    },
}

impl Source {
    fn open(path: &Path, interval: Duration) -> Result<Self, Error> {
        let size = std::fs::metadata(path).map_or(0, |m| m.len());
        let mut input = Input::open(path)?;
        let start = input.start();
        if capture::is_capture(start) {
            let begun_ns = first_time(input.into_content()).flatten();
            return Ok(Self::Capture { begun_ns, size });
        }
        let path = || path.to_owned();
        let Some(kind) = logs::KINDS.iter().find(|k| (k.is)(start)) else {
            return Err(Error::UnknownKind { path: path() });
        };
        let log = (kind.read)(&mut input.into_content(), interval);
        let log = log.map_err(|source| Error::Io {
            path: path(),
            source,
        })?;
        let kind = kind.name;
        Ok(Self::Log { log, kind, size })
    }

    fn begun_ns(&self) -> Option<u64> {
        match self {
            Self::Capture { begun_ns, .. } => *begun_ns,
            Self::Log { log, .. } => log.begun_ns,
        }
    }

    fn size(&self) -> u64 {
        match self {
            Self::Capture { size, .. } | Self::Log { size, .. } => *size,
        }
    }
}

/// Reads a capture that is in memory; `None` if it is none.
pub fn read_bytes(bytes: &[u8], options: &Options) -> Option<Recording> {
    let begun_ns = first_time(bytes)?;
    let mut reading = Reading::new(begun_ns.unwrap_or(0), options.clone());
    let go_on = &mut |_| ControlFlow::Continue(());
    reading.read_frames(Path::new(""), bytes, go_on).ok()?;
    Some(reading.finish())
}

/// The time of the first packet of a capture, if it has one; `None` if it is no capture.
fn first_time(content: impl Read + Send) -> Option<Option<u64>> {
    let mut time_ns = None;
    capture::records(content, &mut |record| match record {
        Record::Frame(frame) => {
            time_ns = Some(frame.time_ns);
            ControlFlow::Break(())
        }
        Record::Secrets(_) => ControlFlow::Continue(()),
    })?;
    Some(time_ns)
}

const NOWHERE: [SocketAddr; 2] = [SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0); 2];

/// What is known of a flow.
#[derive(Debug)]
enum Known {
    Tcp(Box<Connection>),
    Udp(Box<Conversation>),
    Quic(Box<quic::Connection>),
    Logged(Box<Logged>),
    Multipath(Box<Multipath>),
}

/// The ports of both ends in a fixed order, and whether they are TCP's.
type Key = (SocketAddr, SocketAddr, bool);

struct Reading {
    begun_ns: u64,
    options: Options,
    places: Places,
    flows: Vec<Known>,
    links: Vec<Link>,
    /// The latest flow between two ports.
    latest: HashMap<Key, usize>,
    /// QUIC connections by their connection identifiers, each of an end.
    quic: Identifiers,
    secrets: Secrets,
    /// Which datagrams are remembered by their marks.
    selection: Selection,
    packets: u64,
    end: Instant,
    files: Vec<File>,
    left_out: LeftOut,
}

impl Reading {
    fn new(begun_ns: u64, options: Options) -> Self {
        Self {
            begun_ns,
            options,
            places: Places::default(),
            flows: Vec::new(),
            links: Vec::new(),
            latest: HashMap::new(),
            quic: Identifiers::default(),
            secrets: Secrets::default(),
            selection: Selection::default(),
            packets: 0,
            end: Instant::ZERO,
            files: Vec::new(),
            left_out: LeftOut::default(),
        }
    }

    fn read_capture(
        &mut self,
        path: &Path,
        go_on: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let input = Input::open(path)?;
        let read = input.read_so_far();
        self.read_frames(path, input.into_content(), &mut |packets| {
            go_on(read(), packets)
        })
    }

    /// Reads the frames of a capture; `go_on` is told the packets so far.
    fn read_frames(
        &mut self,
        path: &Path,
        content: impl Read + Send,
        go_on: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.places.begin_file();
        let (mut stopped, mut frames) = (false, 0);
        let ending = capture::records(content, &mut |record| {
            match record {
                Record::Frame(frame) => self.take(frame),
                Record::Secrets(lines) => {
                    let unused = self.secrets.add_lines(&String::from_utf8_lossy(lines));
                    self.left_out.unused_lines += unused;
                    return ControlFlow::Continue(());
                }
            }
            frames += 1;
            if frames % LOOK_EVERY == 0 && go_on(self.packets).is_break() {
                stopped = true;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        if stopped {
            return Err(Error::Stopped);
        }
        let ending = ending.ok_or_else(|| Error::UnknownKind {
            path: path.to_owned(),
        })?;
        self.left_out.unusable += ending.unusable_packets;
        self.files.push(File::new(path, frames, &ending));
        Ok(())
    }

    fn add_log(&mut self, path: &Path, kind: &'static str, log: Log) {
        let later = log.begun_ns.map_or(0, |t| t.saturating_sub(self.begun_ns));
        self.left_out.unused_lines += log.unused;
        self.files.push(File::of_log(path, kind));
        let later = Duration::from_nanos(later);
        for mut link in log.links {
            link.samples.iter_mut().for_each(|s| s.time += later);
            self.end = link
                .samples
                .last()
                .map_or(self.end, |s| self.end.max(s.time));
            self.links.push(link);
        }
        for mut flow in log.flows {
            flow.delay(later);
            self.end = self.end.max(flow.end());
            self.flows.push(Known::Logged(Box::new(flow)));
        }
    }

    fn take(&mut self, frame: &Frame<'_>) {
        let since = Duration::from_nanos(frame.time_ns.saturating_sub(self.begun_ns));
        let place = self.places.of(frame);
        let now = self.places.time(place, Instant::ZERO + since);
        let (bytes, before) = match capture::ip_packet(frame.link_type, frame.bytes) {
            Content::Ip(bytes, before) => (bytes, before as u32),
            Content::Other => {
                self.left_out.other += 1;
                return;
            }
            Content::UnknownLink => {
                self.left_out.unknown_link += 1;
                return;
            }
        };
        match packet::parse(now, place, bytes, frame.length.saturating_sub(before)) {
            Ok(packet) => self.follow(&packet, bytes),
            Err(Unused::OtherProtocol) => self.left_out.other += 1,
            Err(Unused::Fragment) => self.left_out.fragments += 1,
            Err(Unused::Malformed) => self.left_out.malformed += 1,
        }
    }

    /// Follows the flow of a packet, of which these bytes were kept.
    fn follow(&mut self, packet: &Packet, bytes: &[u8]) {
        self.packets += 1;
        self.end = self.end.max(packet.time);
        let is_tcp = matches!(packet.transport, Transport::Tcp(_));
        let (low, high) = (packet.from.min(packet.to), packet.from.max(packet.to));
        let key = (low, high, is_tcp);
        let (kept, length) = match &packet.transport {
            Transport::Udp { payload, kept, .. } => {
                (bytes.get(kept.clone()).unwrap_or_default(), *payload)
            }
            Transport::Tcp(_) => (&[][..], 0),
        };
        let known = self.latest.get(&key).copied();
        let known = known.filter(|i| match (&self.flows[*i], &packet.transport) {
            (Known::Tcp(c), Transport::Tcp(segment)) => !c.is_over(packet, segment),
            (Known::Quic(c), _) => !c.is_over(packet, kept, length as usize),
            (Known::Udp(_), _) => quic::handshake_packet(kept, length as usize).is_none(),
            _ => true,
        });
        let i = match known.or_else(|| self.moved(packet, kept)) {
            Some(i) => i,
            None if self.flows.len() >= MOST_FLOWS => {
                self.left_out.beyond_most_flows += 1;
                return;
            }
            None => {
                self.flows.push(match &packet.transport {
                    Transport::Tcp(segment) => {
                        Known::Tcp(Box::new(Connection::new(packet, segment)))
                    }
                    Transport::Udp { .. } => match quic::handshake_packet(kept, length as usize) {
                        Some(first) => Known::Quic(Box::new(quic::Connection::new(packet, &first))),
                        None => Known::Udp(Box::new(Conversation::new(packet))),
                    },
                });
                self.flows.len() - 1
            }
        };
        if known != Some(i) {
            self.latest.insert(key, i);
        }
        let options = &self.options;
        match (&mut self.flows[i], &packet.transport) {
            (Known::Tcp(c), Transport::Tcp(segment)) => c.on_packet(packet, segment, options),
            (
                Known::Udp(c),
                Transport::Udp {
                    payload,
                    rtp,
                    ident,
                    ..
                },
            ) => {
                let mark = crossings::mark(*ident, *payload, kept, *rtp);
                let marked = (mark, &mut self.selection);
                c.on_packet(packet, (*payload, *rtp), options.interval, marked);
                self.keep_selection();
            }
            (Known::Quic(c), _) => {
                c.on_packet(packet, (kept, length), &self.secrets, options);
                self.quic.add(i, c.fresh_ids());
            }
            // The key says which.
            _ => (),
        }
    }

    /// Forgets a half of the datagrams that are remembered, if they are too many.
    fn keep_selection(&mut self) {
        if !self.selection.is_full() {
            return;
        }
        self.selection.halve();
        for flow in &mut self.flows {
            if let Known::Udp(conversation) = flow {
                conversation.thin(&mut self.selection);
            }
        }
    }

    /// The QUIC connection of a datagram between addresses that it did not have before.
    fn moved(&mut self, packet: &Packet, kept: &[u8]) -> Option<usize> {
        let (i, end) = self.quic.find(kept)?;
        let Some(Known::Quic(connection)) = self.flows.get_mut(i) else {
            return None;
        };
        connection.moves(packet, end);
        Some(i)
    }

    /// Brings together the logs of both ends of a connection.
    fn join_logs(&mut self) {
        let (mut logged, mut others) = (Vec::new(), Vec::new());
        for flow in std::mem::take(&mut self.flows) {
            match flow {
                Known::Logged(flow) => logged.push(*flow),
                other => others.push(other),
            }
        }
        let joined = logs::join(logged).into_iter();
        others.extend(joined.map(|flow| Known::Logged(Box::new(flow))));
        self.flows = others;
    }

    fn finish(mut self) -> Recording {
        for flow in &mut self.flows {
            match flow {
                Known::Tcp(connection) => connection.finish(self.end),
                Known::Quic(connection) => connection.finish(self.end),
                _ => (),
            }
        }
        self.join_logs();
        // In the order of their first packets, whatever the order of the files.
        let by_first = |f: &Known| match f {
            Known::Tcp(c) => (c.first, c.ends),
            Known::Udp(c) => (c.first, c.ends),
            Known::Quic(c) => (c.first, c.ends),
            Known::Multipath(m) => (m.subflows[0].0.first, m.subflows[0].0.ends),
            // In the order of their logs.
            Known::Logged(flow) => (flow.row.start, NOWHERE),
        };
        self.flows.sort_by_key(by_first);
        let (mut connections, mut flows) = (Vec::new(), Vec::new());
        for flow in self.flows {
            match flow {
                Known::Tcp(connection) => connections.push(*connection),
                other => flows.push(other),
            }
        }
        flows.extend(
            multipath::join(connections)
                .into_iter()
                .map(|joined| match joined {
                    Joined::Single(connection) => Known::Tcp(connection),
                    Joined::Multipath(multipath) => Known::Multipath(Box::new(multipath)),
                }),
        );
        flows.sort_by_key(by_first);
        if self.options.anonymise {
            let links = (1..).zip(&mut self.links);
            links.for_each(|(n, link)| link.name = format!("link{n}"));
        }
        let mut names = Names::new(self.options.anonymise);
        let same_clock = |a, b| self.places.same_clock(a, b);
        let passing = tables::Passing {
            span: &|place| self.places.span(place),
            selection: &self.selection,
        };
        let (tables, flows) = tables::of(&flows, &self.links, &mut names, &same_clock, &passing);
        let facts = Facts {
            begun_unix_s: self.begun_ns as f64 / 1e9,
            duration_s: self.end.as_secs_f64(),
            packets: self.packets,
            files: match self.options.anonymise {
                true => (1..)
                    .zip(self.files)
                    .map(|(n, file)| file.anonymous(n))
                    .collect(),
                false => self.files,
            },
            left_out: self.left_out,
            clock: self.places.clock(),
            flows,
        };
        Recording { tables, facts }
    }
}
