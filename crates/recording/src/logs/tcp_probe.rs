//! What Linux tells of a connection at each segment that it receives: the tracepoint `tcp:tcp_probe`, as ftrace,
//! `trace-cmd report` and `perf script` print it, and its forerunner, `/proc/net/tcpprobe` of the module `tcp_probe`.
//!
//! Windows are in segments there, whose size is not told. The amounts in flight of a sender that has enough data are
//! multiples of it, so that it is most often their greatest common divisor; where that does not show, windows are
//! missing.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead};

use gargalo_trace::schema::FlowSample;
use gargalo_units::{Bytes, Duration, Instant, Rate, SenderCounters, Seq};

use super::text;
use super::thin::{Thin, Timed};
use super::{Kind, Log, Logged};
use crate::MOST_FLOWS;

/// The kind.
pub const KIND: Kind = Kind {
    name: "tcp_probe",
    is,
    read,
};

/// The name of the event, as all programs print it.
const EVENT: &str = "tcp_probe:";
/// No window is larger (RFC 7323, section 2.3): what differs by more is of another connection.
const MOST_WINDOW: i32 = 1 << 30;
/// What the kernel has for an infinite threshold.
const INFINITE: u64 = 0x7fff_ffff;
/// Sizes of segments on paths with an MTU up to that of Ethernet, and on those with its jumbo frames. Others are not
/// told from multiples of these.
const SEGMENTS: [std::ops::RangeInclusive<u32>; 2] = [500..=1460, 8900..=8960];
/// Most different divisors that are counted.
const MOST_DIVISORS: usize = 256;
/// The size of a segment is concluded from at least so many.
const FEWEST_VOTES: u64 = 8;

fn is(start: &[u8]) -> bool {
    let start = String::from_utf8_lossy(start);
    let mut lines = text::first_lines(&start).filter(|l| !l.trim().is_empty());
    // Programs begin with comments, and with lines as `cpus=8`.
    let mut first = lines.by_ref().take(64);
    first.any(|line| Line::parse(line).is_some())
}

fn read(input: &mut dyn BufRead, interval: Duration) -> io::Result<Log> {
    let mut probe = Probe {
        interval,
        ..Probe::default()
    };
    let too_long = text::whole_lines(input, &mut |line| probe.take(line))?;
    let flows = probe.connections.into_iter().map(Connection::finish);
    Ok(Log {
        flows: flows.collect(),
        unused: probe.unused + too_long,
        ..Log::default()
    })
}

/// What a line tells.
struct Line<'a> {
    time_ns: u64,
    local: &'a str,
    peer: &'a str,
    /// A name of the socket, if it has one: ports may be used again.
    cookie: &'a str,
    snd_nxt: Seq,
    snd_una: Seq,
    cwnd: Option<u64>,
    ssthresh: Option<u64>,
    srtt: Option<Duration>,
    /// Payload of the segment that was received.
    received: Option<u64>,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        match line.split_once(EVENT) {
            Some((before, fields)) => Self::of_tracepoint(before, fields),
            None => Self::of_module(line),
        }
    }

    fn of_tracepoint(before: &str, fields: &'a str) -> Option<Self> {
        // perf names the group, too.
        let before = before.strip_suffix("tcp:").unwrap_or(before);
        let time = before.split_whitespace().next_back()?.strip_suffix(':')?;
        let (mut local, mut peer, mut cookie) = (None, None, "");
        let (mut snd_nxt, mut snd_una) = (None, None);
        let (mut cwnd, mut ssthresh, mut srtt, mut received) = (None, None, None, None);
        for (key, value) in fields.split_whitespace().filter_map(|w| w.split_once('=')) {
            match key {
                "src" => local = Some(value),
                "dest" => peer = Some(value),
                "sock_cookie" => cookie = value,
                "snd_nxt" => snd_nxt = number(value),
                "snd_una" => snd_una = number(value),
                "snd_cwnd" => cwnd = number(value),
                "ssthresh" => ssthresh = number(value),
                "srtt" => srtt = number(value),
                "data_len" => received = number(value),
                _ => (),
            }
        }
        let srtt = srtt.filter(|us| (1..=INFINITE).contains(us));
        let mut line = Self::of(time, local?, peer?, snd_nxt?, snd_una?)?;
        (line.cookie, line.cwnd, line.ssthresh) = (cookie, cwnd, ssthresh);
        (line.srtt, line.received) = (srtt.map(Duration::from_micros), received);
        Some(line)
    }

    /// `time source destination length snd_nxt snd_una cwnd ssthresh snd_wnd srtt rcv_wnd`. The round trip is in
    /// microseconds or in ticks, as the kernel's version has it, which is not told; the length is with the header.
    fn of_module(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (time, local, peer) = (words.next()?, words.next()?, words.next()?);
        number(words.next()?)?;
        let mut sequence = || words.next().filter(|w| w.starts_with("0x"));
        let (snd_nxt, snd_una) = (number(sequence()?)?, number(sequence()?)?);
        let mut line = Self::of(time, local, peer, snd_nxt, snd_una)?;
        line.cwnd = words.next().and_then(number);
        line.ssthresh = words.next().and_then(number);
        Some(line)
    }

    fn of(time: &str, local: &'a str, peer: &'a str, snd_nxt: u64, snd_una: u64) -> Option<Self> {
        text::host(local)?;
        text::host(peer)?;
        Some(Self {
            time_ns: text::seconds(time)?,
            local,
            peer,
            cookie: "",
            snd_nxt: Seq::new(u32::try_from(snd_nxt).ok()?),
            snd_una: Seq::new(u32::try_from(snd_una).ok()?),
            cwnd: None,
            ssthresh: None,
            srtt: None,
            received: None,
        })
    }

    fn in_flight(&self) -> Option<u32> {
        u32::try_from(self.snd_nxt.distance(self.snd_una)).ok()
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// What the lines so far have told.
#[derive(Default)]
struct Probe {
    interval: Duration,
    begun: Option<u64>,
    connections: Vec<Connection>,
    /// The latest connection between two ends.
    latest: HashMap<(String, String), usize>,
    unused: u64,
}

impl Probe {
    fn take(&mut self, text: &str) {
        if text.trim().is_empty() || text.trim_start().starts_with('#') {
            return;
        }
        let Some(line) = Line::parse(text) else {
            self.unused += 1;
            return;
        };
        let begun = *self.begun.get_or_insert(line.time_ns);
        let now = Instant::ZERO + Duration::from_nanos(line.time_ns.saturating_sub(begun));
        let key = (line.local.to_owned(), line.peer.to_owned());
        let known = self.latest.get(&key).copied();
        let i = match known.filter(|i| self.connections[*i].goes_on(&line)) {
            Some(i) => i,
            None if self.connections.len() >= MOST_FLOWS => {
                self.unused += 1;
                return;
            }
            None => {
                self.connections
                    .push(Connection::new(&line, now, self.interval));
                self.latest.insert(key, self.connections.len() - 1);
                self.connections.len() - 1
            }
        };
        self.connections[i].take(&line, now);
    }
}

/// A connection, seen by the end that was probed.
struct Connection {
    local: String,
    peer: String,
    cookie: String,
    first: Instant,
    last: Instant,
    snd_una: Seq,
    delivered: u64,
    received: Option<u64>,
    srtt_min: Option<Duration>,
    /// With windows in segments, until the size of one is known.
    samples: Thin<Sample>,
    divisors: Divisors,
}

#[derive(Clone, Copy)]
struct Sample {
    time: Instant,
    cwnd: Option<u64>,
    ssthresh: Option<u64>,
    in_flight: Option<u32>,
    srtt: Option<Duration>,
    delivered: u64,
}

impl Timed for Sample {
    fn time(&self) -> Instant {
        self.time
    }
}

impl Connection {
    fn new(line: &Line<'_>, now: Instant, interval: Duration) -> Self {
        Self {
            local: line.local.to_owned(),
            peer: line.peer.to_owned(),
            cookie: line.cookie.to_owned(),
            first: now,
            last: now,
            snd_una: line.snd_una,
            delivered: 0,
            received: None,
            srtt_min: None,
            samples: Thin::new(interval),
            divisors: Divisors::default(),
        }
    }

    fn goes_on(&self, line: &Line<'_>) -> bool {
        let is_another = |cookie: &str| !cookie.is_empty() && cookie != self.cookie;
        (-MOST_WINDOW..=MOST_WINDOW).contains(&line.snd_una.distance(self.snd_una))
            && !is_another(line.cookie)
    }

    fn take(&mut self, line: &Line<'_>, now: Instant) {
        // Lines of two processors may be out of order.
        self.last = self.last.max(now);
        if let Ok(progress) = u32::try_from(line.snd_una.distance(self.snd_una)) {
            self.delivered += u64::from(progress);
            self.snd_una = line.snd_una;
        }
        if let Some(received) = line.received {
            let before = self.received.unwrap_or(0);
            self.received = Some(before.saturating_add(received));
        }
        self.srtt_min = [self.srtt_min, line.srtt].into_iter().flatten().min();
        let sample = Sample {
            time: self.last,
            cwnd: line.cwnd,
            ssthresh: line.ssthresh.filter(|n| *n < INFINITE),
            in_flight: line.in_flight(),
            srtt: line.srtt,
            delivered: self.delivered,
        };
        if let Some(in_flight) = sample.in_flight {
            self.divisors.count(in_flight);
        }
        self.samples.push(sample);
    }

    fn finish(self) -> Logged {
        let samples = self.samples.finish();
        let segment = self.divisors.segment();
        let in_bytes = |n: Option<u64>| n?.checked_mul(u64::from(segment?)).map(Bytes::new);
        let sampled = |s: &Sample| FlowSample {
            time: s.time,
            congestion_window: in_bytes(s.cwnd),
            slow_start_threshold: in_bytes(s.ssthresh),
            bytes_in_flight: s.in_flight.map(|n| Bytes::new(n.into())),
            srtt: s.srtt,
            delivered: Some(Bytes::new(s.delivered)),
            ..FlowSample::default()
        };
        let mut flow = Logged {
            label: format!("{} > {}", self.local, self.peer),
            from: text::host(&self.local).unwrap_or_default().to_owned(),
            to: text::host(&self.peer).unwrap_or_default().to_owned(),
            samples: samples.iter().map(sampled).collect(),
            ..Logged::default()
        };
        let row = &mut flow.row;
        row.transport = "tcp";
        (row.start, row.end) = (self.first, self.last);
        let delivered = Bytes::new(self.delivered);
        (row.delivered, row.measured) = (Some(delivered), Some(delivered));
        let time = self.last.saturating_since(self.first);
        row.goodput = (!time.is_zero()).then(|| Rate::from_transfer(delivered, time));
        row.rtt_min = self.srtt_min;
        row.counters = SenderCounters::UNKNOWN;
        flow.facts.captured_at = Some("sender");
        flow.facts.full_segment_bytes = segment.map(u64::from);
        flow.facts.base_rtt_s = self.srtt_min.map(Duration::decimal_secs);
        flow.facts.reverse_bytes = self.received.unwrap_or(0);
        flow
    }
}

/// Greatest common divisors of the amounts in flight at one line and the next.
#[derive(Default)]
struct Divisors {
    before: u32,
    counts: BTreeMap<u32, u64>,
    all: u64,
}

impl Divisors {
    fn count(&mut self, in_flight: u32) {
        if in_flight == 0 || in_flight == self.before {
            return;
        }
        if self.before > 0 {
            self.all += 1;
            let divisor = greatest_common(in_flight, self.before);
            if self.counts.len() < MOST_DIVISORS || self.counts.contains_key(&divisor) {
                *self.counts.entry(divisor).or_default() += 1;
            }
        }
        self.before = in_flight;
    }

    /// The size of a segment: what is most often the divisor. Of two multiples of it, it is in 61 of 100 cases.
    fn segment(&self) -> Option<u32> {
        let (divisor, votes) = self.counts.iter().max_by_key(|(_, votes)| **votes)?;
        let is_size = SEGMENTS.iter().any(|sizes| sizes.contains(divisor));
        (is_size && *votes >= FEWEST_VOTES && *votes > self.all / 2).then_some(*divisor)
    }
}

const fn greatest_common(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    const SEGMENT: u32 = 1448;

    fn log(text: &str) -> Log {
        read(&mut text.as_bytes(), Duration::from_millis(10)).unwrap()
    }

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// The line of a sender that has sent `sent` segments, of which `acked` are acknowledged.
    fn line(ms: u64, sent: u32, acked: u32, cwnd: u32, ssthresh: u32) -> String {
        let at = |segments: u32| 0xffff_f000_u32.wrapping_add(segments * SEGMENT);
        format!(
            "          <idle>-0     [001] ..s2.  4711.{:06}: tcp_probe: family=AF_INET src=10.0.0.1:40000 \
            dest=10.0.0.2:5201 mark=0x0 data_len=0 snd_nxt=0x{:x} snd_una=0x{:x} snd_cwnd={cwnd} ssthresh={ssthresh} \
            snd_wnd=65160 srtt=20500 rcv_wnd=64256 sock_cookie=d skbaddr=00000000e5d1 skaddr=0000000017a9\n",
            ms * 1000,
            at(sent),
            at(acked)
        )
    }

    /// A window that grows by a segment with each that is acknowledged, one in 10 ms.
    fn growth() -> String {
        let mut text = "# tracer: nop\n#\n# TASK-PID CPU# |||| TIMESTAMP FUNCTION\n".to_owned();
        for n in 0..20 {
            let threshold = if n < 10 { 0x7fff_ffff } else { 12 };
            text += &line(u64::from(n) * 10, 10 + 2 * n, n, 10 + n, threshold);
        }
        text
    }

    #[test]
    fn windows_are_in_the_segments_that_the_amounts_in_flight_show() {
        let log = log(&growth());
        assert!(is(growth().as_bytes()));
        assert_eq!((log.flows.len(), log.unused, log.begun_ns), (1, 0, None));
        let flow = &log.flows[0];
        assert_eq!(flow.label, "10.0.0.1:40000 > 10.0.0.2:5201");
        assert_eq!(flow.facts.full_segment_bytes, Some(1448));
        assert_eq!(flow.samples.len(), 20);
        // The sequence numbers have wrapped by then.
        let (first, last) = (flow.samples[0], flow.samples[19]);
        assert_eq!(
            last,
            FlowSample {
                time: ms(190),
                congestion_window: Some(Bytes::new(29 * 1448)),
                slow_start_threshold: Some(Bytes::new(12 * 1448)),
                bytes_in_flight: Some(Bytes::new(29 * 1448)),
                srtt: Some(Duration::from_micros(20_500)),
                delivered: Some(Bytes::new(19 * 1448)),
                ..FlowSample::default()
            }
        );
        assert_eq!(first.slow_start_threshold, None);
        assert_eq!(flow.row.rtt_min, Some(Duration::from_micros(20_500)));
        assert_eq!(
            flow.row.goodput,
            Some(Rate::from_transfer(
                Bytes::new(19 * 1448),
                Duration::from_millis(190)
            ))
        );
        assert_eq!(flow.row.counters, SenderCounters::UNKNOWN);
    }

    #[test]
    fn without_full_segments_windows_are_missing() {
        let mut text = String::new();
        for n in 0..50_u32 {
            let nxt = 1000 + n * 7 + n % 3;
            let _ = writeln!(
                text,
                "redis 77 [000] 10.{n:02}0000: tcp:tcp_probe: src=[2001:db8::1]:6379 dest=[2001:db8::2]:5 mark=0 \
                data_len=40 snd_nxt=0x{nxt:x} snd_una=0x3e8 snd_cwnd=10 ssthresh=9 snd_wnd=5 srtt=0 rcv_wnd=7"
            );
        }
        assert!(is(text.as_bytes()));
        let log = log(&text);
        let flow = &log.flows[0];
        assert_eq!((&*flow.from, &*flow.to), ("2001:db8::1", "2001:db8::2"));
        assert_eq!(flow.samples[9].congestion_window, None);
        assert_eq!(flow.samples[9].bytes_in_flight, Some(Bytes::new(63)));
        assert_eq!(flow.samples[9].srtt, None);
        assert_eq!((flow.row.rtt_min, flow.facts.reverse_bytes), (None, 2000));
        assert_eq!(flow.row.goodput, Some(Rate::from_bps(0)));
    }

    #[test]
    fn the_text_of_the_module_is_read_but_for_what_has_no_certain_unit() {
        let mut text = String::new();
        for n in 0..20_u32 {
            let _ = writeln!(
                text,
                "{}.{:09} 10.0.0.1:40000 10.0.0.2:5001 32 {:#x} {:#x} {} 2147483647 14592 23 29200",
                n / 10,
                n % 10 * 100_000_000,
                1 + (10 + 2 * n) * SEGMENT,
                1 + n * SEGMENT,
                10 + n,
            );
        }
        assert!(is(text.as_bytes()));
        let log = log(&text);
        assert_eq!((log.flows.len(), log.unused), (1, 0));
        let last = log.flows[0].samples[19];
        assert_eq!(last.time, ms(1_900));
        assert_eq!(last.congestion_window, Some(Bytes::new(29 * 1448)));
        assert_eq!((last.slow_start_threshold, last.srtt), (None, None));
        assert_eq!(last.delivered, Some(Bytes::new(19 * 1448)));
        assert_eq!(log.flows[0].facts.reverse_bytes, 0);
    }

    #[test]
    fn lines_that_are_near_to_each_other_are_one_sample() {
        let text: String = (0..15)
            .map(|n| line(n, 20 + n as u32, n as u32, 20, 9))
            .collect();
        let flow = &log(&text).flows[0];
        let times: Vec<_> = flow.samples.iter().map(|s| s.time).collect();
        assert_eq!(times, [ms(0), ms(9), ms(14)]);
    }

    #[test]
    fn sequence_numbers_from_elsewhere_and_other_sockets_are_other_connections() {
        let other = line(30, 10, 0, 10, 9).replace("cookie=d", "cookie=e");
        let jump = line(40, 10, 0, 10, 9).replace("snd_una=0xfffff000", "snd_una=0x70000000");
        let text = [line(0, 10, 0, 10, 9), line(20, 12, 2, 10, 9), other, jump].concat();
        let log = log(&text);
        let delivered: Vec<_> = log
            .flows
            .iter()
            .map(|f| f.row.delivered.unwrap().get())
            .collect();
        assert_eq!(delivered, [2 * 1448, 0, 0]);
    }

    #[test]
    fn what_is_cut_off_or_makes_no_sense_is_counted() {
        let whole = line(0, 10, 0, 10, 9);
        let cut = &whole[..whole.find("snd_una").unwrap() + 10];
        let text = format!(
            "cpus=8\n\n{whole}no line\n{}{cut}",
            whole.replace("4711.000000", "4711")
        );
        assert_eq!(log(&text).unused, 4);
        let cut = &whole[..whole.find("ssthresh").unwrap() - 2];
        let log = log(&format!("{whole}{cut}"));
        assert_eq!((log.flows.len(), log.unused), (1, 0));
        assert_eq!(log.flows[0].row.start, log.flows[0].row.end);
        assert_eq!(log.flows[0].row.goodput, None);
    }

    #[test]
    fn other_texts_are_no_probes() {
        for text in [
            "",
            "duration = \"10s\"\ntcp_probe: src=1\n",
            "time,src,dst\n0.1 10.0.0.1:1 10.0.0.2:2 32 5 6 7\n",
            "0.5 tcp_probe: family=AF_INET src=10.0.0.1:1\n",
        ] {
            assert!(!is(text.as_bytes()), "{text}");
        }
    }
}
