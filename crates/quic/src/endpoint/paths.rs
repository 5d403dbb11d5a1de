//! The paths of a multipath connection (draft-ietf-quic-multipath).

use std::sync::Arc;

use gargalo_units::{Instant, SenderCounters};
use noq_proto::{Connection, FourTuple, PathError, PathEvent, PathId, PathStatus};

use super::Endpoint;
use crate::controller::PathReport;
use crate::types::PathSnapshot;

/// A path that can or could carry data.
#[derive(Debug)]
pub(super) struct Known {
    id: PathId,
    /// The identifier as a number.
    pub(super) number: u32,
    addresses: FourTuple,
    opened: Instant,
    closed: Option<Instant>,
    /// Packets lost, kept after noq has removed the path.
    lost: Option<u64>,
    pub(super) report: Arc<PathReport>,
}

/// The paths of a multipath connection.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// Paths that can or could carry data.
    pub(super) known: Vec<Known>,
    /// Paths to open as soon as the peer has issued identifiers for them.
    pub(super) wanted: Vec<FourTuple>,
}

impl Endpoint {
    /// Opens the paths that were waiting for connection identifiers of the peer.
    pub(super) fn open_wanted_paths(&mut self) {
        let at = self.time.to_std(self.now);
        let Some((_, connection)) = &mut self.connection else {
            return;
        };
        let report = &self.observers.report;
        self.paths.wanted.retain(|path| {
            let outcome = connection.open_path(*path, PathStatus::Available, at);
            if matches!(outcome, Err(PathError::RemoteCidsExhausted)) {
                return true;
            }
            let remote = path.remote();
            report.notice("path", || match outcome {
                Ok(id) => format!("{id} opened to {remote}"),
                Err(e) => format!("cannot open a path to {remote}: {e}"),
            });
            false
        });
    }

    /// A path can carry data from now on.
    pub(super) fn path_opened(&mut self, connection: &Connection, id: PathId) {
        if !self.options.multipath || self.known(id).is_some() {
            return;
        }
        let controller = connection.congestion_state(id);
        let (Some(controller), Ok(addresses)) = (controller, connection.network_path(id)) else {
            return;
        };
        self.paths.known.push(Known {
            id,
            number: number(id),
            addresses,
            opened: self.now,
            closed: None,
            lost: None,
            report: self.observers.report.path_of(controller),
        });
    }

    fn known(&mut self, id: PathId) -> Option<&mut Known> {
        self.paths.known.iter_mut().find(|k| k.id == id)
    }

    /// Every path that can or could carry data, in the order of opening; empty without multipath.
    pub(super) fn path_snapshots(&mut self) -> Vec<PathSnapshot> {
        let Some((_, connection)) = &mut self.connection else {
            return Vec::new();
        };
        let (meter, probes, own) = (&self.observers.meter, &self.probes, self.local.ip());
        let snapshot = |k: &Known| {
            let data = meter.on_path(k.id);
            let lost = connection.path_stats(k.id).map(|s| s.lost_packets);
            PathSnapshot {
                id: k.number,
                local: k.addresses.local_ip().unwrap_or(own),
                remote: k.addresses.remote(),
                opened: k.opened,
                closed: k.closed,
                counters: SenderCounters {
                    sent_packets: data.packets.into(),
                    sent_bytes: data.bytes.into(),
                    retransmitted_packets: data.repeating_packets.into(),
                    lost_packets: k.lost.or(lost).into(),
                    timeouts: probes.timeouts_of(k.id).into(),
                    ..SenderCounters::UNKNOWN
                },
                received_bytes: data.received_bytes,
                sender: k.report.snapshot(),
            }
        };
        self.paths.known.iter().map(snapshot).collect()
    }

    pub(super) fn on_path(&mut self, connection: &Connection, event: &PathEvent) {
        match event {
            PathEvent::Established { id, .. } => {
                self.path_opened(connection, *id);
                self.observers
                    .report
                    .notice("path", || format!("{id} established"));
            }
            PathEvent::Discarded { id, path_stats, .. } => {
                if let Some(known) = self.known(*id) {
                    known.lost = Some(path_stats.lost_packets);
                }
            }
            PathEvent::Abandoned { id, reason, .. } => {
                let now = self.now;
                if let Some(known) = self.known(*id) {
                    known.closed = Some(now);
                }
                self.observers
                    .report
                    .notice("path", || format!("{id} abandoned: {reason:?}"));
            }
            _ => {}
        }
    }
}

/// The number of a path, which noq does not expose.
fn number(id: PathId) -> u32 {
    let mut all = 0..=u32::MAX;
    all.find(|n| PathId::from(*n) == id).unwrap_or(u32::MAX)
}
