//! Rules about the bytes that flows and their sum report.

use gargalo_units::Bytes;
use serde_json::{Value as Json, json};

use super::{Case, Finding, subject};

pub(super) fn goodput_above_capacity(case: &mut Case<'_>) -> Vec<Finding> {
    let (mut found, copies) = (Vec::new(), case.copies());
    // The bytes that flows report for each link.
    let mut over = vec![0u64; case.out.links.len()];
    for f in &case.out.flows {
        let (from, to) = case.ends(f);
        let delivered = f.delivered.get();
        if let Some(m) = &f.multipath {
            for s in &m.subflows {
                let link = case.scenario.links.get(s.link);
                let direction = link.and_then(|l| match (l.a == from, l.b == from) {
                    (true, false) => Some(s.link * 2),
                    (false, true) => Some(s.link * 2 + 1),
                    _ => None,
                });
                if let Some(direction) = direction {
                    over[direction] = over[direction].saturating_add(s.delivered.get());
                }
            }
        }
        // Datagrams that a link copies arrive more often than earlier links sent them.
        if f.transport == "udp" && copies {
            continue;
        }
        let Some(route) = case.route(f, from, to).map(<[u32]>::to_vec) else {
            continue;
        };
        for &d in &route {
            over[d as usize] = over[d as usize].saturating_add(delivered);
        }
        // Data delivered in a window may have waited before it, for a hole in the sequence or behind another link: it
        // crossed each link between the flow's start and the end of the window.
        let until = case.measured().1.min(f.end).max(f.start);
        for (delivered, end) in [(delivered, f.end), (f.inside.delivered, until)] {
            let bounds = route.iter();
            let bounds = bounds.filter_map(|&d| Some((case.capacity(d, f.start, end)?, d)));
            if let Some((most, d)) = bounds.min()
                && delivered > most
            {
                let text = format!(
                    "delivered {delivered} bytes in {} s, in which {} carries {most}",
                    end.saturating_since(f.start).as_secs_f64(),
                    case.name(d),
                );
                let figures = json!({ "delivered_bytes": delivered, "capacity_bytes": most });
                let finding = Finding::new("goodput-above-capacity", subject(f), text, figures);
                found.push(finding);
                break;
            }
        }
    }
    for (i, (l, delivered)) in case.out.links.iter().zip(over).enumerate() {
        if delivered > l.sent_bytes {
            let text = format!(
                "flows that cross it delivered {delivered} bytes, more than the {} that it sent",
                l.sent_bytes
            );
            let figures = json!({ "delivered_bytes": delivered, "sent_bytes": l.sent_bytes });
            let subject = case.name(i as u32);
            found.push(Finding::new(
                "goodput-above-capacity",
                subject,
                text,
                figures,
            ));
        }
    }
    found
}

pub(super) fn flow_not_conserved(case: &Case<'_>) -> Vec<Finding> {
    let (mut found, copies) = (Vec::new(), case.copies());
    for f in &case.out.flows {
        // Datagrams that the network copies arrive more often than they were sent.
        if f.transport == "udp" && copies {
            continue;
        }
        let c = &f.counters;
        let figures = json!({
            "delivered_bytes": f.delivered.get(), "sent_bytes": c.sent_bytes.get(),
            "wire_bytes": f.wire.forward, "sent_packets": c.sent_packets.get(),
            "retransmitted_packets": c.retransmitted_packets.get(),
        });
        // For programs and kernels in the lab some figures are unknown.
        let sent = c.sent_bytes.get().unwrap_or(0).max(f.wire.forward);
        let mut text = None;
        if sent > 0 && f.delivered.get() > sent {
            text = Some(format!(
                "delivered {} bytes of {sent} sent",
                f.delivered.get()
            ));
        }
        if f.inside.delivered > f.delivered.get() {
            text = Some(format!(
                "delivered {} bytes in the measured window and {} in all",
                f.inside.delivered,
                f.delivered.get()
            ));
        }
        // Each transmission of our stack is lost at most once.
        if case.late.is_none() && f.transport == "tcp" && c.lost_packets > c.sent_packets {
            text = Some(format!(
                "lost {} packets of {} sent",
                c.lost_packets, c.sent_packets
            ));
        }
        if c.retransmitted_packets > c.sent_packets {
            text = Some(format!(
                "repeated {} packets of {} sent",
                c.retransmitted_packets, c.sent_packets
            ));
        }
        if let Some(text) = text {
            found.push(Finding::new(
                "flow-not-conserved",
                subject(f),
                text,
                figures,
            ));
        }
    }
    found
}

pub(super) fn sum_not_conserved(case: &Case<'_>, summary: &Json) -> Vec<Finding> {
    let figure = |key: &str| summary[key].as_f64();
    let (Some(rate), Some(from), Some(until)) = (
        figure("goodput_bps"),
        figure("measured_from_s"),
        figure("measured_until_s"),
    ) else {
        return Vec::new();
    };
    let bytes = rate * (until - from) / 8.0;
    let rows: u64 = case.out.flows.iter().map(|f| f.inside.delivered).sum();
    let grouped: u64 = case.out.groups.iter().map(|g| g.inside.delivered).sum();
    let most = Bytes::new(rows.saturating_add(grouped)).as_f64();
    // Rates are whole bits per second.
    if bytes <= most + 1.0 + (until - from) / 8.0 {
        return Vec::new();
    }
    let text = format!(
        "the summary's goodput of {rate} bit/s over {} s is more than the {most} bytes that all flows delivered in it",
        until - from
    );
    let figures = json!({ "goodput_bps": rate, "span_s": until - from, "delivered_bytes": most });
    vec![Finding::new(
        "sum-not-conserved",
        String::new(),
        text,
        figures,
    )]
}
