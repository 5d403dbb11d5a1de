//! Speed of the engine on the dumbbell of the performance budget: prints bottleneck data packets
//! per wall-clock second. Arguments: congestion control, flows, Mbit/s, virtual seconds.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant as Clock;

use gargalo_tcp::Config;
use gargalo_units::{Duration, Rate, SenderCounters};
use support::{ENDLESS, dumbbell, flow, pipe, run, settings, tcp};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |i: usize, default: &str| args.get(i).cloned().unwrap_or_else(|| default.into());
    let congestion = arg(0, "cubic");
    let flows: u32 = arg(1, "20").parse().expect("a number of flows");
    let mbps: u64 = arg(2, "1000").parse().expect("a rate in Mbit/s");
    let seconds: f64 = arg(3, "60").parse().expect("seconds");
    let access = pipe(
        Rate::from_mbps(10 * mbps),
        Duration::from_millis(1),
        100_000,
    );
    let bottleneck = pipe(Rate::from_mbps(mbps), Duration::from_millis(98), 2500);
    let specs = (0..flows)
        .map(|i| {
            let transport = tcp(&congestion, Config::modern());
            flow(u64::from(i), i, flows + i, transport, ENDLESS)
        })
        .collect();
    let topology = dumbbell(flows, access, bottleneck);
    let start = Clock::now();
    let out = run(topology, settings(1, seconds), specs);
    let wall = start.elapsed().as_secs_f64();
    let up = &out.links[0];
    let rate = up.sent_packets as f64 / wall;
    let mut counters = SenderCounters::default();
    out.flows.iter().for_each(|f| counters += f.counters);
    let delivered: u64 = out.flows.iter().map(|f| f.delivered.get()).sum();
    println!(
        "{congestion}: {} data packets in {wall:.3} s: {rate:.0} packets/s, {:.1} ns per event, \
         {} events, utilization {:.3}, goodput {:.1} Mbit/s, {} lost, {} timeouts",
        up.sent_packets,
        wall * 1e9 / out.events as f64,
        out.events,
        up.utilization.unwrap_or(0.0),
        delivered as f64 * 8.0 / 1e6 / seconds,
        counters.lost_packets,
        counters.timeouts,
    );
}
