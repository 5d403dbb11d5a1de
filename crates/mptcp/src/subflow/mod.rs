//! A subflow: a TCP endpoint with its MPTCP state.

mod failing;
mod limits;

pub(crate) use failing::{LossProbe, LostDeliveries, Removal};
pub(crate) use limits::{Burst, Penalty};

use std::collections::VecDeque;
use std::net::IpAddr;

use gargalo_tcp::{Endpoint, Room, State};
use gargalo_units::Instant;
use gargalo_wire::mptcp::MptcpOption;

use crate::mapping::{Received, Sent};
use crate::scheduler::PathView;
use crate::{Addresses, SubflowSnapshot};

/// How a subflow was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The initial subflow, by MP_CAPABLE.
    Initial,
    /// By a join of ours.
    OwnJoin,
    /// By a join of the peer.
    PeerJoin,
}

/// The identifiers and nonces of a join (RFC 8684 §3.2); of the initial subflow only the identifiers count.
#[derive(Debug)]
pub(crate) struct Join {
    /// Identifier of our address.
    pub(crate) local_id: u8,
    /// Identifier of the peer's address; `None` if it is not known.
    pub(crate) remote_id: Option<u8>,
    pub(crate) own_nonce: u32,
    pub(crate) peer_nonce: u32,
    /// When to retransmit the third packet of our join.
    pub(crate) confirm_at: Instant,
}

/// Who requested the subflow to be a backup (RFC 8684 §3.3.8).
#[derive(Debug)]
pub(crate) struct Backup {
    pub(crate) own: bool,
    pub(crate) peer: bool,
}

/// What arrives on the subflow.
#[derive(Debug)]
pub(crate) struct Input {
    /// Mappings of the peer.
    pub(crate) received: Received,
    /// Bytes read from the endpoint.
    pub(crate) consumed: u64,
    /// When data was last read from it.
    pub(crate) read_at: Instant,
}

/// Options and acknowledgements to send on the subflow.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Options that need an acknowledgement of their own.
    pub(crate) signals: VecDeque<MptcpOption>,
    /// An acknowledgement must be sent, with data or without.
    pub(crate) ack_wanted: bool,
    /// The last DATA_ACK sent on it.
    pub(crate) data_ack: u64,
    /// The options of the reset that ends it.
    pub(crate) reset_options: Option<MptcpOption>,
}

/// A subflow: its endpoint and its MPTCP state.
#[derive(Debug)]
pub(crate) struct Subflow {
    pub(crate) id: u32,
    /// Its bit in sets of carriers.
    pub(crate) slot: u8,
    pub(crate) addresses: Addresses,
    pub(crate) gateway: Option<IpAddr>,
    pub(crate) origin: Origin,
    pub(crate) join: Join,
    pub(crate) backup: Backup,
    pub(crate) endpoint: Endpoint,
    /// The MPTCP handshake is complete: data may be sent.
    pub(crate) confirmed: bool,
    /// The opened event was reported.
    pub(crate) announced: bool,
    /// It is being closed by us.
    pub(crate) closing: bool,
    pub(crate) sent: Sent,
    /// Bytes written to the endpoint.
    pub(crate) written: u64,
    /// Bytes acknowledged at subflow level, when last examined.
    pub(crate) acked: u64,
    pub(crate) input: Input,
    pub(crate) outbox: Outbox,
    /// Ranges to be sent as copies.
    pub(crate) copies: VecDeque<(u64, u64)>,
    pub(crate) penalty: Penalty,
    /// When it may next halve the window of another that holds it up.
    pub(crate) halves_after: Instant,
    pub(crate) burst: Burst,
    /// It has timed out, and its data was reinjected on others.
    pub(crate) stale: bool,
    pub(crate) probe: LossProbe,
    /// It sends tail loss probes, and its data was reinjected on others.
    pub(crate) suspected: bool,
    pub(crate) lost_deliveries: LostDeliveries,
    pub(crate) last_pushed: Instant,
    /// When its pacer is ready; MAX if the pacer is not the limit.
    pub(crate) paced_until: Instant,
    /// The next timeout of its endpoint.
    pub(crate) deadline: Instant,
    pub(crate) removal: Removal,
}

impl Subflow {
    #[inline]
    pub(crate) fn bit(&self) -> u64 {
        1 << self.slot
    }

    /// The next of its timers, without the pacer's.
    #[inline]
    pub(crate) fn wake(&self) -> Instant {
        let own = self.join.confirm_at.min(self.probe.at).min(self.removal.at);
        self.deadline.min(own)
    }

    pub(crate) fn is_backup(&self) -> bool {
        self.backup.own || self.backup.peer
    }

    /// Whether new data may be assigned to it.
    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        self.confirmed
            && !self.closing
            && self.removal.at == Instant::MAX
            && matches!(self.endpoint.state(), State::Established | State::CloseWait)
    }

    /// Whether its retransmission timer has expired and nothing new was acknowledged since.
    #[inline]
    pub(crate) fn in_loss(&self) -> bool {
        self.endpoint.timeouts_in_a_row() > 0
    }

    /// Its view for schedulers at `now`.
    pub(crate) fn view(&mut self, now: Instant) -> PathView {
        let s = self.endpoint.snapshot(now);
        let mss = u64::from(self.endpoint.mss().max(1));
        let in_flight = s.in_flight.get();
        let mut cwnd = s.cwnd.get();
        let mut ssthresh = s.ssthresh.map(|b| b.get());
        let mut in_slow_start = s.in_slow_start;
        if self.penalty.cap.is_some() {
            let rtt = s.srtt.unwrap_or(s.rto);
            self.penalty.relax(now, cwnd, mss, rtt);
            // Other paths must not wait for data that it may not carry.
            if let Some(cap) = self.penalty.cap.filter(|cap| *cap < cwnd) {
                cwnd = cap;
                (ssthresh, in_slow_start) = (Some(cap), false);
            }
        }
        self.burst.set(s.srtt, cwnd, in_slow_start, mss);
        let usable = self.is_usable();
        let queued = self.endpoint.unsent();
        let can_send = self.can_send(now, usable, queued, in_flight, mss);
        PathView {
            id: self.id,
            srtt: s.srtt,
            rttvar: s.rttvar,
            latest_rtt: s.latest_rtt,
            min_rtt: s.min_rtt,
            rto: s.rto,
            cwnd,
            ssthresh,
            in_slow_start,
            in_flight,
            queued,
            held: 0, // set by the connection
            mss,
            delivery_rate: s.delivery_rate,
            pacing_rate: s.pacing_rate,
            backup: self.is_backup(),
            in_loss: self.in_loss(),
            usable,
            can_send,
            sent_packets: self.endpoint.sent_packets(),
            lost_packets: self.endpoint.lost_packets(),
            version: 0, // set by the connection
        }
    }

    /// Updates a view after sending only.
    #[inline]
    pub(crate) fn view_sent(&mut self, now: Instant, v: &mut PathView) {
        v.in_flight = self.endpoint.in_flight();
        v.sent_packets = self.endpoint.sent_packets();
        v.queued = self.endpoint.unsent();
        v.can_send = self.can_send(now, v.usable, v.queued, v.in_flight, v.mss);
    }

    /// Whether it may carry another segment now; otherwise when it may without an acknowledgement, if ever.
    #[inline]
    fn can_send(
        &mut self,
        now: Instant,
        usable: bool,
        queued: u64,
        in_flight: u64,
        mss: u64,
    ) -> bool {
        // A closing subflow has no such time: a time in the past would be polled for ever.
        self.paced_until = Instant::MAX;
        if !usable || queued > 0 {
            return false;
        }
        match self.endpoint.room(now) {
            Room::Full => return false,
            Room::Paced(until) => self.paced_until = until,
            Room::Open(_) if self.burst.paid_at > now => self.paced_until = self.burst.paid_at,
            Room::Open(_) if self.penalty.cap.is_some_and(|cap| in_flight + mss > cap) => {
                // No other event may end the penalty, so a timer is needed.
                self.paced_until = self.penalty.until;
            }
            Room::Open(_) => return true,
        }
        false
    }

    pub(crate) fn snapshot(&self, now: Instant) -> SubflowSnapshot {
        SubflowSnapshot {
            id: self.id,
            addresses: self.addresses,
            gateway: self.gateway,
            state: self.endpoint.state(),
            backup: self.is_backup(),
            in_loss: self.in_loss(),
            sender: self.endpoint.snapshot(now),
            stats: self.endpoint.stats(),
            received_bytes: self.input.consumed,
        }
    }
}
