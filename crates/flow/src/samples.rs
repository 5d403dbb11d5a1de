//! Samples of flows and links at an instant, protocol events, and totals of links.

use std::sync::Arc;

use gargalo_link::{Carried, DelayHistogram, DropReason, Link};
use gargalo_mptcp::SubflowSnapshot;
use gargalo_units::{Bytes, Count, Duration, Instant, Rate};
use gargalo_workload::Datagram;

use crate::window::Edge;

/// How much of its data has reached the receiver of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Bytes that the receiver's application has read.
    pub delivered: Bytes,
    /// Those, and data that waits at the receiver for earlier data, each byte once; `None`: its stack does not report
    /// it.
    pub received: Option<Bytes>,
}

/// The state of a flow at an instant.
#[derive(Clone, Copy, Debug)]
pub struct FlowSample {
    /// Virtual time of the sample.
    pub time: Instant,
    /// Identifier of the flow.
    pub flow: u64,
    /// Congestion window of the sending side.
    pub cwnd: Bytes,
    /// Slow-start threshold; `None` while infinite.
    pub ssthresh: Option<Bytes>,
    /// Sent and neither acknowledged nor lost; `None`: the stack does not report it.
    pub in_flight: Option<Bytes>,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Pacing rate; `None` if unpaced.
    pub pacing_rate: Option<Rate>,
    /// Latest delivery-rate sample.
    pub delivery_rate: Option<Rate>,
    /// Bytes that the receiver's application has read.
    pub delivered: Bytes,
    /// [`Reached::received`].
    pub received: Option<Bytes>,
    /// State of the congestion control in one word.
    pub phase: &'static str,
    /// Bytes in the reordering queue at the receiver of a Multipath TCP connection.
    pub out_of_order: Option<Bytes>,
}

impl FlowSample {
    /// Creates the sample of a connection over several paths, before any path is added.
    pub fn over_paths(time: Instant, flow: u64, reached: Reached) -> Self {
        Self {
            time,
            flow,
            cwnd: Bytes::ZERO,
            ssthresh: None,
            in_flight: Some(Bytes::ZERO),
            srtt: None,
            pacing_rate: None,
            delivery_rate: None,
            delivered: reached.delivered,
            received: reached.received,
            phase: "",
            out_of_order: None,
        }
    }

    /// Adds a path: windows and rates add up, the round-trip time is the least, and the phase is the first path's.
    pub fn add(&mut self, path: &SubflowSample, pacing_rate: Option<Rate>) {
        if self.phase.is_empty() {
            self.phase = path.phase;
        }
        self.cwnd += path.cwnd;
        self.in_flight = self.in_flight.map(|sum| sum + path.in_flight);
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

macro_rules! single_path {
    ($($name:ident($snapshot:ty) $transport:literal;)*) => {
        impl FlowSample { $(
            #[doc = concat!("Creates the sample of a ", $transport, " sender with one path.")]
            pub fn $name(time: Instant, flow: u64, reached: Reached, s: $snapshot) -> Self {
                Self {
                    time,
                    flow,
                    cwnd: s.cwnd,
                    ssthresh: s.ssthresh,
                    in_flight: s.in_flight.into(),
                    srtt: s.srtt,
                    pacing_rate: s.pacing_rate,
                    delivery_rate: s.delivery_rate,
                    delivered: reached.delivered,
                    received: reached.received,
                    phase: s.phase,
                    out_of_order: None,
                }
            }
        )* }
    };
}
single_path! {
    of_tcp(gargalo_tcp::Snapshot) "TCP";
    of_quic(gargalo_quic::Snapshot) "QUIC";
}

/// The state of a subflow at an instant.
#[derive(Clone, Copy, Debug)]
pub struct SubflowSample {
    /// Virtual time of the sample.
    pub time: Instant,
    /// Number of the flow.
    pub flow: u64,
    /// Number of the subflow in its connection, in the order of opening.
    pub subflow: u32,
    /// The link by which its data leaves, by index.
    pub link: usize,
    /// Congestion window of the subflow.
    pub cwnd: Bytes,
    /// Slow-start threshold; `None` while infinite.
    pub ssthresh: Option<Bytes>,
    /// Sent and neither acknowledged nor lost.
    pub in_flight: Bytes,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Latest delivery-rate sample.
    pub delivery_rate: Option<Rate>,
    /// Payload bytes sent, retransmissions included.
    pub sent: Count,
    /// Bytes that reached the peer (TCP: in order).
    pub delivered: Bytes,
    /// State of the congestion control in one word.
    pub phase: &'static str,
}

impl SubflowSample {
    /// Creates the sample of a subflow of Multipath TCP whose data leaves by this link.
    pub fn of_mptcp(time: Instant, flow: u64, link: usize, s: &SubflowSnapshot) -> Self {
        let q = &s.sender;
        Self {
            time,
            flow,
            subflow: s.id,
            link,
            cwnd: q.cwnd,
            ssthresh: q.ssthresh,
            in_flight: q.in_flight,
            srtt: q.srtt,
            delivery_rate: q.delivery_rate,
            sent: s.stats.sender.sent_bytes,
            delivered: q.delivered,
            phase: q.phase,
        }
    }
}

/// The state of a link direction at an instant.
#[derive(Clone, Copy, Debug)]
pub struct LinkSample {
    /// Virtual time of the sample.
    pub time: Instant,
    /// The direction: twice the link's index, plus one for down.
    pub direction: u32,
    /// Packets in the queue, without the one in transmission.
    pub queue_packets: u64,
    /// Bytes of the packets in the queue, without the one in transmission.
    pub queue_bytes: u64,
    /// Queueing delay of a packet that would arrive now.
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

/// A protocol event.
#[derive(Clone, Debug)]
pub struct ProtocolEvent {
    /// Virtual time of the event.
    pub time: Instant,
    /// Identifier of the flow.
    pub flow: u64,
    /// Kind of the event in one word, such as "loss", "recovery" or "timeout".
    pub kind: &'static str,
    /// Further values of the event as text, mostly `name=value`; may be empty.
    pub detail: String,
}

/// An internal quantity of a congestion control.
#[derive(Clone, Debug)]
pub struct Gauge {
    /// Virtual time of the record.
    pub time: Instant,
    /// Number of the flow.
    pub flow: u64,
    /// What triggered the record: "sample", "phase", kinds of events.
    pub cause: Arc<str>,
    /// State of the congestion control in one word.
    pub phase: &'static str,
    /// Name of the quantity, ending in its unit.
    pub name: &'static str,
    /// Its value; `None` while it is undefined.
    pub value: Option<f64>,
}

/// A datagram of the sender of a flow over UDP that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivedDatagram {
    /// Number of the flow.
    pub flow: u64,
    /// Number of the datagram in its flow, from 0.
    pub number: u64,
    /// Its payload.
    pub size: Bytes,
    /// When it was sent.
    pub sent: Instant,
    /// When it arrived.
    pub arrived: Instant,
}

impl ArrivedDatagram {
    /// The record of a datagram of a flow that arrives now.
    pub fn new(now: Instant, flow: u64, datagram: &Datagram) -> Self {
        Self {
            flow,
            number: datagram.number,
            size: Bytes::new(datagram.bytes),
            sent: datagram.sent_at,
            arrived: now,
        }
    }
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
    /// In the order of arrival.
    pub datagrams: Vec<ArrivedDatagram>,
}

impl Samples {
    /// Memory that the samples take.
    pub fn bytes(&self) -> u64 {
        // The details are separate allocations.
        const DETAIL: u64 = 64;
        let of_senders = size_of_val(&*self.flows) + size_of_val(&*self.subflows);
        let of_network = size_of_val(&*self.links) + size_of_val(&*self.datagrams);
        let of_events = size_of_val(&*self.events) + size_of_val(&*self.gauges);
        (of_senders + of_network + of_events) as u64 + self.events.len() as u64 * DETAIL
    }
}

/// What one direction of a link carried.
#[derive(Clone, Debug)]
pub struct LinkResult {
    /// The link's name.
    pub name: Arc<str>,
    /// "up" or "down".
    pub direction: &'static str,
    /// Packets that arrived at the link.
    pub offered_packets: u64,
    /// Copies that the link made of them.
    pub duplicated_packets: u64,
    /// Packets still waiting.
    pub queued_packets: u64,
    /// Packets whose transmission began.
    pub sent_packets: u64,
    /// Bytes transmitted, IP headers included.
    pub sent_bytes: u64,
    /// Dropped because the queue was full.
    pub dropped_queue_full: u64,
    /// Dropped by the queueing discipline.
    pub dropped_aqm: u64,
    /// Dropped by the link's loss model.
    pub lost: u64,
    /// Dropped because they were larger than the MTU.
    pub too_big: u64,
    /// Marked congestion experienced.
    pub marked_packets: u64,
    /// Average share of the capacity used in the measured window; `None` if the rate is unlimited or no
    /// time was measured.
    pub utilization: Option<f64>,
    /// Average capacity in that window; `None` likewise.
    pub capacity: Option<Rate>,
    /// Bytes that the capacity amounts to over the whole run; `None` if unlimited.
    pub capacity_bytes: Option<Bytes>,
    /// Queueing delay of every packet sent in that window.
    pub queue_delay: DelayHistogram,
}

/// Counters of a link direction at the edges of the measured window that have passed.
#[derive(Clone, Debug, Default)]
pub struct LinkMarks {
    from: Carried,
    until: Option<(Carried, DelayHistogram)>,
}

impl LinkMarks {
    /// Takes the counters at an edge of the window. The distribution of queueing delays starts anew.
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
    /// The totals of `link` until `now`; `window` is the covered part of the measured window, if one was requested.
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
    /// Counters at the last sample.
    before: Carried,
}

impl LinkSampler {
    /// Creates the sampler before the first sample; `direction` is twice the link, plus one for down.
    pub fn new(direction: u32) -> Self {
        Self {
            direction,
            before: Carried::default(),
        }
    }

    /// Takes the next sample.
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

#[cfg(test)]
mod tests {
    use gargalo_link::queue::QueueLimit;
    use gargalo_link::{LinkConfig, Packet, QueueConfig, RateModel};
    use gargalo_units::Ecn;

    use super::*;
    use crate::rng;
    use crate::testing::at;

    /// A millisecond for each packet of 1000 bytes, and room for two.
    fn link() -> Link<()> {
        let config = LinkConfig {
            rate: RateModel::Constant(Rate::from_mbps(8)),
            queue: QueueConfig::DropTail(QueueLimit::Packets(2)),
            ..LinkConfig::default()
        };
        Link::new(config, rng::stream(1, "link")).unwrap()
    }

    fn send(link: &mut Link<()>, now: Instant, packets: usize) {
        for _ in 0..packets {
            link.send(
                now,
                Packet {
                    bytes: 1000,
                    flow: 0,
                    ecn: Ecn::NotEct,
                    payload: (),
                },
            );
        }
    }

    fn path(cwnd: u64, srtt: Option<u64>, rate: Option<u64>) -> SubflowSample {
        SubflowSample {
            time: at(0),
            flow: 1,
            subflow: 0,
            link: 0,
            cwnd: Bytes::new(cwnd),
            ssthresh: None,
            in_flight: Bytes::new(cwnd / 2),
            srtt: srtt.map(Duration::from_millis),
            delivery_rate: rate.map(Rate::from_mbps),
            sent: Count::default(),
            delivered: Bytes::ZERO,
            phase: if cwnd == 10 { "slow-start" } else { "recovery" },
        }
    }

    #[test]
    fn windows_and_rates_of_paths_add_up_and_the_shortest_round_trip_is_that_of_all() {
        let mut all = FlowSample::over_paths(at(5), 1, Reached::default());
        assert_eq!((all.cwnd, all.srtt, all.phase), (Bytes::ZERO, None, ""));
        all.add(&path(10, None, None), None);
        assert_eq!(
            (all.srtt, all.pacing_rate, all.delivery_rate),
            (None, None, None)
        );
        all.add(&path(30, Some(20), Some(3)), Some(Rate::from_mbps(1)));
        all.add(&path(20, Some(50), Some(2)), Some(Rate::from_mbps(4)));
        all.add(&path(0, Some(40), None), None);
        assert_eq!(
            (all.cwnd, all.in_flight),
            (Bytes::new(60), Some(Bytes::new(30)))
        );
        assert_eq!(all.srtt, Some(Duration::from_millis(20)));
        let rates = [all.pacing_rate, all.delivery_rate];
        assert_eq!(rates, [5, 5].map(|r| Some(Rate::from_mbps(r))));
        assert_eq!(all.phase, "slow-start");
    }

    #[test]
    fn a_sum_over_paths_of_what_is_not_reported_is_unknown() {
        let mut all = FlowSample::over_paths(at(5), 1, Reached::default());
        all.in_flight = None;
        all.add(&path(10, None, None), None);
        assert_eq!(all.in_flight, None);
    }

    #[test]
    fn samples_take_the_memory_of_all_their_tables() {
        let mut samples = Samples::default();
        assert_eq!(samples.bytes(), 0);
        let flow = FlowSample::over_paths(at(0), 1, Reached::default());
        samples.flows = vec![flow; 3];
        samples.subflows = vec![path(1, None, None); 2];
        let senders = 3 * size_of::<FlowSample>() + 2 * size_of::<SubflowSample>();
        assert_eq!(samples.bytes(), senders as u64);
        samples.links = vec![LinkSampler::new(0).sample(&mut link(), at(0)); 5];
        let datagram = ArrivedDatagram {
            flow: 1,
            number: 0,
            size: Bytes::ZERO,
            sent: at(0),
            arrived: at(0),
        };
        samples.datagrams = vec![datagram; 7];
        let network = 5 * size_of::<LinkSample>() + 7 * size_of::<ArrivedDatagram>();
        assert_eq!(samples.bytes(), (senders + network) as u64);
        let event = ProtocolEvent {
            time: at(0),
            flow: 1,
            kind: "loss",
            detail: String::new(),
        };
        samples.events = vec![event; 2];
        samples.gauges = vec![Gauge {
            time: at(0),
            flow: 1,
            cause: "loss".into(),
            phase: "",
            name: "",
            value: None,
        }];
        // The text of an event counts with 64 bytes.
        let events = 2 * (size_of::<ProtocolEvent>() + 64) + size_of::<Gauge>();
        assert_eq!(samples.bytes(), (senders + network + events) as u64);
    }

    #[test]
    fn the_utilization_of_a_sample_is_since_the_one_before() {
        let (mut link, mut sampler) = (link(), LinkSampler::new(3));
        send(&mut link, at(0), 4);
        // One is sent, two wait, and one had no room.
        let first = sampler.sample(&mut link, at(0));
        assert_eq!(
            (first.direction, first.queue_packets, first.queue_bytes),
            (3, 2, 2000)
        );
        assert_eq!(
            (first.queue_delay, first.dropped_packets),
            (Duration::from_millis(3), 1)
        );
        let mut utilization = |ms| sampler.sample(&mut link, at(ms)).utilization;
        assert_eq!(utilization(2), Some(1.0));
        assert_eq!(utilization(4), Some(0.5));
        assert_eq!(utilization(8), Some(0.0));
    }

    #[test]
    fn totals_of_a_link_are_of_the_run_and_shares_of_the_window() {
        let (mut link, mut marks, name) = (link(), LinkMarks::default(), Arc::from("l"));
        send(&mut link, at(0), 2);
        let of = |link: &mut Link<()>, marks: &LinkMarks, window, now| {
            LinkResult::of(&name, "up", link, at(now), (marks, window))
        };
        let whole = of(&mut link, &marks, None, 4);
        assert_eq!(
            (whole.utilization, whole.queue_delay.count()),
            (Some(0.5), 2)
        );
        assert_eq!(whole.capacity, Some(Rate::from_mbps(8)));
        assert_eq!(whole.capacity_bytes, Some(Bytes::new(4000)));
        let nothing = of(&mut link, &marks, Some((at(4), at(4))), 4);
        assert_eq!((nothing.utilization, nothing.capacity), (None, None));
        marks.mark(Edge::From, &mut link, at(10));
        send(&mut link, at(10), 4);
        marks.mark(Edge::Until, &mut link, at(20));
        send(&mut link, at(20), 1);
        let inside = of(&mut link, &marks, Some((at(10), at(20))), 40);
        assert_eq!(
            (inside.utilization, inside.queue_delay.count()),
            (Some(0.3), 3)
        );
        assert_eq!(inside.capacity, Some(Rate::from_mbps(8)));
        assert_eq!((inside.offered_packets, inside.sent_packets), (7, 6));
        assert_eq!((inside.dropped_queue_full, inside.dropped_aqm), (1, 0));
        assert_eq!((inside.sent_bytes, inside.queued_packets), (6000, 0));
        assert_eq!(inside.capacity_bytes, Some(Bytes::new(40_000)));
    }
}
