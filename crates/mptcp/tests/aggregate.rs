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
        for buffer in [
            256 << 10,
            512 << 10,
            1 << 20,
            2 << 20,
            4 << 20,
            8 << 20,
            16 << 20,
            32 << 20,
        ] {
            let single = goodput(&[fast], config(buffer), "cubic");
            let mut net = Net::new(&order, config(buffer), "cubic", 9);
            let both = net.goodput(ms(3000), ms(10_000));
            let s = net.ends[0].stats();
            println!(
                "{buffer:9} single {single:.1} both {both:.1}  carried {:?} opp {} copies {} lost {}",
                net.carried, s.opportunistic_segments, s.copied_segments, s.tcp.lost_packets
            );
        }
    }
}

use rand::RngExt;
use rand_pcg::Pcg64;

fn between(rng: &mut Pcg64, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.random::<f64>())
}

fn random_path(rng: &mut Pcg64) -> Path {
    let rate = gargalo_units::Rate::from_bps_f64(between(rng, 1e6, 60e6));
    let delay = gargalo_units::Duration::from_secs_f64(between(rng, 0.002, 0.15));
    let bdp = (rate * (delay * 2)).get() as f64;
    Path {
        rate,
        delay,
        queue: ((bdp * between(rng, 0.3, 3.0)) as u64).max(30_000),
        loss: if rng.random::<f64>() < 0.3 {
            between(rng, 1e-4, 2e-2)
        } else {
            0.0
        },
        dead: (gargalo_units::Instant::MAX, gargalo_units::Instant::MAX),
    }
}

#[test]
#[ignore]
fn random_pairs() {
    let n: u64 = std::env::var("PAIRS")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(60);
    let name = std::env::var("SCHED").unwrap_or("window-aware".into());
    let mut ratios = Vec::new();
    for seed in 0..n {
        let mut rng = Pcg64::new(u128::from(seed), 5);
        let pair = [random_path(&mut rng), random_path(&mut rng)];
        let buffer = between(&mut rng, 256e3, 16e6) as u64;
        let mut c = config(buffer);
        c.scheduler = scheduler(&name);
        let run = |p: &[Path]| {
            let mut net = Net::new(p, c.clone(), "cubic", seed);
            let g = net.goodput(ms(4000), ms(16_000));
            (g, net.ends[0].stats(), net.carried.clone())
        };
        let single = [run(&pair[..1]).0, run(&pair[1..]).0];
        let best = single[0].max(single[1]);
        let (both, st, carried) = run(&pair);
        let ratio = both / best;
        ratios.push(ratio);
        let show = |p: &Path| {
            format!(
                "{:.1}M {}ms q{}k l{:.4}",
                p.rate.as_bps() as f64 * 1e-6,
                p.delay.as_millis(),
                p.queue / 1000,
                p.loss
            )
        };
        if ratio < 0.97 {
            println!(
                "{seed} [{}] [{}] buffer {}k single {:.1} {:.1} both {both:.1} ratio {ratio:.2} carried {carried:?} opp {} reinj {} copies {}",
                show(&pair[0]),
                show(&pair[1]),
                buffer / 1000,
                single[0],
                single[1],
                st.opportunistic_segments,
                st.reinjected_segments,
                st.copied_segments
            );
        }
    }
    ratios.sort_by(f64::total_cmp);
    let q = |f: f64| ratios[((ratios.len() - 1) as f64 * f) as usize];
    println!(
        "min {:.3} p5 {:.3} p25 {:.3} median {:.3} max {:.3}",
        q(0.0),
        q(0.05),
        q(0.25),
        q(0.5),
        q(1.0)
    );
}

#[test]
#[ignore]
fn trace_pair() {
    let seed: u64 = std::env::var("SEED").unwrap().parse().unwrap();
    let mut rng = Pcg64::new(u128::from(seed), 5);
    let pair = [random_path(&mut rng), random_path(&mut rng)];
    let buffer = between(&mut rng, 256e3, 16e6) as u64;
    let paths: &[Path] = match std::env::var("ONLY") {
        Ok(s) => &pair[s.parse().unwrap()..][..1],
        _ => &pair,
    };
    let mut net = Net::new(paths, config(buffer), "cubic", seed);
    net.ends[0].write_synthetic(u64::MAX / 4);
    for i in 0..40 {
        let before = net.read[1];
        net.run_for(ms(500));
        let v: Vec<_> = net.ends[0]
            .path_views()
            .iter()
            .map(|v| {
                (
                    v.cwnd / 1428,
                    v.in_flight / 1428,
                    v.ssthresh.map(|s| s / 1428),
                    v.srtt.map(|d| d.as_millis()),
                    v.min_rtt.map(|d| d.as_millis()),
                    v.can_send,
                    v.lost_packets,
                )
            })
            .collect();
        let st = net.ends[0].stats();
        println!(
            "{i} {:.1} {v:?} opp {} rei {} unacked {} ooo {} to {}",
            (net.read[1] - before) as f64 * 16e-6,
            st.opportunistic_segments,
            st.reinjected_segments,
            net.ends[0].unacknowledged() - net.ends[0].unsent(),
            net.ends[1].out_of_order(),
            st.tcp.timeouts
        );
    }
}
