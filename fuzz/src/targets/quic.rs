//! A QUIC connection over a network that the input controls, with a peer that may violate the protocol.

#[path = "../../../crates/quic/tests/pair/abuse.rs"]
#[allow(dead_code, reason = "tests count what was done")]
mod abuse;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use arbitrary::{Result, Unstructured};
use bytes::{Bytes as Content, BytesMut};
use gargalo_cc as cc;
use gargalo_quic::{
    Config, Congestion, Crypto, Datagram, Direction, Endpoint, Init, Realm, Stack, StreamId,
    change_frames,
};
use gargalo_settings::Switch;
use gargalo_units::{Duration, Ecn, Instant};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::RandomBytes;

const STEPS: u32 = 200;
/// Most datagrams that an end may send at once.
const BURST: u32 = 5_000;
const EXPIRIES: u32 = 2_000;

/// Certificates take time to create, so all inputs share them; nothing else is shared, as there are no tickets.
fn realm() -> &'static Realm {
    static REALM: OnceLock<Realm> = OnceLock::new();
    REALM.get_or_init(|| Realm::new(1).expect("a certificate can be made"))
}

fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, n], 4433))
}

fn config(bits: u8) -> Config {
    let on = |bit: u8| bits >> bit & 1 == 1;
    Config {
        crypto: if bits & 7 == 7 {
            Crypto::Tls
        } else {
            Crypto::Null
        },
        multipath: Switch::To(if on(3) { 3 } else { 1 }),
        ecn: on(4),
        stream_window: 50_000,
        connection_window: 80_000,
        send_window: 80_000,
        mtu_discovery: if on(6) { Switch::On } else { Switch::Off },
        ..Config::default()
    }
}

/// A connection; see the table of targets.
pub(crate) fn quic(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let [bits, control, handshake] = u.arbitrary().unwrap_or_default();
    let all = cc::ALGORITHMS;
    let name = all[usize::from(control) % all.len()].name;
    let congestion = Congestion::Ours(Arc::new(move |init| {
        cc::build(name, &cc::Params::new(), init).map_err(|e| e.to_string())
    }));
    let init = |side: u8| Init {
        now: Instant::ZERO,
        local: address(1 + side),
        remote: address(2 - side),
        rng: Pcg64::seed_from_u64(side.into()),
        secrets: false,
        datagrams: false,
        qlog: None,
    };
    let config = config(bits);
    let client = Endpoint::connect(realm(), &config, &congestion, init(0));
    let server = Endpoint::listen(realm(), &config, &congestion, init(1));
    let (Ok(client), Ok(server)) = (client, server) else {
        return;
    };
    let mut play = Play {
        u,
        ends: [client, server],
        now: Instant::ZERO,
        flying: Default::default(),
        streams: Vec::new(),
    };
    play.settle(0);
    if handshake & 3 != 0 {
        for _ in 0..3 {
            play.pass(1, 100);
            play.pass(0, 100);
        }
    }
    for _ in 0..STEPS {
        if play.u.is_empty() || play.step().is_err() {
            break;
        }
    }
}

struct Play<'a> {
    u: Unstructured<'a>,
    ends: [Endpoint; 2],
    now: Instant,
    flying: [VecDeque<Datagram>; 2],
    streams: Vec<StreamId>,
}

fn copy(d: &Datagram) -> Datagram {
    Datagram {
        payload: d.payload.clone(),
        ..*d
    }
}

impl Play<'_> {
    fn settle(&mut self, side: usize) {
        let end = &mut self.ends[side];
        while end.poll_event().is_some() {}
        while let Some(chunk) = end.poll_read() {
            if self.streams.len() < 100 && !self.streams.contains(&chunk.stream) {
                self.streams.push(chunk.stream);
            }
        }
        while end.poll_notice().is_some() {}
        let mut sent = 0;
        while let Some(d) = end.poll_transmit(self.now) {
            sent += 1;
            assert!(sent < BURST, "it does not stop to send: {end:?}");
            self.flying[1 - side].push_back(d);
        }
        // Of undelivered datagrams only the latest are kept.
        let waiting = &mut self.flying[1 - side];
        waiting.drain(..waiting.len().saturating_sub(500));
    }

    fn deliver(&mut self, to: usize, d: Datagram) {
        self.ends[to].handle(self.now, d.payload, d.ecn, d.remote, d.local);
        self.settle(to);
    }

    fn pass(&mut self, to: usize, most: usize) {
        for _ in 0..most {
            let Some(d) = self.flying[to].pop_front() else {
                break;
            };
            self.now += Duration::from_micros(100);
            self.deliver(to, d);
        }
    }

    fn wait_until(&mut self, t: Instant) {
        self.now = self.now.max(t);
        for side in 0..2 {
            let mut expired = 0;
            while self.ends[side]
                .poll_timeout()
                .is_some_and(|t| t <= self.now)
            {
                let at = self.now;
                self.ends[side].handle_timeout(at);
                self.settle(side);
                expired += 1;
                assert!(
                    expired < EXPIRIES,
                    "time stands still: {:?}",
                    self.ends[side]
                );
            }
        }
    }

    fn step(&mut self) -> Result<()> {
        let op: u8 = self.u.arbitrary()?;
        let to = usize::from(op & 1);
        let more = op >> 5;
        match op >> 1 & 15 {
            0..=2 => self.pass(to, 1 + usize::from(more) * 3),
            3 => drop(self.flying[to].pop_front()),
            4 => {
                if let Some(d) = self.flying[to].front().map(copy) {
                    self.deliver(to, d);
                }
            }
            5 => {
                if let Some(d) = self.flying[to].pop_back() {
                    self.deliver(to, d);
                }
            }
            6 => {
                let next = self.ends.iter_mut().filter_map(Stack::poll_timeout).min();
                if let Some(t) = next {
                    self.wait_until(t);
                }
            }
            7 => {
                let bits: u8 = self.u.arbitrary()?;
                let nanos = u64::from(bits | 0x80) << (bits & 31);
                self.wait_until(self.now + Duration::from_nanos(nanos));
            }
            8 | 9 => self.application(to, more)?,
            10 => self.damaged(to)?,
            11 => self.invented(to)?,
            _ => self.abused(to)?,
        }
        Ok(())
    }

    fn application(&mut self, side: usize, what: u8) -> Result<()> {
        let now = self.now;
        match what {
            0 => self.ends[side].close(now),
            1 => {
                let local = address(self.u.arbitrary::<u8>()? & 3);
                self.ends[side].migrate(now, local);
            }
            2 => {
                let n = self.u.arbitrary::<u8>()? & 3;
                self.ends[side].open_path(now, address(n).ip(), address(2 - side as u8));
            }
            3 => {
                let n = usize::from(self.u.arbitrary::<u8>()?);
                if let Some(stream) = self.streams.get(n % self.streams.len().max(1)) {
                    self.ends[side].finish(now, *stream);
                }
            }
            n => {
                let stream = match self.ends[side].open(now, Direction::Bidirectional) {
                    Some(s) if n < 6 => s,
                    _ => u64::from(self.u.arbitrary::<u8>()? & 7),
                };
                let len = usize::from(self.u.arbitrary::<u8>()?) * 200;
                self.ends[side].write(now, stream, Content::from(vec![7; len]));
            }
        }
        self.settle(side);
        Ok(())
    }

    /// Delivers a datagram with changed bits, or with another length.
    fn damaged(&mut self, to: usize) -> Result<()> {
        let Some(mut d) = self.flying[to].pop_front() else {
            return Ok(());
        };
        for _ in 0..=self.u.arbitrary::<u8>()? & 3 {
            let at = usize::from(self.u.arbitrary::<u16>()?) % d.payload.len().max(1);
            match d.payload.get_mut(at) {
                Some(b) => *b ^= self.u.arbitrary::<u8>()?,
                None => break,
            }
        }
        if self.u.arbitrary::<u8>()? & 3 == 0 {
            d.payload.truncate(self.u.arbitrary::<u16>()?.into());
        }
        if self.u.arbitrary::<u8>()? & 3 == 0 {
            d.local = address(self.u.arbitrary()?);
        }
        self.deliver(to, d);
        Ok(())
    }

    /// Delivers a datagram from the input, behind the beginning of a real one.
    fn invented(&mut self, to: usize) -> Result<()> {
        let begin = usize::from(self.u.arbitrary::<u8>()?) % 32;
        let len = usize::from(self.u.arbitrary::<u8>()?).min(self.u.len());
        let mut payload = BytesMut::new();
        if let Some(d) = self.flying[to].front() {
            payload.extend_from_slice(&d.payload[..begin.min(d.payload.len())]);
        }
        payload.extend_from_slice(self.u.bytes(len)?);
        if self.u.arbitrary::<bool>()? {
            payload.resize(payload.len().max(1200), 0); // minimum size of an Initial packet (RFC 9000 §14.1)
        }
        self.deliver(
            to,
            Datagram {
                payload,
                ecn: Ecn::NotEct,
                local: address(2 - to as u8),
                remote: address(1 + to as u8),
            },
        );
        Ok(())
    }

    /// Changes frames within packet protection.
    fn abused(&mut self, to: usize) -> Result<()> {
        let Some(mut d) = self.flying[to].pop_front() else {
            return Ok(());
        };
        let kind = usize::from(self.u.arbitrary::<u8>()?);
        let u = &mut self.u;
        if kind & 0x80 == 0 {
            let kind = kind % abuse::NAMES.len();
            change_frames(&mut d.payload, |f| {
                abuse::abuse(&mut RandomBytes(u), kind, f)
            });
        } else {
            let len = (kind & 0x7f).min(u.len());
            let own = u.bytes(len)?;
            change_frames(&mut d.payload, |f| {
                if kind & 1 == 0 {
                    f.clear();
                }
                f.extend_from_slice(own);
            });
        }
        self.deliver(to, d);
        Ok(())
    }
}
