//! Multipath TCP (RFC 8684): which connections of a capture are subflows of one, and what it delivered.

use std::collections::HashMap;

use gargalo_units::Instant;
use sha2::{Digest, Sha256};

use crate::tcp::{Connection, DataAcks};

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
        self.most(end, |acks| Some(acks.progress))
    }

    /// The same until a sampling instant.
    pub fn delivered_until(&self, end: usize, time: Instant) -> Option<u64> {
        self.most(end, |acks| acks.until(time))
    }

    /// The most that the acknowledgements of a subflow tell of an end's data.
    fn most(&self, end: usize, progress: impl Fn(&DataAcks) -> Option<u64>) -> Option<u64> {
        let (_, number) = self.keys[end]?;
        let of = |(subflow, opener): &(Connection, usize)| {
            // The end of the subflow that acknowledges.
            let receiver = if *opener == 0 { 1 - end } else { end };
            let acks = &subflow.membership.as_ref()?.acknowledged[receiver];
            let before = acks.first?.wrapping_sub(number.wrapping_add(1) as u32);
            Some(u64::from(before) + progress(acks)?)
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
    fn a_key_has_the_token_and_the_first_number_of_the_rfc() {
        // SHA-256 of eight bytes of zero: af5570f5a1810b7a f78caf4bc70a660f 0df51e42baf91d4d e5b2328de0e83dfc.
        assert_eq!(token_and_number(0), (0xaf55_70f5, 0xe5b2_328d_e0e8_3dfc));
    }
}
