//! Audits a run: checks its results for contradictions.
//!
//! A rule is a function that compares figures of the [`Outcome`] with each other and with the resolved scenario. Rules
//! of severity `error` hold for every network and transport, so that a finding is always a fault of Gargalo: tests
//! fail on it. They are bounds, exact except for a packet at each end of a time span.

mod bytes;
mod finding;
mod links;
mod start;
mod times;

use std::collections::BTreeMap;

use gargalo_flow::{FlowResult, Outcome, Routing};
use gargalo_link::{JitterDistribution, LinkConfig, RateModel};
use gargalo_units::{Duration, Instant};
use gargalo_workload::Workload;
use serde_json::{Value as Json, json};

pub use finding::{CODES, Finding, Severity};

use crate::resolved::{Flow, Scenario, Transport};

/// A measured window with room for fewer packets of the bottleneck is reported.
const FEW_PACKETS: f64 = 20.0;
/// A link with early drops whose unlimited flows use less of it is reported.
const LITTLE_USE: f64 = 0.6;
/// Number of findings of a rule that are reported one by one.
const MOST: usize = 5;

/// The data that the rules check.
struct Case<'a> {
    scenario: &'a Scenario,
    out: &'a Outcome,
    /// Lateness of packets in real time, 99th percentile; `None` in the simulator.
    late: Option<Duration>,
    /// Created where the outcome does not know a route.
    routing: Option<Routing>,
    /// Routes and least delays found so far.
    routes: BTreeMap<(u32, u32, u8), Option<Vec<u32>>>,
    delays: BTreeMap<(u32, u32), Duration>,
}

/// All findings of a run. `summary` is its summary, `late` the 99th percentile of the lateness of packets in the lab.
pub fn audit(
    scenario: &Scenario,
    out: &Outcome,
    summary: &Json,
    late: Option<Duration>,
) -> Vec<Finding> {
    let mut case = Case {
        scenario,
        out,
        late,
        routing: None,
        routes: BTreeMap::new(),
        delays: BTreeMap::new(),
    };
    let rules: [Vec<Finding>; 11] = [
        links::link_above_capacity(&case),
        links::link_not_conserved(&case),
        bytes::goodput_above_capacity(&mut case),
        bytes::flow_not_conserved(&case),
        times::rtt_below_path(&mut case),
        bytes::sum_not_conserved(&case, summary),
        start::ends_in_slow_start(&case),
        start::ends_before_data(&mut case),
        links::few_packets(&case),
        links::idle_behind_early_drops(&mut case),
        times::late_packets(&mut case),
    ];
    rules.into_iter().flat_map(few).collect()
}

/// The first findings of a rule, and the number of further ones.
fn few(mut found: Vec<Finding>) -> Vec<Finding> {
    let more = found.len().saturating_sub(MOST);
    if let Some(last) = found.get(MOST).filter(|_| more > 0) {
        let text = format!("{more} more are as these");
        let last = Finding::new(last.code, String::new(), text, json!({ "more": more }));
        found.truncate(MOST);
        found.push(last);
    }
    found
}

impl Case<'_> {
    fn config(&self, direction: u32) -> Option<&LinkConfig> {
        let link = self.scenario.links.get(direction as usize / 2)?;
        Some(if direction.is_multiple_of(2) {
            &link.up
        } else {
            &link.down
        })
    }

    /// The flow of the scenario from which a flow of the results was created.
    fn template(&self, f: &FlowResult) -> Option<&Flow> {
        self.scenario.flows.get(f.template as usize)
    }

    /// Whether a flow sends without end.
    fn is_endless(&self, f: &FlowResult) -> bool {
        match self.template(f).map(|t| &*t.workload) {
            Some(Workload::Bulk(bulk)) => bulk.bytes.is_none(),
            _ => false,
        }
    }

    /// The host that sent the data, and the host that received it.
    fn ends(&self, f: &FlowResult) -> (u32, u32) {
        match self.template(f).is_some_and(Flow::is_download) {
            true => (f.hosts.1, f.hosts.0),
            false => f.hosts,
        }
    }

    /// The only route that packets of a flow can take from one host to the other; `None`: there are several.
    fn route(&mut self, f: &FlowResult, from: u32, to: u32) -> Option<&[u32]> {
        let moves = match self.template(f).map(|t| &t.transport) {
            Some(Transport::Quic(q)) => q.migration.is_some(),
            Some(Transport::Mptcp(_)) => true,
            _ => false,
        };
        if moves || f.multipath.is_some() {
            return None;
        }
        let path = self.template(f).map_or(0, |t| t.path);
        let known = self.out.routes.get(&(from, to, path));
        if known.is_some() {
            return known.map(Vec::as_slice);
        }
        let routing = self.routing.get_or_insert_with(|| routing(self.scenario));
        let found = self.routes.entry((from, to, path));
        let found = found.or_insert_with(|| routing.nth(from, to, path));
        found.as_deref()
    }

    /// The window of the figures.
    fn measured(&self) -> (Instant, Instant) {
        self.out.measured.unwrap_or((Instant::ZERO, self.out.end))
    }

    /// Whether any link copies packets.
    fn copies(&self) -> bool {
        let mut configs = self.scenario.links.iter().flat_map(|l| [&l.up, &l.down]);
        configs.any(|c| c.duplicate > 0.0)
    }

    /// The share by which a link may exceed its capacity in the measured window: on a trace a packet counts completely
    /// when its transmission begins.
    fn trace_slack(&self, direction: u32) -> f64 {
        let (from, until) = self.measured();
        match self.config(direction) {
            Some(config) if matches!(config.rate, RateModel::Trace(_)) => {
                let bytes = config.rate.capacity(from, until);
                bytes.map_or(0.0, |b| self.slack(config) as f64 / b.as_f64().max(1.0))
            }
            // Rounding error of the division.
            _ => 1e-9,
        }
    }

    /// Bytes by which a bound may be exceeded: a packet that has begun at each end of the time.
    fn slack(&self, config: &LinkConfig) -> u64 {
        // With offload, up to 64 KiB pass at once.
        let packet = config.mtu.max(if self.late.is_some() { 65_536 } else { 0 });
        2 * u64::from(packet)
    }

    /// Most bytes that can cross a link direction between two instants; `None`: any number.
    fn capacity(&self, direction: u32, from: Instant, to: Instant) -> Option<u64> {
        let config = self.config(direction)?;
        // Opportunities of traces are at whole milliseconds: a packet that begins within one counts completely.
        let from = from - Duration::from_millis(1);
        let bytes = config.rate.capacity(from.min(to), to)?;
        Some(bytes.get().saturating_add(self.slack(config)))
    }

    fn name(&self, direction: u32) -> String {
        let l = &self.out.links[direction as usize];
        format!("link {} {}", l.name, l.direction)
    }

    /// The least propagation delay between two hosts by any routers.
    fn least_delay(&mut self, from: u32, to: u32) -> Duration {
        if let Some(known) = self.delays.get(&(from, to)) {
            return *known;
        }
        let links = &self.scenario.links;
        let cost = |d: u32| {
            let link = &links[d as usize / 2];
            let is_up = d.is_multiple_of(2);
            propagation(if is_up { &link.up } else { &link.down }).as_nanos()
        };
        let routing = self.routing.get_or_insert_with(|| routing(self.scenario));
        let found = Duration::from_nanos(routing.least(from, to, cost).unwrap_or(0));
        self.delays.insert((from, to), found);
        found
    }

    /// The least one-way time between two hosts for a flow: propagation only.
    fn delay(&mut self, f: &FlowResult, from: u32, to: u32) -> Duration {
        match self.route(f, from, to).map(<[u32]>::to_vec) {
            Some(route) => {
                let configs = route.iter().filter_map(|d| self.config(*d));
                let sum = configs.fold(0u64, |s, c| s.saturating_add(propagation(c).as_nanos()));
                Duration::from_nanos(sum)
            }
            None => self.least_delay(from, to),
        }
    }
}

/// The least propagation delay of a link direction.
fn propagation(config: &LinkConfig) -> Duration {
    let mut least = config.delay.minimum();
    if let Some(jitter) = config.jitter {
        least = match jitter.distribution {
            // A heavy tail to the right, at most 0.58 scales to the left.
            JitterDistribution::Uniform | JitterDistribution::Pareto => {
                least.saturating_sub(jitter.scale)
            }
            JitterDistribution::Normal => Duration::ZERO,
        };
    }
    match config.reorder {
        Some(r) if r.late.is_none() => least.saturating_sub(r.early.unwrap_or(Duration::MAX)),
        _ => least,
    }
}

fn subject(f: &FlowResult) -> String {
    format!("flow {} ({})", f.id, f.label)
}

/// Creates a search for routes over the scenario's nodes (hosts do not forward) and links.
fn routing(scenario: &Scenario) -> Routing {
    let ends = scenario.links.iter().map(|l| (l.a, l.b));
    Routing::new(scenario.nodes.iter().map(|n| n.is_host), ends)
}
