//! The send buffer bounds what a flow carries in a round trip, whatever carries it and whatever is written.

use gargalo_scenario::{Origin, parse};
use gargalo_units::Bytes;
use serde_json::Value as Json;

use crate::common::simulate;

/// Round trip of every path, without queues.
const RTT_S: f64 = 0.040;

/// The flow between two hosts over one or two paths of 100 Mbit/s.
fn flow(paths: usize, record: &str, flow: &str) -> Json {
    let path = "{ rate = \"100Mbit/s\", delay = \"20ms\" }";
    let paths = vec![path; paths].join(", ");
    let text = format!(
        "duration = \"10s\"\nrecord = {{ flows = false, links = false, events = false{record} }}\n\
         [topology.multipath]\npaths = [{paths}]\n\
         [[flows]]\nfrom = \"client\"\nto = \"server\"\n{flow}\n"
    );
    let mut json = simulate(&text).json;
    json["flows"][0].take()
}

fn goodput_mbps(flow: &Json) -> f64 {
    flow["goodput_bps"].as_f64().unwrap() / 1e6
}

#[test]
fn a_window_of_the_buffer_leaves_in_each_round_trip() {
    for (paths, key, rest) in [
        (1, "tcp", "send_buffer = \"BYTESB\""),
        (1, "tcp", "send_buffer = \"BYTESB\", congestion = \"bbr\""),
        (1, "tcp", "send_buffer = \"BYTESB\", tls = true"),
        (1, "mptcp", "send_buffer = \"BYTESB\""),
        (2, "mptcp", "send_buffer = \"BYTESB\""),
        (1, "quic", "send_window = \"BYTESB\""),
    ] {
        // 16,000 bytes are eleven segments and a piece of one, which must not leave alone.
        for bytes in [16_000.0, 64_000.0] {
            let rest = rest.replace("BYTES", &bytes.to_string());
            let f = flow(paths, "", &format!("transport.{key} = {{ {rest} }}"));
            let most = bytes * 8e-6 / RTT_S;
            let got = goodput_mbps(&f) / most;
            assert!((0.8..=1.0).contains(&got), "{key} {rest}: {got} of {most}");
            let sent = f["sent_packets"].as_u64().unwrap() as f64;
            let mean = f["delivered_bytes"].as_f64().unwrap() / sent;
            assert!(mean > 1000.0, "{key} {rest}: {mean} bytes in a packet");
        }
        let rest = rest.replace("BYTES", "2000000");
        let f = flow(paths, "", &format!("transport.{key} = {{ {rest} }}"));
        let got = goodput_mbps(&f) / (100.0 * paths as f64);
        assert!(got > 0.85, "{key} {rest}: {got} of the link");
    }
}

#[test]
fn every_workload_writes_no_more_than_the_buffer_takes() {
    let most = 16_000.0 * 8.0 / RTT_S;
    for (workload, wants_bytes) in [
        ("bulk = { bytes = \"2MB\" }", 2e6),
        ("request = { size = \"2MB\" }", 2e6),
        (
            "request = { size = \"1MB\", objects = 2, order = \"multiplexed\" }",
            2e6,
        ),
        ("cbr = { rate = \"10Mbit/s\" }", f64::INFINITY),
        (
            "onoff = { rate = \"20Mbit/s\", on = \"1s\", off = \"100ms\" }",
            f64::INFINITY,
        ),
    ] {
        let spec = "transport.tcp = { send_buffer = \"16kB\" }";
        let f = flow(1, "", &format!("{spec}\nworkload.{workload}"));
        let got = f["delivered_bytes"].as_f64().unwrap();
        let takes = f["completion_s"].as_f64().unwrap_or(10.0);
        assert_eq!(got == wants_bytes, takes < 10.0, "{workload}: {f}");
        let rate = got * 8.0 / takes;
        assert!((0.8 * most..=most).contains(&rate), "{workload}: {rate}");
    }
}

#[test]
fn content_and_bytes_without_content_are_written_alike() {
    for (paths, key) in [(1, "tcp"), (2, "mptcp")] {
        for work in ["bulk = { bytes = \"3MB\" }", "request = { size = \"3MB\" }"] {
            let spec = format!("transport.{key} = {{ send_buffer = \"50kB\" }}\nworkload.{work}");
            let synthetic = flow(paths, "", &spec);
            let real = flow(paths, ", verify = true", &spec);
            assert_eq!(real["verified"], true);
            for column in ["completion_s", "sent_packets", "delivered_bytes"] {
                assert_eq!(synthetic[column], real[column], "{key} {work} {column}");
            }
        }
    }
}

/// With Linux's profile contents are written in whole super-segments: a small buffer holds up to one more.
#[test]
fn contents_of_linux_are_no_slower_in_a_small_buffer() {
    let spec = "transport.tcp = { profile = \"linux-6\", send_buffer = \"50kB\" }\nworkload.bulk = { bytes = \"3MB\" }";
    let [synthetic, real] = ["", ", verify = true"].map(|record| flow(1, record, spec));
    assert_eq!(real["verified"], true);
    let [exact, more] = [&synthetic, &real].map(|f| f["completion_s"].as_f64().unwrap());
    assert!(more <= exact && more > 0.4 * exact, "{more} s, {exact} s");
}

/// A larger receive buffer alone gives a larger window: the default of the send buffer does not limit it.
#[test]
fn the_default_is_no_less_than_the_receive_buffer() {
    let resolved = |options: &str| {
        let text = format!(
            "duration = \"1s\"\n[topology.simple]\nlink = {{ rate = \"1Mbit/s\", delay = \"1ms\" }}\n\
             [[flows]]\nfrom = \"client\"\nto = \"server\"\ntransport.tcp = {{ {options} }}\n"
        );
        let scenario = parse(&text, &Origin::default(), &[]).unwrap();
        let size = scenario.to_json()["flows"][0]["transport"]["tcp"]["send_buffer"].clone();
        size.as_str()
            .and_then(|s| s.parse::<Bytes>().ok())
            .map(Bytes::get)
    };
    assert_eq!(resolved(""), Some(64 << 20));
    assert_eq!(resolved("receive_buffer = \"1MB\""), Some(64 << 20));
    assert_eq!(resolved("receive_buffer = \"200MB\""), Some(200_000_000));
    let both = "receive_buffer = \"200MB\", send_buffer = \"1MB\"";
    assert_eq!(resolved(both), Some(1_000_000));
    let old = "profile = \"ns3-3.27\"";
    assert_eq!(resolved(old), Some(131_072));
}
