//! What became of flows.

use std::sync::Arc;

use gargalo_mptcp as mptcp;
use gargalo_tcp as tcp;
use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Duration, Instant};
use gargalo_workload::AppResult;
use gargalo_workload::wire::WireBytes;

use crate::topology::NodeId;
use crate::window::{Counts, Edge, Marks, Window};

/// What became of a subflow of Multipath TCP, or of a path of QUIC.
#[derive(Clone, Debug)]
pub struct SubflowResult {
    /// Its number, in the order of opening.
    pub id: u32,
    /// The link by which the data leaves the sender, by index.
    pub link: usize,
    /// The link by which its acknowledgements leave the receiver.
    pub reverse_link: usize,
    /// The gateway the data goes by.
    pub gateway: Option<NodeId>,
    /// When it could carry data.
    pub opened: Instant,
    /// When it ended; `None`: with the connection.
    pub closed: Option<Instant>,
    /// It was a backup at its end; `None`: the kernel does not tell.
    pub backup: Option<bool>,
    /// Bytes that reached the peer on it: over TCP in order, repetitions of other subflows included; over QUIC
    /// those that it brought first.
    pub delivered: Bytes,
    /// Counts of its sender.
    pub stats: tcp::Stats,
    /// Round-trip samples of its sender, inside of the measured window.
    pub rtt: Quantiles,
    /// Counts at the edges of that window, while it is open.
    pub marks: Marks,
    /// What was counted inside of that window.
    pub inside: Counts,
}

impl SubflowResult {
    fn counts(&self) -> Counts {
        Counts {
            delivered: self.delivered.get(),
            sent: self.stats.sent_bytes,
            sent_packets: self.stats.sent_packets,
            retransmitted_packets: self.stats.retransmitted_packets,
            lost_packets: self.stats.lost_packets,
            wire: WireBytes::default(),
        }
    }

    /// An edge of the measured window passes.
    pub fn mark(&mut self, edge: Edge) {
        let counts = self.counts();
        self.marks.mark(edge, counts, &mut self.rtt);
    }

    /// The flow is over.
    pub fn close(&mut self, window: &Window) {
        let counts = self.counts();
        self.inside = self
            .marks
            .inside(window, self.opened, counts, &mut self.rtt);
    }
}

/// What a connection did on several paths.
#[derive(Clone, Debug, Default)]
pub struct MultipathResult {
    /// Every subflow that could carry data, in the order of opening.
    pub subflows: Vec<SubflowResult>,
    /// Of Multipath TCP.
    pub mptcp: Option<MptcpResult>,
}

/// What a Multipath TCP connection did beside carrying data.
#[derive(Clone, Debug, Default)]
pub struct MptcpResult {
    /// Counts of the sending end.
    pub stats: mptcp::Stats,
    /// Bytes that arrived more than once at the receiving end.
    pub duplicate_bytes: u64,
    /// Most bytes that waited at the receiving end for others before them.
    pub out_of_order_max: u64,
}

/// What became of a flow.
#[derive(Clone, Debug)]
pub struct FlowResult {
    /// Identifier.
    pub id: u64,
    /// Identifier of the flow or source in the scenario that it was made from.
    pub template: u64,
    /// The host that opened the connection, and the other one.
    pub hosts: (NodeId, NodeId),
    /// Label.
    pub label: Arc<str>,
    /// "tcp", "mptcp", "quic" or "udp".
    pub transport: &'static str,
    /// Name of the congestion control; empty for UDP.
    pub congestion: String,
    /// When it started.
    pub start: Instant,
    /// When it completed, was stopped, or the run ended.
    pub end: Instant,
    /// From start until the client's application could write; `None`: it never could, or UDP.
    pub handshake: Option<Duration>,
    /// When the receiver's application got its first byte.
    pub first_byte: Option<Instant>,
    /// From start to the receiver's last byte, if the whole transfer arrived.
    pub completion: Option<Duration>,
    /// Bytes the receiver's application got.
    pub delivered: Bytes,
    /// Data packets sent by the sending side, repetitions included.
    pub sent_packets: u64,
    /// Payload bytes sent by the sending side, repetitions included.
    pub sent: Bytes,
    /// Of those packets, retransmissions.
    pub retransmitted_packets: u64,
    /// Marked lost by the sender (UDP: dropped by the network).
    pub lost_packets: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Loss events withdrawn as spurious.
    pub spurious_losses: u64,
    /// Congestion-experienced marks seen by the receiver.
    pub ce_marks: u64,
    /// Round-trip samples of the sender (UDP: one-way delays), inside of the measured window.
    pub rtt: Quantiles,
    /// What was counted inside of that window.
    pub inside: Counts,
    /// Delivered content differed from what was sent (only checked when asked).
    pub corrupted: bool,
    /// Why the connection ended early, if it did.
    pub failure: Option<&'static str>,
    /// Bytes that the two hosts put on the wire for it, with IP headers: in the direction of the data
    /// and against it.
    pub wire: WireBytes,
    /// What the user of the application noticed, where there is one.
    pub application: Option<AppResult>,
    /// What happened on several paths, over Multipath TCP or multipath QUIC.
    pub multipath: Option<MultipathResult>,
}
