//! Clients that move, and several paths at once.

use std::net::{IpAddr, SocketAddr};

use gargalo_units::Instant;
use noq_proto::{FourTuple, PathError, PathEvent, PathStatus};

use super::Endpoint;

impl Endpoint {
    /// The client's address has changed: sends from `local` from now on (RFC 9000 §9).
    pub fn migrate(&mut self, now: Instant, local: SocketAddr) {
        let rebound = self.local.ip() == local.ip();
        self.local = local;
        if rebound {
            return; // a client does not see that its NAT has given it another port
        }
        self.run(now, |s| {
            let at = s.time.to_std(s.now);
            if let Some((_, connection)) = &mut s.connection {
                connection.handle_network_change(None, at);
            }
        });
        self.report.notice("path", || format!("moved to {local}"));
    }

    /// Client: opens a further path (draft-ietf-quic-multipath).
    pub fn open_path(&mut self, now: Instant, local: IpAddr, remote: SocketAddr) {
        let path = FourTuple::new(remote, Some(local));
        self.wanted_paths.push(path);
        self.run(now, Self::open_wanted_paths);
    }

    /// Opens the paths that wait for connection identifiers of the peer.
    pub(super) fn open_wanted_paths(&mut self) {
        let at = self.time.to_std(self.now);
        let Some((_, connection)) = &mut self.connection else {
            return;
        };
        let report = &self.report;
        self.wanted_paths.retain(|path| {
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

    pub(super) fn on_path(&mut self, event: &PathEvent) {
        match event {
            PathEvent::Established { id, .. } => {
                self.report.notice("path", || format!("{id} established"));
            }
            PathEvent::Abandoned { id, reason, .. } => {
                self.report
                    .notice("path", || format!("{id} abandoned: {reason:?}"));
            }
            _ => {}
        }
    }
}
