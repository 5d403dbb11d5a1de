//! Addresses for the tests of path managers.

use std::net::{IpAddr, Ipv4Addr};

use crate::Names;

use super::{LocalAddress, Open, PathManager, RemoteAddress, SubflowView, View};

pub(super) fn local(n: u8) -> Vec<LocalAddress> {
    let one = |id| LocalAddress {
        id,
        address: IpAddr::V4(Ipv4Addr::new(10, 0, id, 1)),
        backup: false,
    };
    (0..n).map(one).collect()
}

pub(super) fn remote(n: u8) -> Vec<RemoteAddress> {
    let one = |id| RemoteAddress {
        id,
        address: IpAddr::V4(Ipv4Addr::new(10, 0, id, 2)),
        port: 80,
    };
    (0..n).map(one).collect()
}

pub(super) fn subflow(local: u8, remote: u8) -> SubflowView {
    SubflowView {
        local,
        remote: Some(remote),
        gateway: None,
    }
}

/// (local, remote) of the subflows that a client's path manager requests.
pub(super) fn missing(
    manager: &mut dyn PathManager,
    local: &[LocalAddress],
    remote: &[RemoteAddress],
    subflows: &[SubflowView],
) -> Vec<(u8, u8)> {
    let view = View {
        is_client: true,
        local,
        remote,
        gateways: &[],
        names: &Names::default(),
        subflows,
    };
    let pair = |o: &Open| (o.local, o.remote);
    let server = View {
        is_client: false,
        ..view
    };
    assert_eq!(manager.missing(&server), [], "a server opens nothing");
    manager.missing(&view).iter().map(pair).collect()
}
