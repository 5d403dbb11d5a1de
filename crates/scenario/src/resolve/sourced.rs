//! Resolves flows that are sources: web, ftp and mix become one flow for each part and direction, and constant bit
//! rate one for each pair of hosts.

use std::sync::Arc;

use gargalo_settings::{Error, Setting};
use gargalo_sim::IPV4_HEADER;
use gargalo_sim::UDP_HEADER;
use gargalo_units::{Bytes, Rate};
use gargalo_workload::mix::Mix;
use gargalo_workload::plan::Demand;
use gargalo_workload::{Cbr, Workload};

use super::routes::Routes;
use super::sources::{self, Part};
use super::{Context, Network};
use crate::model::Flow as Spec;
use crate::resolved::{Flow, Group, Loaded, Source, Transport};

/// The default label.
pub(crate) fn label(spec: &Spec) -> &'static str {
    match spec.workload {
        Workload::Mix(_) => "background",
        _ => spec.workload.kind(),
    }
}

/// Groups with their flows.
pub(crate) type Made = Vec<(Group, Vec<Flow>)>;
type Window = (gargalo_units::Instant, gargalo_units::Instant);

/// Expands a source into flows with their groups, in order; the caller sets identifiers and indices.
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
    let part = match &spec.workload {
        Workload::Web(w) => {
            let (number, link) = ((w.sessions, "sessions"), w.link.as_deref());
            let at = format!("{path}.web");
            sources::single(
                number,
                w.load,
                link,
                ends,
                &at,
                (net, routes, common.path),
                cx,
            )
        }
        Workload::Ftp(f) => {
            let (number, link) = ((f.files, "files"), f.link.as_deref());
            let at = format!("{path}.ftp");
            sources::single(
                number,
                f.load,
                link,
                ends,
                &at,
                (net, routes, common.path),
                cx,
            )
        }
        Workload::Mix(m) => return mix(m, common, ends, window, &path, (net, routes), cx),
        _ => None,
    };
    let workloads = spec.workload.clone().connections();
    let parts = workloads.into_iter().zip(part);
    parts
        .map(|(workload, part)| source(common, workload, part, window))
        .collect()
}

fn source(common: &Flow, workload: Workload, part: Part, window: Window) -> (Group, Vec<Flow>) {
    let (from, to) = part.pairs.first().copied().unwrap_or_default();
    let group = Group {
        label: common.label.clone(),
        workload: workload.kind(),
        congestion: common.transport.congestion().to_owned(),
        window,
        loaded: part.loaded,
    };
    let flow = Flow {
        from,
        to,
        workload: Arc::new(workload),
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
    let (shares, link) = (m.shares, m.link.as_deref());
    let Some(parts) = sources::both(
        m.load,
        link,
        m.direction,
        ends,
        &at,
        (net, routes, common.path),
        cx,
    ) else {
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
        if shares.cbr > 0.0 {
            let (base, loaded) = of("cbr", shares.cbr);
            let load = rate.mul_f64(shares.cbr);
            let made_of = constant(&base, load, m.packet_size, &pairs, window, loaded);
            match made_of {
                Ok(group) => made.push(group),
                Err(e) => cx.refuse(&at, e),
            }
        }
        for (workload, share) in [
            (Workload::Ftp(Box::new(m.ftp.clone())), shares.ftp),
            (
                Workload::Web(Box::new((*m.web).clone().complete())),
                shares.web,
            ),
        ] {
            if share <= 0.0 {
                continue;
            }
            let (base, loaded) = of(workload.kind(), share);
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

/// Expands constant bit rate into a flow for each pair of hosts, with evenly shifted starts.
fn constant(
    base: &Flow,
    load: Rate,
    size: Bytes,
    pairs: &[(usize, usize)],
    window: Window,
    loaded: Option<Loaded>,
) -> Result<(Group, Vec<Flow>), Error> {
    let headers = u64::from(IPV4_HEADER + UDP_HEADER);
    let payload = size.as_f64() / (size.as_f64() + headers as f64);
    let n = pairs.len().max(1) as u64;
    let rate = Rate::from_bps((load.as_bps() as f64 * payload / n as f64).round() as u64);
    if rate.is_zero() {
        let message = "less than a bit per second for each pair of hosts";
        let error = Error::of("load", message);
        return Err(error.help("give more, or fewer hosts"));
    }
    let workload = Arc::new(Workload::Cbr(Cbr::constant(rate, size)));
    workload.check().map_err(|e| Error {
        path: "load".to_owned(),
        ..e
    })?;
    let spacing = size / rate;
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
            workload: Arc::clone(&workload),
            ..base.clone()
        }
    };
    // A flow whose first packet would come after the end sends none.
    let lives = |f: &Flow| f.start == base.start || f.stop.is_none_or(|stop| f.start < stop);
    let flows = pairs.iter().enumerate().map(flow).filter(lives);
    Ok((group, flows.collect()))
}
