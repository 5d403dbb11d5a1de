use super::*;
use crate::Controller;
use crate::event::Cause;
use crate::path::Sibling;
use crate::round_rtt::bench::Bottleneck;
use crate::testing::subflows::{among, any_siblings, quiet, sibling};
use crate::testing::{MSS, ack, congestion, init};
use proptest::prelude::*;

const DEFAULT: WvegasParams = WvegasParams::DEFAULT;

const BASE: Duration = Duration::from_millis(100);

/// In congestion avoidance with this window.
fn avoiding(params: WvegasParams, segments: u64) -> WindowBased<Wvegas> {
    let start = Init {
        initial_window: MSS * segments,
        ..init()
    };
    let mut w = Wvegas::build(params, &start);
    w.window_mut().exit_slow_start();
    w
}

/// A round of `rtt_ms` on a path of 100 ms.
fn round(w: &mut WindowBased<Wvegas>, siblings: &[Sibling], rtt_ms: u64) {
    let mut view = among(siblings, 0);
    view.min_rtt = Some(BASE);
    for i in 0..4 {
        let one = Acked {
            rtt: Some(Duration::from_millis(rtt_ms)),
            round_start: i == 3,
            ..ack(MSS.get())
        };
        w.on_ack(&one, &view);
    }
}

fn alpha(w: &WindowBased<Wvegas>) -> f64 {
    w.policy().alpha
}

#[test]
fn alpha_is_the_share_of_the_rate() {
    // 30 segments, of which 30 · 20/120 = 5 wait; 250 segments a second beside 750: a quarter of ten.
    let others = [sibling(30, 120), sibling(75, 100)];
    let mut w = avoiding(DEFAULT, 30);
    round(&mut w, &others, 120);
    assert!((alpha(&w) - 2.5).abs() < 1e-9, "{}", alpha(&w));
    assert_eq!(w.window().segments(), 29.0, "5 > 2.5 + 1");
    // Beside two: 250 of 1000 again, and of 10,250: at least two.
    for (x, y, share) in [(50, 25, 2.5), (500, 500, 2.0)] {
        let others = [sibling(30, 120), sibling(x, 100), sibling(y, 100)];
        let mut w = avoiding(DEFAULT, 30);
        round(&mut w, &others, 120);
        assert!((alpha(&w) - share).abs() < 1e-9, "{}", alpha(&w));
    }
}

#[test]
fn alpha_is_not_refreshed_before_the_backlog_reaches_it() {
    let others = [sibling(30, 105), sibling(10, 100)];
    let mut w = avoiding(DEFAULT, 30);
    round(&mut w, &others, 105); // 30 · 5/105 = 1.4 < 2
    assert_eq!((alpha(&w), w.window().segments()), (2.0, 31.0));
    // 30 · 15/115 = 3.9 of 10 · 260.9/360.9 = 7.2: reached two, so the share is known, and room is left.
    let mut w = avoiding(DEFAULT, 30);
    round(&mut w, &others, 115);
    assert!((alpha(&w) - 10.0 * 260.87 / 360.87).abs() < 1e-3);
    assert_eq!(w.window().segments(), 31.0);
}

#[test]
fn who_cannot_be_measured_has_no_share() {
    let unmeasured = Sibling {
        srtt: None,
        ..sibling(1000, 1)
    };
    let failed = Sibling {
        can_send: false,
        ..sibling(1000, 1)
    };
    let mut w = avoiding(DEFAULT, 30);
    round(&mut w, &[sibling(30, 120), unmeasured, failed], 120);
    assert_eq!(alpha(&w), 10.0);
}

#[test]
fn a_queue_twice_its_least_is_drained_once() {
    let others = [sibling(60, 110), sibling(60, 100)];
    let mut w = avoiding(DEFAULT, 60);
    // 60 · 10/110 = 5.5 of a share of 4.8: the least queue is 10 ms.
    round(&mut w, &others, 110);
    assert_eq!(w.window().segments(), 60.0);
    // 19 ms are less than twice as much (and too much: one segment goes), 20 ms are not.
    round(&mut w, &others, 119);
    assert_eq!(w.window().segments(), 59.0);
    round(&mut w, &others, 120);
    // 58 · 100/(2 · 120), and the acknowledgement counts for slow start.
    let drained = w.window().segments();
    assert!((drained - 25.167).abs() < 1e-3, "{drained}");
    assert_eq!(w.phase(), "slow-start", "back to ssthresh");
    // Alone, or switched off, there is nothing to balance.
    let never = WvegasParams {
        drain: 0.0,
        ..DEFAULT
    };
    for (params, siblings) in [(DEFAULT, &others[..1]), (never, &others[..])] {
        let mut w = avoiding(params, 60);
        for rtt in [125, 150, 300] {
            round(&mut w, siblings, rtt);
        }
        assert!(w.window().segments() >= 57.0);
    }
}

/// Nothing couples subflows whose queues are shorter than their share: as many are as many Renos.
#[test]
fn below_its_share_each_subflow_grows_as_reno_does() {
    for siblings in [1, 2, 5] {
        let all = vec![sibling(30, 100); siblings];
        let mut w = avoiding(DEFAULT, 30);
        for rounds in 1..=5 {
            round(&mut w, &all, 100 + rounds); // 30 to 34 segments of which k/(100 + k) wait: less than two segments
            assert_eq!(w.window().segments(), 30.0 + rounds as f64);
        }
    }
}

#[test]
fn loss_halves_and_forgets_the_share() {
    let others = [sibling(30, 120), sibling(10, 100)];
    let mut w = avoiding(DEFAULT, 30);
    round(&mut w, &others, 115);
    assert!(alpha(&w) > 7.0);
    w.on_congestion(&congestion(Cause::Loss, MSS * 30), &among(&others, 0));
    assert_eq!((w.cwnd(), alpha(&w)), (MSS * 15, 2.0));
}

#[test]
fn alone_it_is_vegas_and_rests_at_ten_segments() {
    let mut w = Wvegas::build(DEFAULT, &init());
    let mut v = Vegas::build(DEFAULT.vegas(), &init());
    let (mut one, mut two) = (Bottleneck::new(BASE, 60.5), Bottleneck::new(BASE, 60.5));
    for i in 0..300 {
        if i == 150 {
            // A loss on the way.
            let view = among(&[], 0);
            let event = congestion(Cause::Loss, w.cwnd());
            w.on_congestion(&event, &view);
            v.on_congestion(&event, &view);
        }
        let backlog = one.run(&mut w, 1);
        two.run(&mut v, 1);
        assert_eq!((w.cwnd(), w.ssthresh()), (v.cwnd(), v.ssthresh()), "{i}");
        if i == 149 || i == 299 {
            assert!((9.0..=12.0).contains(&backlog), "{i}: {backlog}");
        }
    }
}

proptest! {
    #![proptest_config(quiet())]

    #[test]
    fn bounds(siblings in any_siblings(), index in 0..6usize, rounds in prop::collection::vec(100..1000u64, 1..40)) {
        let mut w = avoiding(DEFAULT, 30);
        for rtt in rounds {
            let mut view = among(&siblings, index);
            view.min_rtt = Some(BASE);
            let before = w.cwnd();
            let starting = w.window().in_slow_start();
            for i in 0..4 {
                let one = Acked {
                    rtt: Some(Duration::from_millis(rtt)),
                    round_start: i == 3,
                    ..ack(MSS.get())
                };
                w.on_ack(&one, &view);
            }
            let a = alpha(&w);
            prop_assert!((2.0..=10.0).contains(&a), "{a}");
            // No faster than Reno: a segment a round, or one for each acknowledged in slow start.
            let most = MSS * if starting { 4 } else { 1 };
            prop_assert!(w.cwnd() <= before + most, "{} after {before}", w.cwnd());
            prop_assert!(w.window().segments() >= 2.0);
        }
    }
}
