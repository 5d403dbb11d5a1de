//! The functions that a foreign stack provides, and their arguments.

use std::fmt;
use std::net::SocketAddr;

use gargalo_units::Instant;

use super::{Outgoing, Path, PathState, Pending, Sender};
use crate::{Features, Offered, StreamId};

/// The functions of one end of a foreign stack, as in `gargalo_stack.h`. Times never decrease.
pub trait Callbacks: fmt::Debug + Send {
    /// A datagram has arrived; it may be changed in place.
    fn datagram_in(&mut self, now: Instant, payload: &mut [u8], path: &Path);
    /// The next datagram that may be sent now; an error says what is wrong with it. Others may be
    /// reported ([`Pending::send`]).
    fn datagram_out(&mut self, now: Instant) -> Result<Option<Outgoing>, String>;
    /// When to call [`Callbacks::timeout`].
    fn next_timer(&mut self) -> Option<Instant>;
    /// Runs the timers that are due.
    fn timeout(&mut self, now: Instant);
    /// Opens a bidirectional stream; `None` if the peer's limit is reached.
    fn open_stream(&mut self, now: Instant) -> Option<StreamId>;
    /// Takes stream data; returns how many bytes. With `fin`, which comes without data, the stream ends.
    fn write(&mut self, now: Instant, stream: StreamId, data: &[u8], fin: bool) -> usize;
    /// Opens a unidirectional stream; `None` if the peer's limit is reached.
    fn open_unidirectional_stream(&mut self, now: Instant) -> Option<StreamId>;
    /// Ends a stream at once, and discards its data.
    fn reset_stream(&mut self, now: Instant, stream: StreamId);
    /// Asks the peer to end a stream.
    fn stop_sending(&mut self, now: Instant, stream: StreamId);
    /// Sets the urgency of a stream, from 0 to 7.
    fn set_urgency(&mut self, now: Instant, stream: StreamId, urgency: u8);
    /// Offers a datagram.
    fn send_datagram(&mut self, now: Instant, data: &[u8]) -> Offered;
    /// Begins to send with the next keys; false: not yet.
    fn update_keys(&mut self, now: Instant) -> bool;
    /// Opens a further path.
    fn open_path(&mut self, now: Instant, local: SocketAddr, remote: SocketAddr);
    /// The paths that can or could carry data, in the order of opening.
    fn paths(&mut self) -> Vec<PathState>;
    /// The network reports that a datagram was larger than the MTU of a link.
    fn packet_too_big(&mut self, now: Instant, local: SocketAddr, remote: SocketAddr, mtu: u32);
    /// Data and ends of streams that are not acknowledged; `None`: the stack does not report it.
    fn unacknowledged(&mut self) -> Option<u64>;
    /// The local address has changed.
    fn migrate(&mut self, now: Instant, local: SocketAddr);
    /// Closes the connection in order.
    fn close(&mut self, now: Instant);
    /// Whether nothing more will be sent.
    fn is_over(&self) -> bool;
    /// Counters and state of the sender.
    fn stats(&mut self) -> Sender;
    /// Gives access to what the stack has reported, between its calls.
    fn pending<R>(&self, access: impl FnOnce(&mut Pending) -> R) -> R;
}

/// A stack's description of itself.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// Its name in scenarios.
    pub name: &'a str,
    /// Names of its congestion controls, the default first.
    pub congestion: &'a [String],
    /// What it can do.
    pub features: Features,
}
