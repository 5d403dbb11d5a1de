//! Nanoseconds a packet costs a link: one `send`, the polls it needs, one delivery or drop.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gargalo_link::trace::CellularModel;
use gargalo_link::{
    CoDelConfig, Delay, Ecn, FqCoDelConfig, Link, LinkConfig, LossModel, Packet, PieConfig,
    QueueConfig, QueueLimit, RateModel, RedConfig,
};
use gargalo_units::{Duration, Instant, Rate};
use rand_pcg::Pcg64;

const PACKETS: u64 = 1000;

/// Sends packets with a fixed gap for ever and drives the link as a world does.
struct Source {
    link: Link<u32>,
    now: Instant,
    gap: Duration,
    id: u32,
}

impl Source {
    fn new(config: LinkConfig, gap: Duration) -> Self {
        let link = Link::new(config, Pcg64::new(1, 1)).expect("a valid configuration");
        Self {
            link,
            now: Instant::ZERO,
            gap,
            id: 0,
        }
    }

    fn run(&mut self) -> u64 {
        let mut delivered = 0;
        for _ in 0..PACKETS {
            self.now += self.gap;
            while self.link.next_event() <= self.now {
                let at = self.link.next_event();
                while let Some(d) = self.link.poll(at) {
                    delivered += u64::from(d.packet.payload & 1);
                }
                while self.link.poll_dropped().is_some() {}
            }
            self.id = self.id.wrapping_add(1);
            let packet = Packet {
                bytes: 1500,
                flow: self.id % 16,
                ecn: Ecn::NotEct,
                payload: self.id,
            };
            self.link.send(self.now, black_box(packet));
            while self.link.poll_dropped().is_some() {}
        }
        delivered
    }
}

fn gigabit(queue: QueueConfig) -> LinkConfig {
    LinkConfig {
        rate: RateModel::Constant(Rate::from_mbps(1000)),
        delay: Delay::Constant(Duration::from_millis(10)),
        queue,
        ..LinkConfig::default()
    }
}

fn droptail() -> QueueConfig {
    QueueConfig::DropTail(QueueLimit::Packets(2500))
}

fn links(c: &mut Criterion) {
    let trace = CellularModel {
        initial_rate: Rate::from_mbps(60),
        max_rate: Rate::from_mbps(120),
        ..CellularModel::default()
    }
    .generate(&mut Pcg64::new(1, 1))
    .expect("a valid model");
    let on_trace = LinkConfig {
        rate: RateModel::Trace(trace.into()),
        ..gigabit(droptail())
    };
    // 1500 bytes at 1 Gbit/s take 12 us.
    let idle = Duration::from_nanos(12_100);
    let full = Duration::from_nanos(11_990);
    let over = Duration::from_nanos(11_500);
    let cases = [
        ("droptail idle", gigabit(droptail()), idle),
        ("droptail full", gigabit(droptail()), full),
        (
            "droptail unlimited",
            LinkConfig {
                rate: RateModel::Unlimited,
                ..gigabit(droptail())
            },
            idle,
        ),
        (
            "droptail loss 1%",
            LinkConfig {
                loss: LossModel::Independent(0.01),
                ..gigabit(droptail())
            },
            full,
        ),
        ("trace sparse", on_trace.clone(), Duration::from_millis(20)),
        ("trace full", on_trace, Duration::from_micros(100)),
        ("red", gigabit(QueueConfig::Red(RedConfig::default())), over),
        (
            "codel",
            gigabit(QueueConfig::CoDel(CoDelConfig::default())),
            over,
        ),
        (
            "fq-codel",
            gigabit(QueueConfig::FqCoDel(FqCoDelConfig::default())),
            over,
        ),
        ("pie", gigabit(QueueConfig::Pie(PieConfig::default())), over),
    ];
    let mut group = c.benchmark_group("link");
    group.throughput(Throughput::Elements(PACKETS));
    for (name, config, gap) in cases {
        let mut source = Source::new(config, gap);
        group.bench_function(name, |b| b.iter(|| source.run()));
    }
    group.finish();
}

criterion_group!(benches, links);
criterion_main!(benches);
