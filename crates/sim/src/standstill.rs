//! Detects that virtual time has stopped: an unlimited flow whose round trip takes no time sends without end at one
//! instant.
//!
//! What a receiver gets in order at one instant was sent within the window that it had offered before, unless data and
//! acknowledgements take no time: at most a receive buffer. A flow that got several times as much is in an endless
//! loop. Limited transfers are left alone, however fast they are.
//!
//! A sender that paces itself advances time by some nanoseconds per step, so that time creeps: over links that take no
//! time an unlimited flow is refused once it has received that much since it started, within a second.
//!
//! Over links with a delay and no rate, time advances, but nothing except its window limits how many packets an
//! unlimited flow sends in it: 64 MiB in 2 ms are 23 million a second. The run is refused once such flows have received
//! more in a second than the fastest links that are simulated in practice carry.

use std::collections::BTreeMap;

use gargalo_flow::{FlowSpec, NodeId, Slab, Topology, TransportSpec};
use gargalo_link::{Delay, LinkConfig, RateModel};
use gargalo_units::{Bytes, Duration, Instant, Rate};

use crate::BuildError;
use crate::flow::Flow;
use crate::net::Net;
use gargalo_workload::{Bulk, Workload};

/// Receive buffers that may arrive at one instant.
const BUFFERS: u64 = 4;
/// Least limit in bytes.
const LEAST: u64 = 64 << 20;

/// Greatest limit in bytes: a run with more data in transit would not fit any memory.
const MOST: u64 = 64 << 30;
/// Events and packets at one instant before flows are checked.
const CHECK_AFTER: u64 = 1 << 16;

/// An unlimited flow over links that take no time creeps if it received that much within this time. Over links without
/// a rate flows are counted over it.
const CREEP: Duration = Duration::from_secs(1);

/// Most that unlimited flows may receive over links without a rate.
const FASTEST: Rate = Rate::from_mbps(10_000);

/// The instant being checked, and how much each flow had received at the first check.
#[derive(Debug, Default)]
pub(crate) struct Standstill {
    at: Instant,
    /// Work done at the first check of the instant, and work at which the next is due.
    work: (u64, u64),
    /// Generation and received bytes of flows by slot.
    got: Vec<(u32, u64)>,
    /// An unlimited flow uses links that take no time.
    may_creep: bool,
    /// An unlimited flow uses links without a rate.
    may_race: bool,
    race: Race,
}

/// What flows have received over links without a rate.
#[derive(Debug, Default)]
struct Race {
    since: Instant,
    /// Work at which the next check is due.
    due: u64,
    /// Generation, and received bytes at that instant, of flows by slot.
    got: Vec<(u32, u64)>,
}

/// The links, and the routes between hosts by number of the path.
type Network<'a> = (
    &'a Topology,
    &'a Net,
    &'a BTreeMap<(NodeId, NodeId, u8), u32>,
);

impl Standstill {
    /// Records a flow that is added, whose routes in both directions are known.
    pub(crate) fn note(&mut self, spec: &FlowSpec, network: Network<'_>) {
        if is_endless(spec) {
            self.may_creep |= is_timeless(spec, network);
            let (_, net, routes) = network;
            let ways = spec.ways();
            let mut ways = ways.iter().filter_map(|way| routes.get(way));
            self.may_race |= ways.any(|route| has_no_rate(net.route(*route), network.0));
        }
    }

    /// Checks whether a flow is in an endless loop at this instant; called regularly with the work done so far. The
    /// cost is a small share of that work: checks at one instant become ever rarer.
    pub(crate) fn check(
        &mut self,
        (now, work): (Instant, u64),
        flows: &mut Slab<Flow>,
        network: Network<'_>,
    ) -> Result<(), BuildError> {
        if self.may_creep {
            check_creep(now, flows, network)?;
        }
        if self.may_race && work >= self.race.due {
            self.race.due = work + CHECK_AFTER;
            self.race.check(now, flows, network)?;
        }
        if self.at != now {
            self.at = now;
            self.work = (work, work + CHECK_AFTER);
            self.got.clear();
            return Ok(());
        }
        if work < self.work.1 {
            return Ok(());
        }
        self.work.1 = work + (work - self.work.0);
        self.got.resize(flows.capacity(), (0, 0));
        for (slot, flow) in flows.iter_mut() {
            let Some(most) = most(flow) else { continue };
            let before = &mut self.got[slot as usize];
            if before.0 != flow.generation {
                *before = (flow.generation, flow.talk.delivered());
            } else if flow.talk.delivered() - before.1 > most {
                return Err(stands_still(now, flow, network));
            }
        }
        Ok(())
    }
}

impl Race {
    fn check(
        &mut self,
        now: Instant,
        flows: &mut Slab<Flow>,
        network: Network<'_>,
    ) -> Result<(), BuildError> {
        if now.saturating_since(self.since) > CREEP {
            self.since = now;
            self.got.clear();
        }
        self.got.resize(flows.capacity(), (0, 0));
        let (mut sum, mut fastest) = (0_u64, (0, None));
        for (slot, flow) in flows.iter_mut() {
            let route = network.1.route(flow.sides[flow.talk.sender()].route);
            if !is_endless(&flow.spec) || !has_no_rate(route, network.0) {
                continue;
            }
            let before = &mut self.got[slot as usize];
            if before.0 != flow.generation {
                *before = (flow.generation, flow.talk.delivered());
            }
            let got = flow.talk.delivered() - before.1;
            sum = sum.saturating_add(got);
            if got >= fastest.0 {
                fastest = (got, Some(slot));
            }
        }
        let Some(flow) = fastest.1.and_then(|slot| flows.get(slot)) else {
            return Ok(());
        };
        // A window that arrives at one instant is no rate.
        let most = (FASTEST * CREEP).get().max(most(flow).unwrap_or(0));
        if sum <= most {
            return Ok(());
        }
        Err(BuildError::NoRate {
            flow: flow.spec.label.to_string(),
            id: flow.id,
            links: links_of(flow, network),
            bytes: Bytes::new(sum),
            within_s: now.saturating_since(self.since).as_secs_f64(),
            at_s: now.decimal_secs(),
        })
    }
}

/// Whether a flow is a single transfer without end, as fast as the network allows.
fn is_endless(spec: &FlowSpec) -> bool {
    *spec.workload == Workload::Bulk(Bulk::ENDLESS)
}

/// Whether no link of a route has a rate.
fn has_no_rate(route: &[u32], topology: &Topology) -> bool {
    let mut configs = route.iter().map(|d| config(topology, *d));
    configs.all(|c| matches!(c.rate, RateModel::Unlimited) && c.policer.is_none())
}

fn config(topology: &Topology, direction: u32) -> &LinkConfig {
    let link = &topology.links[direction as usize / 2];
    match direction.is_multiple_of(2) {
        true => &link.up,
        false => &link.down,
    }
}

/// The names of the links of a flow's route.
fn links_of(flow: &Flow, (topology, net, _): Network<'_>) -> String {
    let links = net.links_of(flow.sides[flow.talk.sender()].route);
    let links = links.map(|l| topology.links[l].name.as_str());
    links.collect::<Vec<_>>().join(", ")
}

/// Whether both routes of a flow lead over links that take no time only.
fn is_timeless(spec: &FlowSpec, (topology, net, routes): Network<'_>) -> bool {
    spec.ways().iter().all(|way| {
        let route = routes.get(way).map(|handle| net.route(*handle));
        route.is_some_and(|route| {
            let mut configs = route.iter().map(|d| config(topology, *d));
            configs.all(takes_no_time)
        })
    })
}

/// Checks whether time creeps because of a flow.
fn check_creep(
    now: Instant,
    flows: &mut Slab<Flow>,
    network: Network<'_>,
) -> Result<(), BuildError> {
    let since = now - CREEP;
    let found = flows.iter_mut().find(|(_, flow)| {
        let is_young = flow.start >= since && now > flow.start;
        is_young && most(flow).is_some_and(|most| flow.talk.delivered() > most)
    });
    match found {
        Some((_, flow)) if is_endless(&flow.spec) && is_timeless(&flow.spec, network) => {
            Err(stands_still(now, flow, network))
        }
        _ => Ok(()),
    }
}

fn stands_still(now: Instant, flow: &Flow, network: Network<'_>) -> BuildError {
    BuildError::Standstill {
        flow: flow.spec.label.to_string(),
        id: flow.id,
        links: links_of(flow, network),
        at_s: now.decimal_secs(),
    }
}

/// Whether packets leave a link direction at the instant at which they enter it.
fn takes_no_time(config: &LinkConfig) -> bool {
    matches!(config.rate, RateModel::Unlimited)
        && matches!(&config.delay, Delay::Constant(d) if d.is_zero())
        && config.jitter.is_none()
}

/// Most bytes that an unlimited flow may receive at one instant; `None` for other flows.
fn most(flow: &Flow) -> Option<u64> {
    if flow.talk.total().is_some() {
        return None;
    }
    let buffer = match &flow.spec.transport {
        TransportSpec::Tcp(t) => t.config.receive_buffer.get(),
        TransportSpec::Mptcp(m) => m.config.tcp.receive_buffer.get(),
        TransportSpec::Quic(q) => q.config.connection_window,
        TransportSpec::Udp => return None,
    };
    Some(buffer.saturating_mul(BUFFERS).clamp(LEAST, MOST))
}
