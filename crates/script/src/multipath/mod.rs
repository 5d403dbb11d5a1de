//! MPTCP options of a script as those of the wire, and back: keys by name, and what follows from them.

mod describe;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use gargalo_mptcp::crypto::{Key, address_hmac, join_hmac, leftmost_64, leftmost_160};
use gargalo_wire::Checksum as Sum;
use gargalo_wire::mptcp::{
    AddAddr, CapableFlags, CapableKeys, DataNumber, Dss, Join, KIND, Mapping, MptcpOption, Reset,
};

use crate::ast::mptcp::{self, Address, Checksum, Code, Mptcp, Token};
use crate::ast::{Body, Packet, TcpOption};
use crate::stack::{ADDRESSES, nth};

/// Who sends a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Stack,
    Other,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Stack => Self::Other,
            Self::Other => Self::Stack,
        }
    }
}

/// What a TCP connection knows of the Multipath TCP connection that it is a subflow of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    /// Index of the Multipath TCP connection.
    group: Option<usize>,
    /// Nonces of its join: of the stack, of the other end.
    nonces: [u32; 2],
    /// Numbers of its addresses at the stack and at the other end.
    pub(crate) addresses: [u8; 2],
}

impl Flow {
    pub(crate) fn new(addresses: [u8; 2]) -> Self {
        Self {
            addresses,
            ..Self::default()
        }
    }
}

/// The keys of a Multipath TCP connection: of the stack, of the other end.
type Keys = [Option<Key>; 2];

/// The Multipath TCP connections of a script, and its variables.
#[derive(Debug)]
pub(crate) struct Multipath {
    /// First addresses of the stack and of the other end.
    bases: [IpAddr; 2],
    names: BTreeMap<String, u64>,
    addresses: BTreeMap<String, IpAddr>,
    groups: Vec<Keys>,
}

fn index(side: Side) -> usize {
    usize::from(side == Side::Other)
}

/// The number at the end of the name of an address.
pub(crate) fn number_of(name: &str) -> Result<u8, String> {
    let start = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let number = name.get(start..).and_then(|n| n.parse().ok());
    number.filter(|n| *n < ADDRESSES).ok_or_else(|| {
        format!(
            "the address {name} does not end with a number from 0 to {}",
            ADDRESSES - 1
        )
    })
}

fn truncated(octets: Option<u8>, value: u64, like: Option<DataNumber>) -> DataNumber {
    let short = match octets {
        Some(octets) => octets == 4,
        None => matches!(like, Some(DataNumber::Short(_))),
    };
    if short {
        DataNumber::Short(value as u32)
    } else {
        DataNumber::Long(value)
    }
}

/// The checksum of a mapping over zeros (RFC 8684 §3.3.1).
fn checksum(data: u64, subflow: u32, length: u16) -> u16 {
    let sum = Sum::new().add_bytes(&data.to_be_bytes());
    let sum = sum.add_bytes(&subflow.to_be_bytes());
    sum.add_bytes(&length.to_be_bytes()).finish()
}

fn to_u64(bytes: &[u8]) -> Result<u64, String> {
    let eight = <[u8; 8]>::try_from(bytes).map_err(|_| "the code must have 8 bytes".to_owned());
    eight.map(u64::from_be_bytes)
}

impl Multipath {
    pub(crate) fn new(bases: [IpAddr; 2]) -> Self {
        Self {
            bases,
            names: BTreeMap::new(),
            addresses: BTreeMap::new(),
            groups: Vec::new(),
        }
    }

    fn keys(&self, flow: &Flow, side: Side) -> Result<(Key, Key), String> {
        let keys = flow.group.and_then(|g| self.groups.get(g));
        let keys = keys.copied().unwrap_or_default();
        let own = keys.get(index(side)).copied().flatten();
        let peer = keys.get(index(side.other())).copied().flatten();
        own.zip(peer)
            .ok_or_else(|| "no packet has shown the keys of both ends yet".to_owned())
    }

    /// The key of a side, if a packet has shown it.
    fn key_of(&self, flow: &Flow, side: Side) -> Result<Key, String> {
        let keys = flow.group.and_then(|g| self.groups.get(g));
        let key = keys.and_then(|k| k.get(index(side)).copied().flatten());
        let whose = match side {
            Side::Stack => "the stack",
            Side::Other => "the other end",
        };
        key.ok_or_else(|| format!("no packet has shown the key of {whose} yet"))
    }

    fn named(&self, name: &str) -> Result<Key, String> {
        let value = self.names.get(name).copied();
        value
            .map(Key::new)
            .ok_or_else(|| format!("the key {name} is not known yet"))
    }

    /// The value of a key: its own, the one it has, that of the packet, or one that follows from the name.
    fn value(&mut self, key: &mptcp::Key, like: Option<u64>) -> u64 {
        let drawn = || {
            let seed = key
                .name
                .bytes()
                .fold(0, |n: u64, b| n.wrapping_mul(131) + u64::from(b));
            Key::new(seed).idsn()
        };
        let known = key.value.or_else(|| self.names.get(&key.name).copied());
        let value = known.or(like).unwrap_or_else(drawn);
        self.names.insert(key.name.clone(), value);
        value
    }

    /// The option of the wire; what the script leaves open is that of `like`, or a default.
    fn build(
        &mut self,
        flow: &mut Flow,
        side: Side,
        option: &Mptcp,
        like: Option<&MptcpOption>,
    ) -> Result<MptcpOption, String> {
        Ok(match option {
            Mptcp::Capable {
                version,
                flags,
                keys,
                data,
            } => {
                let keys = self.capable(flow, side, keys, *data, like)?;
                let flags = CapableFlags::from_bits(*flags);
                MptcpOption::Capable {
                    version: *version,
                    flags,
                    keys,
                }
            }
            Mptcp::JoinSyn { .. } | Mptcp::JoinSynAck { .. } | Mptcp::JoinAck { .. } => {
                MptcpOption::Join(self.join(flow, side, option, like)?)
            }
            Mptcp::Dss { ack, mapping, fin } => {
                MptcpOption::Dss(self.dss(flow, side, *ack, *mapping, *fin, like)?)
            }
            Mptcp::AddAddress {
                id,
                address,
                port,
                code,
            } => MptcpOption::AddAddr(self.add_address(
                flow,
                side,
                (*id, address, *port, code.as_ref()),
                like,
            )?),
            Mptcp::RemoveAddress { ids } => MptcpOption::RemoveAddr(Bytes::copy_from_slice(ids)),
            Mptcp::Prio { backup } => MptcpOption::Prio { backup: *backup },
            Mptcp::Fail { value } => {
                let peer = self.key_of(flow, side.other())?;
                MptcpOption::Fail {
                    data_seq: peer.idsn().wrapping_add(*value),
                }
            }
            Mptcp::FastClose { key } => MptcpOption::FastClose {
                receiver_key: match key {
                    Some(key) => {
                        let like = match like {
                            Some(MptcpOption::FastClose { receiver_key }) => Some(*receiver_key),
                            _ => None,
                        };
                        self.value(key, like)
                    }
                    None => self.key_of(flow, side.other())?.get(),
                },
            },
            Mptcp::Reset { reason, transient } => MptcpOption::Reset(Reset {
                flags: u8::from(*transient),
                reason: *reason,
            }),
        })
    }

    fn capable(
        &mut self,
        flow: &Flow,
        side: Side,
        keys: &[mptcp::Key],
        data: Option<(u16, Checksum)>,
        like: Option<&MptcpOption>,
    ) -> Result<CapableKeys, String> {
        let came = match like {
            Some(MptcpOption::Capable { keys, .. }) => *keys,
            _ => CapableKeys::None,
        };
        let (first, second) = match came {
            CapableKeys::None => (None, None),
            CapableKeys::Sender(key) => (Some(key), None),
            CapableKeys::Both { sender, receiver }
            | CapableKeys::BothAndData {
                sender, receiver, ..
            } => (Some(sender), Some(receiver)),
        };
        Ok(match keys {
            [] => CapableKeys::None,
            [one] => CapableKeys::Sender(self.value(one, first)),
            [one, two, ..] => {
                let (sender, receiver) = (self.value(one, first), self.value(two, second));
                match data {
                    None => CapableKeys::Both { sender, receiver },
                    Some((length, sum)) => {
                        let known = self.key_of(flow, side);
                        let start = known.unwrap_or(Key::new(sender)).idsn().wrapping_add(1);
                        CapableKeys::BothAndData {
                            sender,
                            receiver,
                            length,
                            checksum: match sum {
                                Checksum::None => None,
                                Checksum::Auto => Some(checksum(start, 1, length)),
                                Checksum::Value(n) => Some(n),
                            },
                        }
                    }
                }
            }
        })
    }

    fn join(
        &mut self,
        flow: &mut Flow,
        side: Side,
        option: &Mptcp,
        like: Option<&MptcpOption>,
    ) -> Result<Join, String> {
        let (came_id, came_nonce) = match like {
            Some(MptcpOption::Join(
                Join::Syn {
                    address_id, nonce, ..
                }
                | Join::SynAck {
                    address_id, nonce, ..
                },
            )) => (Some(*address_id), Some(*nonce)),
            _ => (None, None),
        };
        let own_address = flow.addresses.get(index(side)).copied().unwrap_or(0);
        let id = |id: &Option<u8>| id.or(came_id).unwrap_or(own_address);
        // Any number will do.
        let drawn = 0x5eed_0000 + u32::from(own_address);
        let nonce = |n: &Option<u32>| n.or(came_nonce).unwrap_or(drawn);
        Ok(match option {
            Mptcp::JoinSyn {
                backup,
                id: i,
                token,
                nonce: n,
            } => Join::Syn {
                backup: *backup,
                address_id: id(i),
                receiver_token: match token {
                    Token::Number(n) => *n,
                    Token::Of(name) => self.named(name)?.token(),
                    Token::Auto => {
                        let group = flow.group.or(self.groups.len().checked_sub(1));
                        let flow = Flow {
                            group,
                            ..flow.clone()
                        };
                        self.key_of(&flow, side.other())?.token()
                    }
                },
                nonce: nonce(n),
            },
            Mptcp::JoinSynAck {
                backup,
                id: i,
                code,
                nonce: n,
            } => {
                let nonce = nonce(n);
                if let Some(own) = flow.nonces.get_mut(index(side)) {
                    *own = nonce;
                }
                Join::SynAck {
                    backup: *backup,
                    address_id: id(i),
                    hmac: match code {
                        Code::Bytes(bytes) => to_u64(bytes)?,
                        _ => leftmost_64(&self.join_code(flow, side, code)?),
                    },
                    nonce,
                }
            }
            Mptcp::JoinAck { code } => Join::Ack {
                hmac: match code {
                    Code::Bytes(bytes) => <[u8; 20]>::try_from(bytes.as_slice())
                        .map_err(|_| "the code must have 20 bytes".to_owned())?,
                    _ => leftmost_160(&self.join_code(flow, side, code)?),
                },
            },
            _ => return Err("not a join".to_owned()),
        })
    }

    fn join_code(&self, flow: &Flow, side: Side, code: &Code) -> Result<[u8; 32], String> {
        let (own, peer) = match code {
            Code::Keys(a, b) => (self.named(a)?, self.named(b)?),
            _ => self.keys(flow, side)?,
        };
        let nonce = |side| flow.nonces.get(index(side)).copied().unwrap_or(0);
        Ok(join_hmac(own, peer, nonce(side), nonce(side.other())))
    }

    fn dss(
        &self,
        flow: &Flow,
        side: Side,
        ack: Option<mptcp::DataNumber>,
        mapping: Option<mptcp::Mapping>,
        fin: bool,
        like: Option<&MptcpOption>,
    ) -> Result<Dss, String> {
        let (came_ack, came_data) = match like {
            Some(MptcpOption::Dss(d)) => (d.data_ack, d.mapping.map(|m| m.data_seq)),
            _ => (None, None),
        };
        let data_ack = match ack {
            None => None,
            Some(n) => {
                let base = self.key_of(flow, side.other())?.idsn();
                Some(truncated(n.octets, base.wrapping_add(n.value), came_ack))
            }
        };
        let mapping = match mapping {
            None => None,
            Some(m) => {
                let data = self.key_of(flow, side)?.idsn().wrapping_add(m.data.value);
                Some(Mapping {
                    data_seq: truncated(m.data.octets, data, came_data),
                    subflow_seq: m.subflow,
                    length: m.length,
                    checksum: match m.checksum {
                        Checksum::None => None,
                        Checksum::Auto => Some(checksum(data, m.subflow, m.length)),
                        Checksum::Value(n) => Some(n),
                    },
                })
            }
        };
        Ok(Dss {
            data_fin: fin,
            data_ack,
            mapping,
        })
    }

    fn add_address(
        &mut self,
        flow: &Flow,
        side: Side,
        (id, address, port, code): (Option<u8>, &Address, Option<u16>, Option<&Code>),
        like: Option<&MptcpOption>,
    ) -> Result<AddAddr, String> {
        // An echo repeats the address of the other side.
        let whose = if code.is_none() { side.other() } else { side };
        let ip = match address
            .value
            .or_else(|| self.addresses.get(&address.name).copied())
        {
            Some(ip) => ip,
            None => {
                let base = self.bases[usize::from(whose == Side::Other)];
                nth(base, number_of(&address.name)?)
            }
        };
        if address.value.is_some() {
            self.addresses.insert(address.name.clone(), ip);
        }
        let came = match like {
            Some(MptcpOption::AddAddr(a)) => Some(a.address_id),
            _ => None,
        };
        let address_id = id.or(came).map_or_else(|| number_of(&address.name), Ok)?;
        let hmac = match code {
            None => None,
            Some(Code::Bytes(bytes)) => Some(to_u64(bytes)?),
            Some(code) => {
                let (own, peer) = match code {
                    Code::Keys(a, b) => (self.named(a)?, self.named(b)?),
                    _ => self.keys(flow, side)?,
                };
                let at = SocketAddr::new(ip, port.unwrap_or(0));
                Some(address_hmac(own, peer, address_id, at))
            }
        };
        Ok(AddAddr {
            address_id,
            address: ip,
            port,
            hmac,
        })
    }

    /// Learns keys and nonces of an option that was sent.
    pub(crate) fn observe(&mut self, flow: &mut Flow, side: Side, option: &MptcpOption) {
        let (own, peer) = match option {
            MptcpOption::Capable { keys, .. } => {
                let group = *flow.group.get_or_insert_with(|| {
                    self.groups.push(Keys::default());
                    self.groups.len() - 1
                });
                flow.group = Some(group);
                match *keys {
                    CapableKeys::None => (None, None),
                    CapableKeys::Sender(key) => (Some(key), None),
                    CapableKeys::Both { sender, receiver }
                    | CapableKeys::BothAndData {
                        sender, receiver, ..
                    } => (Some(sender), Some(receiver)),
                }
            }
            MptcpOption::Join(join) => {
                let token = match join {
                    Join::Syn { receiver_token, .. } => Some(*receiver_token),
                    _ => None,
                };
                if flow.group.is_none() || token.is_some() {
                    let of = |keys: &Keys| keys.get(index(side.other())).copied().flatten();
                    let named = |keys: &Keys| of(keys).map(Key::token) == token;
                    let found = self.groups.iter().position(named);
                    flow.group = found.or(self.groups.len().checked_sub(1));
                }
                if let Join::Syn { nonce, .. } | Join::SynAck { nonce, .. } = join
                    && let Some(own) = flow.nonces.get_mut(index(side))
                {
                    *own = *nonce;
                }
                return;
            }
            _ => return,
        };
        if let Some(keys) = flow.group.and_then(|g| self.groups.get_mut(g)) {
            for (side, key) in [(side, own), (side.other(), peer)] {
                if let (Some(place), Some(key)) = (keys.get_mut(index(side)), key) {
                    place.get_or_insert(Key::new(key));
                }
            }
        }
    }

    /// A packet for the stack with options of the wire.
    pub(crate) fn live(&mut self, flow: &mut Flow, packet: &mut Packet) -> Result<(), String> {
        for option in options(packet) {
            if let TcpOption::Mptcp(m) = option {
                let live = self.build(flow, Side::Other, m, None)?;
                self.observe(flow, Side::Other, &live);
                *option = other(&live);
            }
        }
        Ok(())
    }

    /// Makes the options of a packet of the stack, which are bytes, those of the packet that was expected where they
    /// agree, and words of the language where not.
    pub(crate) fn settle(
        &mut self,
        flow: &mut Flow,
        expected: &mut Packet,
        came: &mut Packet,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        let has = |p: &mut Packet| options(p).any(|o| is_mptcp(o));
        if !has(came) && !has(expected) {
            return wrong;
        }
        let mut live: Vec<&mut TcpOption> = options(came).filter(|o| is_mptcp(o)).collect();
        for (i, option) in options(expected).filter(|o| is_mptcp(o)).enumerate() {
            let there = live.get_mut(i).and_then(|o| decoded(o).map(|d| (o, d)));
            let Some((place, came)) = there else { continue };
            let agrees = match &*option {
                TcpOption::Mptcp(m) => match self.build(flow, Side::Stack, m, Some(&came)) {
                    Ok(built) => built == came,
                    Err(message) => {
                        wrong.push(message);
                        false
                    }
                },
                raw => raw == *place,
            };
            if agrees {
                option.clone_into(place);
            }
        }
        self.tell(flow, came);
        // Padding is up to the sender.
        for packet in [expected, came] {
            if let Body::Tcp(s) = &mut packet.body
                && let Some(list) = &mut s.options
            {
                list.retain(|o| !matches!(o, TcpOption::Nop | TcpOption::Eol));
            }
        }
        wrong
    }

    /// Writes the MPTCP options of a packet of the stack in the words of the language.
    pub(crate) fn tell(&self, flow: &Flow, packet: &mut Packet) {
        for option in options(packet) {
            if let Some(m) = decoded(option).and_then(|m| self.describe(flow, &m)) {
                *option = TcpOption::Mptcp(m);
            }
        }
    }
}

fn is_mptcp(option: &TcpOption) -> bool {
    matches!(option, TcpOption::Mptcp(_) | TcpOption::Other(KIND, _))
}

/// The MPTCP option of bytes.
pub(crate) fn decoded(option: &TcpOption) -> Option<MptcpOption> {
    match option {
        TcpOption::Other(KIND, data) => Some(MptcpOption::decode(data)),
        _ => None,
    }
}

fn other(option: &MptcpOption) -> TcpOption {
    let mut bytes = Vec::new();
    option.encode(&mut bytes);
    TcpOption::Other(KIND, bytes.split_off(2))
}

fn options(packet: &mut Packet) -> impl Iterator<Item = &mut TcpOption> {
    let options = match &mut packet.body {
        Body::Tcp(segment) => segment.options.as_mut(),
        Body::Icmp(_) => None,
    };
    options.into_iter().flatten()
}
