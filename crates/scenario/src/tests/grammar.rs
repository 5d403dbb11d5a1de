//! Every form that the documentation promises.

use gargalo_link::Strip;
use gargalo_link::{LossModel, QueueConfig, QueueLimit, RateModel};
use gargalo_settings::Setting;
use gargalo_units::{Bytes, Duration, Instant, Rate};
use gargalo_workload::{Bulk, Workload};

use super::{ok, set};
use crate::resolved::Transport;

/// The scenario of the design.
pub(crate) const DUMBBELL: &str = r#"
name     = "cubic-vs-bbr"
seed     = 1
duration = "60s"

[topology.dumbbell]
pairs      = 2
access     = { rate = "1Gbit/s", delay = "1ms" }
bottleneck = { rate = "100Mbit/s", delay = "20ms", queue = { droptail = "250 packets" } }

[[flows]]
from = "left0"
to   = "right0"
transport.tcp = { congestion = "cubic" }
workload.bulk = {}

[[flows]]
from  = "left1"
to    = "right1"
start = "5s"
transport.tcp = { congestion = "bbr" }
workload.bulk = {}
"#;

/// Two hosts with a link and flows of the given text.
pub(crate) fn simple(link: &str, flow: &str) -> String {
    format!(
        "duration = \"10s\"\n[topology.simple]\nlink = {{ {link} }}\n[[flows]]\nfrom = \"client\"\nto \
         = \"server\"\n{flow}\n"
    )
}

const TCP: &str = "transport.tcp = {}";

#[test]
fn dumbbell_of_the_design() {
    let s = ok(DUMBBELL);
    let names: Vec<_> = s.links.iter().map(|l| l.name.as_str()).collect();
    let expected = [
        "bottleneck",
        "left0-routerL",
        "routerR-right0",
        "left1-routerL",
        "routerR-right1",
    ];
    assert_eq!(names, expected);
    assert_eq!((s.name.as_str(), s.flows.len()), ("cubic-vs-bbr", 2));
    assert_eq!(s.flows[1].label.as_ref(), "bbr");
    assert_eq!(s.flows[1].start.as_nanos(), 5_000_000_000);
}

#[test]
fn bandwidth_delay_products_take_the_longest_route() {
    let text = DUMBBELL.replace("250 packets", "2BDP");
    // 2 * 100 Mbit/s * 2 * (1 + 20 + 1) ms / 8.
    let limit = QueueLimit::Bytes(Bytes::new(1_100_000));
    assert_eq!(ok(&text).links[0].up.queue, QueueConfig::DropTail(limit));
    let access = r#"access = [{ delay = "1ms" }, { delay = "9ms" }]"#;
    let uneven = text.replace(
        r#"access     = { rate = "1Gbit/s", delay = "1ms" }"#,
        access,
    );
    let limit = QueueLimit::Bytes(Bytes::new(1_900_000));
    assert_eq!(
        ok(&uneven).links[0].down.queue,
        QueueConfig::DropTail(limit)
    );
}

#[test]
fn link_of_the_design_and_overrides_of_a_direction() {
    let link = r#"rate = "10Mbit/s", delay = "50ms", queue = { droptail = "100 packets" }, loss = { independent = 0.001 },
        up = { rate = { steps = [["0s", "10Mbit/s"], ["10s", "1Mbit/s"]] }, loss = { periodic = 100 } }"#;
    let s = ok(&simple(link, TCP));
    let l = &s.links[0];
    assert!(matches!(&l.up.rate, RateModel::Steps(steps) if steps.len() == 2));
    assert_eq!(l.down.rate, RateModel::Constant(Rate::from_mbps(10)));
    assert_eq!(l.up.loss, LossModel::Periodic(100));
    assert_eq!(l.down.loss, LossModel::Independent(0.001));
    assert_eq!(l.up.queue, l.down.queue);
}

#[test]
fn every_form_of_a_link_field_is_accepted() {
    for link in [
        r#"rate = "unlimited""#,
        r#"delay = { steps = [["0s", "10ms"], ["1s", "20ms"]] }"#,
        r#"jitter = "5ms""#,
        r#"jitter = { scale = "5ms", distribution = "pareto" }"#,
        r#"loss = "0.1%""#,
        r#"loss = 0.001"#,
        r#"loss = { gilbert-elliott = { p = 0.01, r = 0.3, h = "50%" } }"#,
        r#"policer = { rate = "1Mbit/s", burst = "100kB" }"#,
        r#"strip_mptcp = "syn", down = { strip_mptcp = "none" }"#,
        r#"strip_mptcp = { after = "1MB" }"#,
        r#"reorder = { probability = "1%" }, duplicate = 0.1, mtu = "9000B""#,
        r#"queue = "droptail""#,
        r#"queue = "fq-codel""#,
        r#"queue = { droptail = "50ms" }"#,
        r#"queue = { droptail = "150kB" }"#,
        r#"queue = { red = { min_threshold = 10, max_threshold = 30, ecn = true } }"#,
        r#"queue = { codel = { target = "5ms", ce_threshold = "1ms" } }, ecn = true"#,
        r#"queue = { fq-codel = { flows = 64, quantum = "300B" } }"#,
        r#"queue = { pie = { estimator = "departure-rate" } }"#,
        r#"queue = { step = { mark_above = "65 packets", limit = "500 packets" } }, ecn = true"#,
        r#"queue = { step = { mark_above = "1ms", drop_incapable = true } }"#,
        r#"queue = { dualpi2 = { target = "15ms", coupling = 2, step_threshold = "800us", ramp = "400us", min_step = "1 packet" } }"#,
        r#"queue = { dualpi2 = { any_ect = true, drop_on_overload = false, classic_protection = "20%", memory_limit = "1MB" } }"#,
        r#"rate = "1Gbit/s", delay = "1ms", queue = { dualpi2 = { step_threshold = "0.1BDP" } }"#,
    ] {
        ok(&simple(link, TCP));
    }
}

#[test]
fn who_takes_options_out_may_differ_by_direction() {
    let strip = |link: &str| {
        let link = &ok(&simple(link, TCP)).links[0];
        [link.up.strip_mptcp, link.down.strip_mptcp]
    };
    assert_eq!(strip(""), [Strip::None; 2]);
    let later = Strip::After(1_000_000);
    assert_eq!(strip(r#"strip_mptcp = { after = "1MB" }"#), [later; 2]);
    assert_eq!(
        strip(r#"strip_mptcp = "all", down = { strip_mptcp = "none" }"#),
        [Strip::All, Strip::None]
    );
    let acknowledgements = r#"down = { strip_mptcp = "rest" }"#;
    assert_eq!(strip(acknowledgements), [Strip::None, Strip::Rest]);
    // It counts for the results, so for the hash.
    let hash = |link: &str| ok(&simple(link, TCP)).hash();
    assert_ne!(hash(acknowledgements), hash(""));
    assert_ne!(
        hash(acknowledgements),
        hash(r#"up = { strip_mptcp = "rest" }"#)
    );
    assert_eq!(hash(r#"strip_mptcp = "none""#), hash(""));
}

#[test]
fn queue_defaults_are_those_of_the_link_crate() {
    for name in [
        "droptail", "red", "codel", "fq-codel", "pie", "step", "dualpi2",
    ] {
        let plain = ok(&simple(&format!("queue = \"{name}\""), TCP));
        let queue = &plain.links[0].up.queue;
        assert_eq!(queue.kind(), name);
        if name != "droptail" {
            let table = ok(&simple(&format!("queue = {{ {name} = {{}} }}"), TCP));
            assert_eq!(&table.links[0].up.queue, queue);
        }
    }
}

#[test]
fn a_marking_threshold_in_bandwidth_delay_products() {
    let link = r#"rate = "1Gbit/s", delay = "1ms", queue = { step = { mark_above = "0.2BDP" } }"#;
    let QueueConfig::Step(step) = ok(&simple(link, TCP)).links[0].up.queue else {
        panic!("not the step queue");
    };
    assert_eq!(step.limit, 1000);
    // 250 kB and what 1 Gbit/s sends while a packet is being sent.
    let QueueLimit::Bytes(bytes) = step.mark_above else {
        panic!("not in bytes");
    };
    assert!((50_000..51_000).contains(&bytes.get()), "{bytes}");
}

#[test]
fn dctcp_turns_its_kind_of_ecn_on() {
    use gargalo_tcp::EcnMode::{Classic, Dctcp, L4s, Off};
    for (options, want) in [
        (r#"congestion = "dctcp""#, Dctcp),
        (
            r#"congestion = { dctcp = { gain = 0.1 } }, ecn = true"#,
            Dctcp,
        ),
        (r#"congestion = "dctcp", ecn = "classic""#, Classic),
        (r#"congestion = "dctcp", ecn = false"#, Off),
        (r#"congestion = "cubic", ecn = "dctcp""#, Dctcp),
        (r#"congestion = "prague""#, L4s),
        (r#"congestion = "prague", ecn = true"#, L4s),
        (r#"congestion = "prague", ecn = "dctcp""#, Dctcp),
        (r#"congestion = "dctcp", ecn = "l4s""#, L4s),
        (r#"congestion = "cubic", ecn = true"#, Classic),
        (r#"congestion = "cubic""#, Off),
    ] {
        let s = ok(&simple("", &format!("transport.tcp = {{ {options} }}")));
        let Transport::Tcp(tcp) = &s.flows[0].transport else {
            panic!("not TCP");
        };
        assert_eq!(tcp.config.ecn, want, "{options}");
    }
}

#[test]
fn every_tcp_option_reaches_the_endpoint() {
    let flow = r#"transport.tcp = { congestion = { cubic = { beta = 0.8 } }, profile = "rfc5681", mss = "1000B",
        initial_window = "4 packets", receive_buffer = "16MB", send_buffer = "1MiB", timestamps = true,
        sack = false, ecn = true, pacing = { slow_start = 3 }, delayed_ack = { every = 4, timeout = "25ms" },
        min_rto = "300ms", max_rto = "30s", nagle = true, keep_alive = { idle = "1min" }, recovery = "newreno" }"#;
    let s = ok(&simple("", flow));
    let Transport::Tcp(tcp) = &s.flows[0].transport else {
        panic!("not TCP");
    };
    let c = &tcp.config;
    assert_eq!(
        (c.mss, c.first_window().get(), c.delayed_ack.every),
        (1000, 4000, 4)
    );
    assert!(c.timestamps && !c.sack && !c.dsack);
    assert_eq!(c.nagle, gargalo_tcp::Nagle::Standard);
    assert_eq!(c.ecn, gargalo_tcp::EcnMode::Classic);
    assert_eq!(c.receive_buffer, Bytes::new(16_000_000));
    assert_eq!(c.min_rto, Duration::from_millis(300));
    assert_eq!(c.keep_alive.map(|k| k.idle), Some(Duration::from_secs(60)));
    assert_eq!(
        (c.profile.name(), tcp.congestion.name.as_str()),
        ("rfc5681", "cubic")
    );
    assert_eq!(tcp.congestion.write()["cubic"]["beta"], 0.8);
}

#[test]
fn segments_shrink_to_the_mtu_of_the_route() {
    let s = ok(&simple(r#"mtu = "1280B""#, TCP));
    let Transport::Tcp(tcp) = &s.flows[0].transport else {
        panic!("not TCP");
    };
    assert_eq!(tcp.config.mss, 1280 - 52);
}

#[test]
fn copies_spread_over_hosts() {
    let text = r#"
duration = "1s"
topology.dumbbell = { pairs = 20, bottleneck = { rate = "1Gbit/s" } }
[[flows]]
from = "left*"
to = "right*"
count = 20
transport.tcp = {}
"#;
    let s = ok(text);
    let ids: Vec<u64> = s.flows.iter().map(|f| f.id).collect();
    assert_eq!(ids, (0..20).collect::<Vec<_>>());
    assert_eq!(s.nodes[s.flows[19].from].name, "left19");
    assert_eq!(s.nodes[s.flows[10].to].name, "right10");
    assert_eq!(ok(&text.replace("count = 20\n", "")).flows.len(), 20);
}

#[test]
fn workloads() {
    let tcp = |w: &str| ok(&simple("", &format!("{TCP}\n{w}"))).flows;
    let udp = |w: &str| ok(&simple("", &format!("transport.udp = {{}}\n{w}"))).flows;
    assert_eq!(
        *tcp(r#"workload.bulk = { bytes = "1MB" }"#)[0].workload,
        Workload::Bulk(Bulk::of(Bytes::new(1_000_000)))
    );
    let dealt = tcp(r#"workload.request = { objects = 5, size = "10kB", connections = 2 }"#);
    let objects = |w: &Workload| match w {
        Workload::Request(r) => r.count(),
        _ => 0,
    };
    assert_eq!(
        dealt
            .iter()
            .map(|f| objects(&f.workload))
            .collect::<Vec<_>>(),
        [3, 2]
    );
    let cbr = udp(r#"workload.cbr = { rate = "1Mbit/s", packet_size = "160B" }"#);
    assert!(matches!(*cbr[0].workload, Workload::Cbr(_)));
    let steps = |s: &str| {
        let cbr = format!("workload.cbr = {{ rate = {{ steps = {s} }} }}");
        tcp(&cbr)[0].workload.clone()
    };
    let at = |s| Instant::ZERO + Duration::from_secs(s);
    let changing = steps(r#"[["0s", "2Mbit/s"], ["3s", "0bit/s"], ["4s", "1Mbit/s"]]"#);
    let Workload::Cbr(cbr) = &*changing else {
        panic!("not constant");
    };
    let mbps = Rate::from_mbps;
    let expected = [(at(0), mbps(2)), (at(3), Rate::ZERO), (at(4), mbps(1))];
    assert_eq!(cbr.rate.steps(), expected);
    udp(r#"workload.onoff = { rate = "1Mbit/s", on = "1s", off = { exponential = "2s" } }"#);
    let arrivals = r#"workload.bulk = { bytes = "30kB" }
arrivals = { rate = "1000/s" }"#;
    assert_eq!(tcp(arrivals)[0].arrivals, Some(Duration::from_millis(1)));
}

#[test]
fn parking_lot_multipath_and_graph() {
    let s = ok(r#"
duration = "1s"
topology.parking-lot = { hops = 3, bottleneck = { rate = "10Mbit/s" } }
flows = [
  { from = "left", to = "right", transport.tcp = {} },
  { from = "cross*", to = "sink*", transport.tcp = {} },
]
"#);
    assert_eq!(s.flows.len(), 4);
    assert!(s.link("bottleneck2").is_some() && s.link("router3-right").is_some());
    let s = ok(r#"
duration = "1s"
[topology.multipath]
paths = [ { rate = "10Mbit/s", delay = "5ms" }, { rate = "25Mbit/s", delay = "10ms" } ]
"#);
    assert_eq!(s.links[1].name, "path1");
    let s = ok(r#"
duration = "1s"
[topology.graph]
nodes = ["a", "r", "b"]
links = [ { from = "a", to = "r", rate = "1Mbit/s" }, { from = "r", to = "b", name = "last" } ]
[[flows]]
from = "a"
to = "b"
transport.tcp = {}
"#);
    let hosts: Vec<bool> = s.nodes.iter().map(|n| n.is_host).collect();
    assert_eq!(hosts, [true, false, true]);
    assert_eq!(s.links[0].name, "a-r");
}

#[test]
fn overrides_set_what_they_name() {
    let s = set(
        DUMBBELL,
        &[
            ("duration", "5s"),
            ("seed", "7"),
            ("topology.dumbbell.bottleneck.rate", "50Mbit/s"),
            ("flows.*.transport.tcp.congestion", "reno"),
            ("flows.1.transport.tcp.congestion.reno.beta", "0.7"),
            ("flows.1.start", "\"1s\""),
        ],
    )
    .unwrap();
    assert_eq!((s.duration, s.seed), (Duration::from_secs(5), 7));
    assert_eq!(s.links[0].up.rate, RateModel::Constant(Rate::from_mbps(50)));
    assert!(s.flows.iter().all(|f| f.label.as_ref() == "reno"));
    let Transport::Tcp(tcp) = &s.flows[1].transport else {
        panic!("not TCP");
    };
    assert_eq!(tcp.congestion.write()["reno"]["beta"], 0.7);
}

#[test]
fn the_hash_is_of_meaning_not_of_spelling() {
    let hash = |text: &str| ok(text).hash();
    let base = hash(DUMBBELL);
    assert_eq!(base.len(), 64);
    assert_eq!(
        base,
        hash(
            &DUMBBELL
                .replace("100Mbit/s", "0.1Gbit/s")
                .replace("cubic-vs-bbr", "other")
        )
    );
    assert_ne!(base, hash(&DUMBBELL.replace("seed     = 1", "seed = 2")));
    assert_ne!(base, hash(&DUMBBELL.replace("20ms", "21ms")));
    assert_eq!(ok(DUMBBELL).canonical_json(), ok(DUMBBELL).canonical_json());
}

#[test]
fn json_is_accepted_too() {
    let json = serde_json::json!({
        "duration": "10s", "name": null, "topology": { "simple": { "link": { "rate": "1Mbit/s" } } },
        "flows": [{ "from": "client", "to": "server", "transport": { "tcp": { "congestion": "mine" } } }]
    });
    let own = crate::Names {
        congestion: vec!["mine".to_owned()],
        ..Default::default()
    };
    let origin = crate::Origin::default();
    assert!(crate::parse_json(&json, &origin, &[], &own).is_ok());
    assert!(crate::parse_json(&json, &origin, &[], &crate::Names::default()).is_err());
}

#[test]
fn schema_and_reference_know_every_key() {
    let schema = crate::schema();
    assert_eq!(schema["additionalProperties"], false);
    // No key may be null; "null" is only the name of a cipher.
    let text = schema.to_string().replace("\"const\":\"null\"", "");
    assert!(!text.contains("\"null\""));
    let page = crate::reference();
    for key in [
        "`droptail`",
        "`congestion`",
        "`beta`",
        "`gilbert-elliott`",
        "`min_rto` | \"200ms\" | \"1s\"",
        "`think_time`",
        "`datagram_size`",
    ] {
        assert!(page.contains(key), "{key}");
    }
}
