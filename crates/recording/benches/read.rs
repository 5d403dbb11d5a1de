//! Packets a second that are read from a capture of headers, on one processor.

use std::net::Ipv4Addr;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gargalo_recording::{Options, read_bytes};
use gargalo_trace::pcapng;
use gargalo_units::{Instant, Seq};
use gargalo_wire::ip::{Addresses, Header};
use gargalo_wire::tcp::{Flags, Payload, SackBlocks, Segment, Timestamps};

const FULL: u32 = 1448;
/// Data packets of a connection.
const DATA: u32 = 50_000;
const CONNECTIONS: u16 = 4;
const WINDOW: u32 = 100;
/// Of so many data packets one is lost, and sent again a round trip later.
const LOST_OF: u32 = 1_000;
/// Of each packet are kept the headers.
const KEPT: usize = 96;

/// A capture at the sender: bulk transfers with an acknowledgement for every two packets.
struct Capture {
    out: pcapng::Writer<Vec<u8>>,
    now_ns: u64,
    packets: u64,
}

impl Capture {
    fn packet(
        &mut self,
        port: u16,
        from_sender: bool,
        seq: u32,
        ack: u32,
        payload: u32,
        sack: &[(u32, u32)],
    ) {
        let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let there = Addresses::V4 { src, dst };
        let addresses = if from_sender { there } else { there.reversed() };
        let (src_port, dst_port) = if from_sender { (port, 80) } else { (80, port) };
        let mut segment = Segment {
            src_port,
            dst_port,
            seq: Seq::new(seq),
            ack: Seq::new(ack),
            flags: Flags::ACK,
            window: 60_000,
            urgent: 0,
            options: Default::default(),
            payload: Payload::real(
                Bytes::from_static(&[0; FULL as usize]).slice(..payload as usize),
            ),
        };
        let value = (self.now_ns / 1_000_000) as u32;
        segment.options.timestamps = Some(Timestamps { value, echo: value });
        let mut blocks = SackBlocks::EMPTY;
        for (left, right) in sack {
            blocks.push(Seq::new(*left), Seq::new(*right));
        }
        segment.options.sack = blocks;
        let mut whole = Vec::new();
        Header::new(addresses)
            .emit_tcp(&segment, &mut whole)
            .expect("it fits");
        self.now_ns += 5_000;
        let packet = pcapng::Packet {
            time: Instant::from_nanos(self.now_ns),
            interface: 0,
            bytes: &whole[..whole.len().min(KEPT)],
            original_len: whole.len() as u32,
            comment: "",
        };
        self.out.write_packet(&packet).expect("memory is written");
        self.packets += 1;
    }

    fn new() -> Self {
        let mut out = pcapng::Writer::new(Vec::new(), "bench").expect("memory is written");
        out.add_interface(&pcapng::Interface::default())
            .expect("memory is written");
        let mut capture = Self {
            out,
            now_ns: 0,
            packets: 0,
        };
        for n in 0..DATA {
            for port in 1000..1000 + CONNECTIONS {
                capture.step(port, n);
            }
        }
        capture
    }

    /// The n-th data packet, and what is acknowledged then.
    fn step(&mut self, port: u16, n: u32) {
        let lost = n / LOST_OF * LOST_OF;
        self.packet(port, true, n * FULL, 1, FULL, &[]);
        if n < WINDOW || n.is_multiple_of(2) {
            return;
        }
        let arrived = n - WINDOW;
        if arrived - arrived / LOST_OF * LOST_OF < WINDOW && arrived >= LOST_OF {
            // The hole is not filled yet.
            let hole = arrived / LOST_OF * LOST_OF;
            self.packet(
                port,
                false,
                1,
                hole * FULL,
                0,
                &[((hole + 1) * FULL, (arrived + 1) * FULL)],
            );
        } else {
            self.packet(port, false, 1, (arrived + 1) * FULL, 0, &[]);
        }
        if n == lost + WINDOW + 3 && lost > 0 {
            self.packet(port, true, lost * FULL, 1, FULL, &[]);
        }
    }
}

fn reading(c: &mut Criterion) {
    let capture = Capture::new();
    let packets = capture.packets;
    let bytes = capture.out.finish().expect("memory is written");
    let mut group = c.benchmark_group("recording");
    group
        .throughput(Throughput::Elements(packets))
        .sample_size(10);
    group.bench_function("read", |b| {
        b.iter(|| {
            let read = read_bytes(&bytes, &Options::default()).expect("a capture");
            assert_eq!(read.facts.packets, packets);
            read
        });
    });
    group.finish();
}

criterion_group!(benches, reading);
criterion_main!(benches);
