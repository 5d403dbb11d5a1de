//! The auditor of a run: what its own results say against it.
//!
//! A rule is a function that compares figures of the [`Outcome`] with each other and with the resolved
//! scenario. Those of severity `error` hold for every network and transport, so that a finding can only be a fault of
//! ours: tests fail on it. They are bounds, exact but for a packet at each end of a span of time.

mod finding;

use std::collections::{BTreeMap, BinaryHeap};

use gargalo_link::{Displacement, JitterDistribution, LinkConfig};
use gargalo_sim::{FlowResult, Outcome, SubflowSample, Topology};
use gargalo_units::{Bytes, Duration, Instant};
use serde_json::{Value as Json, json};

pub use finding::{CODES, Finding, Severity};

use crate::build::topology;
use crate::resolved::{Flow, Scenario, Transport, Workload};

/// Lateness up to this share of the shortest round trip does not count. A packet that is late is a round trip that
/// is longer, and the rate of a sender falls with it in proportion: one in a hundred packets late by so much
/// moves no figure by more than the 5% within which the scorecards call two algorithms alike.
const LATE_SHARE: f64 = 0.05;
/// Likewise where paths have no delay at all.
const LATE_LEAST: Duration = Duration::from_millis(2);
/// A sender this close to its window is limited by it.
const WINDOW_LIMITED: f64 = 0.75;
/// So many findings of a rule are told one by one.
const MOST: usize = 5;

/// What the rules look at.
struct Case<'a> {
    scenario: &'a Scenario,
    out: &'a Outcome,
    /// Packets late in real time, 99 of 100 less; `None` in the simulator.
    late: Option<Duration>,
    /// Made where the outcome does not know a route.
    topology: Option<Topology>,
    routes: BTreeMap<(u32, u32), Option<Vec<u32>>>,
    /// Directions that leave each node, and least delays, as far as they were asked for.
    leaving: Vec<Vec<u32>>,
    delays: BTreeMap<(u32, u32), Duration>,
}

/// Everything that can be found in a run. `summary` is its summary, `late` how late 99 of 100 packets were at most in the
/// lab.
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
        topology: None,
        routes: BTreeMap::new(),
        leaving: Vec::new(),
        delays: BTreeMap::new(),
    };
    let rules: [Vec<Finding>; 8] = [
        link_above_capacity(&case),
        link_not_conserved(&case),
        goodput_above_capacity(&mut case),
        flow_not_conserved(&case),
        rtt_below_path(&mut case),
        sum_not_conserved(&case, summary),
        ends_in_slow_start(&case),
        late_packets(&mut case),
    ];
    rules.into_iter().flat_map(few).collect()
}

/// The first findings of a rule, and how many more there are.
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

    /// What a flow of the results was made from.
    fn template(&self, f: &FlowResult) -> Option<&Flow> {
        self.scenario.flows.get(f.template as usize)
    }

    /// The host that sent the data, and the one that got it.
    fn ends(&self, f: &FlowResult) -> (u32, u32) {
        match self.template(f).map(|t| &t.workload) {
            Some(Workload::Web(_) | Workload::Video(_) | Workload::Request { .. }) => {
                (f.hosts.1, f.hosts.0)
            }
            _ => f.hosts,
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
        let known = self.out.routes.get(&(from, to));
        if known.is_some() {
            return known.map(Vec::as_slice);
        }
        let topology = self.topology.get_or_insert_with(|| topology(self.scenario));
        let found = self.routes.entry((from, to));
        let found = found.or_insert_with(|| topology.route(from, to).ok());
        found.as_deref()
    }

    /// Bytes that may be beyond a bound: a packet that has begun at each end of the time.
    fn slack(&self, config: &LinkConfig) -> u64 {
        // With offload, what crosses at once is up to 64 KiB.
        let packet = config.mtu.max(if self.late.is_some() { 65_536 } else { 0 });
        2 * u64::from(packet)
    }

    /// Most bytes that can cross a link direction between two instants; `None`: any number.
    fn capacity(&self, direction: u32, from: Instant, to: Instant) -> Option<u64> {
        let config = self.config(direction)?;
        // Opportunities of traces are at whole milliseconds: what begins within one has all of it.
        let from = from - Duration::from_millis(1);
        let bytes = config.rate.capacity(from.min(to), to)?;
        Some(bytes.get().saturating_add(self.slack(config)))
    }

    fn name(&self, direction: u32) -> String {
        let l = &self.out.links[direction as usize];
        format!("link {} {}", l.name, l.direction)
    }

    /// The least propagation delay between two hosts over any links.
    fn least_delay(&mut self, from: u32, to: u32) -> Duration {
        if let Some(known) = self.delays.get(&(from, to)) {
            return *known;
        }
        if self.leaving.is_empty() {
            self.leaving = vec![Vec::new(); self.scenario.nodes.len()];
            for (i, l) in self.scenario.links.iter().enumerate() {
                self.leaving[l.a].push(i as u32 * 2);
                self.leaving[l.b].push(i as u32 * 2 + 1);
            }
        }
        let found = self.search(from, to);
        self.delays.insert((from, to), found);
        found
    }

    fn search(&self, from: u32, to: u32) -> Duration {
        let mut best = vec![u64::MAX; self.leaving.len()];
        let mut queue = BinaryHeap::from([(std::cmp::Reverse(0), from)]);
        while let Some((std::cmp::Reverse(so_far), at)) = queue.pop() {
            if at == to {
                return Duration::from_nanos(so_far);
            }
            if best[at as usize] <= so_far {
                continue;
            }
            best[at as usize] = so_far;
            for &direction in &self.leaving[at as usize] {
                let l = &self.scenario.links[direction as usize / 2];
                let (config, next) = match direction % 2 {
                    0 => (&l.up, l.b),
                    _ => (&l.down, l.a),
                };
                let there = so_far.saturating_add(propagation(config).as_nanos());
                queue.push((std::cmp::Reverse(there), next as u32));
            }
        }
        Duration::ZERO
    }

    /// The least time from one host to the other for a flow: propagation alone.
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
    if let Some(jitter) = config.delay.jitter {
        least = match jitter.distribution {
            // A heavy tail on the right, at most 0.58 scales to the left.
            JitterDistribution::Uniform | JitterDistribution::Pareto => {
                least.saturating_sub(jitter.scale)
            }
            JitterDistribution::Normal => Duration::ZERO,
        };
    }
    match config.reorder.as_ref().map(|r| r.displacement) {
        Some(Displacement::Early(by)) => least.saturating_sub(by),
        _ => least,
    }
}

fn link_above_capacity(case: &Case<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (i, l) in case.out.links.iter().enumerate() {
        let (Some(config), Some(most)) = (case.config(i as u32), l.capacity_bytes) else {
            continue;
        };
        let most = most.get().saturating_add(case.slack(config));
        if l.sent_bytes > most {
            let text = format!("sent {} bytes; its rate allows {most}", l.sent_bytes);
            let figures = json!({ "sent_bytes": l.sent_bytes, "capacity_bytes": most });
            let subject = case.name(i as u32);
            found.push(Finding::new("link-above-capacity", subject, text, figures));
        }
    }
    found
}

fn link_not_conserved(case: &Case<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (i, l) in case.out.links.iter().enumerate() {
        let dropped = l.dropped_queue_full + l.dropped_aqm + l.lost + l.too_big;
        let offered = l.offered_packets + l.duplicated_packets;
        let gone = l.sent_packets + dropped + l.queued_packets;
        if offered != gone {
            let text = format!(
                "{offered} packets came to it or were copied, but {} were sent, {dropped} dropped and {} queued",
                l.sent_packets, l.queued_packets
            );
            let figures = json!({
                "offered_packets": l.offered_packets, "duplicated_packets": l.duplicated_packets,
                "sent_packets": l.sent_packets, "dropped_packets": dropped,
                "queued_packets": l.queued_packets,
            });
            let subject = case.name(i as u32);
            found.push(Finding::new("link-not-conserved", subject, text, figures));
        }
    }
    found
}

fn subject(f: &FlowResult) -> String {
    format!("flow {} ({})", f.id, f.label)
}

fn goodput_above_capacity(case: &mut Case<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    // What flows say came over each link.
    let mut over = vec![0u64; case.out.links.len()];
    for f in &case.out.flows {
        let (from, to) = case.ends(f);
        let delivered = f.delivered.get();
        if let Some(m) = &f.multipath {
            for s in &m.subflows {
                let link = case.scenario.links.get(s.link);
                let sender = from as usize;
                let direction = link.and_then(|l| match (l.a == sender, l.b == sender) {
                    (true, false) => Some(s.link * 2),
                    (false, true) => Some(s.link * 2 + 1),
                    _ => None,
                });
                if let Some(direction) = direction {
                    over[direction] = over[direction].saturating_add(s.delivered.get());
                }
            }
        }
        let Some(route) = case.route(f, from, to).map(<[u32]>::to_vec) else {
            continue;
        };
        for &d in &route {
            over[d as usize] = over[d as usize].saturating_add(delivered);
        }
        let bounds = route.iter();
        let bounds = bounds.filter_map(|&d| Some((case.capacity(d, f.start, f.end)?, d)));
        if let Some((most, d)) = bounds.min()
            && delivered > most
        {
            let text = format!(
                "delivered {delivered} bytes in {} s, in which {} carries {most}",
                f.end.saturating_since(f.start).as_secs_f64(),
                case.name(d),
            );
            let figures = json!({ "delivered_bytes": delivered, "capacity_bytes": most });
            found.push(Finding::new(
                "goodput-above-capacity",
                subject(f),
                text,
                figures,
            ));
        }
    }
    for (i, (l, delivered)) in case.out.links.iter().zip(over).enumerate() {
        if delivered > l.sent_bytes {
            let text = format!(
                "flows that cross it delivered {delivered} bytes, more than the {} that it sent",
                l.sent_bytes
            );
            let figures = json!({ "delivered_bytes": delivered, "sent_bytes": l.sent_bytes });
            let subject = case.name(i as u32);
            found.push(Finding::new(
                "goodput-above-capacity",
                subject,
                text,
                figures,
            ));
        }
    }
    found
}

fn flow_not_conserved(case: &Case<'_>) -> Vec<Finding> {
    let configs = case.scenario.links.iter().flat_map(|l| [&l.up, &l.down]);
    let copies = configs.into_iter().any(|c| c.duplicate > 0.0);
    let mut found = Vec::new();
    for f in &case.out.flows {
        // Datagrams that the network copies arrive more often than they were sent.
        if f.transport == "udp" && copies {
            continue;
        }
        let figures = json!({
            "delivered_bytes": f.delivered.get(), "sent_bytes": f.sent.get(),
            "wire_bytes": f.wire.forward, "sent_packets": f.sent_packets,
            "retransmitted_packets": f.retransmitted_packets,
        });
        // Of programs and kernels in the lab not everything is known.
        let sent = f.sent.get().max(f.wire.forward);
        let mut text = None;
        if sent > 0 && f.delivered.get() > sent {
            text = Some(format!(
                "delivered {} bytes of {sent} sent",
                f.delivered.get()
            ));
        }
        // Losses are no bound: a segment that was marked lost, cleared and marked again counts twice.
        if f.retransmitted_packets > f.sent_packets {
            text = Some(format!(
                "repeated {} packets of {} sent",
                f.retransmitted_packets, f.sent_packets
            ));
        }
        if let Some(text) = text {
            found.push(Finding::new(
                "flow-not-conserved",
                subject(f),
                text,
                figures,
            ));
        }
    }
    found
}

fn rtt_below_path(case: &mut Case<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    // Clocks of the machine are read before and after.
    let tolerance = match case.late {
        Some(_) => Duration::from_micros(100),
        None => Duration::ZERO,
    };
    for f in &case.out.flows {
        let honest = match case.template(f).map(|t| &t.transport) {
            Some(Transport::Tcp(t)) => t.misbehaviour.is_none(),
            _ => true,
        };
        let Some(rtt) = f.rtt.summary().filter(|_| honest) else {
            continue;
        };
        let (from, to) = case.ends(f);
        let there = case.delay(f, from, to);
        // Of datagrams it is the time of one way.
        let back = match f.transport {
            "udp" => Duration::ZERO,
            _ => case.delay(f, to, from),
        };
        let least = there + back;
        // What was repeated is timed by timestamps, whose clock ticks in milliseconds (RFC 7323 §5.4).
        let tick = match f.transport {
            "tcp" | "mptcp" => Duration::from_millis(1),
            _ => Duration::ZERO,
        };
        if rtt.min + tolerance + tick < least {
            let text = format!(
                "its least {} of {} s is below the {} s of propagation on its path",
                if f.transport == "udp" {
                    "delay"
                } else {
                    "round-trip time"
                },
                rtt.min.as_secs_f64(),
                least.as_secs_f64()
            );
            let figures = json!({
                "rtt_min_s": rtt.min.as_secs_f64(), "propagation_s": least.as_secs_f64(),
            });
            found.push(Finding::new("rtt-below-path", subject(f), text, figures));
        }
    }
    found
}

fn sum_not_conserved(case: &Case<'_>, summary: &Json) -> Vec<Finding> {
    let figure = |key: &str| summary[key].as_f64();
    let (Some(rate), Some(from), Some(until)) = (
        figure("goodput_bps"),
        figure("measured_from_s"),
        figure("measured_until_s"),
    ) else {
        return Vec::new();
    };
    let bytes = rate * (until - from) / 8.0;
    let rows: u64 = case.out.flows.iter().map(|f| f.delivered.get()).sum();
    let grouped: u64 = case.out.groups.iter().map(|g| g.delivered).sum();
    let most = Bytes::new(rows.saturating_add(grouped)).as_f64();
    // Rates are whole bits per second.
    if bytes <= most + 1.0 + (until - from) / 8.0 {
        return Vec::new();
    }
    let text = format!(
        "the summary's goodput of {rate} bit/s over {} s is more than the {most} bytes that all flows delivered",
        until - from
    );
    let figures = json!({ "goodput_bps": rate, "span_s": until - from, "delivered_bytes": most });
    vec![Finding::new(
        "sum-not-conserved",
        String::new(),
        text,
        figures,
    )]
}

/// Growing since the beginning: a window-based control in its first slow start, or a model-based one that has not
/// found the capacity.
fn is_starting(phase: &str, ssthresh: Option<Bytes>) -> bool {
    phase == "startup" || (phase == "slow-start" && ssthresh.is_none())
}

fn ends_in_slow_start(case: &Case<'_>) -> Vec<Finding> {
    let limited =
        |in_flight: Bytes, cwnd: Bytes| in_flight.as_f64() >= WINDOW_LIMITED * cwnd.as_f64();
    let samples = &case.out.samples;
    let Some(last) = samples.flows.last().map(|s| s.time) else {
        return Vec::new();
    };
    let mut paths: BTreeMap<u64, Vec<&SubflowSample>> = BTreeMap::new();
    for s in samples.subflows.iter().rev().take_while(|s| s.time == last) {
        paths.entry(s.flow).or_default().push(s);
    }
    let mut starting = BTreeMap::new();
    for s in samples.flows.iter().rev().take_while(|s| s.time == last) {
        let grows = match paths.get(&s.flow) {
            Some(paths) => paths
                .iter()
                .all(|p| is_starting(p.phase, p.ssthresh) && limited(p.in_flight, p.cwnd)),
            None => is_starting(s.phase, s.ssthresh) && limited(s.in_flight, s.cwnd),
        };
        if grows && !s.cwnd.is_zero() {
            starting.insert(s.flow, s);
        }
    }
    let flows = case
        .out
        .flows
        .iter()
        .filter(|f| f.completion.is_none() && f.failure.is_none());
    flows
        .filter_map(|f| {
            let endless = match &case.template(f)?.workload {
                Workload::Bulk { bytes } => bytes.is_none(),
                _ => false,
            };
            let s = starting.get(&f.id).filter(|_| endless)?;
            let text = format!(
                "had not left slow start at {} s, with a window of {} bytes that was still growing: its figures are of the start, \
                 not of what follows; give it more time",
                s.time.as_secs_f64(),
                s.cwnd.get()
            );
            let figures = json!({ "time_s": s.time.as_secs_f64(), "cwnd_bytes": s.cwnd.get() });
            Some(Finding::new("ends-in-slow-start", subject(f), text, figures))
        })
        .collect()
}

fn late_packets(case: &mut Case<'_>) -> Vec<Finding> {
    let Some(late) = case.late else {
        return Vec::new();
    };
    let mut shortest: Option<Duration> = None;
    for f in &case.out.flows {
        let (from, to) = f.hosts;
        let rtt = case.delay(f, from, to) + case.delay(f, to, from);
        shortest = Some(shortest.map_or(rtt, |s| s.min(rtt)));
    }
    let bound = match shortest.filter(|s| !s.is_zero()) {
        Some(rtt) => rtt.mul_f64(LATE_SHARE),
        None => LATE_LEAST,
    };
    if late <= bound {
        return Vec::new();
    }
    let text = format!(
        "this machine was too slow for the lab: 1% of the packets left the network more than {:.3} ms late, where {:.3} ms, \
         5% of the shortest round trip, do not matter; stop other programs, or lower the rates",
        late.as_secs_f64() * 1e3,
        bound.as_secs_f64() * 1e3
    );
    let figures = json!({
        "late_p99_s": late.as_secs_f64(), "bound_s": bound.as_secs_f64(),
        "rtt_s": shortest.map(Duration::as_secs_f64),
    });
    vec![Finding::new("late-packets", String::new(), text, figures)]
}
