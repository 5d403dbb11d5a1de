//! What a recording tells beside its tables, as JSON.

use std::path::Path;

use serde::Serialize;

use crate::capture::Ending;
use crate::tcp::Spent;

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// When the first packet was captured, in seconds since 1970 (UTC).
    pub begun_unix_s: f64,
    /// From the first packet to the last.
    pub duration_s: f64,
    /// Packets of TCP and UDP.
    pub packets: u64,
    /// The files.
    pub files: Vec<File>,
    /// Packets that were not looked at, by why.
    pub left_out: LeftOut,
    /// What was seen of the clocks.
    pub clock: Clock,
    /// What was concluded of each flow, in the order of the table.
    pub flows: Vec<Flow>,
}

/// A file.
#[derive(Clone, Debug, Serialize)]
pub struct File {
    /// Its path.
    pub path: String,
    /// capture, or the kind of log.
    pub kind: &'static str,
    /// Its frames.
    pub frames: u64,
    /// Names of its interfaces, as far as it has them.
    pub interfaces: Vec<String>,
    /// Where it could not be read further: after so many bytes, uncompressed.
    pub damaged_at_byte: Option<u64>,
    /// Why.
    pub damage: Option<&'static str>,
}

impl File {
    pub(crate) fn new(path: &Path, frames: u64, ending: &Ending) -> Self {
        Self {
            path: path.display().to_string(),
            kind: "capture",
            frames,
            interfaces: ending
                .interfaces
                .iter()
                .filter_map(|i| i.name.clone())
                .collect(),
            damaged_at_byte: ending.damage.as_ref().map(|d| d.at_byte),
            damage: ending.damage.as_ref().map(|d| d.why),
        }
    }

    /// Without what its name and those of its interfaces may tell.
    pub(crate) fn anonymous(self, number: usize) -> Self {
        Self {
            path: format!("file {number}"),
            interfaces: Vec::new(),
            ..self
        }
    }

    pub(crate) fn of_log(path: &Path, kind: &'static str) -> Self {
        Self {
            path: path.display().to_string(),
            kind,
            frames: 0,
            interfaces: Vec::new(),
            damaged_at_byte: None,
            damage: None,
        }
    }
}

/// Packets that were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Neither TCP nor UDP over IP.
    pub other: u64,
    /// Of a link type that is not known here.
    pub unknown_link: u64,
    /// Fragments of IP packets, but for the first ones.
    pub fragments: u64,
    /// Headers that were cut off or make no sense.
    pub malformed: u64,
    /// Without a time, or of an interface that the file does not describe.
    pub unusable: u64,
    /// Of flows beyond the number that is followed.
    pub beyond_most_flows: u64,
    /// Lines of logs that could not be used.
    pub unused_lines: u64,
}

/// Clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Clock {
    /// Packets with an earlier time than one before them in the file.
    pub late_packets: u64,
    /// Of these, by more than a second: the clock was set.
    pub set_back: u64,
}

/// Why packets were not decrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Encrypted {
    /// No key log has their secrets, or the handshake is not whole in the capture, by which these are found.
    pub without_key: u64,
    /// The capture has not kept all of them.
    pub cut: u64,
    /// They do not open with the keys of their connection.
    pub damaged: u64,
}

impl Encrypted {
    /// All of them.
    pub const fn all(&self) -> u64 {
        self.without_key + self.cut + self.damaged
    }
}

/// What was concluded of a flow; what the capture cannot show is `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Flow {
    /// Number of the flow.
    pub id: u64,
    /// Where it was captured: "sender", "receiver", "between", or "both".
    pub captured_at: Option<&'static str>,
    /// By how much the clock at its receiver is ahead of that at its sender, if they are of two files: at the
    /// beginning.
    pub clock_offset_s: Option<f64>,
    /// How much that grows.
    pub clock_drift_ppm: Option<f64>,
    /// Payload of a full segment.
    pub full_segment_bytes: Option<u64>,
    /// The smallest round trip: propagation, and what no queue adds.
    pub base_rtt_s: Option<f64>,
    /// Median of what the round trips were above it.
    pub queueing_delay_p50_s: Option<f64>,
    /// 95th percentile.
    pub queueing_delay_p95_s: Option<f64>,
    /// 95th percentile of the delivery rates at the sampling instants: of a path that was filled, its rate.
    pub delivery_rate_p95_bps: Option<f64>,
    /// Packets sent again by fast retransmission.
    pub fast_retransmissions: Option<u64>,
    /// By a timeout.
    pub timeout_retransmissions: Option<u64>,
    /// As tail loss probes.
    pub probe_retransmissions: Option<u64>,
    /// Of all, those that the receiver reported as unnecessary (RFC 2883).
    pub spurious_retransmissions: Option<u64>,
    /// Episodes of retransmissions.
    pub loss_episodes: Option<u64>,
    /// Packets that came after later ones, for the first time at this place: reordered or lost before it.
    pub late_packets: Option<u64>,
    /// Data packets for each acknowledgement without data.
    pub packets_per_ack: Option<f64>,
    /// Median of the packets sent at once.
    pub burst_p50_packets: Option<u64>,
    /// 95th percentile.
    pub burst_p95_packets: Option<u64>,
    /// The longest burst.
    pub burst_max_packets: Option<u64>,
    /// What kept the sender from sending more, and for how long.
    pub limited_by: Option<Spent>,
    /// Times when nothing was acknowledged for long while data waited.
    pub stalls: Option<u64>,
    /// Packets that were sent ECN-capable.
    pub ecn_capable_packets: Option<u64>,
    /// Acknowledgements that echoed a mark.
    pub ecn_echoes: Option<u64>,
    /// Datagrams of a QUIC connection from this end.
    pub datagrams: Option<u64>,
    /// Payload of these datagrams.
    pub datagram_bytes: Option<u64>,
    /// Of QUIC: packets of both ends that were not decrypted. If they are more than a hundredth, figures are of sizes,
    /// times and the spin bit.
    pub encrypted_packets: Option<Encrypted>,
    /// Of QUIC that was not decrypted: round trips by the spin bit (RFC 9312).
    pub spin_round_trips: Option<u64>,
    /// Of QUIC that was decrypted: key updates of the client and of the server (RFC 9001, section 6).
    pub key_updates: Option<[u64; 2]>,
    /// Of QUIC: length of a full packet.
    pub full_packet_bytes: Option<u64>,
    /// Of QUIC: probe timeouts (RFC 9002, section 6.2).
    pub probe_packets: Option<u64>,
    /// Of QUIC: packets that the sender must have taken for lost, and that were acknowledged later.
    pub spurious_losses: Option<u64>,
    /// Of UDP: datagrams that were seen at the first place and at the last; of very many a part.
    pub matched_datagrams: Option<u64>,
    /// By what they were known: "rtp" (its header) or "content" (identification, size, beginning of the payload). With
    /// "count" they could not be told apart, and the loss is by their numbers.
    pub matched_by: Option<&'static str>,
    /// Data in the other direction.
    pub reverse_bytes: u64,
    /// Whether it was reset.
    pub reset: bool,
}

impl Flow {
    /// Adds what was concluded of another subflow: numbers of packets, and the extremes of both. What has no sum over
    /// subflows is missing.
    pub(crate) fn add(&mut self, other: &Self) {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        self.fast_retransmissions = sum(self.fast_retransmissions, other.fast_retransmissions);
        self.timeout_retransmissions =
            sum(self.timeout_retransmissions, other.timeout_retransmissions);
        self.probe_retransmissions = sum(self.probe_retransmissions, other.probe_retransmissions);
        self.spurious_retransmissions = sum(
            self.spurious_retransmissions,
            other.spurious_retransmissions,
        );
        self.loss_episodes = sum(self.loss_episodes, other.loss_episodes);
        self.late_packets = sum(self.late_packets, other.late_packets);
        self.stalls = sum(self.stalls, other.stalls);
        self.ecn_capable_packets = sum(self.ecn_capable_packets, other.ecn_capable_packets);
        self.ecn_echoes = sum(self.ecn_echoes, other.ecn_echoes);
        self.burst_max_packets = self.burst_max_packets.max(other.burst_max_packets);
        self.base_rtt_s = self.base_rtt_s.zip(other.base_rtt_s).map(|(a, b)| a.min(b));
        if self.captured_at != other.captured_at {
            self.captured_at = None;
        }
        (self.queueing_delay_p50_s, self.queueing_delay_p95_s) = (None, None);
        (
            self.delivery_rate_p95_bps,
            self.packets_per_ack,
            self.limited_by,
        ) = (None, None, None);
        (self.burst_p50_packets, self.burst_p95_packets) = (None, None);
        self.reset |= other.reset;
    }
}
