//! BBRv3 against an ideal bottleneck: the example test cases of the draft's appendix A, and the
//! arithmetic of losses, marks and undo.

use gargalo_units::{Bytes, Duration, Rate};

use super::*;
use crate::Controller;
use crate::bounded_bbr::EcnResponse;
use crate::bounded_bbr::testing::{
    RTT, keeps_headroom_in_a_shallow_buffer, lose_while_probing, lost, share, startup_with_losses,
    stays_without_a_queue,
};
use crate::event::{Cause, Congestion, Idle, Spurious};
use crate::params::Params;
use crate::path::Path;
use crate::testing::net::{DELAY, Net, RATE};
use crate::testing::{MSS, ack, congestion, init, path, sent};

fn with(shared: BoundedParams) -> Net<Bbr3> {
    Net::new(Bbr3::new(shared, Version3::DEFAULT, init()))
}

fn bbr3() -> Net<Bbr3> {
    with(BoundedParams::DEFAULT)
}

fn bdp() -> Bytes {
    Net::<Bbr3>::bdp()
}

// --- appendix A ---

#[test]
fn startup_ends_on_a_bandwidth_plateau_and_drain_empties_the_queue() {
    let mut net = bbr3();
    assert_eq!((net.cc.pacing_gain(), net.cc.cwnd_gain()), (2.77, 2.0));
    net.run_to_phase("drain");
    assert!(net.now.as_secs_f64() < 1.0, "{}", net.now);
    assert!((share(net.cc.max_bw.get()) - 1.0).abs() < 0.02);
    assert!(net.cc.full_bw.is_now() && net.cc.full_bw.is_reached());
    assert_eq!((net.cc.pacing_gain(), net.cc.cwnd_gain()), (0.5, 2.0));
    let start = net.now;
    net.run_to_phase("probe-bw-down");
    assert!((net.now - start) < RTT * 7 / 2, "{}", net.now - start);
    assert!(net.in_flight() <= bdp() + MSS);
    assert_eq!(net.cc.pacing_gain(), 0.9);
}

#[test]
fn drain_ends_after_three_rounds_whatever_is_in_flight() {
    let mut net = bbr3();
    net.run_to_phase("drain");
    net.rate = RATE.mul_f64(0.25);
    let round = net.cc.round.count();
    net.run_to_phase("probe-bw-down");
    assert!(net.in_flight() > net.cc.inflight(net.cc.bw, 1.0));
    assert_eq!(net.cc.round.count() - round, 4);
}

#[test]
fn startup_ends_on_loss_even_if_the_application_limits() {
    let (ended, net) = startup_with_losses(bbr3(), 5);
    assert!(ended && net.cc.full_bw.is_reached() && net.cc.full_bw.is_now());
    let bound = net.cc.long_term.inflight;
    assert!(bound >= net.cc.latest.inflight && bound <= MSS * 100);
    assert_eq!(net.cc.undo.state, Some(State::Startup));
    // Fewer than six events a round do not suffice, although more than 2 % are lost.
    let (ended, net) = startup_with_losses(bbr3(), 25);
    assert!(!ended && !net.cc.long_term.is_set());
}

#[test]
fn a_cycle_is_down_cruise_refill_up() {
    let mut net = bbr3();
    net.run_until(4.9);
    let cycle: Vec<_> = net.phases[2..].chunks(4).collect();
    assert!(cycle.len() >= 2, "{:?}", net.phases);
    for c in &cycle[..cycle.len() - 1] {
        assert_eq!(
            *c,
            [
                "probe-bw-down",
                "probe-bw-cruise",
                "probe-bw-refill",
                "probe-bw-up"
            ]
        );
    }
}

#[test]
fn up_ends_after_three_flat_rounds() {
    let mut net = bbr3();
    net.run_to_phase("probe-bw-up");
    assert_eq!((net.cc.pacing_gain(), net.cc.cwnd_gain()), (1.25, 2.25));
    let round = net.cc.round.count();
    net.run_to_phase("probe-bw-down");
    assert_eq!(net.cc.round.count() - round, 3);
    assert!(
        net.in_flight() >= bdp().mul_f64(1.25),
        "{}",
        net.in_flight()
    );
}

#[test]
fn reno_would_have_probed_after_as_many_rounds_as_segments_in_flight() {
    // 41 segments: a probe every 41 rounds of 41 ms, before two to three seconds are over.
    let mut net = bbr3();
    net.run_to_phase("probe-bw-up");
    net.run_to_phase("probe-bw-down");
    let round = net.cc.round.count();
    net.run_to_phase("probe-bw-refill");
    let rounds = net.cc.round.count() - round;
    assert!((39..=42).contains(&rounds), "{rounds}");

    // A window of more than 63 segments does not wait longer than 63 rounds.
    net.cc.probe.rounds_since_up = 62;
    net.cc.bw = RATE.mul_f64(10.0);
    net.cc.cwnd = MSS * 800;
    net.cc.probe.rounds_since_up = 62;
    assert!(!net.cc.is_time_to_probe(net.now - Duration::from_secs(1)));
    net.cc.probe.rounds_since_up = 63;
    assert!(net.cc.is_time_to_probe(net.now - Duration::from_secs(1)));
}

#[test]
fn down_ends_with_the_wait_if_the_queue_does_not_drain() {
    let mut net = bbr3();
    net.run_to_phase("probe-bw-up");
    net.run_to_phase("probe-bw-down");
    net.rate = RATE.mul_f64(0.25);
    let n = net.phases.len();
    net.run_to_phase("probe-bw-refill");
    assert_eq!(net.phases[n..], ["probe-bw-refill"]);
}

#[test]
fn without_loss_an_application_limited_probe_never_ends() {
    let mut net = bbr3();
    net.run_to_phase("probe-bw-up");
    net.gap = Duration::from_millis(4);
    net.run_until(net.now.as_secs_f64() + 0.1);
    let n = net.phases.len();
    net.cc.min_rtt.schedule(net.now);
    net.run_until(net.now.as_secs_f64() + 4.0);
    assert_eq!(net.phases.len(), n, "{:?}", &net.phases[n - 1..]);
    assert_eq!(net.cc.phase(), "probe-bw-up");
}

#[test]
fn probe_rtt_after_five_seconds_for_200_ms_with_half_a_bdp() {
    let mut net = bbr3();
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
    let bw = net.cc.bw;
    net.run_to_phase("probe-bw-cruise");
    let held = (net.now - entered).as_secs_f64();
    assert!((0.2..0.4).contains(&held), "{held}");
    net.run_until(net.now.as_secs_f64() + 1.0);
    assert!(share(net.cc.bw) / share(bw) > 0.98, "{}", net.cc.bw);
}

#[test]
fn probe_rtt_during_startup_returns_to_startup() {
    let mut net = bbr3();
    net.gap = Duration::from_millis(10);
    net.run_to_phase("probe-rtt");
    net.run_to_phase("startup");
    assert!(!net.cc.full_bw.is_reached());
}

#[test]
fn idleness_replaces_probe_rtt_and_restarts_at_the_bandwidth() {
    let mut net = bbr3();
    net.run_until(3.0);
    let mut idle = sent(MSS, Bytes::ZERO);
    idle.app_limited = true;
    idle.now = net.now + Duration::from_secs(6);
    idle.idle = Some(Idle {
        duration: Duration::from_secs(6),
        rto: Duration::from_secs(1),
        restart_window: None,
        was_app_limited: false,
    });
    net.cc.on_send(&idle, &path(DELAY));
    assert_eq!(net.cc.pacing_rate(), Some(net.cc.bw.mul_f64(0.99)));
    net.idle_until(idle.now);
    net.send();
    net.acknowledge();
    assert!(net.cc.phase().starts_with("probe-bw"), "{}", net.cc.phase());
    assert!(!net.cc.idle_restart);
}

#[test]
fn a_tiny_bdp_keeps_four_segments() {
    let mut net = bbr3();
    net.rate = Rate::from_bps(64_000); // 125 ms a segment, 0.2 segments in 41 ms
    net.run_until(60.0);
    assert!(net.cc.cwnd() >= MSS * 4 && net.cc.cwnd() <= MSS * 40);
    assert!(net.throughput(20.0).as_bps() > 62_000);
}

#[test]
fn ten_times_the_bandwidth_is_found() {
    let mut net = bbr3();
    net.run_until(3.0);
    net.rate = RATE.mul_f64(10.0);
    net.run_until(9.0);
    assert!(share(net.cc.max_bw.get()) > 9.5, "{}", net.cc.max_bw.get());
}

#[test]
fn a_tenth_of_the_bandwidth_is_learnt() {
    let mut net = bbr3();
    net.run_until(3.0);
    net.rate = RATE.mul_f64(0.1);
    net.buffer = bdp() / 10;
    net.run_until(4.0);
    assert!(share(net.cc.bw) < 0.4, "losses tell it: {}", net.cc.bw);
    net.run_until(13.0);
    assert!(share(net.cc.max_bw.get()) < 0.12, "{}", net.cc.max_bw.get());
}

// --- loss ---

#[test]
fn a_shallow_buffer_sets_the_bound_and_leaves_headroom() {
    keeps_headroom_in_a_shallow_buffer(bbr3());
}

#[test]
fn after_too_much_loss_the_next_probe_is_careful_and_then_goes_on() {
    let mut net = bbr3();
    net.run_until(1.0);
    net.cc.probe.too_high = true;
    net.cc.long_term.inflight = bdp() + MSS * 2;
    let n = net.phases.len();
    net.run_to_phase("probe-bw-refill");
    net.run_to_phase("probe-bw-up");
    net.run_to_phase("probe-bw-down");
    assert!(net.cc.probe.precautionary && !net.cc.probe.too_high);
    assert!(net.in_flight() >= bdp() && net.cc.pacing_gain() == 0.9);
    let round = net.cc.round.count();
    net.run_to_phase("probe-bw-refill");
    assert!(net.cc.round.count() - round <= 1, "without cruising again");
    net.run_to_phase("probe-bw-up");
    let bound = net.cc.long_term.inflight;
    net.run_until(net.now.as_secs_f64() + 0.3);
    assert_eq!(net.cc.phase(), "probe-bw-up", "{:?}", &net.phases[n..]);
    assert!(net.cc.long_term.inflight > bound, "and it grows");
}

fn probing(n: u64) -> Net<Bbr3> {
    lose_while_probing(bbr3(), n)
}

#[test]
fn more_than_two_percent_lost_ends_a_probe_where_the_threshold_was_crossed() {
    let net = probing(2);
    assert_eq!(net.cc.phase(), "probe-bw-up");
    assert!(!net.cc.long_term.is_set());
    let net = probing(3);
    assert_eq!(net.cc.phase(), "probe-bw-down");
    // 99 before the third, of which 2 were lost: (0.02 * 99 - 2) / 0.98 more.
    let want = 99_000.0 + (0.02 * 99_000.0 - 2_000.0) / 0.98;
    assert_eq!(net.cc.long_term.inflight, Bytes::from_f64(want));
    assert!(net.cc.probe.too_high && !net.cc.probe.is_sample);
    let net = probing(20);
    assert_eq!(net.cc.long_term.inflight, Bytes::from_f64(want), "once");
}

#[test]
fn the_bound_does_not_fall_below_beta() {
    let mut net = bbr3();
    net.run_to_phase("probe-bw-up");
    let floor = net.cc.target_inflight().mul_f64(0.7);
    net.cc.on_loss(&lost(&net, MSS), &path(DELAY));
    assert_eq!(net.cc.long_term.inflight, floor);
}

#[test]
fn loss_while_cruising_slows_down_by_at_most_beta_a_round() {
    let mut net = bbr3();
    net.run_until(1.0);
    assert_eq!(net.cc.phase(), "probe-bw-cruise");
    let (bw, cwnd) = (net.cc.bw, net.cc.cwnd());
    net.cc.on_loss(&lost(&net, MSS * 41), &path(DELAY));
    net.cc
        .on_congestion(&congestion(Cause::Loss, MSS * 41), &path(DELAY));
    assert_eq!(net.cc.cwnd(), cwnd, "not at once");
    net.run_until(net.now.as_secs_f64() + 0.1);
    let got = share(net.cc.bw) / share(bw);
    assert!((0.9..=1.0).contains(&got), "what was delivered: {got}");
    assert!(net.cc.short_term.inflight < cwnd);
    assert!(net.cc.short_term.inflight >= cwnd.mul_f64(0.7));
    net.run_to_phase("probe-bw-refill");
    assert_eq!(net.cc.short_term.inflight, Bytes::MAX);
    assert_eq!(net.cc.short_term.bw, Rate::MAX);
}

#[test]
fn a_timeout_leaves_one_segment_and_recovery_restores() {
    let mut net = bbr3();
    net.run_until(2.0);
    let cwnd = net.cc.cwnd();
    let timeout = congestion(Cause::Timeout { consecutive: 1 }, net.in_flight());
    net.cc.on_congestion(&timeout, &path(DELAY));
    assert_eq!(net.cc.cwnd(), MSS);
    net.cc.on_recovered(net.now, &path(DELAY));
    assert_eq!(net.cc.cwnd(), cwnd);
}

// --- undo ---

fn spurious(net: &mut Net<Bbr3>, cause: Cause) {
    let now = net.now;
    net.cc.on_spurious(&Spurious { now, cause }, &path(DELAY));
}

#[test]
fn a_spurious_recovery_resumes_the_probe() {
    let mut net = probing(3);
    let bound = net.cc.long_term.inflight;
    net.cc
        .on_congestion(&congestion(Cause::Loss, MSS * 100), &path(DELAY));
    net.acknowledge();
    spurious(&mut net, Cause::Loss);
    assert_eq!(net.cc.phase(), "probe-bw-refill");
    assert!(bound != Bytes::MAX && !net.cc.long_term.is_set());
    let phase = net.cc.phase();
    spurious(&mut net, Cause::Loss);
    assert_eq!(net.cc.phase(), phase, "nothing is left to undo");
}

#[test]
fn a_spurious_timeout_resumes_startup() {
    let mut net = bbr3();
    net.run_until(0.1);
    net.cc.begin_episode();
    net.cc.undo.state = Some(State::Startup);
    net.cc.full_bw.set_reached();
    net.cc.long_term.inflight = MSS * 20;
    net.cc.check_startup_done();
    assert_eq!(net.cc.phase(), "drain");
    spurious(&mut net, Cause::Timeout { consecutive: 1 });
    assert_eq!(net.cc.phase(), "startup");
    assert!(!net.cc.full_bw.is_reached() && !net.cc.long_term.is_set());
    net.run_to_phase("drain");
}

// --- ECN ---

fn mark(net: &mut Net<Bbr3>) {
    let event = Congestion {
        now: net.now,
        ..congestion(Cause::Ecn, MSS * 60)
    };
    net.cc.on_congestion(&event, &path(DELAY));
}

#[test]
fn a_classic_mark_ends_startup_and_probes() {
    let mut net = bbr3();
    net.run_until(0.2);
    mark(&mut net);
    net.acknowledge();
    assert_eq!(net.cc.phase(), "drain");
    net.run_to_phase("probe-bw-up");
    mark(&mut net);
    assert_eq!(net.cc.phase(), "probe-bw-down");
    assert_eq!(net.cc.long_term.inflight, MSS * 60);
    spurious(&mut net, Cause::Ecn);
    assert_eq!(net.cc.phase(), "probe-bw-down");
    mark(&mut net);
    assert_eq!(net.cc.short_term.inflight, Bytes::MAX, "answered already");
    net.run_to_phase("probe-bw-cruise");
    let round = net.cc.round.count();
    mark(&mut net);
    assert_eq!(net.cc.short_term.inflight, Bytes::MAX, "sent before");
    while net.cc.round.count() < round + 2 {
        net.step();
    }
    for _ in 0..3 {
        let bound = net.cc.short_term.inflight_or(net.cc.cwnd());
        let bound = bound.max(net.cc.bdp(net.cc.bw, 1.0));
        mark(&mut net);
        assert_eq!(net.cc.short_term.inflight, bound.mul_f64(0.7));
    }
    assert!(net.cc.short_term.inflight >= bdp().mul_f64(0.69), "no less");

    let none = BoundedParams {
        ecn_response: EcnResponse::None,
        ..BoundedParams::DEFAULT
    };
    let mut net = with(none);
    net.run_until(0.2);
    mark(&mut net);
    net.acknowledge();
    assert_eq!(net.cc.phase(), "startup");
}

#[test]
fn proportional_marks_take_a_third_of_alpha() {
    let params = BoundedParams {
        ecn_response: EcnResponse::Proportional,
        ..BoundedParams::DEFAULT
    };
    let mut net = with(params);
    net.run_to_phase("probe-bw-cruise");
    let (alpha, cwnd) = (net.cc.marks.alpha(), net.cc.cwnd());
    while net.cc.short_term.inflight == Bytes::MAX {
        net.cc.marks.on_ack(MSS, MSS); // half of all
        net.step();
    }
    let share = net.cc.marks.alpha();
    assert!(share <= alpha + 1.0 / 16.0);
    let want = cwnd.mul_f64(1.0 - share / 3.0);
    let got = net.cc.short_term.inflight;
    assert!(
        got <= want + MSS * 2 && got + MSS * 12 >= want,
        "{got} {want}"
    );
    assert_eq!(net.cc.short_term.bw, Rate::MAX, "only what is in flight");
}

// --- control parameters ---

#[test]
fn a_quantum_is_a_millisecond_within_bounds() {
    let mut cc = bbr3().cc;
    for (mbps, quantum) in [
        (1, MSS * 2),
        (100, Bytes::new(12_500)),
        (10_000, Bytes::new(65_536)),
    ] {
        cc.pacing_rate = Rate::from_mbps(mbps);
        assert_eq!(cc.quantum(), quantum, "{mbps} Mbit/s");
    }
}

#[test]
fn initial_pacing_is_the_startup_gain_over_the_initial_window() {
    let cc = bbr3().cc; // 10 segments in a nominal millisecond
    assert!((cc.pacing_rate.as_bps() as f64 - 80e6 * 2.77).abs() < 2.0);
}

#[test]
fn steady_state_utilises_the_path_without_a_queue() {
    stays_without_a_queue(bbr3());
}

#[test]
fn without_samples_nothing_breaks() {
    let mut cc = bbr3().cc;
    let none = Path {
        srtt: None,
        ..path(DELAY)
    };
    for _ in 0..100 {
        cc.on_ack(&ack(MSS.get()), &none);
    }
    cc.on_congestion(&congestion(Cause::Timeout { consecutive: 1 }, MSS), &none);
    cc.on_ack(&ack(MSS.get()), &none);
    assert!(cc.cwnd() >= MSS && cc.pacing_rate().is_some());
    cc.on_mss(&Path {
        mss: MSS * 2,
        ..none
    });
    assert!(cc.cwnd() >= MSS * 2);
}

#[test]
fn same_stream_same_run() {
    let run = || {
        let mut net = bbr3();
        net.run_until(5.0);
        format!("{:?}", net.cc)
    };
    assert_eq!(run(), run());
}

#[test]
fn parameters_reach_the_model() {
    let params = Params::new()
        .with("headroom", 0.2)
        .with("probe_rtt_interval", "10s")
        .with("ecn_response", "proportional");
    let text = format!("{:?}", (ALGORITHM.build)(&params, init()).unwrap());
    assert!(text.contains("headroom: 0.2") && text.contains("ecn_response: Proportional"));
}
