//! Events and counters of a connection.

use std::collections::VecDeque;

use gargalo_units::Instant;

use crate::{Addresses, ResetReason};

/// Events for the application or a monitor of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection is open.
    Connected,
    /// New data is ready to be read.
    Readable,
    /// There is room in the send buffer again after a write was not accepted in full.
    Writable,
    /// The peer has closed its direction: no data follows the readable data.
    PeerClosed,
    /// Both directions ended in order.
    Closed,
    /// The connection was reset or refused, or its peer is unreachable.
    Reset,
    /// The connection was given up: no answer, or no subflow.
    TimedOut,
    /// The peer or a middlebox does not support MPTCP: the connection continues as plain TCP (RFC 8684 §3.7).
    FellBack,
    /// A subflow can carry data.
    SubflowOpened {
        /// Number of the subflow, in the order of opening.
        id: u32,
        /// Local and remote address and port of the subflow.
        addresses: Addresses,
    },
    /// A subflow has ended.
    SubflowClosed {
        /// Number of the subflow, in the order of opening.
        id: u32,
        /// Local and remote address and port of the subflow.
        addresses: Addresses,
    },
}

impl Event {
    /// The event of the byte stream as plain TCP has it; `None`: it is one of subflows or of the protocol.
    pub const fn stream(self) -> Option<gargalo_tcp::Event> {
        Some(match self {
            Self::Connected => gargalo_tcp::Event::Connected,
            Self::Readable => gargalo_tcp::Event::Readable,
            Self::Writable => gargalo_tcp::Event::Writable,
            Self::PeerClosed => gargalo_tcp::Event::PeerClosed,
            Self::Closed => gargalo_tcp::Event::Closed,
            Self::Reset => gargalo_tcp::Event::Reset,
            Self::TimedOut => gargalo_tcp::Event::TimedOut,
            Self::FellBack | Self::SubflowOpened { .. } | Self::SubflowClosed { .. } => {
                return None;
            }
        })
    }
}

/// Pending events: first those about subflows, then those about the stream, each once and in the order of a
/// connection's life.
#[derive(Debug, Default)]
pub(crate) struct Events {
    stream: u16,
    subflows: VecDeque<Event>,
}

const STREAM: [Event; 8] = [
    Event::Connected,
    Event::FellBack,
    Event::Readable,
    Event::Writable,
    Event::PeerClosed,
    Event::Closed,
    Event::Reset,
    Event::TimedOut,
];

impl Events {
    pub(crate) fn push(&mut self, event: Event) {
        match STREAM.iter().position(|e| *e == event) {
            Some(i) => self.stream |= 1 << i,
            None => self.subflows.push_back(event),
        }
    }
    /// The same as `push(Event::Readable)`, for the most frequent event.
    #[inline]
    pub(crate) fn readable(&mut self) {
        self.stream |= 1 << 2;
    }
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Event> {
        if let Some(event) = self.subflows.pop_front() {
            return Some(event);
        }
        if self.stream == 0 {
            return None;
        }
        let i = self.stream.trailing_zeros();
        self.stream &= self.stream - 1;
        Some(STREAM[i as usize])
    }
}

/// Why a segment was assigned to a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Data that is sent for the first time.
    New,
    /// A reinjection: its subflow timed out or ended, or the data was not acknowledged.
    Reinjected,
    /// An opportunistic retransmission on a faster path, because it blocked the window.
    Opportunistic,
    /// A copy for a redundant scheduler, or a probe of a path.
    Copy,
}

impl Carried {
    /// One word for the events table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Reinjected => "reinjected",
            Self::Opportunistic => "opportunistic",
            Self::Copy => "copy",
        }
    }
}

/// An event of a connection, for the table of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A segment was assigned to a subflow.
    Scheduled {
        /// Time of the decision.
        now: Instant,
        /// Number of the subflow that was chosen.
        subflow: u32,
        /// First byte of the stream.
        offset: u64,
        /// Length of the segment in bytes.
        len: u32,
        /// Whether it is new data, or the reason why it is sent again.
        why: Carried,
    },
    /// A subflow timed out; its data is reinjected on others.
    Stale {
        /// Time of the timeout.
        now: Instant,
        /// Number of the subflow.
        subflow: u32,
    },
    /// A subflow was reset by us.
    ResetSubflow {
        /// Time of the reset.
        now: Instant,
        /// Number of the subflow.
        subflow: u32,
        /// Reason of the reset (RFC 8684 §3.6).
        reason: ResetReason,
    },
    /// A subflow may carry less for a while, because it blocked the window.
    Penalised {
        /// Time of the decision.
        now: Instant,
        /// Number of the subflow.
        subflow: u32,
        /// Bytes it may have in flight.
        cap: u64,
    },
}

impl Notice {
    /// One word for the events table.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Scheduled { .. } => "scheduled",
            Self::Stale { .. } => "subflow-stale",
            Self::ResetSubflow { .. } => "subflow-reset",
            Self::Penalised { .. } => "subflow-penalised",
        }
    }

    /// Further values of the event, as `key=value`.
    pub fn detail(&self) -> String {
        match self {
            Self::Scheduled {
                subflow,
                offset,
                len,
                why,
                ..
            } => format!(
                "subflow={subflow} offset={offset} bytes={len} why={}",
                why.name()
            ),
            Self::Stale { subflow, .. } => format!("subflow={subflow}"),
            Self::ResetSubflow {
                subflow, reason, ..
            } => format!("subflow={subflow} reason={reason:?}"),
            Self::Penalised { subflow, cap, .. } => format!("subflow={subflow} cap_bytes={cap}"),
        }
    }
}

/// Counters of a connection. Packet counts are those of all subflows, ended ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The sum over all subflows.
    pub tcp: gargalo_tcp::Stats,
    /// Segments assigned to subflows as new data.
    pub new_segments: u64,
    /// Segments assigned again as [`Carried::Reinjected`].
    pub reinjected_segments: u64,
    /// Segments retransmitted on a faster path because they blocked the window.
    pub opportunistic_segments: u64,
    /// Segments sent as [`Carried::Copy`].
    pub copied_segments: u64,
    /// Bytes received at data level more than once, or beyond the window.
    pub duplicate_bytes: u64,
    /// Subflows that were opened, by either side.
    pub subflows_opened: u64,
    /// Joins that were refused: unknown token, wrong authentication, too many.
    pub joins_refused: u64,
    /// Subflows reset because of broken mappings or checksums.
    pub subflows_reset: u64,
    /// Options that were ignored: not authentic, beyond a limit, or about an unknown address.
    pub ignored_options: u64,
    /// Fallback to plain TCP.
    pub fallbacks: u64,
}

/// A subflow at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct SubflowSnapshot {
    /// Its number, in the order of opening.
    pub id: u32,
    /// Local and remote address and port.
    pub addresses: Addresses,
    /// The gateway its packets go to first, if not the usual one.
    pub gateway: Option<std::net::IpAddr>,
    /// State of its endpoint.
    pub state: gargalo_tcp::State,
    /// It is a backup.
    pub backup: bool,
    /// It has timed out and nothing new was acknowledged since.
    pub in_loss: bool,
    /// The state of its sender.
    pub sender: gargalo_tcp::Snapshot,
    /// Counters of its TCP endpoint.
    pub stats: gargalo_tcp::Stats,
    /// Bytes received in order on it, at subflow level.
    pub received_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    #[test]
    fn events_of_subflows_come_first_and_those_of_the_stream_once_each_as_in_its_life() {
        let host = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
        let addresses = Addresses {
            local: host,
            remote: host,
        };
        let opened = |id| Event::SubflowOpened { id, addresses };
        let closed = Event::SubflowClosed { id: 1, addresses };
        let mut events = Events::default();
        assert_eq!(events.pop(), None);
        events.readable();
        for event in STREAM.iter().rev().chain(&STREAM) {
            events.push(*event);
        }
        for event in [opened(1), closed, opened(2)] {
            events.push(event);
        }
        let all: Vec<_> = std::iter::from_fn(|| events.pop()).collect();
        assert_eq!(all[..3], [opened(1), closed, opened(2)]);
        assert_eq!(all[3..], STREAM);
        events.readable();
        assert_eq!((events.pop(), events.pop()), (Some(Event::Readable), None));
    }

    #[test]
    fn the_events_of_a_stream_are_those_of_tcp_and_others_are_none() {
        for event in STREAM {
            let of_tcp = event.stream().map(|e| format!("{e:?}"));
            let expected = (event != Event::FellBack).then(|| format!("{event:?}"));
            assert_eq!(of_tcp, expected);
        }
    }

    #[test]
    fn a_notice_has_a_word_and_its_values_for_the_table_of_events() {
        let (now, subflow) = (Instant::ZERO, 3);
        let scheduled = |why| Notice::Scheduled {
            now,
            subflow,
            offset: 70,
            len: 8,
            why,
        };
        let reason = ResetReason::Middlebox;
        let cap = 500;
        let cases = [
            (
                scheduled(Carried::New),
                "scheduled",
                "subflow=3 offset=70 bytes=8 why=new",
            ),
            (
                scheduled(Carried::Reinjected),
                "scheduled",
                "subflow=3 offset=70 bytes=8 why=reinjected",
            ),
            (
                scheduled(Carried::Opportunistic),
                "scheduled",
                "subflow=3 offset=70 bytes=8 why=opportunistic",
            ),
            (
                scheduled(Carried::Copy),
                "scheduled",
                "subflow=3 offset=70 bytes=8 why=copy",
            ),
            (Notice::Stale { now, subflow }, "subflow-stale", "subflow=3"),
            (
                Notice::ResetSubflow {
                    now,
                    subflow,
                    reason,
                },
                "subflow-reset",
                "subflow=3 reason=Middlebox",
            ),
            (
                Notice::Penalised { now, subflow, cap },
                "subflow-penalised",
                "subflow=3 cap_bytes=500",
            ),
        ];
        for (notice, kind, detail) in cases {
            assert_eq!((notice.kind(), &notice.detail()[..]), (kind, detail));
        }
    }
}
