//! Sums of rates are bytes over one time for all, and `measure` chooses that time.

use gargalo_scenario::build::Outcome;
use gargalo_scenario::{Origin, parse};
use serde_json::Value as Json;

use crate::common::simulate;

fn number(of: &Json, key: &str) -> f64 {
    of[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key}: {}", of[key]))
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

const LINK: &str = r#"
duration = "12s"
[topology.simple]
link = { rate = "20Mbit/s", delay = "10ms", queue = { droptail = "1BDP" } }
"#;

fn transfers(starts: &[&str]) -> String {
    let flow = |start: &&str| {
        format!(
            "[[flows]]\nfrom = \"client\"\nto = \"server\"\nstart = \"{start}\"\ntransport.tcp = {{}}\nworkload.bulk \
             = {{ bytes = \"4MB\" }}\n"
        )
    };
    LINK.to_owned() + &starts.iter().map(flow).collect::<String>()
}

#[test]
fn flows_at_different_times_do_not_add_up_to_more_than_the_link() {
    let out = simulate(&transfers(&["0s", "2s", "4s", "6s", "8s"]));
    let (summary, flows) = (&out.json["summary"], out.json["flows"].as_array().unwrap());
    let own: f64 = flows.iter().map(|f| number(f, "goodput_bps")).sum();
    assert!(
        own > 60e6,
        "each has most of the link while it lasts: {own}"
    );
    let bytes: f64 = flows.iter().map(|f| number(f, "delivered_bytes")).sum();
    let (from, until) = (
        number(summary, "measured_from_s"),
        number(summary, "measured_until_s"),
    );
    close(from, 0.0);
    close(
        until,
        flows.iter().map(|f| number(f, "end_s")).fold(0.0, f64::max),
    );
    close(number(summary, "goodput_bps"), 8.0 * bytes / (until - from));
    assert!(number(summary, "goodput_bps") < 20e6);
    let cubic = &summary["groups"]["cubic"];
    close(number(cubic, "goodput_bps"), number(summary, "goodput_bps"));
    close(
        number(cubic, "goodput_mean_bps"),
        number(summary, "goodput_bps") / 5.0,
    );
}

/// Every transport at once, sampled at the edges of the window.
const ALL: &str = r#"
duration = "6s"
record = { interval = "500ms" }
[topology.multipath]
paths = [
    { rate = "20Mbit/s", delay = "10ms", queue = { droptail = "1BDP" } },
    { rate = "10Mbit/s", delay = "20ms", queue = "codel" },
]
[[flows]]
label = "tcp"
transport.tcp = {}
from = "client"
to = "server"
[[flows]]
label = "mptcp"
from = "client"
to = "server"
transport.mptcp = {}
[[flows]]
label = "quic"
from = "client"
to = "server"
transport.quic = { multipath = 2 }
[[flows]]
label = "udp"
from = "client"
to = "server"
transport.udp = {}
workload.cbr = { rate = "1Mbit/s", packet_size = "1250B" }
[[flows]]
label = "early"
transport.tcp = {}
from = "client"
to = "server"
workload.bulk = { bytes = "20kB" }
[[flows]]
label = "partly"
transport.tcp = {}
from = "client"
to = "server"
start = "3s"
stop = "4s"
[[flows]]
label = "late"
transport.tcp = {}
from = "client"
to = "server"
start = "5.5s"
"#;
const WINDOW: &str = "measure = { from = \"2s\", until = \"5s\" }\n";

/// Of a flow and time in a table of samples, the value of a column.
fn sampled(table: &gargalo_trace::Columns, of: (&str, u64), time: f64, column: &str) -> u64 {
    let (times, ids) = (table.f64s("time_s").unwrap(), table.u64s(of.0).unwrap());
    let mut rows = 0..times.len();
    let row = rows.find(|&i| times[i] == time && ids[i] == of.1);
    table.u64s(column).unwrap()[row.unwrap_or_else(|| panic!("no sample of {of:?} at {time}"))]
}

#[test]
fn the_window_counts_to_the_byte_and_changes_nothing_else() {
    let (whole, out) = (simulate(ALL), simulate(&format!("{WINDOW}{ALL}")));
    assert_eq!(
        out.tables.flow_samples.u64s("delivered_bytes"),
        whole.tables.flow_samples.u64s("delivered_bytes")
    );
    assert_eq!(
        out.tables.link_samples.u64s("sent_bytes"),
        whole.tables.link_samples.u64s("sent_bytes")
    );
    let summary = &out.json["summary"];
    assert_eq!(
        (
            number(summary, "measured_from_s"),
            number(summary, "measured_until_s")
        ),
        (2.0, 5.0)
    );
    let flows = out.json["flows"].as_array().unwrap();
    for (f, before) in flows.iter().zip(whole.json["flows"].as_array().unwrap()) {
        for total in [
            "delivered_bytes",
            "sent_packets",
            "completion_s",
            "timeouts",
            "end_s",
        ] {
            assert_eq!(f[total], before[total], "{total} of {}", f["label"]);
        }
    }
    let samples = &out.tables.flow_samples;
    for f in &flows[..3] {
        let id = ("flow", f["id"].as_u64().unwrap());
        let at = |time| sampled(samples, id, time, "delivered_bytes");
        let bytes = (at(5.0) - at(2.0)) as f64;
        assert_eq!(number(f, "measured_bytes"), bytes, "{}", f["label"]);
        close(number(f, "goodput_bps"), (8.0 * bytes / 3.0).floor());
        // What a sender counts is of the window too.
        let rate = number(f, "throughput_bps") / number(f, "goodput_bps");
        assert!((0.9..1.2).contains(&rate), "{rate}: {f}");
    }
    // 100 datagrams a second, of which the queue may drop some.
    let bytes = number(&flows[3], "measured_bytes");
    assert!((360_000.0..=375_000.0).contains(&bytes), "{bytes}");
    assert_eq!(bytes % 1250.0, 0.0, "whole datagrams");
    close(
        number(&flows[3], "goodput_bps"),
        (8.0 * bytes / 3.0).floor(),
    );
    close(number(&flows[3], "throughput_bps"), 1e6);
    // What is measured of datagrams is no round trip.
    assert_eq!(flows[3]["rtt_p50_s"], Json::Null);
    assert!(number(&flows[3], "delay_p50_s") > 0.0);
    assert_eq!(flows[0]["delay_p50_s"], Json::Null);
    // Over its own part of the window.
    let partly = number(&flows[5], "measured_bytes");
    close(number(&flows[5], "goodput_bps"), (8.0 * partly).floor());
    for gone in [&flows[4], &flows[6]] {
        assert_eq!(
            (number(gone, "measured_bytes"), &gone["goodput_bps"]),
            (0.0, &Json::Null)
        );
        assert_eq!(gone["rtt_p50_s"], Json::Null);
        assert!(number(gone, "delivered_bytes") > 0.0);
    }
    let bytes: f64 = flows.iter().map(|f| number(f, "measured_bytes")).sum();
    close(number(summary, "goodput_bps"), 8.0 * bytes / 3.0);
}

#[test]
fn subflows_and_links_are_measured_in_the_window() {
    let (whole, out) = (simulate(ALL), simulate(&format!("{WINDOW}{ALL}")));
    let samples = &out.tables.subflow_samples;
    for i in [1, 2] {
        let f = &out.json["flows"][i];
        for s in of_flow(&out.json, f) {
            let link = s["link"].as_str().unwrap();
            let column = |name| samples.u64s(name).unwrap();
            let row = |time: f64| {
                let mut rows = 0..samples.len();
                let times = samples.f64s("time_s").unwrap();
                rows.find(|&r| {
                    times[r] == time
                        && column("flow")[r] == i as u64
                        && column("subflow")[r] == s["subflow"].as_u64().unwrap()
                })
                .unwrap_or_else(|| panic!("no sample of {link} at {time}"))
            };
            let delivered = column("delivered_bytes");
            let bytes = (delivered[row(5.0)] - delivered[row(2.0)]) as f64;
            close(number(s, "goodput_bps"), (8.0 * bytes / 3.0).floor());
        }
    }
    let table = &out.tables.link_samples;
    let times = table.f64s("time_s").unwrap();
    // Rows come in the order of links, up and down.
    let at = |time: f64, direction: usize| {
        let first = times.iter().position(|t| *t == time).unwrap();
        table.u64s("sent_bytes").unwrap()[first + direction] as f64
    };
    let links = out.json["links"].as_array().unwrap();
    for (i, l) in links.iter().enumerate() {
        // Packets at the edges by the time of their transmission, in the samples as in the window.
        let mut rows = (0..times.len()).filter(|r| times[*r] > 2.0 && times[*r] <= 5.0);
        let first = rows.next().unwrap();
        let shares: Vec<f64> = (first + i..)
            .step_by(links.len())
            .take_while(|r| *r < times.len() && times[*r] <= 5.0)
            .map(|r| table.f64s("utilization").unwrap()[r])
            .collect();
        let used = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((used - number(l, "utilization")).abs() < 1e-9, "{l}");
        let packets = 8.0 * (at(5.0, i) - at(2.0, i)) / 3.0 / number(l, "capacity_bps");
        assert!((used - packets).abs() < 1e-3 && used <= 1.0, "{l}");
        let before = &whole.json["links"][i];
        assert_eq!(l["sent_packets"], before["sent_packets"]);
    }
    // Slow start filled the queue once more before the window.
    for (i, l) in [(0, &links[0]), (2, &links[2])] {
        let before = &whole.json["links"][i];
        assert_ne!(l["queue_delay_mean_s"], before["queue_delay_mean_s"]);
        assert!(number(l, "queue_delay_max_s") <= number(before, "queue_delay_max_s"));
    }
}

#[test]
fn background_is_measured_in_the_window_and_counted_once() {
    let text = |head: &str| {
        format!(
            "{head}duration = \"6s\"\n[topology.simple]\nlink = {{ rate = \"20Mbit/s\", delay = \"5ms\", queue = {{ \
             droptail = \"1BDP\" }} }}\n\
             [[flows]]\nfrom = \"client\"\nto = \"server\"\nstart = \"1s\"\nstop = \"5s\"\ntransport.tcp = {{}}\n\
             [[flows]]\nfrom = \"client\"\nto = \"server\"\ntransport.tcp = {{}}\nworkload.ftp = {{ load = \"30%\" \
            }}\n"
        )
    };
    let (whole, out) = (
        simulate(&text("")),
        simulate(&text("measure.from = \"2s\"\n")),
    );
    let group = |out: &Outcome| out.json["summary"]["background"]["groups"][0].clone();
    let (before, after) = (group(&whole), group(&out));
    assert_eq!(before["delivered_bytes"], after["delivered_bytes"]);
    close(
        number(&before, "goodput_bps"),
        8.0 * number(&before, "delivered_bytes") / 6.0,
    );
    // Four of six seconds, with as much as is left of what arrived in all.
    let measured = number(&after, "goodput_bps") * 4.0 / 8.0;
    assert!(measured < number(&after, "delivered_bytes") && measured > 0.0);
    assert_ne!(before["offered_bps"], after["offered_bps"]);
    // The sum is that of flows with rows, as before: the background has its own.
    let (summary, flow) = (&out.json["summary"], &out.json["flows"][0]);
    close(
        number(summary, "goodput_bps"),
        8.0 * number(flow, "measured_bytes") / 4.0,
    );
    close(
        number(flow, "goodput_bps"),
        (8.0 * number(flow, "measured_bytes") / 3.0).floor(),
    );
}

#[test]
fn a_run_that_ends_before_the_window_measures_nothing_and_says_so() {
    let out = simulate(&("measure.from = \"10s\"\n".to_owned() + &transfers(&["0s"])));
    let summary = &out.json["summary"];
    assert_eq!(summary["goodput_bps"], Json::Null);
    assert_eq!(summary["utilization"], Json::Null);
    let warnings = out.json["run"]["warnings"].to_string();
    assert!(warnings.contains("nothing was measured"), "{warnings}");
    // One that ends inside of it is measured as long as it lasts.
    let out = simulate(&("measure.from = \"1s\"\n".to_owned() + &transfers(&["0s"])));
    let until = number(&out.json["summary"], "measured_until_s");
    close(until, number(&out.json["run"], "virtual_s"));
    assert!(until < 12.0);
}

#[test]
fn windows_outside_of_the_run_are_refused_with_their_place() {
    for (window, why) in [
        ("{ until = \"13s\" }", "ends after it"),
        ("{ from = \"12s\" }", "begins when it is over"),
        ("{ from = \"5s\", until = \"5s\" }", "is empty"),
        ("{ form = \"5s\" }", "did you mean `from`"),
    ] {
        let text = format!("measure = {window}\n{}", transfers(&["0s"]));
        let message = parse(&text, &Origin::default(), &[])
            .unwrap_err()
            .render(false);
        assert!(
            message.contains(why) && message.contains("scenario:1:"),
            "{message}"
        );
    }
    let text = transfers(&["0s"]);
    let hash = |text: &str| parse(text, &Origin::default(), &[]).unwrap().hash();
    let measured = format!("measure.from = \"1s\"\n{text}");
    assert_ne!(hash(&measured), hash(&text));
}

/// The rows of a flow's subflows.
fn of_flow<'a>(json: &'a Json, flow: &Json) -> Vec<&'a Json> {
    let all = json["subflows"].as_array().unwrap();
    all.iter().filter(|s| s["flow"] == flow["id"]).collect()
}
