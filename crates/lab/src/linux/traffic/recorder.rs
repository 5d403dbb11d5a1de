//! Records of flows during a run.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gargalo_flow::{ArrivedDatagram, FlowSample, Gauge, ProtocolEvent, Samples, SubflowSample};
use gargalo_units::Instant;

/// Samples of flows, in the order they were taken.
#[derive(Debug, Default)]
pub struct Recorder {
    samples: Mutex<Kept>,
    /// The link of every address.
    links: BTreeMap<IpAddr, usize>,
    /// Names of the links.
    names: Vec<String>,
    /// Which tables are recorded besides the samples.
    pub tables: Tables,
}

/// Tables of a run that are recorded on request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tables {
    /// Internal quantities of congestion controls.
    pub gauges: bool,
    /// Protocol events.
    pub events: bool,
    /// Datagrams of flows over UDP that arrived.
    pub datagrams: bool,
}

#[derive(Debug, Default)]
struct Kept {
    samples: Samples,
    /// The run is over: further samples are those of its end.
    over: bool,
    last: Samples,
}

impl Kept {
    fn flows(&mut self) -> &mut Vec<FlowSample> {
        match self.over {
            true => &mut self.last.flows,
            false => &mut self.samples.flows,
        }
    }

    fn subflows(&mut self) -> &mut Vec<SubflowSample> {
        match self.over {
            true => &mut self.last.subflows,
            false => &mut self.samples.subflows,
        }
    }

    /// Samples of senders at the end of the run: those taken then, and for the others those of the last sampling time.
    fn last(&mut self) -> Samples {
        let mut last = std::mem::take(&mut self.last);
        let known: BTreeSet<u64> = last.flows.iter().map(|s| s.flow).collect();
        let Some(time) = self.samples.flows.last().map(|s| s.time) else {
            return last;
        };
        let is_last = |at: Instant, flow: &u64| at == time && !known.contains(flow);
        let all = &self.samples;
        let flows = all.flows.iter().filter(|s| is_last(s.time, &s.flow));
        let subflows = all.subflows.iter().filter(|s| is_last(s.time, &s.flow));
        last.flows.extend(flows);
        last.subflows.extend(subflows);
        last
    }
}

impl Recorder {
    /// Creates a recorder that knows the link of every address and the names of links.
    pub fn new(links: BTreeMap<IpAddr, usize>, names: Vec<String>, tables: Tables) -> Self {
        Self {
            samples: Mutex::default(),
            links,
            names,
            tables,
        }
    }

    /// The links of two addresses, by index; an unknown address counts as one of link 0.
    pub fn links_of(&self, local: SocketAddr, remote: SocketAddr) -> (usize, usize) {
        let link = |a: SocketAddr| self.links.get(&a.ip()).copied().unwrap_or(0);
        (link(local), link(remote))
    }

    /// The name of a link.
    pub fn link_name(&self, link: usize) -> &str {
        self.names.get(link).map_or("", |n| n)
    }

    /// Records a sample.
    pub fn sample(&self, sample: FlowSample) {
        self.lock().flows().push(sample);
    }

    /// Records a sample of a subflow.
    pub fn subflow(&self, sample: SubflowSample) {
        self.lock().subflows().push(sample);
    }

    /// Records a protocol event of a flow.
    pub fn event(&self, time: Instant, flow: u64, kind: &'static str, detail: String) {
        if self.tables.events {
            self.lock().samples.events.push(ProtocolEvent {
                time,
                flow,
                kind,
                detail,
            });
        }
    }

    /// Records the internal quantities of a congestion control.
    pub fn look(&self, gauges: Vec<Gauge>) {
        self.lock().samples.gauges.extend(gauges);
    }

    /// Records a datagram of a flow that has arrived.
    pub fn datagram(&self, datagram: ArrivedDatagram) {
        if self.tables.datagrams {
            self.lock().samples.datagrams.push(datagram);
        }
    }

    /// Memory that the records of flows take, in bytes.
    pub fn bytes(&self) -> u64 {
        self.lock().samples.bytes()
    }

    /// Samples of flows after the first `told`, which then is the number of all.
    pub fn since(&self, told: &mut usize) -> Vec<FlowSample> {
        let kept = self.lock();
        let fresh = kept.samples.flows.get(*told..).unwrap_or_default().to_vec();
        *told = kept.samples.flows.len();
        fresh
    }

    /// Marks the end of the run: further samples are those of its end.
    pub fn end(&self) {
        self.lock().over = true;
    }

    /// Takes the records, sorted by time and flow, and the senders at the end; samples of links are recorded
    /// elsewhere.
    pub fn take(&self) -> (Samples, Samples) {
        let mut kept = std::mem::take(&mut *self.lock());
        let all = &mut kept.samples;
        all.flows.sort_by_key(|s| (s.time, s.flow));
        all.subflows.sort_by_key(|s| (s.time, s.flow, s.subflow));
        all.events.sort_by_key(|e| (e.time, e.flow));
        all.datagrams.sort_by_key(|d| (d.arrived, d.flow));
        let last = kept.last();
        (kept.samples, last)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use gargalo_units::{Bytes, Duration};

    use super::*;

    fn sample(ms: u64, flow: u64) -> FlowSample {
        FlowSample {
            time: Instant::ZERO + Duration::from_millis(ms),
            flow,
            cwnd: Bytes::new(ms),
            ssthresh: None,
            in_flight: Some(Bytes::ZERO),
            srtt: None,
            pacing_rate: None,
            delivery_rate: None,
            delivered: Bytes::ZERO,
            received: None,
            phase: "",
            out_of_order: None,
        }
    }

    #[test]
    fn the_last_samples_are_those_of_the_latest_time_in_whatever_order_they_came() {
        let recorder = Recorder::default();
        for (ms, flow) in [(20, 1), (20, 0), (10, 1), (10, 0)] {
            recorder.sample(sample(ms, flow));
        }
        recorder.end();
        let (samples, last) = recorder.take();
        let seen =
            |s: &Samples| -> Vec<_> { s.flows.iter().map(|s| (s.cwnd.get(), s.flow)).collect() };
        assert_eq!(seen(&samples), [(10, 0), (10, 1), (20, 0), (20, 1)]);
        assert_eq!(seen(&last), [(20, 0), (20, 1)]);
    }

    #[test]
    fn senders_are_remembered_as_they_were_at_the_end() {
        let recorder = Recorder::default();
        for (ms, flow) in [(10, 0), (10, 1), (20, 1), (20, 2)] {
            recorder.sample(sample(ms, flow));
        }
        recorder.end();
        recorder.sample(sample(25, 2));
        let (samples, last) = recorder.take();
        let seen =
            |s: &Samples| -> Vec<_> { s.flows.iter().map(|s| (s.cwnd.get(), s.flow)).collect() };
        assert_eq!(seen(&samples), [(10, 0), (10, 1), (20, 1), (20, 2)]);
        // Flow 0 had ended before the last sampling time, flow 1 was not sampled at the end.
        assert_eq!(seen(&last), [(25, 2), (20, 1)]);
    }
}
