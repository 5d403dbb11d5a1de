use super::*;
use crate::Controller;
use crate::event::Cause;
use crate::path::Sibling;
use crate::testing::subflows::{among, any_siblings, grown, quiet, sibling};
use crate::testing::{MSS, congestion, init};
use proptest::prelude::*;

fn with_l(segments: u64, rtt_ms: u64, l: u64) -> Sibling {
    Sibling {
        since_loss: Bytes::new(l),
        ..sibling(segments, rtt_ms)
    }
}

/// alpha, and growth in segments per segment acknowledged, of every subflow.
fn computed(siblings: &[Sibling], best: Best) -> Vec<(f64, f64)> {
    let one = |i: usize| {
        let c = Coupling::of(siblings[i].cwnd, &among(siblings, i)).unwrap();
        let a = alpha(&c, best);
        (a, (c.linked() + a / c.own.window) * MSS.as_f64())
    };
    (0..siblings.len()).map(one).collect()
}

#[track_caller]
fn check(siblings: &[Sibling], best: Best, expected: &[(f64, f64)]) {
    let got = computed(siblings, best);
    assert_eq!(got.len(), expected.len());
    for (g, e) in got.iter().zip(expected) {
        assert!(
            (g.0 - e.0).abs() < 1e-9 && (g.1 - e.1).abs() < 1e-6,
            "{got:?}"
        );
    }
    let sum: f64 = got.iter().map(|g| g.0).sum();
    assert!(sum.abs() < 1e-12, "what is given is taken: {sum}");
}

const RATE: Best = Best::Rate;

#[test]
fn both_terms_by_hand() {
    // Equal in everything: nothing to move, (10/0.01)/200² each.
    let equal = with_l(10, 100, 1_000_000);
    check(&[equal, equal], RATE, &[(0.0, 0.025), (0.0, 0.025)]);
    check(&[equal; 3], RATE, &[(0.0, 1.0 / 90.0); 3]);
    // The better path has the smaller window: 1000/500² + 1/2/10 and 4000/500² - 1/2/40.
    check(
        &[with_l(10, 100, 4_000_000), with_l(40, 100, 1_000_000)],
        RATE,
        &[(0.5, 0.054), (-0.5, 0.0035)],
    );
    // The better path has the larger window already: nothing is collected.
    check(
        &[with_l(10, 100, 1_000_000), with_l(40, 100, 4_000_000)],
        RATE,
        &[(0.0, 0.004), (0.0, 0.016)],
    );
    // One best path, two largest windows, one neither: 1/(4·1), -1/(4·2) twice, 0; x = 100 + 3·200.
    let four = [
        with_l(10, 100, 9_000_000),
        with_l(20, 100, 1_000_000),
        with_l(20, 100, 1_000_000),
        with_l(10, 50, 1_000_000),
    ];
    check(
        &four,
        RATE,
        &[
            (0.25, 1000.0 / 490_000.0 + 0.025),
            (-0.125, 2000.0 / 490_000.0 - 0.00625),
            (-0.125, 2000.0 / 490_000.0 - 0.00625),
            (0.0, 4000.0 / 490_000.0),
        ],
    );
}

#[test]
fn which_paths_are_best_differs_by_source_when_round_trip_times_do() {
    let two = [with_l(30, 20, 1_000_000), with_l(20, 100, 9_000_000)];
    // 1/0.0004 > 9/0.01, but 1/0.02 < 81/0.1.
    check(&two, RATE, &[(0.0, 0.0259516), (0.0, 0.000692042)]);
    check(
        &two,
        Best::SquaredBytes,
        &[(-0.5, 0.0259516 - 0.5 / 30.0), (0.5, 0.025692042)],
    );
}

#[test]
fn the_larger_of_both_loss_intervals_counts() {
    let long_ago = Sibling {
        between_losses: Bytes::new(5_000_000),
        ..with_l(10, 100, 1000)
    };
    let a = computed(&[long_ago, with_l(40, 100, 1_000_000)], RATE);
    assert_eq!((a[0].0, a[1].0), (0.5, -0.5));
}

#[test]
fn before_anything_is_acknowledged_all_paths_are_best() {
    // So the smaller window collects: 1/(2·1).
    let a = computed(&[with_l(10, 100, 0), with_l(40, 100, 0)], RATE);
    assert_eq!((a[0].0, a[1].0), (0.5, -0.5));
}

#[test]
fn windows_shrink_without_loss_and_stay_out_of_slow_start() {
    // A slow large window beside a fast small one that is better: the first term is next to nothing, and
    // half a segment goes with each window acknowledged.
    let two = [with_l(40, 1000, 1000), with_l(20, 10, 9_000_000)];
    let start = Init {
        initial_window: MSS * 40,
        ..init()
    };
    let mut olia = Olia::build(OliaParams::DEFAULT, &start);
    olia.window_mut().exit_slow_start();
    let lost = -grown(&mut olia, &two, 0, 40);
    assert!((470.0..=510.0).contains(&lost), "{lost}");
    assert_eq!(olia.phase(), "congestion-avoidance");
    assert_eq!(olia.ssthresh(), Some(olia.cwnd()));
    let mut gauges = Vec::new();
    olia.gauges(&mut gauges);
    assert_eq!(gauges, [("alpha", -0.5)]);
    // It stops where it is the largest no more: 20 segments.
    for _ in 0..100 {
        grown(&mut olia, &two, 0, 40);
    }
    let segments = olia.window().segments();
    assert!((19.9..=20.1).contains(&segments), "{segments}");
}

#[test]
fn among_several_a_loss_may_leave_one_segment() {
    let two = [with_l(2, 100, 1000), with_l(20, 100, 1000)];
    for (siblings, floor) in [(&two[..], 1), (&two[..1], 2), (&[][..], 2)] {
        let mut olia = Olia::build(OliaParams::DEFAULT, &init());
        grown(&mut olia, siblings, 0, 1);
        olia.on_congestion(&congestion(Cause::Loss, MSS * 2), &among(siblings, 0));
        assert_eq!(olia.cwnd(), MSS * floor);
    }
}

#[test]
fn the_least_window_holds_against_losses_and_the_second_term() {
    // The largest window on a slow path that is not the best: the second term takes from it.
    let two = [with_l(3, 1000, 1000), with_l(1, 10, 9_000_000)];
    for least in [1, 2] {
        let params = OliaParams {
            least_window: least,
            ..OliaParams::DEFAULT
        };
        let mut olia = Olia::build(params, &init());
        grown(&mut olia, &two, 0, 1);
        olia.on_congestion(&congestion(Cause::Loss, MSS * 2), &among(&two, 0));
        assert_eq!(olia.cwnd(), MSS * least);
        let mut olia = Olia::build(params, &init());
        grown(&mut olia, &two, 0, 1);
        olia.on_congestion(&congestion(Cause::Loss, MSS * 6), &among(&two, 0));
        olia.on_recovered(gargalo_units::Instant::ZERO, &among(&two, 0));
        for _ in 0..200 {
            grown(&mut olia, &two, 0, 3);
        }
        assert_eq!(olia.cwnd() >= MSS * 2, least == 2, "{}", olia.cwnd());
        assert!(olia.cwnd() < MSS * 21 / 10);
    }
}

/// The increase for one acknowledgement in Linux' integers, of every subflow.
fn steps(siblings: &[Sibling]) -> Vec<i64> {
    let one = |i: usize| {
        let c = Coupling::of(siblings[i].cwnd, &among(siblings, i)).unwrap();
        step(&c, alpha(&c, RATE), MSS)
    };
    (0..siblings.len()).map(one).collect()
}

#[test]
fn linux_rounds_the_increase_down_to_1024ths() {
    // 1024 times what `both_terms_by_hand` has: 25.6, 11.4, 55.3 and 3.6.
    let equal = with_l(10, 100, 1_000_000);
    assert_eq!(steps(&[equal, equal]), [25, 25]);
    assert_eq!(steps(&[equal; 3]), [11; 3]);
    assert_eq!(
        steps(&[with_l(10, 100, 4_000_000), with_l(40, 100, 1_000_000)]),
        [55, 3]
    );
    // 1024 (1/(50² · 0.1²) - 1/2 · 1/30) is negative.
    let two = [with_l(30, 100, 1_000_000), with_l(20, 20, 9_000_000)];
    assert!(steps(&two)[0] < 0);
    // 1024/25² over the window: one part for one segment, none for two. With five subflows none from 41 segments on.
    assert_eq!(steps(&[sibling(1, 100); 25]), [1; 25]);
    assert_eq!(steps(&[sibling(2, 100); 25]), [0; 25]);
    assert_eq!(steps(&[sibling(40, 100); 5])[0], 1);
    assert_eq!(steps(&[sibling(41, 100); 5])[0], 0);
}

#[test]
fn windows_of_linux_stand_still_where_many_subflows_share() {
    let linux = OliaParams {
        arithmetic: Arithmetic::Linux,
        ..OliaParams::DEFAULT
    };
    let growth = |params, n: usize, segments: u64| {
        let start = Init {
            initial_window: MSS * segments,
            ..init()
        };
        let mut olia = Olia::build(params, &start);
        olia.window_mut().exit_slow_start();
        let siblings = vec![sibling(segments, 100); n];
        grown(&mut olia, &siblings, 0, 2000) / MSS.as_f64()
    };
    // One segment by slow start, which includes the threshold; then none.
    assert!((growth(linux, 25, 3) - 1.0).abs() < 1e-9);
    assert!(growth(OliaParams::DEFAULT, 25, 3) > 0.0);
}

#[test]
fn what_linux_takes_it_gives_back_in_slow_start() {
    let linux = OliaParams {
        arithmetic: Arithmetic::Linux,
        ..OliaParams::DEFAULT
    };
    let two = [with_l(40, 1000, 1000), with_l(20, 10, 9_000_000)];
    let start = Init {
        initial_window: MSS * 40,
        ..init()
    };
    let mut olia = Olia::build(linux, &start);
    olia.window_mut().exit_slow_start();
    let mut windows = Vec::new();
    for _ in 0..400 {
        grown(&mut olia, &two, 0, 1);
        windows.push(olia.cwnd() / MSS.get());
    }
    assert_eq!(windows.iter().max(), Some(&Bytes::new(41)));
    assert_eq!(windows.iter().min(), Some(&Bytes::new(40)));
    assert_eq!(olia.ssthresh(), Some(MSS * 40));
}

proptest! {
    #![proptest_config(quiet())]

    #[test]
    fn bounds(siblings in any_siblings(), index in 0..6usize, window in 1..1u64 << 40) {
        let path = among(&siblings, index);
        if let Some(c) = Coupling::of(Bytes::new(window), &path) {
            for best in [Best::Rate, Best::SquaredBytes] {
                let n = c.all().count() as f64;
                let a = alpha(&c, best);
                let _no_panic = step(&c, a, MSS);
                prop_assert!(a.abs() <= 1.0 / n, "{a}");
                let linked = c.linked() * window as f64;
                prop_assert!((0.0..=1.0 + 1e-9).contains(&linked), "{linked}");
                // In units of Reno's increase 1/w.
                let both = linked + a;
                prop_assert!(both > -1.0 / n - 1e-9 && both <= 1.0 + 1.0 / n + 1e-9, "{both}");
            }
        }
    }
}
