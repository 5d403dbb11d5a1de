//! What the engine of the simulator promises whatever the transport: sums agree, flows come and end in time.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use gargalo_flow::{Outcome, Phase};
use gargalo_scenario::build::{RunOptions, simulate};

use crate::common::scenario;

/// Two hosts, 10 ms apart.
fn network(head: &str, link: &str, flows: &[&str]) -> String {
    let mut text = format!("{head}\n[topology.simple]\nlink = {{ delay = \"10ms\", {link} }}\n");
    for flow in flows {
        text += &format!("[[flows]]\nfrom = \"client\"\nto = \"server\"\n{flow}\n");
    }
    text
}

fn outcome(text: &str) -> Outcome {
    simulate(&scenario(text), RunOptions::default()).unwrap()
}

const ENOUGH: &str = "rate = \"20Mbit/s\", queue = { droptail = \"100000 packets\" }";

/// What hosts put on the wire for their flows is what enters the link, in both directions.
#[test]
fn bytes_on_the_wire_are_those_of_the_link() {
    let bulk = "workload.bulk = { bytes = \"300kB\" }";
    let request = "workload.request = { objects = 3, size = \"100kB\" }";
    for (transport, workload) in [
        ("tcp = {}", bulk),
        ("tcp = {}", request),
        ("tcp = { receiver = \"divides-acks\" }", bulk),
        ("tcp = { receiver = \"optimistic\" }", bulk),
        ("mptcp = {}", bulk),
        ("mptcp = {}", request),
        ("quic = {}", bulk),
        ("quic = {}", request),
        (
            "udp = {}",
            "workload.cbr = { rate = \"1Mbit/s\" }\nstop = \"2.95s\"",
        ),
        ("udp = {}", "workload.ping = {}\nstop = \"2.95s\""),
    ] {
        let out = outcome(&network(
            "duration = \"3s\"",
            ENOUGH,
            &[&format!("transport.{transport}\n{workload}")],
        ));
        let [up, down] = [0, 1].map(|i| out.links[i].sent_bytes);
        let wire = out.flows[0].wire;
        // A client that requests receives.
        let (forward, reverse) = match workload == request {
            true => (down, up),
            false => (up, down),
        };
        // The last packet of QUIC, which closes the connection, ends the run before the link has sent it.
        let last = if transport == "quic = {}" { 100 } else { 0 };
        let what = format!("{transport} {workload}: {wire:?}, {forward}, {reverse}");
        assert!((forward..=forward + last).contains(&wire.forward), "{what}");
        assert!((reverse..=reverse + last).contains(&wire.reverse), "{what}");
        assert!(
            forward > 0 && (reverse > 0 || workload.contains("cbr")),
            "{what}"
        );
        let packets: u64 = out.links.iter().map(|l| l.offered_packets).sum();
        assert_eq!(packets, out.packets, "{transport} {workload}");
    }
}

/// RFC 9743 §7.6: these receivers make more acknowledgements of one segment, and take more than their share.
#[test]
fn a_receiver_that_misbehaves_is_seen_on_the_wire() {
    let packets = |receiver: &str| {
        let flow = format!(
            "transport.tcp = {{ receiver = \"{receiver}\" }}\nworkload.bulk = {{ bytes = \"300kB\" }}"
        );
        outcome(&network("duration = \"5s\"", ENOUGH, &[&flow])).links[1].offered_packets
    };
    let (honest, divides) = (packets("honest"), packets("divides-acks"));
    assert!(divides > 2 * honest, "{divides} after {honest}");
}

/// Every mark that a queue makes is seen by the receiver, whatever reads it there.
#[test]
fn marks_of_the_queue_are_marks_at_the_receiver() {
    let link =
        "rate = \"5Mbit/s\", queue = { step = { mark_above = \"5ms\", drop_incapable = false } }";
    for transport in [
        "tcp = { congestion = \"dctcp\" }",
        "mptcp = { ecn = true }",
        "quic = { ecn = true }",
    ] {
        let flow = format!("transport.{transport}\nworkload.bulk = {{ bytes = \"1MB\" }}");
        let out = outcome(&network("duration = \"20s\"", link, &[&flow]));
        let flow = &out.flows[0];
        assert!(flow.completion.is_some(), "{transport}");
        let marked: u64 = out.links.iter().map(|l| l.marked_packets).sum();
        assert_eq!(flow.ce_marks, marked, "{transport}");
        assert!(marked > 10, "{transport}: {marked}");
    }
}

/// Three segments there and four back: the server's FIN is acknowledged before the connection is gone (RFC 9293 §3.6).
#[test]
fn a_run_ends_with_the_last_acknowledgement() {
    let flow = |transport: &str| {
        format!("transport.{transport} = {{}}\nworkload.bulk = {{ bytes = \"1kB\" }}")
    };
    let out = outcome(&network(
        "duration = \"9s\"",
        "rate = \"100Gbit/s\"",
        &[&flow("tcp")],
    ));
    let ms = |t: f64| (t * 1e3).round() as u64;
    assert_eq!(ms(out.flows[0].completion.unwrap().as_secs_f64()), 30);
    assert_eq!(ms(out.end.as_secs_f64()), 50);
    // One without an end goes on to the end of the run, whatever happened last.
    let out = outcome(&network(
        "duration = \"2s\"",
        ENOUGH,
        &["transport.tcp = {}"],
    ));
    assert_eq!(ms(out.end.as_secs_f64()), 2_000);
    assert_eq!(ms(out.flows[0].end.as_secs_f64()), 2_000);
    // A limit in the middle of it.
    let out = outcome(&network(
        "duration = \"2s\"",
        ENOUGH,
        &["stop = \"1.5s\"\ntransport.tcp = {}"],
    ));
    assert_eq!(ms(out.flows[0].end.as_secs_f64()), 1_500);
}

/// An event at the very end of the run, or at an edge of the window, is before it.
#[test]
fn what_happens_at_an_edge_is_before_it() {
    // A datagram of 1000 bytes each 8 ms, which arrives 11 ms later: 8.224 Mbit/s with its headers.
    let flow = "transport.udp = {}\nworkload.cbr = { rate = \"1Mbit/s\", packet_size = \"1000B\" }";
    let link = "rate = \"8.224Mbit/s\"";
    let datagrams = |duration: u32, head: &str| {
        let out = outcome(&network(
            &format!("duration = \"{duration}ms\"\n{head}"),
            link,
            &[flow],
        ));
        (
            out.flows[0].delivered.get() / 1000,
            out.flows[0].inside.delivered / 1000,
        )
    };
    assert_eq!(datagrams(810, "").0, 100);
    assert_eq!(datagrams(811, "").0, 101);
    assert_eq!(datagrams(812, "").0, 101);
    for (from, until, inside) in [
        (411, 811, 50),
        (410, 811, 51),
        (411, 810, 49),
        (412, 818, 50),
        (412, 819, 51),
    ] {
        let head = format!("measure = {{ from = \"{from}ms\", until = \"{until}ms\" }}");
        assert_eq!(datagrams(1000, &head).1, inside, "{head}");
    }
}

#[test]
fn a_dead_link_ends_every_connection() {
    for transport in ["tcp", "mptcp", "quic"] {
        let flow = format!("transport.{transport} = {{}}\nworkload.bulk = {{ bytes = \"50MB\" }}");
        let link = "rate = { steps = [[\"0s\", \"10Mbit/s\"], [\"1s\", \"0bit/s\"]] }";
        let out = outcome(&network(
            "duration = \"3000s\"\nrecord = { links = false, flows = false }",
            link,
            &[&flow],
        ));
        let flow = &out.flows[0];
        assert_eq!(flow.failure.as_deref(), Some("timed out"), "{transport}");
        assert!(flow.completion.is_none(), "{transport}");
    }
}

/// Between two arrivals of a Poisson process no flow may be left, and the run goes on all the same.
#[test]
fn sparse_arrivals_keep_the_run_alive_and_have_numbers_in_order() {
    let flow =
        "arrivals = { rate = \"2/s\" }\ntransport.tcp = {}\nworkload.bulk = { bytes = \"2kB\" }";
    let other = "start = \"1s\"\ntransport.tcp = {}\nworkload.bulk = { bytes = \"2kB\" }";
    let out = outcome(&network("duration = \"30s\"", ENOUGH, &[flow, other]));
    assert!((30..90).contains(&out.flows.len()), "{}", out.flows.len());
    assert_eq!(out.end.decimal_secs(), 30.0);
    let ids: Vec<u64> = out.flows.iter().map(|f| f.id).collect();
    assert_eq!(ids, (0..ids.len() as u64).collect::<Vec<_>>());
    assert!(out.peak_flows < 5, "{}", out.peak_flows);
    // The same of a source of pages, whose flows are numbered after all others.
    let web = "record = \"full\"\ntransport.tcp = {}\nworkload.web = { load = \"1%\" }";
    let out = outcome(&network("duration = \"30s\"", ENOUGH, &[web, other]));
    assert!(out.end.decimal_secs() > 20.0, "{}", out.end);
    let ids: Vec<u64> = out.flows.iter().map(|f| f.id).collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    assert!(ids.len() > 10, "{ids:?}");
}

/// Fair queueing tells flows apart (RFC 8290 §3.1): those that take less than their share lose nothing.
#[test]
fn fair_queueing_spares_the_flows_that_take_less() {
    let flow = |rate: u32| {
        format!(
            "transport.udp = {{}}\nworkload.cbr = {{ rate = \"{rate}Mbit/s\", packet_size = \"1000B\" }}"
        )
    };
    let flows = [20, 2, 20, 2].map(flow);
    let link = "rate = \"20Mbit/s\", queue = \"fq-codel\"";
    let out = outcome(&network(
        "duration = \"3s\"",
        link,
        &flows.each_ref().map(String::as_str),
    ));
    let lost: Vec<u64> = out
        .flows
        .iter()
        .map(|f| f.counters.lost_packets.get().unwrap())
        .collect();
    assert_eq!((lost[1], lost[3]), (0, 0), "{lost:?}");
    let got: Vec<f64> = out
        .flows
        .iter()
        .map(|f| f.delivered.as_f64() * 8.0 / 3e6)
        .collect();
    assert!((got[0] - got[2]).abs() < 0.5 && got[0] > 6.0, "{got:?}");
    let dropped: u64 = out
        .links
        .iter()
        .map(|l| l.dropped_aqm + l.dropped_queue_full)
        .sum();
    assert_eq!(lost.iter().sum::<u64>(), dropped);
}

/// Lost datagrams are those of the sender; an answer that is lost is none of them.
#[test]
fn lost_datagrams_are_counted_for_the_flow_that_sent_them() {
    let cbr = "transport.udp = {}\nworkload.cbr = { rate = \"2Mbit/s\", packet_size = \"1000B\" }";
    let counted = |up: &str, down: &str, flow: &str| {
        let link =
            format!("rate = \"20Mbit/s\", up = {{ loss = {up} }}, down = {{ loss = {down} }}");
        let flows = [
            flow,
            cbr,
            &format!("stop = \"500ms\"\n{flow}"),
            &format!("start = \"600ms\"\n{flow}"),
        ];
        outcome(&network("duration = \"2s\"", &link, &flows))
    };
    for flow in [
        cbr,
        "transport.udp = {}\nworkload.ping = { interval = \"5ms\" }",
    ] {
        let out = counted("0.1", "0", flow);
        let lost: Vec<u64> = out
            .flows
            .iter()
            .map(|f| f.counters.lost_packets.get().unwrap())
            .collect();
        assert!(lost.iter().all(|n| *n > 3), "{lost:?}");
        assert_eq!(lost.iter().sum::<u64>(), out.links[0].lost);
        let out = counted("0", "0.1", flow);
        assert!(
            out.flows
                .iter()
                .all(|f| f.counters.lost_packets.get() == Some(0)),
            "{flow}"
        );
    }
}

/// A full mesh of three interfaces and two: what a subflow carries leaves by its own interface, and arrives at its own.
#[test]
fn subflows_go_by_the_interfaces_of_their_addresses() {
    let text = "duration = \"4s\"\n[topology.graph]\nnodes = [\"a\", \"b\", \"l\", \"r\"]\nhosts = [\"a\", \"b\"]\n\
                links = [\n{ from = \"a\", to = \"l\", name = \"a0\", rate = \"4Mbit/s\" },\n\
                { from = \"a\", to = \"l\", name = \"a1\", rate = \"5Mbit/s\" },\n\
                { from = \"a\", to = \"l\", name = \"a2\", rate = \"6Mbit/s\" },\n\
                { from = \"l\", to = \"r\", name = \"net\", rate = \"1Gbit/s\", delay = \"10ms\" },\n\
                { from = \"r\", to = \"b\", name = \"b0\", rate = \"9Mbit/s\" },\n\
                { from = \"r\", to = \"b\", name = \"b1\", rate = \"9Mbit/s\" } ]\n\
                [[flows]]\nfrom = \"a\"\nto = \"b\"\ntransport.mptcp = { path_manager = \"full-mesh\" }\n\
                workload.bulk = { bytes = \"3MB\" }\n";
    let out = outcome(text);
    let flow = &out.flows[0];
    assert_eq!(flow.delivered.get(), 3_000_000);
    let subflows = &flow.multipath.as_ref().unwrap().subflows;
    let pairs: BTreeSet<_> = subflows.iter().map(|s| (s.link, s.reverse_link)).collect();
    let all = [0, 1, 2].into_iter().flat_map(|a| [(a, 4), (a, 5)]);
    assert_eq!(pairs, all.collect());
    // Headers of IP and TCP, with acknowledgements of data, are below a twelfth of a full packet.
    for (link, near) in [(0, true), (1, true), (2, true), (4, false), (5, false)] {
        let is_here =
            |s: &&gargalo_flow::SubflowResult| if near { s.link } else { s.reverse_link } == link;
        let sent = subflows
            .iter()
            .filter(is_here)
            .map(|s| s.counters.sent_bytes.get().unwrap());
        let (sent, carried) = (
            sent.sum::<u64>() as f64,
            out.links[2 * link].sent_bytes as f64,
        );
        assert!(
            (1.0..1.0 + 1.0 / 12.0).contains(&(carried / sent)),
            "link {link}: {carried} of {sent}"
        );
    }
}

#[test]
fn progress_is_a_share_of_virtual_time_and_all_that_was_done() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&calls);
    let options = RunOptions {
        progress: Some(Box::new(move |p| {
            if p.phase == Phase::Running {
                to.lock().unwrap().push((
                    p.fraction,
                    p.now.as_secs_f64(),
                    p.packets,
                    p.events,
                    p.recorded,
                ));
            }
            ControlFlow::Continue(())
        })),
        ..RunOptions::default()
    };
    let text = network(
        "duration = \"4s\"\nrecord.interval = \"10ms\"",
        ENOUGH,
        &["transport.tcp = {}"],
    );
    let out = simulate(&scenario(&text), options).unwrap();
    let calls = calls.lock().unwrap();
    assert!(calls.len() > 10, "{}", calls.len());
    for (fraction, now, ..) in calls.iter() {
        assert!((fraction - now / 4.0).abs() < 1e-9, "{fraction} at {now} s");
    }
    assert!(calls.is_sorted_by_key(|c| (c.2, c.3, c.4)));
    assert!(calls.iter().map(|c| c.4).collect::<BTreeSet<_>>().len() > 10);
    let recorded = out.samples.bytes();
    assert_eq!(
        calls.last(),
        Some(&(1.0, 4.0, out.packets, out.events, recorded))
    );
}
