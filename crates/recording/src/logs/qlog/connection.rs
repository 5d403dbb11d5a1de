//! A connection at one end: its packets, its metrics, and what they say together.

use std::collections::BTreeMap;

use gargalo_trace::Quantiles;
use gargalo_trace::schema::FlowSample;
use gargalo_units::{Bytes, Count, Duration, Instant, Rate, SenderCounters};
use serde_json::Value;

use super::clock::Clock;
use super::event::{self, Event};
use super::streams::{Part, Streams};
use super::trace::{End, Head};
use super::words::{self, Space};
use crate::logs::Logged;

/// Most packets whose streams are remembered until they are acknowledged.
const MOST_UNACKED: usize = 1 << 17;
/// Most samples; beyond, every other one is left out.
const MOST_SAMPLES: usize = 1 << 16;
/// Most events.
const MOST_EVENTS: usize = 1 << 18;
/// Time between samples where only packets are told.
const SAMPLE_EVERY_NS: i64 = 10_000_000;
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

/// Metrics of the sender; each update has only what has changed.
#[derive(Clone, Copy, Default)]
struct Metrics {
    congestion_window: Option<u64>,
    slow_start_threshold: Option<u64>,
    bytes_in_flight: Option<u64>,
    smoothed_rtt: Option<Duration>,
    pacing_rate: Option<Rate>,
    phase: &'static str,
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
            "connection_started" => self.on_started(data),
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
            let kind = kind_of(frame);
            let is_silent = is_ack(&kind) || kind == "padding" || kind.ends_with("close");
            eliciting |= !is_silent;
            if kind == "stream" {
                match part_of(frame) {
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
        self.received.packets += 1;
        self.received.packet_bytes = self.received.packet_bytes.saturating_add(packet.length);
        let before = (self.sent.acked.bytes(), self.received.streams.bytes());
        for frame in packet.frames.unwrap_or_default() {
            let kind = kind_of(frame);
            match kind.as_str() {
                // It is of one of several paths, each with numbers of its own.
                _ if is_ack(&kind) && !kind.starts_with("ack") => self.has_paths = true,
                _ if is_ack(&kind) => self.on_ack(time, packet.space, frame),
                "stream" => match part_of(frame) {
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

    /// What is known of it, with times since its first event, and how many of its events were too many.
    pub fn finish(mut self, head: &Head) -> (Logged, u64) {
        if self.has_paths {
            // Numbers of packets and metrics are those of each path.
            self.sent.is_incomplete = true;
            self.samples
                .all
                .iter_mut()
                .for_each(|s| s.metrics = Metrics::default());
            self.metrics = Metrics::default();
        }
        if self.sent.streams.bytes().max(self.received.streams.bytes()) > 0 {
            self.sample(self.last_ns);
        }
        let is_sender = self.is_sender();
        let (local, remote) = match head.end {
            End::Client => ("client", "server"),
            End::Server => ("server", "client"),
            End::Unknown => ("local", "remote"),
        };
        let local = self.local.take().unwrap_or_else(|| local.to_owned());
        let remote = self.remote.take().unwrap_or_else(|| remote.to_owned());
        let mut flow = Logged {
            label: self.cid.take().unwrap_or_else(|| "quic".to_owned()),
            congestion: std::mem::take(&mut self.congestion),
            ..Logged::default()
        };
        (flow.from, flow.to) = if is_sender {
            (local, remote)
        } else {
            (remote, local)
        };
        flow.facts.captured_at = match (head.is_between, head.end, is_sender) {
            (true, ..) => Some("between"),
            (_, End::Unknown, _) => None,
            (_, _, true) => Some("sender"),
            (_, _, false) => Some("receiver"),
        };
        flow.facts.reset = self.reset;
        flow.row.transport = "quic";
        flow.row.failure = self.reset.then_some("reset");
        flow.row.counters = SenderCounters::UNKNOWN;
        flow.row.end = self.since(self.last_ns);
        if head.end == End::Client && !head.is_between {
            // With 0-RTT the application writes before the handshake is complete.
            let ready = [self.handshake_ns, self.sent.first_data_ns];
            let ready = self.handshake_ns.and(ready.into_iter().flatten().min());
            flow.row.handshake = ready.map(|t| self.since(t) - Instant::ZERO);
        }
        match is_sender {
            true => self.tell_sent(&mut flow),
            false => self.tell_received(&mut flow),
        }
        flow.samples = self.samples_of(is_sender);
        (flow, self.unused)
    }

    /// Whether most data is sent by this end. Where no data is told it is the end with most bytes in packets, and else
    /// this one, whose metrics are told.
    fn is_sender(&self) -> bool {
        let (sent, received) = (self.sent.streams.bytes(), self.received.streams.bytes());
        match sent.max(received) > 0 {
            true => sent >= received,
            false => self.sent.packet_bytes >= self.received.packet_bytes,
        }
    }

    fn tell_sent(&mut self, flow: &mut Logged) {
        let (sent, row) = (&self.sent, &mut flow.row);
        let are_frames_told = sent.packets > 0 && sent.without_frames == 0;
        if sent.packets > 0 {
            let packets = if are_frames_told {
                sent.eliciting
            } else {
                sent.packets
            };
            row.counters.sent_packets = Count::new(packets);
        }
        let is_data_told = are_frames_told && !sent.is_incomplete && sent.stream_bytes > 0;
        if is_data_told {
            row.counters.sent_bytes = Count::new(sent.stream_bytes);
            row.counters.retransmitted_packets = Count::new(sent.repeating);
        }
        if self.told.recovery {
            row.counters.lost_packets = Count::new(self.lost_packets);
        }
        if self.told.timers || self.told.pto_count.is_some() {
            row.counters.timeouts = Count::new(self.timeouts);
        }
        row.ce_marks = sent
            .marks
            .map(|m| m.iter().fold(0u64, |a, n| a.saturating_add(*n)));
        let is_complete = is_data_told && sent.acked.are_all_of(&sent.streams);
        let acked_at = sent.last_acked_ns;
        let delivered = (is_data_told && sent.any_acks).then(|| sent.acked.bytes());
        self.tell_delivered(delivered, acked_at.filter(|_| is_complete), flow);
        let active = flow.row.end - flow.row.start;
        if is_data_told && !active.is_zero() {
            flow.row.throughput = Some(Rate::from_transfer(
                Bytes::new(self.sent.stream_bytes),
                active,
            ));
        }
        flow.facts.reverse_bytes = self.received.streams.bytes();
        flow.facts.ecn_echoes = self.sent.marks.map(|_| self.sent.echoes);
        flow.facts.loss_episodes = self.told.states.then_some(self.episodes);
        flow.row.set_rtt(&self.rtt);
        flow.row.rtt_min = flow.row.rtt_min.or(self.min_rtt);
        self.tell_round_trips(flow);
        self.events.sort_by_key(|e| e.0);
        let events = std::mem::take(&mut self.events);
        let told = |(time, kind, count): (i64, &'static str, u64)| {
            let detail = match kind {
                "loss" => format!("packets={count}"),
                "ecn" => format!("marks={count}"),
                _ => String::new(),
            };
            (self.since(time), kind, detail)
        };
        flow.events = events.into_iter().map(told).collect();
    }

    fn tell_received(&self, flow: &mut Logged) {
        let received = &self.received;
        let bytes = received.streams.bytes();
        let is_told = !received.is_incomplete && bytes > 0;
        let is_complete = is_told && received.streams.are_all_of(&received.streams);
        let at = received.last_data_ns.filter(|_| is_complete);
        self.tell_delivered(is_told.then_some(bytes), at, flow);
        let first = received.first_data_ns.map(|t| self.since(t));
        flow.row.first_byte = first.map(|t| t - Instant::ZERO);
        flow.facts.reverse_bytes = self.sent.streams.bytes();
        self.tell_round_trips(flow);
    }

    fn tell_delivered(&self, bytes: Option<u64>, completed_ns: Option<i64>, flow: &mut Logged) {
        let row = &mut flow.row;
        if let Some(at) = completed_ns {
            row.end = self.since(at);
            row.completion = Some(row.end - Instant::ZERO);
        }
        let Some(bytes) = bytes.map(Bytes::new) else {
            return;
        };
        (row.delivered, row.measured) = (bytes, bytes);
        let active = row.end - row.start;
        row.goodput = (!active.is_zero()).then(|| Rate::from_transfer(bytes, active));
    }

    /// What round trips say of the path, whichever end has measured them.
    fn tell_round_trips(&self, flow: &mut Logged) {
        let facts = &mut flow.facts;
        let Some(all) = self.rtt.summary() else {
            facts.base_rtt_s = self.min_rtt.map(Duration::as_secs_f64);
            return;
        };
        let above = |rtt: Duration| Some(rtt.saturating_sub(all.min).as_secs_f64());
        facts.base_rtt_s = Some(all.min.as_secs_f64());
        facts.queueing_delay_p50_s = above(all.p50);
        facts.queueing_delay_p95_s = above(all.p95);
    }

    /// Of the receiver only what it knows of the data and the path: its window is for what it sends itself.
    fn samples_of(&mut self, is_sender: bool) -> Vec<FlowSample<'static>> {
        let samples = std::mem::take(&mut self.samples).all;
        let is_told = match is_sender {
            true => self.sent.without_frames == 0 && !self.sent.is_incomplete && self.sent.any_acks,
            false => !self.received.is_incomplete && self.received.streams.bytes() > 0,
        };
        let sample = |s: Sample| {
            let data = if is_sender { s.acked } else { s.received };
            let data = Some(Bytes::new(data)).filter(|_| is_told);
            let found = FlowSample {
                time: self.since(s.time),
                srtt: s.metrics.smoothed_rtt,
                delivered: data.unwrap_or_default(),
                received: data,
                ..FlowSample::default()
            };
            if !is_sender {
                return found;
            }
            FlowSample {
                congestion_window: s.metrics.congestion_window.map(Bytes::new),
                slow_start_threshold: s.metrics.slow_start_threshold.map(Bytes::new),
                bytes_in_flight: s.metrics.bytes_in_flight.map(Bytes::new),
                pacing_rate: s.metrics.pacing_rate,
                phase: s.metrics.phase,
                ..found
            }
        };
        let mut samples: Vec<_> = samples.into_iter().map(sample).collect();
        samples.sort_by_key(|s| s.time);
        samples
    }

    fn since(&self, time_ns: i64) -> Instant {
        Instant::from_nanos(time_ns.saturating_sub(self.first_ns).max(0) as u64)
    }
}

/// What is used of a packet.
struct Packet<'a> {
    space: Space,
    number: Option<u64>,
    length: u64,
    frames: Option<&'a [Value]>,
    cid: Option<String>,
}

impl<'a> Packet<'a> {
    /// Reads one; `None` if it is of a kind without a number, which carries nothing.
    fn read(data: &'a Value) -> Option<Self> {
        let header = &data["header"];
        let kind = event::first(header, &["packet_type", "type"]).as_str();
        let kind = kind.or(event::first(data, &["packet_type", "type"]).as_str());
        let length = event::first(&data["raw"], &["length", "payload_length"]);
        let length = event::integer(length)
            .or_else(|| event::integer(&header["packet_size"]))
            .or_else(|| event::integer(&data["packet_size"]));
        let number = event::integer(&header["packet_number"]);
        Some(Self {
            space: words::space(kind.unwrap_or("1RTT"))?,
            number: number.or_else(|| event::integer(&data["packet_number"])),
            length: length.unwrap_or(0),
            // There is no packet without frames (RFC 9000, section 12.4): an empty list tells nothing.
            frames: data["frames"]
                .as_array()
                .map(Vec::as_slice)
                .filter(|f| !f.is_empty()),
            cid: event::text(&header["dcid"]),
        })
    }
}

/// Whether a frame acknowledges packets: with ECN, with times, or on a path.
fn is_ack(kind: &str) -> bool {
    (kind.starts_with("ack") && kind != "ack_frequency") || ["path_ack", "mp_ack"].contains(&kind)
}

fn kind_of(frame: &Value) -> String {
    let kind = frame["frame_type"].as_str().or(frame["type"].as_str());
    kind.unwrap_or_default().to_ascii_lowercase()
}

/// What a STREAM frame carries; without an offset it is the beginning (RFC 9000, section 19.8).
fn part_of(frame: &Value) -> Option<Part> {
    let length = event::integer(&frame["length"])
        .or_else(|| event::integer(&frame["raw"]["payload_length"]))
        .or_else(|| event::integer(&frame["raw"]["length"]));
    let part = Part {
        stream: event::integer(event::first(frame, &["stream_id", "id"]))?,
        offset: event::integer(&frame["offset"]).unwrap_or(0),
        length: length?,
        is_last: frame["fin"].as_bool() == Some(true),
    };
    // No stream is longer (RFC 9000, section 4.5).
    let end = part.offset.checked_add(part.length)?;
    (end < 1 << 62).then_some(part)
}

/// State at an instant.
#[derive(Clone, Copy)]
struct Sample {
    time: i64,
    metrics: Metrics,
    acked: u64,
    received: u64,
}

/// Samples of bounded number: those with the latest state of each span of time.
#[derive(Default)]
struct Samples {
    all: Vec<Sample>,
    /// Length of such a span.
    span_ns: i64,
    /// When the span of the last sample began.
    begun_ns: i64,
}

impl Samples {
    fn add(&mut self, sample: Sample) {
        match self.all.last_mut() {
            Some(last) if sample.time <= self.begun_ns.saturating_add(self.span_ns) => {
                let time = last.time.max(sample.time);
                *last = Sample { time, ..sample };
            }
            _ => {
                self.begun_ns = sample.time;
                self.all.push(sample);
            }
        }
        if self.all.len() > MOST_SAMPLES {
            let whole = sample.time.saturating_sub(self.all[0].time);
            self.span_ns = self.span_ns.max(whole / (MOST_SAMPLES as i64 / 2));
            std::mem::take(&mut self.all)
                .into_iter()
                .for_each(|s| self.add(s));
        }
    }

    fn is_due(&self, time: i64) -> bool {
        let last = self.all.last().map_or(i64::MIN, |s| s.time);
        time.saturating_sub(last) >= SAMPLE_EVERY_NS
    }
}
