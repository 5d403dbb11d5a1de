//! Resolves flows: copies, endpoints, workloads.

use std::sync::Arc;

use gargalo_link::{LinkConfig, QueueLimit, RateModel};
use gargalo_settings::Json;
use gargalo_units::{Duration, Instant, Rate};
use gargalo_workload::{Carrier, Workload};

use super::routes::{self, Routes};
use super::{Context, Network, hosts, mptcp, quic, sourced, transport};
use crate::model::{self, Flow as Spec, RecordName, Scenario, Topology};
use crate::quantity::StartJitter;
use crate::resolved::{Flow, Group, Transport};

/// Most flows of a scenario: a guard against mistakes such as an extra zero.
const MOST_FLOWS: usize = 100_000;

/// The flows of a scenario, with each copy as a flow of its own.
#[derive(Default)]
pub(crate) struct Expanded {
    pub(crate) flows: Vec<Flow>,
    pub(crate) groups: Vec<Group>,
    /// For each flow, the index of the scenario's entry from which it was created.
    pub(crate) places: Vec<usize>,
    /// For each entry of the scenario, its transport with every default written out; null: it could not be resolved.
    pub(crate) transports: Vec<Json>,
}

/// Expands every flow and fills in what depends on the routes.
pub(crate) fn resolve(raw: &Scenario, net: &mut Network, cx: &mut Context<'_>) -> Expanded {
    let mut out = Expanded {
        transports: vec![Json::Null; raw.flows.len()],
        ..Expanded::default()
    };
    let mut routes = Routes::new(net);
    let names = hosts::Names::new(net);
    // Longest base round-trip time of a flow through each link.
    let mut longest = vec![None::<Duration>; net.links.len()];
    for (i, spec) in raw.flows.iter().enumerate() {
        let at = format!("flows.{i}");
        let Some(ends) = hosts::endpoints(spec, &at, (net, &names), cx) else {
            continue;
        };
        let (start, stop) = times(spec, raw, &at, cx);
        let is_source = spec.workload.is_source();
        let workloads = match is_source {
            true => Vec::new(),
            false => workload(spec, &at, cx),
        };
        if out.flows.len() + ends.len() * workloads.len() > MOST_FLOWS {
            let message = format!("there are more than {MOST_FLOWS} flows");
            let help = "for many short flows give one flow `arrivals = { rate = \"1000/s\" }`";
            cx.error(&format!("{at}.count"), "too many", message, help.to_owned());
            break;
        }
        let path = path(spec, &raw.topology, &at, cx);
        let Some(ways) = ways((&ends, path), &at, (net, &mut routes), &mut longest, cx) else {
            continue;
        };
        let mtu = match spec.transport {
            model::Transport::Mptcp(_) => mptcp::mtu(net),
            _ => ways.mtu,
        };
        let mut transport = transport::resolve(&spec.transport, mtu, &at, cx);
        takes_one_path(spec, &transport, &at, cx);
        quic::fits(&spec.workload, &transport, &at, cx);
        let placed = place(&mut transport, &ends, &at, (net, &routes), cx);
        out.transports[i] = transport::written_out(&transport, &placed);
        let common = Flow {
            id: 0,
            label: label(spec, &transport),
            is_labelled: spec.label.is_some(),
            from: 0,
            to: 0,
            path,
            start,
            start_jitter: Duration::ZERO,
            stop,
            transport,
            workload: Arc::default(),
            arrivals: spec.arrivals.as_ref().map(|a| gap(a.rate.0)),
            source: None,
            group: None,
            rows: spec.record.map_or(!is_source, |r| r == RecordName::Full),
        };
        let end = Instant::ZERO + raw.duration;
        let window = (start, stop.unwrap_or(Instant::MAX).min(end));
        if is_source {
            let made = sourced::expand(spec, &common, &ends, window, &at, (net, &mut routes), cx);
            out.add_source(i, made);
            continue;
        }
        let group = out.group(&common, &workloads, window);
        for (n, &(from, to)) in ends.iter().enumerate() {
            let copy = Flow {
                from,
                to,
                start_jitter: match common.arrivals {
                    None => start_jitter(raw.start_jitter, ways.rtts[n], window),
                    Some(_) => Duration::ZERO,
                },
                transport: placed.get(n).unwrap_or(&common.transport).clone(),
                group,
                ..common.clone()
            };
            out.add_copy(i, &copy, &workloads);
        }
    }
    quic::tickets(&out.flows, &out.places, cx);
    bandwidth_delay_products(net, &longest);
    out
}

impl Expanded {
    /// Adds a flow that was created from this entry of the scenario.
    fn add(&mut self, place: usize, flow: Flow) {
        let id = self.flows.len() as u64;
        self.flows.push(Flow { id, ..flow });
        self.places.push(place);
    }

    /// Adds the flows of a source, with their groups.
    fn add_source(&mut self, place: usize, made: sourced::Made) {
        for (group, parts) in made {
            self.groups.push(group);
            for flow in parts {
                let group = Some(self.groups.len() - 1);
                self.add(place, Flow { group, ..flow });
            }
        }
    }

    /// Adds a copy: a flow for each of its connections.
    fn add_copy(&mut self, place: usize, copy: &Flow, workloads: &[Arc<Workload>]) {
        for workload in workloads {
            let workload = Arc::clone(workload);
            let flow = copy.clone();
            self.add(place, Flow { workload, ..flow });
        }
    }

    /// The group of flows that have no rows; `None`: they have rows.
    fn group(
        &mut self,
        common: &Flow,
        workloads: &[Arc<Workload>],
        window: (Instant, Instant),
    ) -> Option<usize> {
        if common.rows {
            return None;
        }
        self.groups.push(Group {
            label: common.label.clone(),
            workload: workloads.first().map_or("", |w| w.kind()),
            congestion: common.transport.congestion().to_owned(),
            window,
            loaded: None,
        });
        Some(self.groups.len() - 1)
    }
}

/// The properties of the routes of an entry's copies.
struct Ways {
    /// The smallest MTU of all routes.
    mtu: u32,
    /// The base round-trip time of each copy.
    rtts: Vec<Duration>,
}

/// Finds the routes of an entry's copies, and records for each of their links the longest round trip over it; `None`:
/// a copy has no route.
fn ways(
    (ends, path): (&[(usize, usize)], u8),
    at: &str,
    (net, routes): (&Network, &mut Routes),
    longest: &mut [Option<Duration>],
    cx: &mut Context<'_>,
) -> Option<Ways> {
    let mut found = Ways {
        mtu: u32::MAX,
        rtts: Vec::with_capacity(ends.len()),
    };
    let mut seen = None;
    for &(from, to) in ends {
        if seen == Some((from, to)) {
            found.rtts.extend(found.rtts.last().copied());
            continue;
        }
        seen = Some((from, to));
        let Some(route) = routes.find(from, to, path) else {
            let (a, b) = (&net.nodes[from].name, &net.nodes[to].name);
            let message = format!("there is no path from \"{a}\" to \"{b}\"");
            let help = "add a link, or correct the flow's hosts; hosts do not forward packets";
            let path = format!("{at}.to");
            cx.error(&path, "not reachable", message, help.to_owned());
            return None;
        };
        found.mtu = found.mtu.min(routes::mtu(net, &route));
        let rtt = routes::base_rtt(net, &route);
        found.rtts.push(rtt);
        for (link, _) in route {
            longest[link] = Some(longest[link].map_or(rtt, |l| l.max(rtt)));
        }
    }
    Some(found)
}

/// The number of the path that an entry's flows take; after an error the usual one.
fn path(spec: &Spec, topology: &Topology, at: &str, cx: &mut Context<'_>) -> u8 {
    let Some(path) = spec.path else { return 0 };
    let (label, message, help) = match topology {
        Topology::Multipath(t) if usize::from(path) < t.paths.len() => return path,
        Topology::Multipath(t) if t.paths.len() == 1 => (
            "no such path",
            format!("there is no path{path}: the only path is path0"),
            "give 0, or leave it out".to_owned(),
        ),
        Topology::Multipath(t) => {
            let last = t.paths.len() - 1;
            (
                "no such path",
                format!("there is no path{path}: the paths are path0 to path{last}"),
                format!("give 0 to {last}, or leave it out: then it is 0"),
            )
        }
        other => (
            "only with topology.multipath",
            format!("path = {path} with topology.{}", other.kind()),
            "leave it out; a choice of paths is in [topology.multipath] only".to_owned(),
        ),
    };
    cx.error(&format!("{at}.path"), label, message, help);
    0
}

/// Reports an error if a path is chosen for a transport that takes several.
fn takes_one_path(spec: &Spec, transport: &Transport, at: &str, cx: &mut Context<'_>) {
    let Some(path) = spec.path else { return };
    let (name, help) = match transport {
        Transport::Mptcp(m) if m.spec.links.is_some() => (
            "Multipath TCP",
            "leave it out: `links` names the paths that the connection takes".to_owned(),
        ),
        Transport::Mptcp(_) => (
            "Multipath TCP",
            format!(
                "leave it out, or name the paths of the connection: `links = [\"path{path}\"]` under transport.mptcp"
            ),
        ),
        Transport::Quic(q) if q.paths() > 1 => (
            "multipath QUIC",
            "leave it out, or `multipath` of transport.quic".to_owned(),
        ),
        _ => return,
    };
    let message = format!("path = {path} for {name}, which takes several paths");
    cx.error(&format!("{at}.path"), "one path of several", message, help);
}

/// The label of an entry in results.
fn label(spec: &Spec, transport: &Transport) -> Arc<str> {
    match &spec.label {
        Some(label) => label.as_str().into(),
        None if spec.workload.is_source() => sourced::label(spec).into(),
        None => transport.label().into(),
    }
}

/// Resolves Multipath TCP between each pair of hosts; for other transports the list is empty.
fn place(
    transport: &mut Transport,
    ends: &[(usize, usize)],
    at: &str,
    net: (&Network, &Routes),
    cx: &mut Context<'_>,
) -> Vec<Transport> {
    let Transport::Mptcp(common) = &*transport else {
        return Vec::new();
    };
    let mut placed: Vec<Transport> = Vec::new();
    let mut last = None;
    for &pair in ends {
        // Copies between the same pair share the result.
        if let (true, Some(same)) = (last == Some(pair), placed.last()) {
            placed.push(same.clone());
            continue;
        }
        last = Some(pair);
        let mut own = (**common).clone();
        mptcp::place(&mut own, pair, at, net, cx);
        placed.push(Transport::Mptcp(Arc::new(own)));
    }
    if let Some(first) = placed.first() {
        *transport = first.clone();
    }
    placed
}

/// Mean time between arrivals; the rate is above zero, which [`times`] has checked.
fn gap(per_second: f64) -> Duration {
    let nanos = 1e9 / per_second;
    // The cast saturates; the least gap is a nanosecond.
    Duration::from_nanos((nanos + 0.5) as u64).max(Duration::from_nanos(1))
}

/// The start jitter of a flow with this round-trip time: at most half of its time.
fn start_jitter(jitter: StartJitter, rtt: Duration, window: (Instant, Instant)) -> Duration {
    let most = Duration::from_nanos(window.1.saturating_since(window.0).as_nanos() / 2);
    match jitter {
        StartJitter::Time(time) => time.min(most),
        // The cast saturates.
        StartJitter::RoundTrips(n) => {
            Duration::from_nanos((rtt.as_nanos() as f64 * n) as u64).min(most)
        }
    }
}

fn bandwidth_delay_products(net: &mut Network, longest: &[Option<Duration>]) {
    for limit in &net.bdp {
        let link = &mut net.links[limit.link];
        let own = super::links::base_delay(&link.up).as_nanos();
        let own = own.saturating_add(super::links::base_delay(&link.down).as_nanos());
        let rtt = longest[limit.link].unwrap_or(Duration::from_nanos(own));
        let config = if limit.down {
            &mut link.down
        } else {
            &mut link.up
        };
        let size = QueueLimit::bdp(capacity(config), rtt, limit.factor);
        if let Some(limit) = config.queue.size() {
            *limit = size;
        }
    }
}

/// The rate used for a bandwidth-delay product.
fn capacity(config: &LinkConfig) -> Rate {
    match &config.rate {
        RateModel::Steps(steps) => steps.iter().map(|s| s.1).max().unwrap_or_default(),
        other => other.mean(),
    }
}

fn times(
    spec: &Spec,
    raw: &Scenario,
    at: &str,
    cx: &mut Context<'_>,
) -> (Instant, Option<Instant>) {
    let start = Instant::ZERO + spec.start;
    let stop = spec.stop.map(|s| Instant::ZERO + s);
    if start.saturating_since(Instant::ZERO) >= raw.duration && !raw.duration.is_zero() {
        let message = format!(
            "the flow starts at or after the end of the run ({})",
            raw.duration
        );
        let help = "start it earlier, or give a longer duration".to_owned();
        cx.error(&format!("{at}.start"), "never starts", message, help);
    }
    if stop.is_some_and(|s| s <= start) {
        let message = "the flow stops before it starts".to_owned();
        let help = "stop is an instant since the start of the run, not a length".to_owned();
        cx.error(&format!("{at}.stop"), "too early", message, help);
    }
    if let Some(arrivals) = &spec.arrivals {
        let rate = arrivals.rate.0;
        if !(1e-6..=1e9).contains(&rate) {
            let message = format!("an arrival rate of {rate}/s is out of range");
            let help = "give 0.000001/s to 1000000000/s".to_owned();
            cx.error(
                &format!("{at}.arrivals.rate"),
                "out of range",
                message,
                help,
            );
        }
    }
    (start, stop)
}

/// The workloads of one copy: several if it has several connections.
fn workload(spec: &Spec, at: &str, cx: &mut Context<'_>) -> Vec<Arc<Workload>> {
    let is_udp = matches!(spec.transport, model::Transport::Udp(_));
    let is_quic = matches!(spec.transport, model::Transport::Quic(_));
    let (workload, path) = (&spec.workload, format!("{at}.workload"));
    let name = workload.kind();
    match workload.carrier() {
        Carrier::Datagrams if !is_udp && !is_quic => {
            let message = format!("workload.{name} over a reliable transport");
            let help = "write `transport.udp = {}`, or `transport.quic = {}` for datagrams of a connection"
                .to_owned();
            cx.error(&path, "only over UDP or QUIC", message, help);
        }
        Carrier::Stream if is_udp => {
            let message = "UDP has no congestion control that could pace this workload".to_owned();
            let help = "use workload.cbr or workload.onoff, or transport.tcp".to_owned();
            cx.error(&path, "not over UDP", message, help);
        }
        _ => {}
    }
    // Packets at a constant rate may arrive and overlap until the flow stops.
    let overlaps = matches!(workload, Workload::Cbr(_) | Workload::OnOff(_));
    if spec.arrivals.is_some() && workload.is_endless() && !overlaps {
        let message = "flows that arrive without end but never finish".to_owned();
        let help = match workload {
            Workload::Bulk(_) => "give `bytes`, like `workload.bulk = { bytes = \"30kB\" }`",
            _ => "give `count`, or a video its `length`, instead of arrivals",
        };
        let path = format!("{path}.{name}");
        cx.error(&path, "out of range", message, help.to_owned());
    }
    let connections = workload.clone().connections();
    connections.into_iter().map(Arc::new).collect()
}
