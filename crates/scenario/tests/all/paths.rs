//! Flows over one path of several, which they name.

use gargalo_link::{QueueConfig, QueueLimit};
use gargalo_scenario::build::{Outcome, RunOptions, run};
use gargalo_scenario::{Origin, parse};
use gargalo_units::{Duration, Rate};
use serde_json::Value as Json;

use crate::common::{scenario, simulate};

/// Rates in Mbit/s and one-way delays in milliseconds of the paths; each queue holds a bandwidth-delay product.
const PATHS: [(f64, f64); 3] = [(10.0, 5.0), (4.0, 40.0), (8.0, 20.0)];

fn network(head: &str, flows: &[&str]) -> String {
    let path = |(rate, delay): &(f64, f64)| {
        format!(
            "{{ rate = \"{rate}Mbit/s\", delay = \"{delay}ms\", queue = {{ droptail = \"1BDP\" }} }}"
        )
    };
    let paths: Vec<String> = PATHS.iter().map(path).collect();
    let mut text = format!(
        "{head}\nduration = \"20s\"\nseed = 4\n[topology.multipath]\npaths = [{}]\n",
        paths.join(", ")
    );
    for flow in flows {
        text += &format!("[[flows]]\nfrom = \"client\"\nto = \"server\"\n{flow}\n");
    }
    text
}

fn figure(row: &Json, key: &str) -> f64 {
    row[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} of {row}"))
}

/// Bytes that a path carried up and down.
fn carried(out: &Outcome, path: usize) -> [f64; 2] {
    let links = out.json["links"].as_array().unwrap();
    let of = |l: &&Json| l["name"] == format!("path{path}").as_str();
    let bytes: Vec<f64> = links
        .iter()
        .filter(of)
        .map(|l| figure(l, "sent_bytes"))
        .collect();
    [bytes[0], bytes[1]]
}

/// The flow has the rate and the round trip of this path, and no other path carries anything.
#[track_caller]
fn has_all_of(out: &Outcome, path: usize) {
    let (rate, delay) = PATHS[path];
    let flow = &out.json["flows"][0];
    let goodput = figure(flow, "goodput_bps") / 1e6;
    assert!((0.8 * rate..rate).contains(&goodput), "{flow}");
    let least = figure(flow, "rtt_min_s") * 1e3;
    // A packet takes 3 ms at 4 Mbit/s, and a QUIC client's first acknowledged flight is more than one.
    assert!((2.0 * delay..2.0 * delay + 6.0).contains(&least), "{flow}");
    for other in 0..PATHS.len() {
        let used = carried(out, other);
        assert_eq!(used.map(|b| b > 0.0), [other == path; 2], "path{other}");
    }
    assert_eq!(out.json["run"]["findings"], serde_json::json!([]));
}

#[test]
fn a_flow_has_the_rate_and_the_round_trip_of_its_path() {
    for transport in ["tcp", "quic"] {
        let flow = format!("transport.{transport} = {{}}");
        has_all_of(&simulate(&network("", &[&flow])), 0);
        for path in 0..PATHS.len() {
            let flow = format!("path = {path}\n{flow}");
            has_all_of(&simulate(&network("", &[&flow])), path);
        }
    }
    // The other way round, and with a server that sends.
    let back = network("", &["path = 2\ntransport.tcp = {}"]).replace(
        "from = \"client\"\nto = \"server\"",
        "from = \"server\"\nto = \"client\"",
    );
    has_all_of(&simulate(&back), 2);
    let asked = "path = 1\ntransport.tcp = {}\nworkload.request = { objects = 1, size = \"6MB\" }";
    let out = simulate(&network("", &[asked]));
    let time = figure(&out.json["flows"][0], "completion_s");
    assert!((12.0..15.0).contains(&time), "{time}");
    assert!(carried(&out, 1)[1] > 6e6 && carried(&out, 0) == [0.0; 2]);
}

#[test]
fn datagrams_take_their_path() {
    let flow = "path = 1\ntransport.udp = {}\nworkload.cbr = { rate = \"1Mbit/s\", packet_size = \"500B\" }";
    let out = simulate(&network("", &[flow]));
    let delay = figure(&out.json["flows"][0], "delay_min_s");
    assert!((0.040..0.045).contains(&delay), "{delay}");
    assert_eq!(carried(&out, 0), [0.0; 2]);
}

#[test]
fn flows_on_different_paths_do_not_share() {
    let flow = |path: usize| format!("path = {path}\ntransport.tcp = {{}}");
    let goodput = |paths: &[usize]| -> Vec<f64> {
        let flows: Vec<String> = paths.iter().map(|p| flow(*p)).collect();
        let flows: Vec<&str> = flows.iter().map(String::as_str).collect();
        let out = simulate(&network("", &flows));
        let rows = out.json["flows"].as_array().unwrap().iter();
        rows.map(|f| figure(f, "delivered_bytes")).collect()
    };
    let together = goodput(&[0, 1, 2]);
    for (path, both) in together.iter().enumerate() {
        let alone = goodput(&[path])[0];
        assert!(
            (both / alone - 1.0).abs() < 0.01,
            "path{path}: {both} {alone}"
        );
    }
    // On one path they do.
    let shared: f64 = goodput(&[1, 1]).iter().sum();
    assert!((shared / together[1] - 1.0).abs() < 0.1, "{shared}");
}

#[test]
fn a_flow_beside_multipath_tcp_takes_of_its_path_only() {
    let mptcp = "label = \"several\"\ntransport.mptcp = { congestion = \"lia\" }";
    let out = simulate(&network("", &[mptcp, "path = 1\ntransport.tcp = {}"]));
    let (several, one) = (&out.json["flows"][0], &out.json["flows"][1]);
    let own = figure(one, "goodput_bps") / 1e6;
    assert!((1.5..4.0).contains(&own), "{one}");
    assert!(figure(one, "rtt_min_s") >= 0.080);
    assert_eq!(figure(several, "subflows"), 3.0);
    // Multipath TCP has the other two paths for itself.
    assert!(figure(several, "goodput_bps") > 0.8 * 18e6, "{several}");
    assert_eq!(out.json["run"]["findings"], serde_json::json!([]));
}

#[test]
fn the_order_of_flows_that_differ_in_their_path_does_not_matter() {
    let flows = ["transport.tcp = {}", "path = 1\ntransport.tcp = {}"];
    let figures = |order: [usize; 2]| {
        let out = simulate(&network("start_jitter = \"1s\"", &order.map(|i| flows[i])));
        let keys = ["start_s", "delivered_bytes", "rtt_mean_s"];
        order.map(|i| keys.map(|key| figure(&out.json["flows"][i], key)))
    };
    assert_eq!(figures([0, 1]), figures([1, 0]));
}

#[test]
fn background_loads_its_path() {
    for workload in ["mix", "web", "ftp"] {
        let flow =
            format!("path = 2\ntransport.tcp = {{}}\nworkload.{workload} = {{ load = \"50%\" }}");
        let out = simulate(&network("", &[&flow]));
        assert_eq!([carried(&out, 0), carried(&out, 1)], [[0.0; 2]; 2]);
        let load = &out.json["summary"]["background"]["loads"][0];
        assert_eq!(
            (load["link"].as_str(), figure(load, "asked_bps")),
            (Some("path2"), 4e6)
        );
        assert!(figure(load, "sent_load") > 0.3, "{load}");
    }
    // A named link must be on the path.
    let flow = "path = 2\ntransport.tcp = {}\nworkload.web = { load = \"50%\", link = \"path0\" }";
    let errors = parse(&network("", &[flow]), &Origin::default(), &[]).unwrap_err();
    assert!(
        errors.render(false).contains("it leads over: path2"),
        "{}",
        errors.render(false)
    );
    // Arrivals, which are counted together.
    let flow = "path = 1\nrecord = \"summary\"\narrivals = { rate = \"5/s\" }\ntransport.quic = {}\n\
                workload.bulk = { bytes = \"20kB\" }";
    let out = simulate(&network("", &[flow]));
    assert_eq!([carried(&out, 0), carried(&out, 2)], [[0.0; 2]; 2]);
    let group = &out.json["summary"]["background"]["groups"][0];
    assert!(figure(group, "rtt_min_s") >= 0.080 && figure(group, "completed_flows") > 50.0);
}

#[test]
fn what_follows_from_the_route_is_of_the_path() {
    let text = network("", &["path = 1\ntransport.tcp = {}"]);
    let text = text.replacen(
        "rate = \"4Mbit/s\"",
        "mtu = \"1000B\", rate = \"4Mbit/s\"",
        1,
    );
    let s = scenario(&text);
    // Its segments fit the path's packets; its buffer is a product of the path's rate and delay.
    assert_eq!(s.document["flows"][0]["transport"]["tcp"]["mss"], "948B");
    let product = QueueLimit::bdp(Rate::from_mbps(4), Duration::from_millis(80), 1.0);
    assert_eq!(s.links[1].up.queue, QueueConfig::DropTail(product));
    let captured = text + "[record]\ncaptures = [\"path1\"]\n";
    let dir = std::env::temp_dir().join(format!("gargalo-paths-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let options = RunOptions {
        output: Some(dir.clone()),
        ..RunOptions::default()
    };
    run(&scenario(&captured), options).unwrap();
    let capture = std::fs::read(dir.join("capture.pcapng")).unwrap();
    std::fs::remove_dir_all(dir).unwrap();
    // Addresses of the second interfaces of both hosts.
    let ends = [10, 1, 0, 1, 10, 1, 0, 2];
    assert!(capture.windows(ends.len()).any(|w| w == ends));
}
