//! A subflow: a TCP endpoint with its MPTCP state.

use std::collections::VecDeque;
use std::net::IpAddr;

use gargalo_tcp::{Endpoint, Room, State};
use gargalo_units::{Duration, Instant};
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

/// The limit of a penalised subflow, which blocked the window for others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Penalty {
    /// Maximum bytes in flight; `None`: no penalty.
    pub(crate) cap: Option<u64>,
    /// No change before this.
    until: Instant,
    /// Recent penalties: the more, the slower the cap rises.
    strikes: u32,
}

const MOST_STRIKES: u32 = 5;

impl Penalty {
    /// Halves the cap of a subflow that filled the window, at most once per round trip; less than two segments
    /// count as none. Returns whether it changed.
    pub(crate) fn halve(&mut self, now: Instant, in_flight: u64, mss: u64, rtt: Duration) -> bool {
        // A pending rise does not delay a further reduction.
        let since = self.until - rtt.saturating_mul((1 << self.strikes) - 1);
        if now < since {
            return false;
        }
        let half = self.cap.unwrap_or(u64::MAX).min(in_flight) / 2;
        self.cap = Some(if half >= 2 * mss { half } else { 0 });
        self.strikes = (self.strikes + 1).min(MOST_STRIKES);
        self.until = now + rtt.saturating_mul(1 << self.strikes);
        true
    }

    /// Raises the cap by a sixteenth and one segment after a time without a new penalty: at first one round trip,
    /// after repeated penalties up to 32.
    #[inline]
    pub(crate) fn relax(&mut self, now: Instant, cwnd: u64, mss: u64, rtt: Duration) {
        let Some(cap) = self.cap else { return };
        if now < self.until {
            return;
        }
        let cap = cap + cap / 16 + mss;
        self.cap = (cap < cwnd).then_some(cap);
        if self.cap.is_none() {
            self.strikes = self.strikes.saturating_sub(1);
        }
        self.until = now + rtt.saturating_mul(1 << self.strikes.saturating_sub(1));
    }
}

/// Limits the burst of a subflow after it had to wait for others: its whole window has room then, and sent at once
/// it would overflow a queue. Data clocked by acknowledgements is never delayed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Burst {
    /// When everything sent so far has been paid for.
    paid_at: Instant,
    /// Nanoseconds per byte; 0 while the round-trip time is unknown.
    price: f64,
    /// The allowed burst, in nanoseconds.
    credit: Duration,
}

/// Burst in segments; or an eighth of the window, if that is larger.
const LEAST_BURST: u64 = 16;

impl Burst {
    /// Sets the rate: two windows per round trip in slow start, 5/4 of a window afterwards.
    fn set(&mut self, srtt: Option<Duration>, cwnd: u64, starting: bool, mss: u64) {
        let Some(srtt) = srtt else { return };
        // The window may be zero by a penalty.
        let cwnd = cwnd.max(2 * mss);
        let per_round = cwnd as f64 * if starting { 2.0 } else { 1.25 };
        self.price = srtt.as_nanos() as f64 / per_round;
        let burst = (LEAST_BURST * mss).max(cwnd / 8);
        self.credit = Duration::from_nanos((burst as f64 * self.price) as u64);
    }

    /// Records that `len` bytes are sent.
    #[inline]
    pub(crate) fn on_send(&mut self, now: Instant, len: u32) {
        if self.price == 0.0 {
            return;
        }
        let time = Duration::from_nanos((f64::from(len) * self.price) as u64);
        self.paid_at = self.paid_at.max(now - self.credit) + time;
    }
}

/// A subflow.
///
/// It has more than 25 fields on purpose: most are single flags and times of the MPTCP state of one endpoint, which the
/// files of the connection read and set independently of each other.
#[derive(Debug)]
pub(crate) struct Subflow {
    pub(crate) id: u32,
    /// Its bit in sets of carriers.
    pub(crate) slot: u8,
    pub(crate) addresses: Addresses,
    pub(crate) gateway: Option<IpAddr>,
    pub(crate) origin: Origin,
    pub(crate) local_id: u8,
    pub(crate) remote_id: Option<u8>,
    pub(crate) own_nonce: u32,
    pub(crate) peer_nonce: u32,
    /// We requested it to be a backup.
    pub(crate) backup_own: bool,
    /// The peer requested it to be a backup.
    pub(crate) backup_peer: bool,
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
    pub(crate) received: Received,
    /// Bytes read from the endpoint.
    pub(crate) consumed: u64,
    /// When data was last read from it.
    pub(crate) fed_at: Instant,
    /// The last DATA_ACK sent on it.
    pub(crate) told: u64,
    /// Options that need an acknowledgement of their own.
    pub(crate) signals: VecDeque<MptcpOption>,
    /// An acknowledgement must be sent, with data or without.
    pub(crate) ack_wanted: bool,
    /// Ranges to be sent as copies.
    pub(crate) copies: VecDeque<(u64, u64)>,
    /// The options of the reset that ends it.
    pub(crate) reset_options: Option<MptcpOption>,
    pub(crate) penalty: Penalty,
    /// When it may next halve the window of another that holds it up.
    pub(crate) halves_after: Instant,
    pub(crate) burst: Burst,
    /// It has timed out, and its data was reinjected on others.
    pub(crate) stale: bool,
    /// When a path in loss is probed next; MAX: not at all.
    pub(crate) ask_at: Instant,
    /// The current and the longest interval of these probes.
    pub(crate) ask_after: Duration,
    pub(crate) ask_most: Duration,
    /// It sends tail loss probes, and its data was reinjected on others.
    pub(crate) suspected: bool,
    /// How often data that it delivered was not acknowledged at data level, and the last time.
    pub(crate) lost_deliveries: u32,
    pub(crate) lost_delivery_at: Instant,
    pub(crate) last_pushed: Instant,
    /// When its pacer is ready; MAX if the pacer is not the limit.
    pub(crate) paced_until: Instant,
    /// The next timeout of its endpoint.
    pub(crate) deadline: Instant,
    /// When to retransmit the third packet of our join.
    pub(crate) confirm_at: Instant,
    /// The peer has removed its address: the earliest time of an answer to our probe, and when the subflow ends without
    /// one; MAX: it has not.
    pub(crate) answered_from: Instant,
    pub(crate) removed_at: Instant,
}

impl Subflow {
    #[inline]
    pub(crate) fn bit(&self) -> u64 {
        1 << self.slot
    }

    /// The next of its timers, without the pacer's.
    #[inline]
    pub(crate) fn wake(&self) -> Instant {
        let own = self.confirm_at.min(self.ask_at).min(self.removed_at);
        self.deadline.min(own)
    }

    pub(crate) fn is_backup(&self) -> bool {
        self.backup_own || self.backup_peer
    }

    /// Whether new data may be assigned to it.
    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        self.confirmed
            && !self.closing
            && self.removed_at == Instant::MAX
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
            received_bytes: self.consumed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_spread_and_a_steady_stream_is_not() {
        const MS: Duration = Duration::from_millis(1);
        let at = |ms: u64| Instant::from_nanos(1_000_000 * ms);
        let mut b = Burst::default();
        b.on_send(at(1000), 1000);
        assert!(b.paid_at <= at(1000), "nothing is known yet");
        // 100 segments per 100 ms, 125 are paid for: 0.8 ms each, and 16 may leave at once.
        b.set(Some(MS * 100), 100_000, false, 1000);
        let sent = (0..100).take_while(|_| {
            let ready = b.paid_at <= at(1000);
            b.on_send(at(1000), 1000);
            ready
        });
        assert_eq!(sent.count(), 17);
        let mut b = Burst::default();
        b.set(Some(MS * 100), 100_000, false, 1000);
        for ms in 1000..2000 {
            assert!(b.paid_at <= at(ms));
            b.on_send(at(ms), 1000);
        }
        // Without a window it is not blocked for ever.
        b.set(Some(MS * 100), 0, false, 1000);
        b.on_send(at(3000), 1000);
        assert!(b.paid_at < at(3100));
    }

    #[test]
    fn penalties_halve_and_fade_more_slowly_each_time() {
        const RTT: Duration = Duration::from_millis(100);
        let at = |ms: u64| Instant::from_nanos(1_000_000 * ms);
        let mut p = Penalty::default();
        assert!(p.halve(at(0), 20_000, 1000, RTT));
        assert_eq!(p.cap, Some(10_000));
        assert!(!p.halve(at(99), 20_000, 1000, RTT), "once a round trip");
        assert!(p.halve(at(100), 5_000, 1000, RTT));
        assert_eq!(p.cap, Some(2_500));
        assert!(p.halve(at(200), 2_500, 1000, RTT));
        assert_eq!(p.cap, Some(0), "less than two segments are none");
        // After three penalties the cap rises first after 8 round trips, then every 4.
        p.relax(at(999), 50_000, 1000, RTT);
        assert_eq!(p.cap, Some(0));
        let mut t = 1000;
        let mut caps = Vec::new();
        while p.cap.is_some() {
            p.relax(at(t), 5_000, 1000, RTT);
            caps.extend(p.cap);
            p.relax(at(t + 399), 5_000, 1000, RTT);
            t += 400;
        }
        assert_eq!(caps, [1_000, 2_062, 3_190, 4_389]);
        assert!(p.halve(at(t), 20_000, 1000, RTT));
    }
}
