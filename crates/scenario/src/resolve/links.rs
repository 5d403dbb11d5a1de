//! Resolves links between nodes.

use gargalo_link::{LinkConfig, QueueLimit};

use super::Network;
use crate::model;
use crate::resolved::Link;

/// A queue limit in bandwidth-delay products.
pub(crate) struct BdpLimit {
    /// Index of the link.
    pub(crate) link: usize,
    /// Whether it is the down direction.
    pub(crate) down: bool,
    /// Number of bandwidth-delay products.
    pub(crate) factor: f64,
}

impl Network {
    /// Adds a link; `at` is the path at which it was written.
    pub(crate) fn link(&mut self, name: &str, ends: (usize, usize), spec: &model::Link, at: &str) {
        let mut link = Link {
            name: name.to_owned(),
            a: ends.0 as u32,
            b: ends.1 as u32,
            up: spec.up.clone(),
            down: spec.down.clone(),
        };
        for (config, down) in [(&mut link.up, false), (&mut link.down, true)] {
            if let Some(QueueLimit::Bdp(factor)) = config.queue.size() {
                self.bdp.push(BdpLimit {
                    link: self.links.len(),
                    down,
                    factor: *factor,
                });
            }
        }
        self.links.push(link);
        self.paths.push(at.to_owned());
    }
}

/// The least base delay of a direction.
pub(crate) fn base_delay(config: &LinkConfig) -> gargalo_units::Duration {
    config.delay.minimum()
}
