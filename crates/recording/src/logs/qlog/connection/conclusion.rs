//! What a connection's packets and metrics say together: its flow.

use gargalo_trace::schema::FlowSample;
use gargalo_units::{Bytes, Count, Duration, Instant, Rate, SenderCounters};

use super::super::head::{End, Head};
use super::super::samples::{Metrics, Sample};
use super::Connection;
use crate::logs::Logged;
use crate::logs::ends::{Side, Twin};

impl Connection {
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
        flow.twin = self.twin(head);
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

    /// By what the other end is found.
    fn twin(&self, head: &Head) -> Option<Twin> {
        let side = match head.end {
            _ if head.is_between => return None,
            End::Client => Side::Client,
            End::Server => Side::Server,
            End::Unknown => return None,
        };
        let names = [Some(&head.id), self.first_cid.as_ref()];
        Some(Twin {
            names: names.into_iter().flatten().cloned().collect(),
            side,
            first_sent: self.first_sent_ns.map(|t| self.since(t)),
            first_received: self.first_received_ns.map(|t| self.since(t)),
        })
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
        // Some tell of recovery, but not of losses: then what was sent again was lost before.
        let are_losses_told = self.lost_packets > 0 || sent.repeating == 0 || self.timeouts > 0;
        if self.told.recovery && are_losses_told {
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
        (row.delivered, row.measured) = (Some(bytes), Some(bytes));
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
                delivered: data,
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
