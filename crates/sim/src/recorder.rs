//! Records of a run: samples of flows and links at a fixed interval, and protocol events.

use std::sync::Arc;

use gargalo_flow::{
    ArrivedDatagram, Edge, FlowSample, Gauge, LinkMarks, LinkResult, LinkSampler, ProtocolEvent,
    QuicEnd, Samples, SubflowSample, Topology,
};
use gargalo_units::{Duration, Instant};
use gargalo_workload::Datagram;

use crate::net::Net;

/// What is sampled, and at which interval.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Sampling interval; `None`: no samples.
    pub interval: Option<Duration>,
    /// Sample the state of flows, at `interval`.
    pub flows: bool,
    /// Sample the state of link directions, at `interval`.
    pub links: bool,
    /// Record protocol events. (Decisions of a Multipath TCP scheduler are recorded as the connection's configuration
    /// says.)
    pub events: bool,
    /// Record internal quantities of congestion controls over TCP.
    pub gauges: bool,
    /// Record every datagram of flows over UDP that arrives.
    pub datagrams: bool,
}

/// The tables in which an end of a QUIC flow has rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    /// Its notices are protocol events.
    pub(crate) events: bool,
    /// Internal quantities of its congestion control.
    pub(crate) gauges: bool,
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

    /// Sampling interval, if anything is sampled.
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
    pub(crate) fn wants_gauges(&self) -> bool {
        self.recording.gauges
    }

    pub(crate) fn gauges(&mut self, gauges: Vec<Gauge>) {
        self.samples.gauges.extend(gauges);
    }

    /// Records a datagram of the sender that has arrived.
    #[inline]
    pub(crate) fn datagram(&mut self, now: Instant, flow: u64, datagram: &Datagram) {
        if self.recording.datagrams {
            let arrived = ArrivedDatagram::new(now, flow, datagram);
            self.samples.datagrams.push(arrived);
        }
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
            let sample = net.read(i as u32, |link| d.sampler.sample(link, now));
            self.samples.links.push(sample);
        }
    }

    /// Records a protocol event of a flow.
    pub(crate) fn event(&mut self, time: Instant, flow: u64, kind: &'static str, detail: String) {
        self.samples.events.push(ProtocolEvent {
            time,
            flow,
            kind,
            detail,
        });
    }

    /// Records the notices of an end of a QUIC flow, and its congestion control at them and at each new phase.
    pub(crate) fn quic(&mut self, now: Instant, flow: u64, tables: Tables, end: &mut QuicEnd) {
        let gauges = end.notices(now, flow, tables.gauges, |notice| {
            if tables.events {
                self.event(now, flow, notice.kind, notice.detail);
            }
        });
        self.gauges(gauges);
    }

    /// Takes the counters of links at an edge of the measured window.
    pub(crate) fn mark(&mut self, edge: Edge, at: Instant, net: &mut Net) {
        for (i, d) in self.directions.iter_mut().enumerate() {
            net.read(i as u32, |link| d.marks.mark(edge, link, at));
        }
    }

    pub(crate) fn links(
        &self,
        now: Instant,
        net: &mut Net,
        window: Option<(Instant, Instant)>,
    ) -> Vec<LinkResult> {
        let of = |(i, d): (usize, &Direction)| {
            net.read(i as u32, |link| {
                LinkResult::of(&d.name, d.direction, link, now, (&d.marks, window))
            })
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

#[cfg(test)]
mod tests {
    use gargalo_flow::Reached;
    use gargalo_units::{Bytes, Rate};

    use super::*;

    fn interval(recording: Recording) -> Option<Duration> {
        Recorder::new(recording, &Topology::default()).interval()
    }

    #[test]
    fn samples_are_taken_if_a_table_wants_them() {
        let every = |interval, flows, links| Recording {
            interval: Some(interval),
            flows,
            links,
            events: true,
            gauges: true,
            datagrams: true,
        };
        let second = Duration::from_secs(1);
        assert_eq!(interval(every(second, true, false)), Some(second));
        assert_eq!(interval(every(second, false, true)), Some(second));
        assert_eq!(interval(every(second, false, false)), None);
        assert_eq!(interval(every(Duration::ZERO, true, true)), None);
    }

    #[test]
    fn a_flow_is_sampled_from_when_it_has_a_window_or_a_rate() {
        let mut recorder = Recorder::new(Recording::default(), &Topology::default());
        let mut sample = FlowSample::over_paths(Instant::ZERO, 1, Reached::default());
        recorder.flow(sample);
        assert_eq!(recorder.bytes(), 0);
        sample.pacing_rate = Some(Rate::from_mbps(1));
        recorder.flow(sample);
        sample.pacing_rate = None;
        sample.cwnd = Bytes::new(1);
        recorder.flow(sample);
        assert_eq!(recorder.into_samples().flows.len(), 2);
    }

    #[test]
    fn a_table_that_was_not_asked_for_stays_empty() {
        let datagram = Datagram {
            side: 1,
            number: 3,
            bytes: 100,
            sent_at: Instant::ZERO,
            marked: false,
        };
        for datagrams in [false, true] {
            let recording = Recording {
                datagrams,
                ..Recording::default()
            };
            let mut recorder = Recorder::new(recording, &Topology::default());
            recorder.datagram(Instant::from_nanos(7), 2, &datagram);
            recorder.sample_links(Instant::ZERO, &mut Net::default());
            let samples = recorder.into_samples();
            assert_eq!(samples.datagrams.len(), usize::from(datagrams));
            assert!(samples.links.is_empty());
        }
    }
}
