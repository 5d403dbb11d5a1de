//! Encoding and decoding of TCP options.

use bytes::Bytes;
use gargalo_units::Seq;

use super::options::MAX_OPTIONS_LEN;
use super::{Extra, Options, Timestamps};
use crate::mptcp::{self, MptcpOption};
use crate::reader::Reader;
use crate::{EmitError, ParseError};

// Option kinds (IANA "TCP Option Kind Numbers").
const EOL: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const FAST_OPEN: u8 = 34;

/// An undecoded option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawOption<'a> {
    /// Kind; 1 is NOP.
    pub kind: u8,
    /// The bytes after kind and length.
    pub data: &'a [u8],
}

/// Iterates over the options of a header, NOPs included, up to the end-of-list option. Ends after the first error.
#[derive(Clone, Debug)]
pub struct RawOptions<'a> {
    bytes: &'a [u8],
}

impl<'a> RawOptions<'a> {
    /// Reads the bytes between fixed header and data.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }
}

impl<'a> Iterator for RawOptions<'a> {
    type Item = Result<RawOption<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, rest) = self.bytes.split_first()?;
        match kind {
            EOL => {
                self.bytes = &[];
                None
            }
            NOP => {
                self.bytes = rest;
                Some(Ok(RawOption { kind, data: &[] }))
            }
            _ => {
                // The length covers kind and length themselves (RFC 9293 §3.1).
                let len = rest.first().map_or(0, |n| usize::from(*n));
                match self.bytes.get(2..len) {
                    Some(data) => {
                        self.bytes = &self.bytes[len..];
                        Some(Ok(RawOption { kind, data }))
                    }
                    None => {
                        self.bytes = &[];
                        Some(Err(ParseError::BadOption { kind }))
                    }
                }
            }
        }
    }
}

impl Options {
    /// Decodes the bytes between fixed header and data.
    ///
    /// Of repeated options the first is decoded. The others, and known kinds with a wrong length, are kept in
    /// [`Extra::other`], so that nothing is lost.
    ///
    /// # Errors
    /// When an option's length is impossible.
    pub fn decode(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut options = Self::default();
        for raw in RawOptions::new(bytes) {
            options.add(raw?);
        }
        Ok(options)
    }

    /// Like [`Options::decode`], up to the first malformed option, as TCP stacks do with received segments: their
    /// other fields are still valid.
    pub fn decode_prefix(bytes: &[u8]) -> Self {
        let mut options = Self::default();
        for raw in RawOptions::new(bytes).map_while(Result::ok) {
            options.add(raw);
        }
        options
    }

    fn add(&mut self, raw: RawOption<'_>) {
        if raw.kind != NOP && self.add_known(raw).is_none() {
            let data = Bytes::copy_from_slice(raw.data);
            self.extra_mut().other.push((raw.kind, data));
        }
    }

    /// `None` if it must be kept raw.
    fn add_known(&mut self, raw: RawOption<'_>) -> Option<()> {
        match (raw.kind, raw.data) {
            (MSS, &[a, b]) => set(&mut self.extra_mut().mss, u16::from_be_bytes([a, b])),
            (WINDOW_SCALE, &[shift]) => set(&mut self.extra_mut().window_scale, shift),
            (SACK_PERMITTED, []) => {
                let permitted = &mut self.extra_mut().sack_permitted;
                (!std::mem::replace(permitted, true)).then_some(())
            }
            (SACK, data) => self.add_sack(data),
            (TIMESTAMPS, data) if data.len() == 8 => {
                let mut r = Reader(data);
                let (value, echo) = (r.u32()?, r.u32()?);
                set(&mut self.timestamps, Timestamps { value, echo })
            }
            (FAST_OPEN, cookie) => {
                let cookie = Bytes::copy_from_slice(cookie);
                set(&mut self.extra_mut().fast_open, cookie)
            }
            (mptcp::KIND, data) => {
                self.mptcp
                    .get_or_insert_default()
                    .push(MptcpOption::decode(data));
                Some(())
            }
            _ => None,
        }
    }

    fn add_sack(&mut self, data: &[u8]) -> Option<()> {
        let (blocks, rest) = data.as_chunks::<8>();
        if !self.sack.is_empty() || !rest.is_empty() || !(1..=4).contains(&blocks.len()) {
            return None;
        }
        for block in blocks {
            let mut r = Reader(block);
            self.sack.push(Seq::new(r.u32()?), Seq::new(r.u32()?));
        }
        Some(())
    }

    fn extra_mut(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// Appends the options, padded to 32-bit words; see [`Options`] for the layout. Writes
    /// [`Options::padded_len`] bytes.
    ///
    /// # Errors
    /// When options other than SACK exceed 40 bytes; `out` is then unchanged.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        let start = out.len();
        if self.extra.is_none() && self.mptcp.is_none() && self.sack.is_empty() {
            // Nearly every segment of a transfer.
            let aligned = true;
            let mut w = Writer {
                start,
                out,
                aligned,
            };
            self.emit_timestamps(false, &mut w);
            return Ok(());
        }
        let layout = self.layout();
        if layout.len > MAX_OPTIONS_LEN {
            return Err(EmitError::OptionsTooLong { length: layout.len });
        }
        let mut w = Writer {
            start,
            out,
            aligned: layout.aligned,
        };
        let none = Extra::default();
        let extra = self.extra.as_deref().unwrap_or(&none);
        if let Some(mss) = extra.mss {
            let [a, b] = mss.to_be_bytes();
            w.bytes(&[MSS, 4, a, b]);
        }
        self.emit_timestamps(extra.sack_permitted, &mut w);
        if let Some(shift) = extra.window_scale {
            w.nops(1);
            w.bytes(&[WINDOW_SCALE, 3, shift]);
        }
        if layout.sack > 0 {
            w.nops(2);
            // At most four blocks.
            w.bytes(&[SACK, 2 + 8 * layout.sack as u8]);
            for (left, right) in &self.sack.as_slice()[..layout.sack] {
                w.bytes(&left.get().to_be_bytes());
                w.bytes(&right.get().to_be_bytes());
            }
        }
        if let Some(cookie) = &extra.fast_open {
            w.raw(FAST_OPEN, cookie);
        }
        for option in self.mptcp.iter().flat_map(|list| list.iter()) {
            option.encode(w.out);
            w.align();
        }
        for (kind, data) in extra.written() {
            w.raw(*kind, data);
        }
        // End of list, and the zeros that follow it.
        let end = w.start + layout.len as usize;
        w.out.resize(end, EOL);
        Ok(())
    }

    fn emit_timestamps(&self, sack_permitted: bool, w: &mut Writer<'_>) {
        match (sack_permitted, self.timestamps.is_some()) {
            (true, true) => w.bytes(&[SACK_PERMITTED, 2]),
            (true, false) => {
                w.nops(2);
                w.bytes(&[SACK_PERMITTED, 2]);
            }
            (false, true) => w.nops(2),
            (false, false) => {}
        }
        if let Some(t) = self.timestamps {
            let mut option = [TIMESTAMPS, 10, 0, 0, 0, 0, 0, 0, 0, 0];
            option[2..6].copy_from_slice(&t.value.to_be_bytes());
            option[6..].copy_from_slice(&t.echo.to_be_bytes());
            w.bytes(&option);
        }
    }
}

/// Sets an empty field; `None` if it is already set.
fn set<T>(place: &mut Option<T>, value: T) -> Option<()> {
    if place.is_some() {
        return None;
    }
    *place = Some(value);
    Some(())
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    aligned: bool,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }
    fn nops(&mut self, n: usize) {
        if self.aligned {
            self.out.resize(self.out.len() + n, NOP);
        }
    }
    /// NOPs up to the next word.
    fn align(&mut self) {
        let len = self.out.len() - self.start;
        self.nops(len.next_multiple_of(4) - len);
    }
    fn raw(&mut self, kind: u8, data: &[u8]) {
        // The layout fits, so an option has at most 40 bytes.
        self.bytes(&[kind, (2 + data.len()) as u8]);
        self.bytes(data);
        self.align();
    }
}
