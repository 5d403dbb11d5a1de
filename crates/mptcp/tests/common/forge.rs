//! Forged MPTCP options.

use gargalo_wire::mptcp::{
    AddAddr, CapableFlags, CapableKeys, DataNumber, Dss, Join, List, Mapping, MptcpOption, Reset,
};
use gargalo_wire::tcp::Segment;
use rand::{Rng, RngExt};
use rand_pcg::Pcg64;

use super::address;

/// The modifications of the options of a segment.
pub const NAMES: [&str; 20] = [
    "stripped",
    "bits flipped",
    "cut short or made longer",
    "MP_PRIO",
    "REMOVE_ADDR",
    "ADD_ADDR",
    "ADD_ADDR echoed",
    "MP_FAIL",
    "MP_FASTCLOSE",
    "MP_JOIN",
    "MP_CAPABLE",
    "MP_TCPRST",
    "unknown option",
    "another acknowledgement",
    "another place in the stream",
    "another length",
    "another place in the subflow",
    "another checksum",
    "DATA_FIN",
    "the mapping twice, once changed",
];

/// Forges options, with draws from a random source.
#[derive(Debug)]
pub struct Forger<R = Pcg64> {
    rng: R,
    pub made: [u64; NAMES.len()],
}

fn options(segment: &Segment) -> Vec<MptcpOption> {
    let list = segment.options.mptcp.iter();
    list.flat_map(|l| l.iter().cloned()).collect()
}

fn set(segment: &mut Segment, options: Vec<MptcpOption>) {
    let mut list = List::default();
    for o in options {
        list.push(o);
    }
    segment.options.mptcp = (!list.is_empty()).then(|| Box::new(list));
}

/// Adds an option to a segment.
pub fn append(segment: &mut Segment, option: MptcpOption) {
    let mut all = options(segment);
    all.push(option);
    set(segment, all);
}

/// Changes the data sequence signal of a segment, if there is one.
pub fn change_dss(segment: &mut Segment, change: impl FnOnce(&mut Dss)) {
    let mut all = options(segment);
    let dss = all.iter_mut().find_map(|o| match o {
        MptcpOption::Dss(d) => Some(d),
        _ => None,
    });
    if let Some(dss) = dss {
        change(dss);
        set(segment, all);
    }
}

/// The number at distance `by` from `n`.
pub fn shifted(n: DataNumber, by: u64) -> DataNumber {
    match n {
        DataNumber::Short(n) => DataNumber::Short(n.wrapping_add(by as u32)),
        DataNumber::Long(n) => DataNumber::Long(n.wrapping_add(by)),
    }
}

impl Forger {
    pub fn new(seed: u64) -> Self {
        Self::with(Pcg64::new(u128::from(seed), 41))
    }
}

impl<R: Rng> Forger<R> {
    pub fn with(rng: R) -> Self {
        Self {
            rng,
            made: [0; NAMES.len()],
        }
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.rng.random::<f64>() < p
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.rng.random_range(0..n)
    }

    /// Small and large, positive and negative, but never zero.
    fn distance(&mut self) -> u64 {
        let bits = self.rng.random_range(0..64);
        let n = (self.rng.next_u64() >> bits).max(1);
        if self.chance(0.5) {
            n
        } else {
            n.wrapping_neg()
        }
    }

    fn length(&mut self) -> u16 {
        let any = self.rng.next_u64() as u16;
        [0, 1, 2, 1427, 1429, u16::MAX, any, any >> 6][self.below(8)]
    }

    fn key(&mut self) -> u64 {
        [0, u64::MAX, self.rng.next_u64()][self.below(3)]
    }

    fn mapping(&mut self) -> Mapping {
        Mapping {
            data_seq: if self.chance(0.5) {
                DataNumber::Short(self.rng.next_u64() as u32)
            } else {
                DataNumber::Long(self.rng.next_u64())
            },
            subflow_seq: self.rng.next_u64() as u32,
            length: self.length(),
            checksum: self.chance(0.5).then_some(self.rng.next_u64() as u16),
        }
    }

    /// Modifies the options of a segment; returns which modification was made.
    /// Longer than 100 lines: one arm per modification.
    pub fn forge(&mut self, segment: &mut Segment) -> usize {
        let kind = self.below(NAMES.len());
        self.made[kind] += 1;
        let random = self.rng.next_u64();
        match kind {
            0 => segment.options.mptcp = None,
            1 | 2 => self.garble(segment, kind == 1),
            3 => append(
                segment,
                MptcpOption::Prio {
                    backup: random & 1 == 0,
                },
            ),
            4 => {
                let mut ids = vec![0; 1 + self.below(8)];
                self.rng.fill_bytes(&mut ids);
                // The address of the initial subflow has number 0, further ones small numbers: those would be
                // valid.
                ids.iter_mut().for_each(|id| *id |= 0x80);
                append(segment, MptcpOption::RemoveAddr(ids.into()));
            }
            5 | 6 => {
                let hmac = (kind == 5).then_some(random);
                let option = AddAddr {
                    address_id: self.below(256) as u8,
                    address: address(1, self.below(256)),
                    port: self.chance(0.3).then_some(random as u16),
                    hmac,
                };
                append(segment, MptcpOption::AddAddr(option));
            }
            7 => append(segment, MptcpOption::Fail { data_seq: random }),
            8 => {
                let receiver_key = self.key();
                append(segment, MptcpOption::FastClose { receiver_key });
            }
            9 => {
                let join = self.join();
                append(segment, MptcpOption::Join(join));
            }
            10 => {
                let (sender, receiver) = (self.key(), self.key());
                let keys = [
                    CapableKeys::None,
                    CapableKeys::Sender(sender),
                    CapableKeys::Both { sender, receiver },
                    CapableKeys::BothAndData {
                        sender,
                        receiver,
                        length: self.length(),
                        checksum: None,
                    },
                ][self.below(4)];
                let option = MptcpOption::Capable {
                    version: (random & 3) as u8,
                    flags: CapableFlags::from_bits((random >> 8) as u8),
                    keys,
                };
                append(segment, option);
            }
            11 => append(
                segment,
                MptcpOption::Reset(Reset {
                    flags: (random & 15) as u8,
                    reason: (random >> 8) as u8,
                }),
            ),
            12 => {
                let mut data = vec![0x90; 1 + self.below(30)];
                self.rng.fill_bytes(&mut data[1..]);
                append(segment, MptcpOption::Unknown(data.into()));
            }
            19 => {
                let mut second = None;
                change_dss(segment, |d| second = Some(*d));
                if let Some(mut dss) = second {
                    dss.mapping = Some(self.mapping());
                    append(segment, MptcpOption::Dss(dss));
                }
            }
            _ => {
                let by = self.distance();
                let length = self.length();
                change_dss(segment, |d| {
                    if let (13, Some(ack)) = (kind, &mut d.data_ack) {
                        *ack = shifted(*ack, by);
                    }
                    if kind == 18 {
                        d.data_fin = true;
                    }
                    let Some(m) = &mut d.mapping else { return };
                    match kind {
                        14 => m.data_seq = shifted(m.data_seq, by),
                        15 => m.length = length,
                        16 => m.subflow_seq = m.subflow_seq.wrapping_add(by as u32),
                        17 => m.checksum = m.checksum.map(|c| c.wrapping_add((by as u16).max(1))),
                        _ => {}
                    }
                });
            }
        }
        kind
    }

    fn join(&mut self) -> Join {
        let mut hmac = [0; 20];
        self.rng.fill_bytes(&mut hmac);
        let random = self.rng.next_u64();
        match self.below(3) {
            0 => Join::Syn {
                backup: self.chance(0.5),
                address_id: random as u8,
                receiver_token: (random >> 8) as u32,
                nonce: (random >> 32) as u32,
            },
            1 => Join::SynAck {
                backup: self.chance(0.5),
                address_id: random as u8,
                hmac: random,
                nonce: (random >> 16) as u32,
            },
            _ => Join::Ack { hmac },
        }
    }

    /// Changes the bytes of an option.
    fn garble(&mut self, segment: &mut Segment, flip: bool) {
        let mut all = options(segment);
        if all.is_empty() {
            return;
        }
        let i = self.below(all.len());
        let mut bytes = Vec::new();
        all[i].encode(&mut bytes);
        let mut data = bytes.split_off(2);
        if flip && !data.is_empty() {
            for _ in 0..=self.below(3) {
                let at = self.below(data.len() * 8);
                data[at / 8] ^= 1 << (at % 8);
            }
        } else {
            data.resize(self.below(data.len() + 4), 0);
        }
        all[i] = MptcpOption::decode(&data);
        set(segment, all);
    }
}
