//! Logs in text: what programs, stacks and kernels write of connections while they go on.
//!
//! A kind of log is a file here and an entry in [`KINDS`].

mod iperf3;
mod qlog;
mod ss;
mod tcp_probe;
mod text;

use std::io::{self, BufRead};

use gargalo_trace::schema::{FlowRow, FlowSample};
use gargalo_units::{Duration, Instant};

use crate::facts::Flow;

/// Most bytes of a line; a longer one is no line of a log.
pub const MOST_LINE: usize = 1 << 24;

/// A kind of log.
pub struct Kind {
    /// Its name, as in messages.
    pub name: &'static str,
    /// Whether a file that begins with these bytes, up to 64 KiB, is one.
    pub is: fn(&[u8]) -> bool,
    /// Reads one to its end. Lines that cannot be used are counted, whatever they have.
    pub read: fn(&mut dyn BufRead) -> io::Result<Log>,
}

/// All kinds.
pub const KINDS: &[Kind] = &[qlog::KIND, iperf3::KIND, ss::KIND, tcp_probe::KIND];

/// What a log tells.
#[derive(Debug, Default)]
pub struct Log {
    /// When it begins, in nanoseconds since 1970 (UTC), if it says so. All times in it are since then.
    pub begun_ns: Option<u64>,
    /// Its flows.
    pub flows: Vec<Logged>,
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
}

impl Logged {
    /// Moves all its times.
    pub fn delay(&mut self, by: Duration) {
        self.row.start += by;
        self.row.end += by;
        self.samples.iter_mut().for_each(|s| s.time += by);
        self.events.iter_mut().for_each(|e| e.0 += by);
    }

    /// The latest time that it has.
    pub fn end(&self) -> Instant {
        let last = self.samples.last().map(|s| s.time);
        self.row.end.max(last.unwrap_or(self.row.end))
    }
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
