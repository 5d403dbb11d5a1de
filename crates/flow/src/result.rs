//! Results of flows.

use std::borrow::Cow;
use std::sync::Arc;

use gargalo_mptcp as mptcp;
use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Duration, Instant, SenderCounters};
use gargalo_workload::AppResult;
use gargalo_workload::wire::WireBytes;

use crate::routing::NodeId;
use crate::window::{Counts, Edge, Marks, Window};

/// The result of a subflow of Multipath TCP, or of a path of QUIC.
#[derive(Clone, Debug)]
pub struct SubflowResult {
    /// Its number, in the order of opening.
    pub id: u32,
    /// The link by which the data leaves the sender, by index.
    pub link: usize,
    /// The link by which its acknowledgements leave the receiver.
    pub reverse_link: usize,
    /// The gateway by which the data is routed.
    pub gateway: Option<NodeId>,
    /// When it could first carry data.
    pub opened: Instant,
    /// When it ended; `None`: with the connection.
    pub closed: Option<Instant>,
    /// Whether it was a backup at its end; `None`: the kernel does not report it.
    pub backup: Option<bool>,
    /// Bytes that reached the peer on it. TCP: in order, including data that other subflows delivered too. QUIC: bytes
    /// that this path delivered first.
    pub delivered: Bytes,
    /// What its sender counted.
    pub counters: SenderCounters,
    /// Round-trip samples of its sender inside the measured window.
    pub rtt: Quantiles,
    /// Counts at the edges of the measured window, while it is open.
    pub marks: Marks,
    /// Counts inside the measured window.
    pub inside: Counts,
}

impl SubflowResult {
    /// The result of a subflow that has just opened, whose data leaves by the first of two links and whose
    /// acknowledgements leave by the second.
    pub fn opened(id: u32, links: (usize, usize), gateway: Option<NodeId>, at: Instant) -> Self {
        Self {
            id,
            link: links.0,
            reverse_link: links.1,
            gateway,
            opened: at,
            closed: None,
            backup: Some(false),
            delivered: Bytes::ZERO,
            counters: SenderCounters::default(),
            rtt: Quantiles::default(),
            marks: Marks::default(),
            inside: Counts::default(),
        }
    }

    /// Records the state of a subflow of Multipath TCP.
    pub fn record(&mut self, s: &mptcp::SubflowSnapshot) {
        self.counters = s.stats.sender;
        self.backup = Some(s.backup);
        self.delivered = s.sender.delivered;
    }

    fn counts(&self) -> Counts {
        Counts {
            delivered: self.delivered.get(),
            sender: self.counters,
            wire: WireBytes::default(),
        }
    }

    /// Takes the counts at an edge of the measured window.
    pub fn mark(&mut self, edge: Edge) {
        let counts = self.counts();
        self.marks.mark(edge, counts, &mut self.rtt);
    }

    /// Closes the result when the flow is over.
    pub fn close(&mut self, window: &Window) {
        let counts = self.counts();
        self.inside = self
            .marks
            .inside(window, self.opened, counts, &mut self.rtt);
    }
}

/// Results of a connection over several paths.
#[derive(Clone, Debug, Default)]
pub struct MultipathResult {
    /// Every subflow that could carry data, in the order in which they were opened.
    pub subflows: Vec<SubflowResult>,
    /// Results specific to Multipath TCP.
    pub mptcp: Option<MptcpResult>,
}

/// Counts of a Multipath TCP connection besides those of its data.
#[derive(Clone, Debug, Default)]
pub struct MptcpResult {
    /// Counters of the sending end.
    pub stats: mptcp::Stats,
    /// Bytes that arrived more than once at the receiving end.
    pub duplicate_bytes: u64,
    /// Most bytes that waited in the reordering queue of the receiving end.
    pub out_of_order_max: u64,
}

/// The result of a flow.
#[derive(Clone, Debug)]
pub struct FlowResult {
    /// Identifies the flow among all flows of the run.
    pub id: u64,
    /// Identifier of the scenario's flow or source from which it was created.
    pub template: u64,
    /// The host that opened the connection, and the other host.
    pub hosts: (NodeId, NodeId),
    /// Label shown in results and pictures.
    pub label: Arc<str>,
    /// "tcp", "mptcp", "quic" or "udp".
    pub transport: &'static str,
    /// Name of the congestion control; empty for UDP.
    pub congestion: String,
    /// When it started.
    pub start: Instant,
    /// When it completed, was stopped, or the run ended.
    pub end: Instant,
    /// Time from the start until the client's application could write; `None`: it never could, or UDP.
    pub handshake: Option<Duration>,
    /// When the receiver's application read its first byte.
    pub first_byte: Option<Instant>,
    /// Time from the start to the receiver's last byte, if the whole transfer arrived.
    pub completion: Option<Duration>,
    /// Bytes that the receiver's application read.
    pub delivered: Bytes,
    /// What the sending side counted.
    pub counters: SenderCounters,
    /// Congestion Experienced marks seen by the receiver.
    pub ce_marks: u64,
    /// Round-trip samples of the sender (UDP: one-way delays) inside the measured window.
    pub rtt: Quantiles,
    /// Counts inside the measured window.
    pub inside: Counts,
    /// Its delays are those of datagrams in one direction, not round-trip times.
    pub one_way: bool,
    /// Delivered content differed from what was sent (only checked on request).
    pub corrupted: bool,
    /// Why the connection ended early, if it did.
    pub failure: Option<Cow<'static, str>>,
    /// Bytes that the two hosts put on the wire for it, IP headers included: in the direction of the data and in the
    /// opposite direction.
    pub wire: WireBytes,
    /// Quality as the user of the application perceives it, where that is defined.
    pub application: Option<AppResult>,
    /// Results of several paths, for Multipath TCP or multipath QUIC.
    pub multipath: Option<Box<MultipathResult>>,
}

/// Describes a subflow for the events table, by the names of the links by which its data and its acknowledgements
/// leave.
pub fn describe_subflow(id: u32, (near, far): (&str, &str)) -> String {
    match near == far {
        true => format!("subflow={id} link={near}"),
        false => format!("subflow={id} link={near} peer_link={far}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subflow_is_named_by_the_links_of_both_ends_where_they_differ() {
        assert_eq!(describe_subflow(2, ("lte", "lte")), "subflow=2 link=lte");
        let apart = describe_subflow(0, ("wifi", "server"));
        assert_eq!(apart, "subflow=0 link=wifi peer_link=server");
    }
}
