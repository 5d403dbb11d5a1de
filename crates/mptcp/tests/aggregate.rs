//! Several paths are never worse than the best of them, and with room to reorder as good as all.

mod common;

use common::*;

/// Goodput in Mbit/s after 3 s, over 10 s.
fn goodput(paths: &[Path], c: gargalo_mptcp::Config, cc: &str) -> f64 {
    Net::new(paths, c, cc, 9).goodput(ms(3000), ms(10_000))
}

#[test]
#[ignore]
fn explore() {
    let slow = Path::new(10, 200);
    let fast = Path::new(100, 10);
    for order in [[slow, fast], [fast, slow]] {
        for buffer in [256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20] {
            let single = goodput(&[fast], config(buffer), "cubic");
            let mut net = Net::new(&order, config(buffer), "cubic", 9);
            let both = net.goodput(ms(3000), ms(10_000));
            let s = net.ends[0].stats();
            println!("{buffer:9} single {single:.1} both {both:.1}  carried {:?} opp {} copies {} lost {}", net.carried, s.opportunistic_segments, s.copied_segments, s.tcp.lost_packets);
        }
    }
}

#[test]
#[ignore]
fn trace_one() {
    let mut net = Net::new(&[Path::new(10, 200), Path::new(100, 10)], config(1 << 18), "cubic", 9);
    net.ends[0].write_synthetic(u64::MAX / 4);
    for i in 0..60 {
        let before = net.read[1];
        net.run_for(ms(100));
        let v: Vec<_> = net.ends[0].path_views().iter().map(|v| (v.cwnd/1428, v.in_flight/1428, v.ssthresh.map(|s|s/1428), v.srtt.map(|d|d.as_millis()), v.can_send)).collect();
        println!("{i} {:.1} {v:?} opp {} unacked {} {}", (net.read[1] - before) as f64 * 8e-5, net.ends[0].stats().opportunistic_segments, net.ends[0].unacknowledged() - net.ends[0].unsent(), net.ends[1].out_of_order());
    }
}
