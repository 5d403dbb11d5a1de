//! Multipath TCP: TCP for its subflows, then what several paths add.

use std::sync::Arc;

use gargalo_cc::{Params, chosen::Chosen};
use gargalo_mptcp::path_manager;
use gargalo_sim::Misbehaviour;
use gargalo_units::nearest;

use super::routes::Routes;
use super::{Context, Network, did_you_mean, transport};
use crate::model::{EndName, Mptcp as Spec, Written};
use crate::resolved::{AddressChange, Mptcp, Transport};

/// Resolves Multipath TCP whose packets must fit this MTU.
pub(crate) fn resolve(
    written: &Written<Spec>,
    mtu: u32,
    at: &str,
    cx: &mut Context<'_>,
) -> Transport {
    let at = format!("{at}.transport.mptcp");
    let mut spec = written.read(&at, cx).unwrap_or_default();
    transport::settle(&mut spec.tcp, written.json(), mtu, &at, cx);
    spec.scheduler.complete();
    if spec.tcp.receiver != Misbehaviour::None {
        let message = "a misbehaving receiver over MPTCP".to_owned();
        let help = "leave `receiver` out, or write transport.tcp".to_owned();
        cx.error(&format!("{at}.receiver"), "only over TCP", message, help);
    }
    Transport::Mptcp(Arc::new(Mptcp {
        spec,
        links: None,
        backups: Vec::new(),
        gateways: Vec::new(),
        changes: Vec::new(),
    }))
}

/// The smallest MTU of all links: subflows may take any of them.
pub(crate) fn mtu(net: &Network) -> u32 {
    let all = net.links.iter().map(|l| l.up.mtu.min(l.down.mtu));
    all.min().unwrap_or(65_535)
}

/// What depends on the hosts: links by name, and the path manager of who does not choose.
pub(crate) fn place(
    resolved: &mut Mptcp,
    (from, to): (usize, usize),
    at: &str,
    (net, routes): (&Network, &Routes),
    cx: &mut Context<'_>,
) {
    let at = format!("{at}.transport.mptcp");
    let spec = resolved.spec.clone();
    let of = |host: usize| routes.links_of(host);
    let name = |l: usize| net.links[l].name.as_str();
    let find = |given: &str, hosts: &[usize], at: &str, cx: &mut Context<'_>| {
        let own = || {
            let all = hosts.iter().flat_map(|h| of(*h));
            let sorted: std::collections::BTreeSet<usize> = all.collect();
            sorted.into_iter()
        };
        if let Some(link) = own().find(|l| name(*l) == given) {
            return Some(link);
        }
        let hosts: Vec<_> = hosts
            .iter()
            .map(|h| format!("\"{}\"", net.nodes[*h].name))
            .collect();
        let message = match net.links.iter().any(|l| l.name == given) {
            true => format!("link \"{given}\" does not lead to {}", hosts.join(" or ")),
            false => format!("there is no link \"{given}\""),
        };
        let help = did_you_mean(nearest(given, own().map(name)), "links", own().map(name));
        cx.error(at, "no address there", message, help);
        None
    };
    let list = |given: &[String], key: &str, cx: &mut Context<'_>| -> Vec<usize> {
        let given = given.iter().enumerate();
        given
            .filter_map(|(i, n)| find(n, &[from, to], &format!("{at}.{key}.{i}"), cx))
            .collect()
    };
    resolved.backups = list(&spec.backup, "backup", cx);
    let links = spec.links.as_ref();
    resolved.links = links.map(|l| list(l, "links", cx));
    let all_known = |l: &&Vec<usize>| Some(l.len()) == spec.links.as_ref().map(Vec::len);
    if let Some(links) = resolved.links.as_ref().filter(all_known) {
        for host in [from, to] {
            if !of(host).any(|l| links.contains(&l)) {
                let message = format!(
                    "no usable path: none of these links leads to \"{}\"",
                    net.nodes[host].name
                );
                let own: Vec<_> = of(host).map(name).collect();
                let help = format!("its links are {}", own.join(", "));
                cx.error(&format!("{at}.links"), "no address", message, help);
            }
        }
    }
    for (i, given) in spec.gateways.iter().enumerate() {
        let at = format!("{at}.gateways.{i}");
        let routers = || net.nodes.iter().filter(|n| !n.is_host);
        match net
            .nodes
            .iter()
            .position(|n| n.name == *given && !n.is_host)
        {
            Some(node) => resolved.gateways.push(node),
            None => {
                let names = || routers().map(|n| n.name.as_str());
                let help = did_you_mean(nearest(given, names()), "routers", names());
                let message = format!("there is no router \"{given}\"");
                cx.error(&at, "no such router", message, help);
            }
        }
    }
    for (i, change) in spec.changes.iter().enumerate() {
        let at = format!("{at}.changes.{i}");
        let (side, host) = match change.host {
            EndName::To => (1, to),
            EndName::From => (0, from),
        };
        if change.add.is_none() && change.remove.is_none() {
            let help = "give `remove`, `add` or both, each the name of a link".to_owned();
            cx.error(
                &at,
                "nothing changes",
                "neither add nor remove".to_owned(),
                help,
            );
        }
        for (given, key, add) in [
            (&change.remove, "remove", false),
            (&change.add, "add", true),
        ] {
            let Some(given) = given else { continue };
            if let Some(link) = find(given, &[host], &format!("{at}.{key}"), cx) {
                resolved.changes.push(AddressChange {
                    after: change.after,
                    side,
                    link,
                    add,
                });
            }
        }
    }
    resolved.changes.sort_by_key(|c| c.after);
    let single = of(from).count().min(of(to).count()) <= 1;
    let usual = match single {
        true => "full-mesh",
        false => path_manager::DEFAULT,
    };
    let chosen = resolved.spec.path_manager.take();
    let mut manager = chosen.unwrap_or_else(|| Chosen::new(usual, Params::new()));
    manager.complete();
    resolved.spec.path_manager = Some(manager);
}
