//! CLOSED, LISTEN, SYN-SENT: the opening of a connection (RFC 9293 §3.5, RFC 7413).

use gargalo_units::{Duration, Ecn, Instant, Seq};
use gargalo_wire::tcp::{Flags, Segment};

use super::{Endpoint, Urgent};
use crate::ecn::EcnReceiver;
use crate::handshake::{Agreed, PeerSyn, Queued};
use crate::peer_window::PeerWindow;
use crate::receiver::Piece;
use crate::sender::Sender;
use crate::{Error, Event, State};

impl Endpoint {
    /// Answers a segment in CLOSED with a reset, unless it is a reset itself (RFC 9293 §3.10.7.1).
    pub(super) fn refuse(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        self.urgent = Some(if segment.flags.contains(Flags::ACK) {
            Urgent::Reset(segment.ack, None)
        } else {
            Urgent::Reset(Seq::new(0), Some(segment.end()))
        });
    }

    /// RFC 9293 §3.10.7.2.
    pub(super) fn on_listen(&mut self, now: Instant, segment: Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) {
            self.refuse(&segment);
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        self.ports.remote = segment.src_port;
        let syn = PeerSyn::of(&segment, self.size.is_ipv6);
        self.on_peer_syn(now, &segment, &syn);
        self.become_state(State::SynReceived);
        if let Some(h) = &mut self.handshake {
            h.due = true;
        }
        self.on_fast_open(now, segment, syn);
    }

    /// Serves Fast Open (RFC 7413 §4.2): data with a valid cookie is accepted, and data may be sent, before the
    /// handshake is complete.
    fn on_fast_open(&mut self, now: Instant, segment: Segment, syn: PeerSyn) {
        let Some(h) = &mut self.handshake else { return };
        let (Some(ours), Some(shown)) = (&h.cookie, &syn.cookie) else {
            return;
        };
        if ours.is_empty() {
            return;
        }
        if shown != ours {
            // A request, or a cookie that has expired.
            h.grant = Some(ours.clone());
            return;
        }
        self.early = true;
        if !segment.payload.is_empty() {
            let piece = Piece {
                offset: 0,
                payload: segment.payload,
                fin: false,
                push: segment.flags.contains(Flags::PSH),
            };
            if self.receiver.on_segment(now, piece).readable {
                self.events.push(Event::Readable);
            }
        }
        self.start_sender(now, None);
        self.events.push(Event::Connected);
    }

    /// RFC 9293 §3.10.7.3.
    pub(super) fn on_syn_sent(&mut self, now: Instant, segment: Segment, ecn: Ecn) {
        let early = self.handshake.as_ref().map_or(0, |h| h.early_data);
        let has_ack = segment.flags.contains(Flags::ACK);
        let acked = segment.ack.distance(self.seq.send_base);
        // ISS < SEG.ACK <= SND.NXT.
        let acceptable = has_ack && acked >= 0 && acked.unsigned_abs() <= early;
        if has_ack && !acceptable {
            self.refuse(&segment);
            return;
        }
        if segment.flags.contains(Flags::RST) {
            if acceptable {
                self.end(Some(Error::Refused));
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        let syn = PeerSyn::of(&segment, self.size.is_ipv6);
        self.on_peer_syn(now, &segment, &syn);
        if !has_ack {
            // Simultaneous open: what comes with the SYN waits until the connection is open.
            self.become_state(State::SynReceived);
            if let Some(h) = &mut self.handshake {
                h.restart();
                if !segment.payload.is_empty() || segment.flags.contains(Flags::FIN) {
                    h.queued = Some(Queued {
                        payload: segment.payload,
                        flags: segment.flags,
                        ecn,
                    });
                }
            }
            return;
        }
        if let Some(h) = &self.handshake
            && h.cookie.is_some()
        {
            self.granted = syn.cookie.filter(|c| !c.is_empty());
        }
        self.skip_early(acked.unsigned_abs());
        self.become_state(State::Established);
        self.establish(now);
        self.receiver.demand_ack();
        // Data that comes with a SYN-ACK is taken like any other (RFC 7413 §4.2.2 allows it).
        if !segment.payload.is_empty() || segment.flags.contains(Flags::FIN) {
            self.on_text(now, 0, segment.payload, segment.flags, ecn);
        }
    }

    /// Returns to LISTEN after a passive open was reset before it was complete (RFC 9293 §3.10.7.4, second).
    pub(super) fn listen_again(&mut self) {
        // Closed by the application in the meantime: as in LISTEN (§3.10.4).
        if self.writes.closed {
            return self.end(None);
        }
        self.become_state(State::Listen);
        self.ecn_capable = false;
        self.ecn = EcnReceiver::default();
        self.timestamps.disable();
        if let Some(h) = &mut self.handshake {
            h.forget();
        }
    }

    /// Skips the data that was accepted with the SYN: the sender counts from the next byte.
    pub(super) fn skip_early(&mut self, accepted: u32) {
        self.writes.buffer.skip(u64::from(accepted));
        self.hold_mut().skip(u64::from(accepted));
        self.seq.send_base = self.seq.send_base + accepted;
        if let Some(h) = &mut self.handshake {
            h.early_data = 0;
        }
    }

    /// Applies the options and the window of the peer's SYN.
    pub(super) fn on_peer_syn(&mut self, now: Instant, segment: &Segment, syn: &PeerSyn) {
        let agreed = Agreed::new(&self.config, syn);
        self.seq.receive_base = segment.seq + 1;
        self.peer = PeerWindow::new(syn.window);
        self.scaling = agreed.scaling;
        let (ours, theirs) = agreed.scaling.unwrap_or((0, 0));
        self.peer.scale(theirs);
        self.receiver
            .negotiate(agreed.mss, ours, agreed.sack, self.config.dsack);
        if let (true, Some(t)) = (agreed.timestamps, syn.timestamps) {
            self.timestamps.enable(now, t.value);
        }
        self.ecn_capable = agreed.ecn;
        if agreed.ecn {
            self.ecn = EcnReceiver::new(self.config.ecn.echo());
        }
        if let Some(h) = &mut self.handshake {
            h.agreed = Some(agreed);
        }
    }

    /// Creates the sender, with the data written so far.
    fn start_sender(&mut self, now: Instant, rtt: Option<Duration>) {
        let agreed = self.handshake.as_ref().and_then(|h| h.agreed);
        self.size.agreed = agreed.map_or(self.config.mss, |a| a.mss);
        let mss = self.first_payload();
        let window = self.usable_window();
        let Some(h) = &mut self.handshake else { return };
        let Some(controller) = h.controller.take() else {
            return;
        };
        let mut sender = Sender::new(&self.config, controller, mss, now);
        sender.set_user_timeout(self.user_timeout);
        sender.hold = self.early_hold.clone();
        sender.written.wants_room = self.writes.blocked;
        if h.agreed.is_some_and(|a| !a.sack) {
            sender.without_sack();
        }
        sender.on_established(now, rtt, h.transmissions(), window);
        if !self.writes.buffer.is_empty() {
            let written = self.writes.buffer.len();
            sender.append(written, written >= self.writes.capacity);
        }
        self.start_search(&mut sender);
        self.sender = Some(Box::new(sender));
    }

    /// ESTABLISHED: the handshake is complete.
    pub(super) fn establish(&mut self, now: Instant) {
        let rtt = self.handshake.as_ref().and_then(|h| h.rtt(now));
        if self.sender.is_none() {
            self.start_sender(now, rtt);
        }
        if rtt.is_some() {
            self.rtt_sample = rtt;
        }
        let queued = self.handshake.take().and_then(|h| h.queued);
        if !self.early {
            self.events.push(Event::Connected);
        }
        self.timers.heard = now;
        self.timers.data = now;
        self.arm_keep_alive(now);
        if self.writes.closed {
            self.finish();
        }
        if let Some(q) = queued {
            self.on_text(now, 0, q.payload, q.flags, q.ecn);
            self.receiver.demand_ack();
        }
    }
}
