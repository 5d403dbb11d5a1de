//! What is concluded of connections, from captures that are written here packet by packet.

use std::net::Ipv4Addr;

use bytes::Bytes;
use gargalo_recording::{Flow, Options, Recording, read_bytes};
use gargalo_trace::pcapng;
use gargalo_units::{Ecn, Instant, Seq};
use gargalo_wire::ip::{Addresses, Header};
use gargalo_wire::tcp::{Extra, Flags, Payload, SackBlocks, Segment};
use gargalo_wire::{tcp, udp};
use serde_json::Value;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Payload of a full segment.
const FULL: u32 = 1460;
const ISN: u32 = 0xffff_f000;

/// A capture that grows.
struct Capture {
    out: pcapng::Writer<Vec<u8>>,
    snap_len: usize,
}

impl Capture {
    fn new() -> Self {
        let mut out = pcapng::Writer::new(Vec::new(), "test").unwrap();
        for name in ["near", "far"] {
            let name = name.to_owned();
            out.add_interface(&pcapng::Interface {
                name,
                ..Default::default()
            })
            .unwrap();
        }
        Self {
            out,
            snap_len: usize::MAX,
        }
    }

    fn write(&mut self, ms: f64, interface: u32, whole: &[u8]) {
        let packet = pcapng::Packet {
            time: Instant::from_nanos((ms * 1e6) as u64),
            interface,
            bytes: &whole[..whole.len().min(self.snap_len)],
            original_len: whole.len() as u32,
            comment: "",
        };
        self.out.write_packet(&packet).unwrap();
    }

    fn segment(&mut self, ms: f64, from_client: bool, segment: &Segment, ecn: Ecn) {
        let there = Addresses::V4 {
            src: CLIENT,
            dst: SERVER,
        };
        let mut header = Header::new(if from_client { there } else { there.reversed() });
        header.ecn = ecn;
        let mut whole = Vec::new();
        header.emit_tcp(segment, &mut whole).unwrap();
        self.write(ms, 0, &whole);
    }

    fn syn(&mut self, ms: f64, from_client: bool, scale: u8) {
        let extra = Extra {
            mss: Some(1460),
            window_scale: Some(scale),
            sack_permitted: true,
            ..Extra::default()
        };
        let mut syn = of(from_client);
        syn.flags = if from_client {
            Flags::SYN
        } else {
            Flags::SYN | Flags::ACK
        };
        syn.seq = Seq::new(ISN);
        syn.ack = Seq::new(if from_client { 0 } else { ISN + 1 });
        syn.options.extra = Some(Box::new(extra));
        self.segment(ms, from_client, &syn, Ecn::NotEct);
    }

    /// The handshake as the client sees it, with this round trip.
    fn open(&mut self, rtt_ms: f64) {
        self.syn(0.0, true, 7);
        self.syn(rtt_ms, false, 7);
        self.ack(rtt_ms, true, 0);
    }

    /// Full segments of the client from the `first`-th on.
    fn data(&mut self, ms: f64, first: u32, count: u32) {
        for n in first..first + count {
            self.piece(ms, n * FULL, FULL, Flags::ACK);
        }
    }

    fn piece(&mut self, ms: f64, start: u32, length: u32, flags: Flags) {
        let mut segment = of(true);
        segment.flags = flags;
        segment.seq = Seq::new((ISN + 1).wrapping_add(start));
        segment.ack = Seq::new(ISN + 1);
        segment.payload = Payload::real(Bytes::from(vec![0; length as usize]));
        self.segment(ms, true, &segment, Ecn::NotEct);
    }

    /// An acknowledgement of so many bytes.
    fn ack(&mut self, ms: f64, from_client: bool, bytes: u32) {
        self.ack_with(ms, from_client, bytes, &[], 1000, Flags::ACK);
    }

    /// One of the server for whole segments, with blocks of segments.
    fn sack(&mut self, ms: f64, segments: u32, blocks: &[(u32, u32)]) {
        self.ack_with(ms, false, segments * FULL, blocks, 1000, Flags::ACK);
    }

    fn ack_with(
        &mut self,
        ms: f64,
        from_client: bool,
        bytes: u32,
        blocks: &[(u32, u32)],
        window: u16,
        flags: Flags,
    ) {
        let at = |bytes: u32| Seq::new((ISN + 1).wrapping_add(bytes));
        let mut segment = of(from_client);
        segment.flags = flags;
        segment.seq = at(0);
        segment.ack = at(bytes);
        segment.window = window;
        let mut sack = SackBlocks::EMPTY;
        for (left, right) in blocks {
            assert!(sack.push(at(left * FULL), at(right * FULL)));
        }
        segment.options.sack = sack;
        self.segment(ms, from_client, &segment, Ecn::NotEct);
    }

    fn read(self) -> (Recording, Value, Flow) {
        let bytes = self.out.finish().unwrap();
        let recording = read_bytes(&bytes, &Options::default()).unwrap();
        let row = recording.tables.flows.rows().next().unwrap();
        let flow = recording.facts.flows[0].clone();
        (recording, row, flow)
    }
}

fn of(from_client: bool) -> Segment {
    let (src_port, dst_port) = if from_client { (1000, 80) } else { (80, 1000) };
    Segment {
        src_port,
        dst_port,
        window: 1000,
        ..Segment::of(
            &tcp::Packet::parse(&[
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0,
            ])
            .unwrap(),
        )
    }
}

/// Kinds of the events, in order.
fn kinds(recording: &Recording) -> Vec<String> {
    let rows = recording.tables.events.rows();
    rows.map(|r| r["kind"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_connection_without_loss_has_its_bytes_times_and_round_trips() {
    let mut capture = Capture::new();
    capture.open(40.0);
    capture.data(50.0, 0, 2);
    capture.sack(90.0, 2, &[]);
    capture.data(90.0, 2, 2);
    capture.piece(90.0, 4 * FULL, 100, Flags::ACK | Flags::FIN);
    capture.ack_with(140.0, false, 4 * FULL + 101, &[], 1000, Flags::ACK);
    let (recording, row, flow) = capture.read();
    assert_eq!(row["delivered_bytes"], 4 * FULL + 100);
    assert_eq!(row["sent_packets"], 5);
    assert_eq!(row["retransmitted_packets"], 0);
    assert_eq!(row["handshake_s"], 0.04);
    assert_eq!(row["completion_s"], 0.14);
    // The handshake's round trip, 40 ms and 50 ms.
    assert_eq!(
        (&row["rtt_min_s"], &row["rtt_max_s"]),
        (&0.04.into(), &0.05.into())
    );
    let goodput = f64::from(4 * FULL + 100) * 8.0 / 0.14;
    assert!((row["goodput_bps"].as_f64().unwrap() - goodput).abs() < 1.0);
    assert_eq!(
        (row["from"].as_str(), row["to"].as_str()),
        (Some("10.0.0.1"), Some("10.0.0.2"))
    );
    assert_eq!(flow.captured_at, Some("sender"));
    assert_eq!(flow.full_segment_bytes, Some(u64::from(FULL)));
    // What a sender's congestion window was is nowhere in its packets.
    assert!(
        recording
            .tables
            .flow_samples
            .rows()
            .all(|s| s["congestion_window_bytes"].is_null())
    );
    assert!(kinds(&recording).is_empty());
}

#[test]
fn a_fast_retransmission_is_told_from_a_timeout_and_from_a_probe() {
    let mut capture = Capture::new();
    capture.open(40.0);
    capture.data(50.0, 0, 6);
    capture.sack(90.0, 1, &[(2, 3)]);
    capture.sack(90.1, 1, &[(2, 4)]);
    capture.sack(90.2, 1, &[(2, 5)]);
    capture.data(90.3, 1, 1);
    capture.sack(91.0, 1, &[(2, 6)]);
    capture.sack(131.0, 6, &[]);
    let (recording, row, flow) = capture.read();
    assert_eq!(
        (flow.fast_retransmissions, flow.loss_episodes),
        (Some(1), Some(1))
    );
    assert_eq!(
        (&row["lost_packets"], &row["timeouts"]),
        (&1.into(), &0.into())
    );
    assert_eq!(kinds(&recording), ["loss", "recovery", "recovered"]);

    let mut capture = Capture::new();
    capture.open(40.0);
    capture.data(50.0, 0, 4);
    capture.sack(90.0, 1, &[]);
    // Nothing more comes; after 250 ms the first is sent again, and after its acknowledgement the rest.
    capture.data(340.0, 1, 1);
    capture.sack(380.0, 2, &[]);
    capture.data(380.0, 2, 2);
    capture.sack(420.0, 4, &[]);
    let (recording, row, flow) = capture.read();
    assert_eq!(
        (flow.fast_retransmissions, flow.timeout_retransmissions),
        (Some(0), Some(3))
    );
    assert_eq!(
        (&row["timeouts"], &row["retransmitted_packets"]),
        (&1.into(), &3.into())
    );
    assert!(kinds(&recording).contains(&"stall".to_owned()));

    let mut capture = Capture::new();
    capture.open(40.0);
    capture.data(50.0, 0, 4);
    capture.sack(90.0, 1, &[]);
    capture.data(170.0, 3, 1);
    capture.sack(210.0, 4, &[]);
    let (recording, row, flow) = capture.read();
    assert_eq!(flow.probe_retransmissions, Some(1));
    assert_eq!(
        (&row["timeouts"], &row["lost_packets"]),
        (&0.into(), &0.into())
    );
    assert_eq!(kinds(&recording), ["probe"]);
}

#[test]
fn a_retransmission_that_the_receiver_had_no_need_of_is_spurious() {
    let mut capture = Capture::new();
    capture.open(40.0);
    capture.data(50.0, 0, 6);
    capture.sack(90.0, 1, &[(4, 5)]);
    capture.data(90.1, 1, 1);
    capture.sack(91.0, 6, &[]);
    // RFC 2883: below the acknowledgement, the segment that came twice.
    capture.sack(131.0, 6, &[(1, 2)]);
    let (recording, _, flow) = capture.read();
    assert_eq!(flow.spurious_retransmissions, Some(1));
    assert!(kinds(&recording).contains(&"spurious".to_owned()));
}

#[test]
fn what_limited_a_sender_has_its_time() {
    let mut capture = Capture::new();
    capture.open(40.0);
    // A window of two segments is full from 50 to 100 ms.
    capture.ack_with(45.0, false, 0, &[], ((2 * FULL) >> 7) as u16, Flags::ACK);
    capture.data(50.0, 0, 2);
    capture.ack_with(100.0, false, 2 * FULL, &[], 1000, Flags::ACK);
    // Nothing to send until 200 ms; then three segments are in flight, and the window had room for more.
    capture.data(200.0, 2, 3);
    capture.ack_with(250.0, false, 5 * FULL, &[], 1000, Flags::ACK);
    let (_, _, flow) = capture.read();
    let limits = flow.limited_by.unwrap();
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(close(limits.receiver_s, 0.05), "{limits:?}");
    assert!(close(limits.network_s, 0.05), "{limits:?}");
    assert!(close(limits.application_s, 0.2 - 0.1 + 0.01), "{limits:?}");
    assert!(close(limits.recovery_s, 0.0), "{limits:?}");
}

#[test]
fn a_window_that_closes_is_an_event_once() {
    let mut capture = Capture::new();
    capture.open(40.0);
    capture.data(50.0, 0, 1);
    for ms in [90.0, 95.0] {
        capture.ack_with(ms, false, FULL, &[], 0, Flags::ACK);
    }
    let (recording, ..) = capture.read();
    assert_eq!(kinds(&recording), ["zero-window"]);
}

#[test]
fn at_the_receiver_the_senders_round_trips_are_missing() {
    let mut capture = Capture::new();
    capture.syn(0.0, true, 7);
    capture.syn(0.1, false, 7);
    capture.ack(40.0, true, 0);
    capture.data(41.0, 0, 2);
    capture.sack(41.1, 2, &[]);
    let (recording, row, flow) = capture.read();
    assert_eq!(flow.captured_at, Some("receiver"));
    assert_eq!(row["delivered_bytes"], 2 * FULL);
    for column in [
        "rtt_min_s",
        "sent_packets",
        "retransmitted_packets",
        "handshake_s",
    ] {
        assert!(row[column].is_null(), "{column}");
    }
    let notes = recording.facts.notes();
    assert!(notes[0].contains("captured at its receiver"), "{notes:?}");
}

#[test]
fn without_a_handshake_the_place_is_unknown_and_told() {
    let mut capture = Capture::new();
    capture.data(10.0, 3, 2);
    capture.sack(50.0, 5, &[]);
    let (recording, row, flow) = capture.read();
    assert_eq!(flow.captured_at, None);
    assert_eq!(row["delivered_bytes"], 2 * FULL);
    assert!((row["rtt_min_s"].as_f64().unwrap() - 0.04).abs() < 1e-9);
    assert!(recording.facts.notes()[0].contains("no handshake"));
}

#[test]
fn headers_are_enough() {
    let both = [usize::MAX, 54].map(|snap_len| {
        let mut capture = Capture::new();
        capture.snap_len = snap_len;
        capture.open(40.0);
        capture.data(50.0, 0, 3);
        capture.sack(90.0, 3, &[]);
        let (.., flow) = capture.read();
        (flow.base_rtt_s, flow.fast_retransmissions)
    });
    assert_eq!(both[0], both[1]);
    let mut capture = Capture::new();
    capture.snap_len = 39;
    capture.open(40.0);
    let bytes = capture.out.finish().unwrap();
    let recording = read_bytes(&bytes, &Options::default()).unwrap();
    assert_eq!(recording.facts.left_out.malformed, 3);
    assert!(recording.tables.flows.is_empty());
}

#[test]
fn the_same_ports_again_are_another_connection() {
    let mut capture = Capture::new();
    capture.open(40.0);
    capture.data(50.0, 0, 1);
    capture.sack(90.0, 1, &[]);
    let mut syn = of(true);
    syn.flags = Flags::SYN;
    syn.seq = Seq::new(77);
    capture.segment(1000.0, true, &syn, Ecn::NotEct);
    let bytes = capture.out.finish().unwrap();
    let recording = read_bytes(&bytes, &Options::default()).unwrap();
    let sent: Vec<_> = recording
        .tables
        .flows
        .rows()
        .map(|r| r["delivered_bytes"].clone())
        .collect();
    assert_eq!(sent, [Value::from(FULL), Value::Null]);
}

#[test]
fn datagrams_are_counted_at_both_ends() {
    let mut capture = Capture::new();
    let addresses = Addresses::V4 {
        src: CLIENT,
        dst: SERVER,
    };
    for n in 0..10u64 {
        let datagram = udp::Datagram {
            src_port: 5,
            dst_port: 6,
            payload: Payload::real(Bytes::from(vec![0; 100])),
        };
        let mut header = Header::new(addresses);
        let mut whole = Vec::new();
        header.emit_udp(&datagram, &mut whole).unwrap();
        capture.write(n as f64 * 10.0, 0, &whole);
        if n != 3 {
            header.ecn = Ecn::Ce;
            whole.clear();
            header.emit_udp(&datagram, &mut whole).unwrap();
            capture.write(n as f64 * 10.0 + 5.0, 1, &whole);
        }
    }
    let (_, row, facts) = capture.read();
    assert_eq!(
        (&row["sent_packets"], &row["delivered_bytes"]),
        (&10.into(), &900.into())
    );
    assert_eq!(
        (&row["ce_marks"], &row["transport"]),
        (&9.into(), &"udp".into())
    );
    assert!(row["rtt_min_s"].is_null() && row["retransmitted_packets"].is_null());
    // They are all alike.
    assert_eq!(
        (&row["loss"], &facts.matched_by, &row["delay_min_s"]),
        (&0.1.into(), &Some("count"), &Value::Null)
    );
}

#[test]
fn datagrams_that_are_told_apart_have_a_delay_and_a_loss_between_two_places() {
    let mut capture = Capture::new();
    let addresses = Addresses::V4 {
        src: CLIENT,
        dst: SERVER,
    };
    let mut at = Vec::new();
    for n in 0..40u16 {
        let datagram = udp::Datagram {
            src_port: 5,
            dst_port: 6,
            payload: Payload::real(Bytes::from(vec![0; 100])),
        };
        let header = Header {
            ident: n,
            ..Header::new(addresses)
        };
        let mut whole = Vec::new();
        header.emit_udp(&datagram, &mut whole).unwrap();
        let sent = f64::from(n) * 10.0;
        at.push((sent, 0, whole.clone()));
        if n % 8 != 3 {
            // Every other one takes longer than it is until the next.
            at.push((sent + 5.0 + f64::from(n % 2) * 20.0, 1, whole));
        }
    }
    at.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (ms, interface, whole) in at {
        capture.write(ms, interface, &whole);
    }
    let (_, row, facts) = capture.read();
    assert_eq!(
        (&row["loss"], &row["sent_packets"]),
        (&0.125.into(), &40.into())
    );
    for (key, ms) in [
        ("delay_min_s", 5.0),
        ("delay_max_s", 25.0),
        ("delay_mean_s", (20.0 * 5.0 + 15.0 * 25.0) / 35.0),
    ] {
        let found = row[key].as_f64().unwrap();
        assert!((found - ms / 1e3).abs() < 1e-6, "{key} {found}");
    }
    assert_eq!(
        (facts.matched_by, facts.matched_datagrams),
        (Some("content"), Some(35))
    );
}
