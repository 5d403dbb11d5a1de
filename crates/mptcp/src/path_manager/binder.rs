//! Binder: one subflow per gateway of the client's network, which forwards it by its own uplink.
//!
//! The original sends packets to gateways by loose source routing; here a subflow names its gateway, and the host
//! sends its packets there. Without gateways no subflow is opened.

use gargalo_cc::params::{Declared, NoParams};

use super::{Entry, Open, PathManager, View};

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "binder",
    aliases: &[],
    summary: "one subflow per gateway of the client's network",
    source: "Boccassi, Fayed, Marina, Binder, MobiArch 2013; Linux MPTCP v0.9x, mptcp_binder",
    params: NoParams::params,
    build: |params| {
        NoParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(Binder))
    },
};

#[derive(Debug)]
struct Binder;

impl PathManager for Binder {
    fn missing(&mut self, view: &View<'_>) -> Vec<Open> {
        let there = view.pairs().any(|(l, r)| (l.id, r.id) == (0, 0));
        if !view.is_client || !there {
            return Vec::new();
        }
        let open = |gateway: &std::net::IpAddr| Open {
            local: 0,
            remote: 0,
            gateway: Some(*gateway),
        };
        let used = |g: &&std::net::IpAddr| view.subflows.iter().any(|s| s.gateway == Some(**g));
        view.gateways
            .iter()
            .filter(|g| !used(g))
            .map(open)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::Names;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn one_for_each_gateway() {
        let gateways = [1, 2].map(|n| IpAddr::V4(Ipv4Addr::new(192, 168, 0, n)));
        let (l, r) = (local(1), remote(1));
        let mut subflows = vec![subflow(0, 0)];
        let mut view = View {
            is_client: true,
            local: &l,
            remote: &r,
            gateways: &gateways,
            names: &Names::default(),
            subflows: &subflows.clone(),
        };
        let open = Binder.missing(&view);
        assert_eq!(
            open.iter().map(|o| o.gateway).collect::<Vec<_>>(),
            gateways.map(Some)
        );
        subflows.push(super::super::SubflowView {
            gateway: Some(gateways[0]),
            ..subflows[0]
        });
        view.subflows = &subflows;
        assert_eq!(Binder.missing(&view).len(), 1);
        assert_eq!(missing(&mut Binder, &l, &r, &[]), []);
    }
}
