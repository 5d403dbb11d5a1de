//! Sources of flows, calls and videos: every form, and what is refused.

use gargalo_units::Rate;
use gargalo_workload::Workload;
use gargalo_workload::plan::Demand;
use proptest::prelude::*;

use super::grammar::simple;
use super::{bad, ok, set};
use crate::build::{RunOptions, run};
use crate::resolved::Rest;

fn dumbbell(flow: &str) -> String {
    format!(
        r#"duration = "60s"
[topology.dumbbell]
pairs = 4
access = {{ rate = "1Gbit/s" }}
bottleneck = {{ rate = "100Mbit/s", delay = "5ms", down = {{ rate = "50Mbit/s" }} }}
[[flows]]
from = "left*"
to = "right*"
transport.tcp = {{ congestion = "reno" }}
{flow}
"#
    )
}

#[test]
fn a_mix_is_six_parts() {
    let s = ok(&dumbbell(
        r#"workload.mix = { link = "bottleneck", load = "50%" }"#,
    ));
    let labels: Vec<&str> = s.groups.iter().map(|g| &*g.label).collect();
    let expected = [
        "background cbr up",
        "background ftp up",
        "background web up",
        "background cbr down",
        "background ftp down",
        "background web down",
    ];
    assert_eq!(labels, expected);
    // Constant bit rate has a flow for each pair.
    assert_eq!(s.flows.len(), 2 * (4 + 1 + 1));
    assert!(s.flows.iter().all(|f| !f.rows));
    let asked: Vec<u64> = s
        .groups
        .iter()
        .map(|g| g.loaded.unwrap().asked.as_bps() / 1000)
        .collect();
    assert_eq!(asked, [10_000, 12_000, 28_000, 5_000, 6_000, 14_000]);
    assert!(
        s.groups
            .iter()
            .all(|g| g.loaded.unwrap().rest == Rest::Included)
    );
    let web = s
        .flows
        .iter()
        .find(|f| &*f.label == "background web down")
        .unwrap();
    let source = web.source.as_ref().unwrap();
    assert_eq!(s.nodes[source.pairs[3].0].name, "right3");
    let demand = Demand::Load {
        forward: Rate::from_mbps(14),
        opposite: Rate::from_mbps(28),
    };
    assert_eq!(source.demand, demand);
    assert_eq!(web.transport.congestion(), "reno");
    let Workload::Cbr(cbr) = &*s.flows[0].workload else {
        panic!("not constant");
    };
    // 10 Mbit/s over four pairs, 28 bytes of headers on 1,000.
    let size = cbr.packet_size.as_f64();
    let wire = cbr.rate.steps()[0].1.as_bps() as f64 * (size + 28.0) / size;
    assert!((wire - 2.5e6).abs() < 1.0, "{wire}");
}

#[test]
fn the_slowest_link_counts_where_none_is_named() {
    let s = ok(&dumbbell(r#"workload.web = { load = 0.3 }"#));
    let g = &s.groups[0];
    let loaded = g.loaded.unwrap();
    assert_eq!((loaded.link, loaded.asked), (0, Rate::from_mbps(30)));
    assert_eq!((&*g.label, loaded.rest), ("web", Rest::Extra));
    let back = dumbbell(r#"workload.ftp = { load = "10Mbit/s" }"#)
        .replace("left*", "x*")
        .replace("right*", "left*")
        .replace("x*", "right*");
    let loaded = ok(&back).groups[0].loaded.unwrap();
    assert!(loaded.down && loaded.asked == Rate::from_mbps(10));
}

#[test]
fn every_form_of_a_source_is_accepted() {
    for flow in [
        r#"workload.web = { sessions = "5/s" }"#,
        r#"workload.web = { load = "20Mbit/s", model = "surge", connections = 8, persistent = true }"#,
        r#"workload.web = { load = "5%", pages = 3, think_time = "2s", main_size = "10kB", embedded = 4, embedded_size = { exponential = "8kB" }, parsing_time = "0s", request_size = "500B" }"#,
        r#"workload.web = { load = "5%", pages = { geometric = 7.5 }, think_time = { pareto = { alpha = 1.5, min = "1s", max = "100s" } }, embedded = { pareto = { alpha = 1.1, min = 2, max = 55 } } }"#,
        r#"workload.ftp = { files = "2/s", size = { lognormal = { mu = 14.45, sigma = 0.35, max = "5MB" } } }"#,
        r#"workload.ftp = { load = "90%", size = { hybrid = { mu = 9.4, sigma = 1.3, body = 0.93, cut = "133kB", alpha = 1.1, max = "50MB" } } }"#,
        r#"workload.mix = { load = "20%", direction = "down", shares = { web = "100%" }, web = { model = "surge" } }"#,
        r#"workload.mix = { load = "5Mbit/s", shares = { cbr = 0.5, ftp = 0.5 }, packet_size = "200B", ftp = { size = "1MB" } }"#,
        "record = \"full\"\nworkload.web = { load = \"1%\" }",
        "record = \"summary\"\nworkload.bulk = { bytes = \"1MB\" }\narrivals = { rate = \"1/s\" }",
        r#"workload.video = {}"#,
        r#"workload.video = { segment = "2s", ladder = ["1Mbit/s", "2Mbit/s"], selection = "buffer", length = "5min" }"#,
        r#"workload.video = { selection = { buffer = { reservoir = "10s" } }, buffer = "60s", startup = "4s" }"#,
        r#"workload.video = { selection = { throughput = { efficiency = 0.9, window = 5 } } }"#,
    ] {
        ok(&dumbbell(flow));
    }
    for media in [
        "{}",
        r#"{ min_rate = "100kbit/s", max_rate = "2.5Mbit/s", priority = 2, feedback = "50ms", ecn = true }"#,
        r#"{ frame_rate = 25, packet_size = "1000B", variation = 0, reaction = "0s", reference = "20ms" }"#,
    ] {
        ok(&simple(
            "",
            &format!("transport.udp = {{}}\nworkload.media = {media}"),
        ));
    }
    for voice in [
        "{}",
        r#"{ codec = "g729", playout = "60ms" }"#,
        r#"{ talk = "1s", pause = { exponential = "2s" }, playout = "adaptive" }"#,
    ] {
        ok(&simple(
            "",
            &format!("transport.udp = {{}}\nworkload.voice = {voice}"),
        ));
    }
}

#[track_caller]
fn refused(text: &str, message: &str, help: &str) {
    let errors = bad(text);
    let all = errors.render(false);
    let fits = |d: &&crate::Diagnostic| d.message.contains(message);
    let Some(d) = errors.iter().find(fits) else {
        panic!("no \"{message}\" in\n{all}");
    };
    assert!(
        d.help.as_deref().unwrap_or_default().contains(help),
        "no \"{help}\" in\n{all}"
    );
}

#[test]
fn what_a_mix_cannot_do_is_told() {
    let mix = |inside: &str| dumbbell(&format!("workload.mix = {{ {inside} }}"));
    refused(&mix(r#"load = "0%""#), "the load is zero", "50%");
    refused(
        &mix(r#"load = "100%""#),
        "100% of the link's capacity",
        "less than 100%",
    );
    refused(&mix(r#"load = "130%""#), "130%", "less than 100%");
    refused(&mix(r#"load = 50"#), "out of range", "from 0 to 1");
    refused(
        &mix(r#"load = "60Mbit/s""#),
        "60Mbit/s",
        "less than the capacity",
    );
    refused(
        &mix(r#"load = "50%", link = "botleneck""#),
        "no link \"botleneck\"",
        "`bottleneck`",
    );
    refused(
        &mix(r#"load = "50%", link = "left0-routerL""#),
        "does not lead over",
        "bottleneck",
    );
    refused(&mix(r#"load = "50 packets""#), "not a unit of a load", "");
    refused(
        &mix(r#"load = "50%", shares = { web = 0.5 }"#),
        "add up to 50%",
        "must add up",
    );
    refused(
        &mix(r#"load = "50%", web = { sessions = "1/s" }"#),
        "web.sessions in a mix",
        "take it out",
    );
    refused(
        &mix(r#"load = "50%", packet_size = "0B""#),
        "packet_size",
        "65507B",
    );
    refused(&mix("link = \"bottleneck\""), "has no \"load\"", "load = ");
    let unlimited = mix(r#"load = "50%", link = "bottleneck""#)
        .replace("rate = \"100Mbit/s\", ", "")
        .replace(", down = { rate = \"50Mbit/s\" }", "");
    refused(&unlimited, "has no rate", "give it a rate");
}

#[test]
fn what_a_source_cannot_do_is_told() {
    let none = simple("", "transport.tcp = {}\nworkload.ftp = { load = \"10%\" }");
    refused(&none, "no link on the way has a rate", "50Mbit/s");
    let flow = |w: &str| dumbbell(&format!("workload.{w}"));
    refused(&flow("web = {}"), "neither sessions nor load", "load = ");
    refused(
        &flow(r#"ftp = { files = "1/s", load = "1%" }"#),
        "both files and load",
        "keep one",
    );
    refused(
        &flow(r#"ftp = { files = "0/s" }"#),
        "out of range",
        "0.000001/s",
    );
    refused(
        &flow(r#"ftp = { load = "1%", size = "0B" }"#),
        "a size of zero",
        "1B",
    );
    refused(
        &flow(
            r#"ftp = { load = "1%", size = { pareto = { alpha = 1.1, min = "2MB", max = "1MB" } } }"#,
        ),
        "above the largest",
        "swap",
    );
    refused(
        &flow("web = { load = \"1%\" }\narrivals = { rate = \"1/s\" }"),
        "arrivals of its own",
        "sessions",
    );
    let udp = dumbbell("workload.web = { load = \"1%\" }").replace(
        "transport.tcp = { congestion = \"reno\" }",
        "transport.udp = {}",
    );
    refused(&udp, "reliable transport", "transport.tcp");
}

#[test]
fn what_media_cannot_do_is_told() {
    let flow = |w: &str| dumbbell(&format!("workload.{w}"));
    refused(
        &flow("voice = {}"),
        "workload.voice over a reliable transport",
        "for datagrams of a connection",
    );
    refused(
        &flow("media = {}"),
        "workload.media over a reliable transport",
        "for datagrams of a connection",
    );
    for (media, message, help) in [
        (
            r#"{ max_rate = "100kbit/s" }"#,
            "rates from 150",
            "the lower one first",
        ),
        (
            r#"{ feedback = "0s" }"#,
            "feedback = 0s is out of range",
            "1ms to 10s",
        ),
        (
            "{ frame_rate = 0.5 }",
            "0.5 is out of range",
            "a number from 1 to 1000",
        ),
        (
            r#"{ packet_size = "9B" }"#,
            "packet_size = 9B is out of range",
            "64B to 65507B",
        ),
    ] {
        let text = format!("transport.udp = {{}}\nworkload.media = {media}");
        refused(&simple("", &text), message, help);
    }
    refused(
        &flow(r#"video = { ladder = ["2Mbit/s", "1Mbit/s"] }"#),
        "not positive and increasing",
        "sort",
    );
    refused(
        &flow(r#"video = { buffer = "1s" }"#),
        "smaller than a segment",
        "larger",
    );
    refused(
        &flow("video = {}\narrivals = { rate = \"1/s\" }"),
        "never finish",
        "length",
    );
}

#[test]
fn hashes_tell_sources_apart_and_leave_others_alone() {
    let hash = |w: &str| ok(&dumbbell(w)).hash();
    let base = hash(r#"workload.mix = { load = "50%" }"#);
    assert_eq!(
        base,
        hash(r#"workload.mix = { load = 0.5, link = "bottleneck", direction = "both" }"#)
    );
    assert_ne!(base, hash(r#"workload.mix = { load = "51%" }"#));
    assert_ne!(
        base,
        hash(r#"workload.mix = { load = "50%", web = { model = "surge" } }"#)
    );
    let json = ok(&dumbbell("workload.bulk = {}")).canonical_json();
    assert!(!json.contains("\"record\":\"") && !json.contains("pairs"));
}

#[test]
fn summaries_have_totals_and_no_rows() {
    let text =
        dumbbell(r#"workload.mix = { load = "40%", link = "bottleneck" }"#).replace("60s", "3s");
    let out = run(&ok(&text), RunOptions::default()).unwrap();
    let background = &out.json["summary"]["background"];
    assert!(out.tables.flows.is_empty());
    assert_eq!(background["groups"].as_array().unwrap().len(), 6);
    for load in background["loads"].as_array().unwrap() {
        for key in ["offered_load", "sent_load"] {
            let off = load[key].as_f64().unwrap() / 0.4 - 1.0;
            assert!(off.abs() < 0.1, "{load:#}");
        }
    }
    assert!(out.json["run"]["flows"].as_u64().unwrap() > 500);
    let full = text.replace("workload.mix", "record = \"full\"\nworkload.mix");
    let out = run(&ok(&full), RunOptions::default()).unwrap();
    assert_eq!(
        out.tables.flows.len() as u64,
        out.json["run"]["flows"].as_u64().unwrap()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What is accepted runs to its end; anything else is reported.
    #[test]
    fn any_parameters_run_or_are_refused(
        kind in 0..4, load in prop::sample::select(vec!["1%", "40%", "99%", "0%", "100kbit/s", "9Mbit/s"]),
        alpha in 0.1..100.0f64, min in 0..100_000u64, max in 0..3_000_000u64, sigma in 0.0..10.0f64,
        n in 0..40u32, mean in 1.0..50.0f64, time in prop::sample::select(vec!["0s", "1ns", "10ms", "1s", "100s"]),
        connections in 1..10u32, persistent: bool, seed: u64,
    ) {
        let sizes = [
            format!("\"{min}B\""),
            format!("{{ pareto = {{ alpha = {alpha:.3}, min = \"{min}B\", max = \"{max}B\" }} }}"),
            format!("{{ lognormal = {{ mu = 8, sigma = {sigma:.3}, min = \"{min}B\", max = \"{max}B\" }} }}"),
        ];
        let size = &sizes[(seed % 3) as usize];
        let web = format!("pages = {{ geometric = {mean:.3} }}, think_time = \"{time}\", main_size = {size}, \
            embedded = {n}, embedded_size = {size}, parsing_time = {{ exponential = \"{time}\" }}, connections = \
            {connections}, persistent = {persistent}");
        let workload = match kind {
            0 => format!("web = {{ load = \"{load}\", {web} }}"),
            1 => format!("ftp = {{ load = \"{load}\", size = {size} }}"),
            2 => format!("mix = {{ load = \"{load}\", web = {{ {web} }}, ftp = {{ size = {size} }} }}"),
            _ => format!("video = {{ segment = \"{time}\", buffer = \"20000s\", ladder = [\"{load}\"] }}")
                .replace('%', "bit/s"),
        };
        let text = simple(r#"rate = "10Mbit/s", delay = "5ms""#, &format!("transport.tcp = {{}}\nworkload.{workload}"));
        let seed = (seed >> 2).to_string();
        match set(&text, &[("duration", "500ms"), ("seed", &seed)]) {
            Ok(s) => {
                let out = run(&s, RunOptions::default());
                prop_assert!(out.is_ok(), "{}", out.unwrap_err());
            }
            Err(e) => prop_assert!(!e.render(false).is_empty()),
        }
    }
}
