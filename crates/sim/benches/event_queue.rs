//! The event queue in the hold model (Jones, CACM 1986) at four populations.
//!
//! Each step takes the next event and schedules one at a delay drawn as in a run: mostly
//! serialisation and propagation times, seldom a timer.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use gargalo_flow::rng;
use gargalo_sim::event::EventQueue;
use gargalo_units::{Duration, Instant};
use rand::RngExt;

/// Delays in nanoseconds: 60% packet spacing, 35% propagation, 5% timers.
fn delays() -> Vec<u64> {
    let mut rng = rng::stream(1, "bench");
    (0..8192)
        .map(|_| match rng.random_range(0..100) {
            0..60 => rng.random_range(100..24_000),
            60..95 => rng.random_range(1_000_000..100_000_000),
            _ => rng.random_range(200_000_000..1_000_000_000),
        })
        .collect()
}

fn event_queue(c: &mut Criterion) {
    let delays = delays();
    let mut group = c.benchmark_group("hold");
    for n in [100, 1_000, 10_000, 100_000] {
        group.bench_function(BenchmarkId::from_parameter(n), |b| {
            let mut queue = EventQueue::default();
            for i in 0..n {
                queue.push(Instant::from_nanos(delays[i % delays.len()]), i as u32);
            }
            let mut i = 0;
            b.iter(|| {
                let event = queue.pop().expect("the population is constant");
                i = (i + 1) % delays.len();
                let next = event.time() + Duration::from_nanos(delays[i]);
                queue.push(next, event.target());
                black_box(event)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, event_queue);
criterion_main!(benches);
