//! Flows that are sources: web, ftp and mix become one flow for each part and direction, and constant
//! bit rate one for each pair of hosts.

use std::sync::Arc;

use gargalo_sim::IPV4_HEADER;
use gargalo_sim::UDP_HEADER;
use gargalo_units::{Bytes, Duration, Instant, Rate};
use gargalo_workload::plan::Demand;

use super::flows::datagrams;
use super::routes::Routes;
use super::sources::{self, Part};
use super::{Context, Network, traffic};
use crate::model::{Flow as Spec, Ftp, Mix, Shares, Web, Workload as WorkloadSpec};
use crate::resolved::{Flow, Group, Loaded, Source, Transport, Workload};

/// Whether a flow is a source.
pub(crate) fn is_source(spec: &Spec) -> bool {
    matches!(
        spec.workload(),
        Some(WorkloadSpec::Web(_) | WorkloadSpec::Ftp(_) | WorkloadSpec::Mix(_))
    )
}

/// Its label where none is given.
pub(crate) fn label(spec: &Spec) -> &'static str {
    match spec.workload() {
        Some(WorkloadSpec::Web(_)) => "web",
        Some(WorkloadSpec::Ftp(_)) => "ftp",
        _ => "background",
    }
}

/// Groups with their flows.
type Made = Vec<(Group, Vec<Flow>)>;
type Window = (Instant, Instant);

/// The flows of a source with their groups, in order; identifiers and indices are the caller's.
pub(crate) fn expand(
    spec: &Spec,
    common: &Flow,
    ends: &[(usize, usize)],
    window: Window,
    at: &str,
    (net, routes): (&Network, &mut Routes),
    cx: &mut Context<'_>,
) -> Made {
    let path = format!("{at}.workload");
    if spec.arrivals.is_some() {
        let message = "a source of flows has arrivals of its own".to_owned();
        let help = "say how much with `load`, `sessions` or `files`".to_owned();
        cx.error(&format!("{at}.arrivals"), "one too many", message, help);
        return Vec::new();
    }
    if matches!(common.transport, Transport::Mptcp(_)) {
        let message = "web, ftp and mix are carried by TCP".to_owned();
        let help = "write `transport.tcp = {}`; objects over MPTCP are workload.request".to_owned();
        cx.error(&path, "not over MPTCP", message, help);
        return Vec::new();
    }
    if matches!(common.transport, Transport::Quic(_)) {
        let message = "web, ftp and mix are carried by TCP".to_owned();
        let help = "write `transport.tcp = {}`; pages over QUIC are workload.request".to_owned();
        cx.error(&path, "not over QUIC", message, help);
        return Vec::new();
    }
    if matches!(common.transport, Transport::Udp) {
        let message = "web, ftp and mix need a reliable transport".to_owned();
        let help =
            "write `transport.tcp = {}`; the constant bit rate of a mix is over UDP by itself";
        cx.error(&path, "not over UDP", message, help.to_owned());
        return Vec::new();
    }
    match spec.workload() {
        Some(WorkloadSpec::Web(w)) => {
            let at = format!("{path}.web");
            let web = {
                let mut refuse = refuser(cx, &path);
                traffic::web(w, "web", &mut refuse)
            };
            let (number, link) = ((w.sessions, "sessions"), w.link.as_deref());
            let part = sources::single(number, w.load, link, ends, &at, (net, routes), cx);
            part.map(|p| source(common, Workload::Web(Box::new(web)), p, window))
                .into_iter()
                .collect()
        }
        Some(WorkloadSpec::Ftp(f)) => {
            let at = format!("{path}.ftp");
            let ftp = {
                let mut refuse = refuser(cx, &path);
                traffic::ftp(f, "ftp", &mut refuse)
            };
            let (number, link) = ((f.files, "files"), f.link.as_deref());
            let part = sources::single(number, f.load, link, ends, &at, (net, routes), cx);
            part.map(|p| source(common, Workload::Ftp(ftp), p, window))
                .into_iter()
                .collect()
        }
        Some(WorkloadSpec::Mix(m)) => mix(m, common, ends, window, &path, (net, routes), cx),
        _ => Vec::new(),
    }
}

fn refuser<'a, 't>(
    cx: &'a mut Context<'t>,
    path: &'a str,
) -> impl FnMut(&str, &str, &str) + use<'a, 't> {
    move |key: &str, message: &str, help: &str| {
        let at = format!("{path}.{key}");
        cx.error(&at, "out of range", message.to_owned(), help.to_owned());
    }
}

fn source(common: &Flow, workload: Workload, part: Part, window: Window) -> (Group, Vec<Flow>) {
    let (from, to) = part.pairs.first().copied().unwrap_or_default();
    let group = Group {
        label: common.label.clone(),
        workload: workload.name(),
        congestion: common.transport.congestion().to_owned(),
        window,
        loaded: part.loaded,
    };
    let flow = Flow {
        from,
        to,
        workload,
        source: Some(Source {
            pairs: part.pairs,
            demand: part.demand,
        }),
        ..common.clone()
    };
    (group, vec![flow])
}

fn mix(
    m: &Mix,
    common: &Flow,
    ends: &[(usize, usize)],
    window: Window,
    path: &str,
    (net, routes): (&Network, &mut Routes),
    cx: &mut Context<'_>,
) -> Made {
    let at = format!("{path}.mix");
    let (web_spec, ftp_spec) = (
        m.web.clone().unwrap_or_default(),
        m.ftp.clone().unwrap_or_default(),
    );
    check_parts(&web_spec, &ftp_spec, &at, cx);
    let shares = shares(m.shares, &at, cx);
    let size = m.packet_size.map_or(Bytes::new(1000), |q| q.0);
    let (web, ftp) = {
        let mut refuse = refuser(cx, path);
        let web = traffic::web(&web_spec, "mix.web", &mut refuse);
        (web, traffic::ftp(&ftp_spec, "mix.ftp", &mut refuse))
    };
    let direction = m.direction.unwrap_or_default();
    let link = m.link.as_deref();
    let Some(parts) = sources::both(m.load.0, link, direction, ends, &at, (net, routes), cx) else {
        return Vec::new();
    };
    let mut made = Vec::new();
    for way in parts {
        let (pairs, rate, opposite) = (way.pairs, way.rate, way.opposite);
        let loaded = way.loaded;
        let name = match loaded {
            Some(Loaded { down: true, .. }) => "down",
            Some(_) => "up",
            None if pairs.as_slice() == ends => "up",
            None => "down",
        };
        let of = |kind: &str, share: f64| {
            let label: Arc<str> = format!("{} {kind} {name}", common.label).into();
            let loaded = loaded.map(|l| Loaded {
                asked: l.asked.mul_f64(share),
                ..l
            });
            (
                Flow {
                    label,
                    ..common.clone()
                },
                loaded,
            )
        };
        if shares.0 > 0.0 {
            let (base, loaded) = of("cbr", shares.0);
            let load = rate.mul_f64(shares.0);
            let mut refuse = refuser(cx, path);
            made.push(constant(
                &base,
                load,
                size,
                &pairs,
                window,
                loaded,
                &mut refuse,
            ));
        }
        for (workload, share) in [
            (Workload::Ftp(ftp), shares.1),
            (Workload::Web(Box::new(web)), shares.2),
        ] {
            if share <= 0.0 {
                continue;
            }
            let (base, loaded) = of(workload.name(), share);
            let demand = Demand::Load {
                forward: rate.mul_f64(share),
                opposite: opposite.mul_f64(share),
            };
            let part = Part {
                pairs: pairs.clone(),
                demand,
                loaded,
            };
            made.push(source(&base, workload, part, window));
        }
    }
    made
}

/// Constant bit rate: a flow for each pair of hosts, evenly out of step.
fn constant(
    base: &Flow,
    load: Rate,
    size: Bytes,
    pairs: &[(usize, usize)],
    window: Window,
    loaded: Option<Loaded>,
    refuse: &mut dyn FnMut(&str, &str, &str),
) -> (Group, Vec<Flow>) {
    let headers = u64::from(IPV4_HEADER + UDP_HEADER);
    let payload = size.as_f64() / (size.as_f64() + headers as f64);
    let n = pairs.len().max(1) as u64;
    let rate = Rate::from_bps((load.as_bps() as f64 * payload / n as f64).round() as u64);
    if rate.is_zero() && !size.is_zero() {
        let message = "less than a bit per second for each pair of hosts";
        refuse("mix.load", message, "give more, or fewer hosts");
    } else {
        datagrams(rate.max(Rate::from_bps(1)), size, "mix", refuse);
    }
    let spacing = if rate.is_zero() {
        Duration::ZERO
    } else {
        size / rate
    };
    let group = Group {
        label: base.label.clone(),
        workload: "cbr",
        congestion: String::new(),
        window,
        loaded,
    };
    let flow = |(i, &(from, to)): (usize, &(usize, usize))| {
        let phase = spacing.mul_f64(i as f64 / n as f64);
        Flow {
            from,
            to,
            start: base.start + phase,
            transport: Transport::Udp,
            workload: Workload::Cbr {
                rate: vec![(Instant::ZERO, rate)],
                packet_size: size,
            },
            ..base.clone()
        }
    };
    // Whose first packet would come after the end has none.
    let lives = |f: &Flow| f.start == base.start || f.stop.is_none_or(|stop| f.start < stop);
    let flows = pairs.iter().enumerate().map(flow).filter(lives);
    (group, flows.collect())
}

fn check_parts(web: &Web, ftp: &Ftp, at: &str, cx: &mut Context<'_>) {
    for (key, is_given) in [
        ("web.sessions", web.sessions.is_some()),
        ("web.load", web.load.is_some()),
        ("web.link", web.link.is_some()),
        ("ftp.files", ftp.files.is_some()),
        ("ftp.load", ftp.load.is_some()),
        ("ftp.link", ftp.link.is_some()),
    ] {
        if is_given {
            let message = format!("{key} in a mix, whose load and shares say how much");
            let help = "take it out".to_owned();
            cx.error(&format!("{at}.{key}"), "said already", message, help);
        }
    }
}

/// Shares of constant bit rate, files and web.
fn shares(spec: Option<Shares>, at: &str, cx: &mut Context<'_>) -> (f64, f64, f64) {
    let Some(s) = spec else {
        return (0.20, 0.24, 0.56);
    };
    let share = |q: Option<crate::quantity::Quantity<crate::quantity::Probability>>| {
        q.map_or(0.0, |q| q.0.0)
    };
    let all = (share(s.cbr), share(s.ftp), share(s.web));
    let sum = all.0 + all.1 + all.2;
    if (sum - 1.0).abs() > 1e-6 {
        let message = format!("the shares add up to {}%", (sum * 1e6).round() / 1e4);
        let help = "cbr, ftp and web together are 100%; what is not given is nothing".to_owned();
        cx.error(&format!("{at}.shares"), "not the whole", message, help);
    }
    all
}
