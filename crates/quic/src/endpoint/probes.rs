//! Counts probe timeouts (RFC 9002 §6.2), which noq does not report.

use std::collections::BTreeMap;

use gargalo_units::{Duration, Instant};
use noq_proto::{Connection, PathId};

use crate::controller::Report;

/// Minimum probe timeout: kGranularity of RFC 9002.
const SHORTEST: Duration = Duration::from_millis(1);

/// Recognises probes by their frames.
///
/// After a timer has expired without finding losses, noq sends CRYPTO frames during a handshake, and later a
/// request for an immediate acknowledgement (draft-ietf-quic-ack-frequency), only if a probe timeout has expired; a
/// probe without data is a PING. MTU probes, which have both of the latter, are counted by noq.
#[derive(Debug)]
pub(super) struct Probes {
    timeouts: BTreeMap<PathId, u64>,
    /// Ack-eliciting packets so far, and when the last one left.
    sent: u64,
    last: Instant,
    /// A timer has expired that may have been the probe timer.
    watch: Option<Watch>,
}

#[derive(Debug)]
struct Watch {
    at: Instant,
    seen: BTreeMap<PathId, Seen>,
}

/// Packets sent and lost on a path so far.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    crypto: u64,
    asks: u64,
    lost: u64,
}

impl Probes {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            timeouts: BTreeMap::new(),
            sent: 0,
            last: now,
            watch: None,
        }
    }

    pub(super) fn timeouts(&self) -> u64 {
        self.timeouts.values().sum()
    }

    pub(super) fn timeouts_of(&self, path: PathId) -> u64 {
        self.timeouts.get(&path).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn before_timeout(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        report: &Report,
    ) {
        self.watch = None;
        self.sent = report.sent_packets();
        if now - self.last >= SHORTEST {
            self.watch = Some(Watch {
                at: now,
                seen: seen(connection),
            });
        }
    }

    #[inline]
    pub(super) fn after_transmit(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        report: &Report,
    ) {
        let sent = report.sent_packets();
        if sent == self.sent {
            return;
        }
        self.sent = sent;
        self.last = now;
        if let Some(watch) = self.watch.take_if(|w| w.at == now) {
            for (id, after) in seen(connection) {
                let Some(before) = watch.seen.get(&id) else {
                    continue;
                };
                let probed = after.crypto > before.crypto || after.asks > before.asks;
                if probed && after.lost == before.lost {
                    *self.timeouts.entry(id).or_default() += 1;
                    report.probe_timeout();
                }
            }
        }
    }
}

fn seen(connection: &mut Connection) -> BTreeMap<PathId, Seen> {
    let ids = connection.paths();
    let of = |id| {
        let path = connection.path_stats(id)?;
        let sent = &path.frame_tx;
        // noq may count one packet of a handshake too many as an MTU probe.
        let asks = sent.immediate_ack + sent.ping;
        let seen = Seen {
            crypto: sent.crypto,
            asks: asks.saturating_sub(2 * path.sent_plpmtud_probes),
            lost: path.lost_packets,
        };
        Some((id, seen))
    };
    ids.into_iter().filter_map(of).collect()
}
