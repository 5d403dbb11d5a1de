//! Whole transfers: every byte is compared, every path carries some, and the kernel's counters know of
//! joins and of nothing that went wrong.

use std::ops::ControlFlow;

use gargalo_flow::FlowSpec;
use gargalo_units::Duration;

use crate::Test;
use crate::case::*;

pub const TESTS: &[Test] = &[
    ("two_paths_ours_to_kernel", || two(OURS_TO_KERNEL, false)),
    ("two_paths_kernel_to_ours", || two(KERNEL_TO_OURS, false)),
    ("two_paths_kernel_to_ours_that_asked", || {
        two(OURS_TO_KERNEL, true)
    }),
    ("two_paths_ours_to_kernel_that_asked", || {
        two(KERNEL_TO_OURS, true)
    }),
    ("two_paths_ours_to_ours", || two(OURS, false)),
    ("five_paths_ours_to_kernel", || five(OURS_TO_KERNEL)),
    ("five_paths_kernel_to_ours", || five(KERNEL_TO_OURS)),
    ("full_mesh_of_two_by_two", full_mesh),
    ("checksums_that_either_side_asks_for", checksums),
    ("backups_carry_nothing_while_there_is_another", backups),
    ("a_scheduler_by_name_and_long_data_numbers", redundant),
    ("plain_flows_take_their_path", plain_paths),
];

/// What a kernel counts when something goes wrong.
const WRONG: &[&str] = &[
    "MPCapableFallbackACK",
    "MPCapableFallbackSYNACK",
    "MPCapableDataFallback",
    "MPFallbackTokenInit",
    "MPJoinNoTokenFound",
    "MPJoinSynAckHMacFailure",
    "MPJoinAckHMacFailure",
    "MPJoinPortSynRx",
    "MPJoinRejected",
    "DSSNotMatching",
    "DSSCorruptionFallback",
    "DSSCorruptionReset",
    "DSSNoMatchTCP",
    "DssFallback",
    "InfiniteMapTx",
    "InfiniteMapRx",
    "DataCsumErr",
    "MPFailTx",
    "MPFailRx",
    "MPFastcloseTx",
    "MPRstTx",
    "MPRstRx",
    "FallbackFailed",
    "SimultConnectFallback",
];

/// Bytes of a transfer: `GARGALO_MPTCP_BYTES`, or `usual`.
pub fn bytes(usual: u64) -> u64 {
    let wanted = std::env::var("GARGALO_MPTCP_BYTES").ok();
    wanted.map_or(usual, |n| n.parse().expect("a number of bytes"))
}

/// Rates in Mbit/s, `GARGALO_MPTCP_FASTER` times as high as in CI.
fn faster<const N: usize>(paths: [(u64, u64); N]) -> [(u64, u64); N] {
    let wanted = std::env::var("GARGALO_MPTCP_FASTER").ok();
    let factor: u64 = wanted.map_or(1, |n| n.parse().expect("a factor"));
    paths.map(|(rate, delay)| (rate * factor, delay))
}

/// Runs a case with a limit of time that fits its length.
#[track_caller]
pub fn run(mut case: Case) -> Done {
    let rate: u64 = case.paths.iter().map(|p| p.0).sum();
    case.seconds = 30 + case.bytes * 8 / (rate * 1_000_000) * 4;
    case.run()
}

/// Whole, over `subflows` subflows, without fallback; the kernel's counters agree.
#[track_caller]
pub fn is_clean(done: &Done, case: &Case, subflows: usize) {
    done.is_whole();
    let sender = usize::from(case.download);
    for side in [0, 1] {
        let report = done.report(side);
        assert!(!report.fell_back, "{report:?}");
        assert_eq!(report.subflows.len(), subflows, "{report:?}");
        if let Some(stats) = report.stats {
            assert_eq!(
                (stats.subflows_reset, stats.ignored_options),
                (0, 0),
                "{stats:?}"
            );
        }
    }
    if case.backups.is_empty() {
        let share = case.bytes / subflows as u64 / 20;
        for (address, sent) in done.carried(sender) {
            assert!(sent > share, "{address} carried {sent} bytes only");
        }
    }
    for (host, side) in [(0, case.who.client), (1, case.who.server)] {
        if side == Side::Kernel {
            let counters = done.counters(host);
            assert!(counters.counts.contains_key("MPJoinAckRx"), "{counters:?}");
            for name in WRONG {
                assert_eq!(counters.grew(name), 0, "{name}: {counters:?}");
            }
            let joins = if host == 0 {
                "MPJoinSynAckRx"
            } else {
                "MPJoinAckRx"
            };
            assert_eq!(counters.grew(joins), subflows as u64 - 1, "{counters:?}");
        }
    }
}

fn two(who: Who, download: bool) {
    let case = Case {
        download,
        ..Case::new(who, &faster([(40, 5), (20, 10)]), bytes(12_000_000))
    };
    is_clean(&run(case.clone()), &case, 2);
}

fn five(who: Who) {
    let paths = faster([(10, 5), (15, 8), (20, 5), (10, 20), (15, 12)]);
    let case = Case::new(who, &paths, bytes(16_000_000));
    is_clean(&run(case.clone()), &case, 5);
}

fn full_mesh() {
    for who in [OURS_TO_KERNEL, KERNEL_TO_OURS] {
        let case = Case {
            path_manager: "full-mesh",
            ..Case::new(who, &[(30, 5), (30, 10)], 10_000_000)
        };
        is_clean(&run(case.clone()), &case, 4);
    }
}

fn checksums() {
    let setting = ("net.mptcp.checksum_enabled".to_owned(), "1".to_owned());
    for who in [OURS_TO_KERNEL, KERNEL_TO_OURS] {
        for ours in [true, false] {
            let case = Case {
                checksum: ours,
                settings: if ours {
                    Vec::new()
                } else {
                    vec![setting.clone()]
                },
                ..Case::new(who, &[(30, 5), (30, 10)], 6_000_000)
            };
            is_clean(&run(case.clone()), &case, 2);
        }
    }
}

fn backups() {
    for who in [OURS_TO_KERNEL, KERNEL_TO_OURS, OURS] {
        let case = Case {
            backups: vec![1],
            ..Case::new(who, &[(30, 5), (30, 10)], 6_000_000)
        };
        let done = run(case.clone());
        is_clean(&done, &case, 2);
        let sent: Vec<u64> = done.carried(0).into_iter().map(|c| c.1).collect();
        assert!(
            sent[0] >= case.bytes && sent[1] < case.bytes / 100,
            "{sent:?}"
        );
        for side in 0..2 {
            let backups: Vec<_> = done
                .report(side)
                .subflows
                .iter()
                .map(|s| s.result.backup)
                .collect();
            assert_eq!(backups, [Some(false), Some(true)], "{who:?}, side {side}");
        }
    }
}

fn redundant() {
    let case = Case {
        scheduler: Some("redundant"),
        long: true,
        ..Case::new(OURS_TO_KERNEL, &[(30, 5), (30, 10)], 6_000_000)
    };
    let done = run(case.clone());
    is_clean(&done, &case, 2);
    let counters = done.counters(1);
    assert!(counters.grew("DuplicateData") > 1000, "{counters:?}");
}

/// Plain TCP takes the path that it names in both directions, between any stacks, and where the hosts' other flows use
/// Multipath TCP.
fn plain_paths() {
    for who in [OURS, OURS_TO_KERNEL, KERNEL_TO_OURS, KERNELS] {
        for beside in [false, true] {
            let case = Case {
                plain: true,
                path: 1,
                sample: Some(Duration::from_millis(50)),
                ..Case::new(who, &[(40, 5), (10, 30)], 1_000_000)
            };
            let mut spec = case.spec();
            if beside {
                let several = Case::new(who, &case.paths, 1_000_000).spec();
                spec.flows
                    .extend(several.flows.into_iter().map(|f| FlowSpec {
                        id: 2,
                        stream: "2".into(),
                        ..f
                    }));
            }
            let done = gargalo_lab::run(spec, &mut |_| ControlFlow::Continue(())).unwrap();
            let found = &done.outcome.flows[0];
            assert_eq!(
                (found.failure.as_ref(), found.delivered.get()),
                (None, 1_000_000),
                "{who:?}"
            );
            let rtt = found.rtt.summary().unwrap();
            assert!(
                rtt.min >= Duration::from_millis(60),
                "{who:?} {beside}: {rtt:?}"
            );
            let sent: Vec<u64> = done.outcome.links.iter().map(|l| l.sent_bytes).collect();
            assert!(
                sent[2] > 1_000_000 && sent[3] > 10_000,
                "{who:?} {beside}: {sent:?}"
            );
            assert!(beside || sent[..2] == [0, 0], "{who:?}: {sent:?}");
        }
    }
}
