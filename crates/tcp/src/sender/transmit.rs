//! Selection of the next segment to send.

use gargalo_cc::{Idle, SendState, Sent};
use gargalo_units::{Bytes, Instant, Rate};

use crate::config::{Nagle, Pacing, Recovery};
use crate::endpoint::Room;

use super::chrono::Work;
use super::hold::NO_CUT;
use super::{Frto, Notice, Phase, SendOrder, Sender};

/// Largest burst of segmentation offload.
const LARGEST_BURST: Bytes = Bytes::new(65_536);

/// New data for one segment.
#[derive(Clone, Copy)]
struct Piece {
    /// Payload, in bytes.
    len: u32,
    /// It ends the stream.
    fin: bool,
}

impl Piece {
    fn data(len: u32) -> Self {
        Self { len, fin: false }
    }
}

impl Sender {
    /// The next segment that congestion window, peer's window and pacing allow; call until `None`.
    #[inline]
    pub(crate) fn poll(&mut self, now: Instant) -> Option<SendOrder> {
        if self.is_idle() {
            self.timers.pacing = Instant::MAX;
            self.note_limit(false, 0);
            self.chrono.set(now, Work::None);
            return None;
        }
        let order = self.poll_next(now);
        if order.is_none() {
            self.note_work(now);
        }
        order
    }

    /// Whether there is nothing to send, to send again or to wait for: the receiving side of a transfer.
    #[inline]
    fn is_idle(&self) -> bool {
        self.board.is_empty() && !self.has_unsent() && !self.has_due()
    }

    fn poll_next(&mut self, now: Instant) -> Option<SendOrder> {
        self.timers.pacing = Instant::MAX;
        if self.has_due()
            && let Some(order) = self.poll_due(now)
        {
            return Some(order);
        }
        let pipe = self.pipe();
        let window = self.window();
        let has_lost = self.board.has_lost();
        let plenty = self.unsent() >= 2 * u64::from(self.mss);
        if !plenty && !has_lost && (!self.has_unsent() || self.holds_rest()) {
            return self.poll_rest(now, pipe, window);
        }
        // A full segment must fit; with nothing in flight the window never blocks.
        let mss = u64::from(self.mss);
        let probe = match &self.search {
            None => None,
            Some(_) => self.mtu_probe(now),
        };
        if pipe + probe.map_or(mss, u64::from) > window && pipe > 0 {
            self.note_limit(true, pipe);
            return None;
        }
        if !self.pacer.can_send(now) {
            self.timers.pacing = self.pacer.next_release(now);
            self.note_limit(false, pipe);
            return None;
        }
        // A full segment that another follows, here or in the layer above, needs none of the rules of the last ones.
        let follows =
            plenty || (self.unsent() >= mss && self.written.more_follows && !self.written.finished);
        let simple = follows && !has_lost && probe.is_none() && self.episode.frto != Frto::SendNew;
        let room = self.peer.end.min(self.hold.cut()).saturating_sub(self.nxt);
        if simple && room >= mss && !self.withholds_new() {
            return Some(self.send_piece(now, pipe, Piece::data(self.mss)));
        }
        self.poll_special(now, pipe, window, probe)
    }

    /// Nothing is lost and nothing new may be sent.
    #[inline(never)]
    fn poll_rest(&mut self, now: Instant, pipe: u64, window: u64) -> Option<SendOrder> {
        if let Some(order) = self.rescue(now) {
            return Some(order);
        }
        // An upper layer writes no more than there is room for.
        let limited = self.written.more_follows && pipe + u64::from(self.mss) > window && pipe > 0;
        if pipe < window && !self.written.more_follows && !self.board.is_empty() {
            self.sampler.set_app_limited(Bytes::new(pipe));
        }
        self.note_limit(limited, pipe);
        None
    }

    /// There is room for a retransmission, or for new data that is not simply the next full segment.
    #[inline(never)]
    fn poll_special(
        &mut self,
        now: Instant,
        pipe: u64,
        window: u64,
        probe: Option<u32>,
    ) -> Option<SendOrder> {
        if self.board.has_lost()
            && self.episode.frto != Frto::SendNew
            && let Some(order) = self.retransmit(now)
        {
            return Some(order);
        }
        let order = self.send_new(now, pipe, probe);
        if self.episode.frto == Frto::SendNew {
            if order.is_some() {
                // At most two segments, as the window after the first acknowledgement allows.
                if pipe + u64::from(self.mss) > window {
                    self.episode.frto = Frto::Second;
                }
                return order;
            }
            self.episode.frto = Frto::Off;
            return self.retransmit(now);
        }
        if order.is_none() {
            self.note_limit(false, pipe);
            self.arm_persist(now);
            return self.rescue(now);
        }
        order
    }

    /// Whether a probe or a retransmission comes before all else.
    #[inline]
    fn has_due(&self) -> bool {
        self.peer.probe_due | self.tlp.due | self.path_probe.due | self.episode.resend_due
    }

    #[cold]
    #[inline(never)]
    fn poll_due(&mut self, now: Instant) -> Option<SendOrder> {
        if std::mem::take(&mut self.peer.probe_due)
            && let Some(order) = self.window_probe(now)
        {
            return Some(order);
        }
        if std::mem::take(&mut self.tlp.due)
            && let Some(order) = self.tail_probe(now)
        {
            return Some(order);
        }
        if std::mem::take(&mut self.path_probe.due)
            && let Some(order) = self.path_probe(now)
        {
            return Some(order);
        }
        if std::mem::take(&mut self.episode.resend_due) {
            return self.retransmit(now);
        }
        None
    }

    /// The rescue retransmission (RFC 6675 §4, NextSeg (4)): in recovery, when there is room, nothing is known to be
    /// lost, and no new data can be sent, the highest segment is sent again, once. Its acknowledgement shows what is
    /// missing below it.
    fn rescue(&mut self, now: Instant) -> Option<SendOrder> {
        let asked = self.config.rescue_retransmission && self.recovery == Recovery::Sack;
        if !asked || self.episode.rescued || self.episode.phase != Phase::Recovery {
            return None;
        }
        let fits = self.pipe() + u64::from(self.mss) <= self.window();
        if !fits {
            return None;
        }
        if self.board.may_be_reported() {
            return None;
        }
        let (index, sent) = self.board.last_unsacked()?;
        self.episode.rescued = true;
        Some(self.resend(now, index, sent))
    }

    /// The upper layer has no data for this path now, though more may follow.
    pub(crate) fn leave_unused(&mut self) {
        let pipe = self.pipe();
        if pipe + u64::from(self.mss) <= self.window() && !self.board.is_empty() {
            self.sampler.set_app_limited(Bytes::new(pipe));
        }
    }

    /// Whether new data could be sent at `now`, by the rules of [`Sender::poll`].
    pub(crate) fn room(&self, now: Instant) -> Room {
        let (pipe, window, mss) = (self.pipe(), self.window(), u64::from(self.mss));
        let held = self.board.has_lost() || self.withholds_new();
        if held || (pipe + mss > window && pipe > 0) {
            return Room::Full;
        }
        if !self.pacer.can_send(now) {
            return Room::Paced(self.pacer.next_release(now));
        }
        Room::Open(window.saturating_sub(pipe).max(mss))
    }

    /// Records for one round trip whether the congestion window was the limit.
    #[inline]
    fn note_limit(&mut self, limited: bool, pipe: u64) {
        let l = &mut self.limited;
        if self.una >= l.until || limited || (!l.now && pipe > l.most_in_flight) {
            l.until = self.nxt;
            l.now = limited;
            l.most_in_flight = pipe;
        }
    }

    /// Whether less than a segment is unsent and waits for more data in the send buffer.
    #[inline]
    fn holds_rest(&self) -> bool {
        self.written.buffer_full
            && self.unsent() < u64::from(self.mss)
            && !self.board.is_empty()
            && self.hold.cut() == NO_CUT
    }

    /// The next new segment after `nxt`.
    #[inline]
    fn next_piece(&self, now: Instant) -> Option<Piece> {
        if !self.has_unsent() || self.holds_rest() {
            return None;
        }
        let unsent = self.written.end.saturating_sub(self.nxt);
        let usable = self.peer.end.saturating_sub(self.nxt);
        let record = self.hold.cut().saturating_sub(self.nxt);
        let len = unsent.min(usable).min(u64::from(self.mss)).min(record);
        let ends = self.written.finished && self.nxt + len == self.written.end;
        if len == 0 {
            return (ends && usable > 0).then_some(Piece { len: 0, fin: true });
        }
        let mut fin = ends && usable > len;
        if ends && !fin && self.config.fin_in_last_segment {
            // The last segment waits for the window probe, unless it leaves right behind another.
            if self.board.is_empty() || self.last_sent < now {
                return None;
            }
            fin = true;
        }
        let full = len == u64::from(self.mss);
        let last = len == unsent;
        // Nothing that is written later joins it.
        let closed = len == record && !last;
        // RFC 9293 §3.8.6.2.1: a full segment, all unsent data, or half of the largest window.
        let worthwhile = full || last || closed || 2 * len >= self.peer.largest;
        let waits = match self.hold.nagle {
            Nagle::Off => false,
            Nagle::Standard => !self.board.is_empty(),
            Nagle::Minshall => self.hold.small_end > self.una,
        };
        let held = !closed && self.hold.holds(waits);
        (worthwhile && (full || fin || !held)).then_some(Piece {
            len: len as u32,
            fin,
        })
    }

    /// Whether limited transmit is off and would send now (RFC 3042).
    #[inline]
    fn withholds_new(&self) -> bool {
        !self.config.limited_transmit
            && self.episode.phase == Phase::Open
            && (self.duplicates.bytes > 0 || self.board.sacked() > 0)
    }

    fn send_new(&mut self, now: Instant, pipe: u64, probe: Option<u32>) -> Option<SendOrder> {
        if self.withholds_new() {
            return None;
        }
        let piece = match probe {
            Some(len) => Piece::data(len),
            None => self.next_piece(now)?,
        };
        let len = piece.len;
        let rest = self.written.end - (self.nxt + u64::from(len));
        let last = rest == 0 || (self.written.buffer_full && rest < u64::from(self.mss));
        if last && !self.written.more_follows && pipe + u64::from(len) < self.window() {
            // The application has no more data: later samples are application-limited.
            self.sampler.set_app_limited(Bytes::new(pipe));
        }
        let order = self.send_piece(now, pipe, piece);
        if probe.is_some() {
            self.on_mtu_probe_sent(order.offset, len);
        }
        if len < self.mss {
            self.hold.small_end = self.nxt;
        }
        Some(order)
    }

    /// Sends new data.
    #[inline(always)]
    fn send_piece(&mut self, now: Instant, pipe: u64, piece: Piece) -> SendOrder {
        let Piece { len, fin } = piece;
        let offset = self.nxt;
        let span = len + u32::from(fin);
        let state = self.on_send(now, span, pipe, false);
        self.board.push(offset, span, fin, state);
        self.nxt += u64::from(span);
        let ends = self.nxt >= self.hold.cut();
        if ends {
            self.hold.pass(self.nxt);
        }
        self.arm_after_send(now, true);
        let cwr = std::mem::take(&mut self.cwr.due);
        if cwr {
            self.cwr.end = self.nxt;
        }
        SendOrder {
            offset,
            len,
            fin,
            psh: ends
                || (self.nxt >= self.written.end
                    && !self.written.more_follows
                    && self.hold.pushes()),
            cwr,
            ..SendOrder::default()
        }
    }

    fn retransmit(&mut self, now: Instant) -> Option<SendOrder> {
        let (index, sent) = self.board.next_lost()?;
        Some(self.resend(now, index, sent))
    }

    fn resend(&mut self, now: Instant, index: u64, sent: super::scoreboard::Sent) -> SendOrder {
        let pipe = self.pipe();
        let state = self.on_send_again(now, sent.len, pipe, true);
        self.board.resent(index, state);
        self.undo.on_resent(now);
        self.counters.retransmitted_packets += 1;
        self.counts.retransmitted_bytes += u64::from(sent.len - u32::from(sent.fin));
        self.arm_after_send(now, false);
        if sent.start == self.una {
            // The timer is for this transmission, not for the one that was lost.
            self.timers.rto = self.next_rto(now);
        }
        SendOrder {
            offset: sent.start,
            len: sent.len - u32::from(sent.fin),
            fin: sent.fin,
            psh: sent.end() >= self.written.end,
            retransmission: true,
            ..SendOrder::default()
        }
    }

    /// [`Sender::on_send`] of what is seldom sent.
    #[inline(never)]
    fn on_send_again(&mut self, now: Instant, len: u32, pipe: u64, again: bool) -> SendState {
        self.on_send(now, len, pipe, again)
    }

    /// Updates all counters and states when `len` offsets are sent.
    #[inline(always)]
    fn on_send(&mut self, now: Instant, len: u32, pipe: u64, retransmission: bool) -> SendState {
        let bytes = Bytes::new(u64::from(len));
        let in_flight = Bytes::new(pipe);
        let idle = (pipe == 0 && self.board.is_empty()).then(|| Idle {
            duration: now - self.last_sent,
            rto: self.rtt.rto(),
            restart_window: self.config.slow_start_after_idle.then(|| {
                let first = self.config.first_window_with(u64::from(self.mss));
                first.min(self.controller.cwnd())
            }),
            was_app_limited: self.was_app_limited,
        });
        let state = self.sampler.on_send(now, bytes, in_flight);
        let app_limited = self.sampler.is_app_limited();
        if self.tells_sends || idle.is_some() {
            let event = Sent {
                now,
                bytes,
                in_flight,
                app_limited,
                retransmission,
                idle,
            };
            let (controller, path) = self.parts();
            controller.on_send(&event, &path);
        }
        if let Some(prr) = &mut self.episode.prr {
            prr.on_send(u64::from(len));
        }
        let rate = self.pacing_rate();
        if let Some(rate) = rate {
            self.pacer.set_quantum(self.burst(rate));
        }
        self.counters.sent_packets += 1;
        let rate = rate.filter(|_| self.counters.sent_packets >= self.config.unpaced_segments);
        self.pacer.on_send(now, bytes, rate);
        self.last_sent = now;
        self.was_app_limited = app_limited;
        self.counters.sent_bytes += u64::from(len);
        state
    }

    /// How much leaves at once when the sender paces.
    fn burst(&self, rate: Rate) -> Bytes {
        if let Some(burst) = self.controller.send_quantum() {
            return burst;
        }
        let two = Bytes::new(2 * u64::from(self.mss));
        match self.config.pacing {
            Pacing::Window(p) => (rate * p.burst).min(LARGEST_BURST).max(two),
            Pacing::Off | Pacing::Controller => two,
        }
    }

    /// A tail loss probe: new data if the peer's window allows, else the last segment again (RFC
    /// 8985 §7.3).
    fn tail_probe(&mut self, now: Instant) -> Option<SendOrder> {
        let pipe = self.pipe();
        let (order, retransmission) = match self.next_piece(now) {
            Some(_) => (self.send_new(now, pipe, None)?, false),
            None => {
                let (index, sent) = self.board.last_unsacked()?;
                (self.resend(now, index, sent), true)
            }
        };
        self.tlp.in_flight = Some(super::Probe {
            end: self.nxt,
            retransmission,
        });
        self.timers.probe = Instant::MAX;
        self.timers.rto = now + self.rtt.rto();
        self.notice(Notice::Probe);
        Some(order)
    }

    /// The retransmission that [`Sender::probe_path`] requested.
    fn path_probe(&mut self, now: Instant) -> Option<SendOrder> {
        let (index, sent) = self.board.first()?;
        let rto = self.timers.rto;
        let order = self.resend(now, index, sent);
        self.timers.rto = rto;
        self.path_probe.sent = true;
        Some(order)
    }

    /// A zero-window probe: as much data as fits into the window, or none.
    fn window_probe(&mut self, now: Instant) -> Option<SendOrder> {
        if !self.board.is_empty() || !self.has_unsent() {
            return None;
        }
        self.notice(Notice::WindowProbe);
        let usable = self
            .peer
            .end
            .saturating_sub(self.nxt)
            .min(u64::from(self.mss));
        let record = self.hold.cut().saturating_sub(self.nxt);
        let len = usable
            .min(self.written.end.saturating_sub(self.nxt))
            .min(record) as u32;
        if len > 0 {
            let offset = self.nxt;
            let state = self.on_send_again(now, len, 0, false);
            self.board.push(offset, len, false, state);
            self.nxt += u64::from(len);
            self.hold.small_end = self.nxt;
            self.hold.pass(self.nxt);
            self.arm_after_send(now, true);
            return Some(SendOrder {
                offset,
                len,
                // Data that was held back is what the peer's application waits for (Linux).
                psh: self.hold.is_held_alone(),
                ..SendOrder::default()
            });
        }
        Some(SendOrder {
            offset: self.una,
            probe: true,
            ..SendOrder::default()
        })
    }
}
