//! Multipath TCP end to end in the simulator: aggregation, fairness on a shared bottleneck, paths and
//! addresses that go, never less than the best path, every byte.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::common::simulate;

/// Client and server with these paths, as inline tables without braces, and flows between them.
fn paths(head: &str, paths: &[&str], flows: &[&str]) -> String {
    let paths: Vec<_> = paths.iter().map(|p| format!("{{ {p} }}")).collect();
    let mut text = format!(
        "{head}\n[topology.multipath]\npaths = [{}]\n",
        paths.join(", ")
    );
    for flow in flows {
        text += &format!("[[flows]]\nfrom = \"client\"\nto = \"server\"\n{flow}\n");
    }
    text
}

const QUIET: &str = "record = { flows = false, links = false, events = false }";
const BDP: &str = "queue = { droptail = \"1BDP\" }";

fn goodput(flow: &Json) -> f64 {
    flow["goodput_bps"].as_f64().unwrap() / 1e6
}

/// Bytes delivered by link.
fn by_link<'a>(json: &'a Json, flow: &Json) -> BTreeMap<&'a str, u64> {
    let mut carried = BTreeMap::new();
    for s in of_flow(json, flow) {
        *carried.entry(s["link"].as_str().unwrap()).or_default() +=
            s["delivered_bytes"].as_u64().unwrap();
    }
    carried
}

#[test]
fn five_clean_paths_are_one() {
    let rates = [10, 25, 50, 75, 100];
    let links: Vec<_> = rates
        .iter()
        .map(|r| format!("rate = \"{r}Mbit/s\", delay = \"5ms\", {BDP}"))
        .collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let flow = "transport.mptcp = { congestion = \"cubic\", receive_buffer = \"16MB\" }";
    let out = simulate(&paths(
        &format!("duration = \"60s\"\n{QUIET}"),
        &links,
        &[flow],
    ));
    let flow = &out.json["flows"][0];
    // Of 1500 bytes 1428 are data: 247.5 of 260 Mbit/s is all there is, less the start.
    assert!(goodput(flow) >= 0.948 * 260.0, "{flow}");
    assert_eq!(of_flow(&out.json, flow).len(), 5);
    let carried = by_link(&out.json, flow);
    for (i, rate) in rates.iter().enumerate() {
        let share = carried[format!("path{i}").as_str()] as f64 * 8e-6 / 60.0;
        assert!(share > 0.93 * f64::from(*rate), "path{i}: {share}");
    }
}

#[test]
fn coupled_controls_take_no_more_than_one_tcp_at_a_shared_bottleneck() {
    for congestion in ["lia", "olia", "balia"] {
        // The first subflow's rival and the second's are the same TCP.
        let text = format!(
            "duration = \"120s\"\nseed = 3\n{QUIET}\n[topology.graph]\nnodes = \
             [\"a\", \"b\", \"c\", \"d\", \"l\", \"r\"]\n\
             hosts = [\"a\", \"b\", \"c\", \"d\"]\nlinks = [\n\
             {{ from = \"l\", to = \"r\", rate = \"20Mbit/s\", delay = \"20ms\", queue = {{ red = {{}} }} }},\n\
             {{ from = \"a\", to = \"l\", name = \"a0\" }}, {{ from = \"a\", to = \"l\", name = \"a1\" }},\n\
             {{ from = \"r\", to = \"b\", name = \"b0\" }}, {{ from = \"r\", to = \"b\", name = \"b1\" }},\n\
             {{ from = \"c\", to = \"l\" }}, {{ from = \"r\", to = \"d\" }} ]\n\
             [[flows]]\nfrom = \"a\"\nto = \"b\"\ntransport.mptcp = {{ congestion = \"{congestion}\" }}\n\
             [[flows]]\nfrom = \"c\"\nto = \"d\"\ntransport.tcp = {{ congestion = \"reno\" }}\n"
        );
        let out = simulate(&text);
        let (multi, single) = (&out.json["flows"][0], &out.json["flows"][1]);
        assert_eq!(of_flow(&out.json, multi).len(), 2);
        let ratio = goodput(multi) / goodput(single);
        assert!((0.5..1.15).contains(&ratio), "{congestion}: {ratio}");
    }
}

#[test]
fn a_dead_path_costs_no_byte() {
    let links = [
        "rate = \"20Mbit/s\", delay = \"10ms\"",
        "rate = { steps = [[\"0s\", \"30Mbit/s\"], [\"3s\", \"0bit/s\"], [\"20s\", \"30Mbit/s\"]] }, delay = \"20ms\"",
    ];
    let flow = "transport.mptcp = {}\nworkload.bulk = { bytes = \"60MB\" }";
    let head = "duration = \"100s\"\nrecord = { interval = \"100ms\", verify = true }";
    let out = simulate(&paths(head, &links, &[flow]));
    let flow = &out.json["flows"][0];
    assert_eq!(flow["verified"], true, "{flow}");
    assert_eq!(flow["delivered_bytes"], 60_000_000);
    assert!(flow["reinjected_packets"].as_u64() > Some(0), "{flow}");
    // 17 MB in three seconds; then 20 Mbit/s, and both again after 20 s.
    let time = flow["completion_s"].as_f64().unwrap();
    assert!((19.0..24.0).contains(&time), "{time}");
    assert!(by_link(&out.json, flow)["path1"] > 8_000_000, "{flow}");
}

#[test]
fn a_hand_over_costs_no_byte() {
    let links = [
        "rate = \"20Mbit/s\", delay = \"10ms\"",
        "rate = \"10Mbit/s\", delay = \"30ms\"",
    ];
    let head = "duration = \"100s\"\nrecord = { interval = \"100ms\", verify = true }";
    // The first address goes at 5 s and comes back at 10 s; the second goes at 15 s; the server's second
    // goes, too.
    let flow = "transport.mptcp = { changes = [{ after = \"5s\", remove = \"path0\" }, \
                { after = \"10s\", add = \"path0\" }, { after = \"15s\", remove = \"path1\" }, \
                { after = \"15.5s\", host = \"to\", remove = \"path1\" }] }\nworkload.bulk = { bytes = \"50MB\" }";
    let out = simulate(&paths(head, &links, &[flow]));
    let flow = &out.json["flows"][0];
    assert_eq!(flow["verified"], true, "{flow}");
    assert_eq!(flow["delivered_bytes"], 50_000_000, "{flow}");
    let closed = |s: &&&Json| s["link"] == "path0" && s["closed_s"].is_number();
    let subflows = of_flow(&out.json, flow);
    let first = subflows.iter().find(closed).unwrap();
    assert_eq!(first["closed_s"], 5.0, "{flow}");
    assert!(subflows.iter().any(|s| s["opened_s"].as_f64() > Some(10.0)));
    // Break before make: with a single address there is no connection for a while, and then there is.
    let flow = "transport.mptcp = { links = [\"path0\"], changes = [{ after = \"5s\", remove = \"path0\" }, \
                { after = \"8s\", add = \"path1\" }] }\nworkload.bulk = { bytes = \"20MB\" }";
    let out = simulate(&paths(head, &links, &[flow]));
    let flow = &out.json["flows"][0];
    assert_eq!(flow["delivered_bytes"], 20_000_000, "{flow}");
    assert_eq!(flow["verified"], true);
}

#[test]
fn backups_wait() {
    let links = [
        "rate = { steps = [[\"0s\", \"10Mbit/s\"], [\"5s\", \"0bit/s\"]] }, delay = \"10ms\"",
        "rate = \"10Mbit/s\", delay = \"10ms\"",
    ];
    let flow = "transport.mptcp = { backup = [\"path1\"] }";
    let at = |seconds: u32| {
        let head = format!("duration = \"{seconds}s\"\n{QUIET}");
        let out = simulate(&paths(&head, &links, &[flow]));
        by_link(&out.json, &out.json["flows"][0])["path1"]
    };
    assert_eq!(at(5), 0);
    assert!(at(10) > 4_000_000);
}

#[test]
fn slow_and_fast_are_never_less_than_fast() {
    let slow = format!("rate = \"10Mbit/s\", delay = \"100ms\", {BDP}");
    let fast = format!("rate = \"100Mbit/s\", delay = \"5ms\", {BDP}");
    let head = format!("duration = \"20s\"\n{QUIET}");
    for buffer in ["256kB", "1MB", "4MB", "32MB"] {
        let tcp =
            format!("transport.tcp = {{ congestion = \"cubic\", receive_buffer = \"{buffer}\" }}");
        let out = simulate(&paths(&head, &[&fast], &[&tcp]));
        let single = goodput(&out.json["flows"][0]);
        let multi = tcp.replace("transport.tcp", "transport.mptcp");
        for order in [[&slow, &fast], [&fast, &slow]] {
            let out = simulate(&paths(&head, &order.map(String::as_str), &[&multi]));
            let both = goodput(&out.json["flows"][0]);
            assert!(both >= 0.95 * single, "{buffer}: {both} against {single}");
            if buffer == "32MB" {
                assert!(both >= 0.9 * 110.0, "{both}");
            }
        }
    }
}

#[test]
fn a_mesh_has_as_many_subflows_as_it_should() {
    let link = "rate = \"10Mbit/s\", delay = \"5ms\"";
    for (manager, subflows) in [
        ("\"default\"", 1),
        ("\"single-mesh\"", 3),
        ("\"full-mesh\"", 9),
        ("{ ndiffports = { subflows = 4 } }", 4),
    ] {
        let flow = format!("transport.mptcp = {{ path_manager = {manager} }}");
        let head = format!("duration = \"3s\"\n{QUIET}");
        let out = simulate(&paths(&head, &[link, link, link], &[&flow]));
        let flow = &out.json["flows"][0];
        let found = of_flow(&out.json, flow).len();
        assert_eq!(found, subflows, "{manager}: {flow}");
    }
    // A phone and a server with one link: a path for each of the phone's.
    let text = format!(
        "duration = \"5s\"\n{QUIET}\n[topology.graph]\nnodes = [\"phone\", \"wifi\", \"lte\", \"server\", \"net\"]\n\
         hosts = [\"phone\", \"server\"]\nlinks = [{{ from = \"phone\", to = \"wifi\", {link} }}, \
         {{ from = \"phone\", to = \"lte\", {link} }}, {{ from = \"wifi\", to = \"net\" }}, \
         {{ from = \"lte\", to = \"net\" }}, {{ from = \"net\", to = \"server\" }}]\n\
         [[flows]]\nfrom = \"server\"\nto = \"phone\"\ntransport.mptcp = {{}}\n\
         [[flows]]\nfrom = \"phone\"\nto = \"server\"\ntransport.mptcp = {{}}\n"
    );
    let out = simulate(&text);
    let sends = &out.json["flows"][1];
    assert_eq!(of_flow(&out.json, sends).len(), 2, "{sends}");
    assert!(
        by_link(&out.json, sends).values().all(|b| *b > 2_000_000),
        "{sends}"
    );
}

#[test]
fn binder_goes_by_each_gateway() {
    let link = "rate = \"10Mbit/s\", delay = \"5ms\"";
    let text = format!(
        "duration = \"5s\"\n{QUIET}\n[topology.graph]\nnodes = [\"c\", \"lan\", \"g1\", \"g2\", \"net\", \"s\"]\n\
         hosts = [\"c\", \"s\"]\nlinks = [{{ from = \"c\", to = \"lan\" }}, {{ from = \"lan\", to = \"g1\", {link} \
        }}, \
         {{ from = \"lan\", to = \"g2\", {link} }}, {{ from = \"g1\", to = \"net\" }}, \
         {{ from = \"g2\", to = \"net\" }}, {{ from = \"net\", to = \"s\" }}]\n\
         [[flows]]\nfrom = \"c\"\nto = \"s\"\ntransport.mptcp = {{ path_manager = \"binder\", gateways = \
        [\"g1\", \"g2\"] }}\n"
    );
    let out = simulate(&text);
    let flow = &out.json["flows"][0];
    assert!(goodput(flow) > 15.0, "{flow}");
    let gateways: Vec<_> = of_flow(&out.json, flow)
        .iter()
        .map(|s| &s["gateway"])
        .collect();
    assert!(gateways.contains(&&Json::from("g2")), "{flow}");
}

#[test]
fn the_same_seed_gives_the_same_tables() {
    let links = [
        "rate = \"20Mbit/s\", delay = \"10ms\", loss = { independent = 0.01 }",
        "rate = \"30Mbit/s\", delay = \"20ms\", loss = { independent = 0.02 }",
    ];
    let flow = "transport.mptcp = { path_manager = \"full-mesh\", congestion = \"olia\" }";
    let head = "duration = \"5s\"\nrecord.decisions = true";
    let ipc = || {
        let out = simulate(&paths(head, &links, &[flow]));
        out.tables.all().map(|t| t.to_ipc().unwrap()).concat()
    };
    let first = ipc();
    assert_eq!(first, ipc());
}

/// A path that is penalised may be due for long when data comes for it: its timer must fire all the same.
#[test]
fn penalties_on_paths_that_lose_stall_nothing() {
    let rates = [10, 25, 50, 75, 100];
    let links: Vec<_> = rates
        .iter()
        .map(|r| {
            format!(
                "jitter = \"50us\", up = {{ rate = \"{r}Mbit/s\", delay = \"100us\", loss = 0.01, \
                 queue = {{ droptail = \"1000 packets\" }} }}, down = {{ rate = \"1Gbit/s\", delay = \"100us\" }}"
            )
        })
        .collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let flow = "transport.mptcp = { congestion = \"cubic\", scheduler = \"lowest-latency\", \
                path_manager = \"single-mesh\", probe_interval = false, initial_window = \"10 packets\", \
                recovery = \"sack\", receive_buffer = \"3MiB\", send_buffer = \"4MiB\" }\n\
                workload.bulk = { bytes = \"20MB\" }";
    for seed in 1..=8 {
        let head = format!("duration = \"60s\"\nseed = {seed}\n{QUIET}");
        let out = simulate(&paths(&head, &links, &[flow]));
        let flow = &out.json["flows"][0];
        assert!(
            flow["completion_s"].as_f64().is_some_and(|t| t < 10.0),
            "seed {seed}: {flow}"
        );
    }
}

/// Something on the only path takes Multipath TCP options out, here or there, sooner or later: everything
/// arrives, by plain TCP.
#[test]
fn without_options_everything_arrives_by_plain_tcp() {
    let kinds = ["\"all\"", "\"syn\"", "\"rest\"", "{ after = \"1MB\" }"];
    for kind in kinds {
        for direction in ["", "up", "down"] {
            for download in [false, true] {
                let strip = format!("strip_mptcp = {kind}");
                let strip = match direction {
                    "" => strip,
                    _ => format!("{direction} = {{ {strip} }}"),
                };
                let work = match download {
                    true => "workload.request = { size = \"3MB\" }",
                    false => "workload.bulk = { bytes = \"3MB\" }",
                };
                let out = simulate(&paths(
                    "duration = \"60s\"\nrecord = { verify = true }",
                    &[&format!(
                        "rate = \"20Mbit/s\", delay = \"10ms\", {BDP}, {strip}"
                    )],
                    &[&format!("transport.mptcp = {{}}\n{work}")],
                ));
                let flow = &out.json["flows"][0];
                let what = format!("{kind} {direction} download={download}: {flow}");
                assert!(flow["completion_s"].as_f64().unwrap() < 3.0, "{what}");
                assert_eq!(flow["delivered_bytes"], 3_000_000, "{what}");
                assert_eq!(flow["verified"], true, "{what}");
                // Nobody need notice that late acknowledgements have lost theirs.
                let data = direction.is_empty() || (direction == "down") == download;
                if data || !kind.contains("after") {
                    assert_eq!(flow["fell_back"], true, "{what}");
                }
            }
        }
    }
}

/// Joins do not pass there; the rest is as if there were one path.
#[test]
fn a_path_without_options_is_not_used() {
    let good = format!("rate = \"20Mbit/s\", delay = \"10ms\", {BDP}");
    let bad = format!("{good}, strip_mptcp = \"all\"");
    let out = simulate(&paths(
        "duration = \"20s\"\nrecord = { verify = true }",
        &[&good, &bad],
        &["transport.mptcp = {}\nworkload.bulk = { bytes = \"10MB\" }"],
    ));
    let flow = &out.json["flows"][0];
    assert_eq!(flow["delivered_bytes"], 10_000_000);
    assert_eq!(flow["fell_back"], false);
    assert_eq!(
        by_link(&out.json, flow),
        BTreeMap::from([("path0", 10_000_000)])
    );
}

/// The rows of a flow's subflows.
fn of_flow<'a>(json: &'a Json, flow: &Json) -> Vec<&'a Json> {
    let all = json["subflows"].as_array().unwrap();
    all.iter().filter(|s| s["flow"] == flow["id"]).collect()
}
