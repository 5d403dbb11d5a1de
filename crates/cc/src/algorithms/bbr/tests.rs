//! BBR against an ideal bottleneck: fixed rate and propagation delay, unlimited buffer.

use super::*;
use crate::event::Idle;
use crate::params::Params;
use crate::testing::net::{DELAY, Net, RATE};
use crate::testing::{MSS, congestion, init, path, sent};

fn bbr() -> Net<Bbr> {
    Net::new(Bbr::new(BbrParams::DEFAULT, init()))
}

#[test]
fn startup_fills_the_pipe_drain_empties_the_queue() {
    let mut net = bbr();
    net.run_to_phase("drain");
    assert!(net.in_flight() > Net::<Bbr>::bdp());
    // Exponential growth: log2 of the bandwidth-delay product in rounds, and three flat ones.
    assert!(net.now.as_secs_f64() < 1.0, "{}", net.now);
    net.run_to_phase("probe-bw");
    assert!(net.in_flight() <= Net::<Bbr>::bdp() + net.cc.quantum() * 3 + MSS * 4);
    assert_eq!(net.phases, ["startup", "drain", "probe-bw"]);
}

#[test]
fn steady_state_estimates_and_utilises_the_path() {
    let mut net = bbr();
    net.run_until(2.0);
    let before = net.sampler.delivered();
    net.run_until(9.0);
    let rate = (net.sampler.delivered() - before) / Duration::from_secs(7);
    assert!(rate.as_bps() > RATE.as_bps() * 97 / 100, "{rate}");
    let bw = net.cc.bw().as_bps() as f64 / RATE.as_bps() as f64;
    assert!((0.99..1.01).contains(&bw), "{bw}");
    let min_rtt = net.cc.min_rtt.get().unwrap();
    assert_eq!(min_rtt, DELAY + Duration::from_millis(1));
    // cwnd: two bandwidth-delay products, three quanta, aggregation; an even number of segments.
    let quantum = net.cc.quantum();
    assert_eq!(quantum, MSS * 2);
    let cwnd = net.cc.cwnd();
    assert!(
        cwnd >= Net::<Bbr>::bdp() * 2 + quantum * 3 && cwnd <= Net::<Bbr>::bdp() * 2 + MSS * 30
    );
    assert_eq!(cwnd.get() % (2 * MSS.get()), 0);
}

#[test]
fn gain_cycle_visits_eight_phases_of_one_min_rtt() {
    let mut net = bbr();
    net.run_until(3.0);
    let mut gains = vec![(net.now, net.cc.pacing_gain)];
    while net.now.as_secs_f64() < 8.0 {
        net.step();
        if gains.last().unwrap().1 != net.cc.pacing_gain {
            gains.push((net.now, net.cc.pacing_gain));
        }
    }
    for w in gains.windows(2).skip(1) {
        let (from, gain) = w[0];
        let length = (w[1].0 - from).as_secs_f64() / 0.041;
        match gain {
            1.25 => assert!((1.0..=2.2).contains(&length), "probing: {length}"),
            0.75 => assert!(length <= 1.2, "draining: {length}"),
            _ => assert!((5.9..=6.5).contains(&length), "cruising: {length}"),
        }
    }
    assert!(gains.len() > 20);
}

#[test]
fn probe_rtt_after_ten_seconds_for_200_ms_with_four_segments() {
    let mut net = bbr();
    // A standing queue of a competitor hides the propagation delay after the start.
    net.run_until(3.0);
    net.link_free = net.link_free.max(net.now) + Duration::from_millis(5);
    let seen = net.now;
    net.cc.min_rtt.refresh(seen);
    net.cc.min_rtt.update(seen, Some(DELAY)); // lower than anything to come
    let cwnd = net.cc.cwnd();
    net.run_to_phase("probe-rtt");
    let entered = net.now;
    let waited = (entered - seen).as_secs_f64();
    assert!((10.0..10.1).contains(&waited), "{waited}");
    assert_eq!(net.cc.cwnd(), MSS * 4);
    let bw = net.cc.bw();
    net.run_to_phase("probe-bw");
    let held = (net.now - entered).as_secs_f64();
    assert!((0.2..0.4).contains(&held), "{held}");
    assert!(net.cc.cwnd() >= cwnd - MSS * 10, "cwnd is restored");
    net.run_until(net.now.as_secs_f64() + 1.0);
    let after = net.cc.bw().as_bps() as f64 / bw.as_bps() as f64;
    assert!(
        after > 0.98,
        "samples of PROBE_RTT do not lower the estimate: {after}"
    );
}

#[test]
fn application_limited_samples_do_not_lower_the_estimate() {
    let mut net = bbr();
    net.run_until(3.0);
    let bw = net.cc.bw();
    let low = RateSample {
        delivered: MSS,
        lost: Bytes::ZERO,
        interval: DELAY,
        send_elapsed: DELAY,
        ack_elapsed: DELAY,
        prior_delivered: Bytes::ZERO,
        total_delivered: Bytes::ZERO,
        tx_in_flight: MSS,
        app_limited: true,
        retransmission: false,
    };
    for i in 1..=20u64 {
        let total = net.sampler.delivered() + MSS * i;
        net.cc.on_ack(
            &Acked {
                now: net.now + DELAY * i,
                sample: Some(RateSample {
                    prior_delivered: total - MSS,
                    total_delivered: total,
                    ..low
                }),
                ..crate::testing::ack(MSS.get())
            },
            &path(DELAY),
        );
    }
    assert_eq!(net.cc.bw(), bw);
}

#[test]
fn recovery_conserves_packets_for_a_round_then_restores() {
    let mut net = bbr();
    net.run_until(3.0);
    let good = net.cc.cwnd();
    net.cc
        .on_congestion(&congestion(Cause::Loss, net.in_flight()), &path(DELAY));
    net.acknowledge();
    assert_eq!(net.cc.cwnd(), net.in_flight() + MSS);
    assert!(net.cc.conservation.is_active());
    net.run_until(net.now.as_secs_f64() + 0.2);
    assert!(!net.cc.conservation.is_active(), "one round only");
    net.cc.on_recovered(net.now, &path(DELAY));
    assert!(net.cc.cwnd() >= good);
}

#[test]
fn timeout_collapses_to_one_segment_and_grows_back() {
    let mut net = bbr();
    net.run_until(3.0);
    let good = net.cc.cwnd();
    net.cc.on_congestion(
        &congestion(Cause::Timeout { consecutive: 1 }, net.in_flight()),
        &path(DELAY),
    );
    assert_eq!(net.cc.cwnd(), MSS);
    net.acknowledge();
    assert!(net.cc.cwnd() >= MSS * 2);
    net.cc.on_recovered(net.now, &path(DELAY));
    assert_eq!(net.cc.cwnd(), good);
}

#[test]
fn restart_from_idle_paces_at_the_estimate() {
    let mut net = bbr();
    net.run_until(3.0);
    while net.cc.pacing_gain != 1.25 {
        net.step();
    }
    let mut idle = sent(MSS, Bytes::ZERO);
    idle.app_limited = true;
    idle.now = net.now + Duration::from_secs(20);
    idle.idle = Some(Idle {
        duration: Duration::from_secs(20),
        rto: Duration::from_secs(1),
        restart_window: None,
        was_app_limited: false,
    });
    net.cc.on_send(&idle, &path(DELAY));
    let expected = net.cc.bw().mul_f64(0.99);
    assert_eq!(net.cc.pacing_rate(), Some(expected));
    // The expired minimum round-trip time does not start PROBE_RTT now.
    net.idle_until(idle.now);
    net.send();
    net.cc.idle_restart = true;
    net.acknowledge();
    assert_eq!(net.cc.phase(), "probe-bw");
}

#[test]
fn a_quantum_is_a_millisecond_within_bounds() {
    let mut bbr = Bbr::new(BbrParams::DEFAULT, init());
    for (mbps, quantum) in [
        (1, MSS),
        (2, MSS * 2),
        (100, Bytes::new(12_500)),
        (10_000, MAX_QUANTUM),
    ] {
        bbr.pacing_rate = Rate::from_mbps(mbps);
        assert_eq!(bbr.quantum(), quantum, "{mbps} Mbit/s");
    }
}

#[test]
fn initial_pacing_is_the_startup_gain_over_the_initial_window() {
    let bbr = Bbr::new(BbrParams::DEFAULT, init());
    // 10 segments in a nominal millisecond, gain 2.885, 1 % margin.
    let expected = 80e6 * 2.885 * 0.99;
    assert!((bbr.pacing_rate.as_bps() as f64 - expected).abs() < 2.0);
}

#[test]
fn same_stream_same_run() {
    let run = || {
        let mut net = bbr();
        net.run_until(5.0);
        format!("{:?}", net.cc)
    };
    assert_eq!(run(), run());
}

#[test]
fn parameters_reach_the_model() {
    let params = Params::new()
        .with("min_window", 8.0)
        .with("min_rtt_window", "5s")
        .with("policer_detection", false);
    let built = (ALGORITHM.build)(&params, init()).unwrap();
    let text = format!("{built:?}");
    assert!(text.contains("min_window: 8") && text.contains("policer_detection: false"));
}
