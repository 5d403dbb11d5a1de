//! Processing of received datagrams: which connection or socket they are for.

use bytes::Bytes;
use gargalo_units::{Ecn, Instant, Seq};
use gargalo_wire::ParseError;
use gargalo_wire::ip::{Datagram, Header, Transport, Verify};
use gargalo_wire::tcp::{Flags, Segment};

use crate::Host;
use crate::config::is_unicast;
use crate::connection::{Origin, Tuple};
use crate::icmp::{ICMP, ICMPV6};

impl Host {
    /// Processes a received IP datagram, valid or not.
    pub fn handle(&mut self, now: Instant, datagram: &[u8]) {
        self.handle_unless(now, datagram, Verify::All);
    }

    /// Like [`handle`](Self::handle) for a datagram whose checksums the device has verified, or that has none
    /// because it did not leave the machine. It may be longer than the MTU if a device has merged segments of one
    /// connection.
    pub fn handle_verified(&mut self, now: Instant, datagram: &[u8]) {
        self.handle_unless(now, datagram, Verify::Nothing);
    }

    /// Like [`handle_verified`](Self::handle_verified), but without a copy of the payload: `datagram`'s memory is
    /// kept until all of it was read.
    pub fn handle_shared(&mut self, now: Instant, datagram: &Bytes) {
        let parsed = Datagram::parse_shared(datagram, Verify::Nothing);
        self.handle_parsed(now, parsed, datagram);
    }

    fn handle_unless(&mut self, now: Instant, datagram: &[u8], verify: Verify) {
        self.handle_parsed(now, Datagram::parse(datagram, verify), datagram);
    }

    #[inline]
    fn handle_parsed(&mut self, now: Instant, parsed: Result<Datagram, ParseError>, bytes: &[u8]) {
        self.now = self.now.max(now);
        self.stats.received += 1;
        match parsed {
            Ok(d) => self.on_datagram(d, bytes),
            Err(ParseError::BadChecksum { .. }) => self.stats.bad_checksums += 1,
            Err(ParseError::Fragment) => self.stats.fragments += 1,
            Err(_) => self.stats.malformed += 1,
        }
    }

    fn on_datagram(&mut self, datagram: Datagram, bytes: &[u8]) {
        let addresses = datagram.header.addresses;
        if !self.config.addresses.contains(&addresses.dst()) {
            self.stats.not_ours += 1;
            return;
        }
        let from = addresses.src();
        if !is_unicast(&from) || self.config.addresses.contains(&from) {
            self.stats.bad_sources += 1;
            return;
        }
        match datagram.transport {
            Transport::Tcp(segment) => self.on_tcp(&datagram.header, segment),
            Transport::Udp(udp) => self.on_udp(&datagram.header, &udp, bytes),
            Transport::Other { protocol, payload }
                if protocol
                    == if addresses.src().is_ipv4() {
                        ICMP
                    } else {
                        ICMPV6
                    } =>
            {
                self.on_icmp(&datagram.header, &payload);
            }
            Transport::Other { .. } => self.stats.unknown_protocols += 1,
        }
    }

    #[inline]
    fn on_tcp(&mut self, header: &Header, segment: Segment) {
        let tuple = Tuple {
            addresses: header.addresses.reversed(),
            local_port: segment.dst_port,
            remote_port: segment.src_port,
        };
        let Some(slot) = self.table.find(&tuple) else {
            self.on_unknown_segment(&tuple, segment, header.ecn, None);
            return;
        };
        if segment.flags.contains(Flags::SYN)
            && let Some(last) = self.end_time_wait_for(slot, &tuple, &segment)
        {
            self.on_unknown_segment(&tuple, segment, header.ecn, Some(last));
        } else {
            self.on_segment(slot, &tuple, segment, header.ecn);
        }
    }

    #[inline]
    pub(crate) fn on_segment(&mut self, slot: u32, tuple: &Tuple, segment: Segment, ecn: Ecn) {
        let now = self.now;
        let Some(c) = self.table.slot_mut(slot) else {
            return;
        };
        if let Origin::HalfOpen(listener) = c.origin
            && segment.flags.contains(Flags::ACK)
            && !segment.flags.contains(Flags::RST)
            && !self.listeners.has_room(listener, self.config.accept_queue)
        {
            // Dropped as if lost: the peer will retransmit.
            self.stats.dropped_by_accept_queue += 1;
            return;
        }
        if c.is_ready && c.transport.owes_ack() {
            // The driver passed several datagrams at once; an acknowledgement for an earlier one is sent
            // separately, as [`gargalo_tcp::Endpoint`] requires.
            self.flush_one(slot);
        }
        let is_answer = segment.flags.contains(Flags::SYN | Flags::ACK);
        if let Some(c) = self.table.slot_mut(slot) {
            c.transport.handle(now, tuple, segment, ecn);
        }
        if is_answer {
            self.keep_cookie(slot);
        }
        self.on_changed(slot);
    }

    /// Removes a connection in TIME-WAIT if the received SYN may replace it (RFC 6191 §2, RFC 9293 §3.10.7.4);
    /// returns the sequence number that it reached.
    fn end_time_wait_for(&mut self, slot: u32, tuple: &Tuple, syn: &Segment) -> Option<Seq> {
        let wanted = self.joined_by(syn).is_some() || self.listeners.find(&tuple.local()).is_some();
        let c = self.table.slot_mut(slot)?;
        let endpoint = c.transport.endpoint(tuple)?;
        if !wanted || !endpoint.may_be_succeeded_by(syn) {
            return None;
        }
        let last = c.transport.end_time_wait_of(tuple);
        self.stats.time_wait_reused += 1;
        self.on_changed(slot);
        last
    }

    /// Processes a segment that belongs to no connection; `last` is the last sequence number of a connection that
    /// it succeeds.
    fn on_unknown_segment(&mut self, tuple: &Tuple, segment: Segment, ecn: Ecn, last: Option<Seq>) {
        self.stats.strangers += 1;
        let flags = segment.flags;
        if flags.contains(Flags::RST) {
            return;
        }
        if let Some(slot) = self.joined_by(&segment) {
            self.on_segment(slot, tuple, segment, ecn);
            return;
        }
        match self.listeners.find(&tuple.local()) {
            Some(listener) if flags.contains(Flags::SYN) && !flags.contains(Flags::ACK) => {
                if !self.refuse_join(listener, tuple, &segment) {
                    self.on_syn(listener, tuple, segment, ecn, last);
                }
            }
            Some(listener) if flags.contains(Flags::ACK) && !flags.contains(Flags::SYN) => {
                self.on_cookie(listener, tuple, segment, ecn);
            }
            // Neither SYN nor ACK nor RST: dropped (RFC 9293 §3.10.7.2, fourth).
            Some(_) if !flags.intersects(Flags::SYN | Flags::ACK) => {}
            _ => self.reset_unknown(tuple, &segment),
        }
    }
}
