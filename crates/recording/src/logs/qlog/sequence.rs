//! Sequences of records: JSON text sequences (RFC 7464), and JSON with a record in each line.

use std::io::{self, BufRead, Read as _};

use serde_json::{Deserializer, Value};

use super::Found;
use super::trace::Trace;
use crate::logs::{self, MOST_LINE};

/// What begins a record of a text sequence.
const RECORD: u8 = 0x1e;
/// A record with one of these, and without a name, is the header of a trace.
const KEYS: [&str; 4] = ["qlog_version", "qlog_format", "file_schema", "trace"];

/// What is between the records of a file that begins with these bytes; `None` if it is one document.
pub fn separator(start: &[u8]) -> Option<u8> {
    let start = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start);
    let start = start.trim_ascii_start();
    if start.first() == Some(&RECORD) {
        return Some(RECORD);
    }
    let line = start.split(|b| *b == b'\n').next()?;
    match serde_json::from_slice::<Value>(line) {
        Ok(first) if first.get("traces").is_none() => Some(b'\n'),
        _ => None,
    }
}

/// Reads all records.
///
/// # Errors
/// When the file cannot be read.
pub fn read(input: &mut dyn BufRead, separator: u8, found: &mut Found) -> io::Result<()> {
    if separator != RECORD {
        let too_long = logs::lines(input, &mut |line| take_all(line.as_bytes(), found))?;
        found.unused += too_long;
        return Ok(());
    }
    let mut record = Vec::new();
    loop {
        record.clear();
        let mut limited = (&mut *input).take(MOST_LINE as u64);
        if limited.read_until(RECORD, &mut record)? == 0 {
            return Ok(());
        }
        match record.len() == MOST_LINE {
            true => found.unused += 1,
            false => take_all(record.strip_suffix(&[RECORD]).unwrap_or(&record), found),
        }
    }
}

/// Takes a record, or several where a writer has left out what separates them.
fn take_all(text: &[u8], found: &mut Found) {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    for value in Deserializer::from_slice(text).into_iter::<Value>() {
        let is_used = value.is_ok_and(|v| take(&v, found));
        found.unused += u64::from(!is_used);
    }
}

/// Takes a record; whether it can be used.
fn take(record: &Value, found: &mut Found) -> bool {
    let is_header = record.get("name").is_none() && KEYS.iter().any(|k| record.get(k).is_some());
    if !is_header {
        if found.traces.is_empty() {
            found.traces.push(Trace::default());
        }
        return found.traces.last_mut().is_some_and(|t| t.on_event(record));
    }
    let mut trace = Trace::default();
    let fields = record["trace"].as_object().into_iter().flatten();
    fields.for_each(|(key, value)| trace.set(key, value));
    trace.head_is_read();
    if let Some(title) = record["title"].as_str() {
        trace.set_file_title(title);
    }
    found.traces.push(trace);
    true
}
