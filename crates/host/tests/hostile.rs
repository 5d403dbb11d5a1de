//! Forged datagrams into a live transfer and at a listener: no panic, bounded memory, and the
//! connection carries every byte.

mod common;

use common::attack::attack;
use common::*;

#[test]
fn a_transfer_survives_fifty_thousand_forged_datagrams() {
    for v6 in [false, true] {
        let out = attack(v6, 1, 50_000, 50, &mut |_| {});
        let config = host_config(SERVER);
        assert!(out.most_connections <= config.backlog + 10);
        assert!(out.injected >= 50_000);
        assert!(out.moved.iter().all(|n| *n > 1 << 20), "{:?}", out.moved);
        assert!(out.forger.made.iter().all(|n| *n > 1000), "every kind came");
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
