//! Multipath TCP (RFC 8684): which connections of a capture are subflows of one, and what it delivered.

use std::collections::HashMap;

use gargalo_units::{Duration, Instant};
use gargalo_wire::mptcp::{CapableKeys, DataNumber, Join, List, MptcpOption};
use sha2::{Digest, Sha256};

use crate::packet::Packet;
use crate::tcp::Connection;

/// What the options of a TCP connection say of its place in a Multipath TCP one.
#[derive(Clone, Debug, Default)]
pub struct Membership {
    /// The keys of the end that opened it and of the other: it is the first subflow.
    keys: [Option<u64>; 2],
    /// The token with which it joined, and whether as a backup.
    joined: Option<(u32, bool)>,
    /// The data sequence numbers that each end acknowledged.
    acknowledged: [DataAcks; 2],
}

/// Acknowledged data sequence numbers: the low 32 bits of the first, and the bytes since, also at instants.
#[derive(Clone, Debug, Default)]
struct DataAcks {
    place: Option<usize>,
    first: Option<u32>,
    progress: u64,
    samples: Vec<(Instant, u64)>,
}

impl Membership {
    /// Takes the options of a packet of the end `from`.
    pub fn note(&mut self, packet: &Packet, options: &List, from: usize, interval: Duration) {
        for option in options.iter() {
            match option {
                MptcpOption::Capable { keys, .. } => self.note_keys(*keys, from),
                MptcpOption::Join(Join::Syn {
                    backup,
                    receiver_token,
                    ..
                }) => self.joined = Some((*receiver_token, *backup)),
                MptcpOption::Dss(dss) => {
                    if let Some(ack) = dss.data_ack {
                        let acks = &mut self.acknowledged[from];
                        // At one place: others see the same later, by their clocks.
                        if *acks.place.get_or_insert(packet.place) == packet.place {
                            acks.note(packet.time, ack, interval);
                        }
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

    /// Whether it is the first subflow of a connection that both ends took for one of Multipath TCP.
    fn is_first(&self) -> bool {
        let numbered = self.acknowledged.iter().any(|acks| acks.first.is_some());
        numbered && self.keys.iter().any(Option::is_some)
    }

    /// Whether it joined as a backup.
    pub fn is_backup(&self) -> bool {
        self.joined.is_some_and(|(_, backup)| backup)
    }
}

impl DataAcks {
    fn note(&mut self, now: Instant, ack: DataNumber, interval: Duration) {
        let step = interval.as_nanos().max(1);
        let grid = Instant::from_nanos(now.as_nanos() / step * step);
        if self.samples.last().is_none_or(|(at, _)| *at < grid) {
            self.samples.push((grid, self.progress));
        }
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
    /// Of each end the token, and the number before that of its first byte.
    keys: [Option<(u32, u64)>; 2],
}

impl Multipath {
    /// One whose first subflow this is.
    fn new(first: Connection) -> Self {
        let keys = first.membership.as_ref().map_or([None; 2], |m| m.keys);
        Self {
            keys: keys.map(|key| key.map(token_and_number)),
            subflows: vec![(first, 0)],
        }
    }

    /// Bytes of an end's data that the other acknowledged on any subflow; `None` if that is not known.
    ///
    /// Numbers of 32 bits tell it up to 4 GiB before a subflow's first acknowledgement.
    pub fn delivered(&self, end: usize) -> Option<u64> {
        self.most(end, |acks| acks.progress)
    }

    /// The same until a sampling instant.
    pub fn delivered_until(&self, end: usize, time: Instant) -> Option<u64> {
        self.most(end, |acks| {
            // What was acknowledged before the first of these is what was until `time`.
            let later = acks.samples.partition_point(|(at, _)| *at < time);
            acks.samples.get(later).map_or(acks.progress, |(_, n)| *n)
        })
    }

    /// The most that the acknowledgements of a subflow tell of an end's data.
    fn most(&self, end: usize, progress: impl Fn(&DataAcks) -> u64) -> Option<u64> {
        let (_, number) = self.keys[end]?;
        let of = |(subflow, opener): &(Connection, usize)| {
            // The end of the subflow that acknowledges.
            let receiver = if *opener == 0 { 1 - end } else { end };
            let acks = &subflow.membership.as_ref()?.acknowledged[receiver];
            let before = acks.first?.wrapping_sub(number.wrapping_add(1) as u32);
            Some(u64::from(before) + progress(acks))
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
    Single(Box<Connection>),
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
        let Some(membership) = &connection.membership else {
            found.push(Joined::Single(Box::new(connection)));
            continue;
        };
        let first = membership.joined.and_then(|(token, _)| tokens.get(&token));
        if let Some((i, end)) = first
            && let Some(Joined::Multipath(multipath)) = found.get_mut(*i)
        {
            // Who opens a subflow names the token of the other end.
            multipath.subflows.push((connection, 1 - end));
            continue;
        }
        if !membership.is_first() {
            found.push(Joined::Single(Box::new(connection)));
            continue;
        }
        let multipath = Multipath::new(connection);
        for (end, key) in multipath.keys.iter().enumerate() {
            if let Some((token, _)) = key {
                tokens.insert(*token, (found.len(), end));
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
            acks.note(
                Instant::ZERO,
                DataNumber::Short(n),
                Duration::from_millis(100),
            );
        }
        assert_eq!((acks.first, acks.progress), (Some(u32::MAX - 9), 100));
        let later = Instant::from_nanos(250_000_000);
        acks.note(
            later,
            DataNumber::Long(0x7_0000_0000 + 100),
            Duration::from_millis(100),
        );
        assert_eq!(acks.progress, 110);
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        assert_eq!(acks.samples, [(at(0), 0), (at(200), 100)]);
    }

    #[test]
    fn a_key_has_the_token_and_the_first_number_of_the_rfc() {
        // SHA-256 of eight bytes of zero: af5570f5a1810b7a f78caf4bc70a660f 0df51e42baf91d4d e5b2328de0e83dfc.
        assert_eq!(token_and_number(0), (0xaf55_70f5, 0xe5b2_328d_e0e8_3dfc));
    }
}
