//! Headers of packets, and the packets of a datagram (RFC 8999, RFC 9000 §17, RFC 9369 §3.2).

use super::varint::Reader;

/// Longest connection identifier of versions 1 and 2.
pub const MOST_ID: usize = 20;
/// The bit that makes a header a long one.
pub const LONG: u8 = 0x80;
/// The bit that is set in all packets, so that they are told from those of other protocols (RFC 9000 §17.2).
const FIXED: u8 = 0x40;
/// The spin bit of a short header (RFC 9000 §17.4).
const SPIN: u8 = 0x20;

/// A version that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// RFC 9000.
    One,
    /// RFC 9369.
    Two,
}

impl Version {
    /// The version of this number; `None` if it is not known.
    pub const fn of(number: u32) -> Option<Self> {
        match number {
            0x0000_0001 => Some(Self::One),
            0x6b33_43cf => Some(Self::Two),
            _ => None,
        }
    }
}

/// Types of packets with a long header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first packets of each end.
    Initial,
    /// Early data of the client.
    ZeroRtt,
    /// The rest of the handshake.
    Handshake,
    /// The server asks for another Initial, with a token.
    Retry,
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header<'a> {
    /// That of a handshake.
    Long(Long<'a>),
    /// That of a packet of an established connection.
    Short(Short<'a>),
}

/// A long header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Long<'a> {
    /// Version.
    pub version: Version,
    /// Type.
    pub kind: Kind,
    /// Connection identifier of the receiver.
    pub to: &'a [u8],
    /// Connection identifier of the sender.
    pub from: &'a [u8],
    /// Where the packet number begins; of a Retry, where its token does.
    pub number_at: usize,
}

/// A short header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short<'a> {
    /// Connection identifier of the receiver.
    pub to: &'a [u8],
    /// The spin bit.
    pub spin: bool,
    /// Where the packet number begins.
    pub number_at: usize,
}

/// A packet of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its header.
    pub header: Header<'a>,
    /// All of it, or what was kept of it.
    pub bytes: &'a [u8],
    /// Its full length.
    pub length: usize,
}

impl Packet<'_> {
    /// Whether a part of it was not kept.
    pub const fn is_cut(&self) -> bool {
        self.bytes.len() < self.length
    }
}

/// The packets of a datagram of `length` bytes of which these were kept. Identifiers in short headers have `id` bytes,
/// which only their receiver and those know that have seen the handshake. It ends at what is no packet of a known
/// version, or of another connection than the first (RFC 9000, section 12.2). The second bit of a packet tells nothing
/// of it once its ends have agreed on that (RFC 9287).
pub const fn packets(kept: &[u8], length: usize, id: usize) -> Packets<'_> {
    Packets {
        kept,
        length,
        id,
        first: None,
    }
}

/// An iterator over the packets of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Packets<'a> {
    kept: &'a [u8],
    length: usize,
    id: usize,
    /// The identifier of the receiver in the first packet.
    first: Option<&'a [u8]>,
}

impl<'a> Iterator for Packets<'a> {
    type Item = Packet<'a>;

    fn next(&mut self) -> Option<Packet<'a>> {
        let first = *self.kept.first()?;
        let id = self.first.map_or(self.id, <[u8]>::len);
        let (header, to, length) = match first & LONG {
            0 => {
                let short = short(self.kept, id)?;
                (Header::Short(short), short.to, self.length)
            }
            _ => {
                let (long, length) = long(self.kept)?;
                (Header::Long(long), long.to, length.unwrap_or(self.length))
            }
        };
        // What is behind the packets may be padding: without an identifier it is told by that bit.
        let is_padding = to.is_empty() && first & FIXED == 0;
        if self.first.is_some_and(|known| known != to || is_padding) {
            return None;
        }
        self.first = Some(to);
        let length = length.min(self.length);
        let bytes = self.kept.get(..length).unwrap_or(self.kept);
        self.kept = &self.kept[bytes.len()..];
        self.length -= length;
        Some(Packet {
            header,
            bytes,
            length,
        })
    }
}

fn short(bytes: &[u8], id: usize) -> Option<Short<'_>> {
    Some(Short {
        to: bytes.get(1..1 + id)?,
        spin: bytes[0] & SPIN != 0,
        number_at: 1 + id,
    })
}

/// A long header, and the length of its packet; `None` where that is the rest of the datagram.
fn long(bytes: &[u8]) -> Option<(Long<'_>, Option<usize>)> {
    let mut reader = Reader(bytes);
    let first = reader.integer(1)?;
    let version = Version::of(reader.integer(4)? as u32)?;
    let mut id = || {
        let length = reader.integer(1).filter(|n| *n <= MOST_ID as u64)?;
        reader.take(length)
    };
    let (to, from) = (id()?, id()?);
    let number = (first >> 4 & 3) as usize;
    let kinds = [Kind::Initial, Kind::ZeroRtt, Kind::Handshake, Kind::Retry];
    let kind = match version {
        Version::One => kinds[number],
        Version::Two => kinds[(number + 3) % 4],
    };
    if kind == Kind::Initial {
        let token = reader.varint()?;
        reader.take(token)?;
    }
    let at = |reader: &Reader<'_>| bytes.len() - reader.0.len();
    let length = match kind {
        Kind::Retry => None,
        _ => Some(usize::try_from(reader.varint()?).ok()?),
    };
    let number_at = at(&reader);
    let header = Long {
        version,
        kind,
        to,
        from,
        number_at,
    };
    Some((header, length.map(|n| number_at.saturating_add(n))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn long_packet(version: u32, kind: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xc0 | kind << 4];
        bytes.extend_from_slice(&version.to_be_bytes());
        bytes.extend_from_slice(&[2, 7, 8, 1, 9]);
        bytes.extend_from_slice(rest);
        bytes
    }

    #[test]
    fn a_datagram_may_have_several_packets_of_which_the_last_has_a_short_header() {
        let initial = long_packet(1, 0, &[3, 1, 1, 1, 5, 0, 1, 2, 3, 4]);
        let handshake = long_packet(1, 2, &[4, 5, 6, 7, 8]);
        let one_rtt = [0x60, 7, 8, 0, 1, 2, 3];
        let datagram = [&initial[..], &handshake, &one_rtt].concat();
        let found: Vec<_> = packets(&datagram, datagram.len(), 2).collect();
        let lengths: Vec<_> = found.iter().map(|p| p.length).collect();
        assert_eq!(lengths, [initial.len(), handshake.len(), one_rtt.len()]);
        assert!(found.iter().all(|p| !p.is_cut()));
        let Header::Long(first) = found[0].header else {
            panic!("{found:?}");
        };
        assert_eq!((first.kind, first.version), (Kind::Initial, Version::One));
        assert_eq!(
            (first.to, first.from, first.number_at),
            (&[7, 8][..], &[9][..], 15)
        );
        let Header::Short(last) = found[2].header else {
            panic!("{found:?}");
        };
        assert_eq!((last.to, last.spin, last.number_at), (&[7, 8][..], true, 3));
        // Without the second bit, which tells nothing once the ends have agreed on that (RFC 9287), they are the same.
        let mut greased = datagram.clone();
        for at in [0, initial.len(), initial.len() + handshake.len()] {
            greased[at] &= !FIXED;
        }
        assert_eq!(packets(&greased, greased.len(), 0).count(), 3);
        // What follows is padding, or of another connection.
        for rest in [&[0; 9][..], &[0x60, 7, 9, 0, 1, 2]] {
            let more = [&initial[..], &handshake, rest].concat();
            assert_eq!(packets(&more, more.len(), 2).count(), 2);
        }
        // What was not kept is missing, and the lengths stay.
        let cut: Vec<_> = packets(&datagram[..33], datagram.len(), 2).collect();
        assert_eq!(cut.len(), 2);
        assert_eq!(
            (cut[1].length, cut[1].bytes.len(), cut[1].is_cut()),
            (15, 13, true)
        );
    }

    #[test]
    fn version_2_has_other_numbers_of_types_and_other_versions_are_left_alone() {
        let kinds = |version| {
            [0, 1, 2, 3].map(|n| {
                let bytes = long_packet(version, n, &[0, 1, 0]);
                let kind = packets(&bytes, bytes.len(), 0).next().map(|p| p.header);
                kind.map(|h| match h {
                    Header::Long(l) => l.kind,
                    Header::Short(_) => panic!("{h:?}"),
                })
            })
        };
        use Kind::{Handshake, Initial, Retry, ZeroRtt};
        assert_eq!(kinds(1), [Initial, ZeroRtt, Handshake, Retry].map(Some));
        assert_eq!(
            kinds(0x6b33_43cf),
            [Retry, Initial, ZeroRtt, Handshake].map(Some)
        );
        assert_eq!(kinds(0xff00_001d), [None; 4]);
        // An identifier that is longer than any of these versions.
        let mut bytes = long_packet(1, 2, &[0; 40]);
        bytes[5] = 21;
        assert_eq!(packets(&bytes, bytes.len(), 0).next(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_do(bytes in prop::collection::vec(any::<u8>(), 0..100), more in 0..50usize, id in 0..=MOST_ID) {
            let length = bytes.len() + more;
            let found: Vec<_> = packets(&bytes, length, id).collect();
            prop_assert!(found.iter().map(|p| p.length).sum::<usize>() <= length);
            prop_assert!(found.iter().map(|p| p.bytes.len()).sum::<usize>() <= bytes.len());
        }

        /// Any bytes behind the start of a long header.
        #[test]
        fn any_long_header_does(first in 0xc0u8..=0xff, rest in prop::collection::vec(any::<u8>(), 0..60)) {
            let bytes = [&[first, 0, 0, 0, 1][..], &rest].concat();
            for packet in packets(&bytes, bytes.len(), 0) {
                prop_assert!(packet.length <= bytes.len());
            }
        }
    }
}
