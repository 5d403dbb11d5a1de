//! A toy stack for Gargalo: a handshake of one round trip, numbered packets, cumulative acknowledgements, go-back-N and
//! one congestion control, a window that never changes. It is not QUIC, but it has every part that a wrapper needs.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use gargalo_plugin::stack::{About, Config, EarlyData, Event, Path, Stack, Stats, host};

const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const DATA: u8 = 3;
const ACK: u8 = 4;
const BYE: u8 = 5;
/// Kind, end of the stream, number, stream.
const HEADER: usize = 18;
const PAYLOAD: usize = 1000;
/// Packets with data on their way; the ends of streams are always taken.
const WINDOW: usize = 256;

/// A packet that is sent and not acknowledged: a piece of a stream.
struct Packet {
    stream: u64,
    data: Vec<u8>,
    fin: bool,
    sent: Option<Duration>,
}

struct Toy {
    local: SocketAddr,
    remote: SocketAddr,
    is_server: bool,
    /// The client's HELLO has come, and is not answered yet.
    knows_peer: bool,
    is_open: bool,
    owes_ack: bool,
    owes_bye: bool,
    is_over: bool,
    /// From the oldest packet that is not acknowledged, whose number is `first`.
    packets: VecDeque<Packet>,
    first: u64,
    /// The next packet to send, again or for the first time.
    next: u64,
    /// The next packet to arrive.
    expected: u64,
    rto: Duration,
    srtt: Option<Duration>,
    deadline: Option<Duration>,
    streams: u64,
    counted: Stats,
}

gargalo_plugin::export_stack!(Toy);

impl Toy {
    fn open(&mut self) {
        if !self.is_open {
            self.is_open = true;
            self.deadline = None;
            host::event(Event::Connected(EarlyData::None));
        }
    }

    fn acknowledged(&mut self, now: Duration, until: u64) {
        let end = self.first + self.packets.len() as u64;
        if until <= self.first || until > end {
            return;
        }
        let newest = self
            .packets
            .drain(..(until - self.first) as usize)
            .next_back();
        if let Some(sent) = newest.and_then(|packet| packet.sent) {
            let rtt = now - sent;
            self.srtt = Some(rtt);
            self.rto = 2 * rtt + Duration::from_millis(10);
            host::rtt_sample(rtt);
        }
        self.first = until;
        self.next = self.next.max(until);
        self.deadline = (!self.packets.is_empty()).then(|| now + self.rto);
    }

    /// The kind, the end of a stream, the number and the stream of the next datagram, and its data.
    fn next_datagram(&mut self, now: Duration) -> Option<(u8, bool, u64, u64, &[u8])> {
        if self.owes_bye {
            (self.owes_bye, self.is_over) = (false, true);
            return Some((BYE, false, 0, 0, &[]));
        }
        if self.is_over {
            return None;
        }
        if !self.is_server && !self.is_open {
            if self.deadline.is_none_or(|at| at > now) {
                return None;
            }
            self.deadline = Some(now + self.rto);
            return Some((HELLO, false, 0, 0, &[]));
        }
        if self.is_server && self.knows_peer {
            self.knows_peer = false;
            return Some((WELCOME, false, 0, 0, &[]));
        }
        if self.owes_ack {
            self.owes_ack = false;
            return Some((ACK, false, self.expected, 0, &[]));
        }
        let (number, first) = (self.next, self.first);
        let packet = self.packets.get_mut((number - first) as usize)?;
        let again = u64::from(packet.sent.is_some());
        packet.sent = Some(now);
        self.next += 1;
        if number == first {
            self.deadline = Some(now + self.rto);
        }
        let add = |count: &mut Option<u64>, more| *count = Some(count.unwrap_or(0) + more);
        add(&mut self.counted.sent_packets, 1);
        add(&mut self.counted.sent_bytes, packet.data.len() as u64);
        add(&mut self.counted.retransmitted_packets, again);
        Some((DATA, packet.fin, number, packet.stream, &packet.data))
    }
}

impl Stack for Toy {
    const ABOUT: About = About {
        name: "toy-stack",
        version: "1.0",
        features: 0,
        congestion: &["fixed"],
        specifications: &[],
        tells_unacknowledged: true,
    };

    fn create(config: &Config<'_>, now: Duration) -> Result<Self, String> {
        Ok(Self {
            local: config.local,
            remote: config.remote,
            is_server: config.is_server,
            knows_peer: false,
            is_open: false,
            owes_ack: false,
            owes_bye: false,
            is_over: false,
            packets: VecDeque::new(),
            first: 0,
            next: 0,
            expected: 0,
            rto: 2 * config.initial_rtt,
            srtt: None,
            // A client begins at once.
            deadline: (!config.is_server).then_some(now),
            streams: 0,
            counted: Stats::default(),
        })
    }

    fn datagram_in(&mut self, now: Duration, path: &Path, data: &mut [u8]) {
        // A peer or the network may send anything.
        let Some((header, data)) = data.split_at_checked(HEADER).filter(|_| !self.is_over) else {
            return;
        };
        let number_at = |at: usize| {
            let bytes = header[at..at + 8].try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        let (number, stream) = (number_at(2), number_at(10));
        match header[0] {
            HELLO if self.is_server => {
                self.remote = path.remote;
                self.knows_peer = true;
                self.open();
            }
            WELCOME if !self.is_server => self.open(),
            DATA => {
                self.owes_ack = true;
                // Go-back-N: only the next one.
                if self.is_open && number == self.expected {
                    self.expected += 1;
                    host::received(stream, data, header[1] == 1);
                }
            }
            ACK => self.acknowledged(now, number),
            BYE => {
                self.is_over = true;
                host::event(Event::Closed);
            }
            _ => {}
        }
    }

    fn datagram_out(&mut self, now: Duration, out: &mut [u8]) -> Option<(usize, Path)> {
        if out.len() < HEADER + PAYLOAD {
            return None;
        }
        let path = Path {
            local: self.local,
            remote: self.remote,
            ecn: 0,
        };
        let (kind, fin, number, stream, data) = self.next_datagram(now)?;
        out[0] = kind;
        out[1] = u8::from(fin);
        out[2..10].copy_from_slice(&number.to_le_bytes());
        out[10..18].copy_from_slice(&stream.to_le_bytes());
        out[HEADER..HEADER + data.len()].copy_from_slice(data);
        Some((HEADER + data.len(), path))
    }

    fn next_timer(&mut self) -> Option<Duration> {
        self.deadline.filter(|_| !self.is_over)
    }

    fn timeout(&mut self, now: Duration) {
        // A HELLO is sent again by `datagram_out`.
        if self.is_open && self.deadline.is_some_and(|at| at <= now) {
            self.counted.timeouts = Some(self.counted.timeouts.unwrap_or(0) + 1);
            self.rto *= 2;
            self.deadline = Some(now + self.rto);
            self.next = self.first;
        }
    }

    fn open_stream(&mut self, _now: Duration) -> Option<u64> {
        self.streams += 1;
        // RFC 9000, section 2.1.
        Some(4 * (self.streams - 1) + u64::from(self.is_server))
    }

    fn write(&mut self, _now: Duration, stream: u64, data: &[u8], fin: bool) -> usize {
        let mut taken = 0;
        for piece in data.chunks(PAYLOAD) {
            if self.packets.len() >= WINDOW {
                return taken;
            }
            taken += piece.len();
            self.packets.push_back(Packet {
                stream,
                data: piece.to_vec(),
                fin: false,
                sent: None,
            });
        }
        if fin {
            self.packets.push_back(Packet {
                stream,
                data: Vec::new(),
                fin: true,
                sent: None,
            });
        }
        taken
    }

    fn unacknowledged(&mut self) -> Option<u64> {
        Some(self.packets.len() as u64)
    }

    fn close(&mut self, _now: Duration) {
        self.owes_bye = !self.is_over;
    }

    fn is_over(&mut self) -> bool {
        self.is_over && !self.owes_bye
    }

    fn stats(&mut self) -> Stats {
        let on_their_way = self.next - self.first;
        Stats {
            cwnd: Some((WINDOW * PAYLOAD) as u64),
            in_flight: Some(on_their_way * PAYLOAD as u64),
            srtt: self.srtt,
            phase: Some("fixed".to_owned()),
            ..self.counted.clone()
        }
    }
}
