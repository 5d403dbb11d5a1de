//! Programs on a user-space host: they have no clock, socket or thread of their own.

use bytes::Bytes;
use gargalo_host::{Host, HostEvent};
use gargalo_units::Instant;

/// A program on a [`Host`].
///
/// A driver calls [`start`](Self::start) once, [`on_event`](Self::on_event) for each event of the host,
/// [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) has passed, and
/// [`turn`](Self::turn) after any of these; then it sends the host's datagrams and prints what
/// [`poll_output`](Self::poll_output) returns. The program ends when there is an [`outcome`](Self::outcome).
pub trait Application {
    /// Starts the program: the host is up.
    fn start(&mut self, host: &mut Host, now: Instant);
    /// Handles an event of the host.
    fn on_event(&mut self, host: &mut Host, now: Instant, event: HostEvent);
    /// When [`handle_timeout`](Self::handle_timeout) is due.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Handles the timers that are due; calling it early is allowed.
    fn handle_timeout(&mut self, host: &mut Host, now: Instant);
    /// Called once after every batch of events, for example to fill send buffers.
    fn turn(&mut self, _host: &mut Host, _now: Instant) {}
    /// Asks the program to end; it may still send a last message to its peer.
    fn interrupt(&mut self, host: &mut Host, now: Instant);
    /// How it ended; `None` while it runs.
    fn outcome(&self) -> Option<&Outcome>;
    /// Returns the next text for the user.
    fn poll_output(&mut self) -> Option<Output> {
        None
    }
    /// How many bytes of standard input it can take now.
    fn input_room(&self, _host: &Host) -> usize {
        0
    }
    /// Takes a piece of standard input, at most [`input_room`](Self::input_room) bytes; `None` at its end.
    fn on_input(&mut self, _host: &mut Host, _now: Instant, _data: Option<Bytes>) {}
    /// Returns data for standard output, called only when there is room for it.
    fn poll_data(&mut self, _host: &mut Host, _now: Instant) -> Option<Bytes> {
        None
    }
}

/// A text for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Text for standard output.
    Out(String),
    /// Text for standard error.
    Err(String),
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It completed its task.
    Done,
    /// It failed, for the reason in this sentence.
    Failed(String),
}
