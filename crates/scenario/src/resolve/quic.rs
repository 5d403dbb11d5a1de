//! QUIC: a profile, then every option given.

use std::collections::BTreeMap;
use std::sync::Arc;

use gargalo_cc::Params;
use gargalo_quic::{AckFrequency, Config, Crypto, PROFILES};
use gargalo_sim::Migration;
use gargalo_units::{Bytes, Duration, Instant};

use super::{Context, transport};
use crate::model::{ChangeName, CryptoName, HandshakeName, OWN, Quic as Spec, Switch};
use crate::quantity::Window;
use crate::resolved::{Flow, Quic, Transport};

/// IPv4 and UDP header.
const HEADERS: u32 = 28;
/// Least UDP payload that a path must carry (RFC 9000 §14).
const LEAST: u16 = 1200;
/// Largest UDP payload that discovery tries unless told otherwise.
const DISCOVERED: u16 = 1452;

/// Most paths of a connection.
const MOST_PATHS: u32 = 8;

/// Resolves QUIC over a route of this MTU.
pub(crate) fn resolve(spec: &Spec, mtu: u32, at: &str, cx: &mut Context<'_>) -> Transport {
    let at = format!("{at}.transport.quic");
    let name = spec.profile.as_ref().map_or("rfc9000", |p| p.0.as_str());
    let profile = PROFILES.iter().find(|p| p.name == name);
    let profile = profile.unwrap_or(&PROFILES[0]);
    let mut config = (profile.config)();
    sizes(spec, &mut config, mtu, &at, cx);
    windows(spec, &mut config, &at, cx);
    options(spec, &mut config, &at, cx);
    let (congestion, params) = match &spec.congestion {
        Some(c) => (c.0.name.as_str(), c.0.params.clone()),
        None => (profile.congestion)(),
    };
    let params = reducing_the_window(congestion, params);
    let congestion = if OWN.contains(&congestion) {
        congestion.to_owned()
    } else {
        let size = Bytes::new(u64::from(config.datagram_size));
        let path = format!("{at}.congestion.{congestion}");
        transport::congestion(congestion, &params, size, config.initial_window, &path, cx)
    };
    let migration = spec.migration.map(|m| Migration {
        after: m.after.0,
        port_only: m.change == Some(ChangeName::Port),
    });
    Transport::Quic(Arc::new(Quic {
        profile: profile.name.to_owned(),
        config,
        congestion,
        params,
        zero_rtt: spec.handshake == Some(HandshakeName::ZeroRtt),
        streams: spec.streams.unwrap_or(1),
        migration,
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

/// Sizes of datagrams.
fn sizes(spec: &Spec, c: &mut Config, mtu: u32, at: &str, cx: &mut Context<'_>) {
    let room = u16::try_from(mtu.saturating_sub(HEADERS)).unwrap_or(u16::MAX);
    let key = format!("{at}.datagram_size");
    if room < LEAST {
        let message = format!(
            "the route's MTU of {mtu} bytes leaves {room} for a datagram, and QUIC needs {LEAST} \
             (RFC 9000 §14)"
        );
        let help = format!(
            "raise the mtu of the links to {}B",
            u32::from(LEAST) + HEADERS
        );
        cx.error(at, "does not fit", message, help);
        return;
    }
    match spec.datagram_size {
        None => c.datagram_size = c.datagram_size.min(room),
        Some(size) => match u16::try_from(size.0.get()) {
            Ok(n) if (LEAST..=room).contains(&n) => c.datagram_size = n,
            Ok(n) if n > room => {
                let message = format!(
                    "datagram_size = \"{}\" does not fit: with {HEADERS} bytes of headers the \
                     route's MTU of {mtu} bytes leaves {room}, so the handshake would never arrive",
                    size.0
                );
                let help = format!(
                    "give {LEAST}B to {room}B and let mtu_discovery find more, or raise the mtu of the links"
                );
                cx.error(&key, "above the path MTU", message, help);
            }
            _ => {
                let message = format!("datagram_size = \"{}\" is out of range", size.0);
                let help = format!("give {LEAST}B (RFC 9000 §14) to {room}B");
                cx.error(&key, "out of range", message, help);
            }
        },
    }
    match spec.mtu_discovery {
        None => {}
        Some(Switch::Set(on)) => {
            c.mtu_discovery = on.then_some(DISCOVERED.max(c.datagram_size));
        }
        Some(Switch::To(most)) => match u16::try_from(most.0.get()) {
            Ok(n) if (c.datagram_size..=65_527).contains(&n) => c.mtu_discovery = Some(n),
            _ => {
                let message = format!("mtu_discovery = \"{}\" is out of range", most.0);
                let help = format!("give {}B (datagram_size) to 65527B", c.datagram_size);
                let key = format!("{at}.mtu_discovery");
                cx.error(&key, "out of range", message, help);
            }
        },
    }
}

/// Congestion and flow-control windows.
fn windows(spec: &Spec, c: &mut Config, at: &str, cx: &mut Context<'_>) {
    let datagram = u64::from(c.datagram_size);
    let bytes = |w: Window| match w {
        Window::Packets(n) => Bytes::new(n.saturating_mul(datagram)),
        Window::Bytes(b) => b,
    };
    if let Some(w) = spec.initial_window {
        c.initial_window = bytes(w.0);
    }
    if let Some(w) = spec.max_window {
        c.max_window = Some(bytes(w.0));
    }
    let (least, most) = (Bytes::new(2 * datagram), Bytes::new(1 << 40));
    let mut check = |key: &str, value: Bytes| {
        if !(least..=most).contains(&value) {
            let message = format!("{key} = \"{value}\" is out of range");
            let help = format!("give {least} (two datagrams, RFC 9002 §7.2) to {most}");
            cx.error(&format!("{at}.{key}"), "out of range", message, help);
        }
    };
    check("initial_window", c.initial_window);
    if let Some(w) = c.max_window {
        check("max_window", w);
    }
    for (key, given, place) in [
        ("stream_window", spec.stream_window, &mut c.stream_window),
        (
            "connection_window",
            spec.connection_window,
            &mut c.connection_window,
        ),
        ("send_window", spec.send_window, &mut c.send_window),
    ] {
        if let Some(w) = given {
            check(key, w.0);
            *place = w.0.get();
        }
    }
}

/// The rest.
fn options(spec: &Spec, c: &mut Config, at: &str, cx: &mut Context<'_>) {
    if let Some(crypto) = spec.crypto {
        c.crypto = match crypto {
            CryptoName::Tls => Crypto::Tls,
            CryptoName::Null => Crypto::Null,
        };
    }
    if let Some(ack) = spec.ack {
        c.ack_frequency = Some(AckFrequency {
            // The transport parameter counts packets that may wait: one less than "each n-th".
            threshold: ack.every.unwrap_or(2).saturating_sub(1),
            max_delay: ack.max_delay.map(|q| q.0),
            reordering: ack.reordering.unwrap_or(3),
        });
        if ack
            .max_delay
            .is_some_and(|q| q.0 < Duration::from_millis(1))
        {
            let message = "max_delay is below a millisecond, QUIC's least timer".to_owned();
            let help = "give 1ms or more (RFC 9002 §6.1.2)".to_owned();
            cx.error(&format!("{at}.ack.max_delay"), "too short", message, help);
        }
    }
    match spec.multipath {
        None | Some(Switch::Set(false)) => {}
        Some(Switch::Set(true)) => c.paths = MOST_PATHS,
        Some(Switch::To(n)) if (1..=MOST_PATHS).contains(&n) => c.paths = n,
        Some(Switch::To(n)) => {
            let message = format!("multipath = {n} is out of range");
            let help = format!("give 1 to {MOST_PATHS}");
            cx.error(&format!("{at}.multipath"), "out of range", message, help);
        }
    }
    if c.paths > 1 && spec.migration.is_some() {
        let message = "migration of a connection with several paths".to_owned();
        let help = "leave one of multipath and migration out".to_owned();
        cx.error(&format!("{at}.migration"), "one too many", message, help);
    }
    c.pacing = spec.pacing.unwrap_or(c.pacing);
    c.ecn = spec.ecn.unwrap_or(c.ecn);
    c.packet_threshold = spec.packet_threshold.unwrap_or(c.packet_threshold);
    c.time_threshold = spec.time_threshold.map_or(c.time_threshold, |x| x as f32);
    if let Some(timeout) = spec.idle_timeout {
        if !(Duration::from_millis(10)..=Duration::from_secs(86_400)).contains(&timeout.0) {
            let message = format!("idle_timeout = \"{}\" is out of range", timeout.0);
            let help = "give 10ms to 86400s".to_owned();
            cx.error(&format!("{at}.idle_timeout"), "out of range", message, help);
        }
        c.idle_timeout = Some(timeout.0);
    }
}

/// Data before the handshake needs a ticket, which only an earlier connection can have brought.
pub(crate) fn tickets(flows: &[Flow], places: &[usize], cx: &mut Context<'_>) {
    let quic = |f: &'_ Flow| match &f.transport {
        Transport::Quic(q) => Some(Arc::clone(q)),
        _ => None,
    };
    // When the first connection between two hosts with this crypto begins, which brings tickets.
    let key = |f: &Flow, q: &Quic| (f.from, f.to, q.config.crypto == Crypto::Tls);
    let mut first = BTreeMap::new();
    if flows.iter().any(|f| quic(f).is_some_and(|q| q.zero_rtt)) {
        for f in flows {
            let Some(q) = quic(f) else { continue };
            let start = first.entry(key(f, &q)).or_insert(f.start);
            *start = f.start.min(*start);
        }
    }
    let mut told = None;
    for (f, place) in flows.iter().zip(places) {
        let Some(own) = quic(f).filter(|q| q.zero_rtt) else {
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
