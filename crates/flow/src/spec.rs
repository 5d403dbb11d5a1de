//! Flows as they are configured: between which hosts, over which transport, what is carried.

use std::sync::Arc;

use gargalo_cc::ControllerFactory;
use gargalo_mptcp as mptcp;
use gargalo_quic as quic;
use gargalo_tcp as tcp;
use gargalo_units::{Duration, Instant};
use gargalo_workload::Workload;
use gargalo_workload::tls::Tls;

use crate::group::GroupId;
use crate::misbehaviour::Misbehaviour;
use crate::topology::NodeId;

/// A flow as configured; one template makes many flows when `arrivals` is set.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// Identifies the flow in results; flows made by arrivals count on from it.
    pub id: u64,
    /// Shown in results and pictures.
    pub label: Arc<str>,
    /// Opens the connection.
    pub from: NodeId,
    /// The other host.
    pub to: NodeId,
    /// When it starts (or arrivals begin).
    pub start: Instant,
    /// When its application stops; `None`: at the end of the run.
    pub stop: Option<Instant>,
    /// How data is carried.
    pub transport: TransportSpec,
    /// What is carried.
    pub workload: Workload,
    /// Mean time between the starts of flows made from this template (a Poisson process);
    /// `None`: one flow.
    pub arrivals: Option<Duration>,
    /// Where it is counted beside others; `None`: nowhere.
    pub group: Option<GroupId>,
    /// It has a row of its own in the results, and samples and events.
    pub rows: bool,
}

/// How data is carried.
#[derive(Clone, Debug)]
pub enum TransportSpec {
    /// TCP.
    Tcp(TcpSpec),
    /// Multipath TCP.
    Mptcp(Box<MptcpSpec>),
    /// QUIC.
    Quic(Box<QuicSpec>),
    /// UDP.
    Udp,
}

impl TransportSpec {
    /// Its name in results.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Tcp(_) => "tcp",
            Self::Mptcp(_) => "mptcp",
            Self::Quic(_) => "quic",
            Self::Udp => "udp",
        }
    }

    /// The name of its congestion control; empty for UDP.
    pub fn congestion(&self) -> &str {
        match self {
            Self::Tcp(tcp) => tcp.congestion.name(),
            Self::Mptcp(mptcp) => mptcp.congestion.name(),
            Self::Quic(quic) => &quic.congestion_name,
            Self::Udp => "",
        }
    }

    /// TLS between it and the application.
    pub const fn tls(&self) -> Option<Tls> {
        match self {
            Self::Tcp(tcp) => tcp.tls,
            Self::Mptcp(mptcp) => mptcp.tls,
            Self::Quic(_) | Self::Udp => None,
        }
    }
}

/// A TCP transport.
#[derive(Clone, Debug)]
pub struct TcpSpec {
    /// Configuration of both ends.
    pub config: Arc<tcp::Config>,
    /// Congestion control of both ends.
    pub congestion: Arc<dyn ControllerFactory>,
    /// TLS between it and the application.
    pub tls: Option<Tls>,
    /// How the receiving end misbehaves.
    pub misbehaviour: Misbehaviour,
}

/// A Multipath TCP transport.
#[derive(Clone, Debug)]
pub struct MptcpSpec {
    /// Configuration of both ends.
    pub config: Arc<mptcp::Config>,
    /// Congestion control of all subflows.
    pub congestion: Arc<dyn ControllerFactory>,
    /// TLS between it and the application.
    pub tls: Option<Tls>,
    /// Links whose addresses take part from the beginning; `None`: all links of the two hosts.
    pub links: Option<Vec<usize>>,
    /// Links whose subflows are backups.
    pub backups: Vec<usize>,
    /// Routers that the client may send packets by, for the path manager `binder`.
    pub gateways: Vec<NodeId>,
    /// Addresses that come and go, in the order of time.
    pub changes: Vec<AddressChange>,
}

/// A host gets or loses an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressChange {
    /// So long after the flow's start.
    pub after: Duration,
    /// 0: the host that opens the connection; 1: the other.
    pub side: u8,
    /// The link of the interface.
    pub link: usize,
    /// It comes; otherwise it goes.
    pub add: bool,
}

/// A QUIC transport.
#[derive(Clone, Debug)]
pub struct QuicSpec {
    /// Options of both ends.
    pub config: quic::Config,
    /// Congestion control of both ends.
    pub congestion: quic::Congestion,
    /// Its name in results.
    pub congestion_name: Arc<str>,
}
