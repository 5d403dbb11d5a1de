//! QUIC: what depends on the route and on other flows.

use std::collections::BTreeMap;
use std::sync::Arc;

use gargalo_cc::Params;
use gargalo_cc::chosen::Congestion;
use gargalo_quic::{Config, Crypto, Handshake};
use gargalo_settings::{Files, Setting};
use gargalo_units::Instant;

use super::Context;
use crate::model::Quic as Spec;
use crate::resolved::{Flow, Quic, Transport};

/// Resolves QUIC over a route of this MTU.
pub(crate) fn resolve(spec: &Spec, mtu: u32, at: &str, cx: &mut Context<'_>) -> Transport {
    let at = format!("{at}.transport.quic");
    let config = match Config::on_route(&spec.options, mtu, &mut cx.files) {
        Ok(config) => config,
        Err(error) => {
            cx.refuse(&at, error);
            Config::default()
        }
    };
    let path = format!("{at}.congestion");
    let usual = (config.profile.options)();
    let usual = || {
        usual
            .get("congestion")
            .and_then(|c| Congestion::read(c, &mut Files::default()).ok())
    };
    let given = spec
        .congestion
        .as_ref()
        .map(|c| c.read(&path, cx).unwrap_or_default());
    let Congestion {
        name: congestion,
        params,
        ..
    } = given.or_else(usual).unwrap_or_default();
    let params = reducing_the_window(&congestion, params);
    Transport::Quic(Arc::new(Quic {
        config,
        congestion,
        params,
    }))
}

/// After a loss QUIC keeps a share of its congestion window (RFC 9002 §7.3.2), TCP of what is in flight
/// (RFC 5681 §3.1): said where an algorithm leaves the choice and the scenario does not make it.
fn reducing_the_window(congestion: &str, params: Params) -> Params {
    const KEY: &str = "reduce_from";
    let has_choice = gargalo_cc::find(congestion)
        .is_ok_and(|algorithm| (algorithm.params)().iter().any(|p| p.name == KEY));
    if has_choice && params.iter().all(|(key, _)| key != KEY) {
        return params.with(KEY, "cwnd");
    }
    params
}

/// Data before the handshake needs a ticket, which only an earlier connection can have brought.
pub(crate) fn tickets(flows: &[Flow], places: &[usize], cx: &mut Context<'_>) {
    let quic = |f: &'_ Flow| match &f.transport {
        Transport::Quic(q) => Some(Arc::clone(q)),
        _ => None,
    };
    let is_early = |q: &Quic| q.config.handshake == Handshake::ZeroRtt;
    // When the first connection between two hosts with this crypto begins, which brings tickets.
    let key = |f: &Flow, q: &Quic| (f.from, f.to, q.config.crypto == Crypto::Tls);
    let mut first = BTreeMap::new();
    if flows.iter().any(|f| quic(f).is_some_and(|q| is_early(&q))) {
        for f in flows {
            let Some(q) = quic(f) else { continue };
            let start = first.entry(key(f, &q)).or_insert(f.start);
            *start = f.start.min(*start);
        }
    }
    let mut told = None;
    for (f, place) in flows.iter().zip(places) {
        let Some(own) = quic(f).filter(|q| is_early(q)) else {
            continue;
        };
        let is_later = first.get(&key(f, &own)).is_some_and(|s| *s < f.start);
        // Arrivals of one template bring tickets to each other: only the first has none.
        if f.arrivals.is_some() || told == Some(place) || is_later {
            continue;
        }
        told = Some(place);
        let message = "0-RTT without an earlier connection: the client has no ticket".to_owned();
        let help = format!(
            "add a QUIC flow between the same hosts, with the same crypto, that starts before {}",
            f.start.saturating_since(Instant::ZERO)
        );
        let path = format!("flows.{place}.transport.quic.handshake");
        cx.error(&path, "no ticket", message, help);
    }
}
