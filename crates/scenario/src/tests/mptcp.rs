//! Multipath TCP as written: what is filled in, and what is refused.

use gargalo_settings::Setting;

use super::slips::rejects;
use super::{bad, ok};
use crate::resolved::{Mptcp, Transport};

const PATHS: &str = "duration = \"10s\"\n[topology.multipath]\npaths = [{ rate = \"1Mbit/s\" }, \
    { rate = \"2Mbit/s\" }]\n\
    [[flows]]\nfrom = \"client\"\nto = \"server\"\n";

fn with(options: &str) -> String {
    format!("{PATHS}transport.mptcp = {{ {options} }}\n")
}

fn resolved(text: &str) -> Mptcp {
    match &ok(text).flows[0].transport {
        Transport::Mptcp(m) => (**m).clone(),
        other => panic!("{other:?}"),
    }
}

fn manager(m: &Mptcp) -> Option<&str> {
    m.spec.path_manager.as_ref().map(|p| p.name.as_str())
}

#[test]
fn defaults_are_those_of_the_crate() {
    let m = resolved(&with(""));
    assert_eq!(m.spec.scheduler.name, gargalo_mptcp::scheduler::DEFAULT);
    assert_eq!(manager(&m), Some("single-mesh"));
    assert_eq!(m.spec.tcp.congestion.name, "cubic");
    assert_eq!(m.spec.options, gargalo_mptcp::Options::default());
    // A host with a single link cannot do with one subflow for each address of its own.
    let one = with("").replace(", { rate = \"2Mbit/s\" }", "");
    assert_eq!(manager(&resolved(&one)), Some("full-mesh"));
}

#[test]
fn options_of_tcp_are_options_of_subflows() {
    let m = resolved(&with(
        "congestion = { olia = {} }, receive_buffer = \"3MB\", sack = false, delayed_ack = { every = 1 }, \
         scheduler = { round-robin = { segments = 3 } }, path_manager = { ndiffports = { subflows = 3 } }, \
         backup = [\"path1\"], data_numbers = \"long\", probe_interval = false, \
         changes = [{ after = \"5s\", add = \"path0\" }, { after = \"2s\", host = \"to\", remove = \"path0\" }]",
    ));
    assert_eq!(m.spec.tcp.congestion.name, "olia");
    assert_eq!(m.spec.tcp.config.receive_buffer.get(), 3_000_000);
    assert_eq!(m.spec.tcp.config.delayed_ack.every, 1);
    assert!(!m.spec.tcp.config.sack);
    assert_eq!(m.spec.scheduler.write()["round-robin"]["segments"], 3);
    assert_eq!((m.backups, m.spec.options.probes()), (vec![1], None));
    // In the order of time.
    let changes: Vec<_> = m.changes.iter().map(|c| (c.side, c.link, c.add)).collect();
    assert_eq!(changes, [(1, 0, false), (0, 0, true)]);
}

#[test]
fn slips_are_told_with_line_and_fix() {
    rejects(
        &with("scheduler = \"lowest-latancy\""),
        "scheduler has no value \"lowest-latancy\"",
        "did you mean `lowest-latency`",
        7,
    );
    rejects(
        &with("path_manager = \"fullmesh\""),
        "path_manager has no value \"fullmesh\"",
        "did you mean `full-mesh`",
        7,
    );
    rejects(
        &with("sheduler = \"blest\""),
        "has no key \"sheduler\"",
        "did you mean `scheduler`",
        7,
    );
    rejects(
        &with("scheduler = { round-robin = { segments = 0 } }"),
        "segments = 0 is out of range",
        "1",
        7,
    );
    rejects(
        &with("backup = [\"path2\"]"),
        "there is no link \"path2\"",
        "links: path0, path1",
        7,
    );
    rejects(
        &with("changes = [{ after = \"1s\" }]"),
        "neither add nor remove",
        "the name of a link",
        7,
    );
    rejects(
        &with("gateways = [\"server\"]"),
        "there is no router \"server\"",
        "routers",
        7,
    );
    rejects(&with("mss = \"9000B\""), "does not fit", "mtu", 7);
    rejects(
        &with("").replace("transport", "workload.ftp = { load = \"10%\" }\ntransport"),
        "carried by TCP",
        "workload.request",
        7,
    );
}

#[test]
fn a_path_is_one_of_the_topology_for_a_transport_that_takes_one() {
    let with = |flow: &str| format!("{PATHS}{flow}\n");
    let chosen = |flow: &str| ok(&with(flow)).flows[0].path;
    assert_eq!(chosen("transport.tcp = {}"), 0);
    let datagrams = "udp = {}\nworkload.cbr = { rate = \"1Mbit/s\" }";
    for transport in ["tcp = {}", "quic = {}", datagrams] {
        assert_eq!(chosen(&format!("path = 1\ntransport.{transport}")), 1);
    }
    let single = "path = 1\ntransport.quic = { multipath = false }";
    assert_eq!(chosen(single), 1);
    let copies = ok(&with("path = 1\ncount = 3\ntransport.tcp = {}"));
    assert!(copies.flows.iter().all(|f| f.path == 1));
    assert_eq!(copies.document["flows"][0]["path"], 1);
    assert_eq!(copies.to_json()["flows"][2]["path"], 1);
    let hash = |flow: &str| ok(&with(flow)).hash();
    let usual = hash("transport.tcp = {}");
    assert_eq!(usual, hash("path = 0\ntransport.tcp = {}"));
    assert_ne!(usual, hash("path = 1\ntransport.tcp = {}"));

    let rejected = |flow: &str, message: &str, help: &str| {
        let text = with(flow);
        rejects(&text, message, help, 7);
        assert_eq!(bad(&text).iter().count(), 1, "{flow}");
    };
    let tcp = "path = 2\ntransport.tcp = {}";
    rejected(
        tcp,
        "there is no path2: the paths are path0 to path1",
        "give 0 to 1",
    );
    let (message, help) = ("the only path is path0", "give 0, or leave it out");
    let one = with(tcp).replace(", { rate = \"2Mbit/s\" }", "");
    rejects(&one, message, help, 7);
    rejected(
        "path = 1\ntransport.mptcp = {}",
        "path = 1 for Multipath TCP, which takes several paths",
        "links = [\"path1\"]",
    );
    rejected(
        "path = 1\ntransport.mptcp = { links = [\"path0\"] }",
        "path = 1 for Multipath TCP",
        "leave it out: `links` names the paths",
    );
    rejected(
        "path = 1\ntransport.quic = { multipath = 2 }",
        "path = 1 for multipath QUIC",
        "or `multipath`",
    );
    rejected("path = 256\ntransport.tcp = {}", "256", "255");
    for topology in ["simple", "dumbbell"] {
        let link = ["link", "bottleneck"][usize::from(topology == "dumbbell")];
        let text = format!(
            "duration = \"1s\"\n[topology.{topology}]\n{link} = {{}}\n[[flows]]\nfrom = \"HOST\"\n\
             to = \"PEER\"\npath = 0\ntransport.tcp = {{}}\n"
        );
        let names =
            [("client", "server"), ("left0", "right0")][usize::from(topology == "dumbbell")];
        let text = text.replace("HOST", names.0).replace("PEER", names.1);
        let message = format!("path = 0 with topology.{topology}");
        rejects(&text, &message, "[topology.multipath]", 7);
    }
}

#[test]
fn an_address_that_leads_nowhere_is_no_address() {
    let text = "duration = \"10s\"\n[topology.graph]\nnodes = [\"a\", \"b\", \"c\", \"r\"]\n\
        links = [{ from = \"a\", to = \"r\" }, { from = \"b\", to = \"r\" }, { from = \"c\", to = \"r\" }]\n\
        [[flows]]\nfrom = \"a\"\nto = \"b\"\ntransport.mptcp = { links = [\"c-r\"] }\n";
    rejects(
        text,
        "does not lead to \"a\" or \"b\"",
        "links: a-r, b-r",
        8,
    );
    let one = text.replace("c-r", "a-r");
    rejects(&one, "no usable path", "its links are b-r", 8);
    assert_eq!(bad(&one).iter().count(), 1);
}

#[test]
fn the_hash_knows_scheduler_and_changes() {
    let hash = |options: &str| ok(&with(options)).hash();
    let base = hash("");
    assert_eq!(base, hash("scheduler = \"window-aware\""));
    for other in [
        "scheduler = \"blest\"",
        "path_manager = \"full-mesh\"",
        "penalisation = false",
        "backup = [\"path1\"]",
        "changes = [{ after = \"1s\", remove = \"path0\" }]",
    ] {
        assert_ne!(base, hash(other), "{other}");
    }
}
