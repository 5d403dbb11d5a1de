//! QUIC as written, and what is refused.

use gargalo_quic::{Change, Config, Crypto};
use gargalo_settings::{Files, Setting, Switch};
use gargalo_units::{Bytes, Duration};
use serde_json::Value as Json;

use super::grammar::simple;
use super::{bad, ok, over_udp, results};
use crate::build::{Outcome, RunOptions, run};
use crate::resolved::Transport;

const LINK: &str = "rate = \"10Mbit/s\", delay = \"10ms\"";

fn quic(options: &str) -> Config {
    let s = ok(&simple(LINK, &format!("transport.quic = {{ {options} }}")));
    match &s.flows[0].transport {
        Transport::Quic(q) => (**q).clone(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(link: &str, options: &str, message: &str, help: &str) {
    let errors = bad(&simple(link, &format!("transport.quic = {{ {options} }}")));
    let all = errors.render(false);
    assert!(
        errors
            .iter()
            .any(|d| d.message.contains(message)
                && d.help.as_deref().unwrap_or_default().contains(help)),
        "no \"{message}\" with \"{help}\" in\n{all}"
    );
}

#[test]
fn the_standard_is_the_default() {
    let q = quic("");
    assert_eq!(
        (q.profile.name(), q.congestion.name.as_str()),
        ("rfc9000", "cubic")
    );
    assert_eq!(q.congestion.write()["cubic"]["reduce_from"], "cwnd");
    let congestion = q.congestion.clone();
    let usual = Config {
        congestion,
        ..Config::default()
    };
    assert_eq!(q, usual);
    let s = ok(&simple(LINK, "transport.quic = {}"));
    assert_eq!(s.flows[0].label.as_ref(), "quic cubic");
}

#[test]
fn google_quic_of_2018() {
    let q = quic("profile = \"google-v41\"");
    let c = &q;
    assert_eq!((c.datagram_size, c.mtu_discovery), (1350, Switch::Off));
    assert_eq!(c.initial_window(), Bytes::new(32 * 1350));
    assert_eq!(c.max_window(), Some(Bytes::new(2000 * 1350)));
    let written = |q: &Config, name: &str, key: &str| q.congestion.write()[name][key].clone();
    assert_eq!(written(c, "cubic", "connections"), 2);
    assert_eq!(written(c, "cubic", "slow_start"), "hystart");
    // RFC 9002 gives the window; the bytes in flight are an option.
    assert_eq!(written(c, "cubic", "reduce_from"), "cwnd");
    let reno = quic("congestion = \"reno\"");
    assert_eq!(written(&reno, "reno", "reduce_from"), "cwnd");
    let own = quic("congestion = { reno = { reduce_from = \"flight-size\" } }");
    assert_eq!(written(&own, "reno", "reduce_from"), "flight-size");
    assert!(written(&quic("congestion = \"bbr\""), "bbr", "reduce_from").is_null());
}

#[test]
fn options_replace_what_the_profile_has() {
    let q = quic(
        "congestion = { reno = { beta = 0.7 } }, crypto = \"null\", initial_window = \"20 packets\", \
         max_window = \"1MB\", datagram_size = \"1350B\", mtu_discovery = false, pacing = false, \
         ack = { every = 10, max_delay = \"5ms\", reordering = 0 }, streams = 4, \
         stream_window = \"1MB\", connection_window = \"2MB\", send_window = \"3MB\", \
         packet_threshold = 10, time_threshold = 2, ecn = true, idle_timeout = \"5s\", \
         migration = { after = \"2s\", change = \"port\" }",
    );
    let c = &q;
    assert_eq!(
        (q.congestion.name.as_str(), c.crypto),
        ("reno", Crypto::Null)
    );
    assert_eq!(c.initial_window(), Bytes::new(20 * 1350));
    assert_eq!(c.max_window(), Some(Bytes::new(1_000_000)));
    assert_eq!(
        (c.datagram_size, c.mtu_discovery, c.pacing),
        (1350, Switch::Off, false)
    );
    let ack = c.ack.unwrap();
    assert_eq!((ack.every, ack.reordering), (10, 0));
    assert_eq!(ack.max_delay, Some(Duration::from_millis(5)));
    assert_eq!(
        (c.stream_window, c.connection_window, c.send_window),
        (1_000_000, 2_000_000, 3_000_000)
    );
    assert_eq!(
        (c.packet_threshold, c.time_threshold, c.ecn),
        (10, 2.0, true)
    );
    assert_eq!(c.idle_timeout, Duration::from_secs(5));
    let m = c.migration.unwrap();
    assert_eq!((m.after, m.change), (Duration::from_secs(2), Change::Port));
    assert_eq!((c.streams, c.paths()), (4, 1));
    assert_eq!(quic("multipath = 2").paths(), 2);
    for own in ["noq-cubic", "noq-newreno", "noq-bbr3"] {
        assert_eq!(
            quic(&format!("congestion = \"{own}\"")).congestion.name,
            own
        );
    }
}

#[test]
fn the_route_bounds_datagrams_that_are_not_asked_for() {
    let over = |mtu: u32, options: &str| {
        let link = format!("{LINK}, mtu = \"{mtu}B\"");
        let s = ok(&simple(&link, &format!("transport.quic = {{ {options} }}")));
        match &s.flows[0].transport {
            Transport::Quic(q) => (**q).clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(over(1300, "profile = \"google-v41\"").datagram_size, 1272);
    assert_eq!(over(1300, "mtu_discovery = \"1280B\"").datagram_size, 1200);
    // Discovery begins where datagrams are large already.
    let large = over(9000, "datagram_size = \"5000B\"");
    assert_eq!(
        (large.datagram_size, large.mtu_discovery),
        (5000, Switch::On)
    );
}

#[test]
fn what_is_written_is_what_is_read() {
    for options in [
        "",
        "profile = \"google-v41\", ack = { max_delay = \"5ms\" }, max_window = \"30 packets\"",
        "multipath = 3, mtu_discovery = \"1400B\", handshake = \"1-rtt\", time_threshold = 1.5",
        "migration = { after = \"2s\" }, crypto = \"null\", idle_timeout = \"10ms\"",
    ] {
        let config = quic(options);
        let again = Config::read(&config.write(), &mut Files::default());
        assert_eq!(again.map(|c| c.write()), Ok(config.write()), "{options}");
    }
}

#[test]
fn what_cannot_be_is_told() {
    refused(
        LINK,
        "congestoin = \"cubic\"",
        "has no key \"congestoin\"",
        "did you mean `congestion`",
    );
    refused(
        LINK,
        "congestion = \"noq-cubik\"",
        "noq-cubik",
        "did you mean `noq-cubic`",
    );
    refused(
        LINK,
        "congestion = { cubic = { beta = 7 } }",
        "beta = 7",
        "",
    );
    refused(
        LINK,
        "handshake = \"0-rtt\"",
        "0-RTT without an earlier connection",
        "starts before",
    );
    refused(LINK, "handshake = \"2-rtt\"", "2-rtt", "1-rtt");
    let small = format!("{LINK}, mtu = \"1300B\"");
    refused(
        &small,
        "datagram_size = \"1350B\", mtu_discovery = false",
        "MTU of 1300 bytes leaves 1272",
        "raise the mtu",
    );
    refused(
        LINK,
        "datagram_size = \"1000B\"",
        "out of range",
        "1200B to",
    );
    let tiny = format!("{LINK}, mtu = \"1000B\"");
    refused(&tiny, "", "QUIC needs 1200", "raise the mtu");
    refused(
        LINK,
        "mtu_discovery = \"100B\"",
        "out of range",
        "datagram_size",
    );
    refused(
        LINK,
        "initial_window = \"1 packets\"",
        "out of range",
        "two datagrams",
    );
    refused(LINK, "multipath = 9", "out of range", "1 to 8");
    refused(
        LINK,
        "multipath = true, migration = { after = \"1s\" }",
        "several paths",
        "leave one",
    );
    refused(LINK, "idle_timeout = \"1ms\"", "out of range", "10ms");
    refused(
        LINK,
        "ack = { max_delay = \"10us\" }",
        "max_delay = 10us is out of range",
        "1ms or more",
    );
    let web = simple(
        LINK,
        "transport.quic = {}\nworkload.web = { load = \"10%\", link = \"link\" }",
    );
    assert!(bad(&web).render(false).contains("carried by TCP"));
}

#[test]
fn an_earlier_connection_brings_a_ticket() {
    let two = |first: &str, second: &str| {
        format!(
            "{}\n[[flows]]\nfrom = \"client\"\nto = \"server\"\n{second}",
            simple(LINK, first)
        )
    };
    let early = "transport.quic = { handshake = \"0-rtt\" }\nstart = \"1s\"";
    ok(&two(
        "transport.quic = {}\nworkload.bulk = { bytes = \"1kB\" }",
        early,
    ));
    // Over TCP, with other protection, later or the other way round there is none.
    for first in [
        "transport.tcp = {}",
        "transport.quic = { crypto = \"null\" }",
        "transport.quic = {}\nstart = \"2s\"",
    ] {
        let all = bad(&two(first, early)).render(false);
        assert!(all.contains("no ticket"), "{all}");
    }
}

#[test]
fn the_hash_knows_every_option() {
    let hash = |options: &str| {
        let text = simple(LINK, &format!("transport.quic = {{ {options} }}"));
        ok(&text).hash()
    };
    let all = [
        "",
        "crypto = \"null\"",
        "pacing = false",
        "ecn = true",
        "streams = 2",
        "multipath = 2",
        "ack = {}",
        "packet_threshold = 4",
        "time_threshold = 2",
        "migration = { after = \"1s\" }",
        "send_window = \"1MB\"",
        "congestion = \"noq-cubic\"",
    ];
    let mut hashes: Vec<_> = all.iter().map(|o| hash(o)).collect();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), all.len());
}

/// The results of a flow over a link with this loss.
fn flow(loss: &str, transport: &str, workload: &str) -> Outcome {
    let head = "record = { verify = true, events = true, datagrams = true }";
    let text = over_udp(head, loss, "", workload);
    results(&text.replace(
        "transport.udp = {}",
        &format!("transport.quic = {{ {transport} }}"),
    ))
}

fn row(out: &Outcome) -> Json {
    out.tables.flows.rows().next().unwrap()
}

#[test]
fn pings_are_datagrams_in_packets_of_a_connection() {
    let out = flow("", "", "workload.ping = { count = 20 }");
    let s = &out.json["summary"];
    assert_eq!(
        (&s["pings_sent"], &s["pings_lost"]),
        (&20.into(), &0.into())
    );
    // 56 bytes in a packet of 27 bytes of QUIC and 28 of headers: 0.11 ms on the way, and less than a millisecond more.
    let least = s["ping_rtt_min_s"].as_f64().unwrap();
    assert!((0.0202..0.0212).contains(&least), "{least}");
    let row = row(&out);
    assert_eq!(
        (&row["verified"], &row["failure"]),
        (&true.into(), &Json::Null)
    );
    assert!(row["delay_min_s"].as_f64().unwrap() > 0.01, "{row}");
    // The first is sent when the handshake is complete, behind the packet that says so.
    let (handshake, first) = (row["handshake_s"].as_f64(), row["first_byte_s"].as_f64());
    let after = first.unwrap() - handshake.unwrap();
    assert!((0.0101..0.0115).contains(&after), "{after}");
}

#[test]
fn lost_datagrams_are_not_repeated() {
    let out = flow(
        ", loss = { independent = \"5%\" }",
        "",
        "workload.voice = {}",
    );
    let row = row(&out);
    let loss = row["loss"].as_f64().unwrap();
    assert!((0.01..0.12).contains(&loss), "{loss}");
    assert_eq!(row["verified"], true);
    assert_eq!(row["retransmitted_packets"], 0);
    let datagrams: Vec<Json> = out.tables.datagrams.rows().collect();
    assert!(datagrams.len() > 50, "{}", datagrams.len());
}

#[test]
fn media_share_a_connection_s_congestion_control() {
    let options = "congestion = \"cubic\", datagram_size = \"1400B\"";
    let out = flow("", options, "workload.media = {}");
    let row = row(&out);
    assert_eq!(row["failure"], Json::Null, "{row}");
    assert!(row["bitrate_bps"].as_f64().unwrap() > 3e5, "{row}");
    assert!(row["loss"].as_f64().unwrap() < 0.01, "{row}");
    let wrong = flow("", "mtu_discovery = false", "workload.media = {}");
    let told = self::row(&wrong)["failure"].to_string();
    assert!(told.contains("does not fit into a packet"), "{told}");
}

#[test]
fn a_transfer_over_unidirectional_streams_with_new_keys_arrives() {
    for stack in ["", ", crypto = \"null\""] {
        let options = format!("streams = 3, unidirectional = true, key_update = \"200ms\"{stack}");
        let out = flow(
            ", loss = { independent = \"1%\" }",
            &options,
            "workload.bulk = { bytes = \"2MB\" }",
        );
        let row = row(&out);
        assert_eq!(
            (&row["verified"], &row["failure"]),
            (&true.into(), &Json::Null)
        );
        assert!(row["completion_s"].as_f64().is_some(), "{row}");
    }
}

#[test]
fn an_answer_that_takes_too_long_is_cancelled() {
    let workload = "workload.request = { sizes = [\"3MB\", \"10kB\"], give_up = \"300ms\" }";
    let out = flow("", "", workload);
    let row = row(&out);
    assert_eq!(
        (&row["verified"], &row["failure"]),
        (&true.into(), &Json::Null)
    );
    let objects: Vec<Json> = out.tables.objects.rows().collect();
    assert!(objects[0]["completion_s"].is_null(), "{objects:?}");
    // A round trip and 10 kB, behind what the server had sent of the first.
    let second = objects[1]["completion_s"].as_f64().unwrap();
    assert!((0.02..0.2).contains(&second), "{second}");
    assert!(row["completion_s"].as_f64().unwrap() < 0.6, "{row}");
    // The server stops: less than a third of it has crossed the link.
    let mut links = out.tables.links.rows();
    let sent = links.find(|l| l["direction"] == "down").unwrap()["sent_bytes"].as_u64();
    assert!(sent.is_some_and(|b| b < 1_000_000), "{sent:?}");
}

#[test]
fn urgent_answers_come_first() {
    let order = |urgency: &str| {
        let workload = format!(
            "workload.request = {{ objects = 3, size = \"300kB\", order = \"multiplexed\"{urgency} }}"
        );
        let out = flow("", "", &workload);
        let mut objects: Vec<(f64, u64)> = out
            .tables
            .objects
            .rows()
            .map(|o| {
                let done = o["completion_s"].as_f64().unwrap();
                (done, o["object"].as_u64().unwrap())
            })
            .collect();
        objects.sort_by(|a, b| a.0.total_cmp(&b.0));
        objects
    };
    let by_urgency = order(", urgency = [7, 0, 3]");
    let which = by_urgency.iter().map(|o| o.1).collect::<Vec<_>>();
    assert_eq!(which, [1, 2, 0]);
    let shared = order("");
    // Each a third of the time later, instead of all at the end.
    assert!(
        by_urgency[0].0 < 0.6 * shared[0].0,
        "{by_urgency:?} {shared:?}"
    );
}

#[test]
fn what_does_not_go_together_is_refused() {
    refused(
        LINK,
        "unidirectional = true, key_update = \"0s\"",
        "out of range",
        "",
    );
    let text = |transport: &str, workload: &str| {
        let udp = over_udp("", "", "", &format!("workload.{workload}"));
        bad(&udp.replace("transport.udp = {}", transport)).render(false)
    };
    let quic = "transport.quic = { unidirectional = true }";
    assert!(text(quic, "request = { size = \"1kB\" }").contains("only with workload.bulk"));
    let tcp = "transport.tcp = {}";
    let told = text(tcp, "request = { size = \"1kB\", give_up = \"1s\" }");
    assert!(
        told.contains("only over QUIC") && told.contains("transport.quic"),
        "{told}"
    );
    let several = text("transport.quic = { multipath = true }", "voice = {}");
    assert!(several.contains("over several paths"), "{several}");
    let marked = text("transport.quic = {}", "media = { ecn = true }");
    assert!(marked.contains("does not see"), "{marked}");
}

#[test]
fn a_client_moves_to_another_path() {
    let text = |paths: &str| {
        format!(
            r#"duration = "8s"
record = {{ verify = true }}
{paths}
[[flows]]
from = "client"
to = "server"
transport.quic = {{ congestion = "reno", migration = {{ after = "1s", change = "path" }} }}
workload.bulk = {{ bytes = "4MB" }}
"#
        )
    };
    let two = "[topology.multipath]\npaths = [\
               { rate = \"20Mbit/s\", delay = \"10ms\", queue.droptail = \"50 packets\" }, \
               { rate = \"5Mbit/s\", delay = \"40ms\", queue.droptail = \"50 packets\" }]";
    let out = results(&text(two));
    let row = row(&out);
    assert_eq!(
        (&row["verified"], &row["failure"]),
        (&true.into(), &Json::Null)
    );
    // 2.4 MB of it in the first second, the rest at a quarter of the rate.
    let took = row["completion_s"].as_f64().unwrap();
    assert!((3.0..5.0).contains(&took), "{row}");
    let links: Vec<Json> = out.tables.links.rows().collect();
    let carried = |name: &str| {
        let of = |l: &&Json| l["link"] == name || l["name"] == name;
        let bytes = links
            .iter()
            .filter(of)
            .filter_map(|l| l["sent_bytes"].as_u64());
        bytes.sum::<u64>()
    };
    assert!(
        (1_900_000..2_600_000).contains(&carried("path0")),
        "{links:?}"
    );
    assert!(
        (1_500_000..2_500_000).contains(&carried("path1")),
        "{links:?}"
    );
    let one = "[topology.simple]\nlink = { rate = \"20Mbit/s\", delay = \"10ms\" }";
    let told = run(&ok(&text(one)), RunOptions::default());
    let told = told.unwrap_err().to_string();
    assert!(
        told.contains("there is only one between its hosts"),
        "{told}"
    );
}

#[test]
fn more_objects_than_streams_are_all_answered() {
    // A hundred streams may be open at once.
    let workload = "workload.request = { objects = 250, size = \"2kB\", order = \"multiplexed\" }";
    let out = flow("", "", workload);
    let all = row(&out);
    assert_eq!(all["delivered_bytes"], 500_000, "{all}");
    assert!(all["completion_s"].as_f64().is_some(), "{all}");
    let lossy = ", loss = { independent = \"5%\" }";
    let late = "workload.request = { objects = 250, size = \"50kB\", give_up = \"30ms\" }";
    let out = flow(lossy, "", late);
    let some = row(&out);
    assert_eq!(
        (&some["verified"], &some["failure"]),
        (&true.into(), &Json::Null)
    );
    let objects: Vec<Json> = out.tables.objects.rows().collect();
    let whole = objects
        .iter()
        .filter(|o| !o["completion_s"].is_null())
        .count() as u64;
    assert!(
        some["delivered_bytes"].as_u64().unwrap() >= 50_000 * whole,
        "{some}"
    );
    assert!(objects.len() > 100, "{}", objects.len());
}

#[test]
fn datagrams_that_are_lost_at_the_end_are_counted() {
    let out = flow(", outages = [[\"2s\", \"5s\"]]", "", "workload.voice = {}");
    let row = row(&out);
    // Two of five seconds, and one is too late to tell.
    let loss = row["loss"].as_f64().unwrap();
    assert!((0.1..0.7).contains(&loss), "{row}");
    assert!(row["mos"].as_f64().unwrap() < 4.0, "{row}");
}

#[test]
fn datagrams_wait_for_the_handshake_and_have_tickets_of_their_own() {
    let text = |first: &str, second: &str| {
        format!(
            r#"duration = "8s"
record = {{ verify = true }}
[topology.simple]
link = {{ rate = "20Mbit/s", delay = "25ms" }}
[[flows]]
from = "client"
to = "server"
transport.quic = {{}}
workload.{first}
stop = "2s"
[[flows]]
from = "client"
to = "server"
start = "4s"
transport.quic = {{ handshake = "0-rtt" }}
workload.{second}
"#
        )
    };
    let (ping, bulk) = ("ping = { count = 5 }", "bulk = { bytes = \"100kB\" }");
    for both in [ping, bulk] {
        let out = results(&text(both, both));
        let last = out.tables.flows.rows().last().unwrap();
        assert_eq!(
            (&last["failure"], &last["verified"]),
            (&Json::Null, &true.into())
        );
    }
    for (first, second) in [(ping, bulk), (bulk, ping)] {
        let told = bad(&text(first, second)).render(false);
        assert!(
            told.contains("no ticket") && told.contains("datagrams"),
            "{told}"
        );
    }
}

#[test]
fn keys_are_not_updated_before_the_handshake_is_confirmed() {
    let out = flow(
        "",
        "key_update = \"5ms\"",
        "workload.bulk = { bytes = \"500kB\" }",
    );
    let row = row(&out);
    assert_eq!(
        (&row["failure"], &row["verified"]),
        (&Json::Null, &true.into())
    );
    assert!(row["completion_s"].as_f64().unwrap() < 1.0, "{row}");
}
