//! Rules about the figures of links.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::json;

use super::{Case, FEW_PACKETS, Finding, LITTLE_USE};

pub(super) fn link_above_capacity(case: &Case<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (i, l) in case.out.links.iter().enumerate() {
        let (Some(config), Some(most)) = (case.config(i as u32), l.capacity_bytes) else {
            continue;
        };
        let most = most.get().saturating_add(case.slack(config));
        if l.sent_bytes > most {
            let text = format!("sent {} bytes; its rate allows {most}", l.sent_bytes);
            let figures = json!({ "sent_bytes": l.sent_bytes, "capacity_bytes": most });
            let subject = case.name(i as u32);
            found.push(Finding::new("link-above-capacity", subject, text, figures));
        } else if let Some(used) = l.utilization
            && used > 1.0 + case.trace_slack(i as u32)
        {
            let text = format!("used {used} of its capacity in the measured window, more than all");
            let figures = json!({ "utilization": used });
            let subject = case.name(i as u32);
            found.push(Finding::new("link-above-capacity", subject, text, figures));
        }
    }
    found
}

/// Reports a window so short that one packet more or less changes every figure.
pub(super) fn few_packets(case: &Case<'_>) -> Vec<Finding> {
    let used = |i: usize| case.out.links[i].utilization.filter(|u| *u > 0.0);
    let most = (0..case.out.links.len()).filter(|i| used(*i).is_some());
    let most = most.max_by(|a, b| used(*a).partial_cmp(&used(*b)).unwrap_or(Ordering::Equal));
    let (from, until) = case.measured();
    let Some((i, config)) = most.and_then(|i| Some((i as u32, case.config(i as u32)?))) else {
        return Vec::new();
    };
    let Some(bytes) = config.rate.capacity(from, until) else {
        return Vec::new();
    };
    let packets = bytes.as_f64() / f64::from(config.mtu);
    if packets >= FEW_PACKETS {
        return Vec::new();
    }
    let text = format!(
        "in the {} s that were measured it carries {packets:.1} packets of {} bytes: one packet more or less moves \
         every \
         figure; measure for longer",
        until.saturating_since(from).as_secs_f64(),
        config.mtu
    );
    let figures = json!({ "capacity_bytes": bytes.get(), "mtu_bytes": config.mtu });
    vec![Finding::new("few-packets", case.name(i), text, figures)]
}

/// Reports links that idle because their queues drop or mark early: parameters that do not suit the rate or the round
/// trip, as those of RED.
pub(super) fn idle_behind_early_drops(case: &mut Case<'_>) -> Vec<Finding> {
    let mut wanted = BTreeSet::new();
    let flows = &case.out.flows;
    for f in flows
        .iter()
        .filter(|f| f.completion.is_none() && f.failure.is_none())
    {
        if case.is_endless(f) {
            let (from, to) = case.ends(f);
            wanted.extend(case.route(f, from, to).unwrap_or_default());
        }
    }
    let mut found = Vec::new();
    for i in wanted {
        let l = &case.out.links[i as usize];
        let early = l.dropped_aqm + l.marked_packets;
        let Some(used) = l.utilization.filter(|u| *u < LITTLE_USE) else {
            continue;
        };
        // With as many random losses these may be the cause.
        if early <= l.lost {
            continue;
        }
        let text = format!(
            "used {:.0}% of its rate although a flow without end crosses it: its queue dropped or marked {early} \
             packets before it was full; give its discipline other parameters or the path a shorter round trip",
            100.0 * used
        );
        let figures = json!({
            "utilization": used, "dropped_aqm": l.dropped_aqm, "marked_packets": l.marked_packets,
        });
        found.push(Finding::new(
            "idle-behind-early-drops",
            case.name(i),
            text,
            figures,
        ));
    }
    found
}

pub(super) fn link_not_conserved(case: &Case<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (i, l) in case.out.links.iter().enumerate() {
        let dropped = l.dropped_queue_full + l.dropped_aqm + l.lost + l.too_big;
        let offered = l.offered_packets + l.duplicated_packets;
        let gone = l.sent_packets + dropped + l.queued_packets;
        if offered != gone {
            let text = format!(
                "{offered} packets came to it or were copied, but {} were sent, {dropped} dropped and {} queued",
                l.sent_packets, l.queued_packets
            );
            let figures = json!({
                "offered_packets": l.offered_packets, "duplicated_packets": l.duplicated_packets,
                "sent_packets": l.sent_packets, "dropped_packets": dropped,
                "queued_packets": l.queued_packets,
            });
            let subject = case.name(i as u32);
            found.push(Finding::new("link-not-conserved", subject, text, figures));
        }
    }
    found
}
