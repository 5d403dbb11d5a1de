//! Logs of a link of Mahimahi (`mm-link --uplink-log`, `--downlink-log`): what arrived at its queue, left it and was
//! dropped, and when the trace let a packet leave. See R. Netravali et al., "Mahimahi: accurate record-and-replay for
//! HTTP", USENIX ATC 2015.
//!
//! Times are in milliseconds; sizes are those of packets of a TUN device, with 4 bytes before the IP header. Logs of
//! `gargalo shell` have the same form and the sizes of IP packets; departures are written when packets have arrived at
//! the other end, behind lines of later events.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, BufRead};

use gargalo_trace::schema::LinkSample;
use gargalo_units::{Bytes, Duration, Instant};

use super::text;
use super::{Kind, Link, Log};

/// The kind.
pub const KIND: Kind = Kind {
    name: "mm-link",
    is,
    read,
};

const HEADING: &str = "# mahimahi mm-link";
const HEADING_OF_SHELL: &str = "# gargalo shell";
/// Bytes before the IP header of each packet: flags and protocol of the TUN device.
const TUN_HEADER: u64 = 4;
/// A line may come so much later than others that it was before: what a packet takes to the other end.
const MOST_LATE_MS: u64 = 2_000;
/// Most lines that wait for such ones.
const MOST_WAITING: usize = 1 << 20;
/// No log is longer, in milliseconds: ten years.
const LONGEST_MS: u64 = 10 * 365 * 86_400_000;

fn is(start: &[u8]) -> bool {
    let headings = [HEADING, HEADING_OF_SHELL];
    headings.iter().any(|h| start.starts_with(h.as_bytes()))
}

fn read(input: &mut dyn BufRead, interval: Duration) -> io::Result<Log> {
    let mut queue = Queue {
        // Times are in milliseconds.
        interval_ms: interval.as_millis().max(1),
        before_ip: TUN_HEADER,
        ..Queue::default()
    };
    let mut unused = 0;
    let too_long = text::whole_lines(input, &mut |line| {
        if !line.trim().is_empty() && !queue.take(line) {
            unused += 1;
        }
    })?;
    Ok(queue.finish(unused + too_long))
}

/// What a line tells, with bytes, packets and milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// So many bytes of IP arrive.
    Arrival(u64),
    /// So many could leave.
    Opportunity(u64),
    /// So many have left after this time.
    Departure(u64, u64),
    /// So many packets are dropped.
    Drops(u64),
}

/// What the lines so far have told of the link.
#[derive(Default)]
struct Queue {
    name: String,
    /// The lines of a shell wait to be put in order: time, number, and what happened.
    later: BinaryHeap<Reverse<(u64, u64, Event)>>,
    number: u64,
    /// Bytes before the IP header in sizes.
    before_ip: u64,
    direction: &'static str,
    /// Packets are dropped at the head of the queue, not at its end.
    drops_at_head: bool,
    /// When the program was started, in milliseconds since 1970.
    started_ms: Option<u64>,
    /// When the link was there, in milliseconds since then. Times in lines are since the start, too.
    base_ms: Option<u64>,
    now_ms: u64,
    interval_ms: u64,
    next_sample_ms: u64,
    /// When those that wait have arrived, and their sizes.
    waiting: VecDeque<(u64, u64)>,
    waiting_bytes: u64,
    sent_bytes: u64,
    dropped_packets: u64,
    last_delay_ms: u64,
    /// Bytes that left, and that could have left, since the last sample.
    used: u64,
    could: u64,
    samples: Vec<LinkSample<'static>>,
}

impl Queue {
    /// Whether a line could be used.
    fn take(&mut self, line: &str) -> bool {
        if let Some(heading) = line.strip_prefix('#') {
            self.take_heading(heading.trim());
            return true;
        }
        self.take_event(line).is_some()
    }

    fn take_heading(&mut self, heading: &str) {
        if let Some((key, value)) = heading.split_once(": ") {
            match key {
                "queue" => self.drops_at_head = value.starts_with("drophead"),
                "init timestamp" => self.started_ms = value.trim().parse().ok(),
                "base timestamp" => self.base_ms = value.trim().parse().ok(),
                _ => (),
            }
            return;
        }
        if heading.starts_with(HEADING_OF_SHELL.trim_start_matches("# ")) {
            self.before_ip = 0;
            "shell".clone_into(&mut self.name);
        }
        // `mahimahi mm-link (Uplink) [traces/12mbps.trace] > up.log`
        let between = |open: char, close: char| {
            let (_, rest) = heading.split_once(open)?;
            Some(rest.split_once(close)?.0)
        };
        if let Some(file) = between('[', ']') {
            let file = file.rsplit('/').next().unwrap_or(file);
            self.name = file.to_owned();
        }
        if let Some(link) = between('(', ')') {
            let is_down = link.to_ascii_lowercase().starts_with("down");
            self.direction = if is_down { "down" } else { "up" };
        }
    }

    fn take_event(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        let time: u64 = words.next()?.parse().ok()?;
        let what = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let base = *self.base_ms.get_or_insert(time);
        let time = time.saturating_sub(base);
        if time > LONGEST_MS {
            return None;
        }
        let event = match what {
            "+" => Event::Arrival(number()?.saturating_sub(self.before_ip)),
            "#" => Event::Opportunity(number()?),
            "-" => Event::Departure(number()?, number()?),
            "d" => Event::Drops(number()?),
            _ => return None,
        };
        if self.before_ip == TUN_HEADER {
            self.happen(time, event);
            return Some(());
        }
        self.later.push(Reverse((time, self.number, event)));
        self.number += 1;
        let is_due = |first: &Reverse<(u64, u64, Event)>| first.0.0 + MOST_LATE_MS < time;
        while self.later.len() > MOST_WAITING || self.later.peek().is_some_and(is_due) {
            self.happen_next();
        }
        Some(())
    }

    /// What waits longest happens.
    fn happen_next(&mut self) {
        if let Some(Reverse((time, _, event))) = self.later.pop() {
            self.happen(time, event);
        }
    }

    fn happen(&mut self, time: u64, event: Event) {
        self.sample_until(time);
        match event {
            Event::Arrival(bytes) => {
                self.waiting.push_back((time, bytes));
                self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
            }
            Event::Opportunity(bytes) => self.could = self.could.saturating_add(bytes),
            Event::Departure(bytes, delay) => self.depart(time, bytes, delay),
            Event::Drops(packets) => self.drop_packets(packets),
        }
    }

    /// Takes samples at all instants before this one.
    fn sample_until(&mut self, time: u64) {
        // Lines are in the order of time, but for those of a damaged file.
        self.now_ms = self.now_ms.max(time);
        if self.next_sample_ms >= self.now_ms {
            return;
        }
        self.sample(self.next_sample_ms);
        self.next_sample_ms += self.interval_ms;
        // Nothing has happened since then: one more sample says so.
        let latest = (self.now_ms - 1) / self.interval_ms * self.interval_ms;
        if latest >= self.next_sample_ms {
            self.sample(latest);
            self.next_sample_ms = latest + self.interval_ms;
        }
    }

    fn sample(&mut self, at_ms: u64) {
        let is_empty = self.waiting.is_empty();
        let delay_ms = if is_empty { 0 } else { self.last_delay_ms };
        self.samples.push(LinkSample {
            time: Instant::ZERO + Duration::from_millis(at_ms),
            direction: self.direction,
            queue_packets: self.waiting.len() as u64,
            queue: Bytes::new(self.waiting_bytes),
            queue_delay: Duration::from_millis(delay_ms),
            sent: Bytes::new(self.sent_bytes),
            dropped_packets: self.dropped_packets,
            // It has no marks.
            marked_packets: 0,
            utilization: (self.could > 0).then(|| (self.used as f64 / self.could as f64).min(1.0)),
            ..LinkSample::default()
        });
        (self.used, self.could) = (0, 0);
    }

    fn depart(&mut self, time: u64, bytes: u64, delay: u64) {
        let arrived = time.saturating_sub(delay);
        // What arrived before has been dropped from the queue, by CoDel or PIE, without a line.
        while self.waiting.front().is_some_and(|(t, _)| *t < arrived) {
            self.forget(true);
            self.dropped_packets = self.dropped_packets.saturating_add(1);
        }
        self.forget(true);
        self.last_delay_ms = delay.min(LONGEST_MS);
        self.used = self.used.saturating_add(bytes);
        let bytes = bytes.saturating_sub(self.before_ip);
        self.sent_bytes = self.sent_bytes.saturating_add(bytes);
    }

    fn drop_packets(&mut self, packets: u64) {
        for _ in 0..packets.min(self.waiting.len() as u64) {
            self.forget(self.drops_at_head);
        }
        self.dropped_packets = self.dropped_packets.saturating_add(packets);
    }

    fn forget(&mut self, first: bool) {
        let packet = match first {
            true => self.waiting.pop_front(),
            false => self.waiting.pop_back(),
        };
        let bytes = packet.map_or(0, |(_, bytes)| bytes);
        self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
    }

    fn finish(mut self, unused: u64) -> Log {
        while !self.later.is_empty() {
            self.happen_next();
        }
        if self.now_ms > 0 || !self.waiting.is_empty() {
            self.sample(self.now_ms);
        }
        let begun_ms = self.started_ms.zip(self.base_ms);
        let begun_ms = begun_ms.and_then(|(started, base)| started.checked_add(base));
        if self.name.is_empty() {
            self.name = KIND.name.to_owned();
        }
        let links = (!self.samples.is_empty()).then_some(Link {
            name: self.name,
            samples: self.samples,
        });
        Log {
            begun_ns: begun_ms.and_then(|ms| ms.checked_mul(1_000_000)),
            links: links.into_iter().collect(),
            unused,
            ..Log::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "# mahimahi mm-link (Downlink) [traces/12mbps.trace] > down.log\n\
        # command line: mm-link traces/12mbps.trace\n# queue: droptail [packets=3]\n\
        # init timestamp: 1767323045000\n# base timestamp: 120\n";

    fn log(events: &str) -> Log {
        read(
            &mut format!("{LOG}{events}").as_bytes(),
            Duration::from_millis(100),
        )
        .unwrap()
    }

    /// Time in milliseconds, packets and bytes that wait, their delay in milliseconds, bytes sent, packets dropped, and
    /// the utilization.
    type Row = (u64, u64, u64, u64, u64, u64, Option<f64>);

    fn of(events: &str) -> Vec<Row> {
        let links = log(events).links;
        let row = |s: &LinkSample<'_>| {
            (
                s.time.as_nanos() / 1_000_000,
                s.queue_packets,
                s.queue.get(),
                s.queue_delay.as_millis(),
                s.sent.get(),
                s.dropped_packets,
                s.utilization,
            )
        };
        links[0].samples.iter().map(row).collect()
    }

    #[test]
    fn a_queue_fills_and_empties() {
        let found = of(
            "121 + 1504\n121 + 1504\n122 + 504\n123 + 1504\n123 d 1 1504\n130 # 1504\n130 - 1504 9\n140 # 1504\n\
            141 # 1504\n141 - 1504 20\n230 # 1504\n230 - 504 108\n240 # 1504\n",
        );
        let second = (100, 1, 500, 20, 3000, 1, Some(2.0 / 3.0));
        let last = (120, 0, 0, 0, 3500, 1, Some(504.0 / 3008.0));
        assert_eq!(found, [(0, 0, 0, 0, 0, 0, None), second, last]);
        let log = log("121 + 1504\n");
        assert_eq!(log.begun_ns, Some(1_767_323_045_120_000_000));
        assert_eq!(log.links[0].name, "12mbps.trace");
        assert_eq!(log.links[0].samples[0].direction, "down");
        assert!(log.flows.is_empty());
    }

    #[test]
    fn what_a_queue_has_dropped_in_silence_is_not_in_it() {
        // The second has arrived at 125, and leaves as the first that does.
        let found = of("121 + 1504\n125 + 1504\n126 + 1504\n150 - 1504 25\n");
        assert_eq!(found.last(), Some(&(30, 1, 1500, 25, 1500, 1, None)));
    }

    #[test]
    fn a_quiet_time_has_two_samples() {
        let times: Vec<_> = of("121 + 54\n5120 + 54\n9_000\n")
            .iter()
            .map(|s| s.0)
            .collect();
        assert_eq!(times, [0, 100, 4_900, 5_000]);
        let far = of("121 + 54\n99999999999999 + 54\n18446744073709551615 - 1 1\n");
        assert_eq!(far.len(), 2);
    }

    #[test]
    fn lines_that_make_no_sense_are_counted_and_a_cut_one_is_not_used() {
        let found = log("121 + 1504\nx + 5\n122 ? 5\n123 - 5\n124\n130 - 1504 1");
        assert_eq!(found.unused, 5);
        assert_eq!(found.links[0].samples[1].queue_packets, 1);
        // A departure of what has not arrived, and more drops than packets.
        let found = of("121 - 1504 1\n122 d 99 99\n123 + 3\n");
        assert_eq!(found.last(), Some(&(3, 1, 0, 1, 1500, 99, None)));
        assert!(log("").links.is_empty());
    }

    #[test]
    fn the_heading_tells_what_it_is() {
        assert!(is(LOG.as_bytes()));
        assert!(!is(b"# mahimahi\nduration = 5\n"));
        assert!(!is(b"121 + 1504\n"));
    }

    #[test]
    fn a_log_of_a_shell_has_sizes_of_ip_and_departures_that_are_late() {
        let text = "# gargalo shell (Downlink)\n# base timestamp: 0\n1 # 1500\n10 + 1500\n11 + 1500\n15 # 1500\n\
            20 + 600\n130 + 1500\n15 - 1500 5\n20 - 600 0\n160 # 1500\n";
        assert!(is(text.as_bytes()));
        let log = read(&mut text.as_bytes(), Duration::from_millis(100)).unwrap();
        assert_eq!(log.unused, 0);
        let link = &log.links[0];
        assert_eq!(
            (link.name.as_str(), link.samples[0].direction),
            ("shell", "down")
        );
        let row = |s: &LinkSample<'_>| {
            let ms = s.time.as_nanos() / 1_000_000;
            (
                ms,
                s.queue_packets,
                s.sent.get(),
                s.dropped_packets,
                s.utilization,
            )
        };
        let rows: Vec<_> = link.samples.iter().map(row).collect();
        // The second has never left.
        let second = (100, 0, 2_100, 1, Some(0.7));
        assert_eq!(rows[1..], [second, (160, 1, 2_100, 1, Some(0.0))]);
    }
}
