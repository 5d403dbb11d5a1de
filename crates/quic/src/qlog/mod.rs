//! Traces for [qvis](https://qvis.quictools.info): qlog 0.3 (draft-ietf-quic-qlog-main-schema-02 and
//! -quic-events-02) in JSON-SEQ, the newest that it opens, in virtual time.

mod frame;
mod json;

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use gargalo_units::{Duration, Instant, Rate};

use crate::Config;
use crate::config::{INITIAL_RTT, MAX_STREAMS};
use crate::tls::{Clock, lock};
use json::{hex, millis};

pub(crate) use json::string;

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Out,
    In,
}

/// The metrics of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Metrics {
    pub(crate) congestion_window: Option<u64>,
    pub(crate) bytes_in_flight: Option<u64>,
    pub(crate) ssthresh: Option<u64>,
    pub(crate) min_rtt: Option<Duration>,
    pub(crate) smoothed_rtt: Option<Duration>,
    pub(crate) latest_rtt: Option<Duration>,
    pub(crate) rtt_variance: Option<Duration>,
    pub(crate) pacing_rate: Option<Rate>,
    pub(crate) phase: &'static str,
}

impl Metrics {
    /// What differs from before, as fields of JSON, each behind a comma.
    pub(crate) fn changed(&self, before: Self) -> String {
        let mut fields = String::new();
        let bytes = |name: &str, now: Option<u64>, before: Option<u64>, out: &mut String| {
            if let Some(value) = now.filter(|_| now != before) {
                let _ = write!(out, ",\"{name}\":{value}");
            }
        };
        let time =
            |name: &str, now: Option<Duration>, before: Option<Duration>, out: &mut String| {
                if let Some(value) = now.filter(|_| now != before) {
                    let _ = write!(out, ",\"{name}\":");
                    millis(out, value.as_nanos());
                }
            };
        let bps = |r: Option<Rate>| r.map(Rate::as_bps);
        let (now, out) = (self, &mut fields);
        time("min_rtt", now.min_rtt, before.min_rtt, out);
        time("smoothed_rtt", now.smoothed_rtt, before.smoothed_rtt, out);
        time("latest_rtt", now.latest_rtt, before.latest_rtt, out);
        time("rtt_variance", now.rtt_variance, before.rtt_variance, out);
        let (window, flight) = (before.congestion_window, before.bytes_in_flight);
        bytes("congestion_window", now.congestion_window, window, out);
        bytes("bytes_in_flight", now.bytes_in_flight, flight, out);
        bytes("ssthresh", now.ssthresh, before.ssthresh, out);
        bytes(
            "pacing_rate",
            bps(now.pacing_rate),
            bps(before.pacing_rate),
            out,
        );
        fields
    }
}

/// Writes an event as a record of a JSON text sequence.
pub(crate) fn write_event(
    out: &mut String,
    now: Instant,
    name: &str,
    data: impl FnOnce(&mut String),
) {
    out.clear();
    out.push_str("\u{1e}{\"time\":");
    millis(out, now.as_nanos());
    let _ = write!(out, ",\"name\":\"{name}\",\"data\":{{");
    data(out);
    out.push_str("}}\n");
}

/// Writes what a trace begins with; `id` is the connection's, if it is known.
pub(crate) fn write_head(out: &mut String, title: &str, is_client: bool, id: Option<&[u8]>) {
    out.clear();
    out.push_str("\u{1e}{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":");
    string(out, title);
    let side = if is_client { "client" } else { "server" };
    let _ = write!(
        out,
        ",\"trace\":{{\"vantage_point\":{{\"name\":\"gargalo\",\"type\":\"{side}\"}},\"title\":"
    );
    string(out, title);
    out.push_str(",\"common_fields\":{");
    if let Some(id) = id {
        out.push_str("\"ODCID\":\"");
        hex(out, id);
        out.push_str("\",");
    }
    out.push_str(
        "\"protocol_type\":[\"QUIC\"],\"time_format\":\"relative\",\"reference_time\":0}}}\n",
    );
}

/// Writes the fields of a connection that begins.
pub(crate) fn write_addresses(out: &mut String, local: SocketAddr, remote: SocketAddr) {
    let version = if local.is_ipv4() { "ipv4" } else { "ipv6" };
    let _ = write!(
        out,
        "\"ip_version\":\"{version}\",\"src_ip\":\"{}\",\"dst_ip\":\"{}\",\"protocol\":\"QUIC\",\
         \"src_port\":{},\"dst_port\":{}",
        local.ip(),
        remote.ip(),
        local.port(),
        remote.port()
    );
}

/// The header of a trace.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) title: String,
    pub(crate) is_client: bool,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) config: Config,
}

/// The trace of one connection.
pub(crate) struct Trace {
    clock: Arc<Clock>,
    state: Mutex<State>,
}

struct State {
    writer: Box<dyn io::Write + Send + Sync>,
    /// Kept until the first packet, which has the connection's ID.
    head: Option<Head>,
    metrics: Metrics,
    /// Packets with long headers that were sent: number and type.
    long: Vec<(u64, &'static str)>,
    record: String,
    failure: Option<String>,
}

impl Trace {
    pub(crate) fn new(
        writer: Box<dyn io::Write + Send + Sync>,
        head: Head,
        clock: Arc<Clock>,
    ) -> Self {
        Self {
            clock,
            state: Mutex::new(State {
                writer,
                head: Some(head),
                metrics: Metrics::default(),
                long: Vec::new(),
                record: String::new(),
                failure: None,
            }),
        }
    }

    /// Writes an event; before the first packet there is no trace yet.
    fn event(&self, state: &mut State, name: &str, data: impl FnOnce(&mut String)) {
        if state.head.is_some() || state.failure.is_some() {
            return;
        }
        write_event(&mut state.record, self.clock.now(), name, data);
        state.put();
    }

    /// A packet is sent or was received; `header` and `payload` are not encrypted.
    pub(crate) fn packet(
        &self,
        direction: Direction,
        number: u64,
        header: &[u8],
        payload: &[u8],
        size: usize,
    ) {
        let Some(header) = frame::Header::read(header) else {
            return;
        };
        let state = &mut *lock(&self.state);
        if let Some(head) = state.head.take() {
            self.begin(state, &head, &header);
        }
        if direction == Direction::Out && header.kind != "1RTT" {
            state.long.push((number, header.kind));
        }
        let name = match direction {
            Direction::Out => "transport:packet_sent",
            Direction::In => "transport:packet_received",
        };
        self.event(state, name, |out| {
            let _ = write!(
                out,
                "\"header\":{{\"packet_type\":\"{}\",\"packet_number\":{number},\"dcid\":\"",
                header.kind
            );
            hex(out, header.dcid);
            if let Some(scid) = header.scid {
                out.push_str("\",\"scid\":\"");
                hex(out, scid);
            }
            let _ = write!(out, "\"}},\"raw\":{{\"length\":{size}}},\"frames\":[");
            frame::write_all(out, payload);
            out.push(']');
        });
    }

    /// The first records.
    fn begin(&self, state: &mut State, head: &Head, first: &frame::Header<'_>) {
        let id = Some(first.dcid);
        write_head(&mut state.record, &head.title, head.is_client, id);
        state.put();
        let (local, remote, c) = (head.local, head.remote, &head.config);
        self.event(state, "connectivity:connection_started", |out| {
            write_addresses(out, local, remote);
        });
        self.event(state, "transport:parameters_set", |out| {
            let _ = write!(
                out,
                "\"owner\":\"local\",\"max_idle_timeout\":{},\"initial_max_data\":{},\
                 \"initial_max_stream_data_bidi_local\":{w},\"initial_max_stream_data_bidi_remote\":{w},\
                 \"initial_max_streams_bidi\":{}",
                c.idle_timeout.as_millis(),
                c.connection_window,
                MAX_STREAMS,
                w = c.stream_window,
            );
        });
        self.event(state, "recovery:parameters_set", |out| {
            let _ = write!(
                out,
                "\"reordering_threshold\":{},\"time_threshold\":{},\"timer_granularity\":1,\
                 \"initial_rtt\":",
                c.packet_threshold, c.time_threshold as f32
            );
            millis(out, INITIAL_RTT.as_nanos());
            let _ = write!(
                out,
                ",\"max_datagram_size\":{size},\"initial_congestion_window\":{},\
                 \"minimum_congestion_window\":{},\"persistent_congestion_threshold\":3",
                c.initial_window().get(),
                2 * u64::from(c.datagram_size),
                size = c.datagram_size,
            );
        });
    }

    /// Packet `number` was declared lost.
    pub(crate) fn packet_lost(&self, number: u64) {
        let state = &mut *lock(&self.state);
        // Packet numbers of a handshake are reused by later packets, which are lost later.
        let kind = match state.long.iter().position(|(n, _)| *n == number) {
            Some(i) => state.long.remove(i).1,
            None => "1RTT",
        };
        self.event(state, "recovery:packet_lost", |out| {
            let _ = write!(
                out,
                "\"header\":{{\"packet_type\":\"{kind}\",\"packet_number\":{number}}}"
            );
        });
    }

    /// The metrics of the sender have changed.
    pub(crate) fn metrics(&self, now: Metrics) {
        let state = &mut *lock(&self.state);
        let before = state.metrics;
        if now == before || state.head.is_some() {
            return;
        }
        state.metrics = now;
        if now.phase != before.phase {
            self.event(state, "recovery:congestion_state_updated", |out| {
                if !before.phase.is_empty() {
                    let _ = write!(out, "\"old\":\"{}\",", before.phase);
                }
                let _ = write!(out, "\"new\":\"{}\"", now.phase);
            });
        }
        let fields = now.changed(before);
        if let Some(fields) = fields.strip_prefix(',') {
            self.event(state, "recovery:metrics_updated", |out| {
                out.push_str(fields)
            });
        }
    }

    /// The state of the connection has changed.
    pub(crate) fn state(&self, new: &str) {
        self.event(
            &mut lock(&self.state),
            "connectivity:connection_state_updated",
            |out| {
                let _ = write!(out, "\"new\":\"{new}\"");
            },
        );
    }

    /// Records an expired probe timeout.
    pub(crate) fn probe_timeout(&self) {
        self.event(
            &mut lock(&self.state),
            "recovery:loss_timer_updated",
            |out| out.push_str("\"timer_type\":\"pto\",\"event_type\":\"expired\""),
        );
    }

    /// The connection has ended; `failure` says why if not in order.
    pub(crate) fn closed(&self, locally: bool, failure: Option<&str>) {
        let state = &mut *lock(&self.state);
        self.event(state, "connectivity:connection_closed", |out| {
            let owner = if locally { "local" } else { "remote" };
            let trigger = match failure {
                None => "clean",
                Some("timed out") => "idle_timeout",
                Some(_) => "error",
            };
            let _ = write!(out, "\"owner\":\"{owner}\",\"trigger\":\"{trigger}\"");
            if let Some(why) = failure {
                out.push_str(",\"reason\":");
                string(out, why);
            }
        });
        if let Err(e) = state.writer.flush() {
            state.failure.get_or_insert(e.to_string());
        }
    }

    /// The error that stopped the trace, once.
    pub(crate) fn take_failure(&self) -> Option<String> {
        let state = &mut *lock(&self.state);
        state
            .failure
            .as_mut()
            .map(std::mem::take)
            .filter(|f| !f.is_empty())
    }
}

impl State {
    fn put(&mut self) {
        if let Err(e) = self.writer.write_all(self.record.as_bytes()) {
            self.failure = Some(e.to_string());
        }
    }
}
