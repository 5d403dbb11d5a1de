//! Applications that do not always have something to send.

use super::*;
use gargalo_workload::{Cbr, OnOff, Period};

#[test]
fn starts_again_after_silence() {
    each(|name, traits| {
        // Three seconds at 60 Mbit/s, three of silence, on and on.
        let workload = Workload::OnOff(OnOff {
            rate: Rate::from_mbps(60),
            packet_size: Bytes::new(14_480),
            on: Period::Fixed(Duration::from_secs(3)),
            off: Period::Fixed(Duration::from_secs(3)),
        });
        let out = alone(name, bottleneck(name, RATE, RTT, BDP), 59.9, workload);
        // Ten periods of 3 s at 60 Mbit/s.
        let offered = 10.0 * 3.0 * 60e6 / 8.0;
        let carried = out.flows[0].delivered.as_f64() / offered;
        within("share carried", carried, traits.resumes)
    });
}

#[test]
fn does_not_grow_a_window_it_does_not_use() {
    each(|name, traits| {
        // 5 Mbit/s over 100 Mbit/s: 21 segments a round trip.
        let workload = Workload::Cbr(Cbr::constant(Rate::from_mbps(5), Bytes::new(1448)));
        let out = alone(name, bottleneck(name, RATE, RTT, BDP), 60.0, workload);
        let offered = 60.0 * 5e6 / 8.0;
        let carried = out.flows[0].delivered.as_f64() / offered;
        let most = windows(&out, 0.0).fold(0.0, f64::max);
        let lost = out.links[0].dropped_queue_full;
        verdict(
            carried > 0.99 && most <= traits.idle_window && lost == 0,
            format!("carried {carried:.3}, largest window {most:.0} segments, {lost} lost"),
        )
    });
}
