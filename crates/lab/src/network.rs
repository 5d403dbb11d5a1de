//! The emulated network of a scenario, and what is recorded of its links.

use std::sync::Arc;

use gargalo_link::DropReason;
use gargalo_sim::{LinkResult, LinkSample, rng};
use gargalo_units::{Bytes, Duration, Instant};

use crate::Result;
use crate::engine::Observer;
use crate::fabric::{Fabric, Path};
use crate::plan::Plan;
use crate::spec::LabSpec;

/// "up" and "down": the two directions of a link.
const DIRECTIONS: [&str; 2] = ["up", "down"];

/// Links and ways; ports are numbered as the plan's interfaces.
pub(crate) fn fabric(spec: &LabSpec, plan: &Plan) -> Result<Fabric> {
    let links = &spec.topology.links;
    let both = links
        .iter()
        .flat_map(|l| [(l.name.as_str(), &l.up), (l.name.as_str(), &l.down)]);
    let mut fabric = Fabric::new(both, |direction| {
        let link = &links[direction as usize / 2].name;
        let which = DIRECTIONS[direction as usize % 2];
        rng::stream(spec.seed, &format!("link/{link}/{which}"))
    })?;
    for _ in &plan.interfaces {
        fabric.add_port();
    }
    for way in &plan.ways {
        for address in plan.interfaces[way.to as usize].addresses() {
            let path = Path {
                hops: way.hops.clone(),
                exit: way.to,
            };
            fabric.add_path(way.from, Some(address), path);
        }
    }
    Ok(fabric)
}

/// Samples every link.
pub(crate) struct LinkObserver {
    interval: Option<Duration>,
    names: Vec<Arc<str>>,
    /// Bytes sent, and when, at the last look.
    before: Vec<(u64, Instant)>,
    pub(crate) samples: Vec<LinkSample>,
    wanted: bool,
}

impl LinkObserver {
    pub(crate) fn new(spec: &LabSpec) -> Self {
        let links = &spec.topology.links;
        let wanted = spec.sample_links || spec.sample_flows;
        Self {
            interval: spec.interval.filter(|i| wanted && !i.is_zero()),
            names: links.iter().map(|l| l.name.as_str().into()).collect(),
            before: vec![(0, Instant::ZERO); 2 * links.len()],
            samples: Vec::new(),
            wanted: spec.sample_links,
        }
    }

    /// Totals of every direction until `now`.
    pub(crate) fn results(&self, now: Instant, fabric: &mut Fabric) -> Vec<LinkResult> {
        let mut out = Vec::with_capacity(self.before.len());
        for (i, link) in fabric.links_mut().iter_mut().enumerate() {
            let sample = link.sample(now);
            let capacity = link.capacity(Instant::ZERO, now);
            let stats = link.stats();
            out.push(LinkResult {
                name: Arc::clone(&self.names[i / 2]),
                direction: DIRECTIONS[i % 2],
                offered_packets: stats.offered_packets,
                sent_packets: sample.sent_packets,
                sent_bytes: sample.sent_bytes,
                dropped_queue_full: stats.dropped(DropReason::QueueFull),
                dropped_aqm: stats.dropped(DropReason::Aqm),
                lost: stats.dropped(DropReason::Loss),
                too_big: stats.dropped(DropReason::TooBig),
                marked_packets: sample.marked_packets,
                utilization: capacity.map(|c| share(sample.sent_bytes, c)),
                capacity: capacity.map(|c| c / now.saturating_since(Instant::ZERO)),
                queue_delay: stats.queue_delay.clone(),
            });
        }
        out
    }
}

fn share(bytes: u64, capacity: Bytes) -> f64 {
    if capacity.is_zero() {
        0.0
    } else {
        bytes as f64 / capacity.as_f64()
    }
}

impl Observer for LinkObserver {
    fn interval(&self) -> Option<Duration> {
        self.interval
    }

    fn look(&mut self, now: Instant, fabric: &mut Fabric) {
        if !self.wanted {
            return;
        }
        for (i, link) in fabric.links_mut().iter_mut().enumerate() {
            let s = link.sample(now);
            let (sent, at) = std::mem::replace(&mut self.before[i], (s.sent_bytes, now));
            let capacity = link.capacity(at, now);
            self.samples.push(LinkSample {
                time: now,
                direction: i as u32,
                queue_packets: s.queue_packets,
                queue_bytes: s.queue_bytes,
                queue_delay: s.queue_delay,
                sent_bytes: s.sent_bytes,
                dropped_packets: s.dropped_packets,
                marked_packets: s.marked_packets,
                utilization: capacity.map(|c| share(s.sent_bytes - sent, c)),
            });
        }
    }
}
