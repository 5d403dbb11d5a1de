//! Resolves links between nodes.

use gargalo_link::{LinkConfig, QueueLimit};

use super::{Context, Network};
use crate::model::{Link as Spec, OneOrMany};
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
    pub(crate) fn link(&mut self, name: &str, ends: (usize, usize), spec: &Spec, at: &str) {
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

/// Checks that a list has as many items as needed.
pub(super) fn counts(
    list: Option<&OneOrMany>,
    n: usize,
    at: &str,
    what: &str,
    cx: &mut Context<'_>,
) -> bool {
    let Some(OneOrMany::Many(list)) = list else {
        return true;
    };
    if list.len() != n {
        let message = format!("{} links are given for {what} = {n}", list.len());
        let help = format!("give {n}, or one table for all, or correct {what}");
        cx.error(at, "count mismatch", message, help);
    }
    list.len() == n
}

/// Links: one for all, or one for each.
pub(super) struct Links<'a> {
    links: Option<&'a OneOrMany>,
    usual: Spec,
    at: &'a str,
}

impl<'a> Links<'a> {
    pub(super) fn of(links: Option<&'a OneOrMany>, at: &'a str) -> Self {
        let usual = Spec::default();
        Self { links, usual, at }
    }

    /// The i-th link, and the path at which it was written.
    pub(super) fn nth(&self, i: usize) -> (&Spec, String) {
        match self.links {
            None => (&self.usual, self.at.to_owned()),
            Some(OneOrMany::One(link)) => (link, self.at.to_owned()),
            Some(OneOrMany::Many(links)) => (&links[i], format!("{}.{i}", self.at)),
        }
    }
}
