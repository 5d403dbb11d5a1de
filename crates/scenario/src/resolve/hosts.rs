//! Resolves the hosts of a flow and its copies.

use std::collections::BTreeMap;

use gargalo_units::nearest;

use super::{Context, Network, did_you_mean};
use crate::model::Flow as Spec;

/// The endpoints of each copy.
pub(crate) fn endpoints(
    spec: &Spec,
    at: &str,
    (net, names): (&Network, &Names<'_>),
    cx: &mut Context<'_>,
) -> Option<Vec<(usize, usize)>> {
    let from = hosts(&spec.from, &format!("{at}.from"), (net, names), cx);
    let to = hosts(&spec.to, &format!("{at}.to"), (net, names), cx);
    let (from, to) = (from?, to?);
    let usual = match (&from, &to) {
        (Hosts::Many(a), Hosts::Many(b)) => a.len().min(b.len()),
        (Hosts::Many(list), _) | (_, Hosts::Many(list)) => list.len(),
        _ => 1,
    };
    let count = spec.count.map_or(usual, |c| c as usize);
    for (hosts, name, key) in [(&from, &spec.from, "from"), (&to, &spec.to, "to")] {
        if let Hosts::Many(list) = hosts
            && list.len() < count
        {
            let message = format!(
                "count = {count}, but only {} hosts are named {name}",
                list.len()
            );
            let help = format!(
                "lower count to {}, or give the topology more hosts",
                list.len()
            );
            cx.error(&format!("{at}.{key}"), "count mismatch", message, help);
            return None;
        }
    }
    let pairs: Vec<_> = (0..count).map(|i| (from.nth(i), to.nth(i))).collect();
    if let Some((a, _)) = pairs.iter().find(|(a, b)| a == b) {
        let message = format!("a flow from \"{}\" to itself", net.nodes[*a].name);
        let help = "name two different hosts".to_owned();
        cx.error(&format!("{at}.to"), "the same host", message, help);
        return None;
    }
    Some(pairs)
}

/// Nodes by name.
pub(crate) struct Names<'a>(BTreeMap<&'a str, usize>);

impl<'a> Names<'a> {
    pub(crate) fn new(net: &'a Network) -> Self {
        let all = net.nodes.iter().enumerate();
        Self(all.map(|(i, n)| (n.name.as_str(), i)).collect())
    }
}

/// One host for all copies, or one for each.
enum Hosts {
    One(usize),
    Many(Vec<usize>),
}

impl Hosts {
    fn nth(&self, i: usize) -> usize {
        match self {
            Self::One(n) => *n,
            // Shorter lists were refused before.
            Self::Many(list) => list.get(i).copied().unwrap_or_default(),
        }
    }
}

fn hosts(
    name: &str,
    at: &str,
    (net, names): (&Network, &Names<'_>),
    cx: &mut Context<'_>,
) -> Option<Hosts> {
    if let Some(n) = names.0.get(name) {
        return Some(Hosts::One(*n));
    }
    if let Some(prefix) = name.strip_suffix('*') {
        // left* is left0, left1 and so on, in numeric order.
        let number = |n: &str| n.strip_prefix(prefix)?.parse::<u32>().ok();
        let mut list: Vec<(u32, usize)> = net
            .nodes
            .iter()
            .enumerate()
            .filter_map(|(i, n)| Some((number(&n.name)?, i)))
            .collect();
        list.sort_unstable();
        if !list.is_empty() {
            return Some(Hosts::Many(list.into_iter().map(|(_, i)| i).collect()));
        }
    }
    let names = || {
        net.nodes
            .iter()
            .filter(|n| n.is_host)
            .map(|n| n.name.as_str())
    };
    // If the topology itself is invalid, its error is enough.
    if !net.nodes.is_empty() {
        let help = did_you_mean(nearest(name, names()), "hosts", names());
        cx.error(
            at,
            "no such host",
            format!("there is no host \"{name}\""),
            help,
        );
    }
    None
}
