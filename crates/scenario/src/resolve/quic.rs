//! Resolves QUIC: settings that depend on the route and on other flows.

use std::collections::BTreeMap;
use std::sync::Arc;

use gargalo_quic::{Config, Crypto, Handshake};
use gargalo_settings::support::Map;
use gargalo_units::Instant;
use gargalo_workload::{Carrier, Workload};

use super::Context;
use crate::model::Written;
use crate::resolved::{Flow, Transport};

/// Resolves QUIC over a route of this MTU.
pub(crate) fn resolve(
    written: &Written<Config>,
    mtu: u32,
    at: &str,
    cx: &mut Context<'_>,
) -> Transport {
    let none = Map::new();
    let given = written.json().as_object().unwrap_or(&none);
    let mut config = Config::on_route(given, mtu, &mut cx.files).unwrap_or_else(|error| {
        cx.refuse(&format!("{at}.transport.quic"), error);
        Config::default()
    });
    // Other stacks have congestion controls of their own, perhaps of the same name.
    if config.stack.is_noq() {
        config.complete_congestion();
    }
    Transport::Quic(Arc::new(config))
}

/// Checks what only some workloads and transports can do together.
pub(crate) fn fits(workload: &Workload, transport: &Transport, at: &str, cx: &mut Context<'_>) {
    let quic = match transport {
        Transport::Quic(quic) => Some(&**quic),
        _ => None,
    };
    if let Workload::Request(request) = workload
        && request.needs_streams()
        && quic.is_none()
    {
        let key = match request.give_up {
            Some(_) => "give_up",
            None => "urgency",
        };
        let message = format!("{key} without a stream for each object");
        let help = "write `transport.quic = {}`, or leave it out".to_owned();
        let path = format!("{at}.workload.request.{key}");
        cx.error(&path, "only over QUIC", message, help);
    }
    let Some(quic) = quic else { return };
    let path = format!("{at}.transport.quic");
    if quic.unidirectional && !matches!(workload, Workload::Bulk(_)) {
        let message = format!("unidirectional streams with workload.{}", workload.kind());
        let help = "leave it out: both ends send on a stream there".to_owned();
        let path = format!("{path}.unidirectional");
        cx.error(&path, "only with workload.bulk", message, help);
    }
    if workload.carrier() != Carrier::Datagrams {
        return;
    }
    if quic.paths() > 1 {
        let message = format!("workload.{} over several paths", workload.kind());
        let help = "leave it out: datagrams take one path".to_owned();
        cx.error(&format!("{path}.multipath"), "only streams", message, help);
    }
    if let Workload::Media(media) = workload
        && media.ecn
    {
        let message =
            "marks are those of QUIC's packets, which an application does not see (RFC 9221 §5.3)";
        let help = "leave it out, or write `transport.udp = {}`".to_owned();
        let path = format!("{at}.workload.media.ecn");
        cx.error(&path, "not over QUIC", message.to_owned(), help);
    }
}

/// Checks 0-RTT data: it needs a ticket, which only an earlier connection can have provided.
pub(crate) fn tickets(flows: &[Flow], places: &[usize], cx: &mut Context<'_>) {
    let quic = |f: &'_ Flow| match &f.transport {
        Transport::Quic(q) => Some(Arc::clone(q)),
        _ => None,
    };
    let is_early = |q: &Config| q.handshake == Handshake::ZeroRtt;
    // When the first connection between two hosts with this crypto and these stacks begins, which provides tickets.
    let key = |f: &Flow, q: &Config| {
        let stacks = (q.stack.client.clone(), q.stack.server.clone());
        // A ticket remembers limits of the server, which depend on what the flow uses.
        let datagrams = f.workload.carrier() == Carrier::Datagrams;
        let uses = (datagrams, q.unidirectional && !q.stack.is_noq());
        (f.from, f.to, q.crypto == Crypto::Tls, stacks, uses)
    };
    let mut first = BTreeMap::new();
    if flows.iter().any(|f| quic(f).is_some_and(|q| is_early(&q))) {
        for f in flows {
            let Some(q) = quic(f) else { continue };
            let start = first.entry(key(f, &q)).or_insert(f.start);
            *start = f.start.min(*start);
        }
    }
    let mut reported = None;
    for (f, place) in flows.iter().zip(places) {
        let Some(own) = quic(f).filter(|q| is_early(q)) else {
            continue;
        };
        let is_later = first.get(&key(f, &own)).is_some_and(|s| *s < f.start);
        // Arrivals of one template provide tickets for each other: only the first has none.
        if f.arrivals.is_some() || reported == Some(place) || is_later {
            continue;
        }
        reported = Some(place);
        let message = "0-RTT without an earlier connection: the client has no ticket".to_owned();
        let help = format!(
            "add a QUIC flow between the same hosts, with the same stack and crypto, and datagrams and unidirectional \
             streams as here, that starts before {}",
            f.start.saturating_since(Instant::ZERO)
        );
        let path = format!("flows.{place}.transport.quic.handshake");
        cx.error(&path, "no ticket", message, help);
    }
}
