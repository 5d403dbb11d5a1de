//! Cost of the calls every packet makes.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use gargalo_cc::{
    Acked, Cause, Congestion, Controller, Init, Pacer, Params, Path, RateSampler, Sibling, build,
};
use gargalo_units::{Bytes, Duration, Instant, Rate};
use rand_pcg::Pcg64;

const MSS: Bytes = Bytes::new(1448);
const RTT: Duration = Duration::from_millis(40);

fn path() -> Path<'static> {
    Path {
        mss: MSS,
        srtt: Some(RTT),
        latest_rtt: Some(RTT),
        min_rtt: Some(RTT),
        in_flight: MSS * 1000,
        siblings: &[],
        index: 0,
        sack: true,
    }
}

fn sibling(i: u64) -> Sibling {
    Sibling {
        cwnd: MSS * 400 * i,
        srtt: Some(RTT * i),
        min_rtt: Some(RTT),
        mss: MSS,
        since_loss: MSS * 1000 * i,
        between_losses: MSS,
        rate: 0.0,
        can_send: true,
    }
}

fn ack() -> Acked {
    Acked {
        now: Instant::ZERO,
        bytes: MSS * 2,
        acknowledged: MSS * 2,
        ce_bytes: Bytes::ZERO,
        rtt: Some(RTT),
        sent_at: Some(Instant::ZERO),
        in_flight_before: MSS * 1000,
        in_flight: MSS * 998,
        cwnd_limited: true,
        in_recovery: false,
        round_start: false,
        sample: None,
    }
}

/// In congestion avoidance after a loss at 2000 segments.
fn controller(name: &str) -> Box<dyn Controller> {
    let init = Init {
        now: Instant::ZERO,
        mss: MSS,
        initial_window: MSS * 2000,
        rng: Pcg64::new(1, 2),
    };
    let mut c = build(name, &Params::new(), init).expect("a registered name with defaults");
    let loss = Congestion {
        now: Instant::ZERO,
        cause: Cause::Loss,
        lost: MSS,
        in_flight: MSS * 2000,
    };
    c.on_congestion(&loss, &path());
    c.on_recovered(Instant::ZERO, &path());
    c
}

fn on_ack(c: &mut Criterion) {
    for name in ["reno", "cubic"] {
        c.bench_function(&format!("{name}/on_ack"), |b| {
            let mut controller = controller(name);
            let (path, mut ack) = (path(), ack());
            b.iter(|| {
                ack.now += Duration::from_micros(20);
                controller.on_ack(black_box(&ack), &path);
                controller.cwnd()
            });
        });
    }
    let siblings: Vec<Sibling> = (1..=5).map(sibling).collect();
    for name in ["lia", "olia", "balia", "wvegas"] {
        c.bench_function(&format!("{name}/on_ack, 5 subflows"), |b| {
            let mut controller = controller(name);
            let path = Path {
                siblings: &siblings,
                ..path()
            };
            let mut ack = ack();
            b.iter(|| {
                ack.now += Duration::from_micros(20);
                controller.on_ack(black_box(&ack), &path);
                controller.cwnd()
            });
        });
    }
    c.bench_function("bbr/on_ack+sample", |b| {
        let mut controller = controller("bbr");
        let mut sampler = RateSampler::new();
        let (path, mut ack) = (path(), ack());
        let mut state = sampler.on_send(ack.now, MSS, Bytes::ZERO);
        b.iter(|| {
            ack.now += Duration::from_micros(200);
            sampler.on_delivered(ack.now, &state, MSS * 2, false);
            ack.sample = sampler.finish(None);
            controller.on_ack(black_box(&ack), &path);
            state = sampler.on_send(ack.now, MSS, MSS * 998);
            controller.cwnd()
        });
    });
}

fn parts(c: &mut Criterion) {
    c.bench_function("sampler/send+deliver+finish", |b| {
        let mut s = RateSampler::new();
        let mut now = Instant::ZERO;
        let mut state = s.on_send(now, MSS, MSS);
        b.iter(|| {
            now += Duration::from_micros(20);
            s.on_delivered(now, black_box(&state), MSS, false);
            let sample = s.finish(None);
            state = s.on_send(now, MSS, MSS);
            sample
        });
    });
    c.bench_function("pacer/on_send", |b| {
        let mut p = Pacer::new(MSS * 2);
        let mut now = Instant::ZERO;
        b.iter(|| {
            now = p.next_release(now);
            p.on_send(now, MSS, Some(black_box(Rate::from_mbps(100))));
        });
    });
}

criterion_group!(benches, on_ack, parts);
criterion_main!(benches);
