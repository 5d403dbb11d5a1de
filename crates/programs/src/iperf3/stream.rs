use std::net::SocketAddr;

use bytes::Bytes;
use gargalo_host::{ConnectionId, Host};
use gargalo_units::{Duration, Instant};

use super::protocol::{StreamResults, stream_id};
use super::report::{IntervalStream, Moved, SenderExtremes, SenderState};

/// A data connection of a test.
///
/// A sender counts bytes when they are first transmitted, not while they wait in its send buffer: the buffer of a
/// user-space stack is not part of the network.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: i64,
    /// The number shown: what a descriptor would be.
    pub(super) socket: u32,
    pub(super) connection: ConnectionId,
    pub(super) is_sender: bool,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    is_open: bool,
    /// Bytes written since the beginning.
    written: u64,
    /// Bytes sent or received since the beginning.
    total: u64,
    /// Of these, bytes in the omitted period.
    omitted: u64,
    /// `total` at the end of the last interval.
    mark: u64,
    marked_at: Instant,
    retransmitted: u64,
    retransmitted_mark: u64,
    retransmitted_omitted: u64,
    latest: SenderState,
    extremes: SenderExtremes,
    rtt_sum: u64,
    rtt_count: u64,
}

impl Stream {
    /// Creates the stream opened as `index`th, from 0; servers and clients number them differently.
    pub(super) fn new(
        index: usize,
        socket: u32,
        connection: ConnectionId,
        is_sender: bool,
        addresses: (SocketAddr, SocketAddr),
    ) -> Self {
        Self {
            id: stream_id(index),
            socket,
            connection,
            is_sender,
            local: addresses.0,
            remote: addresses.1,
            is_open: true,
            written: 0,
            total: 0,
            omitted: 0,
            mark: 0,
            marked_at: Instant::ZERO,
            retransmitted: 0,
            retransmitted_mark: 0,
            retransmitted_omitted: 0,
            latest: SenderState::default(),
            extremes: SenderExtremes::default(),
            rtt_sum: 0,
            rtt_count: 0,
        }
    }

    /// Number of bytes outside the omitted period.
    pub(super) fn bytes(&self) -> u64 {
        self.total - self.omitted
    }

    /// Bytes written that are counted or will be.
    pub(super) fn written(&self) -> u64 {
        self.written - self.omitted.min(self.written)
    }

    /// Bytes written since the beginning.
    pub(super) fn all_written(&self) -> u64 {
        self.written
    }

    /// Retransmitted segments outside the omitted period.
    pub(super) fn retransmits(&self) -> u64 {
        self.retransmitted - self.retransmitted_omitted
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Records that the connection is closed.
    pub(super) fn on_closed(&mut self) {
        self.is_open = false;
    }

    /// Whether everything written was acknowledged.
    pub(super) fn is_acknowledged(&self, host: &Host) -> bool {
        host.endpoint(self.connection)
            .is_none_or(|e| e.unacknowledged() == 0)
    }

    /// Starts the first reporting interval at `now`.
    pub(super) fn begin(&mut self, now: Instant) {
        self.marked_at = now;
    }

    /// Ends the omitted period: earlier bytes do not count.
    pub(super) fn omit(&mut self, host: &Host, now: Instant) {
        self.refresh(host, now);
        self.omitted = self.total;
        self.mark = self.total;
        self.marked_at = now;
        self.retransmitted_omitted = self.retransmitted;
        self.retransmitted_mark = self.retransmitted;
    }

    /// Fills the send buffer with whole blocks, up to `most` bytes; returns the number of bytes.
    pub(super) fn fill(&mut self, host: &mut Host, block: &Bytes, most: u64) -> u64 {
        let mut left = most;
        // One block at a time, so that segments seldom span two writes.
        while left > 0 && self.is_open {
            let want = left.min(block.len() as u64);
            let room = host.write_room(self.connection);
            if room < want
                && host
                    .endpoint(self.connection)
                    .is_some_and(|e| e.unsent() > 0)
            {
                break;
            }
            let n = host.write(self.connection, block.slice(..want as usize)) as u64;
            self.written += n;
            left -= n;
            if n < want {
                break;
            }
        }
        most - left
    }

    /// Reads what arrived; returns the number of bytes.
    pub(super) fn drain(&mut self, host: &mut Host) -> u64 {
        let mut n = 0;
        while let Some(bytes) = host.read(self.connection, u64::MAX) {
            n += bytes.len() as u64;
        }
        n
    }

    /// Adds `n` received bytes to the count.
    pub(super) fn on_received(&mut self, n: u64) {
        self.total += n;
    }

    /// Reads the state of the connection.
    pub(super) fn refresh(&mut self, host: &Host, now: Instant) {
        let Some(endpoint) = host.endpoint(self.connection) else {
            return;
        };
        if !self.is_sender {
            return;
        }
        self.total = self
            .total
            .max(self.written.saturating_sub(endpoint.unsent()));
        let counters = endpoint.stats().sender;
        self.retransmitted = counters.retransmitted_packets.get().unwrap_or(0);
        let s = endpoint.snapshot(now);
        let micros = |d: Option<Duration>| d.map_or(0, Duration::as_micros);
        let headers = if self.remote.is_ipv4() { 40 } else { 60 };
        self.latest = SenderState {
            retransmits: self.retransmitted - self.retransmitted_mark,
            snd_cwnd: s.cwnd.get(),
            snd_wnd: endpoint.peer_window(),
            rtt: micros(s.srtt),
            rttvar: micros(s.rttvar),
            pmtu: u32::from(endpoint.config().announced_mss()) + headers,
        };
    }

    /// Ends an interval; times are relative to `started`.
    pub(super) fn interval(
        &mut self,
        host: &Host,
        now: Instant,
        started: Instant,
        omitted: bool,
    ) -> IntervalStream {
        self.refresh(host, now);
        let state = self.is_sender.then_some(self.latest);
        if self.is_sender {
            self.note_extremes();
        }
        let row = IntervalStream {
            socket: self.socket,
            moved: Moved::new(
                self.marked_at.saturating_since(started).as_secs_f64(),
                now.saturating_since(started).as_secs_f64(),
                self.total - self.mark,
            ),
            state,
            omitted,
            sender: self.is_sender,
        };
        self.mark = self.total;
        self.marked_at = now;
        self.retransmitted_mark = self.retransmitted;
        row
    }

    /// Whether the current interval is worth reporting: a tenth of `whole`, or a byte.
    pub(super) fn is_worth_telling(&self, now: Instant, whole: Duration) -> bool {
        let lasted = now.saturating_since(self.marked_at);
        lasted.saturating_mul(10) >= whole || self.total > self.mark
    }

    fn note_extremes(&mut self) {
        let (e, s) = (&mut self.extremes, &self.latest);
        e.max_snd_cwnd = e.max_snd_cwnd.max(s.snd_cwnd);
        e.max_snd_wnd = e.max_snd_wnd.max(s.snd_wnd);
        e.max_rtt = e.max_rtt.max(s.rtt);
        if e.min_rtt == 0 || s.rtt < e.min_rtt {
            e.min_rtt = s.rtt;
        }
        self.rtt_sum += s.rtt;
        self.rtt_count += 1;
        e.mean_rtt = self.rtt_sum / self.rtt_count;
    }

    /// The extremes of the whole test.
    pub(super) fn extremes(&self) -> SenderExtremes {
        SenderExtremes {
            retransmits: self.retransmits() as i64,
            ..self.extremes
        }
    }

    /// The results that are sent to the peer.
    pub(super) fn results(&self, seconds: f64) -> StreamResults {
        StreamResults {
            id: self.id,
            bytes: self.bytes(),
            retransmits: if self.is_sender {
                self.retransmits() as i64
            } else {
                -1
            },
            end_time: seconds,
            ..StreamResults::default()
        }
    }
}
