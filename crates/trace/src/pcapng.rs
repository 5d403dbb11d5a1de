//! Packet captures in pcapng (draft-ietf-opsawg-pcapng): real headers with nanosecond timestamps,
//! which Wireshark, tshark and tcptrace open.
//!
//! This is our own writer: the format has three little-endian blocks, and it copies each packet once without
//! allocation.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use gargalo_units::Instant;

use crate::Error;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;
/// Secrets type "TLSK": lines of an SSLKEYLOGFILE.
const TLS_KEY_LOG: u32 = 0x544c_534b;

const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;

/// LINKTYPE_RAW: the packet begins with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;

/// One end of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Shown by Wireshark, for example "bottleneck left".
    pub name: String,
    /// Longer text; may be empty.
    pub description: String,
    /// Most bytes to store of a packet; 0 is no limit.
    pub snap_len: u32,
}

/// A captured packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet<'a> {
    /// When it was captured.
    pub time: Instant,
    /// The number returned by [`Writer::add_interface`].
    pub interface: u32,
    /// The IP packet or its beginning.
    pub bytes: &'a [u8],
    /// Its full length when `bytes` is only the beginning; smaller values count as `bytes.len()`.
    pub original_len: u32,
    /// Shown by Wireshark beside the packet; may be empty.
    pub comment: &'a str,
}

/// Writes a capture with one section.
///
/// Wrap files in a [`BufWriter`] (as [`Writer::create`] does) and end with [`Writer::finish`]: dropping
/// the writer loses errors of the last flush.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    snap_lens: Vec<u32>,
    block: Vec<u8>,
}

impl Writer<BufWriter<File>> {
    /// Creates (or replaces) a file; `comment` describes the run.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: &Path, comment: &str) -> Result<Self, Error> {
        let file = File::create(path).map_err(|e| Error::io("create", path, e))?;
        Self::new(BufWriter::with_capacity(1 << 18, file), comment)
            .map_err(|e| Error::io("write", path, e))
    }
}

impl<W: Write> Writer<W> {
    /// Begins a capture with a section header; `comment` describes the run (scenario, seed).
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn new(out: W, comment: &str) -> io::Result<Self> {
        let mut writer = Self {
            out,
            snap_lens: Vec::new(),
            block: Vec::with_capacity(2048),
        };
        writer.begin(SECTION_HEADER);
        writer.u32(0x1a2b_3c4d);
        writer.u16(1);
        writer.u16(0);
        // Section length: not known.
        writer.block.extend_from_slice(&u64::MAX.to_le_bytes());
        writer.option(OPT_COMMENT, comment.as_bytes());
        writer.option(SHB_USERAPPL, b"gargalo");
        writer.u32(u32::from(OPT_END));
        writer.end()?;
        Ok(writer)
    }

    /// Adds an interface and returns its number.
    ///
    /// # Errors
    /// Those of the output.
    pub fn add_interface(&mut self, interface: &Interface) -> io::Result<u32> {
        let number = u32::try_from(self.snap_lens.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "too many interfaces"))?;
        self.begin(INTERFACE_DESCRIPTION);
        self.u16(LINKTYPE_RAW);
        self.u16(0);
        self.u32(interface.snap_len);
        self.option(IF_NAME, interface.name.as_bytes());
        self.option(IF_DESCRIPTION, interface.description.as_bytes());
        // Timestamps count 10^-9 s.
        self.option(IF_TSRESOL, &[9]);
        self.u32(u32::from(OPT_END));
        self.end()?;
        self.snap_lens.push(interface.snap_len);
        Ok(number)
    }

    /// Writes TLS secrets, lines of an `SSLKEYLOGFILE`, before packets that they decrypt
    /// (draft-ietf-opsawg-pcapng §4.7).
    ///
    /// # Errors
    /// Those of the output.
    pub fn add_tls_secrets(&mut self, lines: &str) -> io::Result<()> {
        let len = u32::try_from(lines.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "secrets of 4 GiB"))?;
        self.begin(DECRYPTION_SECRETS);
        self.u32(TLS_KEY_LOG);
        self.u32(len);
        self.padded(lines.as_bytes());
        self.u32(u32::from(OPT_END));
        self.end()
    }

    /// Writes a whole IP packet.
    ///
    /// # Errors
    /// Those of the output; `InvalidInput` for an interface that was not added.
    pub fn write(&mut self, time: Instant, interface: u32, bytes: &[u8]) -> io::Result<()> {
        self.write_packet(&Packet {
            time,
            interface,
            bytes,
            ..Packet::default()
        })
    }

    /// Writes a packet, which may be truncated, with a comment.
    ///
    /// # Errors
    /// Those of the output; `InvalidInput` for an interface that was not added.
    pub fn write_packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        let snap_len = usize::try_from(packet.interface)
            .ok()
            .and_then(|i| self.snap_lens.get(i))
            .ok_or_else(|| {
                let text = format!("capture has no interface {}", packet.interface);
                io::Error::new(io::ErrorKind::InvalidInput, text)
            })?;
        let len = u32::try_from(packet.bytes.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "packet of 4 GiB"))?;
        let captured = if *snap_len == 0 {
            len
        } else {
            len.min(*snap_len)
        };
        let nanos = packet.time.as_nanos();
        let words = [
            packet.interface,
            (nanos >> 32) as u32,
            nanos as u32,
            captured,
            packet.original_len.max(len),
        ];
        self.begin(ENHANCED_PACKET);
        self.block
            .extend_from_slice(words.map(u32::to_le_bytes).as_flattened());
        self.padded(&packet.bytes[..captured as usize]);
        if !packet.comment.is_empty() {
            self.option(OPT_COMMENT, packet.comment.as_bytes());
            self.u32(u32::from(OPT_END));
        }
        self.end()
    }

    /// Flushes and returns the output.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.u32(kind);
        // The total length, filled in by `end`.
        self.u32(0);
    }

    fn end(&mut self) -> io::Result<()> {
        let total = u32::try_from(self.block.len() + 4)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "block of 4 GiB"))?;
        self.block[4..8].copy_from_slice(&total.to_le_bytes());
        self.u32(total);
        self.out.write_all(&self.block)
    }

    fn u16(&mut self, n: u16) {
        self.block.extend_from_slice(&n.to_le_bytes());
    }

    fn u32(&mut self, n: u32) {
        self.block.extend_from_slice(&n.to_le_bytes());
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
        // Blocks begin aligned, so the block's length tells the padding.
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// An option; empty ones are left out, long texts cut at the format's 16-bit length.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        if value.is_empty() {
            return;
        }
        self.u16(code);
        self.u16(value.len() as u16);
        self.padded(value);
    }
}
