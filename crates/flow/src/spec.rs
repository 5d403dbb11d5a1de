//! Configuration of flows: the hosts, the transport and the workload.

use std::sync::Arc;

use gargalo_cc::ControllerFactory;
use gargalo_mptcp as mptcp;
use gargalo_quic as quic;
use gargalo_tcp as tcp;
use gargalo_units::{Duration, Instant};
use gargalo_workload::tls::Tls;
use gargalo_workload::{Carrier, Workload};

use crate::group::GroupId;
use crate::misbehaviour::Misbehaviour;
use crate::routing::NodeId;

/// The configuration of a flow; one template creates many flows when `arrivals` is set.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// Identifies the flow in results; flows created by arrivals count on from it.
    pub id: u64,
    /// Label shown in results and pictures.
    pub label: Arc<str>,
    /// Name of its random streams. It does not depend on the place of the flow among others.
    pub stream: Arc<str>,
    /// The host that opens the connection.
    pub from: NodeId,
    /// The other host.
    pub to: NodeId,
    /// The path that it takes in both directions: its number among the routes that share no link. Transports with
    /// several paths, which choose for themselves, have 0.
    pub path: u8,
    /// When it starts, or arrivals begin.
    pub start: Instant,
    /// When its application stops; `None`: at the end of the run.
    pub stop: Option<Instant>,
    /// How the data is carried.
    pub transport: TransportSpec,
    /// The traffic: what the applications at both ends do. Copies share it.
    pub workload: Arc<Workload>,
    /// Mean time between the starts of flows created from this template (a Poisson process); `None`: one flow.
    pub arrivals: Option<Duration>,
    /// The group in which it is counted; `None`: in none.
    pub group: Option<GroupId>,
    /// It has its own row in the results, and samples and events.
    pub rows: bool,
}

impl FlowSpec {
    /// The path of its random streams; see [`crate::rng`].
    pub fn stream_name(&self) -> String {
        format!("flow/{}", self.stream)
    }

    /// What its workload uses of QUIC besides bidirectional streams that are read to their end.
    pub fn uses(&self) -> quic::Uses {
        let request = match &*self.workload {
            Workload::Request(request) => Some(request),
            _ => None,
        };
        quic::Uses {
            datagrams: self.workload.carrier() == Carrier::Datagrams,
            cancel: request.is_some_and(|r| r.give_up.is_some()),
            urgency: request.is_some_and(|r| r.urgency.is_some()),
        }
    }

    /// Its routes, from the first host to the other and back: the hosts, and the number of the path.
    pub const fn ways(&self) -> [(NodeId, NodeId, u8); 2] {
        [
            (self.from, self.to, self.path),
            (self.to, self.from, self.path),
        ]
    }
}

/// The transport of a flow.
#[derive(Clone, Debug)]
pub enum TransportSpec {
    /// TCP (RFC 9293).
    Tcp(TcpSpec),
    /// Multipath TCP (RFC 8684).
    Mptcp(Box<MptcpSpec>),
    /// QUIC (RFC 9000), over one path or several.
    Quic(Box<QuicSpec>),
    /// UDP, without congestion control unless the workload has one.
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

    /// TLS between the transport and the application.
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
    /// TLS between TCP and the application.
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
    /// TLS between Multipath TCP and the application.
    pub tls: Option<Tls>,
    /// Links whose addresses take part from the beginning; `None`: all links of the two hosts.
    pub links: Option<Vec<usize>>,
    /// Links whose subflows are backups.
    pub backups: Vec<usize>,
    /// Gateways by which the client may send packets, for the path manager `binder`.
    pub gateways: Vec<NodeId>,
    /// Changes of addresses, in the order of time.
    pub changes: Vec<AddressChange>,
}

/// A host gets or loses an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressChange {
    /// Time after the start of the flow.
    pub after: Duration,
    /// 0: the host that opens the connection; 1: the other.
    pub side: u8,
    /// The link of the interface.
    pub link: usize,
    /// The address is added; otherwise it is removed.
    pub add: bool,
}

/// A QUIC transport.
#[derive(Clone, Debug)]
pub struct QuicSpec {
    /// Options of both ends.
    pub config: quic::Config,
    /// The implementations of both ends, the client's first.
    pub stacks: [Arc<dyn quic::Implementation>; 2],
    /// Name of the congestion control in results.
    pub congestion_name: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bulk, flow, quic, reno};

    #[test]
    fn a_transport_tells_its_name_its_control_and_its_tls() {
        let tls = Tls::default();
        let over_tls = TransportSpec::Tcp(TcpSpec {
            tls: Some(tls),
            ..reno()
        });
        let quic = TransportSpec::Quic(quic().into());
        let names = |t: &TransportSpec| (t.name(), t.congestion().to_owned(), t.tls().is_some());
        assert_eq!(names(&over_tls), ("tcp", "reno".into(), true));
        assert_eq!(names(&quic), ("quic", "reno".into(), false));
        assert_eq!(names(&TransportSpec::Udp), ("udp", String::new(), false));
    }

    #[test]
    fn a_flow_takes_the_same_path_in_both_directions() {
        let mut spec = flow(TransportSpec::Udp, bulk(1));
        spec.path = 3;
        assert_eq!(spec.ways(), [(0, 1, 3), (1, 0, 3)]);
        assert_eq!(spec.stream_name(), "flow/7");
    }
}
