//! Coalesces consecutive segments of a connection into one packet for the kernel, in the form that a network card's
//! receive offload would give it.

use std::io::IoSlice;
use std::ops::Range;

use gargalo_wire::Checksum;
use tun_rs::VirtioNetHdr;

// Of virtio_net_hdr (virtio 1.2 §5.1.6).
/// Flag: the checksum covers the pseudo header only.
pub(crate) const NEEDS_CSUM: u8 = 1;
/// Flag: the checksums are verified.
pub(crate) const DATA_VALID: u8 = 2;
/// A single packet.
pub(crate) const GSO_NONE: u8 = 0;
/// TCP segments over IPv4.
pub(crate) const GSO_TCPV4: u8 = 1;
/// TCP segments over IPv6.
pub(crate) const GSO_TCPV6: u8 = 4;

const TCP: u8 = 6;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
/// Offset of the checksum in a TCP header.
const TCP_CHECKSUM: usize = 16;

/// How the TCP checksums of datagrams are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// They are complete.
    Done,
    /// They cover the pseudo header only: the device computes the rest.
    Left,
}

/// A sequence of datagrams, coalesced where possible.
#[derive(Debug)]
pub struct Batch {
    sums: Sums,
    bytes: Vec<u8>,
    runs: Vec<Joined>,
    /// The latest run of each sending connection, as an index.
    open: Vec<usize>,
}

/// Number of connections whose runs are kept open at a time; their segments may be interleaved.
const OPEN: usize = 32;

/// A run of segments in a batch.
#[derive(Debug)]
struct Joined {
    /// The first datagram; its header becomes that of the run.
    first: Range<usize>,
    /// Payloads of the following datagrams, without headers.
    rest: Vec<Range<usize>>,
    shape: Option<Shape>,
    total: usize,
    /// Nothing can be appended any more: a short segment or the PSH flag ended it.
    is_closed: bool,
}

/// The layout of a TCP segment with data that may be coalesced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    is_v6: bool,
    /// Length of the IP header.
    ip: usize,
    /// Length of both headers.
    headers: usize,
    /// Sequence number after its data.
    next: u32,
    /// Bytes of data in the first segment: the size of all but the last.
    size: usize,
}

/// A run ready to be sent.
#[derive(Debug)]
pub struct Run<'a> {
    sums: Sums,
    bytes: &'a [u8],
    joined: &'a Joined,
}

impl Batch {
    /// Creates an empty batch.
    pub fn new(sums: Sums) -> Self {
        Self {
            sums,
            bytes: Vec::new(),
            runs: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Removes all datagrams.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.runs.clear();
        self.open.clear();
    }

    /// Number of bytes collected.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Appends one datagram that `write` writes; returns `false` if it wrote none.
    pub fn push(&mut self, join: bool, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let start = self.bytes.len();
        if !write(&mut self.bytes) {
            self.bytes.truncate(start);
            return false;
        }
        let all = start..self.bytes.len();
        let shape = join.then(|| Shape::of(&self.bytes[all.clone()])).flatten();
        let Some(new) = shape else {
            // A later segment must not overtake an acknowledgement or a reset.
            let flow = flow(&self.bytes[all.clone()]);
            let (bytes, runs) = (&self.bytes, &self.runs);
            self.open
                .retain(|i| self::flow(&bytes[runs[*i].first.clone()]) != flow);
            self.add(all, None, true);
            return true;
        };
        let wanted = flow(&self.bytes[start..]);
        let known = self
            .open
            .iter()
            .position(|i| flow(&self.bytes[self.runs[*i].first.clone()]) == wanted);
        match known {
            Some(k) if self.append(self.open[k], all.clone(), &new) => {}
            known => {
                let is_closed = self.bytes[start + new.ip + 13] & PSH != 0;
                let index = self.add(all, Some(new), is_closed);
                match known {
                    Some(k) => self.open[k] = index,
                    None if self.open.len() < OPEN => self.open.push(index),
                    None => self.open[index % OPEN] = index,
                }
            }
        }
        true
    }

    fn add(&mut self, all: Range<usize>, shape: Option<Shape>, is_closed: bool) -> usize {
        self.runs.push(Joined {
            total: all.len(),
            first: all,
            rest: Vec::new(),
            shape,
            is_closed,
        });
        self.runs.len() - 1
    }

    /// The datagram that was written last.
    pub fn last(&self, from: usize) -> &[u8] {
        self.bytes.get(from..).unwrap_or_default()
    }

    /// Appends the datagram at `all` to a run, if it continues it.
    fn append(&mut self, run: usize, all: Range<usize>, new: &Shape) -> bool {
        let last = &mut self.runs[run];
        let Some(run) = last.shape.filter(|_| !last.is_closed) else {
            return false;
        };
        let seq = self.bytes[all.start + new.ip + 4..]
            .first_chunk()
            .map(|b| u32::from_be_bytes(*b));
        let fits = new.size <= run.size
            && last.total + new.size <= usize::from(u16::MAX)
            && last.rest.len() + 1 < Run::MOST_SLICES
            && (new.is_v6, new.ip, new.headers) == (run.is_v6, run.ip, run.headers)
            && seq == Some(run.next);
        if !fits || !same_headers(&self.bytes, &last.first, all.start, &run) {
            return false;
        }
        let flags_at = |start: usize| start + run.ip + 13;
        let push = self.bytes[flags_at(all.start)] & PSH;
        self.bytes[flags_at(last.first.start)] |= push;
        last.rest.push(all.start + new.headers..all.end);
        last.total += new.size;
        last.is_closed = new.size < run.size || push != 0;
        last.shape = Some(Shape {
            next: new.next,
            ..run
        });
        true
    }

    /// Sets lengths and checksums of coalesced datagrams and returns all runs in order.
    pub fn runs(&mut self) -> impl Iterator<Item = Run<'_>> {
        for run in &self.runs {
            if let (Some(shape), false) = (run.shape, run.rest.is_empty()) {
                complete(&mut self.bytes[run.first.clone()], &shape, run.total);
            }
        }
        let (sums, bytes) = (self.sums, self.bytes.as_slice());
        let run = move |joined| Run {
            sums,
            bytes,
            joined,
        };
        self.runs.iter().map(run)
    }
}

/// Addresses and ports, at their position in TCP over IP without options.
fn flow(bytes: &[u8]) -> Option<&[u8]> {
    match bytes.first()? >> 4 {
        6 => bytes.get(8..44),
        _ => bytes.get(12..24),
    }
}

/// The offset of the TCP header, in a datagram where it follows the IP header directly.
fn tcp_start(bytes: &[u8]) -> Option<usize> {
    let (start, protocol) = match bytes.first()? {
        0x45 => (20, bytes.get(9)?),
        v6 if v6 >> 4 == 6 => (40, bytes.get(6)?),
        _ => return None,
    };
    (*protocol == TCP).then_some(start)
}

/// Whether two segments differ only in fields that may differ within a run: lengths, identification, checksums,
/// sequence number and PSH.
fn same_headers(bytes: &[u8], first: &Range<usize>, second: usize, shape: &Shape) -> bool {
    let (a, b) = (&bytes[first.start..], &bytes[second..]);
    let same = |range: Range<usize>| a.get(range.clone()) == b.get(range);
    let tcp = shape.ip;
    let ip_same = if shape.is_v6 {
        same(0..4) && same(6..40)
    } else {
        same(0..2) && same(6..10) && same(12..20)
    };
    ip_same
        && same(tcp..tcp + 4)
        && same(tcp + 8..tcp + 13)
        && (a[tcp + 13] | PSH) == (b[tcp + 13] | PSH)
        && same(tcp + 14..tcp + TCP_CHECKSUM)
        && same(tcp + TCP_CHECKSUM + 2..shape.headers)
}

/// Completes the header of a run: its length, the IP checksum, and as TCP checksum the sum of the pseudo header, which
/// the kernel completes if necessary.
fn complete(bytes: &mut [u8], shape: &Shape, total: usize) {
    let tcp_len = (total - shape.ip) as u32;
    let pseudo = if shape.is_v6 {
        // Payload length: everything after the fixed header.
        bytes[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes());
        Checksum::new().add_bytes(&bytes[8..40])
    } else {
        bytes[2..4].copy_from_slice(&(total as u16).to_be_bytes());
        bytes[10..12].fill(0);
        let sum = Checksum::new().add_bytes(&bytes[..shape.ip]).finish();
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        Checksum::new().add_bytes(&bytes[12..20])
    };
    let pseudo = pseudo.add_u32(tcp_len).add_u16(u16::from(TCP)).finish();
    let at = shape.ip + TCP_CHECKSUM;
    // Not complemented: it is a partial sum.
    bytes[at..at + 2].copy_from_slice(&(!pseudo).to_be_bytes());
}

impl Shape {
    /// The layout of a TCP segment with data and no flags but ACK and PSH, without IP options or fragments.
    fn of(bytes: &[u8]) -> Option<Self> {
        let ip = tcp_start(bytes)?;
        let is_v6 = bytes[0] >> 4 == 6;
        let tcp = bytes.get(ip..)?;
        let headers = ip + usize::from(tcp.get(12)? >> 4) * 4;
        let flags = *tcp.get(13)?;
        if flags & !PSH != ACK || bytes.len() <= headers {
            return None;
        }
        let seq = u32::from_be_bytes(*tcp.get(4..)?.first_chunk()?);
        let size = bytes.len() - headers;
        Some(Self {
            is_v6,
            ip,
            headers,
            next: seq.wrapping_add(size as u32),
            size,
        })
    }
}

impl Run<'_> {
    /// Most slices of a run.
    pub const MOST_SLICES: usize = 64;

    /// The first datagram, which is the whole run if nothing was coalesced.
    pub fn first(&self) -> &[u8] {
        &self.bytes[self.joined.first.clone()]
    }

    pub(crate) fn virtio_header(&self) -> VirtioNetHdr {
        match self.joined.shape {
            Some(s) if !self.joined.rest.is_empty() => VirtioNetHdr {
                flags: NEEDS_CSUM,
                gso_type: if s.is_v6 { GSO_TCPV6 } else { GSO_TCPV4 },
                hdr_len: s.headers as u16,
                gso_size: s.size as u16,
                csum_start: s.ip as u16,
                csum_offset: TCP_CHECKSUM as u16,
            },
            _ if self.sums == Sums::Done => VirtioNetHdr::default(),
            _ => match tcp_start(self.first()) {
                Some(start) => VirtioNetHdr {
                    flags: NEEDS_CSUM,
                    gso_type: GSO_NONE,
                    csum_start: start as u16,
                    csum_offset: TCP_CHECKSUM as u16,
                    ..VirtioNetHdr::default()
                },
                None => VirtioNetHdr::default(),
            },
        }
    }

    /// Fills `out` with the slices of the run; returns their number.
    pub fn slices<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        let pieces = std::iter::once(&self.joined.first).chain(&self.joined.rest);
        let mut n = 0;
        for (to, piece) in out.iter_mut().zip(pieces) {
            *to = IoSlice::new(&self.bytes[piece.clone()]);
            n += 1;
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use gargalo_units::Seq;
    use gargalo_wire::ip::{Addresses, Datagram, Header, Transport, Verify};
    use gargalo_wire::tcp::{Flags, Payload, Segment};
    use proptest::prelude::*;

    fn addresses(v6: bool) -> Addresses {
        let pair = if v6 {
            ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap())
        } else {
            ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap())
        };
        Addresses::new(pair.0, pair.1).unwrap()
    }

    fn segment(seq: u32, data: &[u8], push: bool, window: u16) -> Segment {
        Segment {
            src_port: 1,
            dst_port: 2,
            seq: Seq::new(seq),
            ack: Seq::new(7),
            flags: if push {
                Flags::ACK | Flags::PSH
            } else {
                Flags::ACK
            },
            window,
            payload: Payload::real(Bytes::copy_from_slice(data)),
            ..Segment::default()
        }
    }

    fn push(batch: &mut Batch, v6: bool, s: &Segment) {
        let header = Header::new(addresses(v6));
        assert!(batch.push(true, |out| header.emit_tcp_offloaded(s, out).is_ok()));
    }

    /// The slices of a run as one datagram, as the kernel receives it.
    fn whole(run: &Run<'_>) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); Run::MOST_SLICES];
        let n = run.slices(&mut slices);
        slices[..n].iter().flat_map(|s| s.iter().copied()).collect()
    }

    /// The same with the checksum as the kernel completes it, from `csum_start` on.
    fn summed(run: &Run<'_>) -> Vec<u8> {
        let (header, mut bytes) = (run.virtio_header(), whole(run));
        assert_eq!(header.flags, NEEDS_CSUM);
        let start = usize::from(header.csum_start);
        let at = start + usize::from(header.csum_offset);
        let sum = Checksum::new().add_bytes(&bytes[start..]).finish();
        bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    #[test]
    fn segments_in_a_row_become_one() {
        for v6 in [false, true] {
            let mut batch = Batch::new(Sums::Left);
            let data: Vec<u8> = (0..=255).cycle().take(3000).map(|n: u16| n as u8).collect();
            // Across the wrap-around of sequence numbers; the last one is short and has the PSH flag.
            let seq = u32::MAX - 500;
            for (i, piece) in data.chunks(1000).enumerate() {
                let at = seq.wrapping_add(1000 * i as u32);
                push(&mut batch, v6, &segment(at, piece, i == 2, 100));
            }
            push(
                &mut batch,
                v6,
                &segment(seq.wrapping_add(3000), b"next", false, 100),
            );
            let runs: Vec<_> = batch.runs().collect();
            assert_eq!(runs.len(), 2);
            let header = runs[0].virtio_header();
            assert_eq!((header.gso_size, header.flags), (1000, 1));
            assert_eq!(runs[1].virtio_header().gso_type, GSO_NONE);
            let next = summed(&runs[1]);
            assert!(Datagram::parse(&next, Verify::All).is_ok());
            let bytes = summed(&runs[0]);
            let d = Datagram::parse(&bytes, Verify::All).unwrap();
            let Transport::Tcp(s) = d.transport else {
                panic!()
            };
            assert_eq!(s.payload.bytes().unwrap(), &data);
            assert!(s.flags.contains(Flags::PSH) && s.seq == Seq::new(seq));
        }
    }

    proptest! {
        /// For any sequence of pushes, the runs carry every byte of each connection in order.
        #[test]
        fn nothing_is_lost(
            steps in prop::collection::vec(
                (1usize..5, any::<bool>(), 0u16..2, any::<bool>(), any::<bool>()), 1..200)
        ) {
            let mut batch = Batch::new(Sums::Left);
            let (mut seq, mut n) = ([0u32; 2], 0u8);
            let mut sent = [Vec::new(), Vec::new()];
            for (len, pushes, window, gap, v6) in steps {
                let i = usize::from(v6);
                let data: Vec<u8> = (0..len).map(|_| { n = n.wrapping_add(1); n }).collect();
                seq[i] = seq[i].wrapping_add(u32::from(gap));
                push(&mut batch, v6, &segment(seq[i], &data, pushes, window));
                sent[i].extend_from_slice(&data);
                seq[i] = seq[i].wrapping_add(len as u32);
            }
            let mut got = [Vec::new(), Vec::new()];
            for run in batch.runs() {
                let bytes = whole(&run);
                let d = Datagram::parse(&bytes, Verify::Nothing).unwrap();
                let Transport::Tcp(s) = d.transport else { panic!() };
                got[usize::from(bytes[0] >> 4 == 6)].extend_from_slice(s.payload.bytes().unwrap());
            }
            prop_assert_eq!(got, sent);
        }
    }

    #[test]
    fn connections_that_alternate_are_joined_each_by_itself() {
        let mut batch = Batch::new(Sums::Left);
        for i in 0..10 {
            push(&mut batch, false, &segment(100 * i, &[1; 100], false, 9));
            push(&mut batch, true, &segment(100 * i, &[2; 100], false, 9));
        }
        assert_eq!(batch.runs().count(), 2);
        // An acknowledgement keeps its position.
        push(&mut batch, false, &segment(1000, b"", false, 9));
        push(&mut batch, false, &segment(1000, &[1; 100], false, 9));
        push(&mut batch, true, &segment(1000, &[2; 100], false, 9));
        assert_eq!(batch.runs().count(), 4);
    }

    #[test]
    fn complete_checksums_are_left_alone() {
        let mut batch = Batch::new(Sums::Done);
        push(&mut batch, false, &segment(1, &[1; 100], false, 9));
        push(&mut batch, false, &segment(500, &[2; 100], false, 9));
        push(&mut batch, false, &segment(600, &[3; 50], true, 9));
        let runs: Vec<_> = batch.runs().collect();
        assert_eq!(runs.len(), 2);
        let alone = runs[0].virtio_header();
        assert_eq!((alone.flags, alone.gso_type), (0, GSO_NONE));
        let joined = runs[1].virtio_header();
        assert_eq!((joined.flags, joined.gso_size), (NEEDS_CSUM, 100));
    }
}
