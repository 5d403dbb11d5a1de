//! Resolves parking lots: a chain of bottlenecks, hosts whose flows cross all of them, and hosts at each of them.

use gargalo_link::Delay;
use gargalo_units::Duration;

use super::links::{Links, base_delay, counts};
use super::{Context, Network};
use crate::model::{Link, ParkingLot};

/// Where it is written.
const AT: &str = "topology.parking-lot";
/// Most pairs of hosts: a guard against mistakes such as an extra zero.
const MOST_PAIRS: u64 = 10_000;

/// A pair of hosts: what follows `left` and `right`, or `cross` and `sink`, in their names, the numbers of their
/// routers, and the link of each to its router.
struct Pair<'a> {
    name: String,
    routers: [usize; 2],
    access: &'a Link,
}

/// Adds hosts, routers and links.
pub(super) fn lower(t: &ParkingLot, net: &mut Network, cx: &mut Context<'_>) {
    let hops = t.hops as usize;
    let at = format!("{AT}.bottleneck");
    if !counts(Some(&t.bottleneck), hops, &at, "hops", cx) || !has_few_pairs(t, cx) {
        return;
    }
    let bottlenecks = Links::of(Some(&t.bottleneck), &at);
    let Some((of_groups, of_hops)) = accesses(t, &bottlenecks, cx) else {
        return;
    };
    let mut long = Vec::new();
    let usual = t.access.clone().unwrap_or_default();
    let pair = |name, access| Pair {
        name,
        routers: [0, hops],
        access,
    };
    if t.groups.is_empty() {
        long.push(pair(String::new(), &usual));
    }
    for (g, (group, access)) in t.groups.iter().zip(&of_groups).enumerate() {
        long.extend((0..group.pairs).map(|i| pair(format!("{g}-{i}"), access)));
    }
    let cross = (0..hops * t.cross.pairs as usize).map(|i| Pair {
        name: i.to_string(),
        routers: [i % hops, i % hops + 1],
        access: &of_hops[i % hops],
    });
    let cross: Vec<Pair<'_>> = cross.collect();
    let mut hosts = |kind: &str, pairs: &[Pair<'_>]| -> Vec<usize> {
        let names = pairs.iter().map(|p| format!("{kind}{}", p.name));
        names.map(|name| net.host(&name)).collect()
    };
    let long_hosts = [hosts("left", &long), hosts("right", &long)];
    let cross_hosts = [hosts("cross", &cross), hosts("sink", &cross)];
    let names = (0..=hops).map(|i| format!("router{i}"));
    let routers: Vec<usize> = names.map(|name| net.router(&name)).collect();
    for (i, ends) in routers.windows(2).enumerate() {
        let (link, at) = bottlenecks.nth(i);
        net.link(&format!("bottleneck{i}"), (ends[0], ends[1]), link, &at);
    }
    let at = format!("{AT}.access");
    for (pairs, [first, second]) in [(&long, long_hosts), (&cross, cross_hosts)] {
        for ((pair, a), b) in pairs.iter().zip(first).zip(second) {
            let [near, far] = pair.routers.map(|r| routers[r]);
            for ends in [(a, near), (far, b)] {
                let name = [ends.0, ends.1]
                    .map(|n| net.nodes[n].name.as_str())
                    .join("-");
                net.link(&name, ends, pair.access, &at);
            }
        }
    }
}

/// The access links of each group, and of the cross traffic at each bottleneck; `None`: an error is reported.
fn accesses(
    t: &ParkingLot,
    bottlenecks: &Links<'_>,
    cx: &mut Context<'_>,
) -> Option<(Vec<Link>, Vec<Link>)> {
    let usual = t.access.clone().unwrap_or_default();
    let asks = t.cross.rtt.is_some() || t.groups.iter().any(|g| g.rtt.is_some());
    let has_delay = [&usual.up, &usual.down]
        .iter()
        .any(|c| c.delay != Delay::default());
    if asks && has_delay {
        let message = "both the delay of the access links and a round trip are given".to_owned();
        let help = "leave `delay` out: it follows from `rtt`; or leave `rtt` out";
        let at = format!("{AT}.access.delay");
        cx.error(&at, "one too many", message, help.to_owned());
        return None;
    }
    let trips = (0..t.hops as usize).map(|i| round_trip(bottlenecks.nth(i).0));
    let trips: Vec<Duration> = trips.collect();
    let all = trips.iter().fold(Duration::ZERO, |sum, trip| sum + *trip);
    let groups = t.groups.iter().enumerate().map(|(g, group)| {
        let (what, at) = ("the chain of bottlenecks", format!("groups.{g}"));
        fits(group.rtt, (all, what), &at, cx)
    });
    let misfits = groups.filter(|fits| !fits).count();
    // The first of the longest.
    let longest = trips
        .iter()
        .enumerate()
        .rev()
        .max_by_key(|(_, trip)| **trip);
    let cross_fits = longest.is_none_or(|(i, trip)| {
        let what = format!("bottleneck{i}");
        fits(t.cross.rtt, (*trip, &what), "cross", cx)
    });
    if misfits > 0 || !cross_fits {
        return None;
    }
    let access = |rtt: Option<Duration>, least: Duration| match rtt {
        Some(rtt) => with_delay(&usual, rtt.saturating_sub(least)),
        None => usual.clone(),
    };
    let groups = t.groups.iter().map(|g| access(g.rtt, all));
    let hops = trips.iter().map(|trip| access(t.cross.rtt, *trip));
    Some((groups.collect(), hops.collect()))
}

/// Whether a round trip is at least that of the bottlenecks on it; otherwise an error is reported.
fn fits(
    rtt: Option<Duration>,
    (least, what): (Duration, &str),
    at: &str,
    cx: &mut Context<'_>,
) -> bool {
    let Some(rtt) = rtt.filter(|rtt| *rtt < least) else {
        return true;
    };
    let message = format!("a round trip of {rtt}, but {what} alone takes {least}");
    let help = format!("give {least} or more, or lower the delay of the bottlenecks");
    cx.error(&format!("{AT}.{at}.rtt"), "too short", message, help);
    false
}

/// The access link of two hosts whose packets spend this much of a round trip on both access links together, rounded
/// down to 4 ns.
fn with_delay(access: &Link, rest: Duration) -> Link {
    let mut link = access.clone();
    let each = Delay::Constant(Duration::from_nanos(rest.as_nanos() / 4));
    link.up.delay = each.clone();
    link.down.delay = each;
    link
}

/// The propagation delay of both directions.
fn round_trip(link: &Link) -> Duration {
    base_delay(&link.up) + base_delay(&link.down)
}

/// Checks the number of pairs of hosts.
fn has_few_pairs(t: &ParkingLot, cx: &mut Context<'_>) -> bool {
    let long: u64 = t.groups.iter().map(|g| u64::from(g.pairs)).sum();
    let cross = u64::from(t.hops) * u64::from(t.cross.pairs);
    let pairs = long + cross;
    if pairs > MOST_PAIRS {
        let message = format!("{pairs} pairs of hosts in all, more than {MOST_PAIRS}");
        let help = "lower `pairs`; many flows may be between two hosts: see `count` of a flow";
        let at = if long > cross {
            "groups"
        } else {
            "cross.pairs"
        };
        cx.error(&format!("{AT}.{at}"), "too many", message, help.to_owned());
    }
    pairs <= MOST_PAIRS
}
