//! Templates for this crate's unit tests: a test states only the fields that matter.

use gargalo_units::{Bytes, Duration, Instant};
use rand_pcg::Pcg64;

use crate::event::{Acked, Cause, Congestion, Sent};
use crate::path::Path;
use crate::registry::Init;

pub(crate) mod multipath;
pub(crate) mod net;
pub(crate) mod subflows;

pub(crate) const MSS: Bytes = Bytes::new(1000);

pub(crate) fn init() -> Init {
    Init {
        now: Instant::ZERO,
        mss: MSS,
        initial_window: MSS * 10,
        rng: Pcg64::new(1, 2),
    }
}

pub(crate) fn ack(bytes: u64) -> Acked {
    Acked {
        now: Instant::ZERO,
        bytes: Bytes::new(bytes),
        acknowledged: Bytes::new(bytes),
        ce_bytes: Bytes::ZERO,
        rtt: None,
        sent_at: None,
        in_flight_before: Bytes::new(bytes),
        in_flight: Bytes::ZERO,
        cwnd_limited: true,
        in_recovery: false,
        round_start: false,
        sample: None,
    }
}

pub(crate) fn sent(bytes: Bytes, in_flight: Bytes) -> Sent {
    Sent {
        now: Instant::ZERO,
        bytes,
        in_flight,
        app_limited: false,
        retransmission: false,
        idle: None,
    }
}

pub(crate) fn congestion(cause: Cause, in_flight: Bytes) -> Congestion {
    Congestion {
        now: Instant::ZERO,
        cause,
        lost: Bytes::ZERO,
        in_flight,
    }
}

pub(crate) fn path(rtt: Duration) -> Path<'static> {
    Path {
        mss: MSS,
        srtt: Some(rtt),
        latest_rtt: Some(rtt),
        min_rtt: Some(rtt),
        in_flight: Bytes::ZERO,
        siblings: &[],
        index: 0,
        sack: true,
    }
}
