//! Single mesh: at most one subflow per address of either host, so min(n, m) of them for n addresses of
//! ours and m of the peer's. Disjoint paths get one subflow each, without the competition of a full mesh.

use gargalo_cc::params::{Declared, NoParams};

use super::{Entry, Open, PathManager, View};

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "single-mesh",
    aliases: &[],
    summary: "one subflow per address: min(n, m) in all",
    source: "MPTCP schedulers, master's dissertation, UNIFEI 2017",
    params: NoParams::params,
    build: |params| {
        NoParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(SingleMesh))
    },
};

#[derive(Debug)]
struct SingleMesh;

impl PathManager for SingleMesh {
    fn missing(&mut self, view: &View<'_>) -> Vec<Open> {
        if !view.is_client {
            return Vec::new();
        }
        let mut local: Vec<u8> = view.subflows.iter().map(|s| s.local).collect();
        let mut remote: Vec<u8> = view.subflows.iter().filter_map(|s| s.remote).collect();
        let mut open = Vec::new();
        for (l, r) in view.pairs() {
            if local.contains(&l.id) || remote.contains(&r.id) {
                continue;
            }
            local.push(l.id);
            remote.push(r.id);
            open.push(Open {
                local: l.id,
                remote: r.id,
                gateway: None,
            });
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
    fn no_address_serves_twice() {
        let m = &mut SingleMesh;
        let first = [subflow(0, 0)];
        assert_eq!(missing(m, &local(3), &remote(3), &first), [(1, 1), (2, 2)]);
        assert_eq!(missing(m, &local(3), &remote(2), &first), [(1, 1)]);
        assert_eq!(missing(m, &local(1), &remote(3), &first), []);
        // After the first pair has failed, its addresses are free again.
        assert_eq!(
            missing(m, &local(3), &remote(3), &[subflow(1, 1), subflow(2, 2)]),
            [(0, 0)]
        );
        assert_eq!(missing(m, &local(2), &remote(1), &[]), [(0, 0)]);
    }
}
