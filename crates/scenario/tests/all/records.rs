//! Tables hold what was asked for, of the flows that have rows, and nothing else.

use gargalo_flow::{Outcome, Samples};
use gargalo_scenario::build::{RunOptions, simulate};

use crate::common::scenario;

const TRANSPORTS: [&str; 5] = [
    "transport.tcp = {}",
    "transport.quic = {}",
    "transport.quic = { multipath = 2 }",
    "transport.mptcp = {}",
    "transport.udp = {}\nworkload.cbr = { rate = \"1Mbit/s\" }",
];

fn network(record: &str, flows: &[&str]) -> String {
    let mut text = format!(
        "duration = \"2s\"\nrecord = {{ {record} }}\n[topology.multipath]\npaths = [\n\
         {{ rate = \"10Mbit/s\", delay = \"10ms\", loss = {{ periodic = 100 }} }},\n\
         {{ rate = \"5Mbit/s\", delay = \"15ms\", loss = {{ periodic = 100 }} }} ]\n"
    );
    for flow in flows {
        text += &format!("[[flows]]\nfrom = \"client\"\nto = \"server\"\n{flow}\n");
    }
    text
}

fn outcome(text: &str) -> Outcome {
    simulate(&scenario(text), RunOptions::default()).unwrap()
}

/// The tables that have rows.
fn tables(samples: &Samples) -> Vec<&'static str> {
    let all = [
        ("flows", samples.flows.len()),
        ("subflows", samples.subflows.len()),
        ("links", samples.links.len()),
        ("events", samples.events.len()),
        ("gauges", samples.gauges.len()),
        ("datagrams", samples.datagrams.len()),
    ];
    all.into_iter()
        .filter(|(_, n)| *n > 0)
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn each_table_is_recorded_on_request_and_alone() {
    let asked = |which: &str| {
        let all = [
            "flows",
            "links",
            "events",
            "decisions",
            "gauges",
            "datagrams",
        ];
        all.map(|name| format!("{name} = {}", name == which))
            .join(", ")
    };
    for transport in TRANSPORTS {
        let (has_window, is_single) = (
            !transport.contains("udp"),
            transport.contains("tcp = ") && !transport.contains("mptcp")
                || transport.contains("quic = {}"),
        );
        let is_mptcp = transport.contains("mptcp");
        let several = is_mptcp || transport.contains("multipath");
        for which in [
            "flows",
            "links",
            "events",
            "decisions",
            "gauges",
            "datagrams",
            "none",
        ] {
            let out = outcome(&network(&asked(which), &[transport]));
            let expected: &[&str] = match which {
                "flows" if several => &["flows", "subflows"],
                "flows" if has_window => &["flows"],
                "links" => &["links"],
                "events" if has_window => &["events"],
                "decisions" if is_mptcp => &["events"],
                "gauges" if is_single => &["gauges"],
                "datagrams" if !has_window => &["datagrams"],
                _ => &[],
            };
            assert_eq!(tables(&out.samples), expected, "{which} of {transport}");
            if which == "decisions" {
                assert!(out.samples.events.iter().all(|e| e.kind == "scheduled"));
            } else {
                assert!(out.samples.events.iter().all(|e| e.kind != "scheduled"));
            }
        }
    }
}

#[test]
fn flows_without_rows_are_in_no_table() {
    let everything = "events = true, decisions = true, gauges = true, datagrams = true";
    let of = |flows: &[&str]| outcome(&network(everything, flows));
    for transport in TRANSPORTS {
        let counted = format!("record = \"summary\"\n{transport}");
        let alone = of(&[&counted]);
        assert_eq!(tables(&alone.samples), ["links"], "{transport}");
        assert!(alone.flows.is_empty() && alone.last.flows.is_empty());
        let both = of(&[&counted, transport]);
        let rows = &both.samples;
        assert!(rows.flows.iter().all(|s| s.flow == 1));
        assert!(rows.events.iter().all(|e| e.flow == 1));
        assert!(rows.gauges.iter().all(|g| g.flow == 1));
        assert!(rows.datagrams.iter().all(|d| d.flow == 1));
        assert_eq!(both.flows.len(), 1);
    }
}

#[test]
fn gauges_are_recorded_at_samples_and_at_what_happens() {
    for transport in [
        "transport.tcp = { congestion = \"bbr3\" }",
        "transport.quic = { congestion = \"bbr3\" }",
    ] {
        for events in [true, false] {
            let record = format!("interval = \"100ms\", gauges = true, events = {events}");
            let out = outcome(&network(&record, &[transport]));
            let at = |cause: &str| {
                out.samples
                    .gauges
                    .iter()
                    .filter(|g| g.cause.contains(cause))
                    .count()
            };
            assert!(
                at("sample") > 0 && at("phase") > 0 && at("loss") > 0,
                "{transport} {events}"
            );
            assert_eq!(!out.samples.events.is_empty(), events);
        }
        // Without samples of flows they are those of changes and events only.
        let out = outcome(&network("gauges = true, flows = false", &[transport]));
        assert!(!out.samples.gauges.is_empty());
        assert!(
            out.samples.gauges.iter().all(|g| &*g.cause != "sample"),
            "{transport}"
        );
    }
}

/// RFC 8684: what opens and closes is told once a connection, by its client; and both ends tell that they fell back.
#[test]
fn events_of_multipath_tcp_name_subflows_and_links_once() {
    let flow = "start = \"200ms\"\ntransport.mptcp = { changes = [{ after = \"500ms\", remove = \"path1\" }, \
                { after = \"1s\", add = \"path1\" }] }";
    let out = outcome(&network("events = true", &[flow]));
    let told = out
        .samples
        .events
        .iter()
        .filter(|e| e.kind.starts_with("subflow-"));
    let told = told.map(|e| {
        (
            e.kind,
            e.detail.as_str(),
            (e.time.as_secs_f64() * 20.0).round() / 20.0,
        )
    });
    let expected = [
        ("subflow-opened", "subflow=0 link=path0", 0.2),
        ("subflow-opened", "subflow=1 link=path1", 0.3),
        ("subflow-closed", "subflow=1 link=path1", 0.7),
        ("subflow-reset", "subflow=1 reason=Unspecified", 1.2),
        ("subflow-opened", "subflow=2 link=path1", 1.25),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let rows = &out.flows[0].multipath.as_ref().unwrap().subflows;
    let rows: Vec<_> = rows
        .iter()
        .map(|s| (s.id, s.link, s.reverse_link, s.closed.is_some()))
        .collect();
    assert_eq!(rows, [(0, 0, 0, false), (1, 1, 1, true), (2, 1, 1, false)]);
    for events in [true, false] {
        let text = network(&format!("events = {events}"), &["transport.mptcp = {}"]);
        let out = outcome(&text.replace("{ periodic = 100 }", "0, strip_mptcp = \"all\""));
        let told = out.samples.events.iter().filter(|e| e.kind == "fallback");
        let told: Vec<_> = told.map(|e| e.detail.as_str()).collect();
        assert_eq!(
            told,
            if events {
                &["server", "client"][..]
            } else {
                &[]
            }
        );
    }
}

/// Samples go on while no flow exists, as long as one will come; the interval is that of all tables.
#[test]
fn links_are_sampled_before_the_first_flow_and_between_flows() {
    let flow = |start: &str, bytes: &str| {
        format!(
            "start = \"{start}\"\ntransport.tcp = {{}}\nworkload.bulk = {{ bytes = \"{bytes}\" }}"
        )
    };
    let text = network(
        "interval = \"100ms\"",
        &[&flow("500ms", "1kB"), &flow("1.55s", "1kB")],
    );
    let out = outcome(&text);
    let times: Vec<u64> = out
        .samples
        .links
        .iter()
        .map(|s| s.time.as_nanos() / 1_000_000)
        .collect();
    let until = out.end.as_nanos() / 1_000_000;
    assert!((1_600..1_700).contains(&until), "{until}");
    let expected: Vec<u64> = (1..=16).flat_map(|i| [100 * i; 4]).collect();
    assert_eq!(times, expected);
    let quiet = outcome(&network(
        "interval = \"100ms\", links = false",
        &[&flow("500ms", "300kB")],
    ));
    assert_eq!(tables(&quiet.samples), ["flows", "events"]);
}
