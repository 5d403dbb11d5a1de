//! MPTCP options of segments to send (RFC 8684 §3.3).

use gargalo_wire::mptcp::{CapableKeys, Dss, Mapping as WireMapping, MptcpOption};
use gargalo_wire::tcp::{Flags, Segment};

use super::reading::checksum;
use super::{Connection, FallbackNotice, Mode, Transmit};
use crate::DataNumbers;
use crate::mapping::{Mapping, number};
use crate::send::Fin;
use crate::subflow::Origin;

impl Connection {
    /// Adds the MPTCP options to a segment of subflow `i`.
    #[inline]
    pub(super) fn add_options(&mut self, i: usize, t: gargalo_tcp::Transmit) -> Transmit {
        let mut segment = t.segment;
        let option = self.option_for(i, &segment);
        if let Some(option) = option {
            let mut list = self.spare_options.pop().unwrap_or_default();
            list.replace(option);
            segment.options.mptcp = Some(list);
            if !segment.options.sack.is_empty() {
                segment.options.fit();
            }
        }
        let s = &self.subflows[i];
        Transmit {
            addresses: s.addresses,
            gateway: s.gateway,
            segment,
            ecn: t.ecn,
        }
    }

    #[inline]
    fn option_for(&mut self, i: usize, segment: &Segment) -> Option<MptcpOption> {
        if segment.flags.intersects(Flags::RST | Flags::SYN) {
            return self.option_of_control(i, segment);
        }
        match self.mode {
            Mode::Opening => None,
            Mode::Plain => self
                .infinite_mapping(i, segment)
                .or_else(|| self.fallback_ack(i, segment)),
            Mode::Multipath => self.signal(i, segment),
        }
    }

    fn option_of_control(&mut self, i: usize, segment: &Segment) -> Option<MptcpOption> {
        if segment.flags.contains(Flags::RST) {
            return self.subflows[i].outbox.reset_options.clone();
        }
        match self.subflows[i].origin {
            Origin::Initial => self.capable_of_syn(segment.flags.contains(Flags::ACK)),
            Origin::OwnJoin | Origin::PeerJoin => self.join_of_syn(i),
        }
    }

    /// Options of a segment of an open connection.
    #[inline]
    fn signal(&mut self, i: usize, segment: &Segment) -> Option<MptcpOption> {
        let s = &self.subflows[i];
        let data = !segment.payload.is_empty();
        if !s.confirmed {
            return if data { None } else { self.join_of_ack(i) };
        }
        let mapping = if data {
            let at = s.endpoint.sent_position(segment.seq)?;
            s.sent.find(at).copied()
        } else {
            None
        };
        let fin = !data && self.send.fin == Fin::Sent;
        if !self.handshake.confirmed && self.is_client && s.origin == Origin::Initial {
            // Until the peer is known to have the keys, the first data carries them (RFC 8684 §3.1). There is no room
            // for a DATA_FIN beside them: it follows in a packet of its own.
            let first = mapping.is_some_and(|m| m.subflow == 0);
            if first || !(data || (fin && self.handshake.keys_sent)) {
                self.handshake.keys_sent = true;
                self.subflows[i].outbox.ack_wanted |= fin;
                return self.capable_with_keys(mapping);
            }
        }
        let peer = self.handshake.peer?;
        self.subflows[i].outbox.data_ack = self.receive.next();
        let base = peer.idsn().wrapping_add(1);
        // A segment that was sent when DATA_ACKs were short has no room for a long one.
        let fits = segment.payload.len() <= self.subflows[i].endpoint.mss();
        let long = self.has_long_acks() && fits;
        Some(MptcpOption::Dss(Dss {
            data_fin: fin,
            data_ack: Some(number(self.receive.next() as i64, base, long)),
            mapping: if fin {
                Some(self.mapping_of_fin())
            } else {
                mapping.map(|m| self.wire(&m))
            },
        }))
    }

    /// MP_CAPABLE of the third packet of the handshake or of the first data.
    fn capable_with_keys(&self, mapping: Option<Mapping>) -> Option<MptcpOption> {
        let (sender, receiver) = (self.handshake.own.get(), self.handshake.peer?.get());
        Some(MptcpOption::Capable {
            version: 1,
            flags: self.capable_flags(),
            keys: match mapping {
                None => CapableKeys::Both { sender, receiver },
                Some(m) => CapableKeys::BothAndData {
                    sender,
                    receiver,
                    length: m.len as u16,
                    checksum: m.checksum,
                },
            },
        })
    }

    /// DATA_ACKs have 8 octets: the peer's data sequence numbers have (RFC 8684 §3.3.2), or it is set.
    pub(super) fn has_long_acks(&self) -> bool {
        self.handshake.long_acks || self.config.options.data_acks == DataNumbers::Long
    }

    /// Bytes reserved for options in each data segment: DSS with mapping and DATA_ACK, rounded up to 32-bit words.
    pub(super) fn reserved(&self) -> u16 {
        let octets = |long: bool| if long { 8 } else { 4 };
        let ack = octets(self.has_long_acks());
        let mapping = octets(self.config.options.data_numbers == DataNumbers::Long) + 6;
        let sum = if self.handshake.checksum { 2 } else { 0 };
        u16::next_multiple_of(4 + ack + mapping + sum, 4)
    }

    /// Data sequence number of position 0 of what we send.
    pub(super) fn own_base(&self) -> u64 {
        self.handshake.own.idsn().wrapping_add(1)
    }

    #[inline]
    fn wire(&self, m: &Mapping) -> WireMapping {
        let long = self.config.options.data_numbers == DataNumbers::Long;
        WireMapping {
            data_seq: number(m.data, self.own_base(), long),
            // The first byte after the SYN has number 1.
            subflow_seq: (m.subflow as u32).wrapping_add(1),
            length: m.len as u16,
            checksum: m.checksum,
        }
    }

    /// DATA_FIN without data: one byte of sequence space at subflow number 0 (RFC 8684 §3.3.3).
    fn mapping_of_fin(&self) -> WireMapping {
        let at = self.send.end as i64;
        let long = self.config.options.data_numbers == DataNumbers::Long;
        let sum = || checksum(self.own_base().wrapping_add(at as u64), 0, 1, &[]);
        WireMapping {
            data_seq: number(at, self.own_base(), long),
            subflow_seq: 0,
            length: 1,
            checksum: self.handshake.checksum.then(sum),
        }
    }

    /// DATA_ACK for a peer that may not know of the fallback, until an infinite mapping has informed it.
    fn fallback_ack(&self, i: usize, segment: &Segment) -> Option<MptcpOption> {
        let announced = self.subflows[i].acked >= self.fallback.infinite_until;
        // A FIN already shows that this is plain TCP.
        let apart = !segment.payload.is_empty() || segment.flags.contains(Flags::FIN);
        if self.fallback.notice == FallbackNotice::None || announced || apart {
            return None;
        }
        let base = self.handshake.peer?.idsn().wrapping_add(1);
        Some(MptcpOption::Dss(Dss {
            data_fin: false,
            data_ack: Some(number(
                self.receive.next() as i64,
                base,
                self.has_long_acks(),
            )),
            mapping: None,
        }))
    }

    /// The infinite mapping: after a broken mapping the first data announces that the rest follows without mappings
    /// (RFC 8684 §3.7).
    fn infinite_mapping(&self, i: usize, segment: &Segment) -> Option<MptcpOption> {
        let s = &self.subflows[i];
        if self.fallback.infinite_until == 0 || segment.payload.is_empty() {
            return None;
        }
        let at = s.endpoint.sent_position(segment.seq)?;
        if s.acked >= self.fallback.infinite_until || at + 1 < self.fallback.infinite_until {
            return None;
        }
        let m = *s.sent.find(at)?;
        let mut mapping = self.wire(&m);
        mapping.length = 0;
        mapping.checksum = self.handshake.checksum.then_some(0);
        Some(MptcpOption::Dss(Dss {
            data_fin: false,
            data_ack: None,
            mapping: Some(mapping),
        }))
    }
}
