//! MPTCP options of the stack in the words of the language.

use gargalo_mptcp::crypto::Key;
use gargalo_wire::mptcp::{CapableKeys, DataNumber, Join, MptcpOption};

use super::{Flow, Multipath, Side};
use crate::ast::mptcp::{self, Address, Checksum, Code, Mptcp, Token};

fn relative(number: DataNumber, base: u64) -> mptcp::DataNumber {
    let (octets, value) = match number {
        DataNumber::Short(n) => (4, u64::from(n.wrapping_sub(base as u32))),
        DataNumber::Long(n) => (8, n.wrapping_sub(base)),
    };
    mptcp::DataNumber {
        octets: Some(octets),
        value,
    }
}

fn sum(checksum: Option<u16>) -> Checksum {
    checksum.map_or(Checksum::None, Checksum::Value)
}

impl Multipath {
    fn name(&self, value: u64) -> mptcp::Key {
        let found = self.names.iter().find(|(_, v)| **v == value);
        match found {
            Some((name, _)) => mptcp::Key {
                name: name.clone(),
                value: None,
            },
            None => mptcp::Key {
                name: "key".to_owned(),
                value: Some(value),
            },
        }
    }

    /// `None` for options that the language has no words for.
    pub(super) fn describe(&self, flow: &Flow, option: &MptcpOption) -> Option<Mptcp> {
        let base = |side| self.key_of(flow, side).map_or(0, Key::idsn);
        Some(match option {
            MptcpOption::Capable {
                version,
                flags,
                keys,
            } => {
                let (keys, data) = match *keys {
                    CapableKeys::None => (Vec::new(), None),
                    CapableKeys::Sender(key) => (vec![key], None),
                    CapableKeys::Both { sender, receiver } => (vec![sender, receiver], None),
                    CapableKeys::BothAndData {
                        sender,
                        receiver,
                        length,
                        checksum,
                    } => (vec![sender, receiver], Some((length, sum(checksum)))),
                };
                Mptcp::Capable {
                    version: *version,
                    flags: flags.bits(),
                    keys: keys.into_iter().map(|key| self.name(key)).collect(),
                    data,
                }
            }
            MptcpOption::Join(join) => self.describe_join(flow, join),
            MptcpOption::Dss(dss) => Mptcp::Dss {
                ack: dss.data_ack.map(|n| relative(n, base(Side::Other))),
                mapping: dss.mapping.map(|m| mptcp::Mapping {
                    data: relative(m.data_seq, base(Side::Stack)),
                    subflow: m.subflow_seq,
                    length: m.length,
                    checksum: sum(m.checksum),
                }),
                fin: dss.data_fin,
            },
            MptcpOption::AddAddr(a) => Mptcp::AddAddress {
                id: Some(a.address_id),
                address: Address {
                    name: "address".to_owned(),
                    value: Some(a.address),
                },
                port: a.port,
                code: a.hmac.map(|code| Code::Bytes(code.to_be_bytes().to_vec())),
            },
            MptcpOption::RemoveAddr(ids) => Mptcp::RemoveAddress { ids: ids.to_vec() },
            MptcpOption::Prio { backup } => Mptcp::Prio { backup: *backup },
            MptcpOption::Fail { data_seq } => Mptcp::Fail {
                value: data_seq.wrapping_sub(base(Side::Other)),
            },
            MptcpOption::FastClose { receiver_key } => Mptcp::FastClose {
                key: Some(self.name(*receiver_key)),
            },
            MptcpOption::Reset(r) => Mptcp::Reset {
                reason: r.reason,
                transient: r.flags & 1 != 0,
            },
            MptcpOption::Unknown(_) => return None,
        })
    }

    fn describe_join(&self, flow: &Flow, join: &Join) -> Mptcp {
        let right = self.join_code(flow, Side::Stack, &Code::Auto).ok();
        let code = |bytes: &[u8]| {
            if right.is_some_and(|right| right.starts_with(bytes)) {
                Code::Auto
            } else {
                Code::Bytes(bytes.to_vec())
            }
        };
        match join {
            Join::Syn {
                backup,
                address_id,
                receiver_token,
                nonce,
            } => {
                let mut names = self.names.iter();
                let of = names.find(|(_, key)| Key::new(**key).token() == *receiver_token);
                Mptcp::JoinSyn {
                    backup: *backup,
                    id: Some(*address_id),
                    token: match of {
                        Some((name, _)) => Token::Of(name.clone()),
                        None => Token::Number(*receiver_token),
                    },
                    nonce: Some(*nonce),
                }
            }
            Join::SynAck {
                backup,
                address_id,
                hmac,
                nonce,
            } => Mptcp::JoinSynAck {
                backup: *backup,
                id: Some(*address_id),
                code: code(&hmac.to_be_bytes()),
                nonce: Some(*nonce),
            },
            Join::Ack { hmac } => Mptcp::JoinAck { code: code(hmac) },
        }
    }
}
