//! What is remembered of flows while they run.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gargalo_sim::{FlowSample, ProtocolEvent, Samples, SubflowSample};

/// Samples of flows, in the order they were taken.
#[derive(Debug, Default)]
pub struct Recorder {
    samples: Mutex<Kept>,
    /// The link of every address.
    links: BTreeMap<IpAddr, usize>,
    /// Names of the links.
    names: Vec<String>,
}

#[derive(Debug, Default)]
struct Kept {
    flows: Vec<FlowSample>,
    subflows: Vec<SubflowSample>,
    events: Vec<ProtocolEvent>,
}

impl Recorder {
    /// One that knows the link of every address, and the names of links.
    pub fn new(links: BTreeMap<IpAddr, usize>, names: Vec<String>) -> Self {
        Self {
            samples: Mutex::default(),
            links,
            names,
        }
    }

    /// The links of two addresses, by index; an address that nobody has counts as the first's.
    pub fn links_of(&self, local: SocketAddr, remote: SocketAddr) -> (usize, usize) {
        let link = |a: SocketAddr| self.links.get(&a.ip()).copied().unwrap_or(0);
        (link(local), link(remote))
    }

    /// The name of a link.
    pub fn link_name(&self, link: usize) -> &str {
        self.names.get(link).map_or("", |n| n)
    }

    /// Keeps a sample.
    pub fn sample(&self, sample: FlowSample) {
        self.lock().flows.push(sample);
    }

    /// Keeps a sample of a subflow.
    pub fn subflow(&self, sample: SubflowSample) {
        self.lock().subflows.push(sample);
    }

    /// Keeps a protocol event.
    pub fn event(&self, event: ProtocolEvent) {
        self.lock().events.push(event);
    }

    /// What was kept, sorted by time and flow; samples of links are another's.
    pub fn take(&self) -> Samples {
        let mut kept = std::mem::take(&mut *self.lock());
        kept.flows.sort_by_key(|s| (s.time, s.flow));
        kept.subflows.sort_by_key(|s| (s.time, s.flow, s.subflow));
        kept.events.sort_by_key(|e| (e.time, e.flow));
        Samples {
            flows: kept.flows,
            subflows: kept.subflows,
            links: Vec::new(),
            events: kept.events,
            gauges: Vec::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
