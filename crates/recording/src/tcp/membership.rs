//! What the options of a connection tell of Multipath TCP (RFC 8684).

use gargalo_units::{Duration, Instant};
use gargalo_wire::mptcp::{CapableKeys, DataNumber, Join, List, MptcpOption};

use crate::packet::Packet;

/// What the options of a TCP connection say of its place in a Multipath TCP one.
#[derive(Clone, Debug, Default)]
pub struct Membership {
    /// The keys of the end that opened it and of the other: it is the first subflow.
    pub keys: [Option<u64>; 2],
    /// The token with which it joined, and whether as a backup.
    pub joined: Option<(u32, bool)>,
    /// The data sequence numbers that each end acknowledged.
    pub acknowledged: [DataAcks; 2],
}

/// Acknowledged data sequence numbers: the low 32 bits of the first, and the bytes since, also at instants.
#[derive(Clone, Debug, Default)]
pub struct DataAcks {
    place: Option<usize>,
    /// The low 32 bits of the first.
    pub first: Option<u32>,
    /// Bytes since.
    pub progress: u64,
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
    pub fn is_first(&self) -> bool {
        let numbered = self.acknowledged.iter().any(|acks| acks.first.is_some());
        numbered && self.keys.iter().any(Option::is_some)
    }

    /// Whether it joined as a backup.
    pub fn is_backup(&self) -> bool {
        self.joined.is_some_and(|(_, backup)| backup)
    }
}

impl DataAcks {
    /// Bytes that were acknowledged before an instant; `None` before the first.
    pub fn until(&self, time: Instant) -> Option<u64> {
        let later = self.samples.partition_point(|(at, _)| *at < time);
        later.checked_sub(1)?;
        Some(self.samples.get(later).map_or(self.progress, |(_, n)| *n))
    }

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
        let known = [0, 100, 200, 300].map(|ms| acks.until(at(ms)));
        assert_eq!(known, [None, Some(100), Some(100), Some(110)]);
    }
}
