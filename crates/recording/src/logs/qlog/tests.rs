//! Logs as the drafts and the writers have them.

use gargalo_units::{Bytes, Duration, Instant, Rate};
use proptest::prelude::*;

use super::*;
use crate::logs::Logged;

fn read_text(text: &str) -> Log {
    read(&mut text.as_bytes(), Duration::ZERO).unwrap()
}

fn one(text: &str) -> Logged {
    assert!(is(text.as_bytes()));
    let mut log = read_text(text);
    assert_eq!((log.unused, log.flows.len()), (0, 1), "{log:?}");
    log.flows.remove(0)
}

fn ms(n: u64) -> Option<Duration> {
    Some(Duration::from_millis(n))
}

fn at_ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

/// A record in each line as a text sequence.
fn sequence(lines: &str) -> String {
    let records = lines.lines().filter(|l| !l.trim().is_empty());
    records.map(|l| format!("\u{1e}{}\n", l.trim())).collect()
}

/// As the writers in Rust do: quiche, neqo, quinn (the crate qlog), and this project's own.
const SEQUENCE: &str = include_str!("../../../tests/qlog/sequence.jsonl");

#[test]
fn a_sequence_is_a_flow_with_its_samples_and_events() {
    let flow = one(&sequence(SEQUENCE));
    let row = &flow.row;
    assert_eq!((flow.label.as_str(), row.transport), ("c0ffee", "quic"));
    assert_eq!(
        (flow.from.as_str(), flow.to.as_str()),
        ("192.0.2.1", "192.0.2.2")
    );
    assert_eq!(flow.facts.captured_at, Some("sender"));
    // The clock is that of other traces which begin at zero.
    assert_eq!((row.start, row.end), (at_ms(10), at_ms(210)));
    assert_eq!((row.handshake, row.completion), (ms(50), ms(200)));
    // Of five packets one has only an acknowledgement.
    let counters = row.counters;
    assert_eq!(counters.sent_packets.get(), Some(4));
    assert_eq!(counters.sent_bytes.get(), Some(2500));
    assert_eq!(counters.retransmitted_packets.get(), Some(1));
    assert_eq!(
        (counters.lost_packets.get(), counters.timeouts.get()),
        (Some(1), Some(1))
    );
    assert_eq!(counters.spurious_losses.get(), None);
    assert_eq!(
        (row.rtt_min, row.rtt_max, row.rtt_mean),
        (ms(50), ms(58), ms(54))
    );
    assert_eq!(row.delivered, Some(Bytes::new(1500)));
    assert_eq!(row.goodput, Some(Rate::from_bps(60_000)));
    assert_eq!(row.ce_marks, Some(1));
    assert_eq!(flow.facts.loss_episodes, Some(1));
    let events: Vec<_> = flow
        .events
        .iter()
        .map(|(t, k, d)| (*t, *k, d.as_str()))
        .collect();
    let expected = [
        (at_ms(120), "ecn", "marks=1"),
        (at_ms(120), "loss", "packets=1"),
        (at_ms(120), "recovery", ""),
        (at_ms(170), "timeout", ""),
    ];
    assert_eq!(events, expected);
    // Each update has what has changed; the rest stays.
    let seen: Vec<_> = flow
        .samples
        .iter()
        .map(|s| (s.time, s.congestion_window, s.srtt, s.phase))
        .collect();
    let window = |n| Some(Bytes::new(n));
    let expected = [
        (at_ms(10), window(12_000), None, "slow-start"),
        (at_ms(60), window(12_000), ms(50), "slow-start"),
        (at_ms(120), window(6_000), ms(50), "recovery"),
        (at_ms(210), window(6_000), ms(50), "recovery"),
        (at_ms(900), window(6_000), ms(50), "recovery"),
    ];
    assert_eq!(seen, expected);
    assert_eq!(flow.samples[0].slow_start_threshold, None);
    assert_eq!(flow.samples[2].slow_start_threshold, window(6_000));
    assert_eq!(flow.samples[2].pacing_rate, Some(Rate::from_mbps(8)));
    let acked: Vec<_> = flow
        .samples
        .iter()
        .map(|s| s.delivered.unwrap().get())
        .collect();
    assert_eq!(acked, [0, 0, 500, 1500, 1500]);
}

#[test]
fn records_may_be_lines_or_have_no_separator() {
    let expected = one(&sequence(SEQUENCE)).row;
    let lines = SEQUENCE.trim().to_owned();
    assert_eq!(one(&lines).row, expected);
    assert_eq!(one(&lines.replace('\n', "\r\n")).row, expected);
    assert_eq!(
        one(&format!("\u{1e}{}", lines.replace('\n', ""))).row,
        expected
    );
}

#[test]
fn the_names_of_the_latest_drafts_say_the_same() {
    let mut expected = one(&sequence(SEQUENCE));
    let late = SEQUENCE
        .replace(
            r#""qlog_version":"0.3","qlog_format":"JSON-SEQ""#,
            r#""file_schema":"urn:ietf:params:qlog:file:sequential""#,
        )
        .replace(
            r#""time_format":"relative","reference_time":0"#,
            concat!(
                r#""time_format":"relative_to_epoch","reference_time":{"clock_type":"monotonic","#,
                r#""epoch":"unknown","wall_clock_time":"2026-03-01T12:00:00.000Z"}"#
            ),
        )
        .replace(
            r#""src_ip":"192.0.2.1","dst_ip":"192.0.2.2""#,
            r#""local":{"ip_v4":"192.0.2.1","port_v4":4000},"remote":{"ip_v4":"192.0.2.2"}"#,
        )
        .replace("transport:", "quic:")
        .replace("connectivity:", "quic:")
        .replace("recovery:metrics", "quic:recovery_metrics")
        .replace("recovery:", "quic:");
    let text = sequence(&late);
    assert_eq!(read_text(&text).begun_ns, Some(1_772_366_400_010_000_000));
    let found = one(&text);
    expected.delay(Duration::ZERO);
    // Its times are since its first event, which has a date.
    assert_eq!((found.row.start, found.row.end), (at_ms(0), at_ms(200)));
    assert_eq!(
        (found.from, found.events.len()),
        (expected.from, expected.events.len())
    );
    let (mut found, mut expected) = (found.row, expected.row);
    (found.start, found.end, expected.start, expected.end) = Default::default();
    assert_eq!(found, expected);
}

#[test]
fn times_may_be_since_the_event_before() {
    for format in ["delta", "relative_to_previous_event"] {
        let flow = one(&sequence(&format!(
            r#"{{"qlog_version":"0.4","trace":{{"common_fields":{{"group_id":7,"time_format":"{format}"}}}}}}
            {{"time":5,"name":"quic:recovery_metrics_updated","data":{{"congestion_window":1}}}}
            {{"time":7.5,"name":"quic:recovery_metrics_updated","data":{{"congestion_window":2}}}}
            {{"time":0.5,"name":"quic:recovery_metrics_updated","data":{{"pto_count":1}}}}"#
        )));
        assert_eq!(flow.label, "7");
        let times: Vec<_> = flow.samples.iter().map(|s| s.time.as_nanos()).collect();
        assert_eq!(times, [5_000_000, 12_500_000, 13_000_000]);
        assert_eq!(flow.row.counters.timeouts.get(), Some(1));
    }
}

/// picoquic: rows, microseconds, numbers of packets as text, `id` of streams; the server sends.
const ROWS: &str = include_str!("../../../tests/qlog/picoquic.qlog");

#[test]
fn a_document_of_rows_in_microseconds_is_read() {
    let flow = one(ROWS);
    assert_eq!(read_text(ROWS).begun_ns, Some(1_700_000_000_000_000_000));
    assert_eq!((flow.from.as_str(), flow.to.as_str()), ("server", "client"));
    assert_eq!(flow.label, "picoquic ab12");
    assert_eq!((flow.row.rtt_min, flow.row.rtt_p50), (ms(20), ms(20)));
    assert_eq!(flow.row.counters.sent_packets.get(), Some(1));
    assert_eq!(flow.row.counters.lost_packets.get(), Some(0));
    assert_eq!(flow.row.counters.timeouts.get(), None);
    assert_eq!(
        (flow.row.delivered, flow.row.completion),
        (Some(Bytes::new(1400)), ms(21))
    );
    let last = flow.samples.last().unwrap();
    assert_eq!(
        (last.time, last.srtt, last.congestion_window),
        (at_ms(21), ms(20), Some(Bytes::new(15_360)))
    );
}

#[test]
fn a_head_after_its_events_is_heeded() {
    let head = ROWS.find("\"event_fields\"").unwrap();
    let events = ROWS.find("\"events\"").unwrap();
    let rest = ROWS.rfind("]}]}").unwrap();
    let late = format!(
        "{}{}], {}}}]}}",
        &ROWS[..head],
        &ROWS[events..rest],
        ROWS[head..events].trim_end().trim_end_matches(',')
    );
    assert_eq!(one(&late).row, one(ROWS).row);
}

/// mvfst: names in capitals or not, a trigger, times as text, its own names of events.
#[test]
fn the_events_of_mvfst_are_read() {
    let flow = one(include_str!("../../../tests/qlog/mvfst.qlog"));
    let last = flow.samples.last().unwrap();
    assert_eq!((last.srtt, last.phase), (ms(5), "startup"));
    assert_eq!(last.congestion_window, Some(Bytes::new(15_000)));
    assert_eq!((flow.row.rtt_min, flow.label.as_str()), (ms(4), "aa"));
    let counters = flow.row.counters;
    assert_eq!(
        (counters.lost_packets.get(), counters.timeouts.get()),
        (Some(3), Some(1))
    );
    assert_eq!(flow.events[0].2, "packets=3");
    // No packet was received: whether the data has arrived is not known.
    assert_eq!((flow.row.goodput, last.received), (None, None));
}

/// aioquic: the head last, times of the machine's clock, and no format of times.
#[test]
fn a_clock_that_began_at_any_time_begins_with_the_log() {
    let text = include_str!("../../../tests/qlog/aioquic.qlog");
    let flow = one(text);
    assert_eq!(read_text(text).begun_ns, None);
    assert_eq!(
        (flow.row.start, flow.samples.last().unwrap().time),
        (at_ms(0), at_ms(100))
    );
    // What the receiver sees of the sender is missing.
    assert_eq!(
        (flow.from.as_str(), flow.facts.captured_at),
        ("server", Some("receiver"))
    );
    assert_eq!(flow.row.counters.sent_packets.get(), None);
    assert_eq!(flow.row.rtt_min, None);
    assert_eq!(flow.samples.last().unwrap().congestion_window, None);
    assert_eq!(flow.facts.base_rtt_s.map(|s| (s * 1e3).round()), Some(30.0));
    assert_eq!(
        (flow.row.delivered, flow.row.completion),
        (Some(Bytes::new(100)), Some(Duration::ZERO))
    );
}

/// quinn: a group in each event, what is assumed of the path first, and in earlier versions seconds.
#[test]
fn what_is_assumed_of_a_path_is_no_round_trip() {
    for (assumed, first, second) in [("333.0", "20.0", "30.0"), ("0.333", "0.02", "0.03")] {
        let flow = one(&sequence(&format!(
            r#"{{"qlog_version":"0.3","qlog_format":"JSON-SEQ","trace":{{"vantage_point":{{"type":"server"}}}}}}
            {{"time":0.1,"name":"recovery:metrics_updated","data":{{"min_rtt":{assumed},"smoothed_rtt":{assumed},
             "latest_rtt":{assumed},"pto_count":0,"congestion_window":12000}},"group_id":"ab"}}
            {{"time":9.0,"name":"recovery:metrics_updated","data":{{"min_rtt":{first},"smoothed_rtt":{first},
             "latest_rtt":{first}}},"group_id":"ab"}}
            {{"time":10.0,"name":"recovery:metrics_updated","data":{{"latest_rtt":{second}}},"group_id":"ab"}}"#
        ).replace(",\n", ",")));
        assert_eq!(
            (flow.label.as_str(), flow.row.counters.timeouts.get()),
            ("ab", Some(0))
        );
        assert_eq!((flow.row.rtt_min, flow.row.rtt_max), (ms(20), ms(30)));
        let smoothed: Vec<_> = flow.samples.iter().map(|s| s.srtt).collect();
        assert_eq!(smoothed, [None, ms(20), ms(20)]);
    }
}

#[test]
fn pairs_of_category_and_event_and_absolute_times_are_read() {
    let flow = one(
        r#"{"qlog_version":"draft-02","traces":[{"vantage_point":{"type":"server"},"title":"mine",
        "common_fields":{"time_format":"absolute","group_id":"g"},"events":[
        {"time":1700000000000,"category":"recovery","event":"metrics_updated","data":{"min_rtt":3}},
        {"time":1700000000250,"category":"recovery","event":"metrics_updated","data":{"cwnd":3}}]}]}"#,
    );
    assert_eq!((flow.label.as_str(), flow.row.rtt_min), ("mine", ms(3)));
    assert_eq!((flow.row.start, flow.row.end), (at_ms(0), at_ms(250)));
    // Nothing is told of packets.
    assert_eq!(flow.row.counters.sent_packets.get(), None);
    assert_eq!(flow.row.goodput, None);
}

#[test]
fn figures_of_several_paths_are_not_those_of_the_connection() {
    let text = ROWS
        .replace("\"relative_time\",", "\"relative_time\", \"path_id\",")
        .replace("[21000,", "[21000, 1,")
        .replace("[0,", "[0, 0,")
        .replace("[1000,", "[1000, 0,");
    let flow = one(&text);
    assert_eq!(flow.row.counters.sent_packets.get(), Some(1));
    assert_eq!((flow.row.goodput, flow.row.completion), (None, None));
    assert!(
        flow.samples
            .iter()
            .all(|s| s.congestion_window.is_none() && s.received.is_none())
    );
}

#[test]
fn packets_without_frames_are_all_counted() {
    let flow = one(&sequence(
        r#"{"qlog_version":"0.3","trace":{}}
        {"time":0,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":0}}}
        {"time":1,"name":"transport:packet_sent","data":{"header":{"packet_number":1},"frames":[{"frame_type":"ack"}]}}
        {"time":2,"name":"transport:packet_sent","data":{"header":{"packet_type":"retry"}}}"#,
    ));
    assert_eq!(flow.row.counters.sent_packets.get(), Some(2));
    assert_eq!(flow.row.counters.lost_packets.get(), None);
    assert_eq!(flow.facts.captured_at, None);
}

#[test]
fn each_group_of_a_trace_is_a_flow() {
    let log = read_text(&sequence(
        r#"{"qlog_version":"0.3","trace":{"title":"t","common_fields":{"time_format":"relative"}}}
        {"time":0,"name":"connectivity:server_listening","data":{}}
        {"time":10,"group_id":"a","name":"recovery:metrics_updated","data":{"cwnd":1}}
        {"time":30,"group_id":"b","name":"recovery:metrics_updated","data":{"cwnd":2}}
        {"qlog_version":"0.3","title":"second","trace":{}}
        {"time":7,"name":"recovery:metrics_updated","data":{"cwnd":3}}"#,
    ));
    let found: Vec<_> = log
        .flows
        .iter()
        .map(|f| (f.label.as_str(), f.row.start))
        .collect();
    assert_eq!(
        found,
        [("t a", at_ms(10)), ("t b", at_ms(30)), ("second", at_ms(0))]
    );
}

/// quinn: groups are named by the peer's connection ID, which becomes known with its first packet.
#[test]
fn a_group_that_does_not_begin_as_a_connection_does_is_of_the_one_before() {
    let event = |time: u32, name: &str, kind: &str, number: u32, group: &str| {
        format!(
            r#"{{"time":{time},"name":"transport:{name}","group_id":"{group}",
            "data":{{"header":{{"packet_type":"{kind}","packet_number":{number}}}}}}}"#
        )
        .replace('\n', " ")
    };
    let flow = one(&sequence(
        &[
            r#"{"qlog_version":"0.3","trace":{}}"#.to_owned(),
            event(0, "packet_sent", "initial", 0, "a"),
            event(40, "packet_received", "initial", 0, "a"),
            event(40, "packet_received", "handshake", 0, "b"),
            event(41, "packet_sent", "initial", 1, "b"),
        ]
        .join("\n"),
    ));
    assert_eq!(flow.label, "a");
    assert_eq!(flow.row.counters.sent_packets.get(), Some(2));
}

/// quiche tells of its windows, and not of losses.
#[test]
fn losses_that_are_not_told_are_missing_where_data_is_sent_again() {
    let data = |time, number, offset| {
        format!(
            r#"{{"time":{time},"name":"packet_sent","data":{{"header":{{"packet_type":"1RTT","packet_number":{number}}},
            "frames":[{{"frame_type":"stream","stream_id":0,"offset":{offset},"length":9}}]}}}}"#
        )
        .replace('\n', " ")
    };
    let lost = |events: &[String]| {
        let head = r#"{"qlog_version":"0.3","trace":{}}"#;
        let metrics = r#"{"time":9,"name":"recovery_metrics_updated","data":{"latest_rtt":7}}"#;
        let flow = one(&sequence(&format!(
            "{head}\n{}\n{metrics}",
            events.join("\n")
        )));
        flow.row.counters.lost_packets.get()
    };
    assert_eq!(lost(&[data(0, 0, 0), data(1, 1, 9)]), Some(0));
    assert_eq!(lost(&[data(0, 0, 0), data(1, 1, 0)]), None);
}

/// As in the traces of both ends that qvis shows: an empty row after the last comma, packets of an unknown type.
#[test]
fn both_ends_of_a_connection_are_told_apart() {
    let end = |end: &str, events: &str| {
        format!(
            r#"{{"common_fields":{{"ODCID":"ab","reference_time":"1566844755588"}},"vantage_point":{{"type":"{end}"}},
            "event_fields":["relative_time","category","event_type","data"],"events":[{events},[]]}}"#
        )
    };
    let data =
        r#""frames":[{"frame_type":"STREAM","id":"0","offset":"0","length":"9","fin":true}]"#;
    let text = format!(
        r#"{{"qlog_version":"draft-01","traces":[{},{}]}}"#,
        end(
            "server",
            &format!(
                r#"["3","transport","packet_sent",{{"packet_type":"1RTT","header":{{"packet_number":"1"}},{data}}}],
                ["90","transport","packet_received",{{"packet_type":"unknown","header":{{"packet_number":"2"}},
                "frames":[{{"frame_type":"ACK","acked_ranges":[["1","1"]]}}]}}]"#
            )
        ),
        end(
            "client",
            &format!(
                r#"["40","transport","packet_received",{{"header":{{"packet_number":"1"}},{data}}}]"#
            )
        ),
    );
    assert!(is(text.as_bytes()));
    let log = read_text(&text);
    assert_eq!(
        (log.unused, log.begun_ns),
        (0, Some(1_566_844_755_591_000_000))
    );
    let told = |f: &Logged| {
        (
            f.label.clone(),
            f.facts.captured_at,
            f.row.start,
            f.row.delivered.unwrap().get(),
        )
    };
    let expected = [
        ("ab server".to_owned(), Some("sender"), at_ms(0), 9),
        ("ab client".to_owned(), Some("receiver"), at_ms(37), 9),
    ];
    assert_eq!(log.flows.iter().map(told).collect::<Vec<_>>(), expected);
}

#[test]
fn what_cannot_be_used_is_counted() {
    let mut text = sequence(SEQUENCE);
    text.push_str("\u{1e}{\"time\":1,\"nam");
    text.push_str("\u{1e}{\"time\":950,\"name\":\"recovery:packet_lost\",\"data\":{}}\n\u{1e}5\n");
    let log = read_text(&text);
    assert_eq!(log.unused, 2);
    assert_eq!(log.flows[0].row.counters.lost_packets.get(), Some(2));
    // A document that is cut off has what is before.
    let cut = read_text(&ROWS[..ROWS.trim_end().len() - 150]);
    assert_eq!((cut.unused, cut.flows.len()), (1, 1));
    let log = read_text(
        r#"{"qlog_version":"0.3","traces":[{"error_description":"not there","uri":"x"}]}"#,
    );
    assert_eq!((log.unused, log.flows.len()), (1, 0));
}

#[test]
fn other_files_are_no_qlog() {
    for text in [
        "",
        "\u{1e}",
        "[]",
        r#"{"start":{"connected":[]},"intervals":[]}"#,
        r#"qlog_version "qlog_version""#,
        r#"{"traces":[]}"#,
    ] {
        assert!(!is(text.as_bytes()), "{text}");
    }
    assert!(!is(&[0x0a, 0x0d, 0x0d, 0x0a, 0xff]));
}

#[test]
fn samples_have_a_bound_and_end_with_the_latest_state() {
    let mut text =
        sequence(r#"{"qlog_version":"0.3","trace":{"common_fields":{"time_format":"relative"}}}"#);
    let count = 150_000;
    for i in 1..=count {
        text.push_str(&format!(
            "\u{1e}{{\"time\":{i},\"name\":\"recovery:metrics_updated\",\"data\":{{\"cwnd\":{i}}}}}\n"
        ));
    }
    let flow = one(&text);
    assert!(
        (30_000..=65_537).contains(&flow.samples.len()),
        "{}",
        flow.samples.len()
    );
    assert!(flow.samples.is_sorted_by(|a, b| a.time < b.time));
    let last = flow.samples.last().unwrap();
    assert_eq!(
        (last.time, last.congestion_window),
        (at_ms(count), Some(Bytes::new(count)))
    );
}

/// Values that numbers, times and names may be replaced with.
const ODD: &[&str] = &[
    "-1",
    "1e308",
    "18446744073709551615",
    "-9223372036854775808",
    "null",
    "[]",
    "{}",
    "\"\"",
    "[[9,1]]",
    "\"é\"",
    "true",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_damage_makes_it_panic(
        which in 0usize..3,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0usize..4), 1..8),
        odd in prop::collection::vec((any::<prop::sample::Index>(), 0..ODD.len()), 0..6),
    ) {
        let mut text = [sequence(SEQUENCE), SEQUENCE.trim().to_owned(), ROWS.to_owned()][which].clone();
        for (at, with) in odd {
            // After a colon or a comma there is a value, as a rule.
            let places: Vec<_> = text.match_indices([':', ',']).map(|(i, _)| i + 1).collect();
            let from = places[at.index(places.len())];
            let rest = &text[from..];
            let to = from + rest.find([',', '}', ']']).unwrap_or(rest.len());
            text.replace_range(from..to, ODD[with]);
        }
        let mut bytes = text.into_bytes();
        for (at, byte, how) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => _ = bytes.remove(at),
                _ => _ = bytes.drain(at..bytes.len().min(at + usize::from(byte))),
            }
        }
        let _ = is(&bytes);
        let log = read(&mut bytes.as_slice(), Duration::ZERO).unwrap();
        for mut flow in log.flows {
            flow.delay(Duration::MAX);
            prop_assert!(flow.end() >= flow.row.start);
        }
    }
}
