//! What runs on a user-space host: programs without clock, socket or thread.

use bytes::Bytes;
use gargalo_host::{Host, HostEvent};
use gargalo_units::Instant;

/// A program on a [`Host`].
///
/// A driver calls [`start`](Self::start) once, [`on_event`](Self::on_event) for each event of the host,
/// [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) has passed, and
/// after any of these [`turn`](Self::turn); then it sends what the host has to send and prints what
/// [`poll_output`](Self::poll_output) has to say. It ends when there is an [`outcome`](Self::outcome).
pub trait Application {
    /// The host is up.
    fn start(&mut self, host: &mut Host, now: Instant);
    /// Something happened on the host.
    fn on_event(&mut self, host: &mut Host, now: Instant, event: HostEvent);
    /// When [`handle_timeout`](Self::handle_timeout) is due.
    fn poll_timeout(&self) -> Option<Instant>;
    /// The time has come; calling it early does no harm.
    fn handle_timeout(&mut self, host: &mut Host, now: Instant);
    /// Once after every batch of events: the place to keep send buffers full.
    fn turn(&mut self, _host: &mut Host, _now: Instant) {}
    /// The user wants it to end; it may still say goodbye to its peer.
    fn interrupt(&mut self, host: &mut Host, now: Instant);
    /// How it ended; `None` while it runs.
    fn outcome(&self) -> Option<&Outcome>;
    /// The next text for the user.
    fn poll_output(&mut self) -> Option<Output> {
        None
    }
    /// How many bytes of standard input it can take now.
    fn input_room(&self, _host: &Host) -> usize {
        0
    }
    /// A piece of standard input, at most [`input_room`](Self::input_room) bytes; `None` at its end.
    fn on_input(&mut self, _host: &mut Host, _now: Instant, _data: Option<Bytes>) {}
    /// Data for standard output, asked for only when there is room for it.
    fn poll_data(&mut self, _host: &mut Host, _now: Instant) -> Option<Bytes> {
        None
    }
}

/// A text for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// For standard output.
    Out(String),
    /// For standard error.
    Err(String),
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did what it was asked to.
    Done,
    /// It could not; a sentence says why.
    Failed(String),
}
