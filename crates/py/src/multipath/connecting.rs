//! The records of path managers.

use std::net::IpAddr;

use gargalo_mptcp::path_manager as manager;
use pyo3::prelude::*;

/// An address of this host.
#[pyclass(frozen, get_all, eq, hash, module = "gargalo")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LocalAddress {
    /// Its identifier in this connection, 0 to 255; 0 is that of the initial subflow.
    pub id: u8,
    /// The address.
    pub address: IpAddr,
    /// Subflows of it are backups.
    pub backup: bool,
    /// Name of its link; none if there is no name.
    pub link: Option<String>,
}

#[pymethods]
impl LocalAddress {
    #[new]
    #[pyo3(signature = (id, address, backup=false, link=None))]
    fn new(id: u8, address: IpAddr, backup: bool, link: Option<String>) -> Self {
        Self {
            id,
            address,
            backup,
            link,
        }
    }
    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

/// An address of the peer.
#[pyclass(frozen, get_all, eq, hash, module = "gargalo")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemoteAddress {
    /// Its identifier, 0 to 255; 0 is that of the initial subflow.
    pub id: u8,
    /// The address.
    pub address: IpAddr,
    /// The port to connect to.
    pub port: u16,
    /// Name of its link; none if there is no name.
    pub link: Option<String>,
}

#[pymethods]
impl RemoteAddress {
    #[new]
    #[pyo3(signature = (id, address, port, link=None))]
    fn new(id: u8, address: IpAddr, port: u16, link: Option<String>) -> Self {
        Self {
            id,
            address,
            port,
            link,
        }
    }
    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

/// A subflow that exists or is being opened.
#[pyclass(frozen, get_all, eq, hash, module = "gargalo")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SubflowView {
    /// Identifier of our address.
    pub local: u8,
    /// Identifier of the peer's address; none if it came from an address that was never announced.
    pub remote: Option<u8>,
    /// By way of this gateway.
    pub gateway: Option<IpAddr>,
}

#[pymethods]
impl SubflowView {
    #[new]
    #[pyo3(signature = (local, remote=None, gateway=None))]
    fn new(local: u8, remote: Option<u8>, gateway: Option<IpAddr>) -> Self {
        Self {
            local,
            remote,
            gateway,
        }
    }
    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

/// A subflow to be opened.
#[pyclass(frozen, get_all, eq, hash, module = "gargalo")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Open {
    /// Identifier of our address.
    pub local: u8,
    /// Identifier of the peer's address.
    pub remote: u8,
    /// By way of this gateway.
    pub gateway: Option<IpAddr>,
}

#[pymethods]
impl Open {
    #[new]
    #[pyo3(signature = (local, remote, gateway=None))]
    fn new(local: u8, remote: u8, gateway: Option<IpAddr>) -> Self {
        Self {
            local,
            remote,
            gateway,
        }
    }
    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

impl From<Open> for manager::Open {
    fn from(o: Open) -> Self {
        Self {
            local: o.local,
            remote: o.remote,
            gateway: o.gateway,
        }
    }
}

/// What a path manager decides by.
#[pyclass(frozen, get_all, module = "gargalo")]
#[derive(Clone, Debug)]
pub struct View {
    /// We opened the connection; usually only such a host opens subflows.
    pub is_client: bool,
    /// Our addresses, in the order of their identifiers.
    pub local: Vec<LocalAddress>,
    /// The peer's addresses that accept subflows, in the order of their identifiers.
    pub remote: Vec<RemoteAddress>,
    /// Gateways of our network, if the host knows any.
    pub gateways: Vec<IpAddr>,
    /// All subflows.
    pub subflows: Vec<SubflowView>,
}

impl From<&manager::View<'_>> for View {
    fn from(v: &manager::View<'_>) -> Self {
        let link = |a: IpAddr| v.names.of(a).map(|n| n.to_string());
        let local = |l: &manager::LocalAddress| LocalAddress {
            id: l.id,
            address: l.address,
            backup: l.backup,
            link: link(l.address),
        };
        let remote = |r: &manager::RemoteAddress| RemoteAddress {
            id: r.id,
            address: r.address,
            port: r.port,
            link: link(r.address),
        };
        let subflow = |s: &manager::SubflowView| SubflowView {
            local: s.local,
            remote: s.remote,
            gateway: s.gateway,
        };
        Self {
            is_client: v.is_client,
            local: v.local.iter().map(local).collect(),
            remote: v.remote.iter().map(remote).collect(),
            gateways: v.gateways.to_vec(),
            subflows: v.subflows.iter().map(subflow).collect(),
        }
    }
}

#[pymethods]
impl View {
    #[new]
    #[pyo3(signature = (*, is_client, local, remote, gateways=Vec::new(), subflows=Vec::new()))]
    fn new(
        is_client: bool,
        local: Vec<PyRef<'_, LocalAddress>>,
        remote: Vec<PyRef<'_, RemoteAddress>>,
        gateways: Vec<IpAddr>,
        subflows: Vec<PyRef<'_, SubflowView>>,
    ) -> Self {
        Self {
            is_client,
            local: local.iter().map(|l| (*l).clone()).collect(),
            remote: remote.iter().map(|r| (*r).clone()).collect(),
            gateways,
            subflows: subflows.iter().map(|s| (*s).clone()).collect(),
        }
    }

    /// Our and the peer's addresses between which packets can pass as far as is known: of one family.
    fn pairs(&self) -> Vec<(LocalAddress, RemoteAddress)> {
        let mut pairs = Vec::new();
        for l in &self.local {
            for r in &self.remote {
                if l.address.is_ipv4() == r.address.is_ipv4() {
                    pairs.push((l.clone(), r.clone()));
                }
            }
        }
        pairs
    }

    /// How many subflows there are between two addresses.
    fn count(&self, local: u8, remote: u8) -> usize {
        let between = |s: &&SubflowView| s.local == local && s.remote == Some(remote);
        self.subflows.iter().filter(between).count()
    }

    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}
