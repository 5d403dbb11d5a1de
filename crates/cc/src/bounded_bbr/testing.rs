//! What the tests of both versions share: losses at chosen places, and what both do alike.

use gargalo_units::{Bytes, Duration, Rate};

use super::{BoundedBbr, Version};
use crate::Controller;
use crate::event::{Cause, Lost, SendState};
use crate::testing::net::{DELAY, Net, RATE};
use crate::testing::{MSS, congestion, path};

/// Round trip of the ideal bottleneck, with the transmission of a segment.
pub(crate) const RTT: Duration = Duration::from_millis(41);

/// A rate over that of the bottleneck.
pub(crate) fn share(rate: Rate) -> f64 {
    rate.as_bps() as f64 / RATE.as_bps() as f64
}

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

/// Alone on the path it fills it and leaves its queue empty.
pub(crate) fn stays_without_a_queue<V: Version>(mut net: Net<BoundedBbr<V>>) {
    net.run_until(1.0);
    let rate = net.throughput(8.0);
    assert!(share(rate) > 0.96, "{rate}");
    net.run_to_phase("probe-bw-cruise");
    net.run_until(net.now.as_secs_f64() + 0.1);
    let room = Net::<BoundedBbr<V>>::bdp() + MSS * 3;
    assert!(net.in_flight() <= room, "{}", net.in_flight());
    assert_eq!(net.cc.min_rtt.get(), Some(RTT));
}

/// Behind a buffer of a fifth of the bandwidth-delay product it sets its bound, loses less than 2 %, and leaves
/// headroom.
pub(crate) fn keeps_headroom_in_a_shallow_buffer<V: Version>(mut net: Net<BoundedBbr<V>>) {
    net.buffer = Net::<BoundedBbr<V>>::bdp() / 5;
    net.run_until(5.0);
    assert!(net.cc.long_term.is_set());
    let (before, sent) = (net.losses, net.sampler.delivered());
    let rate = net.throughput(20.0);
    assert!(share(rate) > 0.9, "{rate}");
    let sent = (net.sampler.delivered() - sent).get() / 1000;
    let lost = (net.losses - before) as f64 / sent as f64;
    assert!(lost < 0.02, "{lost}");
    while net.cc.phase() != "probe-bw-cruise" {
        net.step();
    }
    net.acknowledge();
    let bound = net.cc.long_term.inflight;
    assert!(net.cc.cwnd() <= bound.mul_f64(0.85).max(MSS * 4));
}
