//! Requests and TLS: every form, its results, and the diagnostics of mistakes.

use gargalo_units::Bytes;
use gargalo_workload::random::Size;
use gargalo_workload::tls::{Tls, TlsVersion};
use gargalo_workload::{Order, Request, Workload};

use super::grammar::simple;
use super::slips::rejects;
use super::{ok, set};
use crate::Scenario;
use crate::build::{Outcome, RunOptions, run};
use crate::resolved::Transport;

fn text(transport: &str, workload: &str) -> String {
    let flow = format!("transport.tcp = {{ {transport} }}\nworkload.request = {{ {workload} }}");
    simple("rate = \"10Mbit/s\", delay = \"20ms\"", &flow)
}

fn requests(workload: &str) -> Vec<Request> {
    let flows = ok(&text("", workload)).flows;
    flows
        .into_iter()
        .map(|f| match (*f.workload).clone() {
            Workload::Request(request) => request,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn orders(workload: &str) -> Vec<(Order, Option<Bytes>)> {
    let order = |r: &Request| (r.order(), r.frame);
    requests(workload).iter().map(order).collect()
}

fn tls(option: &str) -> Option<Tls> {
    match &ok(&text(option, "size = \"1kB\"")).flows[0].transport {
        Transport::Tcp(tcp) => TlsVersion::chosen(tcp.tls),
        other => panic!("{other:?}"),
    }
}

#[test]
fn orders_are_named() {
    let frame = |bytes| (Order::Multiplexed, Some(Bytes::new(bytes)));
    let (sequential, pipelined) = ((Order::Sequential, None), (Order::Pipelined, None));
    assert_eq!(orders("size = \"1kB\""), [sequential]);
    for (key, order) in [
        ("pipelined = false", sequential),
        ("pipelined = true", pipelined),
        ("order = \"sequential\"", sequential),
        ("order = \"pipelined\"", pipelined),
        ("order = \"multiplexed\"", frame(16_384)),
        ("order = \"multiplexed\", frame = \"4kB\"", frame(4000)),
    ] {
        let workload = format!("objects = 4, size = \"1kB\", {key}");
        assert_eq!(orders(&workload), [order], "{key}");
        let several = format!("{workload}, connections = 2");
        assert_eq!(orders(&several), [order; 2], "{key}");
    }
}

#[test]
fn sizes_may_be_random() {
    let workload = "objects = 7, connections = 2, size = { exponential = \"20kB\" }";
    let counts = |workload| -> Vec<(Option<u32>, Option<Size>)> {
        let all = requests(workload);
        all.iter().map(|r| (r.objects, r.size)).collect()
    };
    let size = Some(Size::Exponential(Bytes::new(20_000)));
    assert_eq!(counts(workload), [(Some(4), size), (Some(3), size)]);
    for (bounds, n) in [
        (
            "objects = 3, size = { pareto = { alpha = 1.2, min = \"1kB\", max = \"1MB\" } }",
            3,
        ),
        (
            "size = { lognormal = { mu = 8.4, sigma = 1.4, max = \"2MB\" } }",
            1,
        ),
    ] {
        assert_eq!(counts(bounds)[0].0, Some(n), "{bounds}");
    }
}

#[test]
fn tls_is_off_on_or_precise() {
    assert_eq!(tls(""), None);
    assert_eq!(tls("tls = false"), None);
    assert_eq!(tls("tls = true"), Some(Tls::FULL));
    assert_eq!(tls("tls = \"1.3\""), Some(Tls::FULL));
    assert_eq!(tls("tls = {}"), Some(Tls::FULL));
    assert_eq!(tls("tls = { early_data = true }"), Some(Tls::RESUMED));
    let given = "tls = { client_hello = \"300B\", server_flight = \"3.5kB\", client_finished = \"74B\", \
                 record_size = \"4kB\" }";
    let expected = Tls {
        client_hello: Bytes::new(300),
        server_flight: Bytes::new(3500),
        client_finished: Bytes::new(74),
        record_size: Bytes::new(4000),
        early_data: false,
    };
    assert_eq!(tls(given), Some(expected));
}

#[test]
fn slips_in_requests_and_tls_are_told() {
    let request = |workload: &str, message: &str, help: &str| {
        rejects(&text("", workload), message, help, 8);
    };
    request(
        "size = \"1kB\", order = \"pipelined\", pipelined = true",
        "both order and pipelined are given",
        "`pipelined = true` means `order = \"pipelined\"`",
    );
    request(
        "size = \"1kB\", order = \"multiplext\"",
        "has no value \"multiplext\"",
        "did you mean `multiplexed`",
    );
    request(
        "size = \"1kB\", frame = \"1kB\"",
        "the answers have no frames",
        "order = \"multiplexed\"",
    );
    request(
        "size = \"1kB\", order = \"multiplexed\", frame = \"0B\"",
        "a frame of 0B",
        "16KiB is usual",
    );
    request(
        "size = \"1kB\", order = \"multiplexed\", frame = \"20MB\"",
        "a frame of 20MB",
        "16777215B",
    );
    request(
        "size = \"1kB\", order = \"multiplexed\", think_time = \"1s\"",
        "all objects are requested at once",
        "order = \"sequential\"",
    );
    request(
        "objects = 3, size = { exponential = \"0B\" }",
        "a size of zero",
        "1B or more",
    );
    request(
        "objects = 3, size = { exponential = \"1kB\" }, connections = 4",
        "4 connections for 3 objects",
        "at most one for each",
    );
    let tls = |option: &str, message: &str, help: &str| {
        rejects(&text(option, "size = \"1kB\""), message, help, 7);
    };
    tls("tls = \"1.2\"", "\"1.2\"", "1.3");
    tls(
        "tls = { hello = \"1B\" }",
        "no key \"hello\"",
        "client_hello",
    );
    tls(
        "tls = { server_flight = \"2MB\" }",
        "server_flight = 2MB is out of range",
        "give 1B to 1MB",
    );
    tls(
        "tls = { record_size = \"32KiB\" }",
        "record_size = 32KiB is out of range",
        "give 1B to 16KiB",
    );
    let udp = simple(
        "",
        "transport.udp = { tls = true }\nworkload.cbr = { rate = \"1Mbit/s\" }",
    );
    rejects(&udp, "no key \"tls\"", "", 7);
}

/// The same request has the same hash however it is written, and any other one another.
#[test]
fn the_hash_tells_requests_apart() {
    let json = |transport: &str, workload: &str| ok(&text(transport, workload)).canonical_json();
    let plain = json("", "size = \"1kB\"");
    let request = r#""request":{"connections":1,"objects":1,"order":"sequential","request_size":"100B","size":"1kB","think_time":"0s"}"#;
    assert!(plain.contains(request), "{plain}");
    assert_eq!(
        plain,
        json("tls = false", "size = \"1kB\", order = \"sequential\"")
    );
    let pipelined = json("", "size = \"1kB\", pipelined = true");
    assert_eq!(pipelined, json("", "size = \"1kB\", order = \"pipelined\""));
    let others = [
        pipelined,
        json("", "size = \"1kB\", order = \"multiplexed\""),
        json(
            "",
            "size = \"1kB\", order = \"multiplexed\", frame = \"1kB\"",
        ),
        json("", "size = { exponential = \"1kB\" }"),
        json("tls = true", "size = \"1kB\""),
        json("tls = { early_data = true }", "size = \"1kB\""),
    ];
    for (i, a) in others.iter().enumerate() {
        assert!(*a != plain && others[i + 1..].iter().all(|b| b != a), "{a}");
    }
}

fn results(s: &Scenario) -> Outcome {
    run(s, RunOptions::default()).unwrap()
}

#[test]
fn objects_are_rows() {
    let order = "order = \"multiplexed\"";
    let s = ok(&text(
        "tls = true",
        &format!("objects = 20, size = \"10kB\", {order}"),
    ));
    let out = results(&s);
    let objects = &out.tables.objects;
    assert_eq!(objects.len(), 20);
    assert_eq!(objects.u64s("object").unwrap(), (0..20).collect::<Vec<_>>());
    assert_eq!(objects.u64s("size_bytes").unwrap(), [10_000; 20]);
    let (asked, took) = (
        objects.f64s("requested_s").unwrap(),
        objects.f64s("completion_s").unwrap(),
    );
    let ended = objects.f64s("completed_s").unwrap();
    for i in 0..20 {
        assert!((asked[i] + took[i] - ended[i]).abs() < 1e-9);
    }
    let flow = out.tables.flows.rows().next().unwrap();
    // TCP and TLS: two round trips of 40 ms.
    let handshake = flow["handshake_s"].as_f64().unwrap();
    assert!((handshake - 0.08).abs() < 0.005, "{handshake}");
    assert_eq!(asked, [handshake; 20]);
    assert_eq!(flow["delivered_bytes"], 200_000);
    assert_eq!(flow["completed_objects"], 20);
    let longest = took.iter().copied().fold(0.0, f64::max);
    assert_eq!(flow["object_completion_max_s"], longest);
    for key in [
        "completed_objects",
        "object_completion_p50_s",
        "object_completion_p95_s",
    ] {
        assert_eq!(out.json["summary"][key], flow[key], "one flow: {key}");
    }
    let row = |column| out.tables.flows.f64s(column).unwrap()[0];
    assert_eq!(row("handshake_s"), handshake);
    assert_eq!(
        row("object_completion_p95_s"),
        flow["object_completion_p95_s"]
    );
}

#[test]
fn only_requests_with_rows_have_objects() {
    let bulk = "transport.tcp = {}\nworkload.bulk = { bytes = \"10kB\" }";
    let out = results(&ok(&simple("", bulk)));
    assert!(out.tables.objects.is_empty());
    assert!(out.json["summary"].get("completed_objects").is_none());
    let hidden = text("", "size = \"1kB\"").replace("from =", "record = \"summary\"\nfrom =");
    assert!(results(&ok(&hidden)).tables.objects.is_empty());
}

#[test]
fn an_object_cut_off_by_the_end_has_no_completion() {
    let s = set(
        &text("", "sizes = [\"10kB\", \"20MB\", \"1kB\"]"),
        &[("duration", "1s")],
    )
    .unwrap();
    let objects = &results(&s).tables.objects;
    // The third was never asked for.
    assert_eq!(objects.len(), 2);
    let took = objects.f64s("completion_s").unwrap();
    assert!(took[0] > 0.0 && took[1] == 0.0, "{took:?}");
}
