//! What `ss -tin` of iproute2 shows of the sockets of a Linux host, asked again and again, with a time at each answer.
//!
//! The times stand on a line of their own (`while sleep 0.1; do date +%s.%N; ss -tin; done`) or before each line
//! (`ss -tin | ts %.s`). A socket is a line with its ends, and what the kernel knows of it is indented below, or with
//! `-O` behind. Counts of a flow are since the first answer that shows it, as its times are. `ss` leaves out what is
//! zero: that is zero here if a word stands that comes after it.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};

use gargalo_trace::schema::FlowSample;
use gargalo_trace::stats;
use gargalo_units::{Bytes, Count, Duration, Instant, Rate, SenderCounters};

use super::text::{self, word};
use super::thin::{Thin, Timed};
use super::{Kind, Log, Logged};
use crate::MOST_FLOWS;

/// The kind.
pub const KIND: Kind = Kind {
    name: "ss -ti with times",
    is,
    read,
};

/// Words of the kernel's figures of a connection. A socket that is established has most of them.
const FIGURES: [&str; 8] = [
    "wscale:",
    "rto:",
    "rtt:",
    "mss:",
    "cwnd:",
    "segs_out:",
    "lastsnd:",
    "rcv_space:",
];
/// So many of these tell that they are the kernel's.
const ENOUGH_FIGURES: usize = 3;
/// Words that stand where a name of a congestion control may, and are none.
const FLAGS: [&str; 6] = ["ts", "sack", "ecn", "ecnseen", "accecn", "fastopen"];
/// Words behind those that are left out if they are zero.
const LAST: [&str; 5] = ["rcv_space", "rcv_ssthresh", "notsent", "minrtt", "snd_wnd"];
const STATES: [&str; 14] = [
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "NEW-SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
    "UNKNOWN",
    "BOUND-INACTIVE",
];

fn is(start: &[u8]) -> bool {
    let start = String::from_utf8_lossy(start);
    let (mut has_time, mut has_heading, mut has_socket) = (false, false, false);
    for line in text::first_lines(&start) {
        let rest = match text::stamp(line) {
            Some((_, rest)) => {
                has_time = true;
                rest
            }
            None => line,
        };
        let figures = FIGURES.iter().filter(|f| rest.contains(**f)).count();
        if figures >= ENOUGH_FIGURES {
            return has_time;
        }
        // Nothing else stands before the figures of the first socket; one that waits for connections has few.
        let is_below = has_socket && rest.starts_with(char::is_whitespace);
        let rest = rest.trim();
        if is_heading(rest) {
            has_heading = true;
        } else if Socket::parse(rest).is_some() {
            has_socket = true;
        } else if !(rest.is_empty() || is_below || rest.starts_with('#')) {
            return false;
        }
    }
    has_time && has_heading
}

fn read(input: &mut dyn BufRead, interval: Duration) -> io::Result<Log> {
    let mut sockets = Sockets {
        interval,
        ..Sockets::default()
    };
    let too_long = text::whole_lines(input, &mut |line| sockets.take(line))?;
    let mut log = sockets.finish();
    log.unused += too_long;
    Ok(log)
}

fn is_heading(line: &str) -> bool {
    line.contains("Recv-Q") && line.contains("Send-Q") && line.contains("Address:Port")
}

/// A line of a socket.
struct Socket<'a> {
    local: &'a str,
    peer: &'a str,
    /// What stands behind.
    rest: &'a str,
}

impl<'a> Socket<'a> {
    /// `ESTAB 0 0 10.0.0.1:40000 10.0.0.2:80`, with the protocol before it if sockets of several are shown, and without
    /// the state if only those of one are.
    fn parse(line: &'a str) -> Option<Self> {
        let (mut first, mut rest) = word(line)?;
        if ["tcp", "mptcp", "udp"].contains(&first) {
            (first, rest) = word(rest)?;
        }
        if STATES.contains(&first) {
            (first, rest) = word(rest)?;
        }
        let (second, rest) = word(rest)?;
        let (local, rest) = word(rest)?;
        let (peer, rest) = word(rest)?;
        let (_, _) = (first.parse::<u64>().ok()?, second.parse::<u64>().ok()?);
        let are_ends = text::host(local).is_some() && text::host(peer).is_some();
        are_ends.then_some(Self { local, peer, rest })
    }

    /// Whether it waits for connections, and has none.
    fn has_no_peer(&self) -> bool {
        self.peer.ends_with(":*")
    }
}

/// The local end of a socket, and its peer's.
type Ends = (String, String);

/// What the lines so far have told.
#[derive(Default)]
struct Sockets {
    interval: Duration,
    begun: Option<u64>,
    now: Option<u64>,
    connections: Vec<Connection>,
    /// The latest connection between two ends.
    latest: HashMap<Ends, usize>,
    current: Current,
    unused: u64,
}

/// The socket that a line of figures is of.
#[derive(Default)]
enum Current {
    #[default]
    None,
    /// One without a peer.
    Ignored,
    /// Its ends.
    Ends(String, String),
}

impl Sockets {
    fn take(&mut self, line: &str) {
        let rest = match text::stamp(line) {
            Some((ns, rest)) => {
                self.begun = self.begun.or(Some(ns));
                self.now = Some(ns);
                rest
            }
            None => line,
        };
        if rest.trim().is_empty() || is_heading(rest) || rest.trim_start().starts_with('#') {
            return;
        }
        let figures = match Socket::parse(rest) {
            Some(socket) => {
                self.current = match socket.has_no_peer() {
                    true => Current::Ignored,
                    false => Current::Ends(socket.local.to_owned(), socket.peer.to_owned()),
                };
                without_processes(socket.rest)
            }
            None => without_processes(rest),
        };
        let figures = Figures::parse(figures);
        match &self.current {
            Current::Ends(local, peer) if figures.are_some() => {
                let ends = (local.clone(), peer.clone());
                self.follow(ends, &figures);
            }
            // The first line of a socket, or a listening one.
            Current::Ends(..) | Current::Ignored if Socket::parse(rest).is_some() => (),
            Current::Ignored if figures.are_some() => (),
            _ => self.unused += 1,
        }
    }

    fn follow(&mut self, ends: Ends, figures: &Figures) {
        let (Some(now), Some(begun)) = (self.now, self.begun) else {
            self.unused += 1;
            return;
        };
        let now = Instant::ZERO + Duration::from_nanos(now.saturating_sub(begun));
        let known = self.latest.get(&ends).copied();
        let i = match known.filter(|i| self.connections[*i].goes_on(figures)) {
            Some(i) => i,
            None if self.connections.len() >= MOST_FLOWS => {
                self.unused += 1;
                return;
            }
            None => {
                let connection = Connection::new(ends.clone(), now, self.interval);
                self.connections.push(connection);
                self.latest.insert(ends, self.connections.len() - 1);
                self.connections.len() - 1
            }
        };
        self.connections[i].sample(now, figures);
    }

    fn finish(self) -> Log {
        let (received, sent): (Vec<Connection>, _) = self
            .connections
            .into_iter()
            .partition(Connection::is_received);
        // Of a connection of which both ends are here, the sender has it all.
        let seen: HashSet<&Ends> = sent.iter().map(|c| &c.ends).collect();
        let is_seen = |(local, peer): &Ends| seen.contains(&(peer.clone(), local.clone()));
        let received: Vec<Connection> =
            received.into_iter().filter(|c| !is_seen(&c.ends)).collect();
        let flows = sent.into_iter().map(Connection::sent);
        let flows = flows.chain(received.into_iter().map(Connection::received));
        Log {
            begun_ns: self.begun.filter(|ns| text::is_of_clock(*ns)),
            flows: flows.collect(),
            unused: self.unused,
            ..Log::default()
        }
    }
}

/// The names of processes may have any words in them.
fn without_processes(text: &str) -> &str {
    match text.trim_start().strip_prefix("users:((") {
        Some(processes) => processes.split_once("))").map_or("", |(_, rest)| rest),
        None => text,
    }
}

/// What is known of a socket at an instant.
#[derive(Debug, Default)]
struct Figures {
    congestion: Option<String>,
    mss: Option<u64>,
    cwnd: Option<u64>,
    ssthresh: Option<u64>,
    srtt: Option<Duration>,
    rtt_min: Option<Duration>,
    unacked: Option<u64>,
    sacked: u64,
    lost: u64,
    retrans_now: u64,
    pacing_rate: Option<Rate>,
    delivery_rate: Option<Rate>,
    counted: Counted,
    /// Words that were understood.
    known: u32,
}

/// What the kernel counts from the beginning of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    bytes_sent: Option<u64>,
    bytes_acked: Option<u64>,
    bytes_received: Option<u64>,
    data_segs_out: Option<u64>,
    retrans: Option<u64>,
}

impl Counted {
    /// What these counts are, or those where they are missing.
    fn or(self, other: Self) -> Self {
        self.with(other, Option::or)
    }

    /// What was added. A count that was not shown at first, and is now, was zero.
    fn since(self, before: Self) -> Self {
        self.with(before, |now, before| {
            Some(now?.saturating_sub(before.unwrap_or(0)))
        })
    }

    /// Whether one is smaller than it was.
    fn is_before(self, other: Self) -> bool {
        let shrinks = |a: Option<u64>, b: Option<u64>| a.zip(b).is_some_and(|(a, b)| a < b);
        shrinks(self.bytes_acked, other.bytes_acked)
            || shrinks(self.bytes_received, other.bytes_received)
            || shrinks(self.data_segs_out, other.data_segs_out)
    }

    fn with(self, other: Self, of: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) -> Self {
        Self {
            bytes_sent: of(self.bytes_sent, other.bytes_sent),
            bytes_acked: of(self.bytes_acked, other.bytes_acked),
            bytes_received: of(self.bytes_received, other.bytes_received),
            data_segs_out: of(self.data_segs_out, other.data_segs_out),
            retrans: of(self.retrans, other.retrans),
        }
    }
}

impl Figures {
    fn parse(text: &str) -> Self {
        let mut found = Self::default();
        let (mut whole, mut names_may_come) = (false, true);
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            match word.split_once(':') {
                Some((key, value)) => {
                    whole |= LAST.contains(&key);
                    names_may_come &= !["wscale", "rto", "rtt", "mss", "cwnd"].contains(&key);
                    found.set(key, value);
                }
                None if word == "pacing_rate" => {
                    // Behind the slash is the limit that the application has set.
                    let value = words.next().unwrap_or_default();
                    found.pacing_rate = rate(value.split('/').next().unwrap_or_default());
                }
                None if word == "delivery_rate" => {
                    found.delivery_rate = rate(words.next().unwrap_or_default());
                }
                None if names_may_come && is_name(word) => found.congestion = Some(word.to_owned()),
                None => (),
            }
        }
        if whole {
            found.unacked = found.unacked.or(Some(0));
            found.counted.retrans = found.counted.retrans.or(Some(0));
        }
        found
    }

    fn set(&mut self, key: &str, value: &str) {
        let number = || value.parse::<u64>().ok();
        match key {
            "mss" => self.mss = number(),
            "cwnd" => self.cwnd = number(),
            // What the kernel begins with is infinite.
            "ssthresh" => self.ssthresh = number().filter(|n| *n < 0x7fff_ffff),
            "rtt" => self.srtt = millis(value.split('/').next().unwrap_or_default()),
            "minrtt" => self.rtt_min = millis(value),
            "unacked" => self.unacked = number(),
            "sacked" => self.sacked = number().unwrap_or(0),
            "lost" => self.lost = number().unwrap_or(0),
            "retrans" => {
                let (now, total) = value.split_once('/').unwrap_or((value, ""));
                self.retrans_now = now.parse().unwrap_or(0);
                self.counted.retrans = total.parse().ok();
            }
            "bytes_sent" => self.counted.bytes_sent = number(),
            "bytes_acked" => self.counted.bytes_acked = number(),
            "bytes_received" => self.counted.bytes_received = number(),
            "data_segs_out" => self.counted.data_segs_out = number(),
            "wscale" | "rto" | "segs_out" | "segs_in" | "lastsnd" | "rcv_space" => (),
            _ => return,
        }
        self.known += 1;
    }

    const fn are_some(&self) -> bool {
        self.known > 0
    }

    /// Packets that the kernel counts as in flight.
    fn in_flight(&self) -> Option<u64> {
        let unacked = self.unacked?.saturating_add(self.retrans_now);
        Some(unacked.saturating_sub(self.sacked.saturating_add(self.lost)))
    }

    fn in_bytes(&self, segments: Option<u64>) -> Option<Bytes> {
        segments?.checked_mul(self.mss?).map(Bytes::new)
    }
}

fn is_name(word: &str) -> bool {
    let is_text = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    word.bytes().all(is_text)
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && !FLAGS.contains(&word)
        && !word.starts_with("tcp-ulp")
}

fn millis(text: &str) -> Option<Duration> {
    let ms: f64 = text.parse().ok()?;
    (ms > 0.0 && ms < 1e9).then(|| Duration::from_secs_f64(ms / 1e3))
}

/// `115Mbps`, `99840bps`.
fn rate(text: &str) -> Option<Rate> {
    let number = text.strip_suffix("bps")?;
    let (number, unit) = match number.chars().last()? {
        'K' | 'k' => (&number[..number.len() - 1], 1e3),
        'M' => (&number[..number.len() - 1], 1e6),
        'G' => (&number[..number.len() - 1], 1e9),
        'T' => (&number[..number.len() - 1], 1e12),
        _ => (number, 1.0),
    };
    let bps = number.parse::<f64>().ok()? * unit;
    // Above is what the kernel has for "no limit".
    (bps.is_finite() && (0.0..1e15).contains(&bps)).then(|| Rate::from_bps_f64(bps))
}

/// What one answer says.
#[derive(Debug)]
struct Sample {
    flow: FlowSample<'static>,
    /// Bytes received until then.
    received: u64,
}

impl Timed for Sample {
    fn time(&self) -> Instant {
        self.flow.time
    }
}

/// A connection over time.
struct Connection {
    ends: Ends,
    first: Instant,
    last: Instant,
    samples: Thin<Sample>,
    /// The latest of each.
    now: Figures,
    /// What was counted at first, before it was observed.
    before: Option<Counted>,
}

impl Connection {
    fn new(ends: Ends, now: Instant, interval: Duration) -> Self {
        Self {
            ends,
            first: now,
            last: now,
            samples: Thin::new(interval),
            now: Figures::default(),
            before: None,
        }
    }

    /// Whether these figures may be of the same connection: what it counts never gets smaller. Otherwise they are of a
    /// new one between the same ports.
    fn goes_on(&self, next: &Figures) -> bool {
        !next.counted.is_before(self.now.counted)
    }

    fn sample(&mut self, time: Instant, figures: &Figures) {
        // A clock that was set back.
        let time = time.max(self.last);
        self.last = time;
        let now = &mut self.now;
        now.congestion = figures.congestion.clone().or(now.congestion.take());
        now.mss = figures.mss.or(now.mss);
        now.rtt_min = figures.rtt_min.or(now.rtt_min);
        now.counted = figures.counted.or(now.counted);
        let before = *self.before.get_or_insert(figures.counted);
        let counted = now.counted.since(before);
        let flow = FlowSample {
            time,
            congestion_window: figures.in_bytes(figures.cwnd),
            slow_start_threshold: figures.in_bytes(figures.ssthresh),
            bytes_in_flight: figures.in_bytes(figures.in_flight()),
            srtt: figures.srtt,
            pacing_rate: figures.pacing_rate,
            delivery_rate: figures.delivery_rate,
            delivered: counted.bytes_acked.map(Bytes::new),
            ..FlowSample::default()
        };
        let received = counted.bytes_received.unwrap_or(0);
        self.samples.push(Sample { flow, received });
    }

    /// Whether it has received more than it has sent: the flow is the one from its peer.
    fn is_received(&self) -> bool {
        let all = self.now.counted;
        all.bytes_received > all.bytes_acked
    }

    /// What was counted while it was observed.
    fn observed(&self) -> Counted {
        self.now.counted.since(self.before.unwrap_or_default())
    }

    fn sent(self) -> Logged {
        let counted = self.observed();
        let mut flow = self.flow(&self.ends.0, &self.ends.1, counted.bytes_acked);
        let now = &self.now;
        flow.congestion = now.congestion.clone().unwrap_or_default();
        let row = &mut flow.row;
        row.throughput = rate_of(counted.bytes_sent, self.last.saturating_since(self.first));
        row.rtt_min = now.rtt_min;
        row.counters.sent_packets = Count::from(counted.data_segs_out);
        row.counters.sent_bytes = Count::from(counted.bytes_sent);
        row.counters.retransmitted_packets = Count::from(counted.retrans);
        let facts = &mut flow.facts;
        facts.captured_at = Some("sender");
        facts.base_rtt_s = now.rtt_min.map(Duration::decimal_secs);
        let samples = self.samples.finish();
        let rates = samples.iter().filter_map(|s| s.flow.delivery_rate);
        let mut rates: Vec<f64> = rates.map(|r| r.as_bps() as f64).collect();
        facts.delivery_rate_p95_bps = stats::percentile(&mut rates, 0.95);
        facts.reverse_bytes = counted.bytes_received.unwrap_or(0);
        flow.samples = samples.into_iter().map(|s| s.flow).collect();
        flow
    }

    /// What the receiver knows of a flow; its window and counts are those of its own few data.
    fn received(self) -> Logged {
        let counted = self.observed();
        let mut flow = self.flow(&self.ends.1, &self.ends.0, counted.bytes_received);
        flow.facts.captured_at = Some("receiver");
        flow.facts.reverse_bytes = counted.bytes_acked.unwrap_or(0);
        let samples = self.samples.finish().into_iter();
        flow.samples = samples
            .map(|sample| FlowSample {
                time: sample.flow.time,
                delivered: Some(Bytes::new(sample.received)),
                received: Some(Bytes::new(sample.received)),
                ..FlowSample::default()
            })
            .collect();
        flow
    }

    /// A flow with its ends, times and what it delivered.
    fn flow(&self, from: &str, to: &str, delivered: Option<u64>) -> Logged {
        let mut flow = Logged {
            label: format!("{from} > {to}"),
            from: text::host(from).unwrap_or(from).to_owned(),
            to: text::host(to).unwrap_or(to).to_owned(),
            ..Logged::default()
        };
        let row = &mut flow.row;
        row.transport = "tcp";
        (row.start, row.end) = (self.first, self.last);
        row.counters = SenderCounters::UNKNOWN;
        let bytes = delivered.map(Bytes::new);
        (row.delivered, row.measured) = (bytes, bytes);
        row.goodput = rate_of(delivered, self.last.saturating_since(self.first));
        flow.facts.full_segment_bytes = self.now.mss;
        flow
    }
}

fn rate_of(bytes: Option<u64>, time: Duration) -> Option<Rate> {
    let bytes = bytes.filter(|_| !time.is_zero())?;
    Some(Rate::from_transfer(Bytes::new(bytes), time))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n";

    /// Two answers with two connections, one of which receives, and a socket that waits.
    fn answers() -> String {
        format!(
            "1767323045.100000000\n{HEADING}\
            LISTEN 0      128         0.0.0.0:22         0.0.0.0:*\n\
            \t cubic cwnd:10\n\
            ESTAB  0      231680     10.0.0.1:40000     10.0.0.2:5201  \
            users:((\"my bulk app\",pid=1,fd=5)) timer:(on,204ms,0)\n\
            \t ts sack cubic wscale:7,7 rto:204 rtt:20.5/1.25 ato:40 mss:1448 pmtu:1500 rcvmss:536 \
            advmss:1448 cwnd:20 bytes_sent:100000 bytes_retrans:1448 bytes_acked:80001 \
            bytes_received:37 segs_out:80 segs_in:40 data_segs_out:70 data_segs_in:1 send 11300488bps \
            lastsnd:4 lastrcv:100 lastack:4 pacing_rate 22.6Mbps/1Gbps delivery_rate 10.1Mbps \
            delivered:58 busy:100ms rwnd_limited:4ms(4.0%) unacked:12 retrans:1/1 lost:2 sacked:3 \
            reordering:3 rcv_space:14480 rcv_ssthresh:64088 notsent:0 minrtt:20.1 novelty:7 novelties\n\
            ESTAB  0      0      [2001:db8::1]:443      [2001:db8::2]:50000\n\
            \t ts sack bbr wscale:7,7 rto:204 rtt:5/2 mss:1428 cwnd:10 bytes_acked:500 \
            bytes_received:10000 rcv_space:9\n\
            \n\
            1767323045.600000000\n{HEADING}\
            ESTAB  0      0          10.0.0.1:40000     10.0.0.2:5201\n\
            \t ts sack cubic wscale:7,7 rto:204 rtt:21/1 mss:1448 cwnd:14 ssthresh:14 \
            bytes_sent:200000 bytes_acked:180001 data_segs_out:140 pacing_rate 20Mbps \
            delivery_rate 12Mbps retrans:0/3 rcv_space:14480 minrtt:20\n\
            ESTAB  0      0      [2001:db8::1]:443      [2001:db8::2]:50000\n\
            \t ts sack bbr wscale:7,7 rto:204 rtt:5/2 mss:1428 cwnd:10 bytes_acked:500 \
            bytes_received:60000 rcv_space:9\n"
        )
    }

    fn log(text: &str) -> Log {
        read(&mut text.as_bytes(), Duration::from_millis(10)).unwrap()
    }

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn sockets_are_flows_and_answers_are_samples() {
        let log = log(&answers());
        assert!(is(answers().as_bytes()));
        assert_eq!(log.begun_ns, Some(1_767_323_045_100_000_000));
        assert_eq!((log.flows.len(), log.unused), (2, 0));
        let flow = &log.flows[0];
        assert_eq!(flow.label, "10.0.0.1:40000 > 10.0.0.2:5201");
        assert_eq!(
            (&*flow.from, &*flow.to, &*flow.congestion),
            ("10.0.0.1", "10.0.0.2", "cubic")
        );
        let first = FlowSample {
            time: ms(0),
            congestion_window: Some(Bytes::new(20 * 1448)),
            bytes_in_flight: Some(Bytes::new((12 + 1 - 2 - 3) * 1448)),
            srtt: Some(Duration::from_micros(20_500)),
            pacing_rate: Some(Rate::from_bps(22_600_000)),
            delivery_rate: Some(Rate::from_bps(10_100_000)),
            delivered: Some(Bytes::new(0)),
            ..FlowSample::default()
        };
        let second = FlowSample {
            time: ms(500),
            congestion_window: Some(Bytes::new(14 * 1448)),
            slow_start_threshold: Some(Bytes::new(14 * 1448)),
            bytes_in_flight: Some(Bytes::new(0)),
            srtt: Some(Duration::from_millis(21)),
            pacing_rate: Some(Rate::from_mbps(20)),
            delivery_rate: Some(Rate::from_mbps(12)),
            delivered: Some(Bytes::new(100_000)),
            ..FlowSample::default()
        };
        assert_eq!(flow.samples, [first, second]);
        let row = &flow.row;
        assert_eq!((row.start, row.end), (ms(0), ms(500)));
        assert_eq!(row.goodput, Some(Rate::from_bps(1_600_000)));
        assert_eq!(
            (row.delivered, row.measured),
            (Some(Bytes::new(100_000)), Some(Bytes::new(100_000)))
        );
        let counters = row.counters;
        assert_eq!(counters.sent_packets.get(), Some(70));
        assert_eq!(counters.sent_bytes.get(), Some(100_000));
        assert_eq!(counters.retransmitted_packets.get(), Some(2));
        assert_eq!(counters.lost_packets.get(), None);
        assert_eq!(row.rtt_min, Some(Duration::from_millis(20)));
        assert_eq!(
            (flow.facts.full_segment_bytes, flow.facts.reverse_bytes),
            (Some(1448), 0)
        );
    }

    #[test]
    fn a_socket_that_receives_is_a_flow_from_its_peer() {
        let log = log(&answers());
        let flow = &log.flows[1];
        assert_eq!(flow.label, "[2001:db8::2]:50000 > [2001:db8::1]:443");
        assert_eq!(flow.from, "2001:db8::2");
        assert_eq!(flow.congestion, "");
        assert_eq!(flow.row.goodput, Some(Rate::from_bps(800_000)));
        assert_eq!(flow.row.counters, SenderCounters::UNKNOWN);
        assert_eq!(flow.samples[1].congestion_window, None);
        assert_eq!(flow.samples[1].received, Some(Bytes::new(50_000)));
    }

    #[test]
    fn a_connection_of_which_both_ends_are_shown_is_one_flow() {
        let figures = "cubic rto:204 rtt:20/1 mss:1000 cwnd:10";
        let log = log(&format!(
            "1767323045.6\nESTAB 0 0 [::1]:2 [::1]:1\n\t {figures} bytes_received:900\n\
            ESTAB 0 0 [::1]:1 [::1]:2\n\t {figures} bytes_acked:901\n"
        ));
        let labels: Vec<_> = log.flows.iter().map(|f| f.label.as_str()).collect();
        assert_eq!(labels, ["[::1]:1 > [::1]:2"]);
        assert_eq!(log.flows[0].congestion, "cubic");
    }

    #[test]
    fn each_line_may_have_a_time_and_a_socket_may_be_one_line() {
        let figures = "cubic rto:204 rtt:20/1 mss:1000 cwnd:10 bytes_acked:7 unacked:2";
        let before_each = format!(
            "2026-01-02T03:04:05.5+00:00 0 0 10.0.0.1:1 10.0.0.2:2\n\
            2026-01-02T03:04:05.6+00:00 \t {figures}\n"
        );
        let one_line = format!(
            "1767323045.6 ESTAB 0 0 10.0.0.1:1 10.0.0.2:2 uid:5 ino:9 sk:1 <-> {figures}\n"
        );
        for text in [before_each, one_line] {
            assert!(is(text.as_bytes()), "{text}");
            let log = log(&text);
            assert_eq!((log.flows.len(), log.unused), (1, 0), "{text}");
            let flow = &log.flows[0];
            assert_eq!(flow.congestion, "cubic");
            assert_eq!(flow.samples[0].congestion_window, Some(Bytes::new(10_000)));
            assert_eq!(flow.samples[0].bytes_in_flight, Some(Bytes::new(2_000)));
            // One answer is no span of time.
            assert_eq!(flow.row.goodput, None);
        }
    }

    #[test]
    fn what_is_not_shown_is_missing() {
        let log = log(
            "1767323045.6\nESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t rto:204 cwnd:10 ssthresh:2147483647 rtt:x\n",
        );
        let flow = &log.flows[0];
        assert_eq!(flow.samples, [FlowSample::default()]);
        assert_eq!(flow.row.counters, SenderCounters::UNKNOWN);
        assert_eq!((flow.row.goodput, flow.row.rtt_min), (None, None));
        assert_eq!(flow.congestion, "");
    }

    #[test]
    fn a_word_that_is_cut_off_is_not_used() {
        let text = "1767323045.6\nESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t rto:204 mss:1448 cwnd:10 bytes_acked:12";
        let log = log(text);
        assert_eq!(
            log.flows[0].samples[0].congestion_window,
            Some(Bytes::new(14_480))
        );
        assert_eq!(log.flows[0].samples[0].bytes_in_flight, None);
        assert_eq!(log.flows[0].row.delivered, None);
    }

    #[test]
    fn counts_that_begin_again_are_of_another_connection() {
        let at = |time: &str, acked: u64| {
            format!(
                "{time}\nESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t rto:204 mss:1448 cwnd:10 bytes_acked:{acked}\n"
            )
        };
        let log = log(&[at("1.0", 5_000), at("2.0", 9_000), at("3.0", 10)].concat());
        assert_eq!(log.begun_ns, None);
        let delivered: Vec<_> = log
            .flows
            .iter()
            .map(|f| f.row.delivered.unwrap().get())
            .collect();
        assert_eq!(delivered, [4_000, 0]);
        assert_eq!(log.flows[1].row.start, ms(2_000));
    }

    #[test]
    fn lines_that_make_no_sense_are_counted() {
        let text = "\t cubic rto:204 cwnd:1\nESTAB 0 0 a:1 b:2\n\t rto:204 mss:1 cwnd:2\n1767323045.6\nnonsense\n\
            ss: command not found\nESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t unknown:5\n";
        let log = log(text);
        // Figures without a socket, those without a time, two sentences, and no figures.
        assert_eq!((log.flows.len(), log.unused), (0, 5));
    }

    #[test]
    fn other_texts_are_no_answers() {
        for text in [
            "",
            "duration = \"10s\"\n[[flows]]\nrtt = \"5\"\n",
            "# ss\nduration = \"10s\"\nnote = \"1.5 rto: rtt: mss: cwnd:\"\n",
            "time,rto:,rtt:,cwnd:\n1767323045.1,2,3,4\n",
            "1767323045.1\n1767323045.2\n",
            "1.5 2.5 3.5\n",
            // Without times, samples would have none.
            "ESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t cubic rto:204 rtt:20/1 mss:1000 cwnd:10\n",
        ] {
            assert!(!is(text.as_bytes()), "{text}");
        }
        assert!(is(
            format!("1767323045.1\n{HEADING}1767323045.2\n").as_bytes()
        ));
    }
}
