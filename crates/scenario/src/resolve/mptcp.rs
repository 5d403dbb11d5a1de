//! Resolves Multipath TCP: TCP for its subflows, then the settings of several paths.

use std::collections::BTreeSet;
use std::sync::Arc;

use gargalo_cc::{Params, chosen::Chosen};
use gargalo_flow::Misbehaviour;
use gargalo_mptcp::path_manager;
use gargalo_units::nearest;

use super::routes::Routes;
use super::{Context, Network, did_you_mean, tcp};
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
    let mut spec = cx.read(written, &at).unwrap_or_default();
    tcp::settle(&mut spec.tcp, written.json(), mtu, &at, cx);
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

/// The smallest MTU of all links: subflows may use any of them.
pub(crate) fn mtu(net: &Network) -> u32 {
    let all = net.links.iter().map(|l| l.up.mtu.min(l.down.mtu));
    all.min().unwrap_or(65_535)
}

/// Resolves what depends on the hosts: links by name, and the default path manager.
pub(crate) fn place(
    resolved: &mut Mptcp,
    ends: (usize, usize),
    at: &str,
    (net, routes): (&Network, &Routes),
    cx: &mut Context<'_>,
) {
    let at = format!("{at}.transport.mptcp");
    let spec = resolved.spec.clone();
    let place = Place {
        ends: [ends.0, ends.1],
        net,
        routes,
    };
    resolved.backups = place.list(&spec.backup, &format!("{at}.backup"), cx);
    if let Some(given) = &spec.links {
        let at = format!("{at}.links");
        let links = place.list(given, &at, cx);
        if links.len() == given.len() {
            place.reaches_both(&links, &at, cx);
        }
        resolved.links = Some(links);
    }
    resolved.gateways = place.gateways(&spec.gateways, &format!("{at}.gateways"), cx);
    resolved.changes = place.changes(&spec.changes, &format!("{at}.changes"), cx);
    let single = place.ends.iter().any(|h| place.links_of(*h).count() <= 1);
    let usual = match single {
        true => "full-mesh",
        false => path_manager::DEFAULT,
    };
    let chosen = resolved.spec.path_manager.take();
    let mut manager = chosen.unwrap_or_else(|| Chosen::new(usual, Params::new()));
    manager.complete();
    resolved.spec.path_manager = Some(manager);
}

/// The two hosts of a connection in the network.
struct Place<'a> {
    ends: [usize; 2],
    net: &'a Network,
    routes: &'a Routes,
}

impl<'a> Place<'a> {
    fn links_of(&self, host: usize) -> impl Iterator<Item = usize> {
        self.routes.links_of(host)
    }

    fn name(&self, link: usize) -> &'a str {
        &self.net.links[link].name
    }

    /// Finds the link of this name that leads to one of these hosts; errors are reported at `at`.
    fn find(&self, given: &str, hosts: &[usize], at: &str, cx: &mut Context<'_>) -> Option<usize> {
        let own: BTreeSet<usize> = hosts.iter().flat_map(|h| self.links_of(*h)).collect();
        let names = || own.iter().map(|l| self.name(*l));
        if let Some(link) = own.iter().find(|l| self.name(**l) == given) {
            return Some(*link);
        }
        let hosts = hosts
            .iter()
            .map(|h| format!("\"{}\"", self.net.nodes[*h].name));
        let hosts: Vec<_> = hosts.collect();
        let message = match self.net.links.iter().any(|l| l.name == given) {
            true => format!("link \"{given}\" does not lead to {}", hosts.join(" or ")),
            false => format!("there is no link \"{given}\""),
        };
        let help = did_you_mean(nearest(given, names()), "links", names());
        cx.error(at, "no address there", message, help);
        None
    }

    /// Finds links of either host by their names.
    fn list(&self, given: &[String], at: &str, cx: &mut Context<'_>) -> Vec<usize> {
        let given = given.iter().enumerate();
        given
            .filter_map(|(i, name)| self.find(name, &self.ends, &format!("{at}.{i}"), cx))
            .collect()
    }

    /// Reports an error if none of the links leads to one of the hosts.
    fn reaches_both(&self, links: &[usize], at: &str, cx: &mut Context<'_>) {
        for host in self.ends {
            if self.links_of(host).any(|l| links.contains(&l)) {
                continue;
            }
            let message = format!(
                "no usable path: none of these links leads to \"{}\"",
                self.net.nodes[host].name
            );
            let own: Vec<_> = self.links_of(host).map(|l| self.name(l)).collect();
            let help = format!("its links are {}", own.join(", "));
            cx.error(at, "no address", message, help);
        }
    }

    /// Finds routers by their names.
    fn gateways(&self, given: &[String], at: &str, cx: &mut Context<'_>) -> Vec<usize> {
        let mut found = Vec::new();
        for (i, name) in given.iter().enumerate() {
            let mut nodes = self.net.nodes.iter();
            if let Some(node) = nodes.position(|n| n.name == *name && !n.is_host) {
                found.push(node);
                continue;
            }
            let routers = || self.net.nodes.iter().filter(|n| !n.is_host);
            let names = || routers().map(|n| n.name.as_str());
            let help = did_you_mean(nearest(name, names()), "routers", names());
            let message = format!("there is no router \"{name}\"");
            cx.error(&format!("{at}.{i}"), "no such router", message, help);
        }
        found
    }

    /// Resolves changes of addresses, in the order of time.
    fn changes(
        &self,
        given: &[crate::model::AddressChange],
        at: &str,
        cx: &mut Context<'_>,
    ) -> Vec<AddressChange> {
        let mut changes = Vec::new();
        for (i, change) in given.iter().enumerate() {
            let at = format!("{at}.{i}");
            let side = match change.host {
                EndName::From => 0,
                EndName::To => 1,
            };
            let host = self.ends[usize::from(side)];
            if change.add.is_none() && change.remove.is_none() {
                let message = "neither add nor remove".to_owned();
                let help = "give `remove`, `add` or both, each the name of a link".to_owned();
                cx.error(&at, "nothing changes", message, help);
            }
            for (given, key, add) in [
                (&change.remove, "remove", false),
                (&change.add, "add", true),
            ] {
                let Some(given) = given else { continue };
                if let Some(link) = self.find(given, &[host], &format!("{at}.{key}"), cx) {
                    let after = change.after;
                    changes.push(AddressChange {
                        after,
                        side,
                        link,
                        add,
                    });
                }
            }
        }
        changes.sort_by_key(|c| c.after);
        changes
    }
}
