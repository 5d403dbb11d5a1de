//! Processing of received segments and their MPTCP options.

use gargalo_tcp::State;
use gargalo_units::{Ecn, Instant};
use gargalo_wire::mptcp::{CapableKeys, DataNumber, Dss, Join, List, MptcpOption};
use gargalo_wire::tcp::{Flags, Segment};

use super::opening::Admission;
use super::{Connection, Mode};
use crate::addresses::Addresses;
use crate::event::Event;
use crate::mapping::{Mapping, position};
use crate::subflow::Origin;

/// Maximum distance of an acceptable data sequence number from the expected one.
const MOST_DISTANCE: i64 = 1 << 40;

/// Received options whose memory is kept.
const MOST_SPARE_OPTIONS: usize = 16;

impl Connection {
    /// Processes a segment received for these addresses; `ecn` is the ECN field of its packet.
    pub fn handle(&mut self, now: Instant, addresses: Addresses, mut segment: Segment, ecn: Ecn) {
        let Some(i) = self.index_of(addresses) else {
            self.on_unknown_segment(now, addresses, segment, ecn);
            return;
        };
        let begins = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        if begins && self.subflows[i].removal.at != Instant::MAX {
            // The address that the peer removed is back, with a new subflow.
            self.drop_subflow(now, i);
            self.on_unknown_segment(now, addresses, segment, ecn);
            return;
        }
        match self.admit(now, i, &segment) {
            Admission::Pass => {}
            Admission::Drop => return,
            Admission::Refuse(reason) => {
                self.refuse(addresses, &segment, Some(reason));
                self.subflows[i].endpoint.on_unreachable(true);
                self.work.active |= self.subflows[i].bit();
                self.after(now, i);
                return;
            }
        }
        let s = &mut self.subflows[i];
        let was_open = s.endpoint.state().is_synchronised();
        let facts = SegmentFacts {
            accepted: s.endpoint.accepts(now, &segment),
            window: s.endpoint.scaled_window(segment.window),
            syn: segment.flags.contains(Flags::SYN),
            reset: segment.flags.contains(Flags::RST),
            carries: !segment.payload.is_empty(),
            fin: segment.flags.contains(Flags::FIN),
            acknowledges: s.endpoint.sent_position(segment.ack) > Some(s.endpoint.acknowledged()),
        };
        let is_lone_dss = |l: &List| matches!(l.lone(), Some(MptcpOption::Dss(_)));
        // The endpoint looks for other options than DSS.
        let options = match &segment.options.mptcp {
            Some(list) if is_lone_dss(list) => segment.options.mptcp.take(),
            other => other.clone(),
        };
        let plain = options.is_none();
        if facts.acknowledges || !segment.options.sack.is_empty() {
            self.show_siblings(i);
        }
        let s = &mut self.subflows[i];
        s.endpoint.handle(now, segment, ecn);
        self.work.active |= s.bit();
        self.work.schedule_due = true;
        self.timers.heard_on = s.id;
        // The third packet opens the subflow and may carry other options already.
        let opened = !was_open && s.endpoint.state().is_synchronised() && !facts.syn;
        let accepted = facts.accepted || opened;
        if accepted {
            self.on_answer(now, i);
        }
        let others = options.as_ref().filter(|l| !is_lone_dss(l));
        if let Some(list) = others {
            self.on_signals(now, i, list, accepted, &facts);
        }
        if self.mode == Mode::Multipath && accepted && !facts.syn && !facts.reset {
            if let Some(dss) = options.as_ref().and_then(|l| l.dss()) {
                self.on_dss(now, i, dss, facts.window);
            }
            self.on_confirmation(now, i, plain, &facts, opened);
        } else if self.mode == Mode::Plain && facts.is_idle(plain) && accepted {
            self.on_plain_repetition(now, i);
        }
        if let Some(list) = options
            && self.spare_options.len() < MOST_SPARE_OPTIONS
        {
            self.spare_options.push(list);
        }
        self.after(now, i);
    }

    /// Updates the connection after any event of a subflow.
    pub(super) fn after(&mut self, now: Instant, i: usize) {
        let id = self.subflows[i].id;
        self.on_subflow_events(now, i);
        if self.subflows.get(i).is_none_or(|s| s.id != id) {
            return;
        }
        self.drain(now, i);
        self.on_subflow_acked(now, i);
        self.watch_loss(now, i);
        // Its view is updated when it has sent everything it can.
        let bit = self.subflows[i].bit();
        self.work.changed |= bit;
        self.work.active |= bit;
        self.advance_close(now);
    }

    /// Detects whether options pass in both directions.
    fn on_confirmation(
        &mut self,
        now: Instant,
        i: usize,
        plain: bool,
        facts: &SegmentFacts,
        opened: bool,
    ) {
        let s = &mut self.subflows[i];
        match s.origin {
            Origin::OwnJoin if !s.confirmed => {
                // The peer answers our third packet (RFC 8684 §3.2).
                s.confirmed = true;
                s.join.confirm_at = Instant::MAX;
            }
            Origin::Initial if plain && !opened && !self.over => {
                // A peer that receives our options acknowledges with a DATA_ACK. Without one it does not receive
                // them, or has fallen back. (Once there have been several subflows, a host that receives data
                // without a mapping resets the subflow instead.)
                let alone = self.fallback.contiguous && self.subflows.len() == 1;
                let options_lost = !self.handshake.data_acked && facts.carries;
                let acknowledged = facts.acknowledges && (alone || !self.handshake.data_acked);
                // In order, DATA_FIN comes first.
                if options_lost || acknowledged || (facts.fin && self.fallback.contiguous) {
                    if self.subflows[i].written > 0 && !facts.fin {
                        self.notify_fallback(i, None);
                    }
                    self.fall_back(now, i);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn on_dss(&mut self, now: Instant, i: usize, dss: &Dss, window: u64) {
        let Some(peer) = self.handshake.peer else {
            return;
        };
        self.on_keys_known(now);
        if let Some(ack) = dss.data_ack {
            self.handshake.data_acked = true;
            let ack = position(ack, self.own_base(), self.send.una);
            if let Ok(ack) = u64::try_from(ack) {
                self.on_data_ack(now, ack, window);
            }
        }
        let Some(m) = &dss.mapping else { return };
        let base = peer.idsn().wrapping_add(1);
        if matches!(m.data_seq, DataNumber::Long(_)) && !self.handshake.long_acks {
            self.on_long_numbers(now);
        }
        let data = position(m.data_seq, base, self.receive.next());
        if m.length == 0 {
            if self.fallback.contiguous && self.subflows.len() == 1 {
                self.fall_back(now, i);
            }
            return;
        }
        if (data - self.receive.next() as i64).abs() > MOST_DISTANCE {
            self.stats.ignored_options += 1;
            return;
        }
        let mut len = u32::from(m.length);
        let mut checksum = m.checksum;
        if dss.data_fin {
            len -= 1;
            checksum = checksum.map(without_fin);
            self.on_data_fin(data + i64::from(len));
        }
        if len > 0 && !(dss.data_fin && m.subflow_seq == 0) {
            let near = self.subflows[i].input.consumed;
            let expected = near as u32;
            let distance = m.subflow_seq.wrapping_sub(1).wrapping_sub(expected) as i32;
            let subflow = near as i64 + i64::from(distance);
            self.map(i, subflow, data, len, checksum);
        }
    }

    /// The peer's data sequence numbers have 8 octets, so that our DATA_ACKs do, too.
    fn on_long_numbers(&mut self, now: Instant) {
        self.handshake.long_acks = true;
        let reserved = self.reserved();
        for s in &mut self.subflows {
            s.endpoint.reserve_options(now, reserved);
            self.work.changed |= s.bit();
        }
    }

    /// Stores a mapping of the peer.
    #[inline]
    fn map(&mut self, i: usize, subflow: i64, data: i64, len: u32, checksum: Option<u16>) {
        let buffer = self.config.tcp.receive_buffer.get();
        // At most as many mappings as there may be short segments in the endpoint's window.
        let most = usize::try_from(buffer / 128)
            .unwrap_or(usize::MAX)
            .clamp(1024, 1 << 20);
        let end = subflow + i64::from(len);
        let s = &mut self.subflows[i];
        if end <= s.input.consumed as i64 {
            return;
        }
        let Ok(subflow) = u64::try_from(subflow) else {
            self.stats.ignored_options += 1;
            return;
        };
        // A checksum that was not negotiated, or a missing one, is ignored.
        let mapping = Mapping {
            subflow,
            data,
            len,
            checksum: checksum.filter(|_| self.handshake.checksum),
        };
        if subflow > s.input.consumed + 4 * buffer + (1 << 20)
            || !s.input.received.insert(mapping, most)
        {
            self.stats.ignored_options += 1;
        }
    }

    fn on_data_fin(&mut self, at: i64) {
        let before = self.receive.is_finished();
        self.receive.finish(at);
        if self.receive.is_finished() {
            if !before {
                self.events.push(Event::PeerClosed);
            }
            // Also for a retransmission: our acknowledgement was lost.
            for s in &mut self.subflows {
                if s.id == self.timers.heard_on {
                    s.endpoint.demand_ack();
                }
            }
        }
    }

    /// Processes options other than DSS.
    fn on_signals(
        &mut self,
        now: Instant,
        i: usize,
        list: &List,
        accepted: bool,
        facts: &SegmentFacts,
    ) {
        for option in list.iter() {
            match option {
                // The key authenticates it, whatever the sequence number.
                MptcpOption::FastClose { receiver_key }
                    if *receiver_key == self.handshake.own.get() =>
                {
                    self.on_fast_close(now);
                }
                _ if !accepted => {}
                MptcpOption::Capable { keys, .. } => self.on_capable_data(now, i, keys, facts),
                MptcpOption::AddAddr(a) => self.on_add_address(now, i, a),
                MptcpOption::RemoveAddr(ids) => self.on_remove_address(now, ids),
                MptcpOption::Prio { backup } => {
                    self.subflows[i].backup.peer = *backup;
                }
                MptcpOption::Fail { data_seq } => self.on_fail(now, i, *data_seq),
                MptcpOption::Join(Join::Ack { .. }) => {
                    // Our answer to it was lost (RFC 8684 §3.2).
                    let s = &mut self.subflows[i];
                    s.outbox.ack_wanted |= s.origin == Origin::PeerJoin && s.confirmed;
                }
                MptcpOption::Dss(_) | MptcpOption::Join(_) | MptcpOption::Reset(_) => {}
                MptcpOption::FastClose { .. } | MptcpOption::Unknown(_) => {
                    self.stats.ignored_options += 1;
                }
            }
        }
    }

    /// Processes MP_CAPABLE with the first data, in place of a mapping (RFC 8684 §3.1).
    fn on_capable_data(
        &mut self,
        now: Instant,
        i: usize,
        keys: &CapableKeys,
        facts: &SegmentFacts,
    ) {
        let s = &self.subflows[i];
        if self.mode != Mode::Multipath || s.origin != Origin::Initial || self.is_client {
            return;
        }
        let known = (
            self.handshake.peer.map(|k| k.get()),
            self.handshake.own.get(),
        );
        match *keys {
            CapableKeys::BothAndData {
                sender,
                receiver,
                length,
                checksum,
            } if (Some(sender), receiver) == known => {
                self.on_keys_known(now);
                self.map(i, 0, 0, u32::from(length), checksum);
            }
            CapableKeys::Both { .. } => {}
            _ => return,
        }
        // A peer without our keys cannot have acknowledged our data.
        self.send.edge = self.send.edge.max(facts.window);
    }

    /// Options have passed in both directions: further subflows may be opened.
    #[inline]
    pub(super) fn on_keys_known(&mut self, now: Instant) {
        if !self.handshake.confirmed {
            self.handshake.confirmed = true;
            self.on_paths_changed(now);
        }
    }

    /// Processes a DATA_ACK: the peer has everything before `ack`.
    #[inline]
    fn on_data_ack(&mut self, now: Instant, ack: u64, window: u64) {
        let room = self.send.edge;
        if self.send.on_ack(ack, ack.saturating_add(window)) {
            self.on_data_acked(now);
        } else if self.send.edge > room {
            self.arm_data_timer(now);
        }
    }

    pub(super) fn on_data_acked(&mut self, now: Instant) {
        if self.send.write_blocked {
            self.send.write_blocked = false;
            self.events.push(Event::Writable);
        }
        self.timers.backoff = 0;
        self.arm_data_timer(now);
    }

    /// Processes the data newly acknowledged at subflow level.
    #[inline]
    fn on_subflow_acked(&mut self, now: Instant, i: usize) {
        let s = &mut self.subflows[i];
        let acked = s.endpoint.acknowledged().min(s.written);
        if acked == s.acked {
            return;
        }
        s.acked = acked;
        let mut data = 0;
        s.sent.release(acked, |m| data = m.data_end());
        if self.mode == Mode::Plain && data > 0 {
            let window = self.send.edge;
            if self.send.on_ack(data as u64, window) {
                self.on_data_acked(now);
            }
        }
    }

    /// After a retransmission timeout the data of the subflow is reinjected on others; progress makes it eligible
    /// again.
    #[inline]
    pub(super) fn watch_loss(&mut self, now: Instant, i: usize) {
        let s = &mut self.subflows[i];
        let in_loss = s.in_loss();
        // A tail loss probe means that no acknowledgement arrived for two round trips: if all other subflows wait
        // for this one, its data is reinjected before the timeout.
        let slot = s.slot;
        let silent = s.endpoint.is_probing()
            && self.send.first().is_some_and(|first| first.latest == slot)
            && self.subflows.len() > 1;
        let s = &mut self.subflows[i];
        if silent && !s.suspected {
            s.suspected = true;
            self.reinject(now, i);
        } else if !silent {
            s.suspected = false;
        }
        let s = &mut self.subflows[i];
        if in_loss && !s.stale {
            s.stale = true;
            let subflow = s.id;
            if let Some(interval) = self.config.options.probes() {
                let first = interval.max(s.endpoint.snapshot(now).srtt.unwrap_or_default());
                s.probe.start(now, first);
            }
            self.notice(crate::Notice::Stale { now, subflow });
            self.reinject(now, i);
        } else if !in_loss {
            (s.stale, s.probe.at) = (false, Instant::MAX);
        }
    }

    /// Processes the events of a subflow's endpoint.
    fn on_subflow_events(&mut self, now: Instant, i: usize) {
        while let Some(event) = self.subflows[i].endpoint.poll_event() {
            match event {
                gargalo_tcp::Event::Connected => self.on_subflow_open(now, i),
                gargalo_tcp::Event::PeerClosed => self.on_subflow_fin(now, i),
                gargalo_tcp::Event::Closed
                | gargalo_tcp::Event::Reset
                | gargalo_tcp::Event::TimedOut => self.on_subflow_over(now, i),
                gargalo_tcp::Event::Readable | gargalo_tcp::Event::Writable => {}
            }
        }
        let s = &mut self.subflows[i];
        if s.confirmed && !s.announced && s.endpoint.state() == State::Established {
            s.announced = true;
            let (id, addresses, origin) = (s.id, s.addresses, s.origin);
            self.stats.subflows_opened += 1;
            self.events.push(Event::SubflowOpened { id, addresses });
            if origin != Origin::Initial {
                self.fallback.contiguous = false;
            }
            self.on_path_open(now, i);
            if origin == Origin::Initial {
                self.on_paths_changed(now);
            }
        }
    }

    fn on_subflow_open(&mut self, now: Instant, i: usize) {
        match self.subflows[i].origin {
            Origin::Initial => self.on_initial_open(now),
            Origin::OwnJoin => {
                let s = &mut self.subflows[i];
                s.join.confirm_at = now + s.endpoint.snapshot(now).rto;
            }
            Origin::PeerJoin => {}
        }
    }
}

/// The checksum of a mapping without the DATA_FIN at its end, which is included in its length (RFC 8684 §3.3.1, RFC
/// 1624).
fn without_fin(checksum: u16) -> u16 {
    let (sum, carry) = (!checksum).overflowing_sub(1);
    !sum.wrapping_sub(u16::from(carry))
}

/// Properties of a segment that are needed after its endpoint has processed it.
struct SegmentFacts {
    /// Its sequence numbers are acceptable.
    accepted: bool,
    /// Its window field in bytes.
    window: u64,
    syn: bool,
    reset: bool,
    /// It carries data.
    carries: bool,
    /// It has FIN: no data follows on its subflow.
    fin: bool,
    /// It acknowledges data that was not acknowledged before.
    acknowledges: bool,
}

impl SegmentFacts {
    /// Whether it carries nothing new: no data, no new acknowledgement, no window change.
    fn is_idle(&self, plain: bool) -> bool {
        plain && !self.carries && !self.acknowledges && !self.syn && !self.reset
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::checksum;
    use super::without_fin;

    #[test]
    fn a_checksum_with_data_fin_is_that_of_a_length_one_more() {
        for (seq, len) in [
            (0, 1),
            (1, 0),
            (0xffff_ffff, 9),
            (0x1234_5678_9abc_def0, 1400),
        ] {
            for data in [&b""[..], b"odd", b"even"] {
                let (with, without) =
                    (checksum(seq, 7, len + 1, data), checksum(seq, 7, len, data));
                let got = without_fin(with);
                assert!(got == without || (got ^ without) == 0xffff && (got == 0 || without == 0));
            }
        }
    }
}
