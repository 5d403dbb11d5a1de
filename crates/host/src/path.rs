//! ICMP errors about connections and sockets, and path MTU discovery.

use gargalo_wire::ip::{self, TCP};

use crate::connection::Tuple;
use crate::icmp::{self, Message, Problem, Quoted};
use crate::{Host, HostConfig};

/// Common MTUs, for routers that do not report theirs (RFC 1191 §7).
const PLATEAUS: [u32; 10] = [
    32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 576, 552, 508,
];

impl Host {
    pub(crate) fn on_icmp(&mut self, header: &ip::Header, bytes: &[u8]) {
        let message = Message::parse(&header.addresses, bytes);
        if message == Message::BadChecksum {
            self.stats.bad_checksums += 1;
            return;
        }
        self.stats.icmp_received += 1;
        match message {
            Message::EchoRequest(rest) => self.on_echo(header, rest),
            Message::Error(problem, quoted) => {
                if self.on_icmp_error(problem, &quoted) {
                    self.stats.icmp_heeded += 1;
                } else {
                    self.stats.icmp_ignored += 1;
                }
            }
            Message::Other | Message::BadChecksum => self.stats.icmp_ignored += 1,
        }
    }

    fn on_echo(&mut self, header: &ip::Header, rest: &[u8]) {
        if !self.echo_limit.admit(self.now) {
            self.stats.icmp_limited += 1;
            return;
        }
        let answer = icmp::echo_reply(&self.answer_to(header), rest);
        if self.send_icmp(answer) {
            self.stats.echo_replies += 1;
        }
    }

    /// Answers a UDP datagram to an unused port.
    pub(crate) fn refuse_udp(&mut self, header: &ip::Header, quoted: &[u8]) {
        if !self.error_limit.admit(self.now) {
            self.stats.icmp_limited += 1;
            return;
        }
        let answer = icmp::port_unreachable(&self.answer_to(header), quoted);
        if self.send_icmp(answer) {
            self.stats.icmp_errors_sent += 1;
        }
    }

    fn answer_to(&self, header: &ip::Header) -> ip::Header {
        ip::Header {
            ttl: self.config.ttl,
            dscp: header.dscp,
            ..ip::Header::new(header.addresses.reversed())
        }
    }

    fn send_icmp(&mut self, message: Option<Vec<u8>>) -> bool {
        let Some(message) = message.filter(|m| m.len() as u64 <= u64::from(self.config.mtu)) else {
            return false;
        };
        if self.outgoing.is_full() {
            self.stats.outgoing_dropped += 1;
            return false;
        }
        self.outgoing.push(message);
        true
    }

    /// Processes an ICMP error; returns whether a connection or socket is concerned.
    fn on_icmp_error(&mut self, problem: Problem, quoted: &Quoted) -> bool {
        if quoted.protocol != TCP {
            return problem == Problem::Port
                && self.on_udp_unreachable(quoted.local(), quoted.remote());
        }
        let tuple = Tuple {
            addresses: quoted.addresses,
            local_port: quoted.src_port,
            remote_port: quoted.dst_port,
        };
        let Some(slot) = self.table.find(&tuple) else {
            return false;
        };
        let Some(c) = self.table.slot_mut(slot) else {
            return false;
        };
        // An off-path attacker does not know the outstanding sequence numbers (RFC 5927 §4.1).
        let endpoint = c.transport.endpoint(&tuple);
        if !endpoint.is_some_and(|e| e.is_outstanding(quoted.seq)) {
            return false;
        }
        match problem {
            Problem::TooBig(mtu) => self.on_too_big(slot, &tuple, mtu, quoted.length),
            Problem::Port | Problem::Hard => {
                c.transport.on_unreachable(self.now, &tuple, true);
                self.on_changed(slot);
                true
            }
            Problem::Soft => {
                c.transport.on_unreachable(self.now, &tuple, false);
                true
            }
        }
    }

    /// RFC 1191 §6, RFC 8201 §4.
    fn on_too_big(&mut self, slot: u32, tuple: &Tuple, reported: u32, length: u32) -> bool {
        let Some(path) = self.table.slot(slot).and_then(|c| c.path(tuple)) else {
            return false;
        };
        if path.keeps_mtu {
            return false;
        }
        if tuple.is_v6() && reported < HostConfig::least_mtu(true) {
            // RFC 8201 §4: no link of IPv6 has so small an MTU.
            return false;
        }
        let reported = match reported {
            // A datagram of the minimum MTU cannot have been too long.
            0 if length <= HostConfig::least_mtu(tuple.is_v6()) => return false,
            0 => {
                let below = PLATEAUS.iter().find(|p| **p < length.min(path.mtu));
                below.copied().unwrap_or(0)
            }
            reported => reported,
        };
        let lowered = self.lower_mtu(slot, tuple, reported);
        self.stats.too_big += u64::from(lowered);
        lowered
    }

    /// Lowers the path MTU; returns whether it changed.
    fn lower_mtu(&mut self, slot: u32, tuple: &Tuple, mtu: u32) -> bool {
        let now = self.now;
        let Some(c) = self.table.slot_mut(slot) else {
            return false;
        };
        let Some(path) = c.path_mut(tuple) else {
            return false;
        };
        let mtu = mtu.max(HostConfig::least_mtu(tuple.is_v6()));
        if mtu >= path.mtu {
            return false;
        }
        path.mtu = mtu;
        let mss = mtu.saturating_sub(tuple.headers());
        let mss = u16::try_from(mss).unwrap_or(u16::MAX);
        c.transport.set_mss(now, tuple, mss);
        self.on_changed(slot);
        true
    }
}
