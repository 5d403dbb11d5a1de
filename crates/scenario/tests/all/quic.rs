//! QUIC end to end: every byte, the handshakes' round trips, the same packets whatever the cipher,
//! the same congestion control as under TCP, moves, several paths, and failures.

use gargalo_scenario::build::{Outcome, RunOptions, run};
use gargalo_scenario::{Origin, parse};
use serde_json::Value as Json;

use crate::common::simulate;

/// Two hosts, 40 ms apart, and flows.
fn network(link: &str, flows: &[&str]) -> String {
    let mut text = format!(
        "duration = \"600s\"\nrecord = {{ interval = \"1s\", verify = true }}\n[topology.simple]\nlink = {{ delay \
         = \"20ms\", {link} }}\n"
    );
    for flow in flows {
        text += &format!("[[flows]]\nfrom = \"client\"\nto = \"server\"\n{flow}\n");
    }
    text
}

fn completion(flow: &Json) -> f64 {
    assert_eq!(flow["verified"], true, "{flow}");
    flow["completion_s"]
        .as_f64()
        .unwrap_or_else(|| panic!("not complete: {flow}"))
}

#[test]
fn every_byte_of_210_mb_arrives() {
    let out = simulate(&network(
        "rate = \"1Gbit/s\", queue = { droptail = \"1BDP\" }",
        &["transport.quic = {}\nworkload.bulk = { bytes = \"210MB\" }"],
    ));
    let flow = &out.json["flows"][0];
    assert_eq!(flow["delivered_bytes"], 210_000_000);
    assert_eq!(flow["transport"], "quic");
    // 210 MB at 1 Gbit/s take 1.7 s; slow start and headers come on top.
    let time = completion(flow);
    assert!((1.7..4.0).contains(&time), "{time}");
}

#[test]
fn bytes_survive_loss_reordering_and_duplication() {
    for options in [
        "",
        "congestion = \"bbr\"",
        "congestion = \"noq-cubic\"",
        "congestion = \"noq-bbr3\"",
        "congestion = \"noq-newreno\"",
        "crypto = \"null\", streams = 7",
        "profile = \"google-v41\"",
        "ack = { every = 10, max_delay = \"25ms\" }, pacing = false",
    ] {
        let out = simulate(&network(
            "rate = \"50Mbit/s\", queue = { droptail = \"60 packets\" }, loss = { independent = 0.01 }, \
             reorder = { probability = 0.02, late = \"5ms\" }, duplicate = 0.01",
            &[&format!(
                "transport.quic = {{ {options} }}\nworkload.bulk = {{ bytes = \"5MB\" }}"
            )],
        ));
        let flow = &out.json["flows"][0];
        assert_eq!(flow["delivered_bytes"], 5_000_000, "{options}: {flow}");
        completion(flow);
        assert!(
            flow["lost_packets"].as_u64() > Some(10),
            "{options}: {flow}"
        );
    }
}

#[test]
fn a_control_that_no_seed_decides_is_told() {
    for (congestion, told) in [("noq-bbr3", true), ("bbr3", false), ("noq-cubic", false)] {
        let out = simulate(&network(
            "rate = \"50Mbit/s\"",
            &[&format!(
                "transport.quic = {{ congestion = \"{congestion}\" }}\nworkload.bulk = {{ bytes = \"10kB\" }}"
            )],
        ));
        let warnings = out.json["run"]["warnings"].to_string();
        assert_eq!(warnings.contains("no seed decides"), told, "{warnings}");
    }
}

#[test]
fn the_first_byte_tells_the_handshake() {
    // A link that is never busy: only round trips count, and a server's flight that fits its limit.
    let request = "workload.request = { objects = 1, size = \"10kB\" }";
    let link = "rate = \"10Gbit/s\"";
    let out = simulate(&network(
        link,
        &[
            // Without probes of larger datagrams, which would take from the initial window.
            &format!("transport.quic = {{ mtu_discovery = false }}\n{request}"),
            &format!(
                "start = \"2s\"\ntransport.quic = {{ mtu_discovery = false, handshake = \"0-rtt\" }}\n{request}"
            ),
            &format!("start = \"4s\"\ntransport.tcp = {{ tls = \"1.3\" }}\n{request}"),
            &format!("start = \"6s\"\ntransport.tcp = {{}}\n{request}"),
        ],
    ));
    let times: Vec<f64> = (0..4).map(|i| completion(&out.json["flows"][i])).collect();
    let rtt = 0.040;
    let near = |time: f64, rounds: f64| (time - rounds * rtt).abs() < 0.002;
    assert!(near(times[0], 2.0), "1-RTT: {times:?}");
    assert!(near(times[1], 1.0), "0-RTT: {times:?}");
    assert!(near(times[2], 3.0), "TCP with TLS 1.3: {times:?}");
    assert!(near(times[3], 2.0), "TCP: {times:?}");
    // Exactly one round trip less, but for the bytes of the handshake.
    let saved = times[0] - times[1];
    assert!((saved - rtt).abs() < 50e-6, "{saved}");
}

/// RFC 9002 §6.3: a Retry does not acknowledge the Initial that it answers, and gives no sample of the round trip.
#[test]
fn a_retry_is_no_acknowledgement() {
    for congestion in ["reno", "bbr", "copa"] {
        let flow = format!(
            "transport.quic = {{ congestion = \"{congestion}\", retry = true }}\nworkload.bulk = {{ bytes = \"1MB\" \
             }}"
        );
        let out = simulate(&network("rate = \"10Mbit/s\"", &[&flow]));
        let least = out.json["flows"][0]["rtt_min_s"].as_f64().unwrap();
        assert!((0.04..0.045).contains(&least), "{congestion}: {least}");
        let findings = out.json["run"]["findings"].as_array().unwrap();
        let errors: Vec<_> = findings
            .iter()
            .filter(|f| f["severity"] == "error")
            .collect();
        assert!(errors.is_empty(), "{congestion}: {errors:?}");
    }
}

/// Times and sizes at the link, and the flow's samples.
fn trace(out: &Outcome) -> String {
    let flow = &out.json["flows"][0];
    format!("{flow} {:?}", out.tables.link_samples)
}

#[test]
fn no_cipher_changes_no_packet() {
    let text = |crypto: &str| {
        network(
            "rate = \"20Mbit/s\", queue = { droptail = \"40 packets\" }, loss = { independent = 0.002 }",
            &[&format!(
                "label = \"x\"\ntransport.quic = {{ crypto = \"{crypto}\" }}\nworkload.bulk = {{ bytes = \"10MB\" }}"
            )],
        )
        .replace("interval = \"1s\"", "interval = \"2ms\"")
    };
    let (tls, null) = (simulate(&text("tls")), simulate(&text("null")));
    assert_eq!(trace(&tls), trace(&null));
    assert_eq!(tls.json["run"]["packets"], null.json["run"]["packets"]);
}

#[test]
fn cubic_is_cubic_under_tcp_and_quic() {
    // Same window in bytes and payload per packet about the same; no loss on the way.
    for (rate, bytes) in [("10Mbit/s", "20MB"), ("100Mbit/s", "50MB")] {
        let out = simulate(&network(
            &format!("rate = \"{rate}\", queue = {{ droptail = \"100000 packets\" }}"),
            &[
                &format!(
                    "transport.tcp = {{ mss = \"1400B\", initial_window = \"10 packets\" }}\nworkload.bulk = {{ \
                     bytes = \"{bytes}\" }}"
                ),
                &format!(
                    "start = \"200s\"\ntransport.quic = {{ datagram_size = \"1452B\", mtu_discovery = false, \
                     initial_window = \"10 packets\" }}\nworkload.bulk = {{ bytes = \"{bytes}\" }}"
                ),
            ],
        ));
        let time = |i: usize| {
            let flow = &out.json["flows"][i];
            completion(flow) - flow["handshake_s"].as_f64().unwrap()
        };
        let ratio = time(1) / time(0);
        assert!((0.95..1.05).contains(&ratio), "{rate}: {ratio}");
    }
}

#[test]
fn objects_do_not_wait_for_each_other() {
    let request = "workload.request = { objects = 60, size = \"20kB\", order = \"multiplexed\" }";
    let out = simulate(&network(
        "rate = \"10Mbit/s\", loss = { independent = 0.02 }",
        &[
            &format!("transport.quic = {{}}\n{request}"),
            &format!("start = \"60s\"\ntransport.tcp = {{}}\n{request}"),
        ],
    ));
    for flow in [0, 1] {
        assert_eq!(out.json["flows"][flow]["delivered_bytes"], 1_200_000);
        completion(&out.json["flows"][flow]);
    }
}

#[test]
fn a_client_may_move() {
    for change in ["address", "port"] {
        let out = simulate(&network(
            "rate = \"10Mbit/s\", queue = { droptail = \"60 packets\" }",
            &[&format!(
                "transport.quic = {{ migration = {{ after = \"1s\", change = \"{change}\" }} }}\nworkload.bulk = {{ \
                 bytes = \"5MB\" }}"
            )],
        ));
        completion(&out.json["flows"][0]);
    }
}

/// Round-trip times are those of the sender of the data, whichever end it is: a queue stands in its direction, which
/// the receiver has only seen empty, in the handshake.
#[test]
fn round_trips_are_measured_by_the_sender() {
    for workload in [
        "bulk = { bytes = \"10MB\" }",
        "request = { objects = 1, size = \"10MB\" }",
    ] {
        let flow = format!("transport.quic = {{}}\nworkload.{workload}");
        let link = "rate = \"10Mbit/s\", queue = { droptail = \"50ms\" }";
        let out = simulate(&network(link, &[&flow]));
        let rtt = |which: &str| out.json["flows"][0][which].as_f64().unwrap();
        let (least, usual) = (rtt("rtt_min_s"), rtt("rtt_p50_s"));
        assert!((0.040..0.045).contains(&least), "{workload}: {least}");
        assert!((0.060..0.095).contains(&usual), "{workload}: {usual}");
    }
}

#[test]
fn several_paths_carry_one_connection() {
    let text = |options: &str| {
        format!(
            "duration = \"120s\"\nrecord = {{ verify = true }}\n[topology.multipath]\npaths = [{{ rate \
             = \"10Mbit/s\", delay = \"10ms\" }}, {{ rate = \"10Mbit/s\", delay = \"15ms\" }}]\n\
             [[flows]]\nfrom = \"client\"\nto = \"server\"\ntransport.quic = {{ {options} }}\nworkload.bulk = {{ \
            bytes = \"20MB\" }}\n"
        )
    };
    let one = completion(&simulate(&text("")).json["flows"][0]);
    let out = simulate(&text("multipath = true"));
    let two = completion(&out.json["flows"][0]);
    let used: Vec<f64> = (0..4)
        .filter(|i| out.json["links"][i]["direction"] == "up")
        .map(|i| out.json["links"][i]["utilization"].as_f64().unwrap())
        .collect();
    assert!(used.iter().all(|u| *u > 0.5), "{used:?}");
    assert!(two < 0.7 * one, "{two} against {one}");
    // Each path has a row with what it carried.
    let flow = &out.json["flows"][0];
    let paths = of_flow(&out.json, flow);
    let of = |i: usize, key: &str| paths[i][key].as_f64().unwrap();
    let total = |key: &str| of(0, key) + of(1, key);
    assert_eq!(paths.len(), 2, "{flow}");
    // Acknowledgements of the second path come back over the first.
    for (i, (link, rtt)) in [("path0", 0.020), ("path1", 0.025)].into_iter().enumerate() {
        assert_eq!(paths[i]["link"], link);
        assert_eq!(paths[i]["peer_link"], link);
        assert!(
            of(i, "rtt_min_s") > rtt && of(i, "rtt_min_s") < rtt + 0.005,
            "{flow}"
        );
        assert!(of(i, "delivered_bytes") > 7e6, "{flow}");
    }
    assert!(of(0, "opened_s") < of(1, "opened_s"));
    assert!(total("delivered_bytes") >= 20e6);
    assert_eq!(
        total("lost_packets"),
        flow["lost_packets"].as_f64().unwrap()
    );
    assert_eq!(
        total("retransmitted_packets"),
        flow["retransmitted_packets"].as_f64().unwrap()
    );
    assert_eq!(flow["reinjected_packets"], Json::Null, "that is of MPTCP");
}

#[test]
fn a_dead_link_ends_a_connection() {
    let out = simulate(&network(
        "rate = { steps = [[\"0s\", \"10Mbit/s\"], [\"1s\", \"0bit/s\"]] }",
        &["transport.quic = { idle_timeout = \"5s\" }\nworkload.bulk = { bytes = \"50MB\" }"],
    ));
    let flow = &out.json["flows"][0];
    assert_eq!(flow["completion_s"], Json::Null);
    assert_eq!(flow["failure"], "timed out", "{flow}");
}

/// Pacing gives time some nanoseconds a step: virtual time would creep for ever.
#[test]
fn a_flow_without_an_end_is_refused_where_nothing_takes_time() {
    let text = network("", &["transport.quic = {}"]).replace("delay = \"20ms\", ", "");
    let scenario = parse(&text, &Origin::default(), &[]).unwrap();
    let message = run(&scenario, RunOptions::default())
        .unwrap_err()
        .to_string();
    assert!(message.contains("virtual time stands still"), "{message}");
    // A transfer with an end has one.
    let flows = ["transport.quic = {}\nworkload.bulk.bytes = \"90MB\""];
    let text = network("", &flows).replace("delay = \"20ms\", ", "");
    assert_eq!(
        simulate(&text).json["flows"][0]["delivered_bytes"],
        90_000_000
    );
}

/// The rows of a flow's subflows.
fn of_flow<'a>(json: &'a Json, flow: &Json) -> Vec<&'a Json> {
    let all = json["subflows"].as_array().unwrap();
    all.iter().filter(|s| s["flow"] == flow["id"]).collect()
}
