//! Pings: the table, the figures, what is lost, and what is refused.

use gargalo_units::Bytes;
use proptest::prelude::*;
use serde_json::Value as Json;

use super::{bad, near, ok, over_udp, results};
use crate::build::Outcome;
use crate::memory::Estimate;

/// A ping over the link of [`over_udp`].
fn text(head: &str, link: &str, flow: &str, ping: &str) -> String {
    over_udp(head, link, flow, &format!("workload.ping = {{ {ping} }}"))
}

fn rows(out: &Outcome) -> Vec<Json> {
    out.tables.pings.rows().collect()
}

#[test]
fn requests_are_rows_and_their_delays_add_up() {
    let out = results(&text("", "", "", ""));
    let pings = rows(&out);
    assert_eq!(pings.len(), 51);
    for (i, row) in pings[..50].iter().enumerate() {
        assert_eq!((&row["flow"], &row["sequence"]), (&0.into(), &i.into()));
        assert!(near(&row["sent_s"], 0.1 * i as f64), "{row}");
        // 56 bytes and headers of 28.
        assert!(near(&row["forward_delay_s"], 0.010_084), "{row}");
        assert!(near(&row["return_delay_s"], 0.010_084), "{row}");
        assert!(near(&row["rtt_s"], 0.020_168), "{row}");
        assert_eq!(row["lost"], false);
    }
    // Sent at the very end: no answer, and not lost.
    let last = &pings[50];
    for key in ["rtt_s", "forward_delay_s", "return_delay_s", "lost"] {
        assert!(last[key].is_null(), "{last}");
    }
    let s = &out.json["summary"];
    assert_eq!(
        (&s["pings_sent"], &s["pings_answered"]),
        (&51.into(), &50.into())
    );
    assert_eq!(
        (&s["pings_lost"], &s["ping_duplicates"]),
        (&0.into(), &0.into())
    );
    assert_eq!(s["ping_loss"], 0.0);
    for key in ["min", "mean", "p50", "p95", "max"] {
        assert!(near(&s[format!("ping_rtt_{key}_s")], 0.020_168), "{key}");
    }
    assert!(near(&s["ping_rtt_mdev_s"], 0.0));
    let flow = out.tables.flows.rows().next().unwrap();
    for key in [
        "rtt_min_s",
        "rtt_mean_s",
        "rtt_p50_s",
        "rtt_p95_s",
        "rtt_p99_s",
        "rtt_max_s",
    ] {
        assert!(near(&flow[key], 0.020_168), "{key}");
    }
    assert_eq!(
        (&flow["loss"], &flow["sent_packets"]),
        (&0.0.into(), &51.into())
    );
}

#[test]
fn each_direction_has_its_own_delay() {
    let out = results(&text(
        "",
        ", down = { delay = \"40ms\" }",
        "",
        "size = \"972B\"",
    ));
    let first = &rows(&out)[0];
    assert!(near(&first["forward_delay_s"], 0.011), "{first}");
    assert!(near(&first["return_delay_s"], 0.041), "{first}");
}

#[test]
fn a_request_without_answer_is_lost_when_its_timeout_has_passed() {
    let out = results(&text(
        "",
        ", up = { outages = [[\"2s\", \"10s\"]] }",
        "",
        "timeout = \"500ms\"",
    ));
    let lost: Vec<_> = rows(&out).iter().map(|r| r["lost"].as_bool()).collect();
    // Those of the last half second are not known to be.
    let known = [vec![Some(false); 20], vec![Some(true); 26], vec![None; 5]].concat();
    // What is on its way when the outage begins may arrive.
    assert_eq!(lost, known);
    let s = &out.json["summary"];
    assert_eq!(
        (&s["pings_answered"], &s["pings_lost"]),
        (&20.into(), &26.into())
    );
    assert!(near(&s["ping_loss"], 26.0 / 46.0));
}

#[test]
fn an_answer_after_the_timeout_counts() {
    let out = results(&text(
        "",
        ", down = { delay = \"1500ms\" }",
        "stop = \"3s\"",
        "count = 5",
    ));
    assert!(
        rows(&out).iter().all(|r| r["lost"] == false),
        "{:?}",
        rows(&out)
    );
    assert_eq!(out.json["summary"]["ping_loss"], 0.0);
}

#[test]
fn figures_are_those_of_the_measured_window() {
    let measure = "measure = { from = \"1s\", until = \"2s\" }";
    let out = results(&text(measure, "", "", ""));
    assert_eq!(rows(&out).len(), 51);
    assert_eq!(out.json["summary"]["pings_sent"], 10);
}

#[test]
fn only_pings_with_rows_have_figures() {
    let hidden = results(&text("", "", "record = \"summary\"", ""));
    assert!(rows(&hidden).is_empty());
    assert!(hidden.json["summary"].get("pings_sent").is_none());
    let cbr =
        text("", "", "", "").replace("workload.ping = {  }", "workload.cbr.rate = \"1Mbit/s\"");
    assert!(results(&cbr).json["summary"].get("pings_sent").is_none());
}

#[test]
fn nothing_answered_has_no_round_trip() {
    let out = results(&text("", ", down = { loss = 1 }", "", "count = 3"));
    let s = &out.json["summary"];
    assert_eq!(
        (&s["pings_lost"], &s["ping_loss"]),
        (&3.into(), &1.0.into())
    );
    for key in ["min", "mean", "p50", "p95", "max", "mdev"] {
        assert!(s[format!("ping_rtt_{key}_s")].is_null(), "{key}");
    }
    // The requests arrived.
    assert!(
        rows(&out)
            .iter()
            .all(|r| near(&r["forward_delay_s"], 0.010_084))
    );
}

#[test]
fn copies_are_counted() {
    let out = results(&text("", ", duplicate = \"100%\"", "", "count = 4"));
    // Two copies of each request, and two of each of their answers.
    let s = &out.json["summary"];
    assert_eq!(
        (&s["pings_answered"], &s["ping_duplicates"]),
        (&4.into(), &12.into())
    );
}

#[test]
fn other_transports_and_impossible_values_are_refused() {
    for transport in ["tcp", "mptcp"] {
        let wrong = text("", "", "", "").replace("udp", transport);
        let told = bad(&wrong).render(false);
        assert!(
            told.contains("workload.ping over a reliable transport"),
            "{told}"
        );
        assert!(told.contains("write `transport.udp = {}`"), "{told}");
    }
    for (wrong, range) in [
        ("interval = \"0s\"", "1ms"),
        ("size = \"15B\"", "16B to 65507B"),
        ("count = 0", "1"),
        ("timeout = \"0s\"", "1ms"),
    ] {
        let told = bad(&text("", "", "", wrong)).render(false);
        assert!(
            told.contains("out of range") && told.contains(range),
            "{told}"
        );
    }
}

#[test]
fn memory_counts_requests() {
    let estimate = |flow: &str, ping: &str| {
        let head = "record = { flows = false, links = false }";
        Estimate::of(&ok(&text(head, "", flow, ping)))
    };
    let e = estimate("", "interval = \"1ms\"");
    assert_eq!((e.rows, e.pings), (5001, e.bytes));
    assert!((100..300).contains(&(e.bytes / e.rows)), "{e:?}");
    assert_eq!(estimate("", "count = 7").rows, 7);
    assert_eq!(estimate("start = \"4s\"", "").rows, 11);
    assert_eq!(estimate("record = \"summary\"", "").rows, 0);
    let scenario = ok(&text("", "", "", "interval = \"1ms\"").replace("\"5s\"", "\"100000s\""));
    let limit = Some(Bytes::new(1 << 20));
    let told = Estimate::of(&scenario).check(&scenario, limit).unwrap_err();
    let told = told.to_string();
    assert!(told.starts_with("workload.ping would record"), "{told}");
    assert!(told.contains("a longer `interval`"), "{told}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_request_is_answered_or_lost(
        seed in 0u64..1000,
        (up, down) in (0u32..60, 0u32..60),
        count in 1u64..150,
        jitter in prop::bool::ANY,
    ) {
        let jitter = if jitter { ", jitter = \"8ms\"" } else { "" };
        let link = format!("{jitter}, up = {{ loss = \"{up}%\" }}, down = {{ loss = \"{down}%\" }}");
        let ping = format!("interval = \"20ms\", count = {count}");
        let out = results(&text(&format!("seed = {seed}"), &link, "", &ping));
        let s = &out.json["summary"];
        let figure = |key: &str| s[key].as_u64().unwrap();
        // All have 5 s less 3 s, more than their timeout.
        prop_assert_eq!(figure("pings_sent"), count);
        prop_assert_eq!(figure("pings_answered") + figure("pings_lost"), count);
        for row in rows(&out) {
            let missing = row["rtt_s"].is_null();
            prop_assert_eq!(row["lost"].as_bool(), Some(missing));
            prop_assert_eq!(row["return_delay_s"].is_null(), missing);
            if !missing {
                let delays = [&row["forward_delay_s"], &row["return_delay_s"]];
                let sum: f64 = delays.iter().map(|d| d.as_f64().unwrap()).sum();
                prop_assert!(near(&row["rtt_s"], sum));
            }
        }
        // A link loses either a request or its answer.
        let flow = out.tables.flows.rows().next().unwrap();
        let requests_lost = flow["lost_packets"].as_u64().unwrap();
        prop_assert!(requests_lost <= figure("pings_lost"));
        let arrived = rows(&out).iter().filter(|r| !r["forward_delay_s"].is_null()).count() as u64;
        prop_assert_eq!(arrived + requests_lost, count);
    }
}
