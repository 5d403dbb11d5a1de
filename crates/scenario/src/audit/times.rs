//! Rules about times that are shorter or longer than possible.

use gargalo_units::Duration;
use serde_json::json;

use super::{Case, Finding, subject};
use crate::resolved::Transport;

/// Lateness up to this share of the shortest round trip does not count. A late packet lengthens its round trip, and
/// the rate of a sender falls in proportion: if one in a hundred packets is late by this much, no figure changes by
/// more than the 5% within which the scorecards call two algorithms alike.
const LATE_SHARE: f64 = 0.05;
/// The limit where paths have no delay.
const LATE_LEAST: Duration = Duration::from_millis(2);

pub(super) fn rtt_below_path(case: &mut Case<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    // The machine's clocks are read before and after.
    let tolerance = match case.late {
        Some(_) => Duration::from_micros(100),
        None => Duration::ZERO,
    };
    for f in &case.out.flows {
        let honest = match case.template(f).map(|t| &t.transport) {
            Some(Transport::Tcp(t)) => t.receiver == gargalo_flow::Misbehaviour::None,
            _ => true,
        };
        let Some(rtt) = f.rtt.summary().filter(|_| honest) else {
            continue;
        };
        let (from, to) = case.ends(f);
        let there = case.delay(f, from, to);
        // For datagrams this is the one-way delay.
        let back = match f.one_way {
            true => Duration::ZERO,
            false => case.delay(f, to, from),
        };
        let least = there + back;
        // Retransmitted data is timed by timestamps, whose clock ticks in milliseconds (RFC 7323 §5.4).
        let tick = match f.transport {
            "tcp" | "mptcp" => Duration::from_millis(1),
            _ => Duration::ZERO,
        };
        if rtt.min + tolerance + tick < least {
            let (what, key) = match f.one_way {
                true => ("one-way delay", "delay_min_s"),
                false => ("round-trip time", "rtt_min_s"),
            };
            let text = format!(
                "its least {what} of {} s is below the {} s of propagation on its path",
                rtt.min.decimal_secs(),
                least.decimal_secs()
            );
            let figures = json!({
                key: rtt.min.decimal_secs(), "propagation_s": least.decimal_secs(),
            });
            found.push(Finding::new("rtt-below-path", subject(f), text, figures));
        }
    }
    found
}

pub(super) fn late_packets(case: &mut Case<'_>) -> Vec<Finding> {
    let Some(late) = case.late else {
        return Vec::new();
    };
    let mut shortest: Option<Duration> = None;
    for f in &case.out.flows {
        let (from, to) = f.hosts;
        let rtt = case.delay(f, from, to) + case.delay(f, to, from);
        shortest = Some(shortest.map_or(rtt, |s| s.min(rtt)));
    }
    let bound = match shortest.filter(|s| !s.is_zero()) {
        Some(rtt) => rtt.mul_f64(LATE_SHARE),
        None => LATE_LEAST,
    };
    if late <= bound {
        return Vec::new();
    }
    let text = format!(
        "this machine was too slow for the lab: 1% of the packets left the network more than {:.3} ms late, where \
         {:.3} ms, \
         5% of the shortest round trip, do not matter; stop other programs, or lower the rates",
        late.decimal_secs() * 1e3,
        bound.decimal_secs() * 1e3
    );
    let figures = json!({
        "late_p99_s": late.decimal_secs(), "bound_s": bound.decimal_secs(),
        "rtt_s": shortest.map(Duration::decimal_secs),
    });
    vec![Finding::new("late-packets", String::new(), text, figures)]
}
