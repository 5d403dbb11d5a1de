//! The emulated network of a scenario, and the records of its links.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use gargalo_flow::{Edge, LinkMarks, LinkResult, LinkSample, LinkSampler, Window, rng};
use gargalo_link::Strip;
use gargalo_units::{Duration, Instant};

use crate::Result;
use crate::linux::engine::Observer;
use crate::linux::fabric::{Fabric, Path};
use crate::linux::plan::{Plan, Way};
use crate::linux::traffic::{Flow, Sources};
use crate::spec::LabSpec;

/// "up" and "down": the two directions of a link.
const DIRECTIONS: [&str; 2] = ["up", "down"];

/// Creates links and paths; ports are numbered as the plan's interfaces.
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
    let mut known = BTreeSet::new();
    let mut add = |fabric: &mut Fabric, way: &Way, address: IpAddr| {
        if known.insert((way.from, address)) {
            let path = Path {
                hops: way.hops.clone(),
                exit: way.to,
            };
            fabric.add_path(way.from, Some(address), path);
        }
    };
    for way in &plan.ways {
        for address in plan.interfaces[way.to as usize].addresses() {
            add(&mut fabric, way, address);
        }
    }
    for passage in &plan.mesh {
        for address in plan.interfaces[passage.destination as usize].addresses() {
            add(&mut fabric, &passage.way, address);
        }
    }
    for (i, link) in (0..).zip(&spec.topology.links) {
        for (direction, config) in [(2 * i, &link.up), (2 * i + 1, &link.down)] {
            if config.strip_mptcp != Strip::None {
                fabric.strip(direction, config.strip_mptcp);
            }
        }
    }
    Ok(fabric)
}

/// Samples every link.
pub(crate) struct LinkObserver {
    interval: Option<Duration>,
    names: Vec<Arc<str>>,
    samplers: Vec<LinkSampler>,
    marks: Vec<LinkMarks>,
    flows: Vec<Arc<Flow>>,
    window: Window,
    pub(crate) samples: Vec<LinkSample>,
    wanted: bool,
    /// Flows that start and end during the run.
    pub(crate) sources: Sources,
}

impl LinkObserver {
    pub(crate) fn new(spec: &LabSpec, flows: Vec<Arc<Flow>>, sources: Sources) -> Self {
        let links = &spec.topology.links;
        let wanted = spec.sample_links || spec.sample_flows;
        Self {
            interval: spec.interval.filter(|i| wanted && !i.is_zero()),
            names: links.iter().map(|l| l.name.as_str().into()).collect(),
            samplers: (0..2 * links.len() as u32).map(LinkSampler::new).collect(),
            marks: vec![LinkMarks::default(); 2 * links.len()],
            flows,
            window: Window::new(spec.measure),
            samples: Vec::new(),
            wanted: spec.sample_links,
            sources,
        }
    }

    /// The measured window, and the progress of the run in it.
    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// The totals of every direction until `now`.
    pub(crate) fn results(&self, now: Instant, fabric: &mut Fabric) -> Vec<LinkResult> {
        let window = self.window.had(now);
        let links = fabric.links_mut().iter_mut().zip(&self.marks).enumerate();
        let of = |(i, (link, marks)): (usize, (&mut _, &_))| {
            let (name, direction) = (&self.names[i / 2], DIRECTIONS[i % 2]);
            LinkResult::of(name, direction, link, now, (marks, window))
        };
        links.map(of).collect()
    }
}

impl Observer for LinkObserver {
    fn interval(&self) -> Option<Duration> {
        self.interval
    }

    fn look(&mut self, now: Instant, fabric: &mut Fabric) {
        if self.wanted {
            let links = self.samplers.iter_mut().zip(fabric.links_mut());
            let new = links.map(|(sampler, link)| sampler.sample(link, now));
            self.samples.extend(new);
        }
    }

    fn poll_timeout(&self) -> Instant {
        self.sources.poll_timeout()
    }

    fn turn(&mut self, now: Instant) -> Result<()> {
        self.sources.turn(now, &self.window)
    }

    fn next_edge(&self) -> Option<(Edge, Instant)> {
        self.window.next()
    }

    fn mark(&mut self, now: Instant, edge: Edge, fabric: &mut Fabric) {
        self.flows.iter().for_each(|f| f.mark(edge));
        self.sources.mark(edge);
        for (marks, link) in self.marks.iter_mut().zip(fabric.links_mut()) {
            marks.mark(edge, link, now);
        }
        self.window.pass(edge, now);
    }
}
