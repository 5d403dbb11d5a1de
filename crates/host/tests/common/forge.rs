//! Forged datagrams: mutated copies of a connection's own, blind attacks on it, floods, false ICMP errors and
//! noise.
//!
//! Only what TCP can withstand: an attacker who sees the traffic can always end or corrupt a connection, by an
//! exact reset, by data or an acknowledgement in the right place, or by a timestamp from the future. So a forged
//! segment with a correct checksum either has guessed sequence numbers, or repeats data that was sent, or has false
//! values only where they must not matter: windows, SACK blocks, unknown options, unused bits.

use std::collections::VecDeque;

use gargalo_units::{Ecn, Seq};
use gargalo_wire::ip::{Addresses, Datagram, Header, Transport, Verify};
use gargalo_wire::tcp::{Extra, Flags, Options, Payload, SackBlocks, Segment, Timestamps};
use rand::{Rng, RngExt};
use rand_pcg::Pcg64;

/// Makes forged datagrams, of the kinds in [`NAMES`].
#[derive(Debug)]
pub struct Forger {
    pub rng: Pcg64,
    /// How many of each kind.
    pub made: [u64; KINDS],
}

pub const KINDS: usize = 10;
pub const NAMES: [&str; KINDS] = [
    "damaged (checksum wrong)",
    "cut or lengthened",
    "noise",
    "blind segments",
    "repeated",
    "resegmented",
    "lies about windows, SACK, options",
    "SYN and ACK floods",
    "ICMP about the connection",
    "noise with right checksums",
];

impl Forger {
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Pcg64::new(seed.into(), 99),
            made: [0; KINDS],
        }
    }

    /// One for the host that receives what is in `recent`; `back` is what it sent itself.
    pub fn forge(
        &mut self,
        recent: &VecDeque<Vec<u8>>,
        back: &VecDeque<Vec<u8>>,
        dst: Addresses,
    ) -> Vec<u8> {
        let kind = self.rng.random_range(0..KINDS);
        self.made[kind] += 1;
        let Some(i) = recent.len().checked_sub(1) else {
            return self.noise();
        };
        let own = recent[self.rng.random_range(0..=i)].clone();
        match kind {
            0 => self.damaged(own),
            1 => self.resized(own),
            2 => self.noise(),
            3 => self.changed(own, Self::blind),
            4 => own,
            5 => self.changed(own, Self::resegmented),
            6 => self.changed(own, Self::lying),
            7 => self.flood(dst),
            8 => {
                let i = self.rng.random_range(0..=back.len().saturating_sub(1));
                match back.get(i) {
                    Some(b) => self.icmp(b),
                    None => self.noise(),
                }
            }
            _ => self.noise_in_valid_datagram(dst),
        }
    }

    /// Flips bits; the checksum detects it. (One in 65536 random changes would not be detected.)
    fn damaged(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        for _ in 0..self.rng.random_range(1..8) {
            let i = self.rng.random_range(0..bytes.len());
            bytes[i] ^= 1 << self.rng.random_range(0..8);
        }
        self.unless_right(bytes)
    }

    fn resized(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        let n = self.rng.random_range(0..bytes.len());
        if self.rng.random() {
            bytes.truncate(n);
        } else {
            // Padding is ignored, unless the length field covers it.
            bytes.resize(bytes.len() + n, 0xa5);
            let len = (bytes.len() as u16).to_be_bytes();
            let at = if bytes[0] >> 4 == 4 { 2 } else { 4 };
            bytes[at..at + 2].copy_from_slice(&len);
        }
        self.unless_right(bytes)
    }

    /// Damage that no checksum sees is beyond TCP.
    fn unless_right(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        match Datagram::parse(&bytes, Verify::All) {
            Ok(_) => self.noise(),
            Err(_) => bytes,
        }
    }

    fn noise(&mut self) -> Vec<u8> {
        let len = self.rng.random_range(0..200);
        let mut bytes = vec![0; len];
        self.rng.fill_bytes(&mut bytes);
        if let Some(first) = bytes.first_mut()
            && self.rng.random()
        {
            *first = if self.rng.random() { 0x45 } else { 0x60 };
        }
        self.unless_right_noise(bytes)
    }

    fn unless_right_noise(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        match Datagram::parse(&bytes, Verify::All) {
            Ok(_) => Vec::new(),
            Err(_) => bytes,
        }
    }

    /// Modifies the segment and corrects the checksums.
    fn changed(&mut self, bytes: Vec<u8>, change: fn(&mut Self, &mut Segment)) -> Vec<u8> {
        let Ok(mut d) = Datagram::parse(&bytes, Verify::Nothing) else {
            return bytes;
        };
        let Transport::Tcp(segment) = &mut d.transport else {
            return bytes;
        };
        change(self, segment);
        d.header.dscp = self.rng.random_range(0..64);
        d.header.ttl = self.rng.random();
        let mut out = Vec::new();
        match d.header.emit_tcp(segment, &mut out) {
            Ok(_) => out,
            Err(_) => bytes,
        }
    }

    /// Addresses and ports are correct, sequence numbers are guessed.
    fn blind(&mut self, s: &mut Segment) {
        s.seq = Seq::new(self.rng.random());
        s.ack = Seq::new(self.rng.random());
        s.flags = Flags::from_bits(self.rng.random());
        s.window = self.rng.random();
        s.urgent = self.rng.random();
        if self.rng.random() {
            s.options.timestamps = Some(self.timestamps());
        }
        if self.rng.random_range(0..4) == 0 {
            s.options = self.options();
        }
    }

    fn timestamps(&mut self) -> Timestamps {
        Timestamps {
            value: self.rng.random(),
            echo: self.rng.random(),
        }
    }

    /// A part of data that was sent, at its sequence number.
    fn resegmented(&mut self, s: &mut Segment) {
        let len = s.payload.len();
        if len == 0 || s.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST) {
            return;
        }
        let a = self.rng.random_range(0..len);
        let b = self.rng.random_range(a..=len);
        s.payload = s.payload.slice(a, b);
        s.seq = s.seq + a;
    }

    fn lying(&mut self, s: &mut Segment) {
        if s.flags.intersects(Flags::SYN | Flags::RST) {
            return;
        }
        if self.rng.random() {
            s.window = self.rng.random();
        }
        if self.rng.random() {
            let mut blocks = SackBlocks::EMPTY;
            for _ in 0..self.rng.random_range(0..4) {
                let left = s.ack + self.rng.random_range(0..400_000);
                let len = self.rng.random_range(0..100_000);
                blocks.push(left, left + len);
            }
            s.options.sack = blocks;
        }
        if self.rng.random_range(0..3) == 0 {
            let other = vec![(self.rng.random_range(40..200), vec![7; 3].into())];
            s.options.extra = Some(Box::new(Extra {
                other,
                ..Extra::default()
            }));
        }
        if self.rng.random() {
            s.urgent = self.rng.random();
            s.flags = s.flags | Flags::URG | Flags::PSH;
        }
    }

    fn options(&mut self) -> Options {
        let mut o = Options {
            timestamps: self.rng.random::<bool>().then(|| self.timestamps()),
            ..Options::default()
        };
        o.extra = Some(Box::new(Extra {
            mss: self.rng.random::<bool>().then(|| self.rng.random()),
            window_scale: self.rng.random::<bool>().then(|| self.rng.random()),
            sack_permitted: self.rng.random(),
            fast_open: self.rng.random::<bool>().then(|| vec![1; 4].into()),
            other: Vec::new(),
        }));
        o
    }

    /// From a random address to a port with or without a listener.
    fn flood(&mut self, a: Addresses) -> Vec<u8> {
        let addresses = match a {
            Addresses::V4 { dst, .. } => Addresses::V4 {
                src: self.rng.random::<u32>().into(),
                dst,
            },
            Addresses::V6 { dst, .. } => Addresses::V6 {
                src: self.rng.random::<u128>().into(),
                dst,
            },
        };
        let port = if self.rng.random_range(0..4) == 0 {
            self.rng.random()
        } else {
            80
        };
        let flags = match self.rng.random_range(0..4) {
            0 | 1 => Flags::SYN,
            2 => Flags::ACK,
            _ => Flags::from_bits(self.rng.random()),
        };
        let segment = Segment {
            src_port: self.rng.random(),
            dst_port: port,
            seq: Seq::new(self.rng.random()),
            ack: Seq::new(self.rng.random()),
            flags,
            window: self.rng.random(),
            options: self.options(),
            payload: Payload::synthetic(self.rng.random_range(0..40)),
            ..Segment::default()
        };
        let mut out = Vec::new();
        let _ = Header::new(addresses).emit_tcp(&segment, &mut out);
        out
    }

    /// About a datagram that the host sent; the sequence number may be true.
    fn icmp(&mut self, about: &[u8]) -> Vec<u8> {
        let mut about = about.to_vec();
        if self.rng.random() {
            let i = self.rng.random_range(0..about.len().min(60));
            // The version decides how the rest is read.
            if i > 0 && i < 60 {
                about[i] ^= self.rng.random::<u8>();
            }
            if super::parses(&about).is_none() {
                return self.noise();
            }
        }
        let word = match self.rng.random_range(0..3) {
            0 => 0,
            1 => self.rng.random_range(0..2000),
            _ => self.rng.random(),
        };
        let v4 = (self.rng.random_range(0..14), self.rng.random_range(0..16));
        let v6 = (self.rng.random_range(0..5), self.rng.random_range(0..8));
        super::icmp_error(&about, word, v4, v6)
    }

    /// Random content in a valid datagram: TCP, UDP, ICMP or another protocol.
    fn noise_in_valid_datagram(&mut self, a: Addresses) -> Vec<u8> {
        let len = self.rng.random_range(0..100);
        let mut body = vec![0; len];
        self.rng.fill_bytes(&mut body);
        let protocol = match self.rng.random_range(0..5) {
            0 => 6,
            1 => 17,
            2 => 1,
            3 => 58,
            _ => self.rng.random(),
        };
        super::dress(a, protocol, &mut body, Ecn::Ce)
    }
}
