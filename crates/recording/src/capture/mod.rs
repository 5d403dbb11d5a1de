//! Files of captured packets: pcap and pcapng, read as a stream.
//!
//! The formats are read by the `pcap-parser` crate (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng). A file that is
//! damaged or cut off gives the packets before that place, and says where it ended.

mod link_layer;

use std::io::Read;
use std::ops::ControlFlow;

use pcap_parser::pcapng::{Block, DecryptionSecretsBlock, InterfaceDescriptionBlock, SecretsType};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{PcapBlockOwned, PcapError, create_reader};

pub use link_layer::{Content, ip_packet};

/// Bytes of the file that are in memory at a time, unless one packet is larger.
const WINDOW: usize = 1 << 20;
/// Longest record of a file; one that says it is longer is damage.
const MOST_RECORD: usize = 1 << 26;
/// Most interfaces of a capture; each packet names one.
const MOST_INTERFACES: usize = 1 << 16;
const UNREADABLE: &str = "the file cannot be read there, or its compressed data is damaged";
/// Of pcap with micro- and nanoseconds, and of a section header of pcapng.
const MAGIC: [u32; 3] = [0xa1b2_c3d4, 0xa1b2_3c4d, 0x0a0d_0d0a];
const NS_PER_S: u64 = 1_000_000_000;

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// When it was captured, in nanoseconds since 1970 (UTC).
    pub time_ns: u64,
    /// Number of the interface in its file.
    pub interface: usize,
    /// What it begins with, as a number of the registry of link types.
    pub link_type: i32,
    /// The frame, or what was kept of it.
    pub bytes: &'a [u8],
    /// Its full length.
    pub length: u32,
}

/// What a capture has that is of use.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// Lines of a key log, for the frames that follow.
    Secrets(&'a [u8]),
}

/// Where packets were captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, if the file has one.
    pub name: Option<String>,
    link_type: i32,
    /// Nanoseconds since 1970 of a time stamp of 0.
    offset_ns: i128,
    /// Time stamps in a second.
    resolution: u64,
}

/// How a file ended, and what was in it that could not be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// The interfaces, by their numbers.
    pub interfaces: Vec<Interface>,
    /// Packets without a time, or of an interface that is not described.
    pub unusable_packets: u64,
    /// Where and why it could not be read further; `None` at its end.
    pub damage: Option<Damage>,
}

/// Why a file could not be read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Bytes of the file, uncompressed, before this place.
    pub at_byte: u64,
    /// What was found.
    pub why: &'static str,
}

/// Whether a file that begins with these bytes is a capture.
pub fn is_capture(start: &[u8]) -> bool {
    let Some(magic) = start.first_chunk::<4>() else {
        return false;
    };
    let either = [u32::from_le_bytes(*magic), u32::from_be_bytes(*magic)];
    either.iter().any(|n| MAGIC.contains(n))
}

/// Gives what a capture has to `each`, until it breaks; `None` if it is none.
pub fn records(
    input: impl Read + Send,
    each: &mut dyn FnMut(&Record<'_>) -> ControlFlow<()>,
) -> Option<Ending> {
    let mut reader = create_reader(WINDOW, input).ok()?;
    let mut ending = Ending::default();
    // Of a section of pcapng the interfaces are numbered from 0 again.
    let mut section = 0;
    let mut room = WINDOW;
    loop {
        let error = match reader.next() {
            Ok((length, block)) => {
                let found = match &block {
                    PcapBlockOwned::NG(Block::DecryptionSecrets(secrets)) => secrets_of(secrets),
                    _ => frame_of(&block, &mut ending, &mut section).map(Record::Frame),
                };
                let go_on = found.map_or(ControlFlow::Continue(()), |found| each(&found));
                reader.consume(length);
                match go_on {
                    ControlFlow::Continue(()) => continue,
                    ControlFlow::Break(()) => return Some(ending),
                }
            }
            Err(e) => e.to_owned_vec(),
        };
        let ends = reader.reader_exhausted();
        let why = match error {
            PcapError::Eof => return Some(ending),
            PcapError::Incomplete(_) if !ends && reader.refill().is_ok() => continue,
            PcapError::BufferTooSmall if room < MOST_RECORD => {
                room *= 4;
                if reader.grow(room) && reader.refill().is_ok() {
                    continue;
                }
                UNREADABLE
            }
            PcapError::Incomplete(_) if !ends => UNREADABLE,
            PcapError::ReadError => UNREADABLE,
            PcapError::Incomplete(_) | PcapError::UnexpectedEof => "the file ends within a packet",
            PcapError::BufferTooSmall => "a packet is longer than any packet can be",
            _ => "what is there is no record of a capture",
        };
        let at_byte = reader.consumed() as u64;
        ending.damage = Some(Damage { at_byte, why });
        return Some(ending);
    }
}

/// The secrets of a block, if they are lines of a key log.
fn secrets_of<'a>(block: &DecryptionSecretsBlock<'a>) -> Option<Record<'a>> {
    if block.secrets_type != SecretsType::TlsKeyLog {
        return None;
    }
    block
        .data
        .get(..block.secrets_len as usize)
        .map(Record::Secrets)
}

/// The frame of a record, if it has one. `section` is the number of the first interface of the present section.
fn frame_of<'a>(
    block: &'a PcapBlockOwned<'_>,
    ending: &mut Ending,
    section: &mut usize,
) -> Option<Frame<'a>> {
    let (number, ticks, length, bytes) = match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let resolution = match header.is_nanosecond_precision() {
                true => NS_PER_S,
                false => 1_000_000,
            };
            ending.interfaces.push(Interface {
                name: None,
                link_type: header.network.0,
                offset_ns: i128::from(header.thiszone) * i128::from(NS_PER_S),
                resolution,
            });
            return None;
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            *section = ending.interfaces.len();
            return None;
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
            if ending.interfaces.len() < MOST_INTERFACES {
                ending.interfaces.push(interface(described));
            }
            return None;
        }
        PcapBlockOwned::Legacy(packet) => {
            // As they are written: seconds, and microseconds or nanoseconds.
            let resolution = ending.interfaces.first()?.resolution;
            let ticks = u64::from(packet.ts_sec) * resolution + u64::from(packet.ts_usec);
            let kept = packet.data.get(..packet.caplen as usize);
            (0, ticks, packet.origlen, kept.unwrap_or(packet.data))
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let number = section.saturating_add(packet.if_id as usize);
            (number, ticks, packet.origlen, packet.packet_data())
        }
        PcapBlockOwned::NG(Block::SimplePacket(_)) => {
            ending.unusable_packets += 1;
            return None;
        }
        PcapBlockOwned::NG(_) => return None,
    };
    let frame = ending.interfaces.get(number).and_then(|interface| {
        Some(Frame {
            time_ns: interface.time_ns(ticks)?,
            interface: number,
            link_type: interface.link_type,
            bytes,
            length,
        })
    });
    ending.unusable_packets += u64::from(frame.is_none());
    frame
}

fn interface(described: &InterfaceDescriptionBlock<'_>) -> Interface {
    let name = described.if_name().and_then(Result::ok);
    Interface {
        name: name.map(|n| n.trim_end_matches('\0').to_owned()),
        link_type: described.linktype.0,
        offset_ns: i128::from(described.if_tsoffset) * i128::from(NS_PER_S),
        resolution: described.ts_resolution().unwrap_or(0),
    }
}

impl Interface {
    /// The time of a stamp; `None` if it is before 1970 or after 2554.
    fn time_ns(&self, ticks: u64) -> Option<u64> {
        let ticks = i128::from(ticks) * i128::from(NS_PER_S);
        let since = ticks.checked_div(i128::from(self.resolution))?;
        u64::try_from(since.checked_add(self.offset_ns)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: [u8; 24] = [
        0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0,
    ];

    fn record(seconds: u32, micros: u32, data: &[u8], length: u32) -> Vec<u8> {
        let head = [seconds, micros, data.len() as u32, length];
        let mut bytes: Vec<u8> = head.iter().flat_map(|n| n.to_le_bytes()).collect();
        bytes.extend_from_slice(data);
        bytes
    }

    /// Time, full length and bytes of a frame.
    type Seen = (u64, u32, Vec<u8>);

    /// All frames, and how the file ended.
    fn all(bytes: &[u8]) -> Option<(Vec<Seen>, Ending)> {
        let mut found = Vec::new();
        let ending = records(bytes, &mut |record| {
            if let Record::Frame(f) = record {
                found.push((f.time_ns, f.length, f.bytes.to_vec()));
            }
            ControlFlow::Continue(())
        });
        ending.map(|e| (found, e))
    }

    #[test]
    fn packets_before_the_end_of_a_cut_file_are_read_and_the_place_is_told() {
        let whole = [
            &HEADER[..],
            &record(1, 5, &[0x45, 1, 2], 60),
            &record(2, 0, &[0x45], 1),
        ]
        .concat();
        let (found, ending) = all(&whole).unwrap();
        assert_eq!(found[0], (1_000_005_000, 60, vec![0x45, 1, 2]));
        assert_eq!(found[1], (2_000_000_000, 1, vec![0x45]));
        assert_eq!(ending.damage, None);
        for cut in HEADER.len() + 1..whole.len() {
            let (found, ending) = all(&whole[..cut]).unwrap();
            let first = HEADER.len() + 19;
            assert_eq!(found.len(), usize::from(cut >= first), "cut at {cut}");
            let at = if cut < first { HEADER.len() } else { first };
            assert_eq!(ending.damage.is_some(), cut != first, "cut at {cut}");
            if let Some(damage) = ending.damage {
                assert_eq!(damage.at_byte, at as u64);
            }
        }
        assert!(all(b"no capture, but some text").is_none());
        assert!(all(b"").is_none());
    }

    #[test]
    fn a_record_that_is_longer_than_any_packet_is_damage() {
        let head: Vec<u8> = [1u32, 0, u32::MAX, u32::MAX]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        let bytes = [&HEADER[..], &record(1, 0, &[0x45], 1), &head, &[0; 4096]].concat();
        let (found, ending) = all(&bytes).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(ending.damage.unwrap().at_byte, 24 + 17);
    }

    #[test]
    fn resolutions_and_offsets_of_time_are_those_of_the_interface() {
        let of = |resolution, offset_ns| Interface {
            name: None,
            link_type: 1,
            offset_ns,
            resolution,
        };
        assert_eq!(of(1_000, 0).time_ns(1_500), Some(1_500_000_000));
        // 2^-10 s.
        assert_eq!(of(1 << 10, 0).time_ns(1 << 9), Some(500_000_000));
        assert_eq!(of(1_000, -1_000_000_000).time_ns(1_500), Some(500_000_000));
        assert_eq!(of(1_000, -2_000_000_000).time_ns(1_500), None);
        assert_eq!(of(0, 0).time_ns(1), None);
        assert_eq!(of(1, 0).time_ns(u64::MAX), None);
    }
}
