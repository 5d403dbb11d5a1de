//! Transports: a profile, then every option given.

use std::sync::Arc;

use gargalo_cc::Params;
use gargalo_sim::Misbehaviour;
use gargalo_tcp::{Config, EcnMode, KeepAlive, PROFILES, Pacing, Recovery};
use gargalo_units::{Bytes, Duration};

use super::{Context, tls};
use crate::model::{
    EcnName, PacingName, PacingSpec, ReceiverName, RecoveryName, Switch, Tcp as Spec,
    Transport as TransportSpec,
};
use crate::quantity::Window;
use crate::resolved::{Tcp, Transport};

/// IPv4 and TCP header without options.
const HEADERS: u32 = 40;
/// Pieces of a divided acknowledgement.
const PIECES: u32 = 4;
/// Timestamps option with padding (RFC 7323 appendix A).
const TIMESTAMPS: u32 = 12;

/// Resolves a transport whose packets must fit the MTU of its route.
pub(crate) fn resolve(raw: &TransportSpec, mtu: u32, at: &str, cx: &mut Context<'_>) -> Transport {
    match raw {
        TransportSpec::Tcp(spec) => {
            let at = format!("{at}.transport.tcp");
            Transport::Tcp(Arc::new(tcp(spec, mtu, &at, cx)))
        }
        TransportSpec::Mptcp(spec) => super::mptcp::resolve(spec, mtu, at, cx),
        TransportSpec::Quic(spec) => super::quic::resolve(spec, mtu, at, cx),
        TransportSpec::Udp(_) => Transport::Udp,
    }
}

/// Resolves TCP, or the subflows of Multipath TCP, whose options are written at `at`.
pub(crate) fn tcp(spec: &Spec, mtu: u32, at: &str, cx: &mut Context<'_>) -> Tcp {
    let profile = spec.profile.as_ref().map_or("modern", |p| p.0.as_str());
    let found = PROFILES.iter().find(|p| p.name == profile);
    let mut config = found.map_or_else(Config::modern, |p| (p.config)());
    options(spec, &mut config);
    config.ecn = ecn(spec, config.ecn);
    sizes(spec, &mut config, mtu, at, cx);
    timeouts(spec, &config, at, cx);
    let tls = tls::resolve(spec.tls, &format!("{at}.tls"), cx);
    let (name, params) = match &spec.congestion {
        Some(c) => (
            c.name.as_str(),
            with_profile(profile, c.name.as_str(), c.params.clone()),
        ),
        None => ("cubic", Default::default()),
    };
    let mss = Bytes::new(u64::from(config.mss));
    let initial_window = mss * u64::from(config.initial_window);
    let path = format!("{at}.congestion.{name}");
    let congestion = congestion(name, &params, mss, initial_window, &path, cx);
    Tcp {
        profile: profile.to_owned(),
        config,
        congestion,
        params,
        tls,
        misbehaviour: match spec.receiver {
            None | Some(ReceiverName::Honest) => None,
            Some(ReceiverName::Optimistic) => Some(Misbehaviour::Optimistic),
            Some(ReceiverName::DividesAcks) => Some(Misbehaviour::DividesAcks(PIECES)),
            Some(ReceiverName::HidesEcn) => Some(Misbehaviour::HidesEcn),
        },
    }
}

/// Checks a congestion control's parameters and returns its name in the registry. A name that the
/// registry does not know is one that the caller brought along.
pub(crate) fn congestion(
    name: &str,
    params: &Params,
    mss: Bytes,
    initial_window: Bytes,
    path: &str,
    cx: &mut Context<'_>,
) -> String {
    let Ok(algorithm) = gargalo_cc::find(name) else {
        return name.to_owned();
    };
    let init = gargalo_cc::Init {
        now: gargalo_units::Instant::ZERO,
        mss,
        initial_window,
        rng: rand_pcg::Pcg64::new(0, 0),
    };
    if let Err(e) = (algorithm.build)(params, init) {
        cx.error(path, "not valid", e.to_string(), String::new());
    }
    algorithm.name.to_owned()
}

/// Options that need no check.
fn options(spec: &Spec, c: &mut Config) {
    macro_rules! set {
        ($($name:ident),*) => { $(if let Some(v) = spec.$name { c.$name = v; })* };
    }
    macro_rules! set_quantity {
        ($($name:ident),*) => { $(if let Some(v) = spec.$name { c.$name = v.0; })* };
    }
    set!(
        timestamps,
        window_scaling,
        sack,
        dsack,
        prr,
        tail_loss_probe,
        frto,
        limited_transmit,
        min_rto_above_srtt,
        syn_retries,
        syn_ack_retries,
        data_retries,
        nagle,
        slow_start_after_idle
    );
    set_quantity!(
        receive_buffer,
        send_buffer,
        min_rto,
        max_rto,
        syn_timeout,
        time_wait
    );
    if spec.send_buffer.is_none() && spec.receive_buffer.is_some() {
        c.send_buffer = c.send_buffer.max(c.receive_buffer);
    }
    // Without selective acknowledgements nothing can report duplicates, find losses by them or probe,
    // unless the user insists.
    if spec.sack == Some(false) {
        if spec.dsack.is_none() {
            c.dsack = false;
        }
        if spec.recovery.is_none() {
            c.recovery = Recovery::NewReno;
            if spec.tail_loss_probe.is_none() {
                c.tail_loss_probe = false;
            }
        }
    }
    // Linux's multiples (tcp_pacing_ss_ratio, tcp_pacing_ca_ratio).
    let window = |slow_start: Option<f64>, avoidance: Option<f64>| Pacing::Window {
        slow_start: slow_start.unwrap_or(2.0),
        avoidance: avoidance.unwrap_or(1.2),
    };
    match spec.pacing {
        None => {}
        Some(PacingSpec::Set(false) | PacingSpec::Named(PacingName::Off)) => {
            c.pacing = Pacing::Off;
        }
        Some(PacingSpec::Named(PacingName::Controller)) => c.pacing = Pacing::Controller,
        Some(PacingSpec::Set(true) | PacingSpec::Named(PacingName::Window)) => {
            c.pacing = window(None, None);
        }
        Some(PacingSpec::Window(m)) => c.pacing = window(m.slow_start, m.avoidance),
    }
    match spec.delayed_ack {
        None | Some(Switch::Set(true)) => {}
        Some(Switch::Set(false)) => c.ack_every = 1,
        Some(Switch::To(d)) => {
            c.ack_every = d.every.unwrap_or(c.ack_every);
            c.ack_timeout = d.timeout.map_or(c.ack_timeout, |q| q.0);
            c.quick_acks = d.quick.unwrap_or(c.quick_acks);
        }
    }
    match spec.recovery {
        None => {}
        Some(RecoveryName::RackTlp) => c.recovery = Recovery::RackTlp,
        Some(RecoveryName::Sack) => c.recovery = Recovery::Sack,
        Some(RecoveryName::Newreno) => c.recovery = Recovery::NewReno,
    }
    if c.recovery != Recovery::RackTlp && spec.tail_loss_probe.is_none() {
        c.tail_loss_probe = false;
    }
    // Linux's defaults (tcp_keepalive_time, _intvl, _probes).
    let usual = KeepAlive {
        idle: Duration::from_secs(7200),
        interval: Duration::from_secs(75),
        probes: 9,
    };
    match spec.keep_alive {
        None => {}
        Some(Switch::Set(on)) => c.keep_alive = on.then_some(usual),
        Some(Switch::To(k)) => {
            c.keep_alive = Some(KeepAlive {
                idle: k.idle.map_or(usual.idle, |q| q.0),
                interval: k.interval.map_or(usual.interval, |q| q.0),
                probes: k.probes.unwrap_or(usual.probes),
            });
        }
    }
}

/// Explicit congestion notification: DCTCP and Prague are nothing without it and need each mark told
/// (RFC 8257 §3.2, RFC 9331 §4.2), whereas the others take what the profile has.
fn ecn(spec: &Spec, profile: EcnMode) -> EcnMode {
    let congestion = spec.congestion.as_ref().map(|c| c.name.as_str());
    let own = match congestion {
        Some("dctcp") => Some(EcnMode::Dctcp),
        Some("prague") => Some(EcnMode::L4s),
        _ => None,
    };
    match spec.ecn {
        Some(Switch::Set(false) | Switch::To(EcnName::Off)) => EcnMode::Off,
        Some(Switch::To(EcnName::Classic)) => EcnMode::Classic,
        Some(Switch::To(EcnName::Dctcp)) => EcnMode::Dctcp,
        Some(Switch::To(EcnName::L4s)) => EcnMode::L4s,
        Some(Switch::Set(true)) => own.unwrap_or(EcnMode::Classic),
        None => own.unwrap_or(profile),
    }
}

/// Sizes in bytes and segments.
fn sizes(spec: &Spec, c: &mut Config, mtu: u32, at: &str, cx: &mut Context<'_>) {
    let headers = HEADERS + if c.timestamps { TIMESTAMPS } else { 0 };
    let room = mtu.saturating_sub(headers).clamp(1, 65_483);
    match spec.mss {
        // What does not fit would never arrive: take what path MTU discovery would find.
        None => c.mss = c.mss.min(u16::try_from(room).unwrap_or(u16::MAX)),
        Some(mss) => match u16::try_from(mss.0.get()) {
            Ok(n) if n >= 1 && u32::from(n) <= room => c.mss = n,
            _ => {
                let message = format!(
                    "mss = \"{}\" does not fit: with {headers} bytes of headers the route's MTU of \
                     {mtu} bytes leaves {room}",
                    mss.0
                );
                let help = format!("give 1B to {room}B, or raise the mtu of the links");
                cx.error(&format!("{at}.mss"), "out of range", message, help);
            }
        },
    }
    if let Some(window) = spec.initial_window {
        let segments = match window.0 {
            Window::Packets(n) => n,
            Window::Bytes(b) => b.get().div_ceil(u64::from(c.mss).max(1)),
        };
        match u32::try_from(segments) {
            Ok(n) if (1..=100_000).contains(&n) => c.initial_window = n,
            _ => {
                let message = format!("an initial_window of {segments} packets is out of range");
                let help = "give 1 packets to 100000 packets".to_owned();
                cx.error(
                    &format!("{at}.initial_window"),
                    "out of range",
                    message,
                    help,
                );
            }
        }
    }
    // The largest window that can be announced: 65535 shifted by 14 (RFC 7323 §2.3).
    let most = Bytes::new(if c.window_scaling {
        65_535 << 14
    } else {
        65_535
    });
    let least = Bytes::new(u64::from(c.mss));
    for (key, given, value, most) in [
        (
            "receive_buffer",
            spec.receive_buffer,
            c.receive_buffer,
            most,
        ),
        (
            "send_buffer",
            spec.send_buffer,
            c.send_buffer,
            Bytes::new(1 << 40),
        ),
    ] {
        if given.is_some() && !(least..=most).contains(&value) {
            let message = format!("{key} = \"{value}\" is out of range");
            let help = format!("give {least} (one segment) to {most}");
            cx.error(&format!("{at}.{key}"), "out of range", message, help);
        }
    }
    c.receive_buffer = c.receive_buffer.min(most);
}

fn timeouts(spec: &Spec, c: &Config, at: &str, cx: &mut Context<'_>) {
    if c.min_rto > c.max_rto {
        let key = if spec.min_rto.is_some() {
            "min_rto"
        } else {
            "max_rto"
        };
        let message = format!("min_rto ({}) is above max_rto ({})", c.min_rto, c.max_rto);
        let help = "200ms and 120s are usual".to_owned();
        cx.error(&format!("{at}.{key}"), "out of order", message, help);
    }
    for (key, value) in [("max_rto", c.max_rto), ("syn_timeout", c.syn_timeout)] {
        if value < Duration::from_millis(1) {
            let message = format!("{key} = \"{value}\" is out of range");
            cx.error(
                &format!("{at}.{key}"),
                "out of range",
                message,
                "give 1ms or more".to_owned(),
            );
        }
    }
    if c.recovery != Recovery::RackTlp && c.tail_loss_probe {
        let message = "tail_loss_probe needs recovery = \"rack-tlp\"".to_owned();
        let help = "set it to false, or choose that recovery".to_owned();
        cx.error(
            &format!("{at}.tail_loss_probe"),
            "not with this recovery",
            message,
            help,
        );
    }
}

/// What a profile means for a congestion control: ns-3's NewReno adds one segment for each
/// acknowledgement in slow start, however much it acknowledges, and does not count bytes.
fn with_profile(profile: &str, name: &str, params: Params) -> Params {
    let is_reno = matches!(name, "reno" | "newreno");
    if profile == "ns3-3.27" && is_reno && params.iter().all(|(key, _)| key != "abc_limit") {
        return params.with("abc_limit", 1.0);
    }
    params
}
