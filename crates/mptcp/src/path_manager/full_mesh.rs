//! Full mesh: subflows between every local address and every address of the peer.

use gargalo_cc::params::Declared;
use gargalo_settings::settings;

use super::{Entry, Open, PathManager, View};

settings! {
    /// Parameters of [`FullMesh`].
    struct FullMeshParams: Copy as "FullMesh", const {
        /// Subflows between each pair of addresses.
        subflows: usize = 1, in 1..=16;
    }
}

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "full-mesh",
    aliases: &[],
    summary: "subflows between every pair of addresses",
    source: "Linux MPTCP v0.9x, mptcp_fullmesh (num_subflows)",
    params: FullMeshParams::params,
    build: |params| {
        let params = FullMeshParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(FullMesh {
            each: params.subflows,
        }))
    },
};

#[derive(Debug)]
struct FullMesh {
    each: usize,
}

impl PathManager for FullMesh {
    fn missing(&mut self, view: &View<'_>) -> Vec<Open> {
        if !view.is_client {
            return Vec::new();
        }
        let mut open = Vec::new();
        for (l, r) in view.pairs() {
            let one = Open {
                local: l.id,
                remote: r.id,
                gateway: None,
            };
            let there = view.count(l.id, r.id);
            open.extend(std::iter::repeat_n(one, self.each.saturating_sub(there)));
        }
        open
    }

    fn announces(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn every_pair_once() {
        let mut m = FullMesh { each: 1 };
        let (l, r) = (local(3), remote(2));
        let all = missing(&mut m, &l, &r, &[subflow(0, 0)]);
        assert_eq!(all, [(0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
        assert_eq!(missing(&mut m, &local(5), &remote(5), &[]).len(), 25);
    }

    #[test]
    fn families_do_not_mix() {
        let mut l = local(2);
        l[1].address = "2001:db8::1".parse().unwrap();
        let mut m = FullMesh { each: 2 };
        assert_eq!(missing(&mut m, &l, &remote(1), &[subflow(0, 0)]), [(0, 0)]);
    }
}
