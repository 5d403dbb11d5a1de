//! What an acknowledgement costs a sender with 100,000 segments in flight, holes or not: processing
//! it and sending what it lets out. The budget is tens of nanoseconds, and it must not depend on the
//! window.

use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gargalo_cc::{Acked, Congestion, Controller, Path};
use gargalo_tcp::{Config, Endpoint, Init, Recovery};
use gargalo_units::{Bytes, Duration, Ecn, Instant, Seq};
use gargalo_wire::tcp::{Extra, Flags, Options, SackBlocks, Segment};

const MSS: u64 = 1448;
const ISN: u32 = 1000;
const PEER_ISN: u32 = 9000;
/// Acknowledgements that are prepared before the clock starts.
const BATCH: u64 = 1000;

/// A constant window.
#[derive(Clone, Debug)]
struct Fixed(u64);

impl Controller for Fixed {
    fn on_ack(&mut self, _ack: &Acked, _path: &Path<'_>) {}
    fn on_congestion(&mut self, _event: &Congestion, _path: &Path<'_>) {}
    fn cwnd(&self) -> Bytes {
        Bytes::new(self.0)
    }
    fn governs_recovery(&self) -> bool {
        true
    }
    fn in_slow_start(&self) -> bool {
        true
    }
    fn phase(&self) -> &'static str {
        "fixed"
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// A sender and a network that holds its whole window; the receiver is a model that does not count.
struct Bench {
    end: Endpoint,
    now: Instant,
    /// Offset and length of what is on its way.
    wire: VecDeque<(u64, u64)>,
    next: u64,
    ranges: BTreeMap<u64, u64>,
    /// Left edges of the latest blocks, newest first.
    latest: VecDeque<u64>,
    /// One new segment of so many is lost; 0: none.
    lose: u64,
    highest: u64,
}

impl Bench {
    fn new(recovery: Recovery, segments: u64, lose: u64) -> Self {
        let config = Config {
            timestamps: false,
            recovery,
            send_buffer: Bytes::new(1 << 50),
            ..Config::modern()
        };
        let now = Instant::ZERO;
        let init = Init {
            local_port: 1,
            remote_port: 2,
            isn: Seq::new(ISN),
            ..Init::default()
        };
        let mut end = Endpoint::connect(config, Box::new(Fixed(segments * MSS)), init, now);
        let syn = end.poll_transmit(now).expect("a SYN");
        assert!(syn.segment.flags.contains(Flags::SYN));
        let now = now + Duration::from_millis(100);
        let mut bench = Self {
            end,
            now,
            wire: VecDeque::new(),
            next: 0,
            ranges: BTreeMap::new(),
            latest: VecDeque::new(),
            lose,
            highest: 0,
        };
        let mut answer = bench.segment();
        answer.seq = Seq::new(PEER_ISN);
        answer.flags = Flags::SYN | Flags::ACK;
        answer.options.extra = Some(Box::new(Extra {
            mss: Some(1460),
            window_scale: Some(14),
            sack_permitted: true,
            ..Extra::default()
        }));
        bench.end.handle(now, answer, Ecn::NotEct);
        bench.end.write_synthetic(1 << 50);
        bench.flush();
        // The window scale counts from the first acknowledgement on.
        let first = bench.segment();
        bench.end.handle(now, first, Ecn::NotEct);
        bench.flush();
        bench
    }

    fn segment(&self) -> Segment {
        Segment {
            src_port: 2,
            dst_port: 1,
            seq: Seq::new(PEER_ISN + 1),
            ack: Seq::new(ISN + 1) + self.next as u32,
            flags: Flags::ACK,
            window: u16::MAX,
            options: Options::default(),
            ..Segment::default()
        }
    }

    fn flush(&mut self) {
        while let Some(t) = self.end.poll_transmit(self.now) {
            let len = u64::from(t.segment.payload.len());
            let near = t.segment.seq.distance(Seq::new(ISN + 1) + self.next as u32);
            let offset = self.next.wrapping_add_signed(i64::from(near));
            let new = offset >= self.highest;
            self.highest = self.highest.max(offset + len);
            if len > 0 && !(new && self.lose > 0 && (offset / MSS) % self.lose == 3) {
                self.wire.push_back((offset, len));
            }
        }
    }

    /// The next segment arrives; its acknowledgement.
    fn acknowledge(&mut self) -> Option<Segment> {
        let (mut left, len) = self.wire.pop_front()?;
        let mut right = left + len;
        if right > self.next {
            if let Some((&l, &r)) = self.ranges.range(..=left).next_back()
                && r >= left
            {
                (left, right) = (l, right.max(r));
            }
            while let Some((&l, &r)) = self.ranges.range(left..).next()
                && l <= right
            {
                right = right.max(r);
                self.ranges.remove(&l);
            }
            if left <= self.next {
                self.next = right;
            } else {
                self.ranges.insert(left, right);
                self.latest.retain(|l| *l != left);
                self.latest.push_front(left);
            }
        }
        let (next, ranges) = (self.next, &self.ranges);
        self.latest.retain(|l| *l > next && ranges.contains_key(l));
        self.latest.truncate(8);
        let mut segment = self.segment();
        let mut sack = SackBlocks::EMPTY;
        let at = |offset: u64| Seq::new(ISN + 1) + offset as u32;
        for l in self.latest.iter().take(3) {
            sack.push(at(*l), at(self.ranges[l]));
        }
        segment.options.sack = sack;
        Some(segment)
    }

    /// `n` arrivals; the time that their acknowledgements cost the sender.
    fn run(&mut self, n: u64) -> StdDuration {
        let acks: Vec<_> = (0..n).filter_map(|_| self.acknowledge()).collect();
        assert_eq!(acks.len() as u64, n, "the network ran dry");
        let mut sent = Vec::with_capacity(2 * n as usize);
        let start = StdInstant::now();
        for ack in acks {
            self.now += Duration::from_micros(1);
            self.end.handle(self.now, ack, Ecn::NotEct);
            while let Some(t) = self.end.poll_transmit(self.now) {
                sent.push((t.segment.seq, t.segment.payload.len()));
            }
            if self.end.poll_timeout().is_some_and(|t| t <= self.now) {
                self.end.handle_timeout(self.now);
            }
        }
        let spent = start.elapsed();
        for (seq, len) in black_box(sent) {
            let near = seq.distance(Seq::new(ISN + 1) + self.next as u32);
            let offset = self.next.wrapping_add_signed(i64::from(near));
            let new = offset >= self.highest;
            self.highest = self.highest.max(offset + u64::from(len));
            if len > 0 && !(new && self.lose > 0 && (offset / MSS) % self.lose == 3) {
                self.wire.push_back((offset, u64::from(len)));
            }
        }
        self.flush();
        spent
    }
}

fn acknowledgements(c: &mut Criterion) {
    let mut group = c.benchmark_group("acknowledgement");
    group.throughput(Throughput::Elements(1));
    group.sample_size(20);
    group.warm_up_time(StdDuration::from_millis(500));
    group.measurement_time(StdDuration::from_secs(2));
    let cases = [
        ("in order, 100 in flight", Recovery::RackTlp, 100, 0),
        ("in order, 100,000 in flight", Recovery::RackTlp, 100_000, 0),
        (
            "1 of 20 lost, 100,000, RACK",
            Recovery::RackTlp,
            100_000,
            20,
        ),
        (
            "1 of 20 lost, 100,000, RFC 6675",
            Recovery::Sack,
            100_000,
            20,
        ),
        (
            "1 of 1000 lost, 100,000, RACK",
            Recovery::RackTlp,
            100_000,
            1000,
        ),
    ];
    for (name, recovery, segments, lose) in cases {
        let mut bench = Bench::new(recovery, segments, lose);
        let batch = BATCH.min(segments / 2);
        // Twice through the window: losses and their repairs are in full swing.
        for _ in 0..2 * segments / batch {
            bench.run(batch);
        }
        group.bench_function(name, |b| {
            b.iter_custom(|n| {
                let spent: StdDuration = (0..n.div_ceil(batch)).map(|_| bench.run(batch)).sum();
                spent.mul_f64(n as f64 / (n.div_ceil(batch) * batch) as f64)
            });
        });
        let stats = bench.end.stats();
        println!(
            "  lost {} resent {} timeouts {}",
            stats.sender.lost_packets, stats.sender.retransmitted_packets, stats.sender.timeouts
        );
    }
    group.finish();
}

criterion_group!(benches, acknowledgements);
criterion_main!(benches);
