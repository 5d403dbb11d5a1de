//! Logs in text: what programs, stacks and kernels write of connections while they go on.
//!
//! A kind of log is a file here and an entry in [`KINDS`].

mod ends;
mod iperf3;
mod keylog;
mod mahimahi;
mod qlog;
mod ss;
mod tcp_probe;
mod text;
mod thin;

use std::io::{self, BufRead};

use gargalo_trace::schema::{FlowRow, FlowSample, LinkSample};
use gargalo_units::{Duration, Instant};

use crate::facts::Flow;
use crate::secrets::Secrets;
use ends::Twin;
use thin::Timed;

pub use ends::join;

/// Most bytes of a line; a longer one is no line of a log.
pub const MOST_LINE: usize = 1 << 24;

/// A kind of log.
pub struct Kind {
    /// Its name, as in messages.
    pub name: &'static str,
    /// Whether a file that begins with these bytes, up to 64 KiB, is one.
    pub is: fn(&[u8]) -> bool,
    /// Reads one to its end, with samples that are so far apart. Lines that cannot be used are counted, whatever they
    /// have.
    pub read: fn(&mut dyn BufRead, Duration) -> io::Result<Log>,
}

/// All kinds.
pub const KINDS: &[Kind] = &[
    qlog::KIND,
    iperf3::KIND,
    ss::KIND,
    tcp_probe::KIND,
    mahimahi::KIND,
    keylog::KIND,
];

/// What a log tells.
#[derive(Debug, Default)]
pub struct Log {
    /// When it begins, in nanoseconds since 1970 (UTC), if it says so. All times in it are since then.
    pub begun_ns: Option<u64>,
    /// Its flows.
    pub flows: Vec<Logged>,
    /// The directions of links that it tells of.
    pub links: Vec<Link>,
    /// Secrets with which packets of captures are decrypted.
    pub secrets: Secrets,
    /// Lines, or parts of a document, that could not be used.
    pub unused: u64,
}

/// What a log tells of a flow; what it does not say is missing.
#[derive(Debug, Default)]
pub struct Logged {
    /// A name of the flow.
    pub label: String,
    /// The host that sends, or what the log calls it.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// The congestion control, if it is named.
    pub congestion: String,
    /// All other columns.
    pub row: FlowRow<'static>,
    /// Samples, in the order of time; `flow` is set later.
    pub samples: Vec<FlowSample<'static>>,
    /// Events, in the order of time: when, what, and details.
    pub events: Vec<(Instant, &'static str, String)>,
    /// What else it says.
    pub facts: Flow,
    /// By what the other end of its connection is found.
    pub twin: Option<Twin>,
}

impl Timed for FlowSample<'_> {
    fn time(&self) -> Instant {
        self.time
    }
}

impl Logged {
    /// Moves all its times.
    pub fn delay(&mut self, by: Duration) {
        self.row.start += by;
        self.row.end += by;
        self.samples.iter_mut().for_each(|s| s.time += by);
        self.events.iter_mut().for_each(|e| e.0 += by);
        if let Some(twin) = &mut self.twin {
            let times = [&mut twin.first_sent, &mut twin.first_received];
            times.into_iter().flatten().for_each(|t| *t += by);
        }
    }

    /// The latest time that it has.
    pub fn end(&self) -> Instant {
        let last = self.samples.last().map(|s| s.time);
        self.row.end.max(last.unwrap_or(self.row.end))
    }
}

/// What a log tells of one direction of a link.
#[derive(Debug, Default)]
pub struct Link {
    /// A name of the link.
    pub name: String,
    /// Samples, in the order of time; `link` is set later.
    pub samples: Vec<LinkSample<'static>>,
}

/// Gives each line of a text to `each`, without its end, as text in which what is no UTF-8 is replaced; returns how
/// many lines were too long to be one.
///
/// # Errors
/// When the text cannot be read.
pub fn lines(input: &mut dyn BufRead, each: &mut dyn FnMut(&str)) -> io::Result<u64> {
    let (mut line, mut too_long) = (Vec::new(), 0);
    loop {
        line.clear();
        let mut limited = io::Read::take(&mut *input, MOST_LINE as u64);
        if limited.read_until(b'\n', &mut line)? == 0 {
            return Ok(too_long);
        }
        if line.len() == MOST_LINE {
            too_long += 1;
            continue;
        }
        each(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Words of all kinds of logs, and numbers at the ends of what they can be.
    const WORDS: &[&str] = &[
        "\n",
        "\n",
        "\n",
        "\t",
        "1767323045.5",
        "0.000000001:",
        "18446744073709551615",
        "2147483647",
        "0x0",
        "0xffffffff",
        "0xffffffffffffffff",
        "0",
        "9",
        "+",
        "-",
        "#",
        "d",
        "ESTAB",
        "10.0.0.1:5",
        "[::1]:9",
        "a:*",
        "rto:1",
        "cwnd:18446744073709551615",
        "mss:18446744073709551615",
        "bytes_acked:18446744073709551615",
        "bytes_acked:1",
        "unacked:18446744073709551615",
        "retrans:18446744073709551615/9",
        "rtt:1e300/",
        "minrtt:nan",
        "pacing_rate",
        "1e300Mbps",
        "Kbps",
        "é",
        "users:((",
        "tcp_probe:",
        "src=10.0.0.1:5",
        "dest=[::1]:9",
        "snd_nxt=0x80000000",
        "snd_una=0x0",
        "snd_nxt=0x7fffffff",
        "snd_una=0xffffffff",
        "snd_cwnd=18446744073709551615",
        "srtt=18446744073709551615",
        "data_len=18446744073709551615",
        "2026-02-30T24:59:60-9959",
        "# init timestamp: 18446744073709551615",
        "# base timestamp: 5",
        "# queue: drophead",
    ];

    proptest! {
        #[test]
        fn whatever_a_log_has_it_is_read(
            words in prop::collection::vec(prop::sample::select(WORDS), 0..200),
            interval in 0..200u64,
        ) {
            let text = words.join(" ");
            for kind in KINDS {
                let _ = (kind.is)(text.as_bytes());
                let log = (kind.read)(&mut text.as_bytes(), Duration::from_millis(interval)).unwrap();
                for mut flow in log.flows {
                    flow.delay(Duration::MAX);
                    prop_assert!(flow.samples.is_sorted_by_key(|s| s.time));
                }
                for link in log.links {
                    prop_assert!(link.samples.is_sorted_by_key(|s| s.time));
                }
            }
        }
    }
}
