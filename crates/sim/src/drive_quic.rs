//! Drives QUIC flows: the application's byte streams and objects on QUIC streams, datagrams in and out.

use std::net::{SocketAddr, SocketAddrV4};

use gargalo_flow::{FlowSpec, QuicEnd, QuicEvent, QuicPaths, QuicSpec, TransportSpec, rng};
use gargalo_quic::{self as quic, Stack};
use gargalo_units::{Ecn, Instant};
use rand_pcg::Pcg64;

use crate::BuildError;
use crate::address::client_port;
use crate::flow::End;
use crate::packet::{Body, Content as PacketContent, QuicDatagram};
use crate::quic::{QuicSide, local, path, v4};
use crate::recorder::Tables;
use crate::world::World;

/// The well-known port of HTTP/3, by which analysers recognise QUIC.
const SERVER_PORT: u16 = 443;

impl World {
    /// Builds what the flow will need when it starts, so that invalid options are reported now.
    pub(crate) fn check_quic(
        &mut self,
        spec: &FlowSpec,
        quic: &QuicSpec,
    ) -> Result<(), BuildError> {
        for (side, stack) in quic.stacks.iter().enumerate() {
            stack
                .check(&quic.config, spec.uses(), side == 0)
                .map_err(|e| BuildError::Quic {
                    flow: spec.label.to_string(),
                    reason: e.to_string(),
                })?;
        }
        self.quic_routes(spec, quic)?;
        let mut rng = rng::stream(self.settings.seed, "check");
        self.quic_side(spec, quic, 0, 0, &mut rng).map(|_| ())?;
        Ok(())
    }

    /// Creates both ends of a QUIC flow that starts now.
    pub(crate) fn quic_sides(
        &mut self,
        spec: &FlowSpec,
        quic: &QuicSpec,
        id: u64,
        rng: &mut Pcg64,
    ) -> Result<[Box<QuicSide>; 2], BuildError> {
        let [there, back] = self.quic_routes(spec, quic)?;
        let client = self.quic_side(spec, quic, id, 0, rng)?;
        let server = self.quic_side(spec, quic, id, 1, rng)?;
        let net = &self.net;
        let links = |there: &[u32], back: &[u32]| -> Vec<(usize, usize)> {
            let ends = there.iter().zip(back).filter(|_| quic.config.paths() > 1);
            ends.filter_map(|(a, b)| Some((net.first_link(*a)?, net.first_link(*b)?)))
                .collect()
        };
        let (near, far) = (links(&there, &back), links(&back, &there));
        let (now, verify) = (self.now, self.settings.verify);
        let sides = [(0, client, there, near), (1, server, back, far)];
        Ok(sides.map(|(side, endpoint, routes, links)| {
            let end = QuicEnd::new(endpoint, (id, side), &quic.config, verify, now);
            let paths = QuicPaths::default();
            Box::new(QuicSide {
                end,
                routes,
                links,
                paths,
            })
        }))
    }

    /// The routes of its paths, there and back: those of a connection with several, or those between which its client
    /// moves.
    fn quic_routes(
        &mut self,
        spec: &FlowSpec,
        quic: &QuicSpec,
    ) -> Result<[Vec<u32>; 2], BuildError> {
        let moves = quic.config.migration;
        let moves = moves.is_some_and(|m| m.change == quic::Change::Path);
        let routes = match quic.config.paths() {
            0 | 1 if moves => self.disjoint_routes(spec.from, spec.to, 2)?,
            0 | 1 => spec.ways().map(|way| vec![self.routes[&way]]),
            n => self.disjoint_routes(spec.from, spec.to, n as usize)?,
        };
        if moves && routes[0].len() < 2 {
            return Err(BuildError::Quic {
                flow: spec.label.to_string(),
                reason:
                    "its migration is to another path, but there is only one between its hosts; \
                         use topology.multipath, or change = \"address\""
                        .to_owned(),
            });
        }
        Ok(routes)
    }

    fn quic_side(
        &mut self,
        spec: &FlowSpec,
        quic: &QuicSpec,
        id: u64,
        side: usize,
        rng: &mut Pcg64,
    ) -> Result<Box<dyn Stack>, BuildError> {
        let failed = |e: quic::Error| BuildError::Quic {
            flow: spec.label.to_string(),
            reason: e.to_string(),
        };
        let realm = match &self.quic {
            Some(realm) => realm.clone(),
            None => {
                let realm = quic::Realm::new(self.settings.seed).map_err(failed)?;
                self.quic.insert(realm).clone()
            }
        };
        let realm = match quic.stacks.iter().any(|stack| stack.needs_ecdsa()) {
            true => realm.with_ecdsa().map_err(failed)?,
            false => realm,
        };
        let client = SocketAddr::V4(local(spec.from, client_port(id), spec.path.into()));
        let server = SocketAddr::V4(local(spec.to, SERVER_PORT, spec.path.into()));
        let mut init = quic::Init {
            now: self.now,
            local: client,
            remote: server,
            rng: rng::part(rng),
            secrets: self.net.capture.is_some() && quic.config.crypto == quic::Crypto::Tls,
            datagrams: spec.uses().datagrams,
            qlog: None,
        };
        if spec.rows
            && self.running
            && let Some(folder) = &self.settings.qlog
        {
            let end = ["client", "server"][side];
            let path = folder.join(format!("flow{id}-{end}.sqlog"));
            let file = std::fs::File::create(&path).map_err(|e| BuildError::Qlog {
                path: path.display().to_string(),
                reason: e.to_string(),
            })?;
            let writer = std::io::BufWriter::new(file);
            init.qlog = Some((Box::new(writer), format!("{} {end}", spec.label)));
        }
        let is_client = side == 0;
        if !is_client {
            (init.local, init.remote) = (server, client);
        }
        let made = quic.stacks[side].end(&realm, &quic.config, init, is_client);
        let mut endpoint = made.map_err(failed)?;
        if (self.recorder.wants_events() || self.recorder.wants_gauges()) && spec.rows {
            endpoint.record_notices();
        }
        Ok(endpoint)
    }

    /// Delivers a datagram.
    pub(crate) fn deliver_quic(
        &mut self,
        slot: u32,
        side: usize,
        datagram: QuicDatagram,
        ecn: Ecn,
    ) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        flow.talk.ce_marks += u64::from(ecn == Ecn::Ce);
        let Some(q) = flow.sides[side].quic() else {
            return;
        };
        let (to, from) = (SocketAddr::V4(datagram.to), SocketAddr::V4(datagram.from));
        q.end
            .endpoint
            .handle(self.now, datagram.payload, ecn, to, from);
        self.after(slot, side);
    }

    /// Changes the address of the client.
    pub(crate) fn migrate(&mut self, slot: u32) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        flow.migrate = Instant::MAX;
        let spec = std::sync::Arc::clone(&flow.spec);
        let TransportSpec::Quic(quic) = &spec.transport else {
            return;
        };
        let old = local(spec.from, client_port(flow.id), spec.path.into());
        let new = match quic.config.migration {
            Some(m) if m.change == quic::Change::Port => {
                SocketAddrV4::new(*old.ip(), old.port() ^ 1)
            }
            Some(m) if m.change == quic::Change::Path => local(spec.from, old.port(), 1),
            // Another address of the same host: 10.128.0.0/9 beside 10.0.0.0/9.
            _ => SocketAddrV4::new((u32::from(*old.ip()) ^ 0x0080_0000).into(), old.port()),
        };
        if let Some(q) = flow.sides[0].quic() {
            q.end.endpoint.migrate(self.now, SocketAddr::V4(new));
            self.after(slot, 0);
        }
    }

    /// Lets one end act; returns when it must be woken, and whether it is over.
    #[inline(never)]
    pub(crate) fn after_quic(
        &mut self,
        slot: u32,
        index: usize,
        mut side: Box<QuicSide>,
    ) -> (Option<Instant>, bool) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(slot) else {
            return (None, false);
        };
        let records = flow.spec.rows && self.recorder.wants_events();
        while let Some(event) = side.end.poll_event(now, &mut flow.talk) {
            match event {
                QuicEvent::Established => {
                    let (from, to) = (flow.spec.from, flow.spec.to);
                    for i in 1..side.links.len() {
                        let near = local(from, client_port(flow.id), i);
                        let far = SocketAddr::V4(local(to, SERVER_PORT, i));
                        let endpoint = &mut side.end.endpoint;
                        endpoint.open_path(now, (*near.ip()).into(), far);
                    }
                }
                QuicEvent::Failed(detail) if records => {
                    self.recorder.event(now, flow.id, "failed", detail);
                }
                QuicEvent::Failed(_) => {}
            }
        }
        side.end.exchange(now, &mut flow.talk);
        for arrived in side.end.recent_datagrams() {
            if flow.spec.rows {
                self.recorder.datagram(now, flow.id, &arrived);
            }
        }
        let sends = index == flow.talk.sender();
        let gauges = self.recorder.wants_gauges() && flow.spec.rows && sends;
        let tables = Tables {
            events: records,
            gauges: gauges && side.links.is_empty(),
        };
        // Before anything is sent: the bytes in flight are those on which the congestion control decided.
        if tables.gauges {
            self.recorder.quic(now, flow.id, tables, &mut side.end);
        }
        let hash = flow.hash(index);
        while let Some(out) = side.end.endpoint.poll_transmit(now) {
            let (Some(from), Some(to)) = (v4(out.local), v4(out.remote)) else {
                continue;
            };
            // Where a client has moved to is in its address; of several paths both ends have theirs.
            let of_path = match index {
                1 if side.links.is_empty() => to,
                _ => from,
            };
            let Some(&route) = side.routes.get(path(of_path)).or(side.routes.first()) else {
                continue;
            };
            let body = Body {
                flow: slot,
                generation: flow.generation,
                side: 1 - index as u8,
                interfaces: (0, 0),
                route,
                content: PacketContent::Quic(QuicDatagram {
                    payload: out.payload,
                    from,
                    to,
                }),
            };
            if let Some(capture) = &mut self.net.capture {
                while let Some(line) = side.end.endpoint.poll_secret() {
                    capture.secret(&line);
                }
            }
            flow.sides[index].wire += self.net.transmit(now, out.ecn, hash, body);
        }
        if sends {
            if !side.links.is_empty() {
                let endpoint = &mut *side.end.endpoint;
                side.paths
                    .rtt_samples(endpoint, |rtt| flow.talk.round_trip(rtt));
            } else if let Some(rtt) = side.end.endpoint.take_rtt_sample() {
                flow.talk.round_trip(rtt);
            }
        }
        if tables.events || tables.gauges {
            self.recorder.quic(now, flow.id, tables, &mut side.end);
        }
        let (due, over) = (side.end.endpoint.poll_timeout(), side.end.is_over());
        flow.sides[index].end = Some(End::Quic(side));
        (due, over)
    }
}
