//! Processing of received segments (RFC 9293 §3.10.7.4).

use gargalo_units::{Ecn, Instant};
use gargalo_wire::mptcp::MptcpOption;
use gargalo_wire::tcp::{Flags, Payload, Segment};

use super::{Endpoint, Urgent};
use crate::ecn::Changed;
use crate::receiver::Piece;
use crate::sender::{AckFacts, AckOutcome};
use crate::{Error, Event, State};

/// The validity of an acknowledgement field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ack {
    /// Between SND.UNA and SND.NXT.
    Current(u64),
    /// Older than SND.UNA: overtaken by a later acknowledgement.
    Old(u64),
    /// Acknowledges data that was never sent, or is too old to be valid.
    Absurd,
}

impl Endpoint {
    /// Processes a received segment; `ecn` is the ECN field of its packet.
    #[inline]
    pub fn handle(&mut self, now: Instant, mut segment: Segment, ecn: Ecn) {
        self.handle_in_place(now, &mut segment, ecn);
    }

    /// The same with a segment that stays where it is; what is left of it means nothing.
    pub fn handle_in_place(&mut self, now: Instant, segment: &mut Segment, ecn: Ecn) {
        self.counts.segments_received += 1;
        self.counts.data_received += u64::from(!segment.payload.is_empty());
        if matches!(self.state, State::Closed | State::Listen | State::SynSent) {
            self.handle_opening(now, std::mem::take(segment), ecn);
        } else {
            self.on_synchronised(now, segment, ecn);
        }
    }

    #[inline(never)]
    fn handle_opening(&mut self, now: Instant, segment: Segment, ecn: Ecn) {
        match self.state {
            State::Listen => self.on_listen(now, segment),
            State::SynSent => self.on_syn_sent(now, segment, ecn),
            _ => self.refuse(&segment),
        }
    }

    #[inline]
    fn on_synchronised(&mut self, now: Instant, segment: &mut Segment, ecn: Ecn) {
        let flags = segment.flags;
        let offset = self.receiver.next() as i64 + i64::from(segment.seq.distance(self.ack_seq()));
        if self.timestamps.is_enabled() && !self.is_timely(now, segment, offset) {
            return;
        }
        if !self.receiver.accepts(offset, segment.sequence_len()) {
            self.on_unacceptable(now, std::mem::take(segment), offset, ecn);
            return;
        }
        let kind = flags & (Flags::RST | Flags::SYN | Flags::ACK);
        if (kind != Flags::ACK || self.state == State::SynReceived)
            && !self.admits(now, segment, offset, ecn)
        {
            return;
        }
        if !self.on_ack(now, segment, offset) {
            return;
        }
        // Only after the acknowledgement was validated: otherwise an attacker who guesses a sequence number alone
        // could advance the timestamp so far that all valid segments would be old.
        if let Some(t) = segment.options.timestamps {
            self.timestamps.on_segment(now, t.value, offset);
            if self.receiver.is_autotuned()
                && !segment.payload.is_empty()
                && let Some(rtt) = self.timestamps.rtt(now, t.echo)
            {
                self.receiver.on_echo(t.echo, rtt);
            }
        }
        self.timers.heard = now;
        self.unreachable = false;
        let payload = std::mem::take(&mut segment.payload);
        if !payload.is_empty() || flags.contains(Flags::FIN) {
            self.on_text(now, offset, payload, flags, ecn);
        }
    }

    /// Whether a segment in the window that opens or resets, or that arrives before the connection is open, is
    /// processed further.
    #[inline(never)]
    fn admits(&mut self, now: Instant, segment: &Segment, offset: i64, ecn: Ecn) -> bool {
        if segment.flags.intersects(Flags::RST | Flags::SYN) {
            if segment.flags.contains(Flags::RST) {
                self.on_reset(now, offset);
            } else {
                self.on_late_syn(now, segment, offset, ecn);
            }
            return false;
        }
        // RFC 9293 §3.10.7.4, fifth: a segment without ACK is dropped.
        segment.flags.contains(Flags::ACK)
            && (self.state != State::SynReceived || self.on_handshake_ack(now, segment))
    }

    /// Protection against wrapped sequence numbers (RFC 7323 §5). Resets are exempt: they are validated by their
    /// sequence number.
    #[inline]
    fn is_timely(&mut self, now: Instant, segment: &Segment, offset: i64) -> bool {
        match segment.options.timestamps {
            Some(t) if self.timestamps.is_old(now, t.value) => {
                if segment.flags.contains(Flags::RST) {
                    return true;
                }
                // A delayed copy is answered like any other duplicate.
                let len = segment.payload.len();
                if len > 0 && offset + i64::from(len) <= self.receiver.next() as i64 {
                    let payload = Payload::synthetic(len);
                    self.on_duplicate(now, offset, payload);
                } else {
                    self.challenge(now);
                }
                false
            }
            Some(_) => true,
            // RFC 7323 §3.2: once timestamps are negotiated, segments without one are dropped.
            None => segment.flags.contains(Flags::RST),
        }
    }

    /// A segment outside the window: answered by an acknowledgement with the expected sequence number.
    #[inline(never)]
    fn on_unacceptable(&mut self, now: Instant, segment: Segment, offset: i64, ecn: Ecn) {
        let flags = segment.flags;
        if flags.contains(Flags::RST) {
            return;
        }
        if flags.contains(Flags::SYN) {
            self.on_late_syn(now, &segment, offset, ecn);
            return;
        }
        self.timers.heard = now;
        if self.state == State::TimeWait && flags.contains(Flags::FIN) {
            // The peer did not get our last acknowledgement (RFC 9293 §3.10.7.4, eighth).
            self.timers.arm_time_wait(now + self.config.time_wait);
        }
        if segment.payload.is_empty() && !flags.contains(Flags::FIN) {
            self.challenge(now);
            return;
        }
        let next = self.receiver.next() as i64;
        if offset == next && flags.contains(Flags::ACK) {
            // A zero-window probe: its acknowledgement field is processed (RFC 9293 §3.10.7.4, first).
            if self.state == State::SynReceived && !self.on_handshake_ack(now, &segment) {
                return;
            }
            self.on_ack(now, &segment, offset);
        }
        if offset < next && !segment.payload.is_empty() {
            self.on_duplicate(now, offset, segment.payload);
        }
        self.receiver.demand_ack();
    }

    /// The segment has only data received before: the acknowledgement reports it (RFC 2883).
    #[inline(never)]
    fn on_duplicate(&mut self, now: Instant, offset: i64, payload: Payload) {
        self.counts.duplicates += 1;
        let piece = Piece {
            offset,
            payload,
            fin: false,
            push: false,
        };
        self.receiver.on_segment(now, piece);
    }

    /// A SYN after the first one. In the window or not, it is answered by a challenge acknowledgement (RFC 5961
    /// §4), unless the handshake is not complete: then the peer did not receive our SYN-ACK or, in a simultaneous
    /// open, acknowledges our SYN with its own.
    #[inline(never)]
    fn on_late_syn(&mut self, now: Instant, segment: &Segment, offset: i64, ecn: Ecn) {
        if self.state != State::SynReceived || offset != -1 {
            self.timers.heard = now;
            self.challenge(now);
        } else if segment.flags.contains(Flags::ACK) {
            if self.on_handshake_ack(now, segment) {
                self.receiver.demand_ack();
                let (payload, flags) = (&segment.payload, segment.flags);
                if !payload.is_empty() || flags.contains(Flags::FIN) {
                    self.on_text(now, 0, payload.clone(), flags, ecn);
                }
            }
        } else if let Some(h) = &mut self.handshake {
            h.due = true;
        }
    }

    /// An acceptable reset (RFC 5961 §3.2).
    #[inline(never)]
    fn on_reset(&mut self, now: Instant, offset: i64) {
        if offset != self.receiver.next() as i64 {
            self.challenge(now);
            return;
        }
        match self.state {
            State::SynReceived if !self.is_active && self.sender.is_none() => self.listen_again(),
            State::SynReceived if self.is_active => self.end(Some(Error::Refused)),
            // RFC 9293 §3.10.7.4, second: both have closed, and a peer without connection state answers the
            // retransmitted FIN with a reset. It is an error only if data was still outstanding.
            State::Closing | State::LastAck | State::TimeWait if self.writes.buffer.is_empty() => {
                self.end(None);
            }
            _ => self.end(Some(Error::Reset)),
        }
    }

    /// In SYN-RECEIVED: whether our SYN is acknowledged. Otherwise the segment belongs to another connection (RFC
    /// 9293 §3.10.7.4, fifth).
    #[inline(never)]
    fn on_handshake_ack(&mut self, now: Instant, segment: &Segment) -> bool {
        let acked = segment.ack.distance(self.seq.send_base);
        // Data that was sent with the SYN of a simultaneous open may be acknowledged too.
        let early = self.handshake.as_ref().map_or(0, |h| h.early_data);
        let most = self.seq.sent.max(u64::from(early));
        if acked < 0 || u64::from(acked.unsigned_abs()) > most {
            self.refuse(segment);
            return false;
        }
        if self.sender.is_none() {
            self.skip_early(acked.unsigned_abs());
        }
        self.become_state(State::Established);
        self.establish(now);
        true
    }

    /// Processes the acknowledgement; `false` if the segment must be dropped.
    #[inline(always)]
    fn on_ack(&mut self, now: Instant, segment: &Segment, offset: i64) -> bool {
        let distance = segment.ack.distance(self.seq.of(self.seq.una));
        let ack = match self.judge(distance) {
            Ack::Current(ack) => ack,
            Ack::Old(ack) => {
                self.on_old_ack(now, segment, ack);
                return true;
            }
            Ack::Absurd => {
                // RFC 5961 §5.2.
                self.challenge(now);
                return false;
            }
        };
        let changed = self.peer.update(segment.window, offset, ack);
        let ece = self.ecn_capable && segment.flags.contains(Flags::ECE);
        let silent = !changed && segment.options.sack.is_empty();
        if ack == self.seq.sent && ack == self.seq.una && silent && self.writes.buffer.is_empty() {
            // Nothing is outstanding: the receiving side of a transfer. (A D-SACK is still processed: it may report
            // that a tail loss probe was not needed.)
            return true;
        }
        let mut pure = segment.payload.is_empty() && !segment.flags.contains(Flags::FIN);
        // A shared window changes because of other subflows, and segments with MPTCP options repeat
        // acknowledgements; neither is a sign of loss (RFC 8684 §3.3.5).
        pure &= if self.ignores_window {
            !has_signal(segment)
        } else {
            !changed
        };
        self.pass_to_sender(now, segment, ValidAck { ack, ece, pure });
        true
    }

    #[inline]
    fn judge(&self, distance: i32) -> Ack {
        if distance >= 0 {
            let ack = self.seq.una + u64::from(distance.unsigned_abs());
            return if ack <= self.seq.sent {
                Ack::Current(ack)
            } else {
                Ack::Absurd
            };
        }
        if u64::from(distance.unsigned_abs()) > self.peer.largest() {
            Ack::Absurd
        } else {
            Ack::Old(
                self.seq
                    .una
                    .saturating_sub(u64::from(distance.unsigned_abs())),
            )
        }
    }

    /// An acknowledgement that was overtaken may report blocks that the later one had no room for (RFC 6675 §5: any
    /// acknowledgement with SACK blocks updates the scoreboard). Nothing else in it is news.
    #[inline(never)]
    fn on_old_ack(&mut self, now: Instant, segment: &Segment, ack: u64) {
        if segment.options.sack.is_empty() {
            return;
        }
        let valid = ValidAck {
            ack,
            ece: false,
            pure: false,
        };
        self.pass_to_sender(now, segment, valid);
    }

    #[inline(never)]
    fn pass_to_sender(&mut self, now: Instant, segment: &Segment, valid: ValidAck) {
        let window = self.usable_window();
        let acked = valid.ack.saturating_sub(self.seq.una);
        let Some(sender) = &mut self.sender else {
            return;
        };
        let plain = !valid.ece && segment.options.sack.is_empty() && sender.takes_plain(valid.ack);
        let outcome = if plain {
            sender.on_plain_ack(now, valid.ack, window)
        } else {
            self.pass_everything(now, segment, valid)
        };
        if outcome.rtt.is_some() {
            self.rtt_sample = outcome.rtt;
        }
        if acked > 0 {
            self.seq.una = valid.ack;
            self.writes.buffer.release(valid.ack);
            if let Some(list) = &mut self.writes.super_segments {
                list.release(valid.ack);
            }
            if self.writes.blocked && self.writes.notsent_lowat == u64::MAX {
                self.writes.blocked = false;
                self.events.push(Event::Writable);
            }
        }
        if outcome.fin_acked {
            self.on_fin_acked(now);
        }
    }

    /// Passes on everything that an acknowledgement says.
    #[inline(never)]
    fn pass_everything(&mut self, now: Instant, segment: &Segment, valid: ValidAck) -> AckOutcome {
        let ValidAck { ack, ece, pure } = valid;
        let mut blocks = [(0, 0); 4];
        let (sacks, dsack) = if segment.options.sack.is_empty() {
            (0, None)
        } else {
            self.sort_blocks(segment, ack, &mut blocks)
        };
        let echo = segment
            .options
            .timestamps
            .filter(|_| self.timestamps.is_enabled())
            .map(|t| t.echo);
        let facts = AckFacts {
            now,
            ack,
            sacks: &blocks[..sacks],
            dsack,
            window: self.usable_window(),
            echo_rtt: echo.and_then(|e| self.timestamps.rtt(now, e)),
            tsecr: echo.map(|e| self.timestamps.ticks_of(e)),
            ece,
            pure,
        };
        match &mut self.sender {
            Some(sender) => sender.on_ack(&facts),
            None => AckOutcome::default(),
        }
    }

    /// Splits the SACK option into a duplicate report (RFC 2883 §4: the first block, when it lies
    /// below the acknowledgement or inside the second block) and the rest, as offsets. Invalid blocks are left out.
    fn sort_blocks(
        &self,
        segment: &Segment,
        ack: u64,
        out: &mut [(u64, u64); 4],
    ) -> (usize, Option<(u64, u64)>) {
        let at = |seq: gargalo_units::Seq| seq.unwrap_near(self.seq.send_base, ack);
        let wire = segment.options.sack.as_slice();
        let mut n = 0;
        let mut dsack = None;
        for (i, (left, right)) in wire.iter().enumerate() {
            let (Some(left), Some(right)) = (at(*left), at(*right)) else {
                continue;
            };
            if left >= right || right > self.seq.sent {
                continue;
            }
            let inside_second = || {
                let second = wire.get(1).and_then(|(l, r)| at(*l).zip(at(*r)));
                second.is_some_and(|(l, r)| l <= left && right <= r)
            };
            if i == 0 && (right <= ack || inside_second()) {
                dsack = Some((left, right));
            } else if left >= ack && right > self.seq.una {
                out[n] = (left.max(self.seq.una), right);
                n += 1;
            }
        }
        (n, dsack)
    }

    #[inline(never)]
    fn on_fin_acked(&mut self, now: Instant) {
        match self.state {
            State::FinWait1 => self.become_state(State::FinWait2),
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.end(None),
            _ => {}
        }
    }

    /// Text and FIN of an acceptable segment.
    #[inline(always)]
    pub(super) fn on_text(
        &mut self,
        now: Instant,
        offset: i64,
        payload: Payload,
        flags: Flags,
        ecn: Ecn,
    ) {
        if !self.state.may_receive() {
            // Nothing can follow the peer's FIN (RFC 9293 §3.10.7.4, seventh): this is a retransmission.
            self.receiver.demand_ack();
            return;
        }
        if !payload.is_empty()
            && let Changed::From(former) = self.ecn.on_data(ecn, flags.contains(Flags::CWR))
        {
            self.receiver.demand_ack();
            if self.receiver.ack().is_waiting() {
                let next = self.receiver.next();
                self.urgent = Some(Urgent::Acknowledge { next, ece: former });
            }
        }
        if !payload.is_empty() {
            self.timers.data = now;
        }
        let fin = flags.contains(Flags::FIN);
        let received = self.receiver.on_segment(
            now,
            Piece {
                offset,
                payload,
                fin,
                push: flags.contains(Flags::PSH),
            },
        );
        if received.readable {
            self.events.push(Event::Readable);
        }
        if received.fin {
            self.on_fin(now);
        }
    }

    /// The peer's FIN is in order (RFC 9293 §3.10.7.4, eighth).
    #[inline(never)]
    fn on_fin(&mut self, now: Instant) {
        self.events.push(Event::PeerClosed);
        match self.state {
            State::Established => self.become_state(State::CloseWait),
            State::FinWait1 => self.become_state(State::Closing),
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    /// Sends a challenge acknowledgement, within the rate limit.
    #[inline(never)]
    fn challenge(&mut self, now: Instant) {
        if self.challenge.admit(now) {
            self.counts.challenges += 1;
            self.receiver.demand_ack();
        }
    }
}

/// Whether a segment carries an MPTCP option other than DSS.
fn has_signal(segment: &Segment) -> bool {
    let list = segment.options.mptcp.as_deref();
    list.is_some_and(|l| l.iter().any(|o| !matches!(o, MptcpOption::Dss(_))))
}

/// A validated acknowledgement.
#[derive(Clone, Copy)]
struct ValidAck {
    ack: u64,
    ece: bool,
    pure: bool,
}
