//! What a run remembers: samples of flows and links at a fixed interval, and protocol events.

use std::sync::Arc;

use gargalo_link::{Carried, DelayHistogram, DropReason, Link};
use gargalo_tcp as tcp;
use gargalo_units::{Bytes, Duration, Instant, Rate};

use crate::net::Net;
use crate::topology::Topology;
use crate::window::Edge;

/// What is sampled, and how often.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Time between samples; `None` samples nothing.
    pub interval: Option<Duration>,
    /// Sample flows.
    pub flows: bool,
    /// Sample links.
    pub links: bool,
    /// Keep protocol events.
    pub events: bool,
    /// Keep every decision of a Multipath TCP scheduler.
    pub decisions: bool,
    /// Look into congestion controls over TCP.
    pub gauges: bool,
}

/// A flow at an instant.
#[derive(Clone, Copy, Debug)]
pub struct FlowSample {
    /// When.
    pub time: Instant,
    /// Which flow.
    pub flow: u64,
    /// Congestion window of the sending side.
    pub cwnd: Bytes,
    /// Slow-start threshold; `None` while infinite.
    pub ssthresh: Option<Bytes>,
    /// Sent and neither acknowledged nor lost.
    pub in_flight: Bytes,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Pacing rate; `None` if unpaced.
    pub pacing_rate: Option<Rate>,
    /// Latest delivery-rate sample.
    pub delivery_rate: Option<Rate>,
    /// Bytes the receiver's application has got.
    pub delivered: Bytes,
    /// State of the congestion control in one word.
    pub phase: &'static str,
    /// Bytes that wait for others before them, at the receiver of a Multipath TCP connection.
    pub out_of_order: Option<Bytes>,
}

impl FlowSample {
    /// Of a connection over several paths, none of which has been added.
    pub(crate) fn over_paths(time: Instant, flow: u64, delivered: Bytes) -> Self {
        Self {
            time,
            flow,
            cwnd: Bytes::ZERO,
            ssthresh: None,
            in_flight: Bytes::ZERO,
            srtt: None,
            pacing_rate: None,
            delivery_rate: None,
            delivered,
            phase: "",
            out_of_order: None,
        }
    }

    /// Windows and rates add up, the least round-trip time counts, and the first path's phase.
    pub(crate) fn add(&mut self, path: &SubflowSample, pacing_rate: Option<Rate>) {
        if self.phase.is_empty() {
            self.phase = path.phase;
        }
        self.cwnd += path.cwnd;
        self.in_flight += path.in_flight;
        self.srtt = match (self.srtt, path.srtt) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        for (sum, rate) in [
            (&mut self.pacing_rate, pacing_rate),
            (&mut self.delivery_rate, path.delivery_rate),
        ] {
            if let Some(rate) = rate {
                *sum = Some(sum.unwrap_or_default() + rate);
            }
        }
    }
}

/// A subflow at an instant.
#[derive(Clone, Copy, Debug)]
pub struct SubflowSample {
    /// When.
    pub time: Instant,
    /// Of which flow.
    pub flow: u64,
    /// Its number.
    pub subflow: u32,
    /// The link by which its data leaves, by index.
    pub link: usize,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow-start threshold; `None` while infinite.
    pub ssthresh: Option<Bytes>,
    /// Sent and neither acknowledged nor lost.
    pub in_flight: Bytes,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Latest delivery-rate sample.
    pub delivery_rate: Option<Rate>,
    /// Payload bytes sent, repetitions included.
    pub sent: Bytes,
    /// Bytes that reached the peer (over TCP: in order).
    pub delivered: Bytes,
    /// State of the congestion control in one word.
    pub phase: &'static str,
}

/// A link direction at an instant.
#[derive(Clone, Copy, Debug)]
pub struct LinkSample {
    /// When.
    pub time: Instant,
    /// Which direction: twice the link, plus one for down.
    pub direction: u32,
    /// Packets waiting.
    pub queue_packets: u64,
    /// Bytes waiting.
    pub queue_bytes: u64,
    /// Waiting time of a packet that came now.
    pub queue_delay: Duration,
    /// Counters since the start.
    pub sent_bytes: u64,
    /// Packets dropped since the start, for whatever reason.
    pub dropped_packets: u64,
    /// Packets marked since the start.
    pub marked_packets: u64,
    /// Share of the capacity used since the previous sample; `None` if the rate is unlimited.
    pub utilization: Option<f64>,
}

/// Something a protocol did.
#[derive(Clone, Debug)]
pub struct ProtocolEvent {
    /// When.
    pub time: Instant,
    /// Which flow.
    pub flow: u64,
    /// One word.
    pub kind: &'static str,
    /// What else there is to say.
    pub detail: String,
}

/// A quantity inside of a congestion control.
#[derive(Clone, Debug)]
pub struct Gauge {
    /// When.
    pub time: Instant,
    /// Of which flow.
    pub flow: u64,
    /// What made one look: "sample", "phase", kinds of events.
    pub cause: Arc<str>,
    /// State of the congestion control in one word.
    pub phase: &'static str,
    /// Name with the unit at the end.
    pub name: &'static str,
    /// Its value; `None` while there is none.
    pub value: Option<f64>,
}

/// All samples of a run.
#[derive(Debug, Default)]
pub struct Samples {
    /// In the order of time, then of flows.
    pub flows: Vec<FlowSample>,
    /// In the order of time, then of flows and subflows.
    pub subflows: Vec<SubflowSample>,
    /// In the order of time, then of directions.
    pub links: Vec<LinkSample>,
    /// In the order of time.
    pub events: Vec<ProtocolEvent>,
    /// In the order of time.
    pub gauges: Vec<Gauge>,
}

impl Samples {
    /// Memory that they take.
    pub fn bytes(&self) -> u64 {
        let (flows, subflows) = (&self.flows, &self.subflows);
        Self::bytes_of(flows, subflows, &self.links, &self.events, &self.gauges)
    }

    /// Memory that such samples take.
    pub fn bytes_of(
        flows: &[FlowSample],
        subflows: &[SubflowSample],
        links: &[LinkSample],
        events: &[ProtocolEvent],
        gauges: &[Gauge],
    ) -> u64 {
        // Details are texts of their own.
        const DETAIL: u64 = 64;
        let sizes = size_of_val(flows) + size_of_val(subflows) + size_of_val(links);
        let more = size_of_val(events) + size_of_val(gauges);
        (sizes + more) as u64 + events.len() as u64 * DETAIL
    }
}

/// What one direction of a link carried.
#[derive(Clone, Debug)]
pub struct LinkResult {
    /// The link's name.
    pub name: Arc<str>,
    /// "up" or "down".
    pub direction: &'static str,
    /// Packets that came to the link.
    pub offered_packets: u64,
    /// Copies that it made of them.
    pub duplicated_packets: u64,
    /// Packets that still wait.
    pub queued_packets: u64,
    /// Packets transmitted.
    pub sent_packets: u64,
    /// Their bytes, IP headers included.
    pub sent_bytes: u64,
    /// Dropped because the queue was full.
    pub dropped_queue_full: u64,
    /// Dropped by the queueing discipline.
    pub dropped_aqm: u64,
    /// Lost as the link's loss model wanted.
    pub lost: u64,
    /// Larger than the MTU.
    pub too_big: u64,
    /// Marked congestion experienced.
    pub marked_packets: u64,
    /// Average share of the capacity used in the measured window; `None` if the rate is unlimited or no
    /// time was measured.
    pub utilization: Option<f64>,
    /// What the capacity was on average in that window; `None` likewise.
    pub capacity: Option<Rate>,
    /// The bytes that the capacity makes over the whole run; `None` if unlimited.
    pub capacity_bytes: Option<Bytes>,
    /// Queueing delay of every packet sent in that window.
    pub queue_delay: DelayHistogram,
}

/// What a link direction had carried at the edges of the measured window that have passed.
#[derive(Clone, Debug, Default)]
pub struct LinkMarks {
    from: Carried,
    until: Option<(Carried, DelayHistogram)>,
}

impl LinkMarks {
    /// An edge passes at `at`. Queueing delays begin anew.
    pub fn mark<P: Copy>(&mut self, edge: Edge, link: &mut Link<P>, at: Instant) {
        let carried = link.carried(at);
        let delays = link.take_queue_delays();
        match edge {
            Edge::From => self.from = carried,
            Edge::Until => self.until = Some((carried, delays)),
        }
    }
}

impl LinkResult {
    /// What `link` has carried until `now`; `window` is what was measured of a window that was asked for.
    pub fn of<P: Copy>(
        name: &Arc<str>,
        direction: &'static str,
        link: &mut Link<P>,
        now: Instant,
        (marks, window): (&LinkMarks, Option<(Instant, Instant)>),
    ) -> Self {
        let (sample, carried) = (link.sample(now), link.carried(now));
        let (from, until) = window.unwrap_or((Instant::ZERO, now));
        let measured = until.saturating_since(from);
        let capacity = link
            .capacity(from, until)
            .filter(|_| window.is_none() || !measured.is_zero());
        let stats = link.stats();
        let (carried, queue_delay) = match &marks.until {
            Some((carried, delays)) => (*carried, delays),
            None => (carried, &stats.queue_delay),
        };
        Self {
            name: Arc::clone(name),
            direction,
            offered_packets: stats.offered_packets,
            duplicated_packets: stats.duplicated_packets,
            queued_packets: sample.queue_packets,
            sent_packets: sample.sent_packets,
            sent_bytes: sample.sent_bytes,
            dropped_queue_full: stats.dropped(DropReason::QueueFull),
            dropped_aqm: stats.dropped(DropReason::Aqm),
            lost: stats.dropped(DropReason::Loss),
            too_big: stats.dropped(DropReason::TooBig),
            marked_packets: sample.marked_packets,
            utilization: capacity.and(link.utilization(marks.from, carried)),
            capacity: capacity.map(|c| c / measured),
            capacity_bytes: link.capacity(Instant::ZERO, now),
            queue_delay: queue_delay.clone(),
        }
    }
}

/// Samples one direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkSampler {
    direction: u32,
    /// At the last sample.
    before: Carried,
}

impl LinkSampler {
    /// Before the first sample; `direction` is twice the link, plus one for down.
    pub fn new(direction: u32) -> Self {
        Self {
            direction,
            before: Carried::default(),
        }
    }

    /// The next sample.
    pub fn sample<P: Copy>(&mut self, link: &mut Link<P>, now: Instant) -> LinkSample {
        let s = link.sample(now);
        let carried = link.carried(now);
        let before = std::mem::replace(&mut self.before, carried);
        LinkSample {
            time: now,
            direction: self.direction,
            queue_packets: s.queue_packets,
            queue_bytes: s.queue_bytes,
            queue_delay: s.queue_delay,
            sent_bytes: s.sent_bytes,
            dropped_packets: s.dropped_packets,
            marked_packets: s.marked_packets,
            utilization: link.utilization(before, carried),
        }
    }
}

#[derive(Debug)]
struct Direction {
    name: Arc<str>,
    direction: &'static str,
    sampler: LinkSampler,
    marks: LinkMarks,
}

/// Collects samples while a world runs.
#[derive(Debug)]
pub(crate) struct Recorder {
    recording: Recording,
    directions: Vec<Direction>,
    samples: Samples,
}

impl Recorder {
    pub(crate) fn new(recording: Recording, topology: &Topology) -> Self {
        let names = topology.links.iter().flat_map(|l| {
            let name: Arc<str> = l.name.as_str().into();
            ["up", "down"].map(|direction| (Arc::clone(&name), direction))
        });
        let directions = names.enumerate().map(|(i, (name, direction))| Direction {
            name,
            direction,
            sampler: LinkSampler::new(i as u32),
            marks: LinkMarks::default(),
        });
        let directions = directions.collect();
        Self {
            recording,
            directions,
            samples: Samples::default(),
        }
    }

    /// Time between samples, if anything is to be sampled.
    pub(crate) fn interval(&self) -> Option<Duration> {
        let r = &self.recording;
        r.interval.filter(|i| !i.is_zero() && (r.flows || r.links))
    }

    pub(crate) fn wants_flows(&self) -> bool {
        self.recording.flows
    }

    #[inline]
    pub(crate) fn wants_events(&self) -> bool {
        self.recording.events
    }

    #[inline]
    pub(crate) fn wants_decisions(&self) -> bool {
        self.recording.decisions
    }

    #[inline]
    pub(crate) fn wants_gauges(&self) -> bool {
        self.recording.gauges
    }

    /// What a sender's congestion control has inside, and the sender beside it.
    pub(crate) fn gauges(&mut self, now: Instant, flow: u64, cause: &str, sender: &tcp::Endpoint) {
        let s = sender.snapshot(now);
        if s.cwnd.is_zero() {
            return; // the handshake is not complete
        }
        let mut values = vec![
            ("congestion_window_bytes", s.cwnd.as_f64()),
            ("bytes_in_flight", s.in_flight.as_f64()),
            (
                "slow_start_threshold_bytes",
                s.ssthresh.map_or(f64::NAN, Bytes::as_f64),
            ),
            ("pacing_rate_bps", rate(s.pacing_rate)),
            ("delivery_rate_bps", rate(s.delivery_rate)),
        ];
        sender.gauges(&mut values);
        let cause: Arc<str> = cause.into();
        let gauges = values.into_iter().map(|(name, value)| Gauge {
            time: now,
            flow,
            cause: Arc::clone(&cause),
            phase: s.phase,
            name,
            value: (!value.is_nan()).then_some(value),
        });
        self.samples.gauges.extend(gauges);
    }

    pub(crate) fn flow(&mut self, sample: FlowSample) {
        if sample.cwnd.is_zero() && sample.pacing_rate.is_none() {
            return; // the handshake is not complete: there is no window yet
        }
        self.samples.flows.push(sample);
    }

    pub(crate) fn subflow(&mut self, sample: SubflowSample) {
        self.samples.subflows.push(sample);
    }

    pub(crate) fn sample_links(&mut self, now: Instant, net: &mut Net) {
        if !self.recording.links {
            return;
        }
        for (i, d) in self.directions.iter_mut().enumerate() {
            let sample = d.sampler.sample(net.link_mut(i as u32), now);
            self.samples.links.push(sample);
        }
    }

    pub(crate) fn event(&mut self, event: ProtocolEvent) {
        self.samples.events.push(event);
    }

    /// An edge of the measured window passes.
    pub(crate) fn mark(&mut self, edge: Edge, at: Instant, net: &mut Net) {
        for (i, d) in self.directions.iter_mut().enumerate() {
            d.marks.mark(edge, net.link_mut(i as u32), at);
        }
    }

    pub(crate) fn links(
        &self,
        now: Instant,
        net: &mut Net,
        window: Option<(Instant, Instant)>,
    ) -> Vec<LinkResult> {
        let of = |(i, d): (usize, &Direction)| {
            let link = net.link_mut(i as u32);
            LinkResult::of(&d.name, d.direction, link, now, (&d.marks, window))
        };
        self.directions.iter().enumerate().map(of).collect()
    }

    /// Memory that samples and events take.
    pub(crate) fn bytes(&self) -> u64 {
        self.samples.bytes()
    }

    pub(crate) fn into_samples(self) -> Samples {
        self.samples
    }
}

fn rate(r: Option<Rate>) -> f64 {
    r.map_or(f64::NAN, |r| r.as_bps() as f64)
}
