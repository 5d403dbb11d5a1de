//! Packets as bytes, and back in the terms of the script.
//!
//! Our side of the stack is `local`. As in packetdrill, sequence numbers of packets with SYN are as written, and those
//! of all others count from the initial sequence number of their sender.

use std::net::IpAddr;

use gargalo_units::Ecn;
use gargalo_wire::ip::{Addresses, Datagram, Header, TCP, Transport, Verify};
use gargalo_wire::mptcp::MptcpOption;
use gargalo_wire::tcp::{Flags, RawOptions};
use gargalo_wire::{Checksum, tcp};

use crate::ast::{Body, EcnField, Icmp, Packet, Segment, TcpOption};
use crate::multipath::{Flow, decoded};

const FIN: u16 = 0x001;
const SYN: u16 = 0x002;
const PSH: u16 = 0x008;
const ACK: u16 = 0x010;
const CWR: u16 = 0x080;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// Codes of unreachable: name, of ICMP (RFC 792, RFC 1122 §3.2.2.1), of ICMPv6 (RFC 4443 §3.1).
pub(crate) const ICMP_CODES: [(&str, Option<u8>, Option<u8>); 11] = [
    ("net_unreachable", Some(0), Some(0)),
    ("host_unreachable", Some(1), Some(3)),
    ("protocol_unreachable", Some(2), None),
    ("port_unreachable", Some(3), Some(4)),
    ("frag_needed", Some(4), None),
    ("source_route_failed", Some(5), None),
    ("net_unknown", Some(6), None),
    ("host_unknown", Some(7), None),
    ("net_prohibited", Some(9), None),
    ("host_prohibited", Some(10), None),
    ("admin_prohibited", Some(13), Some(1)),
];

/// Whether the message has a form in one of the two families.
pub(crate) fn icmp_is_known(icmp: &Icmp) -> bool {
    icmp_type(icmp, false).is_some() || icmp_type(icmp, true).is_some()
}

fn icmp_type(icmp: &Icmp, v6: bool) -> Option<(u8, u8)> {
    match (icmp.kind.as_str(), icmp.code.as_deref(), v6) {
        ("unreachable", None, false) => Some((3, 0)),
        ("unreachable", None, true) => Some((1, 0)),
        ("unreachable", Some(code), _) => {
            let (_, v4_code, v6_code) = ICMP_CODES.iter().find(|(name, ..)| *name == code)?;
            if v6 {
                Some((1, (*v6_code)?))
            } else {
                Some((3, (*v4_code)?))
            }
        }
        ("packet_too_big", None, true) => Some((2, 0)),
        ("time_exceeded", None, false) => Some((11, 0)),
        ("time_exceeded", None, true) => Some((3, 0)),
        _ => None,
    }
}

/// A connection as the script sees it.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) number: u32,
    /// Port of the stack.
    pub(crate) local_port: u16,
    /// Port of the other end.
    pub(crate) remote_port: u16,
    /// Its part in a Multipath TCP connection, and its addresses.
    pub(crate) flow: Flow,
    /// Initial sequence number of the stack: live, of the script.
    initial: Option<(u32, u32)>,
    /// Initial sequence number of the other end, which is that of the script.
    remote_initial: Option<u32>,
    /// The other end has sent a SYN since the stack did.
    is_open_to_syn: bool,
    /// Timestamps of the stack: (script, live).
    timestamps: Vec<(u32, u32)>,
}

impl Connection {
    pub(crate) fn new(number: u32, local_port: u16, remote_port: u16, addresses: [u8; 2]) -> Self {
        Self {
            number,
            local_port,
            remote_port,
            flow: Flow::new(addresses),
            initial: None,
            remote_initial: None,
            is_open_to_syn: true,
            timestamps: Vec::new(),
        }
    }

    /// Learns the initial sequence number and the clock of the stack from a packet that a script expected.
    pub(crate) fn learn(&mut self, expected: &Segment, live: &Live) {
        if live.flags & SYN != 0 && expected.flags & SYN != 0 && self.is_open_to_syn {
            self.initial = Some((live.seq, expected.seq));
            self.is_open_to_syn = false;
        }
        let stated = expected.options.iter().flatten().find_map(|o| match o {
            TcpOption::Timestamps(val, _) => Some(*val),
            _ => None,
        });
        if let (Some(script), Some(live)) = (stated, live.timestamp())
            && !self.timestamps.contains(&(script, live))
        {
            self.timestamps.push((script, live));
        }
    }

    /// Sequence numbers of the stack minus those of the script, in packets with or without SYN.
    fn offset(&self, flags: u16) -> u32 {
        let (live, script) = self.initial.unwrap_or_default();
        live.wrapping_sub(if flags & SYN != 0 { script } else { 0 })
    }

    /// The same for sequence numbers of the other end.
    fn remote_offset(&self, flags: u16) -> u32 {
        if flags & SYN != 0 {
            return 0;
        }
        self.remote_initial.unwrap_or(0)
    }

    /// The stack's value of a timestamp of the script.
    fn live_timestamp(&self, script: u32) -> u32 {
        let exact = self.timestamps.iter().rev().find(|(s, _)| *s == script);
        match exact.or(self.timestamps.first()) {
            Some((s, live)) => live.wrapping_add(script.wrapping_sub(*s)),
            None => script,
        }
    }

    fn script_timestamp(&self, live: u32) -> u32 {
        match self.timestamps.first() {
            Some((s, l)) => s.wrapping_add(live.wrapping_sub(*l)),
            None => live,
        }
    }

    /// A packet to the stack, as an IP datagram; `between` leads from the other end to the stack.
    pub(crate) fn write(&mut self, packet: &Packet, between: Addresses) -> Option<Vec<u8>> {
        match &packet.body {
            Body::Tcp(s) => {
                if s.flags & SYN != 0 {
                    self.is_open_to_syn |= s.flags & ACK == 0;
                    self.remote_initial.get_or_insert(s.seq);
                }
                let bytes = self.segment(s, between);
                let class = packet.ecn.and_then(EcnField::class).unwrap_or(0);
                datagram(between, TCP, class, &bytes)
            }
            Body::Icmp(icmp) => self.icmp(icmp, self.offset(0), between),
        }
    }

    fn segment(&self, s: &Segment, between: Addresses) -> Vec<u8> {
        let offset = self.offset(s.flags);
        let options = self.options(s.options.as_deref().unwrap_or_default(), offset);
        let seq = s.seq.wrapping_add(self.remote_offset(s.flags));
        let ack = s.acknowledges().map_or(0, |ack| ack.wrapping_add(offset));
        let words = ((20 + options.len()) / 4) as u16;
        let mut out = Vec::with_capacity(20 + options.len() + s.len as usize);
        out.extend_from_slice(&self.remote_port.to_be_bytes());
        out.extend_from_slice(&self.local_port.to_be_bytes());
        out.extend_from_slice(&seq.to_be_bytes());
        out.extend_from_slice(&ack.to_be_bytes());
        out.extend_from_slice(&(words << 12 | s.flags).to_be_bytes());
        out.extend_from_slice(&s.window.unwrap_or(0).to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&s.urgent.unwrap_or(0).to_be_bytes());
        out.extend_from_slice(&options);
        out.resize(out.len() + s.len as usize, 0);
        let sum = between.pseudo_header(TCP, out.len() as u32);
        let sum = sum.add_bytes(&out).finish();
        out[16..18].copy_from_slice(&sum.to_be_bytes());
        out
    }

    /// Options as bytes, padded with zeros to whole words.
    fn options(&self, list: &[TcpOption], offset: u32) -> Vec<u8> {
        let mut out = Vec::new();
        for option in list {
            match option {
                TcpOption::Nop => out.push(1),
                TcpOption::Eol => out.push(0),
                TcpOption::Mss(mss) => {
                    out.extend_from_slice(&[2, 4]);
                    out.extend_from_slice(&mss.to_be_bytes());
                }
                TcpOption::WindowScale(shift) => out.extend_from_slice(&[3, 3, *shift]),
                TcpOption::SackPermitted => out.extend_from_slice(&[4, 2]),
                TcpOption::Sack(blocks) => {
                    out.extend_from_slice(&[5, 2 + 8 * blocks.len() as u8]);
                    for (left, right) in blocks {
                        out.extend_from_slice(&left.wrapping_add(offset).to_be_bytes());
                        out.extend_from_slice(&right.wrapping_add(offset).to_be_bytes());
                    }
                }
                TcpOption::Timestamps(val, ecr) => {
                    out.extend_from_slice(&[8, 10]);
                    out.extend_from_slice(&val.to_be_bytes());
                    let echo = if *ecr == 0 {
                        0
                    } else {
                        self.live_timestamp(*ecr)
                    };
                    out.extend_from_slice(&echo.to_be_bytes());
                }
                TcpOption::FastOpen(cookie) => {
                    out.extend_from_slice(&[34, 2 + cookie.len() as u8]);
                    out.extend_from_slice(cookie);
                }
                TcpOption::FastOpenExperimental(cookie) => {
                    out.extend_from_slice(&[254, 4 + cookie.len() as u8, 0xf9, 0x89]);
                    out.extend_from_slice(cookie);
                }
                // These are bytes already.
                TcpOption::Mptcp(_) => {}
                TcpOption::Other(kind, data) => {
                    out.extend_from_slice(&[*kind, 2 + data.len() as u8]);
                    out.extend_from_slice(data);
                }
            }
        }
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    /// An ICMP error about a segment of the stack (RFC 792, RFC 4443 §3), which quotes its IP and TCP header.
    fn icmp(&self, icmp: &Icmp, offset: u32, between: Addresses) -> Option<Vec<u8>> {
        let v6 = matches!(between, Addresses::V6 { .. });
        let (kind, code) = icmp_type(icmp, v6)?;
        let (seq, len) = icmp.about;
        let mut quoted = Vec::new();
        quoted.extend_from_slice(&self.local_port.to_be_bytes());
        quoted.extend_from_slice(&self.remote_port.to_be_bytes());
        quoted.extend_from_slice(&seq.wrapping_add(offset).to_be_bytes());
        quoted.extend_from_slice(&[0; 4]);
        quoted.extend_from_slice(&(5 << 12 | ACK).to_be_bytes());
        quoted.extend_from_slice(&[0; 6]);
        quoted.resize(20 + len as usize, 0);
        let mut quoted = datagram(between.reversed(), TCP, 0, &quoted)?;
        quoted.truncate(between.header_len() as usize + 20);
        let mut out = vec![kind, code, 0, 0];
        out.extend_from_slice(&icmp.mtu.unwrap_or(0).to_be_bytes());
        out.extend_from_slice(&quoted);
        let (protocol, start) = if v6 {
            (ICMPV6, between.pseudo_header(ICMPV6, out.len() as u32))
        } else {
            (ICMP, Checksum::new())
        };
        let sum = start.add_bytes(&out).finish();
        out[2..4].copy_from_slice(&sum.to_be_bytes());
        datagram(between, protocol, 0, &out)
    }

    /// A packet of the stack in the terms of the script.
    pub(crate) fn describe(&self, live: &Live) -> Packet {
        let begins = live.flags & SYN != 0 && self.is_open_to_syn;
        let offset = if begins {
            live.seq
        } else {
            self.offset(live.flags)
        };
        let remote = |n: u32| n.wrapping_sub(self.remote_offset(live.flags));
        let options = live.options.iter().map(|o| match o {
            TcpOption::Sack(blocks) => {
                let blocks = blocks.iter().map(|(a, b)| (remote(*a), remote(*b)));
                TcpOption::Sack(blocks.collect())
            }
            TcpOption::Timestamps(val, ecr) => {
                TcpOption::Timestamps(self.script_timestamp(*val), *ecr)
            }
            other => other.clone(),
        });
        Packet {
            inbound: false,
            connection: Some(self.number),
            between: (None, None),
            ecn: Some(if live.dscp == 0 {
                EcnField::Is(live.ecn)
            } else {
                EcnField::Class(live.dscp << 2 | live.ecn as u8)
            }),
            body: Body::Tcp(Segment {
                flags: live.flags,
                seq: live.seq.wrapping_sub(offset),
                len: live.len,
                ack: (live.flags & ACK != 0).then(|| remote(live.ack)),
                window: Some(live.window),
                urgent: (live.urgent != 0).then_some(live.urgent),
                options: Some(options.collect()),
            }),
        }
    }
}

/// An echo request (RFC 792, RFC 4443 §4.1).
pub(crate) fn echo_request(between: Addresses) -> Option<Vec<u8>> {
    let v6 = matches!(between, Addresses::V6 { .. });
    let mut out = vec![if v6 { 128 } else { 8 }, 0, 0, 0, 0, 1, 0, 1];
    let (protocol, start) = if v6 {
        (ICMPV6, between.pseudo_header(ICMPV6, out.len() as u32))
    } else {
        (ICMP, Checksum::new())
    };
    let sum = start.add_bytes(&out).finish();
    out[2..4].copy_from_slice(&sum.to_be_bytes());
    datagram(between, protocol, 0, &out)
}

/// Whether a datagram of the stack answers an echo request.
pub(crate) fn is_echo_reply(bytes: &[u8]) -> bool {
    let parsed = Datagram::parse(bytes, Verify::Nothing);
    matches!(parsed.map(|d| d.transport), Ok(Transport::Other { protocol, payload })
        if matches!((protocol, payload.first()), (ICMP, Some(0)) | (ICMPV6, Some(129))))
}

/// An IP datagram; `None`: too long.
fn datagram(between: Addresses, protocol: u8, class: u8, payload: &[u8]) -> Option<Vec<u8>> {
    let header = Header {
        dscp: class >> 2,
        ecn: Ecn::from_bits(class & 3),
        ..Header::new(between)
    };
    let mut out = Vec::with_capacity(payload.len() + 40);
    let len = u32::try_from(payload.len()).ok()?;
    header.emit(protocol, len, &mut out).ok()?;
    out.extend_from_slice(payload);
    Some(out)
}

/// A TCP segment of the stack as it came.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) flags: u16,
    seq: u32,
    pub(crate) len: u32,
    ack: u32,
    window: u16,
    urgent: u16,
    options: Vec<TcpOption>,
    ecn: Ecn,
    dscp: u8,
}

impl Live {
    /// Reads a datagram; `None` if it is not a TCP segment.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let datagram = Datagram::parse(bytes, Verify::All).ok()?;
        let Transport::Tcp(segment) = datagram.transport else {
            return None;
        };
        let header = datagram.header.addresses.header_len() as usize;
        let packet = tcp::Packet::parse(bytes.get(header..)?).ok()?;
        Some(Self {
            local: datagram.header.addresses.src(),
            remote: datagram.header.addresses.dst(),
            local_port: packet.src_port(),
            remote_port: packet.dst_port(),
            flags: packet.flags().bits(),
            seq: packet.seq().get(),
            len: segment.payload.len(),
            ack: packet.ack().get(),
            window: packet.window(),
            urgent: packet.urgent(),
            options: options(bytes.get(header + 20..header + packet.header_len())?),
            ecn: datagram.header.ecn,
            dscp: datagram.header.dscp,
        })
    }

    /// Takes the segment that follows: the two are one that was too long for the path.
    pub(crate) fn join(&mut self, next: &Self) -> bool {
        // A device that cuts a segment leaves these to the last one, or to the first.
        let last = PSH | FIN;
        let follows = (next.local, next.local_port) == (self.local, self.local_port)
            && (next.remote, next.remote_port) == (self.remote, self.remote_port)
            && next.seq == self.seq.wrapping_add(self.len)
            && next.ack == self.ack
            && next.len > 0
            && self.flags & FIN == 0
            && (next.flags | last | CWR) == (self.flags | last | CWR);
        if follows {
            self.len += next.len;
            self.flags |= next.flags & last;
            self.options.clone_from(&next.options);
        }
        follows
    }

    pub(crate) fn is_syn(&self) -> bool {
        Flags::from_bits(self.flags).contains(Flags::SYN) && self.flags & ACK == 0
    }

    /// Its MPTCP options.
    pub(crate) fn multipath(&self) -> impl Iterator<Item = MptcpOption> {
        self.options.iter().filter_map(decoded)
    }

    fn timestamp(&self) -> Option<u32> {
        self.options.iter().find_map(|o| match o {
            TcpOption::Timestamps(val, _) => Some(*val),
            _ => None,
        })
    }
}

fn options(bytes: &[u8]) -> Vec<TcpOption> {
    let word = |d: &[u8], at: usize| {
        let b = d.get(at..at + 4).and_then(|b| b.first_chunk::<4>());
        b.map_or(0, |b| u32::from_be_bytes(*b))
    };
    let raw = RawOptions::new(bytes).map_while(Result::ok);
    raw.map(|o| match (o.kind, o.data) {
        (1, _) => TcpOption::Nop,
        (2, &[a, b]) => TcpOption::Mss(u16::from_be_bytes([a, b])),
        (3, &[shift]) => TcpOption::WindowScale(shift),
        (4, []) => TcpOption::SackPermitted,
        (5, d) => {
            let blocks = (0..d.len() / 8).map(|i| (word(d, 8 * i), word(d, 8 * i + 4)));
            TcpOption::Sack(blocks.collect())
        }
        (8, d) => TcpOption::Timestamps(word(d, 0), word(d, 4)),
        (254, [0xf9, 0x89, cookie @ ..]) => TcpOption::FastOpenExperimental(cookie.to_vec()),
        (34, d) => TcpOption::FastOpen(d.to_vec()),
        (kind, d) => TcpOption::Other(kind, d.to_vec()),
    })
    .collect()
}

/// What differs between a packet that was expected and one that came; empty if nothing does. `ticks`: how far values of
/// timestamps may differ, `None` if they are not compared. `several`: the packet came as several segments.
pub(crate) fn differences(
    expected: &Packet,
    came: &Packet,
    ticks: Option<u32>,
    several: bool,
) -> Vec<String> {
    let (Body::Tcp(e), Body::Tcp(c)) = (&expected.body, &came.body) else {
        return vec!["not a TCP segment".to_owned()];
    };
    let mut list = Vec::new();
    let mut tell = |is_equal: bool, what: &str, e: String, c: String| {
        if !is_equal {
            list.push(format!("{what}: expected {e}, came {c}"));
        }
    };
    let flags = crate::print::flags_text;
    // A sender may push any data (RFC 9293 §3.9.1.2). Linux pushes each packet that it leaves to the device to cut.
    let pushed = match several {
        true => e.flags & !PSH | c.flags & PSH,
        false => e.flags | if c.len > 0 { c.flags & PSH } else { 0 },
    };
    tell(pushed == c.flags, "flags", flags(e.flags), flags(c.flags));
    tell(
        e.seq == c.seq,
        "sequence number",
        e.seq.to_string(),
        c.seq.to_string(),
    );
    tell(
        e.len == c.len,
        "payload",
        e.len.to_string(),
        c.len.to_string(),
    );
    let optional = |n: Option<u32>| n.map_or("none".to_owned(), |n| n.to_string());
    let (a, b) = (e.acknowledges(), c.acknowledges());
    tell(a == b, "ack", optional(a), optional(b));
    if let Some(window) = e.window {
        let came = c.window.unwrap_or(0);
        tell(window == came, "win", window.to_string(), came.to_string());
    }
    let urgent = |s: &Segment| s.urgent.unwrap_or(0);
    let (a, b) = (urgent(e), urgent(c));
    tell(a == b, "urg", a.to_string(), b.to_string());
    let ecn_equal = match (expected.ecn, came.ecn) {
        (None, _) => true,
        (Some(EcnField::Class(is)), b) => b.and_then(EcnField::class) == Some(is),
        (Some(EcnField::Capable), b) => b
            .and_then(EcnField::class)
            .is_some_and(|c| matches!(c & 3, 1 | 2)),
        (Some(EcnField::Is(is)), b) => {
            b.and_then(EcnField::class).map(|c| Ecn::from_bits(c & 3)) == Some(is)
        }
    };
    tell(
        ecn_equal,
        "ECN field",
        format!("{:?}", expected.ecn),
        format!("{:?}", came.ecn),
    );
    if let (Some(e), Some(c)) = (&e.options, &c.options) {
        let stated: Vec<&TcpOption> = e.iter().filter(|o| **o != TcpOption::Eol).collect();
        let equal = stated.len() == c.len()
            && stated
                .iter()
                .zip(c)
                .all(|(a, b)| options_agree(a, b, ticks));
        let text = |list: &mut dyn Iterator<Item = String>| {
            let list: Vec<String> = list.collect();
            format!("<{}>", list.join(","))
        };
        let (e, c) = (
            text(&mut e.iter().map(ToString::to_string)),
            text(&mut c.iter().map(ToString::to_string)),
        );
        tell(equal, "options", e, c);
    }
    list
}

fn options_agree(expected: &TcpOption, came: &TcpOption, ticks: Option<u32>) -> bool {
    match (expected, came) {
        (TcpOption::Timestamps(a, x), TcpOption::Timestamps(b, y)) => {
            x == y && ticks.is_none_or(|most| a.abs_diff(*b) <= most)
        }
        (a, b) => a == b,
    }
}
