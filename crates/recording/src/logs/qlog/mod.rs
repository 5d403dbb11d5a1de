//! qlog: what implementations of QUIC write of their connections (draft-ietf-quic-qlog-main-schema and
//! draft-ietf-quic-qlog-quic-events), from draft-00 to the latest, as one JSON document or as a sequence of records.

mod clock;
mod connection;
mod document;
mod event;
mod head;
mod packet;
mod samples;
mod sequence;
#[cfg(test)]
mod tests;
mod trace;
mod words;

use std::io::{self, BufRead};

use gargalo_units::Duration;

use super::thin::Thin;
use super::{Kind, Log};
use trace::Trace;

/// The kind.
pub const KIND: Kind = Kind {
    name: "qlog",
    is,
    read,
};

/// One of these is in every header.
const KEYS: [&str; 3] = [
    "\"qlog_version\"",
    "\"qlog_format\"",
    "urn:ietf:params:qlog",
];
/// All of these are in a document whose header comes last.
const KEYS_OF_TRACES: [&str; 2] = ["\"traces\"", "\"vantage_point\""];

fn is(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    let begins = text.trim_start_matches(['\u{feff}', '\u{1e}', ' ', '\t', '\r', '\n']);
    begins.starts_with('{')
        && (KEYS.iter().any(|k| text.contains(k))
            || KEYS_OF_TRACES.iter().all(|k| text.contains(k)))
}

fn read(input: &mut dyn BufRead, interval: Duration) -> io::Result<Log> {
    let mut found = Found::default();
    match sequence::separator(input.fill_buf()?) {
        Some(separator) => sequence::read(input, separator, &mut found)?,
        None => document::read(input, &mut found)?,
    }
    let mut log = trace::log_of(found);
    for flow in &mut log.flows {
        flow.samples = Thin::of(std::mem::take(&mut flow.samples), interval);
    }
    Ok(log)
}

/// What a file has.
#[derive(Default)]
struct Found {
    traces: Vec<Trace>,
    /// Title of the file, for traces without one.
    title: String,
    /// Records that could not be used.
    unused: u64,
}
