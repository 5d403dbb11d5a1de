//! A connection at one end: its packets and its metrics.

mod conclusion;

use std::collections::BTreeMap;

use gargalo_trace::Quantiles;
use gargalo_units::{Duration, Rate};
use serde_json::Value;

use super::clock::Clock;
use super::event::{self, Event};
use super::packet::{self, Packet};
use super::samples::{Metrics, Sample, Samples};
use super::words::{self, Space};
use crate::streams::{Part, Streams};

/// Most packets whose streams are remembered until they are acknowledged.
const MOST_UNACKED: usize = 1 << 17;
/// Most events.
const MOST_EVENTS: usize = 1 << 18;
/// Round trips from here on are those of writers that have measured none.
const LONGEST_NS: i64 = 86_400_000_000_000;
/// What is assumed of a path without a measurement.
const INITIAL_RTT_NS: i64 = 333_000_000;
/// Sizes from here on are those of writers whose threshold is infinite.
const INFINITE: u64 = 1 << 50;

/// A connection.
#[derive(Default)]
pub struct Connection {
    first_ns: i64,
    last_ns: i64,
    /// A connection ID, if there is no better name.
    cid: Option<String>,
    /// That of the server in the client's first packet, which both ends know.
    first_cid: Option<String>,
    first_sent_ns: Option<i64>,
    first_received_ns: Option<i64>,
    local: Option<String>,
    remote: Option<String>,
    congestion: String,
    handshake_ns: Option<i64>,
    reset: bool,
    /// The first path that is named, and whether there are others.
    path: Option<u64>,
    has_paths: bool,
    sent: Sent,
    received: Received,
    told: Told,
    metrics: Metrics,
    samples: Samples,
    rtt: Quantiles,
    /// As quinn had them before May 2026: what it assumes at first tells.
    are_rtts_seconds: bool,
    min_rtt: Option<Duration>,
    events: Vec<(i64, &'static str, u64)>,
    lost_packets: u64,
    timeouts: u64,
    episodes: u64,
    unused: u64,
}

/// What of a connection the trace tells at all.
#[derive(Default)]
struct Told {
    /// Losses, or anything else of recovery.
    recovery: bool,
    states: bool,
    timers: bool,
    /// The last count of probe timeouts.
    pto_count: Option<u64>,
}

/// What was sent.
#[derive(Default)]
struct Sent {
    packets: u64,
    eliciting: u64,
    /// Packets of which the frames are not told.
    without_frames: u64,
    packet_bytes: u64,
    stream_bytes: u64,
    repeating: u64,
    streams: Streams,
    /// Whether a frame had no length.
    is_incomplete: bool,
    /// Packets with stream data in the space of application data.
    unacked: BTreeMap<u64, Vec<Part>>,
    acked: Streams,
    any_acks: bool,
    first_data_ns: Option<i64>,
    last_acked_ns: Option<i64>,
    /// Marks that the receiver has counted in each space.
    marks: Option<[u64; 3]>,
    echoes: u64,
}

/// What was received.
#[derive(Default)]
struct Received {
    packets: u64,
    packet_bytes: u64,
    streams: Streams,
    is_incomplete: bool,
    first_data_ns: Option<i64>,
    last_data_ns: Option<i64>,
}

impl Connection {
    /// One whose first event is at this time.
    pub fn new(time_ns: i64) -> Self {
        Self {
            first_ns: time_ns,
            last_ns: time_ns,
            ..Self::default()
        }
    }

    /// An event.
    pub fn on_event(&mut self, time: i64, event: &Event<'_>, clock: &Clock) {
        self.last_ns = self.last_ns.max(time);
        let data = event.data;
        let path = event.path.or_else(|| event::integer(&data["path_id"]));
        let path = path.or_else(|| event::integer(&data["header"]["path_id"]));
        self.has_paths |= path.is_some_and(|p| *self.path.get_or_insert(p) != p);
        match event.name.as_str() {
            "packet_sent" => self.on_sent(time, data),
            "packet_received" => self.on_received(time, data),
            "packet_lost" => self.on_lost(time, 1),
            "packets_lost" => {
                self.on_lost(time, event::integer(&data["lost_packets"]).unwrap_or(1));
            }
            "metrics_updated"
            | "recovery_metrics_updated"
            | "metric_update"
            | "congestion_metric_update" => self.on_metrics(time, data, clock),
            "congestion_state_updated" => self.on_congestion_state(time, data),
            "loss_timer_updated" | "loss_alarm" => self.on_timer(time, &event.name, data),
            "connection_state_updated" => self.on_state(time, data),
            "connection_started" | "connection_new" => self.on_started(data),
            "connection_closed" => {
                let trigger = data["trigger"].as_str().map(words::plain);
                self.reset |= trigger.as_deref() == Some("statelessreset");
            }
            "parameters_set" | "recovery_parameters_set" => {
                const NAMES: [&str; 3] = [
                    "congestion_control",
                    "congestion_control_algorithm",
                    "cc_algorithm",
                ];
                if let Some(name) = event::first(data, &NAMES).as_str() {
                    name.clone_into(&mut self.congestion);
                }
            }
            _ => (),
        }
    }

    fn on_sent(&mut self, time: i64, data: &Value) {
        let Some(packet) = Packet::read(data) else {
            return;
        };
        self.first_sent_ns.get_or_insert(time);
        if self.first_received_ns.is_none() {
            self.first_cid = self.first_cid.take().or_else(|| packet.cid.clone());
        }
        self.cid = self.cid.take().or(packet.cid);
        let sent = &mut self.sent;
        sent.packets += 1;
        sent.packet_bytes = sent.packet_bytes.saturating_add(packet.length);
        let Some(frames) = packet.frames else {
            sent.without_frames += 1;
            return;
        };
        let (mut parts, mut eliciting) = (Vec::new(), false);
        for frame in frames {
            let kind = packet::kind_of(frame);
            let is_silent = packet::is_ack(&kind) || kind == "padding" || kind.ends_with("close");
            eliciting |= !is_silent;
            if kind == "stream" {
                match packet::part_of(frame) {
                    Some(part) => parts.push(part),
                    None => sent.is_incomplete = true,
                }
            }
        }
        sent.eliciting += u64::from(eliciting);
        let mut repeats = false;
        for part in &parts {
            repeats |= sent.streams.add(*part) < part.length;
            sent.stream_bytes = sent.stream_bytes.saturating_add(part.length);
        }
        sent.repeating += u64::from(repeats);
        if parts.is_empty() {
            return;
        }
        sent.first_data_ns.get_or_insert(time);
        match packet.number.filter(|_| packet.space == Space::Application) {
            Some(number) => _ = sent.unacked.insert(number, parts),
            None => sent.is_incomplete = true,
        }
        if sent.unacked.len() > MOST_UNACKED {
            // The oldest: lost for long.
            sent.unacked.pop_first();
        }
    }

    fn on_received(&mut self, time: i64, data: &Value) {
        let Some(packet) = Packet::read(data) else {
            return;
        };
        self.first_received_ns.get_or_insert(time);
        if self.first_sent_ns.is_none() {
            self.first_cid = self.first_cid.take().or(packet.cid);
        }
        self.received.packets += 1;
        self.received.packet_bytes = self.received.packet_bytes.saturating_add(packet.length);
        let before = (self.sent.acked.bytes(), self.received.streams.bytes());
        for frame in packet.frames.unwrap_or_default() {
            let kind = packet::kind_of(frame);
            match kind.as_str() {
                // It is of one of several paths, each with numbers of its own.
                _ if packet::is_ack(&kind) && !kind.starts_with("ack") => self.has_paths = true,
                _ if packet::is_ack(&kind) => self.on_ack(time, packet.space, frame),
                "stream" => match packet::part_of(frame) {
                    Some(part) => {
                        let received = &mut self.received;
                        if received.streams.add(part) > 0 {
                            received.first_data_ns.get_or_insert(time);
                            received.last_data_ns = Some(time);
                        }
                    }
                    None => self.received.is_incomplete = true,
                },
                _ => (),
            }
        }
        if before != (self.sent.acked.bytes(), self.received.streams.bytes())
            && self.samples.is_due(time)
        {
            self.sample(time);
        }
    }

    fn on_ack(&mut self, time: i64, space: Space, frame: &Value) {
        self.on_marks(time, space, frame);
        if space != Space::Application {
            return;
        }
        let sent = &mut self.sent;
        sent.any_acks = true;
        for range in event::array(&frame["acked_ranges"]) {
            // A single packet may be alone, with or without a list around it.
            let from = event::integer(range.get(0).unwrap_or(range));
            let to = range.get(1).map_or(from, event::integer);
            let (Some(from), Some(to)) = (from, to) else {
                continue;
            };
            while from <= to
                && let Some((&number, _)) = sent.unacked.range(from..=to).next()
                && let Some(parts) = sent.unacked.remove(&number)
            {
                for part in parts {
                    if sent.acked.add(part) > 0 {
                        sent.last_acked_ns = Some(time);
                    }
                }
            }
        }
    }

    fn on_marks(&mut self, time: i64, space: Space, frame: &Value) {
        let ecn = if frame["ecn"].is_object() {
            &frame["ecn"]
        } else {
            frame
        };
        let Some(now) = event::integer(&ecn["ce"]) else {
            return;
        };
        let marks = &mut self.sent.marks.get_or_insert_default()[space as usize];
        // Acknowledgements may come out of order.
        let new = now.saturating_sub(*marks);
        if new > 0 {
            *marks = now;
            self.sent.echoes += 1;
            self.add_event(time, "ecn", new);
        }
    }

    fn on_lost(&mut self, time: i64, packets: u64) {
        self.told.recovery = true;
        self.lost_packets = self.lost_packets.saturating_add(packets);
        self.add_event(time, "loss", packets);
    }

    fn on_metrics(&mut self, time: i64, data: &Value, clock: &Clock) {
        self.told.recovery = true;
        self.are_rtts_seconds |= self.rtt.min().is_none()
            && ["latest_rtt", "smoothed_rtt", "min_rtt"]
                .iter()
                .all(|name| event::number(&data[*name]).is_some_and(|n| (n - 0.333).abs() < 1e-6));
        let scale = if self.are_rtts_seconds { 1e3 } else { 1.0 };
        let is_measured = self.rtt.min().is_some();
        let span = |name: &str| {
            let nanos = clock.nanos(event::number(&data[name])? * scale);
            // Before there is a measurement some write what is assumed until then (RFC 9002, section 6.2.2).
            if !is_measured && (nanos - INITIAL_RTT_NS).abs() < 1_000 {
                return None;
            }
            (1..LONGEST_NS)
                .contains(&nanos)
                .then(|| Duration::from_nanos(nanos as u64))
        };
        let m = &mut self.metrics;
        let set = |field: &mut Option<u64>, names: &[&str]| {
            if let Some(bytes) = event::integer(event::first(data, names)) {
                *field = Some(bytes).filter(|n| *n < INFINITE);
            }
        };
        set(
            &mut m.congestion_window,
            &["congestion_window", "cwnd", "current_cwnd"],
        );
        set(&mut m.slow_start_threshold, &["ssthresh"]);
        set(&mut m.bytes_in_flight, &["bytes_in_flight"]);
        m.smoothed_rtt = span("smoothed_rtt").or(m.smoothed_rtt);
        if let Some(bps) = event::number(&data["pacing_rate"]) {
            m.pacing_rate = Some(Rate::from_bps_f64(bps)).filter(|r| !r.is_zero());
        }
        if let Some(phase) = data["state"].as_str().and_then(words::phase) {
            m.phase = phase;
        }
        if let Some(rtt) = span("latest_rtt") {
            self.rtt.record(rtt);
        }
        self.min_rtt = span("min_rtt").or(self.min_rtt);
        if let Some(count) = event::integer(&data["pto_count"]) {
            let before = self.told.pto_count.replace(count).unwrap_or(0);
            if count > before && !self.told.timers {
                self.timeouts += 1;
                self.add_event(time, "timeout", 1);
            }
        }
        self.sample(time);
    }

    fn on_congestion_state(&mut self, time: i64, data: &Value) {
        self.told.recovery = true;
        let new = data["new"]
            .as_str()
            .or(data["state"].as_str())
            .unwrap_or_default();
        let (before, phase) = (self.metrics.phase, words::phase(new));
        // Some have numbers instead of words.
        self.told.states |= phase.is_some();
        self.metrics.phase = phase.unwrap_or_default();
        if words::plain(new) == "persistentcongestion" {
            self.add_event(time, "persistent-congestion", 1);
        }
        match (before, self.metrics.phase) {
            ("recovery", "recovery") => (),
            (_, "recovery") => {
                self.episodes += 1;
                self.add_event(time, "recovery", 1);
            }
            ("recovery", _) => self.add_event(time, "recovered", 1),
            _ => (),
        }
        self.sample(time);
    }

    fn on_timer(&mut self, time: i64, name: &str, data: &Value) {
        self.told.recovery = true;
        if !std::mem::replace(&mut self.told.timers, true) {
            // Those that were told by their count are told by their timers from now on.
            self.timeouts = 0;
            self.events.retain(|(_, kind, _)| *kind != "timeout");
        }
        let kind = event::first(data, &["timer_type", "type"])
            .as_str()
            .map(words::plain);
        // The other timer is that of the time threshold (RFC 9002, section 6.1.2).
        let is_probe = !matches!(
            kind.as_deref(),
            Some("ack" | "losstimeout" | "early" | "earlyretransmitorreordering")
        );
        let is_expired = name == "loss_alarm" || data["event_type"].as_str() == Some("expired");
        if is_probe && is_expired {
            self.timeouts += 1;
            self.add_event(time, "timeout", 1);
        }
    }

    fn on_state(&mut self, time: i64, data: &Value) {
        let new = data["new"].as_str().map(words::plain).unwrap_or_default();
        let done = [
            "handshakecomplete",
            "handshakecompleted",
            "handshakeconfirmed",
            "connected",
        ];
        if done.contains(&new.as_str()) {
            self.handshake_ns.get_or_insert(time);
        }
    }

    fn on_started(&mut self, data: &Value) {
        let address = |end: &Value, flat: &str| {
            let found = event::first(end, &["ip_v4", "ip_v6"]).as_str();
            let found = found.or(data[flat].as_str()).filter(|a| !a.is_empty());
            found.map(str::to_owned)
        };
        self.local = address(&data["local"], "src_ip");
        self.remote = address(&data["remote"], "dst_ip");
    }

    fn add_event(&mut self, time: i64, kind: &'static str, count: u64) {
        if let Some(last) = self.events.last_mut()
            && (last.0, last.1) == (time, kind)
        {
            last.2 = last.2.saturating_add(count);
        } else if self.events.len() < MOST_EVENTS {
            self.events.push((time, kind, count));
        } else {
            self.unused += 1;
        }
    }

    fn sample(&mut self, time: i64) {
        self.samples.add(Sample {
            time,
            metrics: self.metrics,
            acked: self.sent.acked.bytes(),
            received: self.received.streams.bytes(),
        });
    }

    /// Whether nothing is told of packets or metrics: events of what is no connection.
    pub fn is_empty(&self) -> bool {
        self.sent.packets + self.received.packets == 0 && self.samples.all.is_empty()
    }

    /// The time of its first event, on the clock of its trace.
    pub fn begun_ns(&self) -> i64 {
        self.first_ns
    }
}
