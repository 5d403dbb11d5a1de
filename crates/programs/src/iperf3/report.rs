//! The report of a test in iperf3's JSON form: names, units and order of keys.

use std::net::SocketAddr;

use serde::Serialize;

use super::protocol::StreamResults;
use super::settings::{Cpu, Direction, End, Settings};

#[derive(Clone, Debug, Serialize)]
pub(super) struct Connected {
    pub(super) socket: u32,
    pub(super) local_host: String,
    pub(super) local_port: u16,
    pub(super) remote_host: String,
    pub(super) remote_port: u16,
}

impl Connected {
    pub(super) fn new(socket: u32, local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            socket,
            local_host: local.ip().to_string(),
            local_port: local.port(),
            remote_host: remote.ip().to_string(),
            remote_port: remote.port(),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Peer {
    pub(super) host: String,
    pub(super) port: u16,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Timestamp {
    time: String,
    timesecs: u64,
}

impl Timestamp {
    /// Converts a Unix time in seconds.
    pub(super) fn new(unix: f64) -> Self {
        let timesecs = unix.max(0.0) as u64;
        Self {
            time: http_date(timesecs),
            timesecs,
        }
    }
}

/// Formats a time as "Sat, 21 Nov 2026 15:19:40 GMT" (RFC 9110 §5.6.7).
pub(super) fn http_date(unix: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (days, seconds) = (unix / 86_400, unix % 86_400);
    // Counted from 1 March of year 0, so that the leap day is the last day of a year (proleptic Gregorian).
    let from_march = days + 719_468;
    let (era, day_of_era) = (from_march / 146_097, from_march % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 2
    } else {
        shifted - 10
    };
    let year = year_of_era + era * 400 + u64::from(month < 2);
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[(month % 12) as usize],
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
    )
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Start {
    pub(super) connected: Vec<Connected>,
    pub(super) version: String,
    pub(super) system_info: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timestamp: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) connecting_to: Option<Peer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) accepted_connection: Option<Peer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cookie: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tcp_mss_default: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target_bitrate: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sock_bufsize: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sndbuf_actual: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rcvbuf_actual: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) test_start: Option<TestStart>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct TestStart {
    protocol: &'static str,
    num_streams: u32,
    blksize: u32,
    omit: u64,
    duration: u64,
    bytes: u64,
    blocks: u64,
    reverse: u8,
    tos: u8,
    target_bitrate: u64,
    bidir: u8,
}

impl TestStart {
    pub(super) fn new(s: &Settings) -> Self {
        let (duration, bytes, blocks) = match s.end {
            End::Time(n) => (n, 0, 0),
            End::Bytes(n) => (0, n, 0),
            End::Blocks(n) => (0, 0, n),
        };
        Self {
            protocol: "TCP",
            num_streams: s.parallel,
            blksize: s.block,
            omit: s.omit.as_millis() / 1000,
            duration,
            bytes,
            blocks,
            reverse: u8::from(s.direction == Direction::Reverse),
            tos: 0,
            target_bitrate: s.rate,
            bidir: u8::from(s.direction == Direction::Both),
        }
    }
}

/// A sender's state at the end of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct SenderState {
    pub(super) retransmits: u64,
    pub(super) snd_cwnd: u64,
    pub(super) snd_wnd: u64,
    /// Smoothed round-trip time in microseconds.
    pub(super) rtt: u64,
    /// Mean deviation of the round-trip time in microseconds.
    pub(super) rttvar: u64,
    pub(super) pmtu: u32,
}

/// An interval of a test and the data transferred in it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Moved {
    /// Seconds since the start.
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) bits_per_second: f64,
}

impl Moved {
    pub(super) fn new(start: f64, end: f64, bytes: u64) -> Self {
        let seconds = end - start;
        Self {
            start,
            end,
            seconds,
            bytes,
            bits_per_second: if seconds > 0.0 {
                bytes as f64 * 8.0 / seconds
            } else {
                0.0
            },
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct IntervalStream {
    pub(super) socket: u32,
    #[serde(flatten)]
    pub(super) moved: Moved,
    #[serde(flatten)]
    pub(super) state: Option<SenderState>,
    pub(super) omitted: bool,
    pub(super) sender: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct IntervalSum {
    #[serde(flatten)]
    pub(super) moved: Moved,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retransmits: Option<u64>,
    pub(super) omitted: bool,
    pub(super) sender: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Interval {
    pub(super) streams: Vec<IntervalStream>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum: Option<IntervalSum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum_bidir_reverse: Option<IntervalSum>,
}

/// The extremes of a sender's state.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct SenderExtremes {
    pub(super) retransmits: i64,
    pub(super) max_snd_cwnd: u64,
    pub(super) max_snd_wnd: u64,
    pub(super) max_rtt: u64,
    pub(super) min_rtt: u64,
    pub(super) mean_rtt: u64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct EndHalf {
    pub(super) socket: u32,
    #[serde(flatten)]
    pub(super) moved: Moved,
    #[serde(flatten)]
    pub(super) state: Option<SenderExtremes>,
    pub(super) sender: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct EndStream {
    pub(super) sender: EndHalf,
    pub(super) receiver: EndHalf,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct EndSum {
    #[serde(flatten)]
    pub(super) moved: Moved,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retransmits: Option<i64>,
    pub(super) sender: bool,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct CpuUtilization {
    pub(super) host_total: f64,
    pub(super) host_user: f64,
    pub(super) host_system: f64,
    pub(super) remote_total: f64,
    pub(super) remote_user: f64,
    pub(super) remote_system: f64,
}

impl CpuUtilization {
    /// The processor use between two readings, `seconds` apart, in percent.
    pub(super) fn of_host(from: Cpu, to: Cpu, seconds: f64) -> Self {
        let percent = |from: f64, to: f64| {
            if seconds > 0.0 {
                (to - from) / seconds * 100.0
            } else {
                0.0
            }
        };
        let (user, system) = (percent(from.user, to.user), percent(from.system, to.system));
        Self {
            host_total: user + system,
            host_user: user,
            host_system: system,
            ..Self::default()
        }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Ending {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) streams: Vec<EndStream>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum_sent: Option<EndSum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum_received: Option<EndSum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum_sent_bidir_reverse: Option<EndSum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum_received_bidir_reverse: Option<EndSum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_utilization_percent: Option<CpuUtilization>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sender_tcp_congestion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) receiver_tcp_congestion: Option<String>,
}

/// The whole JSON object.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) start: Start,
    pub(super) intervals: Vec<Interval>,
    pub(super) end: Ending,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// A line of `--json-stream`.
#[derive(Serialize)]
pub(super) struct Line<'a, T> {
    pub(super) event: &'a str,
    pub(super) data: &'a T,
}

/// Formats JSON with tabs, as iperf3 does.
pub(super) fn pretty(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b"\t");
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, format);
    // Our own structs are written to memory, which cannot fail.
    let _ = value.serialize(&mut serializer);
    let mut text = String::from_utf8(text).unwrap_or_default();
    text.push('\n');
    text
}

/// Returns the peer's results of the stream `id`.
pub(super) fn of_stream(results: &[StreamResults], id: i64) -> Option<&StreamResults> {
    results.iter().find(|r| r.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(http_date(1_795_274_380), "Sat, 21 Nov 2026 15:19:40 GMT");
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(http_date(978_307_199), "Sun, 31 Dec 2000 23:59:59 GMT");
    }
}
