//! Processing of acknowledgements by the sender.

use gargalo_cc::{Acked, Cause, Lost, RateSample};
use gargalo_units::{Bytes, Duration, Instant};

use super::scoreboard::{DUP_THRESH, Sent};
use super::{AckFacts, AckOutcome, Flight, Frto, Notice, Phase, Recovery, Sender};

/// The shortest round-trip time for which a timestamp tick of 1 ms is precise enough.
const COARSE: Duration = Duration::from_millis(10);

/// Room for so many segments is kept from one loss to the next.
const MARKED_KEPT: usize = 16;

/// The least delay of an early retransmission (Linux).
const EARLY_DELAY: Duration = Duration::from_millis(2);

/// The data delivered by one acknowledgement.
#[derive(Default)]
struct Delivery {
    bytes: u64,
    /// Of those, delivered by the cumulative acknowledgement.
    in_order: u64,
    packets: u64,
    newest_sent: Option<Instant>,
    /// Round-trip time of the newest segment that was sent only once.
    rtt: Option<Duration>,
    /// Time of the last retransmission among the cumulatively acknowledged segments.
    resent_at: Option<Instant>,
    /// A segment sent once, before the timeout, was delivered.
    original: bool,
}

/// How much the window may grow for an acknowledgement.
#[derive(Clone, Copy)]
struct Growth {
    /// Bytes reported to the controller as [`Acked::acknowledged`].
    acknowledged: u64,
    /// No window grows: reported to the controller as [`Acked::in_recovery`].
    withheld: bool,
}

impl Sender {
    /// Whether [`Sender::on_plain_ack`] processes an acknowledgement that advances the left edge to `ack` and reports
    /// neither SACK blocks nor congestion: nothing is being repaired, probed or answered, and all that is in flight was
    /// sent after what has been delivered.
    #[inline]
    pub(crate) fn takes_plain(&self, ack: u64) -> bool {
        ack > self.una
            && self.episode.phase == Phase::Open
            && self.board.is_plain()
            && self.duplicates.bytes == 0
            && self.board.front().is_some_and(|s| self.rack.awaits(s))
            && self.tlp.in_flight.is_none()
            && !self.path_probe.sent
            && self.search.is_none()
    }

    /// Does what [`Sender::on_ack`] would do for such an acknowledgement: all that it covers is delivered by it,
    /// nothing is lost, and no episode begins or ends.
    #[inline]
    pub(crate) fn on_plain_ack(&mut self, now: Instant, ack: u64, window: u64) -> AckOutcome {
        let flight_before = self.pipe();
        let shorter = self.awaits_shorter_timer();
        let bytes = ack - self.una;
        let mut delivery = Delivery {
            bytes,
            in_order: bytes,
            ..Delivery::default()
        };
        let mut sample = None;
        let (rtt, rack, sampler) = (&mut self.rtt, &mut self.rack, &mut self.sampler);
        self.board.acknowledge_plain(ack, |run| {
            let state = &run.last.state;
            let took = now - state.sent_at;
            rtt.on_sample(took);
            rack.on_run(&run, ack, took);
            sample = sampler.on_acknowledged(now, state, Bytes::new(bytes), rtt.min());
            delivery.newest_sent = Some(state.sent_at);
            delivery.rtt = Some(took);
            delivery.packets = run.packets as u64;
        });
        self.counts.delivered_packets += delivery.packets;
        self.hold.on_ack();
        self.una = ack;
        self.on_window(window);
        self.peer.unanswered = 0;
        self.timeouts.in_a_row = 0;
        self.duplicates.acks = 0;
        self.written.buffer_full = false;
        self.timers.reorder = Instant::MAX;
        let growth = Growth {
            acknowledged: bytes,
            withheld: false,
        };
        self.report(now, false, &delivery, sample, flight_before, growth);
        self.rearm(now, true, true, shorter);
        AckOutcome {
            fin_acked: self.written.finished && self.una > self.written.end,
            rtt: delivery.rtt,
        }
    }

    /// Processes an acknowledgement.
    #[inline(never)]
    pub(crate) fn on_ack(&mut self, facts: &AckFacts<'_>) -> AckOutcome {
        let now = facts.now;
        let flight = self.flight();
        let flight_before = flight.pipe;
        let duplicates_before = self.duplicates.bytes;
        let lost_before = self.counts.marks;
        let before = self.una;
        let advanced = facts.ack > before;
        let outstanding = !self.board.is_empty();
        let shorter = self.awaits_shorter_timer();
        self.peer.unanswered = 0;
        self.hold.on_ack();
        let overtaken = facts.ack < before;
        if facts.window == 0 && !overtaken {
            // RFC 9293 §3.8.6.1: a peer that answers with a closed window is alive.
            self.timeouts.in_a_row = 0;
        }
        let mut delivery = self.deliver(facts);
        self.counts.delivered_packets += delivery.packets;
        if facts.ece {
            self.counts.delivered_ce_packets += delivery.packets;
        }
        if overtaken {
            if delivery.bytes == 0 && facts.dsack.is_none() {
                return AckOutcome::default();
            }
            delivery.rtt = None; // it was delayed on its way
        }
        if outstanding && facts.pure && facts.ack == before {
            self.counters.duplicate_acks += 1;
        }
        self.una = facts.ack.max(self.una);
        self.on_window(facts.window);
        self.confirm_mtu_probe(facts);
        let mut outcome = AckOutcome {
            fin_acked: self.written.finished && self.una > self.written.end,
            rtt: delivery.rtt,
        };
        let resumes = advanced && std::mem::take(&mut self.path_probe.sent);
        if resumes {
            self.resume();
        } else if let Some(rtt) = delivery.rtt {
            self.rtt.on_sample(rtt);
        } else if advanced {
            // Echoed timestamps have the precision of the timestamp clock (RFC 7323 §4): they are used only without
            // another sample, or if a tick is small against the round-trip time.
            let needed = self.rtt.srtt().is_none();
            if let Some(rtt) = facts.echo_rtt.filter(|r| needed || *r >= COARSE) {
                let rtt = rtt.max(Duration::from_millis(1));
                self.rtt.on_sample(rtt);
                outcome.rtt = Some(rtt);
            }
            if facts.echo_rtt.is_some() {
                // A new measurement, if only to a tick. Without one the backed-off timeout holds (RFC 6298 §5).
                self.rtt.reset_backoff();
            }
        }
        if advanced {
            self.timeouts.in_a_row = 0;
            self.duplicates.acks = 0;
            self.written.buffer_full = false;
        }
        let unneeded = facts.dsack.is_some_and(|block| self.on_dsack(block));
        let acked = facts.ack.saturating_sub(before);
        self.count_duplicates(facts, acked, outstanding);
        let spurious = self.episode.phase != Phase::Open
            && self.episode.phase != Phase::Reducing
            && (self.config.undo
                && (unneeded || self.undo.is_eifel(facts.tsecr, delivery.resent_at))
                || self.frto_says_spurious(&delivery));
        if spurious {
            if self.episode.phase == Phase::Recovery && advanced {
                // The original of the first hole has arrived, after all that was reported before.
                self.rack.on_late(before);
            }
            self.undo(now);
        }
        let ended = self.end_episode(now);
        if !spurious {
            self.detect(now, flight, advanced);
        }
        self.on_probe_acked(facts, flight, advanced);
        // Until CWR has arrived, an echo reports marks that were already answered (RFC 3168 §6.1.2).
        let answered = self.cwr.due || self.una < self.cwr.end;
        if facts.ece && self.episode.phase == Phase::Open && outstanding && !answered {
            self.episode.phase = Phase::Reducing;
            self.congestion(now, Cause::Ecn, flight, 0);
        }
        self.step_frto(advanced, &delivery);
        let mut acknowledged = self.acknowledged(acked, &delivery);
        if self.config.whole_segments {
            let most = acked.saturating_sub(duplicates_before);
            acknowledged = acknowledged.min(most.max(u64::from(self.mss)));
        }
        let growth = Growth {
            acknowledged,
            withheld: (ended && !self.config.growth_at_recovery_end)
                || self.withholds_growth(advanced),
        };
        let sample = self.sampler.finish(self.rtt.min());
        self.report(now, facts.ece, &delivery, sample, flight_before, growth);
        if let Some(prr) = &mut self.episode.prr {
            // RFC 9937 §6: without SACK a duplicate acknowledgement stands for a segment, which must
            // not count again when it is acknowledged.
            let delivered =
                (delivery.bytes + self.duplicates.bytes).saturating_sub(duplicates_before);
            let pipe = self.board.pipe().saturating_sub(self.duplicates.bytes);
            let safe = advanced && self.counts.marks == lost_before;
            if delivered > 0 {
                self.episode.prr_window = prr.on_ack(delivered, pipe, u64::from(self.mss), safe);
            }
        }
        self.rearm(now, advanced, delivery.bytes > 0, shorter);
        outcome
    }

    /// Data arrived twice (RFC 2883); returns whether all retransmissions of the recovery were unnecessary.
    fn on_dsack(&mut self, (left, right): (u64, u64)) -> bool {
        self.rack.on_dsack(self.una, self.nxt);
        let segments = right.saturating_sub(left).div_ceil(u64::from(self.mss));
        self.counts.dsack_packets += segments.max(1);
        let probe = self.tlp.in_flight;
        if probe.is_some_and(|p| p.retransmission && left < p.end && right >= p.end) {
            self.tlp.in_flight = None; // the probe was a duplicate: nothing was lost (RFC 8985 §7.4)
        }
        self.undo.on_dsack(right)
    }

    /// Updates the scoreboard and collects the newly delivered data.
    fn deliver(&mut self, facts: &AckFacts<'_>) -> Delivery {
        let now = facts.now;
        let mut d = Delivery::default();
        let min_rtt = self.rtt.min();
        let (sampler, rack, board) = (&mut self.sampler, &mut self.rack, &mut self.board);
        let recovery_point = self.episode.point;
        let mut note = |d: &mut Delivery, s: &Sent| {
            let bytes = u64::from(s.len);
            d.bytes += bytes;
            d.packets += 1;
            sampler.on_delivered(now, &s.state, Bytes::new(bytes), s.retransmitted);
            rack.on_delivered(now, s, min_rtt, facts.tsecr);
            let rtt = now - s.state.sent_at;
            if s.retransmitted {
                d.resent_at = d.resent_at.max(Some(s.state.sent_at));
            } else {
                d.rtt = Some(d.rtt.map_or(rtt, |r| r.min(rtt)));
                d.original |= s.end() <= recovery_point;
            }
            d.newest_sent = d.newest_sent.max(Some(s.state.sent_at));
        };
        if facts.ack > self.una {
            board.acknowledge(facts.ack, |s| note(&mut d, s));
            d.in_order = d.bytes;
            if d.resent_at.is_some() {
                // Data behind a filled hole may have arrived long ago (Karn; RFC 6298 §3).
                d.rtt = None;
            }
        }
        let resent_at = d.resent_at;
        if self.recovery.is_selective() {
            // From the lowest block on: the option lists the latest block first, which must not look like
            // reordering.
            let mut blocks = [(0, 0); 4];
            let blocks = &mut blocks[..facts.sacks.len().min(4)];
            blocks.copy_from_slice(&facts.sacks[..blocks.len()]);
            blocks.sort_by_key(|b| b.0);
            let mut done = facts.ack;
            for (left, right) in blocks {
                if *right > done {
                    board.sack(*left, *right, |s| note(&mut d, s));
                    done = *right;
                }
            }
        }
        d.resent_at = resent_at;
        rack.end_of_ack();
        d
    }

    /// Duplicate acknowledgements without SACK stand for segments that left the network.
    fn count_duplicates(&mut self, facts: &AckFacts<'_>, acked: u64, outstanding: bool) {
        if self.recovery.is_selective() {
            return;
        }
        if acked > 0 && self.episode.phase == Phase::Recovery {
            // A partial acknowledgement deflates the window by the acknowledged amount less one segment (RFC 6582
            // §3.2 step 3).
            let known = acked.saturating_sub(u64::from(self.mss));
            let most = self.board.pipe().saturating_sub(u64::from(self.mss));
            self.duplicates.bytes = self.duplicates.bytes.saturating_sub(known).min(most);
        } else if acked > 0 || self.episode.phase == Phase::Loss && self.nxt <= self.episode.point {
            // After a timeout duplicates stand for what was marked lost and is not in the pipe.
            self.duplicates.bytes = 0;
        } else if facts.pure && outstanding && facts.ack == self.una {
            self.duplicates.acks += 1;
            // What goes back sends from the first missing segment on, whatever has left the network.
            if self.recovery != Recovery::GoBackN {
                let most = self.board.pipe().saturating_sub(u64::from(self.mss));
                self.duplicates.bytes = (self.duplicates.bytes + u64::from(self.mss)).min(most);
            }
        }
    }

    fn frto_says_spurious(&self, delivery: &Delivery) -> bool {
        if self.episode.phase != Phase::Loss {
            return false;
        }
        if !self.recovery.is_selective() {
            // RFC 5682 §2.1 step 3: the second acknowledgement advances too, although nothing else was
            // retransmitted.
            return matches!(self.episode.frto, Frto::SendNew | Frto::Second) && delivery.original;
        }
        // §3.1: a segment sent only once, before the timeout, was delivered although it was marked lost.
        self.episode.frto != Frto::Off && delivery.original
    }

    fn step_frto(&mut self, advanced: bool, delivery: &Delivery) {
        self.episode.frto = match (self.episode.frto, self.episode.phase) {
            (Frto::Off, _) | (_, Phase::Open | Phase::Reducing | Phase::Recovery) => Frto::Off,
            (Frto::First, _) if advanced && self.written.end > self.nxt => Frto::SendNew,
            (Frto::First, _) if !advanced && delivery.bytes == 0 => Frto::First,
            _ => Frto::Off,
        };
    }

    /// Ends the episode if its data is acknowledged; returns whether fast recovery or a reduction has ended: that
    /// acknowledgement leaves the window at ssthresh (RFC 5681 §3.2 step 6).
    fn end_episode(&mut self, now: Instant) -> bool {
        let over = match self.episode.phase {
            Phase::Open => false,
            // CWR is on a segment above the recovery point: the phase ends when such a segment is acknowledged.
            Phase::Reducing => {
                self.una > self.episode.point
                    || (self.una == self.episode.point && self.board.is_empty())
            }
            Phase::Recovery | Phase::Loss => self.una >= self.episode.point,
        };
        let reduced = matches!(self.episode.phase, Phase::Recovery | Phase::Reducing);
        if over {
            self.recovered(now);
        }
        over && reduced
    }

    /// Marks losses and begins recovery if there are any.
    pub(super) fn detect(&mut self, now: Instant, flight: Flight, advanced: bool) {
        let before = self.counts.marks;
        let lost_bytes = self.mark(now, advanced);
        if self.counts.marks == before {
            return;
        }
        let segments = (self.counts.marks - before) as u32;
        self.notice(Notice::Lost { segments });
        if matches!(self.episode.phase, Phase::Open | Phase::Reducing) {
            let reduced = self.episode.phase == Phase::Reducing;
            self.episode.phase = Phase::Recovery;
            self.episode.resend_due = true;
            self.episode.rescued = false;
            self.undo.begin(self.una);
            if reduced {
                self.episode.point = self.nxt; // the window has been reduced already
            } else {
                self.congestion(now, Cause::Loss, flight, lost_bytes);
            }
        }
    }

    #[inline]
    pub(super) fn dup_thresh(&self) -> u32 {
        self.rack.dup_thresh(self.mss, self.config.max_dup_thresh)
    }

    fn mark(&mut self, now: Instant, advanced: bool) -> u64 {
        let mut marked = std::mem::take(&mut self.marked);
        match self.recovery {
            Recovery::NewReno => {
                let first = self.episode.phase != Phase::Loss && self.duplicates.acks == DUP_THRESH;
                let partial = self.episode.phase == Phase::Recovery && advanced;
                if (first && self.episode.phase != Phase::Recovery) || partial {
                    marked.extend(self.board.mark_first_lost());
                    self.episode.resend_due = true;
                }
            }
            Recovery::GoBackN => {
                if self.episode.phase == Phase::Open && self.duplicates.acks == DUP_THRESH {
                    self.board.mark_all_lost(|s| marked.push(*s));
                    self.episode.resend_due = true;
                }
            }
            Recovery::Sack => {
                let threshold = self.dup_thresh();
                self.board.detect_by_count(threshold, |s| marked.push(*s));
            }
            Recovery::Fack => {
                let early = self.retransmits_early(now);
                let threshold = self.dup_thresh();
                if self.rack.has_reordering() {
                    self.board.detect_by_count(threshold, |s| marked.push(*s));
                } else {
                    self.board.detect_forward(threshold, |s| marked.push(*s));
                }
                if marked.is_empty() && early {
                    marked.extend(self.board.mark_first_lost());
                }
            }
            Recovery::RackTlp => {
                let window = self.rack.window(
                    matches!(self.episode.phase, Phase::Recovery | Phase::Loss),
                    self.board.sacked() >= self.dup_thresh(),
                    self.rtt.min(),
                    self.rtt.srtt(),
                );
                let rack = &self.rack;
                self.timers.reorder =
                    self.board
                        .detect_by_time(now, |s| rack.due(s, window), |s| marked.push(*s));
            }
        }
        let bytes = self.report_lost(now, &marked);
        if marked.capacity() <= MARKED_KEPT {
            marked.clear();
            self.marked = marked;
        }
        bytes
    }

    /// Early retransmit (RFC 5827 §3) of fewer than four segments, after a quarter of a round trip, as reordering may
    /// be the cause; returns whether it is due.
    fn retransmits_early(&mut self, now: Instant) -> bool {
        let due = self.timers.reorder <= now;
        self.timers.reorder = Instant::MAX;
        let few = self.episode.phase == Phase::Open
            && (self.board.sacked() as usize) < self.board.len()
            && self.board.sacked() > 0
            && self.board.len() <= DUP_THRESH as usize
            && !self.board.has_repeated();
        // New data shows a loss as well.
        if !few || (self.has_unsent() && self.pipe() < self.window()) {
            return false;
        }
        if !due {
            let srtt = self.rtt.srtt().unwrap_or_default();
            self.timers.reorder = now + (srtt / 4).max(EARLY_DELAY);
        }
        due
    }

    pub(super) fn report_lost(&mut self, now: Instant, marked: &[Sent]) -> u64 {
        let mut bytes = 0;
        let mut probe = false;
        for (i, s) in marked.iter().enumerate() {
            if self.is_mtu_probe(s) {
                probe = true; // no sign of congestion (RFC 4821)
                continue;
            }
            let len = Bytes::new(u64::from(s.len));
            bytes += u64::from(s.len);
            self.counts.marks += 1;
            // A transmission is counted as lost once, even if the mark was undone and set again.
            self.counters.lost_packets += u64::from(!s.was_lost);
            self.sampler.on_lost(len);
            let (controller, path) = self.parts();
            let lost = Lost {
                now,
                bytes: len,
                state: s.state,
                new_burst: i == 0,
                in_flight: path.in_flight,
            };
            controller.on_loss(&lost, &path);
        }
        if probe {
            self.on_mtu_probe_lost(marked.len() == 1);
        }
        bytes
    }

    /// Detects the outcome of a tail loss probe (RFC 8985 §7.4).
    fn on_probe_acked(&mut self, facts: &AckFacts<'_>, flight: Flight, advanced: bool) {
        let Some(probe) = self.tlp.in_flight else {
            return;
        };
        let duplicate = !advanced && facts.pure && facts.sacks.is_empty();
        if facts.ack < probe.end {
            return;
        }
        if !probe.retransmission {
            self.tlp.in_flight = None;
        } else if facts.ack > probe.end {
            // There was neither a D-SACK nor a duplicate acknowledgement before later data was acknowledged: the
            // probe repaired a loss (RFC 8985 §7.4.2).
            self.tlp.in_flight = None;
            if self.episode.phase == Phase::Open {
                self.episode.phase = Phase::Reducing;
                self.congestion(facts.now, Cause::Loss, flight, 0);
            }
        } else if duplicate {
            // Original and probe have both arrived.
            self.tlp.in_flight = None;
        }
    }

    /// The bytes for which the window may grow (N of RFC 5681 §3.1). Data that was first reported selectively waits
    /// until it is acknowledged cumulatively: duplicate acknowledgements leave the window as it is (RFC 5681 §3.2
    /// step 1, RFC 3042 §2). What was reported in recovery never counts.
    #[inline]
    fn acknowledged(&mut self, acked: u64, delivery: &Delivery) -> u64 {
        let reported = &mut self.duplicates.reported;
        let earlier = (acked - delivery.in_order.min(acked)).min(*reported);
        *reported -= earlier;
        if matches!(self.episode.phase, Phase::Open | Phase::Reducing) {
            *reported += delivery.bytes - delivery.in_order;
        }
        delivery.in_order + earlier
    }

    /// Whether the window must not grow now.
    #[inline]
    fn withholds_growth(&self, advanced: bool) -> bool {
        match self.episode.phase {
            Phase::Open => false,
            Phase::Recovery | Phase::Reducing => true,
            // After a timeout an acknowledgement that only reports later segments is a duplicate (RFC 5681 §3.1).
            // Otherwise the window would keep growing while the same segment is lost repeatedly.
            Phase::Loss => !advanced,
        }
    }

    /// Whether the congestion window limits the sender (Linux: `tcp_is_cwnd_limited`).
    #[inline]
    pub(super) fn is_cwnd_limited(&self) -> bool {
        self.limited.now
            || (self.controller.in_slow_start()
                && self.controller.cwnd().get() < 2 * self.limited.most_in_flight)
    }

    /// Reports the acknowledgement to the controller; `ece`: it carries ECN-Echo (RFC 3168 §6.1.2).
    fn report(
        &mut self,
        now: Instant,
        ece: bool,
        delivery: &Delivery,
        sample: Option<RateSample>,
        flight_before: u64,
        growth: Growth,
    ) {
        if let Some(s) = &sample {
            // Application-limited samples are used only if they exceed the current estimate
            // (delivery-rate-estimation §3.5).
            if !s.app_limited
                || self
                    .delivery_rate()
                    .is_none_or(|known| s.delivery_rate() > known)
            {
                self.rate.sample = Some((s.delivered, s.interval));
                self.rate.app_limited = s.app_limited;
            }
        }
        if delivery.bytes == 0 {
            return;
        }
        // The round ends when a byte that was sent after its start is acknowledged (RFC 9406 §4.2).
        let round_start = self.una > self.round_end;
        if round_start {
            self.round_end = self.nxt;
        }
        let cwnd_limited = self.is_cwnd_limited();
        let acked = Acked {
            now,
            bytes: Bytes::new(delivery.bytes),
            acknowledged: Bytes::new(growth.acknowledged),
            ce_bytes: Bytes::new(if ece { delivery.bytes } else { 0 }),
            rtt: delivery.rtt,
            sent_at: delivery.newest_sent,
            in_flight_before: Bytes::new(flight_before),
            in_flight: Bytes::new(self.pipe()),
            cwnd_limited,
            in_recovery: growth.withheld,
            round_start,
            sample,
        };
        let (controller, path) = self.parts();
        controller.on_ack(&acked, &path);
    }
}
