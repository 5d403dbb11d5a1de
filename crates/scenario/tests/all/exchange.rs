//! The order of two entries of a scenario changes nothing of either's flows.

use serde_json::Value as Json;

use crate::common::simulate;

const LOSSY: &str = r#"
duration = "4s"
seed = 3
start_jitter = "1RTT"
[topology.dumbbell]
pairs = 2
access = { delay = "2ms", loss = "0.1%" }
bottleneck = { rate = "10Mbit/s", delay = "10ms", loss = "0.5%", queue = "fq-codel" }
"#;

/// The flows of a run, without their numbers, in an order of their own.
fn flows(entries: &[&str]) -> Vec<String> {
    let entries = entries.iter().map(|e| format!("[[flows]]\n{e}\n"));
    let text = format!("{LOSSY}{}", entries.collect::<String>());
    let out = simulate(&text).json;
    let mut found: Vec<String> = out["flows"].as_array().unwrap().iter().map(row).collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

fn row(flow: &Json) -> String {
    let mut flow = flow.clone();
    flow.as_object_mut().unwrap().remove("id").unwrap();
    flow.to_string()
}

#[track_caller]
fn same_in_both_orders(a: &str, b: &str) {
    assert_eq!(flows(&[a, b]), flows(&[b, a]));
}

const ENDS: &str = "from = \"left0\"\nto = \"right0\"\n";

fn entry(keys: &str) -> String {
    format!("{ENDS}{keys}")
}

#[test]
fn of_quic_flows() {
    let cubic = entry("transport.quic.congestion = \"cubic\"");
    let bbr = entry("transport.quic.congestion = \"bbr\"");
    same_in_both_orders(&cubic, &bbr);
    let named = |label: &str| format!("{cubic}\nlabel = \"{label}\"\ncount = 2");
    same_in_both_orders(&named("b"), &named("a"));
}

#[test]
fn of_tcp_flows() {
    let reno = entry("transport.tcp.congestion = \"reno\"");
    let bbr = entry("transport.tcp.congestion = \"bbr\"");
    same_in_both_orders(&reno, &bbr);
    let other = "from = \"left1\"\nto = \"right1\"\ncount = 3\ntransport.tcp.congestion = \"bbr\"";
    same_in_both_orders(&reno, other);
    // Where all else is the same, the start decides.
    same_in_both_orders(&bbr, &format!("{bbr}\nstart = \"1s\""));
}

#[test]
fn of_workloads_with_arrivals() {
    let bulk = entry(
        "label = \"short\"\narrivals = { rate = \"20/s\" }\ntransport.tcp = {}\nworkload.bulk = { bytes = \"20kB\" }",
    );
    let voice = entry("label = \"voice\"\ntransport.udp = {}\nworkload.voice = {}");
    same_in_both_orders(&bulk, &voice);
    let web = entry(
        "label = \"web\"\nrecord = \"full\"\ntransport.tcp = {}\nworkload.web = \
         { load = \"30%\", link = \"bottleneck\" }",
    );
    same_in_both_orders(&web, &bulk);
}

#[test]
fn another_flow_between_other_hosts_changes_no_numbers() {
    // Each has a link of its own with loss, and nothing in common with the other.
    let text = |more: &str| {
        format!(
            r#"
            duration = "3s"
            [topology.graph]
            nodes = ["a", "b", "c", "d"]
            hosts = ["a", "b", "c", "d"]
            links = [
                {{ from = "a", to = "b", rate = "10Mbit/s", delay = "10ms" }},
                {{ from = "c", to = "d", rate = "10Mbit/s", delay = "10ms" }},
            ]
            {more}
            [[flows]]
            from = "c"
            to = "d"
            transport.quic.congestion = "bbr"
            "#
        )
    };
    let other = "[[flows]]\nfrom = \"a\"\nto = \"b\"\ntransport.quic.congestion = \"bbr\"";
    let last = |text: &str| {
        row(simulate(text).json["flows"]
            .as_array()
            .unwrap()
            .last()
            .unwrap())
    };
    assert_eq!(last(&text("")), last(&text(other)));
}
