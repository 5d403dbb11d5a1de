//! Multipath TCP: TCP for its subflows, then what several paths add.

use std::sync::Arc;

use gargalo_cc::Params;
use gargalo_mptcp::{DataNumbers, path_manager, scheduler};
use gargalo_units::{Duration, nearest};

use super::routes::Routes;
use super::{Context, Network, did_you_mean, transport};
use crate::model::{Congestion, DataNumbersName, EndName, Mptcp as Spec, Switch};
use crate::resolved::{AddressChange, Chosen, Mptcp, Transport};

/// The shortest time between probes of a path: the scheduler is not a load generator.
const LEAST_PROBE: Duration = Duration::from_millis(1);

/// Resolves Multipath TCP whose packets must fit this MTU.
pub(crate) fn resolve(spec: &Spec, mtu: u32, at: &str, cx: &mut Context<'_>) -> Transport {
    let at = format!("{at}.transport.mptcp");
    let tcp = transport::tcp(&spec.tcp, mtu, &at, cx);
    if tcp.misbehaviour.is_some() {
        let message = "a misbehaving receiver over MPTCP".to_owned();
        let help = "leave `receiver` out, or write transport.tcp".to_owned();
        cx.error(&format!("{at}.receiver"), "only over TCP", message, help);
    }
    let scheduler = chosen(
        spec.scheduler.as_ref().map(|s| &s.0),
        scheduler::DEFAULT,
        &format!("{at}.scheduler"),
        &|name, params| {
            let known = scheduler::find(name).ok()?;
            Some((known.build)(params).err().map(|e| e.to_string()))
        },
        cx,
    );
    let path_manager = chosen(
        spec.path_manager.as_ref().map(|s| &s.0),
        "",
        &format!("{at}.path_manager"),
        &|name, params| {
            let known = path_manager::find(name).ok()?;
            Some((known.build)(params).err().map(|e| e.to_string()))
        },
        cx,
    );
    let usual = gargalo_mptcp::Config::default();
    let probe_interval = match spec.probe_interval {
        None | Some(Switch::Set(true)) => usual.probe_interval,
        Some(Switch::Set(false)) => None,
        Some(Switch::To(every)) => {
            if every.0 < LEAST_PROBE {
                let message = format!("probe_interval = \"{}\" is too short", every.0);
                let help = "give 1ms or more, or false for no probes".to_owned();
                cx.error(&format!("{at}.probe_interval"), "too short", message, help);
            }
            Some(every.0)
        }
    };
    Transport::Mptcp(Arc::new(Mptcp {
        tcp,
        scheduler,
        path_manager,
        opportunistic_retransmission: spec.opportunistic_retransmission.unwrap_or(true),
        penalisation: spec.penalisation.unwrap_or(true),
        probe_interval,
        checksum: spec.checksum.unwrap_or(false),
        data_numbers: match spec.data_numbers {
            None | Some(DataNumbersName::Short) => DataNumbers::Short,
            Some(DataNumbersName::Long) => DataNumbers::Long,
        },
        max_subflows: spec.max_subflows.unwrap_or(usual.max_subflows as u32),
        links: None,
        backups: Vec::new(),
        gateways: Vec::new(),
        changes: Vec::new(),
    }))
}

/// A name with checked parameters; one that the registry does not know is one that the caller brought
/// along.
fn chosen(
    given: Option<&Congestion>,
    default: &str,
    at: &str,
    check: &dyn Fn(&str, &Params) -> Option<Option<String>>,
    cx: &mut Context<'_>,
) -> Chosen {
    let Some(given) = given else {
        return Chosen {
            name: default.to_owned(),
            params: Params::new(),
        };
    };
    if let Some(Some(wrong)) = check(&given.name, &given.params) {
        let path = format!("{at}.{}", given.name);
        cx.error(&path, "not valid", wrong, String::new());
    }
    Chosen {
        name: given.name.clone(),
        params: given.params.clone(),
    }
}

/// The smallest MTU of all links: subflows may take any of them.
pub(crate) fn mtu(net: &Network) -> u32 {
    let all = net.links.iter().map(|l| l.up.mtu.min(l.down.mtu));
    all.min().unwrap_or(65_535)
}

/// What depends on the hosts: links by name, and the path manager of who does not choose.
pub(crate) fn place(
    spec: &Spec,
    resolved: &mut Mptcp,
    (from, to): (usize, usize),
    at: &str,
    (net, routes): (&Network, &Routes),
    cx: &mut Context<'_>,
) {
    let at = format!("{at}.transport.mptcp");
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
    let list = |given: Option<&Vec<String>>, key: &str, cx: &mut Context<'_>| -> Vec<usize> {
        let given = given.into_iter().flatten().enumerate();
        given
            .filter_map(|(i, n)| find(n, &[from, to], &format!("{at}.{key}.{i}"), cx))
            .collect()
    };
    resolved.backups = list(spec.backup.as_ref(), "backup", cx);
    resolved.links = spec
        .links
        .is_some()
        .then(|| list(spec.links.as_ref(), "links", cx));
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
    for (i, given) in spec.gateways.iter().flatten().enumerate() {
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
    for (i, change) in spec.changes.iter().flatten().enumerate() {
        let at = format!("{at}.changes.{i}");
        let (side, host) = match change.host {
            Some(EndName::To) => (1, to),
            None | Some(EndName::From) => (0, from),
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
                    after: change.after.0,
                    side,
                    link,
                    add,
                });
            }
        }
    }
    resolved.changes.sort_by_key(|c| c.after);
    if spec.path_manager.is_none() {
        let single = of(from).count().min(of(to).count()) <= 1;
        let name = if single {
            "full-mesh"
        } else {
            path_manager::DEFAULT
        };
        name.clone_into(&mut resolved.path_manager.name);
    }
}
