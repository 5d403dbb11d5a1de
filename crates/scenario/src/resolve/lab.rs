//! Resolves stacks of hosts, programs on them, and settings of the lab.

#[cfg(target_os = "linux")]
use std::collections::{BTreeMap, BTreeSet};

use gargalo_lab::{CommandSpec, Stack, Tuning};
use gargalo_units::{Instant, nearest};

#[cfg(target_os = "linux")]
use super::flows::Expanded;
use super::{Context, did_you_mean};
use crate::model::{Host, Scenario, StackName};
#[cfg(target_os = "linux")]
use crate::resolved::Transport;
use crate::resolved::{Lab, Node};

/// Resolves the settings of the lab.
pub(crate) fn resolve(raw: &Scenario, nodes: &[Node], cx: &mut Context<'_>) -> Lab {
    let lab = raw.lab;
    let usual = Host {
        stack: Some(lab.stack),
        ..Host::default()
    };
    let mut stacks: Vec<Stack> = nodes.iter().map(|_| stack(&usual, &usual)).collect();
    // Patterns before plain names, so that a plain name overrides a pattern.
    let (patterns, plain): (Vec<_>, Vec<_>) = raw.hosts.iter().partition(|(n, _)| n.ends_with('*'));
    for (name, host) in patterns.into_iter().chain(plain) {
        let at = format!("hosts.{name}");
        let found = find(name, nodes);
        if found.is_empty() {
            no_such_host(name, &at, nodes, cx);
        }
        let made = stack(host, &usual);
        if made == Stack::Gargalo && (host.congestion.is_some() || !host.sysctl.is_empty()) {
            let message = format!("host \"{name}\" has settings of the kernel, but not its stack");
            let help = "add `stack = \"kernel\"`".to_owned();
            cx.error(&at, "settings without effect", message, help);
        }
        for node in found {
            stacks[node] = made.clone();
        }
    }
    let mut commands = Vec::new();
    for (i, c) in raw.commands.iter().enumerate() {
        let at = format!("commands.{i}.host");
        let [host] = find(&c.host, nodes)[..] else {
            no_such_host(&c.host, &at, nodes, cx);
            continue;
        };
        if stacks[host] == Stack::Gargalo {
            let message = format!(
                "host \"{}\" has our own stack, which programs cannot use",
                c.host
            );
            let help = format!("add `[hosts.{}]` with `stack = \"kernel\"`", c.host);
            cx.error(&at, "not a kernel's host", message, help);
        }
        commands.push(CommandSpec {
            host: host as u32,
            run: c.run.clone(),
            start: Instant::ZERO + c.start,
            background: c.background,
        });
    }
    Lab {
        stacks,
        commands,
        tuning: Tuning {
            busy_poll: lab.busy_poll,
            cpu: lab.cpu.map(|c| c as usize),
        },
        offload: lab.offload,
    }
}

fn stack(host: &Host, usual: &Host) -> Stack {
    match host.stack.or(usual.stack).unwrap_or(StackName::Gargalo) {
        StackName::Gargalo => Stack::Gargalo,
        StackName::Kernel => Stack::Kernel {
            congestion: host.congestion.clone(),
            settings: host.sysctl.clone().into_iter().collect(),
        },
    }
}

/// Checks that the kernel has the congestion controls that its hosts must run.
#[cfg(target_os = "linux")]
pub(crate) fn ask_kernel(
    raw: &Scenario,
    expanded: &Expanded,
    stacks: &[Stack],
    cx: &mut Context<'_>,
) {
    let mut wanted = BTreeSet::new();
    for (name, host) in &raw.hosts {
        let congestion = host.congestion.as_deref();
        wanted.extend(congestion.map(|c| (c, format!("hosts.{name}.congestion"))));
    }
    for (flow, place) in expanded.flows.iter().zip(&expanded.places) {
        let transport = match flow.transport {
            Transport::Tcp(_) => "tcp",
            Transport::Mptcp(_) => "mptcp",
            Transport::Quic(_) | Transport::Udp => continue,
        };
        if matches!(stacks.get(flow.sender()), Some(Stack::Kernel { .. })) {
            let path = format!("flows.{place}.transport.{transport}.congestion");
            wanted.insert((flow.transport.congestion(), path));
        }
    }
    let mut asked = BTreeMap::new();
    for (name, path) in wanted {
        let answer = asked.entry(name);
        let others = answer.or_insert_with(|| gargalo_lab::congestion_instead_of(name));
        let Some(others) = others else { continue };
        let message = format!("the kernel has no congestion control {name}");
        let help = format!(
            "it has {others}: take one of these, load its module (modprobe tcp_{name}), or give the host \
             stack = \"gargalo\""
        );
        cx.error(&path, "not in this kernel", message, help);
    }
}

/// Indices of the hosts that match a name, or a pattern with `*` at its end.
fn find(name: &str, nodes: &[Node]) -> Vec<usize> {
    let fits = |n: &Node| match name.strip_suffix('*') {
        Some(prefix) => n.name.starts_with(prefix),
        None => n.name == name,
    };
    let hosts = nodes
        .iter()
        .enumerate()
        .filter(|(_, n)| n.is_host && fits(n));
    hosts.map(|(i, _)| i).collect()
}

fn no_such_host(name: &str, at: &str, nodes: &[Node], cx: &mut Context<'_>) {
    let names = || nodes.iter().filter(|n| n.is_host).map(|n| n.name.as_str());
    if nodes.is_empty() {
        return; // if the topology itself is invalid, its error is enough
    }
    let help = if nodes.iter().any(|n| n.name == name) {
        format!("{name} forwards packets of others; name it in topology.graph.hosts")
    } else {
        did_you_mean(nearest(name, names()), "hosts", names())
    };
    let message = format!("there is no host \"{name}\"");
    cx.error(at, "no such host", message, help);
}
