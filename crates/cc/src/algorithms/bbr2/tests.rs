//! BBRv2 against an ideal bottleneck: what its draft says otherwise than that of version 3, by its sections, and the
//! bounds that both share.

use gargalo_units::{Bytes, Duration, Rate};

use super::*;
use crate::Controller;
use crate::bounded_bbr::testing::{
    RTT, keeps_headroom_in_a_shallow_buffer, lose_while_probing, lost, share, startup_with_losses,
    stays_without_a_queue,
};
use crate::event::{Cause, Spurious};
use crate::params::Params;
use crate::testing::net::{DELAY, Net, RATE};
use crate::testing::{MSS, congestion, init, path};

fn with(params: &Params) -> Net<Bbr2> {
    let params = Bbr2Params::from_params(ALGORITHM.name, params).unwrap();
    Net::new(build(params, init()))
}

fn bbr2() -> Net<Bbr2> {
    with(&Params::new())
}

fn bdp() -> Bytes {
    Net::<Bbr2>::bdp()
}

fn gains(net: &Net<Bbr2>) -> (f64, f64) {
    (net.cc.pacing_gain(), net.cc.cwnd_gain())
}

// --- gains (§4.6.1) ---

#[test]
fn gains_of_all_states() {
    let mut net = bbr2();
    let table = [
        ("startup", (2.77, 2.0)),
        ("drain", (0.5, 2.0)),
        ("probe-bw-down", (0.9, 2.0)),
        ("probe-bw-cruise", (1.0, 2.0)),
        ("probe-bw-refill", (1.0, 2.0)),
        ("probe-bw-up", (1.25, 2.0)),
        ("probe-bw-down", (0.9, 2.0)),
    ];
    for (phase, want) in table {
        net.run_to_phase(phase);
        assert_eq!(gains(&net), want, "{phase}");
    }
    net.run_to_phase("probe-rtt");
    assert_eq!(gains(&net), (1.0, 0.5));
}

#[test]
fn constants_are_those_of_the_draft() {
    let p = Bbr2Params::DEFAULT.shared;
    // §2.7, §2.11, §4.3.1.3.
    assert_eq!((p.loss_threshold, p.beta, p.headroom), (0.02, 0.7, 0.15));
    assert_eq!((p.min_window, p.full_loss_count), (4, 3));
    assert_eq!((p.full_pipe_growth, p.full_pipe_rounds), (1.25, 3));
    // §2.13, §4.3.3.5.3.
    assert_eq!(p.min_rtt_window, Duration::from_secs(10));
    assert_eq!(p.probe_rtt_interval, Duration::from_secs(5));
    assert_eq!(p.probe_rtt_duration, Duration::from_millis(200));
    let (wait, random) = (p.probe_wait, p.probe_wait_random);
    assert_eq!(
        (wait, random),
        (Duration::from_secs(2), Duration::from_secs(1))
    );
    assert_eq!((p.probe_rounds, p.extra_acked_window), (63, 10));
}

#[test]
fn a_quantum_is_one_segment_below_1_2_mbit_per_second() {
    let mut cc = bbr2().cc;
    for (kbps, quantum) in [
        (1_199, MSS),
        (1_200, MSS * 2),
        (100_000, Bytes::new(12_500)),
    ] {
        cc.pacing_rate = Rate::from_bps(kbps * 1000);
        assert_eq!(cc.quantum(), quantum, "{kbps} kbit/s (§4.6.3)");
    }
}

// --- STARTUP and DRAIN (§4.3.1, §4.3.2) ---

#[test]
fn startup_ends_after_three_rounds_without_more_bandwidth() {
    let mut net = bbr2();
    net.run_to_phase("drain");
    assert!(net.now.as_secs_f64() < 1.0, "{}", net.now);
    assert!((share(net.cc.max_bw.get()) - 1.0).abs() < 0.02);
    assert!(!net.cc.long_term.is_set());
    net.run_to_phase("probe-bw-down");
    assert!(net.in_flight() <= bdp() + MSS);
}

#[test]
fn a_plateau_is_one_of_the_filtered_bandwidth() {
    let mut cc = bbr2().cc;
    cc.max_bw.update(RATE);
    // The latest sample is lower (§4.3.1.2: BBR.max_bw).
    assert_eq!(Version2::plateau_sample(&cc, RATE.mul_f64(0.5)), Some(RATE));
    cc.full_bw.set_reached();
    assert_eq!(Version2::plateau_sample(&cc, RATE), None);
}

#[test]
fn three_losses_in_a_round_end_startup_and_set_no_bound() {
    let (ended, net) = startup_with_losses(bbr2(), 25);
    assert!(ended && net.cc.full_bw.is_reached());
    assert!(!net.cc.long_term.is_set(), "§4.3.1.3 sets filled_pipe only");
    // Two do not suffice.
    let two = Params::new().with("full_loss_count", 1000.0);
    assert!(!startup_with_losses(with(&two), 25).0);
    let (ended, net) = startup_with_losses(bbr2(), 60);
    assert!(!ended, "{}", net.cc.phase());
}

#[test]
fn drain_ends_with_the_queue_only() {
    let mut net = bbr2();
    net.run_to_phase("drain");
    net.rate = RATE.mul_f64(0.25);
    let round = net.cc.round.count();
    while net.cc.round.count() < round + 5 {
        net.step();
        assert_eq!(net.cc.phase(), "drain", "§4.3.2 has no bound in rounds");
    }
    assert!(net.in_flight() > net.cc.inflight(net.cc.bw, 1.0));
}

#[test]
fn startup_remembers_aggregation_for_ten_rounds() {
    let mut net = bbr2();
    net.run_until(0.1);
    let round = net.cc.round.count();
    net.cc.aggregation.extra_acked.update(round, MSS * 500);
    while net.cc.round.count() < round + 2 {
        net.step();
    }
    assert_eq!(net.cc.phase(), "startup");
    assert_eq!(net.cc.aggregation.extra_acked.get(), MSS * 500, "§4.5.5");
}

// --- PROBE_BW (§4.3.3) ---

#[test]
fn up_ends_with_a_queue_of_a_quarter_of_the_bdp() {
    let mut net = bbr2();
    net.run_to_phase("probe-bw-up");
    let started = net.now;
    let (mut in_flight, mut target) = (Bytes::ZERO, Bytes::ZERO);
    while net.cc.phase() == "probe-bw-up" {
        in_flight = net.in_flight();
        target = net.cc.inflight(net.cc.max_bw.get(), 1.25);
        net.step();
    }
    assert_eq!(net.cc.phase(), "probe-bw-down");
    assert!(target >= bdp().mul_f64(1.24) && target <= bdp().mul_f64(1.27) + MSS * 2);
    assert!(in_flight > target && in_flight <= target + MSS * 2);
    assert!(net.now - started > RTT);
    // Another gain, another queue.
    let mut net = with(&Params::new().with("up_inflight_gain", 1.6));
    net.run_to_phase("probe-bw-up");
    net.run_to_phase("probe-bw-down");
    assert!(net.in_flight() > bdp().mul_f64(1.55), "{}", net.in_flight());
}

#[test]
fn up_lasts_a_minimum_round_trip_time() {
    let mut net = with(&Params::new().with("up_inflight_gain", 1.0));
    net.run_to_phase("probe-bw-up");
    let started = net.now;
    net.run_to_phase("probe-bw-down");
    let lasted = net.now - started;
    assert!(lasted > RTT && lasted < RTT * 2, "{lasted}");
}

#[test]
fn probes_are_as_far_apart_as_reno_would_need_and_at_most_three_seconds() {
    // 41 segments: 41 rounds of 41 ms (§4.3.3.5).
    let mut net = bbr2();
    net.run_to_phase("probe-bw-up");
    net.run_to_phase("probe-bw-down");
    let round = net.cc.round.count();
    net.run_to_phase("probe-bw-refill");
    let rounds = net.cc.round.count() - round;
    assert!((39..=42).contains(&rounds), "{rounds}");
    // Four times as many segments: 62 or 63 rounds.
    let mut net = bbr2();
    net.rate = RATE.mul_f64(4.0);
    net.run_to_phase("probe-bw-up");
    net.run_to_phase("probe-bw-down");
    let (round, started) = (net.cc.round.count(), net.now);
    net.cc.min_rtt.schedule(started);
    net.run_to_phase("probe-bw-refill");
    let rounds = net.cc.round.count() - round;
    let waited = (net.now - started).as_secs_f64();
    assert!(
        (61..=64).contains(&rounds) || (2.0..3.1).contains(&waited),
        "{rounds} {waited}"
    );
}

#[test]
fn more_than_two_percent_lost_ends_a_probe_where_the_threshold_was_crossed() {
    let net = lose_while_probing(bbr2(), 2);
    assert_eq!(net.cc.phase(), "probe-bw-up");
    assert!(!net.cc.long_term.is_set());
    let net = lose_while_probing(bbr2(), 3);
    assert_eq!(net.cc.phase(), "probe-bw-down");
    // 99 before the third, of which 2 were lost: (0.02 * 99 - 2) / 0.98 more (§4.5.6.2).
    let want = 99_000.0 + (0.02 * 99_000.0 - 2_000.0) / 0.98;
    assert_eq!(net.cc.long_term.inflight, Bytes::from_f64(want));
    assert!(!net.cc.probe.is_sample, "once a probe");
}

#[test]
fn a_sample_with_too_much_loss_ends_a_probe() {
    let mut net = bbr2();
    net.run_to_phase("probe-bw-up");
    net.sampler.on_lost(MSS * 3); // not reported one by one
    net.acknowledge();
    assert_eq!(
        net.cc.phase(),
        "probe-bw-down",
        "CheckInflightTooHigh (§4.5.6.2)"
    );
    assert!(net.cc.long_term.is_set());
    assert!(net.cc.long_term.inflight >= net.cc.target_inflight().mul_f64(0.7));
}

#[test]
fn a_probe_goes_beyond_the_bound_unless_it_is_to_be_careful() {
    let careful = Params::new().with("precautionary_probing", true);
    for (params, goes_on) in [(Params::new(), true), (careful, false)] {
        let mut net = with(&params);
        net.run_until(1.0);
        net.cc.probe.too_high = true;
        let bound = bdp() + MSS * 2;
        net.cc.long_term.inflight = bound;
        net.run_to_phase("probe-bw-up");
        net.run_to_phase("probe-bw-down");
        assert_eq!(net.cc.long_term.inflight > bound, goes_on);
        assert_eq!(net.in_flight() > bdp().mul_f64(1.2), goes_on);
    }
}

#[test]
fn loss_while_cruising_slows_down_by_at_most_beta_a_round() {
    let mut net = bbr2();
    net.run_until(1.0);
    assert_eq!(net.cc.phase(), "probe-bw-cruise");
    let (bw, cwnd) = (net.cc.bw, net.cc.cwnd());
    net.cc.on_loss(&lost(&net, MSS * 41), &path(DELAY));
    net.run_until(net.now.as_secs_f64() + 0.1);
    let got = share(net.cc.bw) / share(bw);
    assert!((0.9..=1.0).contains(&got), "what was delivered: {got}");
    assert!(net.cc.short_term.inflight < cwnd);
    assert!(net.cc.short_term.inflight >= cwnd.mul_f64(0.7), "§4.5.6.3");
    net.run_to_phase("probe-bw-refill");
    let bounds = (net.cc.short_term.bw, net.cc.short_term.inflight);
    assert_eq!(bounds, (Rate::MAX, Bytes::MAX), "§4.3.3.3");
}

#[test]
fn a_shallow_buffer_sets_the_bound_and_leaves_headroom() {
    keeps_headroom_in_a_shallow_buffer(bbr2());
}

// --- PROBE_RTT (§4.3.4) ---

#[test]
fn probe_rtt_after_five_seconds_for_200_ms_with_half_a_bdp() {
    let mut net = bbr2();
    net.run_until(3.0);
    let now = net.now;
    net.cc.min_rtt.update(now, Some(DELAY)); // lower than anything to come
    net.run_to_phase("probe-rtt");
    let waited = (net.now - now).as_secs_f64();
    assert!((5.0..5.1).contains(&waited), "{waited}");
    let entered = net.now;
    let half = net.cc.bdp(net.cc.bw, 0.5);
    assert_eq!(net.cc.cwnd(), half);
    assert!((half.as_f64() / bdp().as_f64() - 0.5).abs() < 0.02);
    net.run_to_phase("probe-bw-cruise");
    let held = (net.now - entered).as_secs_f64();
    assert!((0.2..0.4).contains(&held), "{held}");
}

// --- recovery (§4.6.4.4) ---

fn enter_recovery(net: &mut Net<Bbr2>) {
    let event = congestion(Cause::Loss, net.in_flight());
    net.cc.on_loss(&lost(net, MSS * 41), &path(DELAY));
    net.cc.on_congestion(&event, &path(DELAY));
}

#[test]
fn the_first_round_of_a_recovery_conserves_packets() {
    let mut net = bbr2();
    net.run_until(1.0);
    let cwnd = net.cc.cwnd();
    enter_recovery(&mut net);
    let round = net.cc.round.count();
    net.acknowledge();
    assert_eq!(net.cc.cwnd(), net.in_flight() + MSS);
    assert!(net.cc.cwnd() < cwnd);
    while net.cc.round.count() < round + 2 {
        net.step();
        assert!(net.cc.cwnd() <= cwnd);
    }
    net.cc.on_recovered(net.now, &path(DELAY));
    assert_eq!(net.cc.cwnd(), net.cc.short_term.inflight.min(cwnd));
}

#[test]
fn a_timeout_leaves_one_segment_and_recovery_restores() {
    let mut net = bbr2();
    net.run_until(2.0);
    let cwnd = net.cc.cwnd();
    enter_recovery(&mut net);
    let timeout = congestion(Cause::Timeout { consecutive: 1 }, net.in_flight());
    net.cc.on_congestion(&timeout, &path(DELAY));
    assert_eq!(net.cc.cwnd(), MSS);
    net.acknowledge();
    assert!(
        net.cc.cwnd() <= MSS * 4,
        "no packet conservation after a timeout"
    );
    net.cc.on_recovered(net.now, &path(DELAY));
    assert_eq!(net.cc.cwnd(), cwnd);
}

#[test]
fn a_spurious_recovery_restores_the_bounds_but_not_the_probe() {
    let mut net = lose_while_probing(bbr2(), 3);
    assert!(net.cc.long_term.is_set());
    net.cc
        .on_congestion(&congestion(Cause::Loss, MSS * 100), &path(DELAY));
    net.acknowledge();
    let phase = net.cc.phase();
    let (now, cause) = (net.now, Cause::Loss);
    net.cc.on_spurious(&Spurious { now, cause }, &path(DELAY));
    assert_eq!(net.cc.phase(), phase, "version 3 goes back to REFILL");
    assert!(!net.cc.long_term.is_set());
}

// --- altogether ---

#[test]
fn steady_state_utilises_the_path_without_a_queue() {
    stays_without_a_queue(bbr2());
}

#[test]
fn ten_times_the_bandwidth_is_found_and_a_tenth_is_learnt() {
    let mut net = bbr2();
    net.run_until(3.0);
    net.rate = RATE.mul_f64(10.0);
    // Each probe of a round trip or two adds up to a quarter, and one comes every 1.7 s or later.
    net.run_until(25.0);
    assert!(share(net.cc.max_bw.get()) > 9.5, "{}", net.cc.max_bw.get());
    let mut net = bbr2();
    net.run_until(3.0);
    net.rate = RATE.mul_f64(0.1);
    net.buffer = bdp() / 10;
    net.run_until(3.9); // in PROBE_BW_CRUISE
    let slower = net.cc.max_bw.get().mul_f64(0.7);
    assert!(net.cc.bw < slower, "losses tell it: {}", net.cc.bw);
    net.run_until(13.0);
    assert!(share(net.cc.max_bw.get()) < 0.12, "{}", net.cc.max_bw.get());
}

#[test]
fn the_values_of_linux_v2alpha_build() {
    let params = Params::new()
        .with("startup_pacing_gain", 2.885)
        .with("startup_cwnd_gain", 2.885)
        .with("drain_pacing_gain", 1.0 / 2.885)
        .with("down_pacing_gain", 0.75)
        .with("full_loss_count", 8.0)
        .with("packet_conservation", false)
        .with("precautionary_probing", true);
    let mut net = with(&params);
    assert_eq!(gains(&net), (2.885, 2.885));
    net.run_to_phase("drain");
    assert_eq!(gains(&net), (1.0 / 2.885, 2.885));
    net.run_to_phase("probe-bw-down");
    assert_eq!(gains(&net), (0.75, 2.0));
    net.run_to_phase("probe-bw-cruise");
    let cwnd = net.cc.cwnd();
    enter_recovery(&mut net);
    net.acknowledge();
    assert_eq!(net.cc.cwnd(), cwnd, "no packet conservation");
}
