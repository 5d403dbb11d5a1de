//! A path is cut in the middle of a transfer: nothing is lost, and data flows again soon.

use gargalo_flow::AddressChange;
use gargalo_lab::multipath::SubflowReport;
use gargalo_units::{Duration, Instant};

use crate::Test;
use crate::case::*;
use crate::transfers::run;

pub const TESTS: &[Test] = &[
    ("the_first_path_is_cut", || cut(0)),
    ("the_second_path_is_cut", || cut(1)),
    ("both_are_cut_for_a_second", both_for_a_while),
    ("a_backup_takes_over", backup),
    ("a_path_comes_back", comes_back),
    ("an_address_goes_and_comes", hand_over),
];

const CUT: Instant = Instant::from_nanos(800_000_000);
/// Round trip with a full queue, and the least timeout of Linux and of our modern profile.
const RTO: Duration = Duration::from_millis(20 + 30 + 200);
/// A busy machine.
const SLACK: Duration = Duration::from_millis(300);

/// The longest time without a byte for the receiver, from shortly before the cut on.
#[track_caller]
fn longest_silence(done: &Done) -> Duration {
    let mut longest = Duration::ZERO;
    let mut last: Option<(Instant, u64)> = None;
    for s in done.samples().iter().filter(|s| s.time + SLACK >= CUT) {
        let delivered = s.delivered.get();
        match last {
            Some((at, before)) if before == delivered => longest = longest.max(s.time - at),
            _ => last = Some((s.time, delivered)),
        }
    }
    assert!(
        last.is_some(),
        "no samples: the transfer was over before the cut"
    );
    longest
}

fn case(who: Who) -> Case {
    Case {
        sample: Some(Duration::from_millis(5)),
        ..Case::new(who, &[(25, 10), (25, 10)], 8_000_000)
    }
}

fn cut(link: usize) {
    for who in [OURS_TO_KERNEL, OURS, KERNEL_TO_OURS] {
        let done = run(Case {
            outages: [(link, (CUT, Instant::MAX))].into(),
            ..case(who)
        });
        done.is_whole();
        let silence = longest_silence(&done);
        eprintln!(
            "{who:?}: path {link} cut: {} ms without data",
            silence.as_millis()
        );
        // How soon the kernel notices is the kernel's matter.
        if who.client == Side::Ours {
            assert!(silence <= RTO * 2 + SLACK, "{who:?}: {silence}");
        }
    }
}

fn both_for_a_while() {
    for who in [OURS_TO_KERNEL, KERNEL_TO_OURS] {
        let until = CUT + Duration::from_secs(1);
        let done = run(Case {
            outages: [(0, (CUT, until)), (1, (CUT, until))].into(),
            ..case(who)
        });
        done.is_whole();
    }
}

fn backup() {
    for who in [OURS_TO_KERNEL, OURS, KERNEL_TO_OURS] {
        let done = run(Case {
            backups: vec![1],
            outages: [(0, (CUT, Instant::MAX))].into(),
            ..case(who)
        });
        done.is_whole();
        let sent: Vec<u64> = done.carried(0).into_iter().map(|c| c.1).collect();
        assert!(sent.iter().max() > Some(&4_000_000), "{sent:?}");
        let silence = longest_silence(&done);
        eprintln!(
            "{who:?}: a backup takes over: {} ms without data",
            silence.as_millis()
        );
        if who.client == Side::Ours {
            assert!(silence <= RTO * 2 + SLACK, "{who:?}: {silence}");
        }
    }
}

fn comes_back() {
    for who in [OURS_TO_KERNEL, KERNEL_TO_OURS] {
        let bytes = 16_000_000;
        let done = run(Case {
            outages: [(1, (CUT, CUT + Duration::from_millis(600)))].into(),
            bytes,
            ..case(who)
        });
        done.is_whole();
        // The path carries more than before the cut: 25 Mbit/s until then.
        let before = 25_000_000 / 8 * CUT.as_nanos() / 1_000_000_000;
        let second = done
            .report(1)
            .subflows
            .get(1)
            .map_or(0, |s| s.received_bytes);
        assert!(second > before + 1_000_000, "{who:?}: {second} of {before}");
    }
}

/// Our client leaves a path and returns to it; the kernel is told.
fn hand_over() {
    let at = |ms: u64, add: bool| AddressChange {
        after: Duration::from_millis(ms),
        side: 0,
        link: 0,
        add,
    };
    let bytes = 10_000_000;
    let done = run(Case {
        changes: vec![at(500, false), at(1100, true)],
        bytes,
        ..case(OURS_TO_KERNEL)
    });
    done.is_whole();
    let counters = done.counters(1);
    assert!(counters.grew("RmAddr") >= 1, "{counters:?}");
    // The first subflow, its successor of the same address, and that of the other address.
    assert_eq!(counters.grew("MPJoinAckRx"), 2, "{counters:?}");
    let report = done.report(0);
    let of_first = |s: &&SubflowReport| s.result.link == 0;
    assert_eq!(
        report.subflows.iter().filter(of_first).count(),
        2,
        "{report:?}"
    );
    assert!(report.subflows[0].result.closed.is_some(), "{report:?}");
    for s in &report.subflows {
        assert!(s.result.delivered.get() > 200_000, "{report:?}");
    }
}
