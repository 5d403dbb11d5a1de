//! Connections that are written here packet by packet, with keys that a key log has.

use std::net::SocketAddr;

use gargalo_units::{Duration, Ecn, Instant};
use gargalo_wire::quic::Version;
use proptest::prelude::*;

use super::protection::{
    HIDDEN, HIDDEN_BESIDE_LOSS_BITS, HeaderKey, PacketKey, Suite, initial_secrets,
};
use super::*;
use crate::packet::Transport;
use crate::secrets::{Secret, Session};
use crate::tcp::first_and_last;

const FIRST: [u8; 8] = [1; 8];
const CLIENT: [u8; 4] = [0xc1, 2, 3, 4];
const SERVER: [u8; 5] = [0x51, 2, 3, 4, 5];
const RANDOM: [u8; 32] = [7; 32];

fn secret(n: u8, suite: Suite) -> Secret {
    Secret::new(&[n; 48][..if suite == Suite::Aes256 { 48 } else { 32 }]).unwrap()
}

fn session(suite: Suite) -> Session {
    let of = |n| Some(secret(n, suite));
    Session {
        handshake: [of(1), of(2)],
        data: [of(3), of(4)],
        early: of(5),
    }
}

fn secrets(suite: Suite) -> Secrets {
    let mut all = Secrets::default();
    let line = |label: &str, secret: &Secret| {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        format!("{label} {} {}\n", hex(&RANDOM), hex(secret.bytes()))
    };
    let of = session(suite);
    for (end, name) in ["CLIENT", "SERVER"].into_iter().enumerate() {
        all.add_lines(&line(
            &format!("{name}_HANDSHAKE_TRAFFIC_SECRET"),
            of.handshake[end].as_ref().unwrap(),
        ));
        all.add_lines(&line(
            &format!("{name}_TRAFFIC_SECRET_0"),
            of.data[end].as_ref().unwrap(),
        ));
    }
    all.add_lines(&line(
        "CLIENT_EARLY_TRAFFIC_SECRET",
        of.early.as_ref().unwrap(),
    ));
    all
}

/// A connection that grows.
struct Traffic {
    version: Version,
    suite: Suite,
    secrets: Secrets,
    connection: Option<Connection>,
    numbers: [[u64; 3]; 2],
    /// The server's address of the client.
    port: u16,
    /// How many times the keys have changed.
    updates: [u32; 2],
    /// Of each datagram are kept so many bytes.
    kept: usize,
    first: Vec<u8>,
    spin: bool,
    /// The reserved bits of short headers are loss bits.
    loss_bits: bool,
}

impl Traffic {
    fn new(version: Version, suite: Suite) -> Self {
        Self {
            version,
            suite,
            secrets: secrets(suite),
            connection: None,
            numbers: [[0; 3]; 2],
            port: 1_000,
            updates: [0; 2],
            kept: usize::MAX,
            first: FIRST.to_vec(),
            spin: false,
            loss_bits: false,
        }
    }

    /// The first byte of a long header, and what follows up to the length.
    fn long_header(&self, from: usize, kind: u8, to: &[u8]) -> Vec<u8> {
        let (number, kind) = match self.version {
            Version::One => (1u32, kind),
            Version::Two => (0x6b33_43cf, (kind + 1) % 4),
        };
        let own: &[u8] = if from == 0 { &CLIENT } else { &SERVER };
        let mut bytes = vec![0xc3 | kind << 4];
        bytes.extend_from_slice(&number.to_be_bytes());
        for id in [to, own] {
            bytes.push(id.len() as u8);
            bytes.extend_from_slice(id);
        }
        bytes
    }

    /// A packet, protected.
    fn packet(&mut self, from: usize, space: Space, frames: &[u8]) -> Vec<u8> {
        let to: Vec<u8> = match (from, self.numbers[1][0]) {
            (1, _) => CLIENT.to_vec(),
            (_, 0) if space == Space::Initial => self.first.clone(),
            _ => SERVER.to_vec(),
        };
        let length = (frames.len() + 4 + 16) as u16 | 0x4000;
        let of = session(self.suite);
        let (mut header, suite, secret) = match space {
            Space::Initial => {
                let mut header = self.long_header(from, 0, &to);
                header.push(0);
                header.extend_from_slice(&length.to_be_bytes());
                let [client, server] = initial_secrets(self.version, &self.first).unwrap();
                (
                    header,
                    Suite::Aes128,
                    if from == 0 { client } else { server },
                )
            }
            Space::Handshake => {
                let mut header = self.long_header(from, 2, &to);
                header.extend_from_slice(&length.to_be_bytes());
                (header, self.suite, of.handshake[from].clone().unwrap())
            }
            Space::Data => {
                let phase = (self.updates[from] % 2) as u8;
                let loss = if self.loss_bits { 0x18 } else { 0 };
                let first = 0x43 | phase << 2 | loss | u8::from(self.spin) << 5;
                let header = [&[first][..], &to].concat();
                (header, self.suite, of.data[from].clone().unwrap())
            }
        };
        let number = self.numbers[from][space as usize];
        self.numbers[from][space as usize] += 1;
        let mut key = PacketKey::new(self.version, suite, secret.clone()).unwrap();
        if space == Space::Data {
            (0..self.updates[from]).for_each(|_| key = key.next().unwrap());
        }
        let number_at = header.len();
        header.extend_from_slice(&(number as u32).to_be_bytes());
        let sealed = key.seal(number, &header, frames);
        let mut packet = [header, sealed].concat();
        let hidden = match self.loss_bits {
            true => HIDDEN_BESIDE_LOSS_BITS,
            false => HIDDEN,
        };
        HeaderKey::new(self.version, suite, &secret)
            .unwrap()
            .protect(&mut packet, number_at, hidden);
        packet
    }

    /// Sends a datagram; whether the connection takes it.
    fn datagram(&mut self, ms: f64, from: usize, bytes: &[u8]) {
        let end = |port: u16, n: u8| SocketAddr::from(([10, 0, 0, n], port));
        let ends = [end(self.port, 1), end(443, 2)];
        let packet = packet::Packet {
            time: Instant::from_nanos((ms * 1e6) as u64),
            place: 0,
            from: ends[from],
            to: ends[1 - from],
            ecn: Ecn::NotEct,
            transport: Transport::Udp {
                ident: 0,
                payload: bytes.len() as u32,
                rtp: None,
                kept: 0..bytes.len(),
            },
        };
        let kept = &bytes[..bytes.len().min(self.kept)];
        let connection = self.connection.get_or_insert_with(|| {
            let first = handshake_packet(kept, bytes.len()).unwrap();
            Connection::new(&packet, &first)
        });
        connection.on_packet(
            &packet,
            (kept, bytes.len() as u32),
            &self.secrets,
            &Options {
                packets: true,
                ..Options::default()
            },
        );
    }

    fn send(&mut self, ms: f64, from: usize, space: Space, frames: &[u8]) {
        let packet = self.packet(from, space, frames);
        self.datagram(ms, from, &packet);
    }

    /// The handshake as the client sees it, with a round trip of 40 ms.
    fn open(&mut self) {
        self.send(0.0, 0, Space::Initial, &crypto(0, &client_hello()));
        let initial = self.packet(
            1,
            Space::Initial,
            &[&ack(0, 0)[..], &crypto(0, &[2; 60])].concat(),
        );
        let handshake = self.packet(1, Space::Handshake, &crypto(0, &encrypted_extensions()));
        self.datagram(40.0, 1, &[initial, handshake].concat());
        let initial = self.packet(0, Space::Initial, &ack(0, 0));
        let handshake = self.packet(
            0,
            Space::Handshake,
            &[&ack(0, 0)[..], &crypto(0, &[20; 36])].concat(),
        );
        self.datagram(40.0, 0, &[initial, handshake].concat());
        // HANDSHAKE_DONE.
        self.send(80.0, 1, Space::Data, &[0x1e]);
    }

    /// A packet of the client with the n-th 1,000 bytes of stream 0.
    fn data(&mut self, ms: f64, n: u64) {
        self.send(ms, 0, Space::Data, &stream(n * 1_000, 1_000));
    }

    fn finish(&mut self) -> &Connection {
        let connection = self.connection.as_mut().unwrap();
        connection.finish(Instant::from_nanos(u64::MAX / 4));
        connection
    }

    /// The client's direction.
    fn half(&mut self) -> &Half {
        let connection = self.finish();
        assert!(
            connection.views[0].is_open(),
            "{:?}",
            connection.views[0].encrypted
        );
        connection.views[0].halves[0].as_ref().unwrap()
    }
}

fn crypto(offset: u64, data: &[u8]) -> Vec<u8> {
    [&[6][..], &varint(offset), &varint(data.len() as u64), data].concat()
}

fn stream(offset: u64, length: u64) -> Vec<u8> {
    [
        &[0x0e, 0][..],
        &varint(offset),
        &varint(length),
        &vec![9; length as usize],
    ]
    .concat()
}

/// An acknowledgement of the largest and so many before it, without delay.
fn ack(largest: u64, first: u64) -> Vec<u8> {
    ack_of(largest, 0, first, &[])
}

/// With a delay in units of 8 µs, and further pairs of gap and length.
fn ack_of(largest: u64, delay: u64, first: u64, further: &[u64]) -> Vec<u8> {
    let mut bytes = vec![2];
    let all = [largest, delay, further.len() as u64 / 2, first];
    all.iter()
        .chain(further)
        .for_each(|n| bytes.extend(varint(*n)));
    bytes
}

fn varint(n: u64) -> Vec<u8> {
    match n {
        0..64 => vec![n as u8],
        _ => ((n as u32) | 0x8000_0000).to_be_bytes().to_vec(),
    }
}

fn client_hello() -> Vec<u8> {
    client_hello_of(&RANDOM)
}

fn client_hello_of(random: &[u8; 32]) -> Vec<u8> {
    let mut hello = vec![1, 0, 0, 43, 3, 3];
    hello.extend_from_slice(random);
    // No session identifier, a cipher suite, a compression method, no extensions.
    hello.extend_from_slice(&[0, 0, 2, 0x13, 1, 1, 0, 0, 0]);
    hello
}

/// With an exponent of acknowledgement delays of 4.
fn encrypted_extensions() -> Vec<u8> {
    vec![8, 0, 0, 9, 0, 7, 0, 0x39, 0, 3, 0x0a, 1, 4]
}

#[test]
fn a_connection_is_decrypted_in_every_version_and_suite() {
    for (version, suite) in [
        (Version::One, Suite::Aes128),
        (Version::One, Suite::Aes256),
        (Version::One, Suite::ChaCha20),
        (Version::Two, Suite::Aes128),
        (Version::Two, Suite::ChaCha20),
    ] {
        let mut traffic = Traffic::new(version, suite);
        traffic.open();
        (0..4).for_each(|n| traffic.data(100.0, n));
        traffic.send(140.0, 1, Space::Data, &ack(3, 3));
        let half = traffic.half();
        assert_eq!((half.sent.bytes(), half.acked.bytes()), (4_000, 4_000));
        assert_eq!(half.counters.lost_packets, 0);
        // The Initial, one packet of the handshake, and four of data.
        assert_eq!(half.counters.sent_packets, 6);
        assert_eq!(half.rtt.all.min(), Some(Duration::from_millis(40)));
        let view = &traffic.finish().views[0];
        assert_eq!(view.encrypted, [Encrypted::default(); 2]);
        assert_eq!(view.handshake_trip(), Some(Duration::from_millis(40)));
        assert_eq!(view.finished, Some(Instant::from_nanos(40_000_000)));
        assert_eq!(view.opener.delays[1].exponent, 4);
        let (first, last) = first_and_last(&traffic.finish().views, 0).unwrap();
        assert_eq!((first.place, last.place), (0, 0));
    }
}

#[test]
fn loss_bits_are_not_hidden() {
    let mut traffic = Traffic::new(Version::One, Suite::Aes128);
    traffic.loss_bits = true;
    traffic.open();
    (0..40).for_each(|n| traffic.data(100.0 + n as f64, n));
    assert_eq!(traffic.half().sent.bytes(), 40_000);
    assert_eq!(
        traffic.finish().views[0].encrypted,
        [Encrypted::default(); 2]
    );
}

#[test]
fn keys_that_change_are_followed_and_packets_of_the_old_ones_still_open() {
    let mut traffic = Traffic::new(Version::One, Suite::Aes128);
    traffic.open();
    (0..4).for_each(|n| traffic.data(100.0, n));
    // A packet with the first key comes after one with the second.
    let late = traffic.packet(0, Space::Data, &stream(4_000, 1_000));
    traffic.updates[0] = 1;
    traffic.data(110.0, 5);
    traffic.datagram(111.0, 0, &late);
    traffic.updates[0] = 2;
    traffic.data(120.0, 6);
    let half = traffic.half();
    assert_eq!((half.sent.bytes(), half.late_packets), (7_000, 1));
}

#[test]
fn what_later_packets_have_passed_is_lost_and_spurious_if_it_is_acknowledged_after_all() {
    let mut traffic = Traffic::new(Version::One, Suite::Aes128);
    traffic.open();
    (0..8).for_each(|n| traffic.data(100.0 + n as f64, n));
    // 0 and 1 are missing; the data of 0 is sent again. Then 1 is acknowledged.
    traffic.send(145.0, 1, Space::Data, &ack_of(5, 0, 3, &[]));
    traffic.data(146.0, 0);
    traffic.send(147.0, 1, Space::Data, &ack_of(7, 0, 6, &[]));
    traffic.send(186.0, 1, Space::Data, &ack_of(8, 0, 7, &[]));
    let half = traffic.half();
    assert_eq!(
        (
            half.counters.lost_packets,
            half.counters.retransmitted_packets
        ),
        (2.into(), 1.into())
    );
    assert_eq!((half.episodes, half.spurious), (1, 1));
    assert_eq!((half.sent.bytes(), half.acked.bytes()), (8_000, 8_000));
    let kinds: Vec<_> = half.events.iter().map(|(_, e)| *e).collect();
    use crate::tcp::Event::{Loss, Recovered, Recovery, Spurious};
    assert_eq!(kinds, [Loss(2), Recovery, Spurious(1), Recovered]);
    // Each transmission has a row, with when it was acknowledged itself.
    let rows: Vec<_> = half.packets.iter().flatten().collect();
    let acknowledged = |n: usize| rows[n].acknowledged.map(|t| t.as_nanos() / 1_000_000);
    assert_eq!(rows.len(), 9);
    assert_eq!(
        [0, 1, 2, 8].map(acknowledged),
        [None, Some(147), Some(145), Some(186)]
    );
    assert_eq!(
        (rows[1].start, rows[1].payload, rows[1].again),
        (1_000, 1_000, false)
    );
    assert!(rows[8].again && rows[8].size > 1_000 + 28);
}

#[test]
fn delays_of_acknowledgements_are_in_no_smoothed_round_trip() {
    let mut traffic = Traffic::new(Version::One, Suite::Aes128);
    traffic.open();
    traffic.data(100.0, 0);
    // 10 ms in units of 16 µs.
    traffic.send(150.0, 1, Space::Data, &ack_of(0, 625, 0, &[]));
    let half = traffic.half();
    let ms = Duration::from_millis;
    assert_eq!(
        (half.rtt.all.max(), half.rtt.smoothed()),
        (Some(ms(50)), Some(ms(40)))
    );
}

#[test]
fn a_probe_timeout_is_told_from_a_pause_of_the_application() {
    let mut traffic = Traffic::new(Version::One, Suite::Aes128);
    traffic.open();
    traffic.data(100.0, 0);
    traffic.send(140.0, 1, Space::Data, &ack(0, 0));
    // Nothing is in flight: no timer runs.
    traffic.data(1_000.0, 1);
    // Something is, and nothing comes; PING.
    traffic.send(1_300.0, 0, Space::Data, &[1]);
    traffic.send(1_340.0, 1, Space::Data, &ack(2, 0));
    let half = traffic.half();
    assert_eq!((half.counters.timeouts, half.probes), (1.into(), 1));
}

#[test]
fn a_larger_packet_without_data_tries_its_size_and_is_not_missed() {
    let mut traffic = Traffic::new(Version::One, Suite::Aes128);
    traffic.open();
    traffic.data(100.0, 0);
    traffic.send(100.0, 0, Space::Data, &[&[1][..], &[0; 1_300]].concat());
    (1..6).for_each(|n| traffic.data(100.0, n));
    traffic.send(140.0, 1, Space::Data, &ack_of(6, 0, 4, &[0, 0]));
    let half = traffic.half();
    assert_eq!(half.counters.lost_packets, 0);
    assert!((1_000..1_100).contains(&half.full_packet()));
}

#[test]
fn datagrams_that_a_device_cuts_into_packets_are_cut_here() {
    let mut traffic = Traffic::new(Version::One, Suite::Aes128);
    traffic.open();
    let packets: Vec<_> = (0..5)
        .map(|n| traffic.packet(0, Space::Data, &stream(n * 1_000, 1_000)))
        .collect();
    // Numbers of 64 and more take more bytes: those of one length go together, and a shorter one is the last.
    let first = [&packets[1][..], &packets[2], &packets[3]].concat();
    assert_eq!(packets[1].len(), packets[3].len());
    traffic.datagram(100.0, 0, &packets[0]);
    traffic.datagram(100.0, 0, &first);
    traffic.datagram(101.0, 0, &packets[4]);
    let half = traffic.half();
    assert_eq!(half.sent.bytes(), 5_000);
}

#[test]
fn without_keys_and_of_cut_packets_it_is_told_why() {
    let mut without = Traffic::new(Version::One, Suite::Aes128);
    without.secrets = Secrets::default();
    let mut cut = Traffic::new(Version::One, Suite::Aes128);
    cut.kept = 60;
    let mut wrong = Traffic::new(Version::One, Suite::Aes128);
    wrong.secrets = secrets(Suite::Aes256);
    for traffic in [&mut without, &mut cut, &mut wrong] {
        traffic.open();
        (0..4).for_each(|n| traffic.data(100.0 + n as f64, n));
        assert!(!traffic.finish().views[0].is_open());
        assert_eq!(
            traffic.finish().views[0].handshake_trip(),
            Some(Duration::from_millis(40))
        );
        assert_eq!(traffic.finish().sender(), 0);
    }
    let of = |traffic: &Traffic| traffic.connection.as_ref().unwrap().views[0].encrypted;
    // Initial packets need no keys.
    let [client, server] = of(&without);
    assert_eq!((client.without_key, server.without_key), (5, 2));
    // The second Initial of the client is short; the first, by which it opens, and what is behind it are cut.
    let [client, _] = of(&cut);
    assert_eq!((client.cut, client.without_key), (5, 1));
    let [client, server] = of(&wrong);
    assert_eq!((client.damaged, server.damaged), (5, 2));
}

#[test]
fn after_a_retry_the_keys_are_those_of_the_servers_identifier() {
    let mut traffic = Traffic::new(Version::One, Suite::Aes128);
    // Another random number than that of the connection that is made.
    traffic.send(
        0.0,
        0,
        Space::Initial,
        &crypto(0, &client_hello_of(&[3; 32])),
    );
    let mut retry = traffic.long_header(1, 3, &CLIENT);
    retry.extend_from_slice(&[5; 30]);
    traffic.datagram(40.0, 1, &retry);
    traffic.first = SERVER.to_vec();
    traffic.send(40.0, 0, Space::Initial, &crypto(0, &client_hello()));
    let initial = traffic.packet(1, Space::Initial, &ack(1, 0));
    let handshake = traffic.packet(1, Space::Handshake, &crypto(0, &encrypted_extensions()));
    traffic.datagram(80.0, 1, &[initial, handshake].concat());
    traffic.data(81.0, 0);
    let half = traffic.half();
    assert_eq!(
        (half.sent.bytes(), half.counters.sent_packets),
        (1_000, 3.into())
    );
}

#[test]
fn early_data_is_of_the_same_space() {
    let mut traffic = Traffic::new(Version::One, Suite::Aes128);
    traffic.send(0.0, 0, Space::Initial, &crypto(0, &client_hello()));
    let mut header = traffic.long_header(0, 1, &FIRST);
    let frames = stream(0, 1_000);
    header.extend_from_slice(&((frames.len() + 20) as u16 | 0x4000).to_be_bytes());
    let number_at = header.len();
    header.extend_from_slice(&[0; 4]);
    let early = session(Suite::Aes128).early.unwrap();
    let key = PacketKey::new(Version::One, Suite::Aes128, early.clone()).unwrap();
    let mut packet = [&header[..], &key.seal(0, &header, &frames)].concat();
    HeaderKey::new(Version::One, Suite::Aes128, &early)
        .unwrap()
        .protect(&mut packet, number_at, HIDDEN);
    traffic.datagram(0.0, 0, &packet);
    traffic.numbers[0][2] = 1;
    let initial = traffic.packet(1, Space::Initial, &ack(0, 0));
    traffic.datagram(40.0, 1, &initial);
    traffic.send(40.0, 1, Space::Data, &ack(0, 0));
    let half = traffic.half();
    assert_eq!((half.sent.bytes(), half.acked.bytes()), (1_000, 1_000));
}

#[test]
fn an_end_may_change_its_address_and_another_connection_may_follow_on_the_same() {
    let mut traffic = Traffic::new(Version::One, Suite::Aes128);
    traffic.open();
    // NEW_CONNECTION_ID of the server.
    let id = [0x52, 2, 3, 4, 5];
    traffic.send(
        90.0,
        1,
        Space::Data,
        &[&[0x18, 1, 0, 5][..], &id, &[0; 16]].concat(),
    );
    let connection = traffic.connection.as_mut().unwrap();
    let mut all = Identifiers::default();
    all.add(3, connection.fresh_ids());
    assert_eq!(connection.fresh_ids().count(), 0);
    assert_eq!(
        all.find(&[&[0x40][..], &id, &[0; 20]].concat()),
        Some((3, 1))
    );
    assert_eq!(
        all.find(&[&[0x40][..], &CLIENT, &[0; 20]].concat()),
        Some((3, 0))
    );
    traffic.data(100.0, 0);
    traffic.port = 2_000;
    let moved = traffic.packet(0, Space::Data, &stream(1_000, 1_000));
    let before = traffic.connection.as_mut().unwrap();
    let end = |port: u16, n: u8| SocketAddr::from(([10, 0, 0, n], port));
    let datagram = packet::Packet {
        time: Instant::ZERO,
        place: 0,
        from: end(2_000, 1),
        to: end(443, 2),
        ecn: Ecn::NotEct,
        transport: Transport::Udp {
            ident: 0,
            payload: 0,
            rtp: None,
            kept: 0..0,
        },
    };
    before.moves(&datagram, 1);
    traffic.datagram(110.0, 0, &moved);
    assert_eq!(traffic.half().sent.bytes(), 2_000);
    // The same client sends another Initial to the server's identifier, and another client to its own.
    let known = traffic.packet(0, Space::Initial, &ack(0, 0));
    let mut other = Traffic::new(Version::One, Suite::Aes128);
    other.first = vec![8; 8];
    let mut hello = other.packet(0, Space::Initial, &crypto(0, &client_hello()));
    // The identifier of the client: behind those of the version, and of the server.
    hello[6 + 8 + 1] ^= 1;
    let connection = traffic.connection.as_ref().unwrap();
    assert!(!connection.is_over(&datagram, &known, known.len()));
    assert!(connection.is_over(&datagram, &hello, hello.len()));
}

#[test]
fn the_spin_bit_is_seen_without_keys() {
    let mut traffic = Traffic::new(Version::One, Suite::Aes128);
    traffic.secrets = Secrets::default();
    traffic.open();
    for n in 0..400u32 {
        // A round trip of 40 ms, and a packet each 2 ms.
        traffic.spin = n / 20 % 2 == 1;
        traffic.send(100.0 + f64::from(n) * 2.0, 0, Space::Data, &stream(0, 500));
    }
    let view = &traffic.finish().views[0];
    let trips = &view.spin(0).unwrap().trips;
    assert_eq!(
        (trips.all.count(), trips.all.min()),
        (18, Some(Duration::from_millis(40)))
    );
    assert!(view.spin(1).is_none());
}

proptest! {
    /// Frames of any kind, whatever they say, in packets that open.
    #[test]
    fn any_frames_do(packets in prop::collection::vec(any_packet(), 0..40)) {
        let mut traffic = Traffic::new(Version::One, Suite::Aes128);
        traffic.open();
        for (n, (from, frames, space)) in packets.into_iter().enumerate() {
            let space = [Space::Initial, Space::Handshake, Space::Data][usize::from(space)];
            traffic.send(100.0 + n as f64, from, space, &frames.concat());
        }
        let connection = traffic.finish();
        for half in connection.views[0].halves.iter().flatten() {
            prop_assert!(half.counters.retransmitted_packets <= half.counters.sent_packets.get().unwrap());
            prop_assert!(half.acked.bytes() <= half.sent.bytes());
            prop_assert!(half.samples.is_sorted_by_key(|s| s.time));
            prop_assert!(half.events.is_sorted_by_key(|(t, _)| *t));
        }
    }

    /// Datagrams that have been changed, cut and put in another order.
    #[test]
    fn any_change_does(changes in prop::collection::vec((0usize..2_000, any::<u8>(), 1usize..1_400), 0..60)) {
        let mut traffic = Traffic::new(Version::One, Suite::Aes128);
        traffic.open();
        for (n, (at, byte, kept)) in changes.into_iter().enumerate() {
            traffic.kept = kept;
            let mut packet = traffic.packet(n % 2, Space::Data, &stream(n as u64 * 1_000, 1_000));
            if let Some(b) = packet.get_mut(at) {
                *b ^= byte;
            }
            traffic.datagram(100.0, n % 2, &packet);
        }
        traffic.finish();
    }
}

/// Who sends a packet, its frames, and the number of its space.
fn any_packet() -> impl Strategy<Value = (usize, Vec<Vec<u8>>, u8)> {
    (0..2usize, prop::collection::vec(any_frame(), 0..4), 0..3u8)
}

/// A frame that may make sense.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        (
            0u64..40,
            any::<u32>(),
            0u64..40,
            prop::collection::vec(0u64..9, 0..4)
        )
            .prop_map(|(largest, delay, first, further)| {
                ack_of(
                    largest,
                    u64::from(delay >> 2),
                    first,
                    &further[..further.len() / 2 * 2],
                )
            }),
        (0u64..20, 0u64..20).prop_map(|(n, length)| stream(n * 10, length * 10)),
        (0u64..20, prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(n, data)| crypto(n, &data)),
        Just(vec![0x1e]),
        Just(vec![1]),
        Just(vec![0x14, 9]),
    ]
}
