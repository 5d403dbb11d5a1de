//! Connections by the connection identifiers of their ends: an end may change its address (RFC 9000 §9).

use std::collections::HashMap;

use gargalo_wire::quic::{LONG, MOST_ID};

/// Most identifiers of all connections.
const MOST: usize = 1 << 18;
/// Shorter identifiers may be those of several connections.
const LEAST_LENGTH: usize = 4;

/// Connections, and the ends whose identifiers these are.
#[derive(Debug, Default)]
pub struct Identifiers {
    all: HashMap<Vec<u8>, (usize, usize)>,
    /// The lengths that there are, as bits.
    lengths: u32,
}

impl Identifiers {
    /// Adds identifiers of a connection, each of an end.
    pub fn add<'a>(&mut self, connection: usize, ids: impl Iterator<Item = (usize, &'a [u8])>) {
        for (end, id) in ids {
            if (LEAST_LENGTH..=MOST_ID).contains(&id.len()) && self.all.len() < MOST {
                self.lengths |= 1 << id.len();
                self.all.insert(id.to_vec(), (connection, end));
            }
        }
    }

    /// The connection of a packet with a short header, and the end that it is to.
    pub fn find(&self, packet: &[u8]) -> Option<(usize, usize)> {
        if self.all.is_empty() || packet.first()? & LONG != 0 {
            return None;
        }
        let lengths = (LEAST_LENGTH..=MOST_ID).filter(|n| self.lengths & 1 << n != 0);
        let mut ids = lengths.filter_map(|n| packet.get(1..1 + n));
        ids.find_map(|id| self.all.get(id).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_of_the_connection_whose_identifier_it_has() {
        let mut all = Identifiers::default();
        assert_eq!(all.find(&[0x40, 1, 2, 3, 4, 5]), None);
        let ids: [(usize, &[u8]); 3] = [(0, &[1, 2, 3, 4]), (1, &[9; 20]), (1, &[7])];
        all.add(5, ids.into_iter());
        assert_eq!(all.find(&[0x40, 1, 2, 3, 4, 5]), Some((5, 0)));
        assert_eq!(all.find(&[&[0x60][..], &[9; 30]].concat()), Some((5, 1)));
        // A long header, another identifier, one that is too short to be told apart, and less than one.
        for other in [
            &[0xc0, 1, 2, 3, 4, 5][..],
            &[0x40, 1, 2, 3, 5],
            &[0x40, 7, 7, 7, 7],
            &[0x40, 1],
            &[0x80, 1, 2, 3, 4, 5],
        ] {
            assert_eq!(all.find(other), None);
        }
        assert_eq!(all.find(&[]), None);
    }
}
