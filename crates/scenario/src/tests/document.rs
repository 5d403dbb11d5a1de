//! A resolved scenario in its own words: every default is said, and it reads as the same again.

use serde_json::Value as Json;

use super::grammar::simple;
use super::{ok, set};
use crate::{Names, Origin, Scenario, parse_json, schema, to_toml};

const LINK: &str = "rate = \"10Mbit/s\", delay = \"10ms\"";

/// Reads it again, from text and from values.
#[track_caller]
fn the_same_again(first: &Scenario) {
    let text = to_toml(&first.document).unwrap();
    let second = ok(&text);
    let third = parse_json(&first.document, &Origin::default(), &[], &Names::default());
    for again in [second, third.unwrap()] {
        assert_eq!(again.document, first.document);
        assert_eq!(again.canonical_json(), first.canonical_json(), "{text}");
    }
}

fn transport(s: &Scenario) -> &Json {
    &s.document["flows"][0]["transport"]
}

#[test]
fn every_option_with_a_default_is_said() {
    let schema = schema();
    for (kind, definition) in [("tcp", "Tcp"), ("mptcp", "Mptcp"), ("quic", "Quic")] {
        let s = ok(&simple(LINK, &format!("transport.{kind} = {{}}")));
        let said = transport(&s)[kind].as_object().unwrap();
        let keys = schema["$defs"][definition]["properties"]
            .as_object()
            .unwrap();
        for (key, _) in keys.iter().filter(|(_, s)| s.get("default").is_some()) {
            assert!(said.contains_key(key), "transport.{kind}.{key}");
        }
        assert!(said.len() > 15, "{said:?}");
        the_same_again(&s);
    }
    let s = ok(&simple(
        LINK,
        "transport.udp = {}\nworkload.cbr = { rate = \"1Mbit/s\" }",
    ));
    the_same_again(&s);
}

#[test]
fn what_follows_from_other_values_is_said_as_what_it_came_to() {
    for (link, options, key, value) in [
        ("mtu = \"576B\"", "tcp = {}", "mss", "524B"),
        ("mtu = \"9000B\"", "tcp = {}", "mss", "1448B"),
        ("", "tcp = { timestamps = false }", "mss", "1460B"),
        (
            "mtu = \"576B\"",
            "tcp = { timestamps = false }",
            "mss",
            "536B",
        ),
        (
            "",
            "tcp = { profile = \"linux-6\", timestamps = false }",
            "mss",
            "1460B",
        ),
        ("", "mptcp = { timestamps = false }", "mss", "1460B"),
        (
            "mtu = \"576B\"",
            "tcp = { initial_window = \"5kB\" }",
            "initial_window",
            "5240B",
        ),
        ("", "tcp = { congestion = \"dctcp\" }", "ecn", "dctcp"),
        (
            "",
            "tcp = { congestion = \"dctcp\", ecn = true }",
            "ecn",
            "dctcp",
        ),
        (
            "",
            "tcp = { congestion = \"dctcp\", ecn = \"classic\" }",
            "ecn",
            "classic",
        ),
        ("", "mptcp = { congestion = \"prague\" }", "ecn", "l4s"),
        ("", "tcp = { sack = false }", "recovery", "newreno"),
        ("", "tcp = { profile = \"ns3-3.27\" }", "mss", "536B"),
        (
            "",
            "tcp = { receive_buffer = \"100MB\" }",
            "send_buffer",
            "100MB",
        ),
        (
            "",
            "tcp = { window_scaling = false }",
            "receive_buffer",
            "65535B",
        ),
        (
            "mtu = \"1300B\"",
            "quic = { profile = \"google-v41\" }",
            "datagram_size",
            "1272B",
        ),
        (
            "",
            "quic = { profile = \"google-v41\" }",
            "initial_window",
            "43200B",
        ),
    ] {
        let s = ok(&simple(
            &format!("{LINK}, {link}"),
            &format!("transport.{options}"),
        ));
        let kind = options.split(' ').next().unwrap();
        assert_eq!(transport(&s)[kind][key], value, "{options} over {link}");
        the_same_again(&s);
    }
    let parameter = |options: &str, name: &str, key: &str| {
        let s = ok(&simple(LINK, &format!("transport.{options}")));
        the_same_again(&s);
        let kind = options.split(' ').next().unwrap();
        transport(&s)[kind]["congestion"][name][key].clone()
    };
    let old = "tcp = { profile = \"ns3-3.27\", congestion = \"reno\" }";
    assert_eq!(parameter(old, "reno", "abc_limit"), 1);
    assert_eq!(parameter("quic = {}", "cubic", "reduce_from"), "cwnd");
    let google = "quic = { profile = \"google-v41\" }";
    assert_eq!(parameter(google, "cubic", "connections"), 2);
    // A parameter that is given stays, and what is not given is the profile's.
    let own = "quic = { profile = \"google-v41\", congestion = { cubic = { connections = 1 } } }";
    assert_eq!(parameter(own, "cubic", "connections"), 1);
    assert_eq!(parameter(own, "cubic", "slow_start"), "hystart");
}

#[test]
fn a_path_manager_that_is_not_that_of_all_copies_is_not_said() {
    let graph = |from: &str| {
        format!(
            "duration = \"10s\"\n[topology.graph]\nnodes = [\"a0\", \"a1\", \"r\", \"q\", \"b\"]\n\
             hosts = [\"a0\", \"a1\", \"b\"]\nlinks = [\n{{ from = \"a0\", to = \"r\" }},\n\
             {{ from = \"a1\", to = \"r\" }},\n{{ from = \"a1\", to = \"q\" }},\n{{ from = \"r\", to = \"b\" }},\n\
             {{ from = \"q\", to = \"b\" }},\n]\n[[flows]]\nfrom = \"{from}\"\nto = \"b\"\ntransport.mptcp = {{}}\n"
        )
    };
    for (from, manager) in [
        ("a0", Some("full-mesh")),
        ("a1", Some("single-mesh")),
        ("a*", None),
    ] {
        let s = ok(&graph(from));
        let said = &transport(&s)["mptcp"]["path_manager"];
        let key = said.as_object().and_then(|table| table.keys().next());
        assert_eq!(said.as_str().or(key.map(String::as_str)), manager);
        the_same_again(&s);
    }
    let chosen = set(
        &graph("a*"),
        &[("flows.0.transport.mptcp.path_manager", "binder")],
    );
    assert_eq!(
        transport(&chosen.unwrap())["mptcp"]["path_manager"],
        "binder"
    );
}
