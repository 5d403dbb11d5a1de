//! Building of the segments that are sent.

use gargalo_units::{Ecn, Instant, Seq};
use gargalo_wire::tcp::{Flags, Options, Payload, SackBlocks, Segment};

use super::super_segments::SuperSegments;
use super::{Endpoint, Transmit, Urgent};
use crate::State;
use crate::handshake;
use crate::sender::SendOrder;

impl Endpoint {
    /// The next segment to send now; call until it returns `None`.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if self.urgent.is_some()
            && let Some(urgent) = self.urgent.take()
        {
            return Some(self.send_urgent(now, urgent));
        }
        if self.state == State::Closed {
            return None;
        }
        if self.handshake.is_some()
            && let Some(t) = self.send_handshake(now)
        {
            return Some(t);
        }
        let ack_due = self.receiver.ack().is_due();
        // Duplicate acknowledgements and SACK blocks are sent without data: a sender does not count a duplicate
        // acknowledgement with data (RFC 5681 §2), and a full segment has no room for blocks.
        if ack_due && self.receiver.stands_alone() {
            return self.send_ack(now);
        }
        if let Some(sender) = &mut self.sender
            && let Some(order) = sender.poll(now)
        {
            if order.probe {
                return Some(self.send_probe(now));
            }
            return Some(self.send_data(now, order));
        }
        self.check_room();
        if ack_due {
            return self.send_ack(now);
        }
        if self.timers.probe_due {
            return Some(self.send_probe(now));
        }
        None
    }

    #[inline]
    fn send_data(&mut self, now: Instant, order: SendOrder) -> Transmit {
        let mut flags = Flags::ACK;
        if order.fin {
            flags = flags | Flags::FIN;
        }
        let pushes = |list: &SuperSegments| list.pushes(order.offset + u64::from(order.len));
        let psh = order.psh || self.writes.super_segments.as_deref().is_some_and(pushes);
        if psh && order.len > 0 {
            flags = flags | Flags::PSH;
        }
        if order.cwr && self.ecn_capable {
            flags = flags | Flags::CWR;
        }
        let end = order.offset + u64::from(order.len) + u64::from(order.fin);
        self.seq.sent = self.seq.sent.max(end);
        let payload = self.writes.buffer.payload(order.offset, order.len);
        let mut t = self.segment(now, order.offset, flags, SackBlocks::EMPTY, payload);
        // RFC 3168 §6.1.4 and §6.1.5: neither pure acknowledgements nor retransmissions.
        if self.ecn_capable && order.len > 0 {
            t.ecn = self.config.ecn.codepoint(order.retransmission);
        }
        t
    }

    /// An acknowledgement without data.
    pub(super) fn send_ack(&mut self, now: Instant) -> Option<Transmit> {
        if !self.state.is_synchronised() && !self.early {
            // The SYN-ACK acknowledges everything.
            return None;
        }
        let mut sack = SackBlocks::EMPTY;
        if self.receiver.has_blocks() {
            // Four blocks fit into the 40 bytes of options, three beside timestamps (RFC 2018 §3).
            let room = if self.timestamps.is_enabled() { 3 } else { 4 };
            let base = self.seq.receive_base;
            self.receiver.sack_blocks(room, |left, right| {
                sack.push(base + left as u32, base + right as u32);
            });
        }
        Some(self.segment(now, self.seq.sent, Flags::ACK, sack, Payload::EMPTY))
    }

    /// A segment at `offset` that acknowledges the received data.
    #[inline]
    fn segment(
        &mut self,
        now: Instant,
        offset: u64,
        mut flags: Flags,
        sack: SackBlocks,
        payload: Payload,
    ) -> Transmit {
        self.counts.segments_sent += 1;
        if self.ecn.ece() {
            flags = flags | Flags::ECE;
        }
        self.timestamps.on_ack_sent(self.receiver.next());
        Transmit {
            segment: Segment {
                src_port: self.ports.local,
                dst_port: self.ports.remote,
                seq: self.seq.of(offset),
                ack: self.ack_seq(),
                flags,
                window: self.receiver.acknowledge(),
                urgent: 0,
                options: Options {
                    timestamps: self.timestamps.option(now),
                    sack,
                    ..Options::default()
                },
                payload,
            },
            ecn: Ecn::NotEct,
        }
    }

    fn bare_segment(&mut self, now: Instant, offset: u64) -> Transmit {
        self.segment(now, offset, Flags::ACK, SackBlocks::EMPTY, Payload::EMPTY)
    }

    /// A keep-alive probe: no data, one before the sequence number that the peer expects (SND.UNA), so that it must
    /// answer (RFC 9293 §3.8.4).
    #[inline(never)]
    fn send_probe(&mut self, now: Instant) -> Transmit {
        self.timers.probe_due = false;
        let mut t = self.bare_segment(now, self.seq.una);
        t.segment.seq = t.segment.seq + u32::MAX;
        t
    }

    #[inline(never)]
    fn send_urgent(&mut self, now: Instant, urgent: Urgent) -> Transmit {
        match urgent {
            Urgent::Reset(seq, ack) => {
                self.counts.segments_sent += 1;
                Transmit {
                    segment: Segment {
                        src_port: self.ports.local,
                        dst_port: self.ports.remote,
                        seq,
                        ack: ack.unwrap_or(Seq::new(0)),
                        flags: ack.map_or(Flags::RST, |_| Flags::RST | Flags::ACK),
                        // RFC 7323 §3.2 recommends the option on resets of its connection.
                        options: Options {
                            timestamps: self.timestamps.option(now),
                            ..Options::default()
                        },
                        ..Segment::default()
                    },
                    ecn: Ecn::NotEct,
                }
            }
            Urgent::Acknowledge { next, ece } => {
                let due = self.receiver.ack().is_due();
                let mut t = self.bare_segment(now, self.seq.sent);
                if due {
                    self.receiver.demand_ack();
                }
                t.segment.ack = self.seq.of_peer(next);
                t.segment.flags = if ece {
                    Flags::ACK | Flags::ECE
                } else {
                    Flags::ACK
                };
                t
            }
        }
    }

    /// SYN or SYN-ACK, when due.
    #[inline(never)]
    fn send_handshake(&mut self, now: Instant) -> Option<Transmit> {
        let config = &*self.config;
        let h = self.handshake.as_mut().filter(|h| h.due)?;
        let answers = self.state == State::SynReceived;
        let again = h.transmissions() > 0;
        let cookie = match (answers, again) {
            (true, _) => h.grant.clone(),
            // RFC 7413 §4.2 (section unchecked): retransmitted without Fast Open.
            (false, true) => None,
            (false, false) => h.cookie.clone(),
        };
        let early = !answers && !again && cookie.as_ref().is_some_and(|c| !c.is_empty());
        let mut timestamps = gargalo_wire::tcp::Timestamps {
            value: self.timestamps.value(now),
            echo: 0,
        };
        if let Some(t) = self.timestamps.option(now) {
            timestamps = t;
        }
        let agreed = h.agreed.as_ref().filter(|_| answers);
        let options = handshake::options(config, agreed, timestamps, cookie);
        let mut flags = Flags::SYN;
        if answers {
            flags = flags | Flags::ACK;
            if self.ecn_capable {
                flags = flags | Flags::ECE;
            }
        } else if config.ecn.is_enabled() {
            flags = flags | Flags::ECE | Flags::CWR;
        }
        let mut payload = Payload::EMPTY;
        if early {
            let most = u32::from(config.announced_mss());
            let room = most.saturating_sub(options.padded_len());
            payload = self.writes.buffer.payload(0, room);
            h.early_data = payload.len();
        }
        h.on_sent(now, config.syn_timeout);
        let (first, deadline) = (h.first_sent(), h.deadline);
        if !answers && again {
            let bounded = self.syn_deadline(now, first, deadline);
            if let Some(h) = &mut self.handshake {
                h.deadline = bounded;
            }
        }
        let ack = if answers {
            self.timestamps.on_ack_sent(self.receiver.next());
            self.seq.of_peer(self.receiver.next())
        } else {
            Seq::new(0)
        };
        if answers && self.early {
            self.receiver.acknowledge();
        }
        self.counts.segments_sent += 1;
        Some(Transmit {
            segment: Segment {
                src_port: self.ports.local,
                dst_port: self.ports.remote,
                seq: self.seq.send_base + u32::MAX,
                ack,
                flags,
                window: self.receiver.initial_window(),
                urgent: 0,
                options,
                payload,
            },
            ecn: Ecn::NotEct,
        })
    }
}
