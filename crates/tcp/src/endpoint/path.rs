//! ICMP messages about the path (RFC 1122 §4.2.3.9, RFC 1191, RFC 5927).

use gargalo_units::{Instant, Seq};

use super::Endpoint;
use super::segment_size::payload_of;
use crate::config::MtuProbing;
use crate::sender::Sender;
use crate::{Error, State};

/// The MSS with which a search begins (RFC 4821: 1024 bytes; Linux: `tcp_base_mss`).
const BASE_MSS: u16 = 1024;

impl Endpoint {
    /// Whether `seq` is the start of data that was sent and is not acknowledged. An ICMP error that quotes another
    /// sequence number is ignored (RFC 5927 §4.1).
    pub fn is_outstanding(&self, seq: Seq) -> bool {
        let distance = i64::from(seq.distance(self.seq.of(self.seq.una)));
        match self.state {
            State::Closed | State::Listen => false,
            // Our SYN precedes offset 0.
            State::SynSent | State::SynReceived => distance == -1,
            _ => (0..(self.seq.outstanding()) as i64).contains(&distance),
        }
    }

    /// The path carries segments of at most `mss` bytes, options not counted (RFC 6691): path MTU less the IP
    /// header less 20. Longer segments in flight are split and retransmitted, with no effect on the congestion
    /// window (RFC 1191 §6.4).
    pub fn set_mss(&mut self, now: Instant, mss: u16) {
        self.size.path = Some(mss);
        let payload = self.payload_size();
        if let Some(sender) = &mut self.sender {
            sender.set_mss(now, payload);
        }
    }

    /// The least that [`Self::set_mss`] has told; `None`: nothing yet.
    pub fn path_mss(&self) -> Option<u16> {
        self.size.path
    }

    /// Payload of a full segment at present, in bytes; 0 before the connection is open.
    pub fn mss(&self) -> u32 {
        self.sender.as_ref().map_or(0, |s| s.mss())
    }

    /// Retransmission timeouts since anything new was acknowledged.
    pub fn timeouts_in_a_row(&self) -> u32 {
        self.sender.as_ref().map_or(0, |s| s.timeouts_in_a_row())
    }

    /// The network reports that the peer is unreachable, by a hard or a soft error. Only a hard error ends a
    /// connection, and only one that is being opened (RFC 1122 §4.2.3.9, RFC 5461 §4). Others continue; if they
    /// time out later, the error is [`Error::Unreachable`].
    pub fn on_unreachable(&mut self, hard: bool) {
        match self.state {
            State::SynSent | State::SynReceived if hard => self.end(Some(Error::Unreachable)),
            _ => self.unreachable = true,
        }
    }

    /// The error of a connection that timed out.
    pub(super) fn timeout_error(&self) -> Error {
        if self.unreachable {
            Error::Unreachable
        } else {
            Error::TimedOut
        }
    }
}

impl Endpoint {
    /// Begins the search of the path MTU, if it is wanted (RFC 4821).
    pub(super) fn start_search(&self, sender: &mut Sender) {
        if self.config.mtu_probing != MtuProbing::Off {
            sender.search_mss(self.payload_size(), self.size.reserved == 0);
        }
    }

    /// Payload of the first segments: the base size if a search begins with it.
    pub(super) fn first_payload(&self) -> u16 {
        let payload = self.payload_size();
        match self.config.mtu_probing {
            MtuProbing::Always if self.size.reserved == 0 => payload.min(self.base_payload()),
            _ => payload,
        }
    }

    /// The size with which a search begins.
    fn base_payload(&self) -> u16 {
        let base = BASE_MSS.max(self.size.least_path());
        payload_of(Some(base), &self.timestamps)
    }

    /// After a timeout: the path may drop long segments without an ICMP error.
    pub(super) fn suspect_black_hole(&mut self, now: Instant) {
        let base = self.base_payload();
        let least = payload_of(Some(self.size.least_path()), &self.timestamps);
        if let Some(sender) = &mut self.sender {
            sender.suspect_black_hole(now, base, least);
        }
    }
}
