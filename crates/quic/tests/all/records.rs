//! qlog traces and TLS secrets.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::pair::{CLIENT, Link, Pair, SERVER, init, ours, pair_in};
use gargalo_quic::{Config, Congestion, Crypto, Init, Realm, Stack};
use gargalo_units::{Duration, Instant};
use serde_json::Value;

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The text of both traces of a lossy transfer in both directions, and the pair after its end.
fn traced(crypto: Crypto, congestion: &Congestion) -> ([String; 2], Pair) {
    let logs = [Shared::default(), Shared::default()];
    let with = |side: usize| Init {
        secrets: true,
        qlog: Some((
            Box::new(logs[side].clone()),
            format!("\"end\" {side}\n\u{e9}"),
        )),
        ..init(side, 7)
    };
    let config = Config {
        crypto,
        ecn: true,
        ..Config::default()
    };
    let realm = Realm::new(7).unwrap();
    let mut link = Link::new(20, 10);
    link.loss = 0.01;
    let ends = [with(CLIENT), with(SERVER)];
    let mut p = pair_in(&realm, [&config; 2], congestion, [link; 2], ends);
    p.apps[CLIENT].to_send = vec![300_000, 5_000];
    p.apps[SERVER].answer = Some(20_000);
    p.run_until(Duration::from_secs(60), |p| {
        p.is_settled() && p.apps[CLIENT].ended.len() == 2
    });
    p.close();
    let text = |side: usize| String::from_utf8(logs[side].0.lock().unwrap().clone()).unwrap();
    ([text(CLIENT), text(SERVER)], p)
}

/// The records of an RFC 7464 sequence.
fn records(text: &str) -> Vec<Value> {
    assert!(text.starts_with('\u{1e}') && text.ends_with('\n'));
    text.split('\u{1e}')
        .skip(1)
        .map(|r| serde_json::from_str(r).unwrap_or_else(|e| panic!("{e}: {r}")))
        .collect()
}

/// The fields that draft-ietf-quic-qlog-quic-events-02 requires, and those it allows.
fn check_event(event: &Value) {
    let data = event["data"].as_object().unwrap();
    let keys: BTreeSet<&str> = data.keys().map(String::as_str).collect();
    let number = |v: &Value| v.as_u64().unwrap_or_else(|| panic!("{v} in {event}"));
    let (required, allowed): (&[&str], &[&str]) = match event["name"].as_str().unwrap() {
        "connectivity:connection_started" => (
            &["src_ip", "dst_ip"],
            &["ip_version", "protocol", "src_port", "dst_port"],
        ),
        "connectivity:connection_state_updated" => (&["new"], &["old"]),
        "connectivity:connection_closed" => (&[], &["owner", "trigger", "reason"]),
        "transport:parameters_set" => (
            &[],
            &[
                "owner",
                "max_idle_timeout",
                "initial_max_data",
                "initial_max_stream_data_bidi_local",
                "initial_max_stream_data_bidi_remote",
                "initial_max_streams_bidi",
            ],
        ),
        "transport:packet_sent" | "transport:packet_received" => (&["header"], &["frames", "raw"]),
        "recovery:parameters_set" => (
            &[],
            &[
                "reordering_threshold",
                "time_threshold",
                "timer_granularity",
                "initial_rtt",
                "max_datagram_size",
                "initial_congestion_window",
                "minimum_congestion_window",
                "persistent_congestion_threshold",
            ],
        ),
        "recovery:metrics_updated" => (
            &[],
            &[
                "min_rtt",
                "smoothed_rtt",
                "latest_rtt",
                "rtt_variance",
                "congestion_window",
                "bytes_in_flight",
                "ssthresh",
                "pacing_rate",
            ],
        ),
        "recovery:congestion_state_updated" => (&["new"], &["old"]),
        "recovery:loss_timer_updated" => (&["event_type"], &["timer_type"]),
        "recovery:packet_lost" => (&[], &["header"]),
        other => panic!("unknown event {other}"),
    };
    for key in required {
        assert!(keys.contains(key), "{key} is missing in {event}");
    }
    for key in &keys {
        assert!(
            required.contains(key) || allowed.contains(key),
            "{key} in {event}"
        );
    }
    if let Some(header) = data.get("header") {
        let kind = header["packet_type"].as_str().unwrap();
        assert!(["initial", "handshake", "0RTT", "1RTT"].contains(&kind));
        number(&header["packet_number"]);
    }
    let frames = data.get("frames").and_then(Value::as_array);
    frames.into_iter().flatten().for_each(check_frame);
}

/// The fields that every frame of its kind has.
fn check_frame(frame: &Value) {
    let number = |v: &Value| v.as_u64().unwrap_or_else(|| panic!("{v} in {frame}"));
    let fields: &[&str] = match frame["frame_type"].as_str().unwrap() {
        "padding" | "ping" | "handshake_done" | "new_token" => &[],
        "ack" => {
            assert!(frame["ack_delay"].is_f64());
            let ranges = frame["acked_ranges"].as_array().unwrap();
            assert!(!ranges.is_empty());
            for r in ranges {
                assert!(number(&r[0]) <= number(&r[1]));
            }
            &[]
        }
        "crypto" => &["offset", "length"],
        "stream" => &["stream_id", "offset", "length"],
        "max_data" => &["maximum"],
        "max_stream_data" => &["stream_id", "maximum"],
        "new_connection_id" => &["sequence_number", "retire_prior_to", "connection_id_length"],
        "retire_connection_id" => &["sequence_number"],
        "connection_close" => &["raw_error_code"],
        "unknown" => &["raw_frame_type"],
        "max_streams" => &["maximum"],
        other => panic!("unexpected frame {other}"),
    };
    for field in fields {
        number(&frame[*field]);
    }
}

#[test]
fn traces_have_the_form_that_qvis_reads() {
    for (crypto, congestion) in [
        (Crypto::Tls, ours("cubic")),
        (Crypto::Null, Congestion::NoqBbr3),
    ] {
        let (texts, mut p) = traced(crypto, &congestion);
        for (side, text) in texts.iter().enumerate() {
            let records = records(text);
            let head = &records[0];
            // What qvis's loader insists on.
            assert_eq!(head["qlog_version"], "0.3");
            assert_eq!(head["qlog_format"], "JSON-SEQ");
            assert_eq!(head["title"], format!("\"end\" {side}\n\u{e9}"));
            let trace = &head["trace"];
            let name = ["client", "server"][side];
            assert_eq!(trace["vantage_point"]["type"], name);
            assert_eq!(trace["common_fields"]["time_format"], "relative");
            assert_eq!(trace["common_fields"]["reference_time"], 0);
            assert_eq!(trace["common_fields"]["ODCID"].as_str().unwrap().len(), 40);
            let mut last = 0.0;
            let mut sent = 0;
            let mut names = BTreeSet::new();
            let mut stream_bytes = 0;
            for event in &records[1..] {
                let time = event["time"].as_f64().unwrap();
                assert!(time >= last, "events are in order");
                last = time;
                check_event(event);
                names.insert(event["name"].as_str().unwrap());
                if event["name"] == "transport:packet_sent" {
                    sent += event["data"]["raw"]["length"].as_u64().unwrap();
                    let frames = event["data"]["frames"].as_array().unwrap();
                    let data = frames.iter().filter(|f| f["frame_type"] == "stream");
                    stream_bytes += data.map(|f| f["length"].as_u64().unwrap()).sum::<u64>();
                }
            }
            assert_eq!(records[1]["name"], "connectivity:connection_started");
            for name in [
                "transport:packet_received",
                "recovery:metrics_updated",
                "recovery:congestion_state_updated",
                "connectivity:connection_closed",
                "connectivity:connection_state_updated",
            ] {
                assert!(names.contains(name), "{name}: {names:?}");
            }
            assert!(side == SERVER || names.contains("recovery:packet_lost"));
            let stats = p.ends[side].stats();
            assert_eq!(sent, stats.sent_datagram_bytes);
            assert_eq!(stats.sender.sent_bytes, stream_bytes);
        }
        let (again, _) = traced(crypto, &congestion);
        assert_eq!(texts, again);
    }
}

#[test]
fn a_trace_that_cannot_be_written_is_told_of() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("disk full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let realm = Realm::new(1).unwrap();
    let config = Config::default();
    let client = Init {
        qlog: Some((Box::new(Full), String::new())),
        ..init(CLIENT, 1)
    };
    let link = Link::new(20, 10);
    let ends = [client, init(SERVER, 1)];
    let mut p = pair_in(&realm, [&config; 2], &ours("reno"), [link; 2], ends);
    p.apps[CLIENT].to_send = vec![10_000];
    p.run_until(Duration::from_secs(5), Pair::is_settled);
    let notices: Vec<_> = std::iter::from_fn(|| p.ends[CLIENT].poll_notice())
        .filter(|n| n.kind == "qlog")
        .collect();
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0].detail, "disk full");
}

#[test]
fn secrets_are_those_of_a_key_log_file() {
    let (_, mut p) = traced(Crypto::Tls, &ours("cubic"));
    let secrets = |p: &mut Pair, side: usize| -> BTreeSet<String> {
        std::iter::from_fn(|| p.ends[side].poll_secret()).collect()
    };
    let (client, server) = (secrets(&mut p, CLIENT), secrets(&mut p, SERVER));
    let labels: Vec<&str> = client
        .iter()
        .map(|l| l.split(' ').next().unwrap())
        .collect();
    for label in [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_TRAFFIC_SECRET_0",
    ] {
        assert!(labels.contains(&label), "{labels:?}");
    }
    for line in &client {
        let parts: Vec<&str> = line.split(' ').collect();
        assert_eq!(parts.len(), 3);
        assert_eq!((parts[1].len(), parts[2].len()), (64, 64), "{line}");
        assert!(parts[1..].concat().bytes().all(|b| b.is_ascii_hexdigit()));
    }
    assert_eq!(client, server, "both ends have the same");
    let mut quiet = crate::pair::pair(1, &Config::default(), &ours("reno"), Link::new(20, 10));
    quiet.run_until(Duration::from_secs(1), |p| {
        p.now > Instant::from_nanos(500_000_000) || !p.events[CLIENT].is_empty()
    });
    assert_eq!(quiet.ends[CLIENT].poll_secret(), None);
}
