//! The MPTCP option (kind 30, RFC 8684): every subtype as a value, encoded and decoded.
//!
//! The length selects the form of a subtype. An option of unknown subtype, or of a length that no
//! form has, stays [`MptcpOption::Unknown`], so that decoding never fails and loses nothing; reserved
//! bits read as zero.

mod display;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;

use crate::reader::Reader;

/// Option kind of MPTCP.
pub const KIND: u8 = 30;

/// Flags of MP_CAPABLE (RFC 8684 §3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CapableFlags(u8);

impl CapableFlags {
    /// "A": DSS checksums are required.
    pub const CHECKSUM: Self = Self(0x80);
    /// "B": extensibility, not set in version 1.
    pub const EXTENSIBLE: Self = Self(0x40);
    /// "C": no more subflows to the source address of this packet.
    pub const DENY_JOIN_INITIAL: Self = Self(0x20);
    /// "H": the handshake uses HMAC-SHA256.
    pub const HMAC_SHA256: Self = Self(0x01);

    /// From the flags byte.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
    /// The flags byte.
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// Whether all of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
impl std::ops::BitOr for CapableFlags {
    type Output = Self;
    fn bitor(self, o: Self) -> Self {
        Self(self.0 | o.0)
    }
}

/// The fields after the flags of MP_CAPABLE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CapableKeys {
    /// SYN of version 1.
    #[default]
    None,
    /// SYN/ACK (and SYN of version 0): the sender's key.
    Sender(u64),
    /// Third packet of the handshake, without data.
    Both {
        /// The sender's key.
        sender: u64,
        /// The receiver's key.
        receiver: u64,
    },
    /// Third packet with data, or first data packet.
    BothAndData {
        /// The sender's key.
        sender: u64,
        /// The receiver's key.
        receiver: u64,
        /// Data-Level Length: bytes of data that the mapping covers, from the first byte of the connection on.
        length: u16,
        /// Checksum of the mapping.
        checksum: Option<u16>,
    },
}

/// MP_JOIN (RFC 8684 §3.2), a form for each packet of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// First packet of the handshake (SYN).
    Syn {
        /// "B": to be used as backup only.
        backup: bool,
        /// Identifies the source address.
        address_id: u8,
        /// Token of the connection to join.
        receiver_token: u32,
        /// Random number of the sender.
        nonce: u32,
    },
    /// Second packet of the handshake (SYN/ACK).
    SynAck {
        /// "B": to be used as backup only.
        backup: bool,
        /// Identifies the source address.
        address_id: u8,
        /// Leftmost 64 bits of the sender's HMAC.
        hmac: u64,
        /// Random number of the sender.
        nonce: u32,
    },
    /// Third packet of the handshake (ACK).
    Ack {
        /// Leftmost 160 bits of the sender's HMAC.
        hmac: [u8; 20],
    },
}

/// A data sequence number or acknowledgement as the DSS option carries it, 4 or 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataNumber {
    /// The low 32 bits.
    Short(u32),
    /// All 64 bits.
    Long(u64),
}

impl DataNumber {
    const fn len(self) -> u32 {
        match self {
            Self::Short(_) => 4,
            Self::Long(_) => 8,
        }
    }
    const fn is_long(self) -> bool {
        matches!(self, Self::Long(_))
    }
    fn put(self, out: &mut Vec<u8>) {
        match self {
            Self::Short(n) => out.extend_from_slice(&n.to_be_bytes()),
            Self::Long(n) => out.extend_from_slice(&n.to_be_bytes()),
        }
    }
    fn take(r: &mut Reader<'_>, long: bool) -> Option<Self> {
        if long {
            r.u64().map(Self::Long)
        } else {
            r.u32().map(Self::Short)
        }
    }
}
/// A mapping of subflow bytes to the data sequence space (RFC 8684 §3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Data sequence number of the first byte.
    pub data_seq: DataNumber,
    /// Relative subflow sequence number of the first byte.
    pub subflow_seq: u32,
    /// Bytes mapped; 0 is an infinite mapping (§3.7).
    pub length: u16,
    /// Checksum, if negotiated.
    pub checksum: Option<u16>,
}

/// The data sequence signal (RFC 8684 §3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dss {
    /// "F", DATA_FIN: the sender has no data after this.
    pub data_fin: bool,
    /// DATA_ACK: the next data sequence number expected; `None`: not in the option.
    pub data_ack: Option<DataNumber>,
    /// Mapping of subflow bytes; `None`: not in the option.
    pub mapping: Option<Mapping>,
}

/// ADD_ADDR (RFC 8684 §3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddAddr {
    /// Identifies the address.
    pub address_id: u8,
    /// The address that is announced, or whose announcement is echoed.
    pub address: IpAddr,
    /// Its port, if another than the connection's.
    pub port: Option<u16>,
    /// `Some` is an announcement with its truncated HMAC, `None` the echo ("E").
    pub hmac: Option<u64>,
}

/// MP_TCPRST (RFC 8684 §3.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reset {
    /// The flags U, V, W, T, four bits; T (1) says that the condition is transient.
    pub flags: u8,
    /// Reason code of the IANA registry; 0 is unspecified.
    pub reason: u8,
}

/// An MPTCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MptcpOption {
    /// MP_CAPABLE, subtype 0.
    Capable {
        /// Protocol version, four bits: 1 for RFC 8684.
        version: u8,
        /// Flags A to H.
        flags: CapableFlags,
        /// Keys and the fields after them.
        keys: CapableKeys,
    },
    /// MP_JOIN, subtype 1.
    Join(Join),
    /// DSS, subtype 2.
    Dss(Dss),
    /// ADD_ADDR, subtype 3.
    AddAddr(AddAddr),
    /// REMOVE_ADDR, subtype 4: identifiers of addresses, at least one.
    RemoveAddr(Bytes),
    /// MP_PRIO, subtype 5.
    Prio {
        /// "B": the subflow becomes a backup.
        backup: bool,
    },
    /// MP_FAIL, subtype 6.
    Fail {
        /// Data sequence number of the failed mapping.
        data_seq: u64,
    },
    /// MP_FASTCLOSE, subtype 7.
    FastClose {
        /// The receiver's key.
        receiver_key: u64,
    },
    /// MP_TCPRST, subtype 8.
    Reset(Reset),
    /// An unknown subtype or form: all bytes after kind and length.
    Unknown(Bytes),
}

const CAPABLE: u8 = 0;
const JOIN: u8 = 1;
const DSS: u8 = 2;
const ADD_ADDR: u8 = 3;
const REMOVE_ADDR: u8 = 4;
const PRIO: u8 = 5;
const FAIL: u8 = 6;
const FASTCLOSE: u8 = 7;
const TCPRST: u8 = 8;

impl MptcpOption {
    /// Decodes the bytes after kind and length.
    pub fn decode(data: &[u8]) -> Self {
        Self::decode_known(data).unwrap_or_else(|| Self::Unknown(Bytes::copy_from_slice(data)))
    }

    fn decode_known(data: &[u8]) -> Option<Self> {
        let mut r = Reader(data);
        let first = r.u8()?;
        let (subtype, low) = (first >> 4, first & 0xf);
        let option = match subtype {
            CAPABLE => Self::Capable {
                version: low,
                flags: CapableFlags(r.u8()?),
                keys: decode_keys(&mut r, data.len())?,
            },
            JOIN => Self::Join(decode_join(&mut r, data.len(), low & 1 != 0)?),
            DSS => Self::Dss(decode_dss(&mut r)?),
            ADD_ADDR => Self::AddAddr(decode_add_addr(&mut r, data.len(), low & 1 != 0)?),
            REMOVE_ADDR if data.len() > 1 => Self::RemoveAddr(Bytes::copy_from_slice(r.rest())),
            PRIO => Self::Prio {
                backup: low & 1 != 0,
            },
            FAIL => {
                r.u8()?;
                Self::Fail { data_seq: r.u64()? }
            }
            FASTCLOSE => {
                r.u8()?;
                Self::FastClose {
                    receiver_key: r.u64()?,
                }
            }
            TCPRST => Self::Reset(Reset {
                flags: low,
                reason: r.u8()?,
            }),
            _ => return None,
        };
        r.is_empty().then_some(option)
    }

    /// Length on the wire with kind and length bytes, without padding.
    pub fn len(&self) -> u32 {
        match self {
            Self::Capable { keys, .. } => match keys {
                CapableKeys::None => 4,
                CapableKeys::Sender(_) => 12,
                CapableKeys::Both { .. } => 20,
                CapableKeys::BothAndData { checksum, .. } => {
                    22 + if checksum.is_some() { 2 } else { 0 }
                }
            },
            Self::Join(Join::Syn { .. }) => 12,
            Self::Join(Join::SynAck { .. }) => 16,
            Self::Join(Join::Ack { .. }) => 24,
            Self::Dss(dss) => dss.len(),
            Self::AddAddr(a) => {
                4 + if a.address.is_ipv4() { 4 } else { 16 }
                    + if a.port.is_some() { 2 } else { 0 }
                    + if a.hmac.is_some() { 8 } else { 0 }
            }
            Self::RemoveAddr(ids) => 3 + ids.len() as u32,
            Self::Prio { .. } => 3,
            Self::Fail { .. } | Self::FastClose { .. } => 12,
            Self::Reset(_) => 4,
            Self::Unknown(data) => 2 + data.len() as u32,
        }
    }

    /// Always `false`: an option has at least kind and length.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Appends the option with kind and length, without padding. The length byte of options that no
    /// header could hold saturates at 255.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[KIND, self.len().min(255) as u8]);
        match self {
            Self::Capable {
                version,
                flags,
                keys,
            } => {
                out.extend_from_slice(&[CAPABLE << 4 | version & 0xf, flags.0]);
                encode_keys(keys, out);
            }
            Self::Join(join) => encode_join(join, out),
            Self::Dss(dss) => dss.encode(out),
            Self::AddAddr(a) => {
                let echo = u8::from(a.hmac.is_none());
                out.extend_from_slice(&[ADD_ADDR << 4 | echo, a.address_id]);
                match a.address {
                    IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
                    IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
                }
                if let Some(port) = a.port {
                    out.extend_from_slice(&port.to_be_bytes());
                }
                if let Some(hmac) = a.hmac {
                    out.extend_from_slice(&hmac.to_be_bytes());
                }
            }
            Self::RemoveAddr(ids) => {
                out.push(REMOVE_ADDR << 4);
                out.extend_from_slice(ids);
            }
            Self::Prio { backup } => out.push(PRIO << 4 | u8::from(*backup)),
            Self::Fail { data_seq } => {
                out.extend_from_slice(&[FAIL << 4, 0]);
                out.extend_from_slice(&data_seq.to_be_bytes());
            }
            Self::FastClose { receiver_key } => {
                out.extend_from_slice(&[FASTCLOSE << 4, 0]);
                out.extend_from_slice(&receiver_key.to_be_bytes());
            }
            Self::Reset(reset) => {
                out.extend_from_slice(&[TCPRST << 4 | reset.flags & 0xf, reset.reason]);
            }
            Self::Unknown(data) => out.extend_from_slice(data),
        }
    }
}

fn decode_keys(r: &mut Reader<'_>, len: usize) -> Option<CapableKeys> {
    Some(match len + 2 {
        4 => CapableKeys::None,
        12 => CapableKeys::Sender(r.u64()?),
        20 => CapableKeys::Both {
            sender: r.u64()?,
            receiver: r.u64()?,
        },
        n @ (22 | 24) => CapableKeys::BothAndData {
            sender: r.u64()?,
            receiver: r.u64()?,
            length: r.u16()?,
            checksum: if n == 24 { Some(r.u16()?) } else { None },
        },
        _ => return None,
    })
}

fn encode_keys(keys: &CapableKeys, out: &mut Vec<u8>) {
    match *keys {
        CapableKeys::None => {}
        CapableKeys::Sender(key) => out.extend_from_slice(&key.to_be_bytes()),
        CapableKeys::Both { sender, receiver } => {
            out.extend_from_slice(&sender.to_be_bytes());
            out.extend_from_slice(&receiver.to_be_bytes());
        }
        CapableKeys::BothAndData {
            sender,
            receiver,
            length,
            checksum,
        } => {
            out.extend_from_slice(&sender.to_be_bytes());
            out.extend_from_slice(&receiver.to_be_bytes());
            out.extend_from_slice(&length.to_be_bytes());
            if let Some(sum) = checksum {
                out.extend_from_slice(&sum.to_be_bytes());
            }
        }
    }
}

fn decode_join(r: &mut Reader<'_>, len: usize, backup: bool) -> Option<Join> {
    let address_id = r.u8()?;
    Some(match len + 2 {
        12 => Join::Syn {
            backup,
            address_id,
            receiver_token: r.u32()?,
            nonce: r.u32()?,
        },
        16 => Join::SynAck {
            backup,
            address_id,
            hmac: r.u64()?,
            nonce: r.u32()?,
        },
        24 => Join::Ack { hmac: r.array()? },
        _ => return None,
    })
}

fn encode_join(join: &Join, out: &mut Vec<u8>) {
    match *join {
        Join::Syn {
            backup,
            address_id,
            receiver_token,
            nonce,
        } => {
            out.extend_from_slice(&[JOIN << 4 | u8::from(backup), address_id]);
            out.extend_from_slice(&receiver_token.to_be_bytes());
            out.extend_from_slice(&nonce.to_be_bytes());
        }
        Join::SynAck {
            backup,
            address_id,
            hmac,
            nonce,
        } => {
            out.extend_from_slice(&[JOIN << 4 | u8::from(backup), address_id]);
            out.extend_from_slice(&hmac.to_be_bytes());
            out.extend_from_slice(&nonce.to_be_bytes());
        }
        Join::Ack { hmac } => {
            out.extend_from_slice(&[JOIN << 4, 0]);
            out.extend_from_slice(&hmac);
        }
    }
}

// Flags of the DSS option (RFC 8684 §3.3).
const DSS_FIN: u8 = 0x10;
const DSS_LONG_SEQ: u8 = 0x08;
const DSS_SEQ: u8 = 0x04;
const DSS_LONG_ACK: u8 = 0x02;
const DSS_ACK: u8 = 0x01;

fn decode_dss(r: &mut Reader<'_>) -> Option<Dss> {
    let flags = r.u8()?;
    let data_ack = if flags & DSS_ACK != 0 {
        Some(DataNumber::take(r, flags & DSS_LONG_ACK != 0)?)
    } else {
        None
    };
    let mapping = if flags & DSS_SEQ != 0 {
        Some(Mapping {
            data_seq: DataNumber::take(r, flags & DSS_LONG_SEQ != 0)?,
            subflow_seq: r.u32()?,
            length: r.u16()?,
            // The checksum has no flag: the remaining length tells whether it is present.
            checksum: if r.is_empty() { None } else { Some(r.u16()?) },
        })
    } else {
        None
    };
    Some(Dss {
        data_fin: flags & DSS_FIN != 0,
        data_ack,
        mapping,
    })
}

impl Dss {
    #[inline]
    fn len(&self) -> u32 {
        let ack = self.data_ack.map_or(0, DataNumber::len);
        let mapping = self.mapping.map_or(0, |m| {
            m.data_seq.len() + 6 + if m.checksum.is_some() { 2 } else { 0 }
        });
        4 + ack + mapping
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let mut flags = 0;
        let mut set = |on: bool, flag: u8| flags |= if on { flag } else { 0 };
        set(self.data_fin, DSS_FIN);
        set(self.data_ack.is_some(), DSS_ACK);
        set(self.data_ack.is_some_and(DataNumber::is_long), DSS_LONG_ACK);
        set(self.mapping.is_some(), DSS_SEQ);
        set(
            self.mapping.is_some_and(|m| m.data_seq.is_long()),
            DSS_LONG_SEQ,
        );
        out.extend_from_slice(&[DSS << 4, flags]);
        if let Some(ack) = self.data_ack {
            ack.put(out);
        }
        if let Some(m) = &self.mapping {
            m.data_seq.put(out);
            out.extend_from_slice(&m.subflow_seq.to_be_bytes());
            out.extend_from_slice(&m.length.to_be_bytes());
            if let Some(sum) = m.checksum {
                out.extend_from_slice(&sum.to_be_bytes());
            }
        }
    }
}

fn decode_add_addr(r: &mut Reader<'_>, len: usize, echo: bool) -> Option<AddAddr> {
    let address_id = r.u8()?;
    // The bytes left after address and HMAC are the port, so the length also determines the address family.
    let body = (len - 2).checked_sub(if echo { 0 } else { 8 })?;
    let (address, port) = match body {
        4 | 6 => (IpAddr::V4(Ipv4Addr::from(r.array::<4>()?)), body == 6),
        16 | 18 => (IpAddr::V6(Ipv6Addr::from(r.array::<16>()?)), body == 18),
        _ => return None,
    };
    Some(AddAddr {
        address_id,
        address,
        port: if port { Some(r.u16()?) } else { None },
        hmac: if echo { None } else { Some(r.u64()?) },
    })
}

/// The MPTCP options of a segment in order. The first is stored inline: most segments have no other, so no
/// allocation is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    first: Option<MptcpOption>,
    rest: Vec<MptcpOption>,
}

impl List {
    /// Appends an option.
    pub fn push(&mut self, option: MptcpOption) {
        match self.first {
            None => self.first = Some(option),
            Some(_) => self.rest.push(option),
        }
    }
    /// Makes this the only option.
    #[inline]
    pub fn replace(&mut self, option: MptcpOption) {
        self.first = Some(option);
        self.rest.clear();
    }
    /// The options in order.
    pub fn iter(&self) -> impl Iterator<Item = &MptcpOption> {
        self.first.iter().chain(&self.rest)
    }
    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }
    /// The option of a list of one.
    #[inline]
    pub fn lone(&self) -> Option<&MptcpOption> {
        self.first.as_ref().filter(|_| self.rest.is_empty())
    }
    /// Length on the wire with each option padded to whole words.
    #[inline]
    pub(crate) fn aligned_len(&self) -> u32 {
        if let Some(MptcpOption::Dss(dss)) = self.lone() {
            return dss.len().next_multiple_of(4);
        }
        self.iter().map(|o| o.len().next_multiple_of(4)).sum()
    }
    /// The first data sequence signal.
    pub fn dss(&self) -> Option<&Dss> {
        self.iter().find_map(|o| match o {
            MptcpOption::Dss(dss) => Some(dss),
            _ => None,
        })
    }
}
impl From<MptcpOption> for List {
    fn from(option: MptcpOption) -> Self {
        Self {
            first: Some(option),
            rest: Vec::new(),
        }
    }
}
