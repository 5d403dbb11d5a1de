//! The auditor: no error in random networks whatever they do to packets, and each rule finds what it is for.

use gargalo_flow::rng::stream;
use gargalo_scenario::audit::{CODES, audit};
use gargalo_scenario::build::{RunOptions, run, simulate};
use gargalo_scenario::{Origin, Scenario, parse};
use rand::{Rng, RngExt};
use serde_json::Value as Json;

use crate::common::scenario;

/// What the auditor says of a run of severity `error`, and all codes.
fn findings(text: &str) -> (Vec<Json>, Vec<String>) {
    let out = run(&scenario(text), RunOptions::default()).unwrap();
    let all = out.json["run"]["findings"].as_array().unwrap().clone();
    let codes = all.iter().map(|f| f["code"].as_str().unwrap().to_owned());
    let codes = codes.collect();
    let errors = all.into_iter().filter(|f| f["severity"] == "error");
    (errors.collect(), codes)
}

fn one<'a>(rng: &mut impl Rng, of: &[&'a str]) -> &'a str {
    of[rng.random_range(0..of.len())]
}

const RATES: [&str; 6] = [
    "rate = \"3Mbit/s\"",
    "rate = \"20Mbit/s\"",
    "rate = { steps = [[\"0s\", \"10Mbit/s\"], [\"400ms\", \"0bit/s\"], [\"700ms\", \"2Mbit/s\"]] }",
    "rate = { steps = [[\"0s\", \"500kbit/s\"], [\"300ms\", \"40Mbit/s\"]] }",
    "rate = { trace = \"cellular.trace\" }",
    "rate = \"100Mbit/s\"",
];
const DELAYS: [&str; 5] = [
    "delay = \"0s\"",
    "delay = \"7ms\"",
    "delay = \"30ms\", jitter = \"20ms\"",
    "delay = { steps = [[\"0s\", \"20ms\"], [\"500ms\", \"5ms\"], [\"800ms\", \"40ms\"]] }",
    "delay = \"10ms\", jitter = { scale = \"8ms\", distribution = \"normal\" }",
];
const HARMS: [&str; 8] = [
    "",
    "",
    "loss = { independent = 0.02 }",
    "duplicate = 0.1",
    "reorder = { probability = 0.1, early = \"4ms\" }",
    "reorder = { probability = 0.1, late = \"9ms\" }",
    "policer = { rate = \"2Mbit/s\", burst = \"20kB\" }",
    "outages = [[\"300ms\", \"600ms\"]]",
];
const QUEUES: [&str; 8] = [
    "queue = { droptail = \"20 packets\" }",
    "queue = { droptail = \"50kB\" }",
    "queue = \"red\"",
    "queue = \"codel\"",
    "queue = \"fq-codel\"",
    "queue = \"pie\"",
    "queue = \"dualpi2\"",
    "queue = { step = { mark_above = \"10 packets\" } }",
];
const FLOWS: [&str; 14] = [
    "transport.tcp = { congestion = \"cubic\" }",
    "transport.tcp = { congestion = \"bbr\" }",
    "transport.tcp = { congestion = \"prague\", ecn = \"accurate\" }",
    "transport.tcp = { congestion = \"reno\" }\nworkload.bulk = { bytes = \"60kB\" }\nstart = \"350ms\"",
    "transport.tcp = { congestion = \"bbr3\" }\nworkload.request = { objects = 5, size = \"20kB\" }",
    "transport.quic = {}",
    "transport.quic = { retry = true }",
    "transport.quic = { congestion = \"bbr\" }\nworkload.request = { objects = 4, size = \"30kB\" }",
    "transport.mptcp = {}",
    "transport.mptcp = { congestion = \"olia\", scheduler = \"redundant\" }",
    "transport.udp = {}\nworkload.cbr = { rate = \"4Mbit/s\" }",
    "transport.udp = {}\nworkload.media = {}",
    "transport.udp = {}\nworkload.ping = { interval = \"7ms\" }",
    "transport.tcp = { congestion = \"cubic\" }\nworkload.bulk = { bytes = \"20kB\" }\narrivals = { rate = \"40/s\" }",
];

fn random_link(rng: &mut impl Rng) -> String {
    let parts = [&RATES[..], &DELAYS, &HARMS, &QUEUES].map(|of| one(rng, of));
    let parts: Vec<_> = parts.into_iter().filter(|p| !p.is_empty()).collect();
    format!("{{ {} }}", parts.join(", "))
}

fn random_text(n: u64) -> String {
    let rng = &mut stream(n, "audited");
    let topology = match rng.random_range(0..3) {
        0 => format!("[topology.simple]\nlink = {}", random_link(rng)),
        1 => format!(
            "[topology.parking-lot]\nhops = 2\naccess = {}\nbottleneck = {}",
            random_link(rng),
            random_link(rng)
        ),
        _ => format!(
            "[topology.multipath]\npaths = [{}, {}]",
            random_link(rng),
            random_link(rng)
        ),
    };
    let ends = match topology.contains("parking-lot") {
        true => "from = \"left\"\nto = \"right\"",
        false => "from = \"client\"\nto = \"server\"",
    };
    let mut text = format!("duration = \"1500ms\"\nseed = {n}\nstart_jitter = \"1RTT\"\n");
    if n.is_multiple_of(3) {
        text += "measure = { from = \"653us\", until = \"701ms\" }\n";
    }
    text += &format!("{topology}\n");
    for _ in 0..rng.random_range(1..4) {
        text += &format!("[[flows]]\n{ends}\n{}\n", one(rng, &FLOWS));
    }
    text
}

#[test]
fn no_error_in_random_networks() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/networks/x.toml"
    );
    let origin = Origin {
        path: Some(path.into()),
    };
    let (mut ran, mut slow) = (0, 0);
    for n in 0..200 {
        let text = random_text(n);
        // What does not go together (ECN of a control without it, say) is refused, and no business of ours.
        let Ok(scenario) = parse(&text, &origin, &[]) else {
            continue;
        };
        let out = run(&scenario, RunOptions::default()).unwrap();
        let found = out.json["run"]["findings"].as_array().unwrap();
        let errors: Vec<_> = found.iter().filter(|f| f["severity"] == "error").collect();
        assert!(errors.is_empty(), "{errors:#?}\n{text}");
        ran += 1;
        slow += u32::from(!found.is_empty());
    }
    assert!(ran > 120, "{ran} of 200 ran");
    assert!(slow < ran, "{slow} of {ran} with a warning");
}

const PLAIN: &str = r#"
duration = "3s"
[topology.dumbbell]
pairs = 2
bottleneck = { rate = "10Mbit/s", delay = "10ms", queue = { droptail = "20 packets" } }
[[flows]]
from = "left*"
to = "right*"
transport.tcp = { congestion = "reno" }
"#;

/// What the engine says of a run, and its summary.
fn outcome(s: &Scenario) -> (gargalo_flow::Outcome, Json) {
    let done = run(s, RunOptions::default()).unwrap();
    let out = simulate(s, RunOptions::default()).unwrap();
    (out, done.json["summary"].clone())
}

/// The plain run with something of its outcome made false.
fn broken(falsify: impl FnOnce(&mut gargalo_flow::Outcome, &mut Json)) -> Vec<&'static str> {
    let s = scenario(PLAIN);
    let (mut out, mut summary) = outcome(&s);
    assert_eq!(audit(&s, &out, &summary, None), []);
    falsify(&mut out, &mut summary);
    audit(&s, &out, &summary, None)
        .iter()
        .map(|f| f.code)
        .collect()
}

#[test]
fn each_rule_finds_what_it_is_for() {
    let more = |b: gargalo_units::Bytes, k: u64| gargalo_units::Bytes::new(b.get() * k);
    // 131 Mbit/s through 100: rates of flows over different times, added.
    let sum = broken(|o, s| {
        let all: f64 = o.flows.iter().map(|f| f.delivered.as_f64()).sum();
        s["measured_from_s"] = 1.0.into();
        s["measured_until_s"] = 2.0.into();
        s["goodput_bps"] = (all * 8.0 * 1.31).into();
    });
    assert_eq!(sum, ["sum-not-conserved"]);
    let flow = broken(|o, _| o.flows[0].delivered = more(o.flows[0].delivered, 4));
    assert_eq!(
        flow,
        ["goodput-above-capacity"; 6]
            .into_iter()
            .take(flow.len() - 1)
            .chain(["flow-not-conserved"])
            .collect::<Vec<_>>()
    );
    assert!(
        flow.len() >= 3,
        "the flow, and the links it crosses: {flow:?}"
    );
    let offered = broken(|o, _| o.links[2].offered_packets += 1);
    assert_eq!(offered, ["link-not-conserved"]);
    let bottleneck =
        |o: &gargalo_flow::Outcome| o.links.iter().position(|l| l.capacity.is_some()).unwrap();
    let sent = broken(|o, _| {
        let i = bottleneck(o);
        o.links[i].sent_bytes *= 2;
    });
    assert_eq!(sent, ["link-above-capacity"]);
    let used = broken(|o, _| {
        let i = bottleneck(o);
        o.links[i].utilization = Some(1.001);
    });
    assert_eq!(used, ["link-above-capacity"]);
    let again = broken(|o, _| {
        let c = &mut o.flows[1].counters;
        c.retransmitted_packets = c.sent_packets;
        c.retransmitted_packets += 1;
    });
    assert_eq!(again, ["flow-not-conserved"]);
    let rtt = broken(|o, _| {
        o.flows[0]
            .rtt
            .record(gargalo_units::Duration::from_micros(18_999));
    });
    assert_eq!(rtt, ["rtt-below-path"]);
}

#[test]
fn a_flow_without_end_that_still_grows_is_told() {
    let short = PLAIN
        .replace("\"3s\"", "\"150ms\"")
        .replace("10Mbit/s", "1Gbit/s")
        .replace("20 packets", "2000 packets");
    let found = findings(&format!("record.interval = \"10ms\"\n{short}"));
    assert_eq!(found, (vec![], vec!["ends-in-slow-start".to_owned(); 2]));
    // Recorded or not.
    let unseen = findings(&format!("record.flows = false\n{short}"));
    assert_eq!(unseen, found);
    let bbr = short.replace("reno", "bbr").replace("10ms\"", "40ms\"");
    let found = findings(&format!("record.interval = \"10ms\"\n{bbr}"));
    assert_eq!(found.1.len(), 2, "startup is one, too: {found:?}");
    // The receiver's window holds it: nothing grows any more.
    let held = short.replace("\"150ms\"", "\"2s\"").replace(
        "congestion = \"reno\"",
        "congestion = \"reno\", receive_buffer = \"60kB\"",
    );
    assert_eq!(findings(&held).1, Vec::<String>::new());
    let ends = short.replace("\"150ms\"", "\"2s\"") + "workload.bulk = { bytes = \"100kB\" }\n";
    assert_eq!(findings(&ends).1, Vec::<String>::new());
}

/// Copies of a datagram count when they arrive: more than was sent, and more than the links before the one that
/// copies carried.
#[test]
fn copies_of_datagrams_are_no_contradiction() {
    let text = |copied: f64| {
        format!(
            "duration = \"2s\"\n[topology.dumbbell]\naccess = {{ rate = \"20Mbit/s\", delay = \"1ms\" }}\n\
             bottleneck = {{ rate = \"100Mbit/s\", delay = \"1ms\", duplicate = {copied} }}\n\
             [[flows]]\nfrom = \"left0\"\nto = \"right0\"\ntransport.udp = {{}}\nworkload.cbr.rate = \"12Mbit/s\"\n"
        )
    };
    for copied in [0.5, 0.9] {
        let out = simulate(&scenario(&text(copied)), RunOptions::default()).unwrap();
        let f = &out.flows[0];
        let sent = f.counters.sent_bytes.get().unwrap();
        assert!(f.delivered.get() > sent, "else this tests nothing");
        assert_eq!(findings(&text(copied)).0, Vec::<Json>::new());
    }
}

/// Rates are of the window: what all of the run delivered bounds nothing in it.
#[test]
fn sums_are_compared_within_the_measured_window() {
    let s = scenario(&format!("measure.from = \"2s\"\n{PLAIN}"));
    let (out, mut summary) = outcome(&s);
    assert_eq!(audit(&s, &out, &summary, None), []);
    let rate = summary["goodput_bps"].as_f64().unwrap();
    summary["goodput_bps"] = (rate * 1.31).into();
    let all: u64 = out.flows.iter().map(|f| f.delivered.get()).sum();
    assert!(rate * 1.31 / 8.0 < all as f64, "else the whole run tells");
    let codes: Vec<_> = audit(&s, &out, &summary, None)
        .iter()
        .map(|f| f.code)
        .collect();
    assert_eq!(codes, ["sum-not-conserved"]);
}

#[test]
fn a_window_of_a_few_packets_is_told_and_none_is_used_beyond_its_capacity() {
    for (until, is_found) in [("1005ms", true), ("1020ms", true), ("1030ms", false)] {
        let window = format!("measure = {{ from = \"1s\", until = \"{until}\" }}\n");
        let out = run(
            &scenario(&format!("{window}{PLAIN}")),
            RunOptions::default(),
        )
        .unwrap();
        let codes = findings(&format!("{window}{PLAIN}")).1;
        assert_eq!(
            codes.contains(&"few-packets".to_owned()),
            is_found,
            "{until}: {codes:?}"
        );
        let used = out.json["summary"]["utilization"].as_f64().unwrap();
        assert!((0.999..=1.0).contains(&used), "{used} until {until}");
    }
    // A run that ends within its first packet.
    let out = run(
        &scenario(&PLAIN.replace("3s", "50us")),
        RunOptions::default(),
    )
    .unwrap();
    for l in out.tables.links.rows() {
        assert!(l["utilization"].as_f64().is_none_or(|u| u <= 1.0), "{l}");
    }
}

/// RED's average follows the queue too slowly for a rate and a round trip this large.
#[test]
fn a_link_that_idles_behind_early_drops_is_told() {
    let with = |queue: &str, more: &str| {
        let text = format!(
            "duration = \"12s\"\nmeasure = {{ from = \"4s\" }}\n[topology.dumbbell]\npairs = 1\n\
             access = {{ rate = \"1Gbit/s\" }}\n\
             bottleneck = {{ rate = \"200Mbit/s\", delay = \"40ms\", queue = {queue}{more} }}\n\
             [[flows]]\nfrom = \"left0\"\nto = \"right0\"\ntransport.tcp = {{ congestion = \"reno\" }}\n"
        );
        let out = run(&scenario(&text), RunOptions::default()).unwrap();
        let all = out.json["run"]["findings"].as_array().unwrap().clone();
        let told = |f: &Json| f["code"] == "idle-behind-early-drops";
        all.into_iter().find(told)
    };
    let found = with("\"red\"", "").unwrap();
    assert_eq!(found["subject"], "link bottleneck up");
    assert!(
        found["figures"]["utilization"].as_f64().unwrap() < 0.6,
        "{found}"
    );
    assert!(
        found["figures"]["dropped_aqm"].as_u64().unwrap() > 0,
        "{found}"
    );
    assert_eq!(with("{ droptail = \"1BDP\" }", ""), None, "a full link");
    assert_eq!(
        with("{ droptail = \"20 packets\" }", ""),
        None,
        "drops when it is full"
    );
    let lossy = with("{ red = { max_probability = 0.01 } }", ", loss = 0.002");
    assert_eq!(lossy, None, "random losses hold the flow back");
}

/// After the outage a segment is repeated: its round trip is told by timestamps, and may seem to be up to a
/// millisecond shorter than the path.
#[test]
fn timestamps_tick_in_milliseconds() {
    let cut = "duration = \"26s\"\n[topology.dumbbell]\naccess = { delay = \"5031us\" }\n\
               bottleneck = { rate = \"20Mbit/s\", delay = \"10061us\", queue = { droptail = \"67 packets\" }, \
               outages = [[\"20s\", \"23s\"]] }\n\
               [[flows]]\nfrom = \"left0\"\nto = \"right0\"\nstart = \"324292us\"\n\
               transport.tcp = { congestion = \"vegas\" }\n";
    let out = run(&scenario(cut), RunOptions::default()).unwrap();
    let rtt = out.tables.flows.f64s("rtt_min_s").unwrap()[0];
    assert!(rtt < 0.040_246, "{rtt}: else this tests nothing");
    assert_eq!(findings(cut).0, Vec::<Json>::new());
}

#[test]
fn lateness_is_judged_by_the_shortest_round_trip() {
    let s = scenario(PLAIN);
    let (out, summary) = outcome(&s);
    let late = |us| {
        let late = Some(gargalo_units::Duration::from_micros(us));
        audit(&s, &out, &summary, late)
            .iter()
            .map(|f| f.code)
            .collect::<Vec<_>>()
    };
    assert_eq!(late(1000), Vec::<&str>::new(), "5% of 20 ms");
    assert_eq!(late(1001), ["late-packets"]);
}

#[test]
fn a_run_shorter_than_its_round_trip_says_so() {
    let text = |duration: &str, transport: &str| {
        format!(
            "duration = \"{duration}\"\n[topology.simple.link]\nrate = \"10Mbit/s\"\ndelay = \"400ms\"\n\
             [[flows]]\nfrom = \"client\"\nto = \"server\"\n{transport}"
        )
    };
    let quic = "transport.quic = {}";
    let udp = "transport.udp = {}\nworkload.cbr = { rate = \"1Mbit/s\" }";
    let summary = "transport.tcp = {}\nrecord = \"summary\"";
    for (duration, transport) in [
        ("700ms", "transport.tcp = {}"),
        ("700ms", quic),
        ("300ms", udp),
        ("1100ms", summary),
    ] {
        let out = run(&scenario(&text(duration, transport)), RunOptions::default()).unwrap();
        let all = out.json["run"]["findings"].as_array().unwrap();
        let found = all.iter().find(|f| f["code"] == "ends-before-data");
        let found = found.unwrap_or_else(|| panic!("{transport}: {all:?}"));
        let said = found["text"].as_str().unwrap();
        let (time, delay) = (&found["figures"]["time_s"], &found["figures"]["delay_s"]);
        assert!(said.contains(&time.to_string()), "{said}");
        assert!(said.contains(&delay.to_string()), "{said}");
    }
    for (duration, transport) in [("1500ms", "transport.tcp = {}"), ("500ms", udp)] {
        let codes = findings(&text(duration, transport)).1;
        assert!(!codes.contains(&"ends-before-data".to_owned()), "{codes:?}");
    }
}

/// A reader can account for every packet of a link that copies packets from the keys of the results alone.
#[test]
fn packets_of_a_link_that_copies_add_up() {
    let text = "duration = \"3s\"\n[topology.simple.link]\nrate = \"10Mbit/s\"\ndelay = \"5ms\"\nduplicate = 0.2\n\
                [[flows]]\nfrom = \"client\"\nto = \"server\"\ntransport.udp = {}\n\
                workload.cbr = { rate = \"1Mbit/s\" }\nstop = \"2s\"";
    let out = run(&scenario(text), RunOptions::default()).unwrap();
    let up = out.tables.links.rows().next().unwrap();
    let n = |key: &str| up[key].as_u64().unwrap();
    assert!(n("sent_packets") > n("offered_packets"));
    assert_eq!(
        n("offered_packets") + n("duplicated_packets"),
        n("sent_packets") + n("dropped_packets")
    );
}

#[test]
fn codes_are_told_once_each() {
    let mut codes: Vec<_> = CODES.iter().map(|c| c.0).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), CODES.len());
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reports.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (code, severity, text) in CODES {
        let row = format!("| `{code}` | {} | {text} |", severity.name());
        assert!(page.contains(&row), "docs/reports.md lacks {row}");
    }
}
