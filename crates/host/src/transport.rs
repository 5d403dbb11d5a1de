//! The transport of a connection: a TCP endpoint or a Multipath TCP connection, with a common interface.

use std::collections::VecDeque;

use bytes::Bytes;
use gargalo_mptcp::Event;
use gargalo_tcp::{Chunk, Ending, Endpoint, Error, State, Transmit};
use gargalo_units::{Ecn, Instant, Seq};
use gargalo_wire::ip;
use gargalo_wire::tcp::Segment;

use crate::connection::{Connection, Path, Tuple};
use crate::event::Waiting;

/// Maximum number of pending events about subflows.
const MOST_EVENTS: usize = 256;

/// TCP or Multipath TCP.
#[allow(clippy::large_enum_variant)] // every connection is in a box already
#[derive(Debug)]
pub(crate) enum Transport {
    Tcp(Endpoint),
    Mptcp(Box<Multipath>),
}

/// A Multipath TCP connection and its paths.
#[derive(Debug)]
pub(crate) struct Multipath {
    pub(crate) connection: gargalo_mptcp::Connection,
    /// One for each subflow in the table.
    pub(crate) paths: Vec<Path>,
    /// [`gargalo_mptcp::Connection::subflow_changes`] when `paths` were made.
    pub(crate) version: u64,
    /// Subflows may use addresses that the host gets later.
    pub(crate) takes_all: bool,
    /// Events about subflows that wait to be polled.
    pub(crate) subflow_events: VecDeque<Event>,
}

impl Transport {
    pub(crate) fn multipath(connection: gargalo_mptcp::Connection, takes_all: bool) -> Self {
        Self::Mptcp(Box::new(Multipath {
            connection,
            paths: Vec::new(),
            version: u64::MAX,
            takes_all,
            subflow_events: VecDeque::new(),
        }))
    }

    /// The endpoint of a tuple.
    #[inline]
    pub(crate) fn endpoint(&self, tuple: &Tuple) -> Option<&Endpoint> {
        match self {
            Self::Tcp(e) => Some(e),
            Self::Mptcp(m) => m.connection.endpoint(tuple.into()),
        }
    }

    #[inline]
    pub(crate) fn handle(&mut self, now: Instant, tuple: &Tuple, segment: Segment, ecn: Ecn) {
        match self {
            Self::Tcp(e) => e.handle(now, segment, ecn),
            Self::Mptcp(m) => m.connection.handle(now, tuple.into(), segment, ecn),
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Tcp(e) => e.handle_timeout(now),
            Self::Mptcp(m) => m.connection.handle_timeout(now),
        }
    }

    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Tcp(e) => e.poll_timeout(),
            Self::Mptcp(m) => m.connection.poll_timeout(),
        }
    }

    /// Moves its events to the pending events of the connection.
    #[inline]
    pub(crate) fn collect(&mut self, events: &mut Waiting) {
        match self {
            Self::Tcp(e) => {
                while let Some(event) = e.poll_event() {
                    events.add(event.into());
                }
            }
            Self::Mptcp(m) => {
                while let Some(event) = m.connection.poll_event() {
                    match Waiting::of(&event) {
                        Some(waiting) => events.add(waiting),
                        None if m.subflow_events.len() < MOST_EVENTS => {
                            m.subflow_events.push_back(event)
                        }
                        None => {}
                    }
                }
            }
        }
    }

    #[inline]
    pub(crate) fn state(&self) -> State {
        match self {
            Self::Tcp(e) => e.state(),
            Self::Mptcp(m) => m.connection.state(),
        }
    }

    /// Whether nothing will be sent any more.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Tcp(e) => e.state() == State::Closed,
            Self::Mptcp(m) => m.connection.is_closed(),
        }
    }

    pub(crate) fn error(&self) -> Option<Error> {
        match self {
            Self::Tcp(e) => e.error(),
            Self::Mptcp(m) => m.connection.error(),
        }
    }

    pub(crate) fn stats(&self) -> gargalo_tcp::Stats {
        match self {
            Self::Tcp(e) => e.stats(),
            Self::Mptcp(m) => m.connection.stats().tcp,
        }
    }

    #[inline]
    pub(crate) fn owes_ack(&self) -> bool {
        match self {
            Self::Tcp(e) => e.owes_ack(),
            Self::Mptcp(m) => m.connection.owes_ack(),
        }
    }

    #[inline]
    pub(crate) fn readable(&self) -> u64 {
        match self {
            Self::Tcp(e) => e.readable(),
            Self::Mptcp(m) => m.connection.readable(),
        }
    }

    pub(crate) fn unacknowledged(&self) -> u64 {
        match self {
            Self::Tcp(e) => e.unacknowledged(),
            Self::Mptcp(m) => m.connection.unacknowledged(),
        }
    }

    pub(crate) fn write(&mut self, data: Bytes, ending: Ending) -> usize {
        match self {
            Self::Tcp(e) => e.write_with(data, ending),
            Self::Mptcp(m) => m.connection.write(data),
        }
    }

    pub(crate) fn write_room(&self) -> u64 {
        match self {
            Self::Tcp(e) => e.write_room(),
            Self::Mptcp(m) => m.connection.write_room(),
        }
    }

    #[inline]
    pub(crate) fn read(&mut self, max: u64) -> Option<Chunk> {
        match self {
            Self::Tcp(e) => e.read(max),
            Self::Mptcp(m) => m.connection.read(max),
        }
    }

    pub(crate) fn close(&mut self, now: Instant) {
        match self {
            Self::Tcp(e) => e.close(now),
            Self::Mptcp(m) => m.connection.close(now),
        }
    }

    /// Ends the connection because of data that nobody will read.
    pub(crate) fn refuse_data(&mut self, now: Instant) {
        match self {
            Self::Tcp(e) => e.refuse_data(now),
            Self::Mptcp(m) => m.connection.abort(now),
        }
    }

    pub(crate) fn abort(&mut self, now: Instant) {
        match self {
            Self::Tcp(e) => e.abort(now),
            Self::Mptcp(m) => m.connection.abort(now),
        }
    }

    pub(crate) fn set_mss(&mut self, now: Instant, tuple: &Tuple, mss: u16) {
        match self {
            Self::Tcp(e) => e.set_mss(now, mss),
            Self::Mptcp(m) => m.connection.set_mss(now, tuple.into(), mss),
        }
    }

    pub(crate) fn on_unreachable(&mut self, now: Instant, tuple: &Tuple, hard: bool) {
        match self {
            Self::Tcp(e) => e.on_unreachable(hard),
            Self::Mptcp(m) => m.connection.on_unreachable(now, tuple.into(), hard),
        }
    }

    /// Ends TIME-WAIT early.
    pub(crate) fn end_time_wait(&mut self) {
        match self {
            Self::Tcp(e) => {
                e.end_time_wait();
            }
            Self::Mptcp(m) => {
                for path in &m.paths {
                    m.connection.end_time_wait((&path.tuple).into());
                }
            }
        }
    }

    /// Ends TIME-WAIT of one tuple; returns the sequence number that it reached.
    pub(crate) fn end_time_wait_of(&mut self, tuple: &Tuple) -> Option<Seq> {
        match self {
            Self::Tcp(e) => e.end_time_wait(),
            Self::Mptcp(m) => m.connection.end_time_wait(tuple.into()),
        }
    }
}

impl Connection {
    /// The next segment, with its header, or the tuple of one that belongs to no subflow.
    #[inline]
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
    ) -> Option<(Result<ip::Header, Tuple>, Transmit)> {
        let m = match &mut self.transport {
            Transport::Tcp(e) => {
                let t = e.poll_transmit(now)?;
                return Some((Ok(self.path.header), t));
            }
            Transport::Mptcp(m) => m,
        };
        loop {
            let t = m.connection.poll_transmit(now)?;
            let Some(tuple) = Tuple::of(&t.addresses) else {
                continue; // the addresses are of two families
            };
            let own = m.paths.iter().find(|p| p.tuple == tuple);
            let transmit = Transmit {
                segment: t.segment,
                ecn: t.ecn,
            };
            return Some((own.map(|p| p.header).ok_or(tuple), transmit));
        }
    }
}
