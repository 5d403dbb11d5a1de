//! A listening host under attack by many sources that forge joins and send segments full of MPTCP options, with
//! legitimate Multipath TCP connections at the same time.

use std::net::IpAddr;

use gargalo_units::Seq;
use gargalo_wire::ip::{Datagram, Transport, Verify};
use gargalo_wire::mptcp::{CapableFlags, CapableKeys, Join, MptcpOption};
use gargalo_wire::tcp::{Flags, Options, Segment};

use super::multi::{config, mptcp, on, open, subflows};
use super::*;

/// The kinds of forged segments.
pub const KINDS: [&str; 6] = [
    "joins with the right token",
    "joins with another token",
    "third packets of joins with a wrong code",
    "SYNs with MP_CAPABLE",
    "SYNs full of options",
    "segments full of options for the legitimate connection",
];

/// The result of the attack.
#[derive(Debug)]
pub struct Outcome {
    pub made: [u64; KINDS.len()],
    /// Bytes of the legitimate connection that arrived, at the server and at the client, all of them correct.
    pub moved: [u64; 2],
    /// Its goodput in both directions together, in Mbit/s of virtual time.
    pub goodput: f64,
    /// Bytes of a legitimate connection that was opened under attack.
    pub moved_late: u64,
    pub most_subflows: usize,
    pub most_connections: usize,
    pub joins_refused: u64,
}

/// Sends `total` segments to the server, `burst` in each millisecond. `watch` is called at intervals.
#[track_caller]
pub fn attack_joins(seed: u64, total: u64, burst: u64, watch: &mut dyn FnMut()) -> Outcome {
    let mut w = World::with([config(CLIENT), config(SERVER)], Network::default());
    w.keep = 64;
    let ids = open(&mut w, [&mptcp(), &mptcp()]);
    let token = w.hosts[SERVER].multipath(ids[SERVER]).unwrap().token();
    let mut attacker = Attacker {
        rng: Pcg64::new(u128::from(seed), 5),
        token,
        made: [0; KINDS.len()],
    };
    let mut out = Outcome {
        made: attacker.made,
        moved: [0; 2],
        goodput: 0.0,
        moved_late: 0,
        most_subflows: 0,
        most_connections: 0,
        joins_refused: 0,
    };
    let mut streams = [CLIENT, SERVER].map(|from| Transfer::new(ids, from, u64::MAX));
    let mut late: Option<Transfer> = None;
    let start = w.now;
    let rounds = total.div_ceil(burst.max(1)).max(1_000);
    for round in 0..rounds {
        for s in &mut streams {
            s.step(&mut w.hosts);
        }
        if let Some(t) = &mut late {
            t.step(&mut w.hosts);
        } else if 2 * round >= rounds {
            let ids = w.connect(server(false), &mptcp());
            late = Some(Transfer::new(ids, CLIENT, 1 << 20));
        }
        w.run_for(ms(1));
        w.events.clear();
        for _ in 0..burst {
            let bytes = attacker.forge(&w.recent);
            let now = w.now;
            w.hosts[SERVER].handle(now, &bytes);
        }
        out.most_subflows = out.most_subflows.max(subflows(&w, SERVER, ids[SERVER]));
        out.most_connections = out.most_connections.max(w.hosts[SERVER].connection_count());
        if round % 1024 == 0 {
            watch();
        }
    }
    out.moved = streams.map(|s| s.read);
    let bytes: u64 = out.moved.iter().sum();
    out.goodput = bytes as f64 * 8e-6 / (w.now - start).as_secs_f64();
    out.moved_late = late.map_or(0, |t| t.read);
    out.made = attacker.made;
    out.joins_refused = w.hosts[SERVER].stats().joins_refused;
    out
}

struct Attacker {
    rng: Pcg64,
    token: u32,
    made: [u64; KINDS.len()],
}

impl Attacker {
    fn below(&mut self, n: u32) -> u32 {
        self.rng.random_range(0..n)
    }

    /// The address of one of many sources.
    fn source(&mut self) -> SocketAddr {
        let n = self.below(1 << 20);
        let ip = IpAddr::from([172, 16 + (n >> 16) as u8, (n >> 8) as u8, n as u8]);
        SocketAddr::new(ip, 1024 + self.below(60_000) as u16)
    }

    fn forge(&mut self, recent: &[VecDeque<Vec<u8>>; 2]) -> Vec<u8> {
        let mut kind = self.below(KINDS.len() as u32) as usize;
        if kind == 2 && half_open(&recent[SERVER]).is_none() {
            kind = 0;
        }
        self.made[kind] += 1;
        let dst = server(false);
        match kind {
            0 | 1 => {
                let other = self.rng.next_u32().max(1);
                let option = MptcpOption::Join(Join::Syn {
                    backup: self.below(2) == 0,
                    address_id: self.below(256) as u8,
                    receiver_token: if kind == 0 {
                        self.token
                    } else {
                        self.token ^ other
                    },
                    nonce: self.rng.next_u32(),
                });
                segment(
                    self.source(),
                    dst,
                    Flags::SYN,
                    self.rng.next_u32(),
                    0,
                    Some(option),
                )
            }
            2 => {
                let (client, answered) = half_open(&recent[SERVER]).expect("there is one");
                let mut hmac = [0; 20];
                self.rng.fill_bytes(&mut hmac);
                let option = MptcpOption::Join(Join::Ack { hmac });
                let (seq, ack) = (answered.ack.get(), answered.seq.get().wrapping_add(1));
                segment(client, dst, Flags::ACK, seq, ack, Some(option))
            }
            3 => {
                let option = MptcpOption::Capable {
                    version: 1,
                    flags: CapableFlags::from_bits(1),
                    keys: CapableKeys::None,
                };
                segment(
                    self.source(),
                    dst,
                    Flags::SYN,
                    self.rng.next_u32(),
                    0,
                    Some(option),
                )
            }
            4 => {
                let plain = segment(self.source(), dst, Flags::SYN, self.rng.next_u32(), 0, None);
                self.loaded(&plain)
            }
            _ => {
                // From an attacker who knows the ports, but not the sequence numbers.
                let theirs = recent[CLIENT].back().expect("the transfer has begun");
                let (addresses, real) = tcp(theirs).expect("TCP");
                let src = SocketAddr::new(addresses.src(), real.src_port);
                let dst = SocketAddr::new(addresses.dst(), real.dst_port);
                let seq = real.seq.get().wrapping_add(1 << 31);
                let plain = segment(src, dst, Flags::ACK, seq, real.ack.get(), None);
                self.loaded(&plain)
            }
        }
    }

    /// The same with 40 bytes of multipath options, short and long ones of every subtype, the last cut off.
    fn loaded(&mut self, plain: &[u8]) -> Vec<u8> {
        let addresses = parses(plain).expect("whole");
        let mut body = plain[20..40].to_vec();
        body[12] = 15 << 4;
        while body.len() < 60 {
            let len = [2, 3, 4, 8, 12, 20, 28, 40][self.below(8) as usize];
            let from = body.len();
            body.extend([30, len]);
            body.resize(from + usize::from(len), 0);
            self.rng.fill_bytes(&mut body[from + 2..]);
            body.truncate(60);
        }
        dress(addresses, 6, &mut body, gargalo_units::Ecn::NotEct)
    }
}

fn tcp(bytes: &[u8]) -> Option<(gargalo_wire::ip::Addresses, Segment)> {
    match Datagram::parse(bytes, Verify::All).ok()?.transport {
        Transport::Tcp(segment) => Some((parses(bytes)?, segment)),
        _ => None,
    }
}

/// The latest join of an attacker that the server has answered.
fn half_open(sent: &VecDeque<Vec<u8>>) -> Option<(SocketAddr, Segment)> {
    sent.iter().rev().find_map(|bytes| {
        let (addresses, s) = tcp(bytes)?;
        let joins = s.options.mptcp.as_deref().is_some_and(|l| {
            l.iter()
                .any(|o| matches!(o, MptcpOption::Join(Join::SynAck { .. })))
        });
        (joins && addresses.dst() != on(0, CLIENT))
            .then(|| (SocketAddr::new(addresses.dst(), s.dst_port), s))
    })
}

fn segment(
    src: SocketAddr,
    dst: SocketAddr,
    flags: Flags,
    seq: u32,
    ack: u32,
    option: Option<MptcpOption>,
) -> Vec<u8> {
    let segment = Segment {
        src_port: src.port(),
        dst_port: dst.port(),
        seq: Seq::new(seq),
        ack: Seq::new(ack),
        flags,
        window: 65_535,
        options: Options {
            mptcp: option.map(|o| Box::new(o.into())),
            ..Options::default()
        },
        ..Segment::default()
    };
    let addresses = gargalo_wire::ip::Addresses::new(src.ip(), dst.ip()).unwrap();
    let mut out = Vec::new();
    let header = gargalo_wire::ip::Header::new(addresses);
    header.emit_tcp(&segment, &mut out).unwrap();
    out
}
