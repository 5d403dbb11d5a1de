//! Results of iperf3 as JSON (`iperf3 --json`).

use std::io::{self, BufRead, Read as _};

use gargalo_trace::schema::FlowSample;
use gargalo_units::{Bytes, Count, Duration, Instant, Rate, SenderCounters};
use serde_json::Value;

use super::{Kind, Log, Logged, MOST_LINE};

/// The kind.
pub const KIND: Kind = Kind {
    name: "iperf3",
    is,
    read,
};

/// Number of bytes that a client of today needs for a name; the document begins with its streams.
const KEYS: [&str; 2] = ["\"start\"", "\"connected\""];

fn is(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    text.trim_start().starts_with('{') && KEYS.iter().all(|key| text.contains(key))
}

fn read(input: &mut dyn BufRead, _: Duration) -> io::Result<Log> {
    let mut text = Vec::new();
    input.take(MOST_LINE as u64).read_to_end(&mut text)?;
    let Ok(document) = serde_json::from_slice::<Value>(&text) else {
        return Ok(Log {
            unused: 1,
            ..Log::default()
        });
    };
    let start = &document["start"];
    let begun = start["timestamp"]["timesecs"].as_u64();
    let mut log = Log {
        begun_ns: begun.and_then(|s| s.checked_mul(1_000_000_000)),
        ..Log::default()
    };
    for connected in array(&start["connected"]) {
        match connected["socket"].as_u64() {
            Some(socket) => log.flows.push(stream(&document, connected, socket)),
            None => log.unused += 1,
        }
    }
    Ok(log)
}

/// A stream; with `--reverse` its data comes from the server.
fn stream(document: &Value, connected: &Value, socket: u64) -> Logged {
    let text = |key: &str| connected[key].as_str().unwrap_or_default().to_owned();
    let (local, remote) = (text("local_host"), text("remote_host"));
    let test = &document["start"]["test_start"];
    let reverse = test["reverse"].as_u64() == Some(1);
    let port = |key: &str| connected[key].as_u64().unwrap_or_default();
    let own = format!("{local}:{}", port("local_port"));
    let other = format!("{remote}:{}", port("remote_port"));
    let mut found = Logged::default();
    (found.from, found.to, found.label) = match reverse {
        false => (local, remote, format!("{own} > {other}")),
        true => (remote, local, format!("{other} > {own}")),
    };
    let sums = &document["end"];
    let congestion = &sums[if reverse {
        "receiver_tcp_congestion"
    } else {
        "sender_tcp_congestion"
    }];
    found.congestion = congestion.as_str().unwrap_or_default().to_owned();
    let is_tcp = test["protocol"].as_str() == Some("TCP");
    found.row.transport = if is_tcp { "tcp" } else { "udp" };
    found.row.counters = SenderCounters::UNKNOWN;
    let mut delivered = 0;
    for interval in array(&document["intervals"]) {
        let mut mine = array(&interval["streams"]).filter(|s| s["socket"].as_u64() == Some(socket));
        let Some(part) = mine.next() else {
            continue;
        };
        let (Some(end), Some(bytes)) = (part["end"].as_f64(), part["bytes"].as_u64()) else {
            continue;
        };
        delivered += bytes;
        let micros = |key: &str| part[key].as_u64().map(Duration::from_micros);
        found.samples.push(FlowSample {
            time: instant(end),
            congestion_window: part["snd_cwnd"].as_u64().map(Bytes::new),
            srtt: micros("rtt"),
            delivered: Some(Bytes::new(delivered)),
            ..FlowSample::default()
        });
    }
    let mut ended = array(&sums["streams"]).filter(|s| {
        let of = |key: &str| s[key]["socket"].as_u64();
        [of("sender"), of("udp")].contains(&Some(socket))
    });
    if let Some(end) = ended.next() {
        summarize(end, is_tcp, &mut found);
    }
    found
}

/// The totals of a stream, by both ends.
fn summarize(end: &Value, is_tcp: bool, found: &mut Logged) {
    let row = &mut found.row;
    let (sent, received) = match is_tcp {
        true => (&end["sender"], &end["receiver"]),
        false => (&end["udp"], &end["udp"]),
    };
    let micros = |key: &str| {
        sent[key]
            .as_u64()
            .filter(|n| *n > 0)
            .map(Duration::from_micros)
    };
    row.rtt_min = micros("min_rtt");
    row.rtt_mean = micros("mean_rtt");
    row.rtt_max = micros("max_rtt");
    row.counters.sent_bytes = Count::from(sent["bytes"].as_u64());
    row.counters.retransmitted_packets = Count::from(sent["retransmits"].as_u64());
    if !is_tcp {
        row.counters.sent_packets = Count::from(sent["packets"].as_u64());
        row.counters.lost_packets = Count::from(sent["lost_packets"].as_u64());
        row.jitter = sent["jitter_ms"]
            .as_f64()
            .map(|ms| Duration::from_secs_f64(ms.clamp(0.0, 1e9) / 1e3));
    }
    row.end = received["end"].as_f64().map_or(Instant::ZERO, instant);
    row.delivered = received["bytes"].as_u64().map(Bytes::new);
    row.measured = row.delivered;
    row.goodput = rate(&received["bits_per_second"]);
    row.throughput = rate(&sent["bits_per_second"]);
}

fn rate(value: &Value) -> Option<Rate> {
    let bps = value.as_f64().filter(|n| n.is_finite() && *n >= 0.0)?;
    Some(Rate::from_bps_f64(bps))
}

fn instant(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds.clamp(0.0, 1e9))
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
