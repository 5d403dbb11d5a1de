//! One TCP connection as a program: it sends its input and outputs what arrives.

use std::collections::VecDeque;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use gargalo_host::{ConnectionId, Host, HostEvent, ListenerId, SocketOptions};
use gargalo_units::{Duration, Instant};

use crate::application::{Application, Outcome, Output};

/// Most bytes output at once.
const PIECE: usize = 128 << 10;
/// Time between two progress lines.
const PROGRESS: Duration = Duration::from_secs(1);

/// The side that opens the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// This host, to this address.
    To(SocketAddr),
    /// The peer, to one of these local addresses; only the first connection is accepted.
    From(Vec<SocketAddr>),
}

/// How a connection ends, and what is reported meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// The input is finite: it is sent completely even if the peer has closed its direction. Off for interactive
    /// input.
    pub waits_for_input: bool,
    /// The end of the input closes our direction. Otherwise that stays open until the peer closes its own: some
    /// servers treat a closed direction as a client that has left.
    pub closes_at_end: bool,
    /// A line each second with the amount transferred.
    pub tells_progress: bool,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            waits_for_input: true,
            closes_at_end: true,
            tells_progress: false,
        }
    }
}

/// Sends its input and outputs what arrives, until both directions are closed. The end of the input closes only our
/// direction.
#[derive(Debug)]
pub struct Connect {
    opening: Opening,
    options: SocketOptions,
    habits: Habits,
    listeners: Vec<ListenerId>,
    connection: Option<ConnectionId>,
    is_open: bool,
    /// Input that the send buffer did not accept.
    pending: Bytes,
    input_over: bool,
    is_finished: bool,
    peer_closed: bool,
    /// The connection is over, with the reason if it failed.
    closed: Option<Option<gargalo_tcp::Error>>,
    opened_at: Instant,
    reported_at: Instant,
    sent: u64,
    received: u64,
    reported: (u64, u64),
    output: VecDeque<Output>,
    outcome: Option<Outcome>,
}

impl Connect {
    /// Creates the program for one connection.
    pub fn new(opening: Opening, options: SocketOptions, habits: Habits) -> Self {
        Self {
            opening,
            options,
            habits,
            listeners: Vec::new(),
            connection: None,
            is_open: false,
            pending: Bytes::new(),
            input_over: false,
            is_finished: false,
            peer_closed: false,
            closed: None,
            opened_at: Instant::ZERO,
            reported_at: Instant::ZERO,
            sent: 0,
            received: 0,
            reported: (0, 0),
            output: VecDeque::new(),
            outcome: None,
        }
    }

    fn say(&mut self, text: String) {
        self.output.push_back(Output::Err(text + "\n"));
    }

    fn fail(&mut self, why: String) {
        self.outcome.get_or_insert(Outcome::Failed(why));
    }

    fn on_open(&mut self, host: &Host, now: Instant, id: ConnectionId) {
        self.is_open = true;
        (self.opened_at, self.reported_at) = (now, now);
        if let (Some(local), Some(remote)) = (host.local_addr(id), host.remote_addr(id)) {
            let congestion = self.options.congestion.name();
            self.say(format!("connected: {local} to {remote} ({congestion})"));
        }
    }

    /// Writes the rest of the input, and closes at its end.
    fn push(&mut self, host: &mut Host, now: Instant) {
        let Some(id) = self.connection.filter(|_| self.is_open) else {
            return;
        };
        if !self.pending.is_empty() {
            let taken = host.write(id, self.pending.clone());
            self.pending = self.pending.slice(taken..);
            self.sent += taken as u64;
        }
        let may_close = self.habits.closes_at_end || self.peer_closed;
        if self.input_over && self.pending.is_empty() && may_close && !self.is_finished {
            self.is_finished = true;
            host.close(now, id);
        }
    }

    /// Ends the program when the connection is over and everything was output.
    fn settle(&mut self, host: &mut Host, now: Instant) {
        let Some(id) = self.connection else { return };
        let unread = host.endpoint(id).map_or(0, |e| e.readable());
        if unread > 0 || self.outcome.is_some() {
            return;
        }
        if self.peer_closed && !self.habits.waits_for_input && !self.input_over {
            self.input_over = true;
            self.push(host, now);
        }
        let Some(error) = self.closed else { return };
        self.tell_end(host, now);
        host.release(id);
        match error {
            None => self.outcome = Some(Outcome::Done),
            Some(e) if !self.is_open => self.fail(format!("unable to connect: {e}")),
            Some(e) => self.fail(e.to_string()),
        }
    }

    /// Bytes that the peer acknowledged, without those in the send buffer.
    fn delivered(&self, host: &Host) -> u64 {
        let waiting = self
            .connection
            .and_then(|id| host.endpoint(id))
            .map_or(0, |e| e.unacknowledged());
        self.sent.saturating_sub(waiting)
    }

    fn tell_progress(&mut self, host: &Host, now: Instant) {
        let seconds = now.saturating_since(self.reported_at).as_secs_f64();
        let totals = (self.delivered(host), self.received);
        let line = format!(
            "{:6.1} s  sent {} at {}, received {} at {}",
            now.saturating_since(self.opened_at).as_secs_f64(),
            amount(totals.0),
            rate(totals.0 - self.reported.0.min(totals.0), seconds),
            amount(totals.1),
            rate(totals.1 - self.reported.1, seconds),
        );
        self.say(line);
        (self.reported, self.reported_at) = (totals, now);
    }

    fn tell_end(&mut self, host: &Host, now: Instant) {
        if !self.is_open {
            return;
        }
        let seconds = now.saturating_since(self.opened_at).as_secs_f64();
        let delivered = self.delivered(host);
        let stats = self
            .connection
            .and_then(|id| host.endpoint(id))
            .map(|e| e.stats())
            .unwrap_or_default();
        self.say(format!(
            "closed after {seconds:.3} s: {delivered} bytes sent ({}), {} received ({}), {} segments repeated",
            rate(delivered, seconds),
            self.received,
            rate(self.received, seconds),
            stats.sender.retransmitted_packets,
        ));
    }
}

/// Formats a number of bytes, as "12.3 MB".
fn amount(bytes: u64) -> String {
    decimal(bytes as f64, "B")
}

/// Formats a mean rate, as "12.3 Mbit/s".
fn rate(bytes: u64, seconds: f64) -> String {
    if seconds > 0.0 {
        decimal(bytes as f64 * 8.0 / seconds, "bit/s")
    } else {
        "0 bit/s".to_owned()
    }
}

fn decimal(mut value: f64, unit: &str) -> String {
    let mut prefixes = ["", "k", "M", "G", "T"].into_iter().peekable();
    let mut prefix = prefixes.next().unwrap_or_default();
    while value >= 999.5 && prefixes.peek().is_some() {
        value /= 1000.0;
        prefix = prefixes.next().unwrap_or_default();
    }
    let digits = match value {
        v if prefix.is_empty() || v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {prefix}{unit}")
}

impl Application for Connect {
    fn start(&mut self, host: &mut Host, now: Instant) {
        match self.opening.clone() {
            Opening::To(remote) => match host.connect(now, None, remote, &self.options) {
                Ok(id) => self.connection = Some(id),
                Err(e) => self.fail(format!("unable to connect: {e}")),
            },
            Opening::From(locals) => {
                for local in locals {
                    match host.listen(local, self.options.clone()) {
                        Ok(id) => self.listeners.push(id),
                        Err(e) => self.fail(format!("unable to listen on {local}: {e}")),
                    }
                }
            }
        }
    }

    fn on_event(&mut self, host: &mut Host, now: Instant, event: HostEvent) {
        match event {
            HostEvent::Accepted { connection, .. } if self.connection.is_none() => {
                self.connection = Some(connection);
                self.on_open(host, now, connection);
                for id in self.listeners.drain(..) {
                    host.close_listener(id);
                }
            }
            HostEvent::Accepted { connection, .. } => {
                host.abort(now, connection);
                host.release(connection);
            }
            HostEvent::Connected(id) if Some(id) == self.connection => self.on_open(host, now, id),
            HostEvent::PeerClosed(id) if Some(id) == self.connection => self.peer_closed = true,
            HostEvent::Closed { id, error } if Some(id) == self.connection => {
                self.closed = Some(error);
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.habits.tells_progress && self.is_open).then_some(self.reported_at + PROGRESS)
    }

    fn handle_timeout(&mut self, host: &mut Host, now: Instant) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.tell_progress(host, now);
        }
    }

    fn turn(&mut self, host: &mut Host, now: Instant) {
        self.push(host, now);
        self.settle(host, now);
    }

    fn interrupt(&mut self, host: &mut Host, now: Instant) {
        self.tell_end(host, now);
        if let Some(id) = self.connection {
            host.abort(now, id);
        }
        self.fail("interrupted".to_owned());
    }

    fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.output.pop_front()
    }

    fn input_room(&self, host: &Host) -> usize {
        match self.connection {
            Some(id) if self.is_open && self.pending.is_empty() && !self.input_over => {
                usize::try_from(host.write_room(id)).unwrap_or(usize::MAX)
            }
            _ => 0,
        }
    }

    fn on_input(&mut self, host: &mut Host, now: Instant, data: Option<Bytes>) {
        match data {
            Some(data) => self.pending = data,
            None => self.input_over = true,
        }
        self.push(host, now);
    }

    fn poll_data(&mut self, host: &mut Host, _now: Instant) -> Option<Bytes> {
        let id = self.connection?;
        let first = host.read(id, PIECE as u64)?;
        let mut piece = first.clone();
        // One large piece costs less to hand over than many small ones.
        if host.endpoint(id).is_some_and(|e| e.readable() > 0) && first.len() < PIECE {
            let mut joined = BytesMut::with_capacity(PIECE);
            joined.extend_from_slice(&first);
            while joined.len() < PIECE
                && let Some(next) = host.read(id, (PIECE - joined.len()) as u64)
            {
                joined.extend_from_slice(&next);
            }
            piece = joined.freeze();
        }
        self.received += piece.len() as u64;
        Some(piece)
    }
}
