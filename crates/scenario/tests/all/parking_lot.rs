//! A parking lot gives the results of the graph that it stands for.

use crate::common::simulate;

const QUEUE: &str = "queue = { droptail = \"100 packets\" }";

/// Flows of both groups and across each bottleneck, and random sources in both directions of the first.
const FLOWS: &str = r#"
[[flows]]
from = "left0-*"
to = "right0-*"
label = "short"
transport.tcp = { congestion = "cubic" }
[[flows]]
from = "left1-*"
to = "right1-*"
label = "long"
start = "300ms"
transport.tcp = { congestion = "bbr" }
[[flows]]
from = "cross*"
to = "sink*"
transport.quic = {}
workload.bulk = { bytes = "2MB" }
[[flows]]
from = "cross0"
to = "sink0"
transport.tcp = { congestion = "reno" }
workload.mix = { load = "20%", link = "bottleneck0" }
"#;

/// The same by hand, as [topology.graph].
fn graph() -> String {
    let (mut nodes, mut links) = (Vec::new(), Vec::new());
    let mut link = |from: &str, to: &str, settings: String| {
        links.push(format!(
            "{{ from = \"{from}\", to = \"{to}\", {settings} }}"
        ));
    };
    for i in 0..3 {
        let settings =
            format!("name = \"bottleneck{i}\", rate = \"10Mbit/s\", delay = \"14ms\", {QUEUE}");
        link(&format!("router{i}"), &format!("router{}", i + 1), settings);
    }
    let access = |delay: &str| format!("rate = \"100Mbit/s\", delay = \"{delay}\"");
    let long = [("0-0", "1.5ms"), ("0-1", "1.5ms"), ("1-0", "24ms")];
    for (pair, delay) in long {
        link(&format!("left{pair}"), "router0", access(delay));
        link("router3", &format!("right{pair}"), access(delay));
    }
    for i in 0..6 {
        let (near, far) = (i % 3, i % 3 + 1);
        link(
            &format!("cross{i}"),
            &format!("router{near}"),
            access("0.5ms"),
        );
        link(
            &format!("router{far}"),
            &format!("sink{i}"),
            access("0.5ms"),
        );
    }
    nodes.extend(long.map(|(pair, _)| format!("\"left{pair}\"")));
    nodes.extend(long.map(|(pair, _)| format!("\"right{pair}\"")));
    for kind in ["cross", "sink"] {
        nodes.extend((0..6).map(|i| format!("\"{kind}{i}\"")));
    }
    nodes.extend((0..4).map(|i| format!("\"router{i}\"")));
    let (nodes, links) = (nodes.join(", "), links.join(",\n"));
    format!("[topology.graph]\nnodes = [{nodes}]\nlinks = [\n{links}\n]\n")
}

#[test]
fn it_is_the_graph_with_the_delays_worked_out() {
    let head = "duration = \"15s\"\nseed = 3\n";
    let lot = format!(
        "[topology.parking-lot]\nhops = 3\nbottleneck = {{ rate = \"10Mbit/s\", delay = \"14ms\", {QUEUE} }}\n\
         access = {{ rate = \"100Mbit/s\" }}\ngroups = [{{ pairs = 2, rtt = \"90ms\" }}, {{ rtt = \"180ms\" }}]\n\
         cross = {{ pairs = 2, rtt = \"30ms\" }}\n"
    );
    let by_name = simulate(&format!("{head}{lot}{FLOWS}"));
    let by_hand = simulate(&format!("{head}{}{FLOWS}", graph()));
    assert_eq!(by_name.json["flows"], by_hand.json["flows"]);
    assert_eq!(by_name.json["links"], by_hand.json["links"]);
    assert_eq!(
        by_name.json["run"]["results_hash"],
        by_hand.json["run"]["results_hash"]
    );
    assert_eq!(by_name.json["run"]["findings"], serde_json::json!([]));
    // The round trips are those that were asked for, and some packets.
    let flows = by_name.json["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 9);
    for (flow, least) in flows
        .iter()
        .zip([90.0, 90.0, 180.0, 30.0, 30.0, 30.0, 30.0, 30.0, 30.0])
    {
        let found = flow["rtt_min_s"].as_f64().unwrap() * 1e3;
        assert!((least..least + 10.0).contains(&found), "{least}: {flow}");
    }
}
