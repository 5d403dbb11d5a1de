//! Losses at chosen places, for the tests of both versions.

use gargalo_units::Bytes;

use super::{BoundedBbr, Version};
use crate::Controller;
use crate::event::{Cause, Lost, SendState};
use crate::testing::net::{DELAY, Net};
use crate::testing::{MSS, congestion, path};

/// A segment sent with this much in flight, now lost.
pub(crate) fn lost<C: Controller>(net: &Net<C>, in_flight: Bytes) -> Lost {
    let state = SendState {
        in_flight,
        delivered: net.sampler.delivered(),
        ..SendState::default()
    };
    Lost {
        now: net.now,
        bytes: MSS,
        state,
        new_burst: true,
        in_flight: in_flight - MSS,
    }
}

/// STARTUP of an application-limited flow in fast recovery with a loss for every so many deliveries,
/// for two rounds: whether it is over.
pub(crate) fn startup_with_losses<V: Version>(
    mut net: Net<BoundedBbr<V>>,
    every: u64,
) -> (bool, Net<BoundedBbr<V>>) {
    net.run_until(0.15);
    net.cc.probe_rtt.enter(Bytes::ZERO); // every sample counts as application-limited
    net.cc.probe_rtt.hold_back(Bytes::new(1 << 40), Bytes::ZERO);
    let p = path(DELAY);
    net.cc.latest.note_loss(net.sampler.delivered());
    net.cc.on_congestion(&congestion(Cause::Loss, MSS * 20), &p);
    let rounds = net.cc.round.count() + 3;
    for i in 0.. {
        if i % every == 0 {
            net.sampler.on_lost(MSS);
            net.cc.on_loss(&lost(&net, MSS * 60), &p);
        }
        let total = net.sampler.delivered();
        while net.sampler.delivered() == total {
            net.step();
        }
        if net.cc.phase() != "startup" || net.cc.round.count() >= rounds {
            break;
        }
    }
    (net.cc.phase() == "drain", net)
}

/// A probing controller with 100 segments in flight, of which `n` are marked lost.
pub(crate) fn lose_while_probing<V: Version>(
    mut net: Net<BoundedBbr<V>>,
    n: u64,
) -> Net<BoundedBbr<V>> {
    net.run_to_phase("probe-bw-up");
    for _ in 0..n {
        net.cc.on_loss(&lost(&net, MSS * 100), &path(DELAY));
    }
    net
}
