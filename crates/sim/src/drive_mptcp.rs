//! Drives Multipath TCP: segments of all subflows in and out, each by the route between its addresses, and addresses
//! that are added and removed.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use gargalo_flow::{FlowSpec, MptcpSpec, NodeId, Routing, TransportSpec, rng};
use gargalo_mptcp::{self as mptcp, Addresses, Connection, Event, State};
use gargalo_units::{Ecn, Instant};
use gargalo_wire::tcp::Segment;
use rand::Rng;
use rand_pcg::Pcg64;

use crate::BuildError;
use crate::address::{SERVER_PORT, client_port, interface_address};
use crate::flow::End;
use crate::mptcp::{MptcpSide, interface, router_address};
use crate::net::Net;
use crate::packet::{Body, Content as PacketContent};
use crate::streams::Talking;
use crate::world::World;

/// Most interfaces of a host that can be used.
const MOST_INTERFACES: usize = 32;

impl World {
    /// Builds what the flow will need when it starts, so that invalid options are reported now.
    pub(crate) fn check_mptcp(
        &mut self,
        spec: &FlowSpec,
        mptcp: &MptcpSpec,
    ) -> Result<(), BuildError> {
        let mut rng = rng::stream(self.settings.seed, "check");
        self.mptcp_sides(spec, mptcp, 0, &mut rng).map(|_| ())
    }

    /// Creates both ends of a Multipath TCP flow that starts now.
    pub(crate) fn mptcp_sides(
        &mut self,
        spec: &FlowSpec,
        mptcp: &MptcpSpec,
        id: u64,
        rng: &mut Pcg64,
    ) -> Result<[Box<MptcpSide>; 2], BuildError> {
        let failed = |e: mptcp::error::ConfigError| BuildError::Mptcp {
            flow: spec.label.to_string(),
            reason: e.to_string(),
        };
        let hosts = [spec.from, spec.to];
        let links = [(0, 1), (1, 0)].map(|(a, b)| -> Arc<[usize]> {
            let mut all = self.routing.interfaces(hosts[a], hosts[b]);
            all.truncate(MOST_INTERFACES);
            all.into()
        });
        let up = [0, 1].map(|side: usize| -> Vec<bool> {
            let takes_part = |l: &usize| mptcp.links.as_ref().is_none_or(|links| links.contains(l));
            links[side].iter().map(takes_part).collect()
        });
        let names = self.names_of(hosts, &links);
        // The connection is opened between the first interfaces in use.
        let [near, far] = [0, 1].map(|side: usize| up[side].iter().position(|up| *up));
        let (Some(near), Some(far)) = (near, far) else {
            let of = hosts[usize::from(near.is_some())] as usize;
            return Err(BuildError::Mptcp {
                flow: spec.label.to_string(),
                reason: format!("no link of {} takes part", self.topology.nodes[of].name),
            });
        };
        let first = [near as u8, far as u8];
        let init = |side: usize, rng: &mut Pcg64| {
            let of = |l: &usize| links[side].iter().position(|x| x == l);
            let address = |i: usize| IpAddr::from(interface_address(hosts[side], i as u8));
            mptcp::Init {
                key: rng.next_u64(),
                rng: rng::part(rng),
                addresses: (0..up[side].len())
                    .filter(|i| up[side][*i])
                    .map(address)
                    .collect(),
                backups: mptcp.backups.iter().filter_map(of).map(address).collect(),
                gateways: match side {
                    0 => mptcp.gateways.iter().map(|n| router_address(*n)).collect(),
                    _ => Vec::new(),
                },
                names: names.clone(),
            }
        };
        let addresses = Addresses {
            local: SocketAddr::new(
                interface_address(spec.from, first[0]).into(),
                client_port(id),
            ),
            remote: SocketAddr::new(interface_address(spec.to, first[1]).into(), SERVER_PORT),
        };
        let congestion = || Arc::clone(&mptcp.congestion);
        let config = || Arc::clone(&mptcp.config);
        let client = Connection::connect(config(), congestion(), init(0, rng), addresses, self.now)
            .map_err(failed)?;
        let server = Connection::listen(config(), congestion(), init(1, rng)).map_err(failed)?;
        let mut gateways = Vec::new();
        for &node in &mptcp.gateways {
            let mut route = self.route(spec.from, node)?;
            route.extend(self.route(node, spec.to)?);
            let handle = self.net.add_route(&route);
            if let Some(capture) = &mut self.net.capture {
                capture.add_route(handle, spec.from, spec.to);
            }
            gateways.push((node, handle));
        }
        let [client_up, server_up] = up;
        let (a, b) = (spec.from, spec.to);
        let [near, far] = &links;
        Ok([
            MptcpSide::new(client, (a, b), (near, far), client_up, gateways),
            MptcpSide::new(server, (b, a), (far, near), server_up, Vec::new()),
        ]
        .map(Box::new))
    }

    /// The names of the interfaces of two hosts towards each other.
    fn names_of(&mut self, hosts: [NodeId; 2], links: &[Arc<[usize]>; 2]) -> mptcp::Names {
        let topology = &self.topology;
        let made = self.names.entry(hosts).or_insert_with(|| {
            let ends = hosts.iter().zip(links);
            let all = ends.flat_map(|(host, links)| (0..).zip(links.iter()).map(|l| (*host, l)));
            all.map(|(host, (i, link))| {
                let name = topology.links[*link].name.as_str();
                (interface_address(host, i).into(), name.into())
            })
            .collect()
        });
        made.clone()
    }

    /// Delivers a segment.
    #[inline]
    pub(crate) fn deliver_mptcp(
        &mut self,
        (slot, side): (u32, usize),
        (from, to): (u8, u8),
        segment: Segment,
        ecn: Ecn,
    ) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        let Some(m) = flow.sides[side].mptcp() else {
            return;
        };
        if !m.is_up(to) {
            return; // no interface has this address any more
        }
        let addresses = Addresses {
            local: m.address(to, segment.dst_port),
            remote: m.peer_address(from, segment.src_port),
        };
        m.connection.handle(self.now, addresses, segment, ecn);
        self.after(slot, side);
    }

    /// Adds and removes addresses that are due.
    pub(crate) fn change_addresses(&mut self, slot: u32) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        let due = flow.migrate;
        flow.migrate = Instant::MAX;
        let spec = Arc::clone(&flow.spec);
        let TransportSpec::Mptcp(mptcp) = &spec.transport else {
            return;
        };
        let start = flow.start;
        for c in &mptcp.changes {
            let at = start + c.after;
            if at > now {
                flow.migrate = flow.migrate.min(at);
                continue;
            }
            if at < due {
                continue; // already done
            }
            let Some(m) = flow.sides[usize::from(c.side)].mptcp() else {
                continue;
            };
            let Some(i) = m.links.0.iter().position(|l| *l == c.link) else {
                continue;
            };
            let address = interface_address(m.nodes.0, i as u8).into();
            m.up[i] = c.add;
            if c.add {
                let backup = mptcp.backups.contains(&c.link);
                m.connection.add_address(now, address, backup);
            } else {
                m.connection.remove_address(now, address);
            }
        }
        let due = flow.migrate;
        self.arm_app(slot, due);
        for side in [0, 1] {
            self.after(slot, side);
        }
    }

    /// Lets one end act; returns when it must be woken, and whether it is over.
    #[inline(never)]
    pub(crate) fn after_mptcp(
        &mut self,
        slot: u32,
        index: usize,
        mut side: Box<MptcpSide>,
    ) -> (Option<Instant>, bool) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(slot) else {
            return (None, false);
        };
        let records = flow.spec.rows && self.recorder.wants_events();
        let mut talking = Talking {
            talk: &mut flow.talk,
            index,
            now,
            key: self.settings.verify.then_some(flow.id),
        };
        let mut over = false;
        while let Some(event) = side.connection.poll_event() {
            match event {
                Event::SubflowOpened { id, addresses } => {
                    side.opened(id, addresses, now);
                    if records && index == 0 {
                        let detail = side.about(&self.topology, id, addresses);
                        self.recorder.event(now, flow.id, "subflow-opened", detail);
                    }
                }
                Event::SubflowClosed { id, addresses } if records && index == 0 => {
                    let detail = side.about(&self.topology, id, addresses);
                    self.recorder.event(now, flow.id, "subflow-closed", detail);
                }
                Event::FellBack if records => {
                    let detail = String::from(["client", "server"][index]);
                    self.recorder.event(now, flow.id, "fallback", detail);
                }
                other => over |= other.stream().is_some_and(|e| talking.on_event(e)),
            }
        }
        side.out_of_order_max = side.out_of_order_max.max(side.connection.out_of_order());
        talking.exchange(&mut side.connection, over);
        transmit(self, slot, index, &mut side);
        let Some(flow) = self.flows.get_mut(slot) else {
            return (None, false);
        };
        side.note(now);
        if index == flow.talk.sender() {
            while let Some((id, rtt)) = side.connection.take_rtt_sample() {
                flow.talk.rtt.record(rtt);
                if let Some(k) = side.known(id) {
                    k.rtt.record(rtt);
                }
            }
        }
        if records {
            while let Some((subflow, notice)) = side.connection.poll_subflow_notice() {
                let mut detail = format!("subflow={subflow}");
                let more = notice.detail();
                if !more.is_empty() {
                    detail = format!("{detail} {more}");
                }
                self.recorder.event(now, flow.id, notice.kind(), detail);
            }
        }
        // It has those that its configuration asks for.
        while let Some(notice) = side.connection.poll_notice() {
            let (kind, detail) = (notice.kind(), notice.detail());
            self.recorder.event(now, flow.id, kind, detail);
        }
        over |= side.connection.state() == State::TimeWait;
        let due = side.connection.poll_timeout();
        flow.sides[index].end = Some(End::Mptcp(side));
        (due, over)
    }
}

/// Sends the pending segments of one end, each by the route between its addresses.
fn transmit(world: &mut World, slot: u32, index: usize, side: &mut MptcpSide) {
    let now = world.now;
    let Some(flow) = world.flows.get_mut(slot) else {
        return;
    };
    let hash = flow.hash(index);
    let width = side.links.1.len();
    while let Some(out) = side.connection.poll_transmit(now) {
        let (local, remote) = (out.addresses.local, out.addresses.remote);
        let (Some(near), Some(far)) = (interface(local), interface(remote)) else {
            continue;
        };
        let at = usize::from(near) * width + usize::from(far);
        if !side.is_up(near) || usize::from(far) >= width {
            continue;
        }
        let route = match (out.gateway.and_then(|g| side.gateway(g)), side.routes[at]) {
            (Some((_, route)), _) => route,
            (None, Some(None)) => continue,
            (None, Some(Some(route))) => route,
            (None, None) => {
                let from = (side.nodes.0, side.links.0[usize::from(near)]);
                let to = (side.nodes.1, side.links.1[usize::from(far)]);
                let found = interface_route(
                    &mut world.interface_routes,
                    (&mut world.routing, &mut world.net),
                    [from, to],
                );
                side.routes[at] = Some(found);
                let Some(route) = found else { continue };
                route
            }
        };
        let ports = u32::from(local.port()) << 16 | u32::from(remote.port());
        let subflow = (ports ^ (at as u32) << 8).wrapping_mul(0x9e37_79b9);
        let body = Body {
            flow: slot,
            generation: flow.generation,
            side: 1 - index as u8,
            interfaces: (near, far),
            route,
            content: PacketContent::Tcp(out.segment),
        };
        flow.sides[index].wire += world.net.transmit(now, out.ecn, hash ^ subflow, body);
    }
}

/// The handle of the route between two interfaces, if there is a route.
fn interface_route(
    known: &mut std::collections::BTreeMap<[(NodeId, usize); 2], Option<u32>>,
    (routing, net): (&mut Routing, &mut Net),
    ends: [(NodeId, usize); 2],
) -> Option<u32> {
    if let Some(known) = known.get(&ends) {
        return *known;
    }
    let route = routing.between(ends[0], ends[1]);
    let handle = route.map(|route| {
        let handle = net.add_route(&route);
        if let Some(capture) = &mut net.capture {
            capture.add_route(handle, ends[0].0, ends[1].0);
        }
        handle
    });
    known.insert(ends, handle);
    handle
}
