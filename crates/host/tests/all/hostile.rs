//! Forged datagrams into a live transfer and at a listener: no panic, bounded memory, and the
//! connection carries every byte.

use crate::common::attack::attack;
use crate::common::join_attack::attack_joins;
use crate::common::multi::config;
use crate::common::*;

#[test]
fn a_transfer_survives_fifty_thousand_forged_datagrams() {
    for v6 in [false, true] {
        let out = attack(v6, 1, 50_000, 50, &mut |_| {});
        let config = host_config(SERVER);
        assert!(out.most_connections <= config.backlog + 10);
        assert!(out.injected >= 50_000);
        assert!(out.moved.iter().all(|n| *n > 1 << 20), "{:?}", out.moved);
        assert!(
            out.forger.made.iter().all(|n| *n > 1000),
            "every kind was sent"
        );
        let stats = out.world.hosts[SERVER].stats();
        for (what, n) in [
            ("bad checksums", stats.bad_checksums),
            ("malformed", stats.malformed),
            ("strangers", stats.strangers),
            ("resets", stats.resets_sent),
            ("icmp heeded", stats.icmp_heeded),
            ("icmp ignored", stats.icmp_ignored),
            ("cookies", stats.cookies_sent),
        ] {
            assert!(n > 0, "no {what}: {stats:?}");
        }
    }
}

#[test]
fn honest_connections_of_multipath_go_on_while_joins_are_forged_and_options_fill_segments() {
    let alone = attack_joins(1, 1_000, 0, &mut || {});
    assert!(alone.goodput > 100.0, "{alone:?}");
    let out = attack_joins(1, 60_000, 40, &mut || {});
    assert!(out.made.iter().all(|n| *n > 1_000), "{out:?}");
    assert!(out.moved.iter().all(|n| *n > 10 << 20), "{out:?}");
    assert!(
        out.goodput > 0.9 * alone.goodput,
        "{} of {} Mbit/s",
        out.goodput,
        alone.goodput
    );
    // One that comes in the middle of it is served, too.
    assert_eq!(out.moved_late, 1 << 20);
    assert!(out.most_subflows <= 32, "{out:?}");
    assert!(
        out.most_connections <= config(SERVER).backlog + 2,
        "{out:?}"
    );
    assert!(out.joins_refused > 5_000, "{out:?}");
}
