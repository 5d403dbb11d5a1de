//! Siblings for the unit tests of coupled algorithms.

use gargalo_units::{Bytes, Duration};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{MSS, ack, path};
use crate::Controller;
use crate::path::{Path, Sibling};

/// A subflow with a window in segments and a round-trip time in milliseconds.
pub(crate) fn sibling(segments: u64, rtt_ms: u64) -> Sibling {
    let rtt = Duration::from_millis(rtt_ms);
    Sibling {
        cwnd: MSS * segments,
        srtt: Some(rtt),
        min_rtt: Some(rtt),
        mss: MSS,
        since_loss: Bytes::new(1_000_000),
        between_losses: Bytes::ZERO,
        rate: 0.0,
        can_send: true,
    }
}

/// The view of the subflow `index`; of a connection of one path if there are no siblings.
pub(crate) fn among(siblings: &[Sibling], index: usize) -> Path<'_> {
    let srtt = siblings
        .get(index)
        .map_or(Some(Duration::from_millis(100)), |s| s.srtt);
    Path {
        srtt,
        latest_rtt: srtt,
        min_rtt: srtt,
        siblings,
        index,
        ..path(Duration::ZERO)
    }
}

/// How many bytes `segments` acknowledged segments, one at a time, add to the window.
pub(crate) fn grown(
    c: &mut dyn Controller,
    siblings: &[Sibling],
    index: usize,
    segments: u32,
) -> f64 {
    let before = c.cwnd().as_f64();
    for _ in 0..segments {
        c.on_ack(&ack(MSS.get()), &among(siblings, index));
    }
    c.cwnd().as_f64() - before
}

/// Any siblings that a transport could report, valid or not.
pub(crate) fn any_siblings() -> impl Strategy<Value = Vec<Sibling>> {
    let bytes = || prop_oneof![Just(0), 1..100_000_000u64, any::<u64>()].prop_map(Bytes::new);
    let rtt = || {
        prop_oneof![
            1 => Just(None),
            1 => Just(Some(0)),
            6 => (1..2_000_000_000u64).prop_map(Some),
            1 => any::<u64>().prop_map(Some),
        ]
        .prop_map(|ns| ns.map(Duration::from_nanos))
    };
    let one = (
        bytes(),
        rtt(),
        rtt(),
        bytes(),
        bytes(),
        any::<f64>(),
        any::<bool>(),
    );
    let one = one.prop_map(
        |(cwnd, srtt, min_rtt, since_loss, between_losses, rate, can_send)| Sibling {
            cwnd,
            srtt,
            min_rtt,
            mss: MSS,
            since_loss,
            between_losses,
            rate,
            can_send,
        },
    );
    vec(one, 0..6)
}

/// Many cases, and no file of failures.
pub(crate) fn quiet() -> ProptestConfig {
    ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
