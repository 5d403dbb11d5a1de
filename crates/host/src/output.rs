//! Sending of datagrams.

use std::collections::VecDeque;

use gargalo_units::{Ecn, Instant};
use gargalo_wire::ip;
use gargalo_wire::mptcp::{List, MptcpOption};
use gargalo_wire::tcp::{Flags, Options, Segment};

use gargalo_tcp::Transmit;

use crate::Host;
use crate::connection::Tuple;

/// The queue of whole datagrams to be sent: those that belong to no connection, and acknowledgements that must be
/// sent one by one.
#[derive(Debug)]
pub(crate) struct Outgoing {
    queue: VecDeque<Vec<u8>>,
    most: usize,
}

impl Outgoing {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            most,
        }
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= self.most
    }
    pub(crate) fn push(&mut self, datagram: Vec<u8>) {
        self.queue.push_back(datagram);
    }
    fn pop(&mut self) -> Option<Vec<u8>> {
        self.queue.pop_front()
    }
}

impl Host {
    /// Appends the next datagram to send to `out`; `false` if there is none now. Connections with data are served
    /// in turn.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        self.now = self.now.max(now);
        if let Some(datagram) = self.outgoing.pop() {
            out.extend_from_slice(&datagram);
            self.stats.sent += 1;
            return true;
        }
        // Sockets and connections are served in turn.
        self.udp_turn = !self.udp_turn;
        if self.udp_turn && self.send_udp_next(out) {
            return true;
        }
        if self.send_segment(out) {
            return true;
        }
        self.send_udp_next(out)
    }

    fn send_udp_next(&mut self, out: &mut Vec<u8>) -> bool {
        let sent = self.udp.has_ready() && self.send_next_udp(out);
        self.stats.sent += u64::from(sent);
        sent
    }

    #[inline]
    fn send_segment(&mut self, out: &mut Vec<u8>) -> bool {
        let offload = self.config.checksum_offload;
        while let Some(slot) = self.ready.pop_front() {
            let Some(c) = self.table.slot_mut(slot) else {
                continue;
            };
            let next = c.poll_transmit(self.now);
            c.is_ready = next.is_some();
            if next.is_none() {
                // What was sent may have made room for more.
                c.transport.collect(&mut c.events);
                if c.has_events() {
                    self.on_news(slot);
                }
            }
            self.follow_subflows(slot);
            let Some((header, t)) = next else {
                self.remove_if_done(slot);
                continue;
            };
            self.ready.push_back(slot);
            let header = header.unwrap_or_else(|tuple| self.header(&tuple));
            if emit(header, &t, offload, out) {
                self.stats.sent += 1;
                return true;
            }
        }
        false
    }

    /// Moves the next segment of a connection to the queue.
    pub(crate) fn flush_one(&mut self, slot: u32) {
        if self.outgoing.is_full() {
            return;
        }
        let offload = self.config.checksum_offload;
        if let Some(c) = self.table.slot_mut(slot)
            && let Some((header, t)) = c.poll_transmit(self.now)
        {
            let header = header.unwrap_or_else(|tuple| self.header(&tuple));
            let mut datagram = Vec::with_capacity(80);
            if emit(header, &t, offload, &mut datagram) {
                self.outgoing.push(datagram);
            }
        }
    }

    /// Sends a segment that belongs to no connection.
    pub(crate) fn send_stray(&mut self, tuple: &Tuple, segment: &Segment, dscp: u8) -> bool {
        if self.outgoing.is_full() {
            self.stats.outgoing_dropped += 1;
            return false;
        }
        let header = ip::Header {
            dscp: dscp & 0x3f,
            ..self.header(tuple)
        };
        let mut datagram = Vec::with_capacity(80);
        let sent = if self.config.checksum_offload {
            header.emit_tcp_offloaded(segment, &mut datagram)
        } else {
            header.emit_tcp(segment, &mut datagram)
        };
        let sent = sent.is_ok();
        if sent {
            self.outgoing.push(datagram);
        }
        sent
    }

    pub(crate) fn header(&self, tuple: &Tuple) -> ip::Header {
        let flow_label = if tuple.is_v6() {
            self.secrets.flow_label(tuple)
        } else {
            0
        };
        ip::Header {
            ttl: self.config.ttl,
            flow_label,
            ..ip::Header::new(tuple.addresses)
        }
    }

    /// Answers a segment that belongs to no connection by a reset (RFC 9293 §3.10.7.1).
    pub(crate) fn reset_unknown(&mut self, tuple: &Tuple, segment: &Segment) {
        self.reset_with(tuple, segment, None);
    }

    /// Such a reset with the MP_TCPRST option (RFC 8684 §3.6).
    pub(crate) fn reset_with(
        &mut self,
        tuple: &Tuple,
        segment: &Segment,
        why: Option<MptcpOption>,
    ) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let mut reset = Segment {
            src_port: tuple.local_port,
            dst_port: tuple.remote_port,
            flags: Flags::RST,
            options: Options {
                mptcp: why.map(|w| Box::new(List::from(w))),
                ..Options::default()
            },
            ..Segment::default()
        };
        if segment.flags.contains(Flags::ACK) {
            reset.seq = segment.ack;
        } else {
            reset.flags = Flags::RST | Flags::ACK;
            reset.ack = segment.end();
        }
        if self.send_stray(tuple, &reset, 0) {
            self.stats.resets_sent += 1;
        }
    }
}

/// Appends a connection's datagram.
#[inline]
fn emit(header: ip::Header, t: &Transmit, offload: bool, out: &mut Vec<u8>) -> bool {
    let ecn: Ecn = t.ecn;
    // The segment fits: its options are ours, its payload at most the MSS.
    let header = ip::Header { ecn, ..header };
    let done = if offload {
        header.emit_tcp_offloaded(&t.segment, out)
    } else {
        header.emit_tcp(&t.segment, out)
    };
    done.is_ok()
}
