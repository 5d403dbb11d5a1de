//! Multipath TCP (RFC 8684): which connections of a capture are subflows of one, and what it delivered.

use std::collections::HashMap;

use gargalo_wire::mptcp::{CapableKeys, DataNumber, Join, MptcpOption};
use gargalo_wire::tcp::Options;
use sha2::{Digest, Sha256};

use crate::tcp::Connection;

/// What the options of a TCP connection say of its place in a Multipath TCP one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Membership {
    /// The keys of the end that opened it and of the other: it is the first subflow.
    keys: [Option<u64>; 2],
    /// The token with which it joined, and whether as a backup.
    joined: Option<(u32, bool)>,
    /// The data sequence numbers that each end acknowledged.
    acknowledged: [DataAcks; 2],
}

/// Acknowledged data sequence numbers: the low 32 bits of the first, and the bytes since.
#[derive(Clone, Copy, Debug, Default)]
struct DataAcks {
    first: Option<u32>,
    progress: u64,
}

impl Membership {
    /// Takes the options of a packet of the end `from`.
    pub fn note(&mut self, options: &Options, from: usize) {
        let Some(list) = &options.mptcp else {
            return;
        };
        for option in list.iter() {
            match option {
                MptcpOption::Capable { keys, .. } => self.note_keys(*keys, from),
                MptcpOption::Join(Join::Syn {
                    backup,
                    receiver_token,
                    ..
                }) => self.joined = Some((*receiver_token, *backup)),
                MptcpOption::Dss(dss) => {
                    if let Some(ack) = dss.data_ack {
                        self.acknowledged[from].note(ack);
                    }
                }
                _ => (),
            }
        }
    }

    fn note_keys(&mut self, keys: CapableKeys, from: usize) {
        let (own, other) = match keys {
            CapableKeys::None => (None, None),
            CapableKeys::Sender(sender) => (Some(sender), None),
            CapableKeys::Both { sender, receiver }
            | CapableKeys::BothAndData {
                sender, receiver, ..
            } => (Some(sender), Some(receiver)),
        };
        self.keys[from] = self.keys[from].or(own);
        self.keys[1 - from] = self.keys[1 - from].or(other);
    }

    /// Whether it joined as a backup; `None`: it is the first subflow.
    pub fn backup(&self) -> Option<bool> {
        self.joined.map(|(_, backup)| backup)
    }
}

impl DataAcks {
    fn note(&mut self, ack: DataNumber) {
        let low = match ack {
            DataNumber::Short(n) => n,
            DataNumber::Long(n) => n as u32,
        };
        let first = *self.first.get_or_insert(low);
        let further = low.wrapping_sub(first.wrapping_add(self.progress as u32)) as i32;
        self.progress += u64::try_from(further).unwrap_or(0);
    }
}

/// A Multipath TCP connection.
#[derive(Debug)]
pub struct Multipath {
    /// Its subflows in the order of their beginnings, each with the end that is the first one's opener.
    pub subflows: Vec<(Connection, usize)>,
    first_numbers: [Option<u64>; 2],
}

impl Multipath {
    /// One whose first subflow this is.
    fn new(first: Connection) -> Self {
        let number = |key: Option<u64>| key.map(|key| token_and_number(key).1);
        Self {
            first_numbers: first.membership.keys.map(number),
            subflows: vec![(first, 0)],
        }
    }

    /// The tokens of both ends.
    fn tokens(&self) -> [Option<u32>; 2] {
        let first = &self.subflows[0].0.membership;
        first.keys.map(|k| k.map(|key| token_and_number(key).0))
    }

    /// Bytes of an end's data that the other acknowledged on any subflow; `None` if that is not known.
    ///
    /// Numbers of 32 bits tell it up to 4 GiB before a subflow's first acknowledgement.
    pub fn delivered(&self, end: usize) -> Option<u64> {
        let number = self.first_numbers[end]?;
        let of = |(subflow, opener): &(Connection, usize)| {
            // The end of the subflow that acknowledges.
            let receiver = if *opener == 0 { 1 - end } else { end };
            let acks = subflow.membership.acknowledged[receiver];
            let before = acks.first?.wrapping_sub(number.wrapping_add(1) as u32);
            Some(u64::from(before) + acks.progress)
        };
        self.subflows.iter().filter_map(of).max()
    }
}

/// The token of a key, and the number before that of the first byte of its end (RFC 8684, sections 3.1 and 3.2).
fn token_and_number(key: u64) -> (u32, u64) {
    let hash = Sha256::digest(key.to_be_bytes());
    let (mut token, mut number) = ([0; 4], [0; 8]);
    token.copy_from_slice(&hash[..4]);
    number.copy_from_slice(&hash[24..]);
    (u32::from_be_bytes(token), u64::from_be_bytes(number))
}

/// A connection by itself, or with those that joined it.
#[derive(Debug)]
pub enum Joined {
    /// TCP.
    Single(Connection),
    /// Multipath TCP.
    Multipath(Multipath),
}

/// Brings together what belongs together, in the order of beginnings. A subflow whose first one was not captured stays
/// alone.
pub fn join(connections: Vec<Connection>) -> Vec<Joined> {
    let mut found: Vec<Joined> = Vec::with_capacity(connections.len());
    // By token: the number in the list, and the end that has the token.
    let mut tokens: HashMap<u32, (usize, usize)> = HashMap::new();
    for connection in connections {
        let of = connection
            .membership
            .joined
            .and_then(|(token, _)| tokens.get(&token));
        if let Some((i, end)) = of
            && let Some(Joined::Multipath(multipath)) = found.get_mut(*i)
        {
            // Who opens a subflow names the token of the other end.
            multipath.subflows.push((connection, 1 - end));
            continue;
        }
        if connection.membership.keys == [None, None] {
            found.push(Joined::Single(connection));
            continue;
        }
        let multipath = Multipath::new(connection);
        for (end, token) in multipath.tokens().into_iter().enumerate() {
            if let Some(token) = token {
                tokens.insert(token, (found.len(), end));
            }
        }
        found.push(Joined::Multipath(multipath));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_acknowledgements_wrap_and_never_go_back() {
        let mut acks = DataAcks::default();
        for n in [u32::MAX - 9, u32::MAX, 10, 4, 90] {
            acks.note(DataNumber::Short(n));
        }
        assert_eq!((acks.first, acks.progress), (Some(u32::MAX - 9), 100));
        acks.note(DataNumber::Long(0x7_0000_0000 + 100));
        assert_eq!(acks.progress, 110);
    }

    #[test]
    fn a_key_has_the_token_and_the_first_number_of_the_rfc() {
        // SHA-256 of eight bytes of zero: af5570f5a1810b7a f78caf4bc70a660f 0df51e42baf91d4d e5b2328de0e83dfc.
        assert_eq!(token_and_number(0), (0xaf55_70f5, 0xe5b2_328d_e0e8_3dfc));
    }
}
