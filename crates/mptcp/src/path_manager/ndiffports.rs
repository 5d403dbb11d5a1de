//! n subflows between the addresses of the initial one, from other source ports: for networks that
//! balance load by ports.

use gargalo_cc::params::Declared;
use gargalo_settings::settings;

use super::{Entry, Open, PathManager, View};

settings! {
    /// Parameters of [`Ndiffports`].
    struct NdiffportsParams: Copy as "Ndiffports", const {
        /// Subflows in all.
        subflows: usize = 2, in 1..=64;
    }
}

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "ndiffports",
    aliases: &[],
    summary: "n subflows between one pair of addresses, from other ports",
    source: "Linux MPTCP v0.9x, mptcp_ndiffports (num_subflows)",
    params: NdiffportsParams::params,
    build: |params| {
        let params = NdiffportsParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(Ndiffports {
            subflows: params.subflows,
        }))
    },
};

#[derive(Debug)]
struct Ndiffports {
    subflows: usize,
}

impl PathManager for Ndiffports {
    fn missing(&mut self, view: &View<'_>) -> Vec<Open> {
        let initial = Open {
            local: 0,
            remote: 0,
            gateway: None,
        };
        let there = view.pairs().any(|(l, r)| (l.id, r.id) == (0, 0));
        if !view.is_client || !there {
            return Vec::new();
        }
        vec![initial; self.subflows.saturating_sub(view.count(0, 0))]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn fills_up_the_first_pair() {
        let mut m = Ndiffports { subflows: 3 };
        let (l, r) = (local(2), remote(2));
        assert_eq!(missing(&mut m, &l, &r, &[subflow(0, 0)]), [(0, 0), (0, 0)]);
        let three = [subflow(0, 0); 3];
        assert_eq!(missing(&mut m, &l, &r, &three), []);
        assert_eq!(missing(&mut m, &l[1..], &r, &[]), [], "its address is gone");
    }
}
