use bytes::Bytes;

/// Events for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The connection is open: the handshake is complete or, at a server, a Fast Open cookie was
    /// accepted.
    Connected,
    /// New data is ready for [`Endpoint::read`](crate::Endpoint::read).
    Readable,
    /// There is room in the send buffer again after a write was not accepted in full.
    Writable,
    /// The peer has closed its direction: no data follows the readable data.
    PeerClosed,
    /// Both directions ended in order. The endpoint may linger in TIME-WAIT: keep it until its
    /// state is CLOSED.
    Closed,
    ///  The connection was reset or refused, or its peer is unreachable; see
    /// [`Endpoint::error`](crate::Endpoint::error).
    Reset,
    /// The connection was given up after too many retransmissions without an answer.
    TimedOut,
}

impl Event {
    const ORDER: [Self; 7] = [
        Self::Connected,
        Self::Readable,
        Self::Writable,
        Self::PeerClosed,
        Self::Closed,
        Self::Reset,
        Self::TimedOut,
    ];
}

/// Pending events: a set, as repeated events carry no more information.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Events(u8);

impl Events {
    #[inline]
    pub(crate) fn push(&mut self, event: Event) {
        self.0 |= 1 << event as u8;
    }
    /// Removes a pending event, which is then not reported.
    #[inline]
    pub(crate) fn remove(&mut self, event: Event) {
        self.0 &= !(1 << event as u8);
    }
    /// In the order of a connection's life.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Event> {
        if self.0 == 0 {
            return None;
        }
        let i = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(Event::ORDER[i as usize])
    }
}

/// A piece of the received stream, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// Bytes with content.
    Real(Bytes),
    /// A number of synthetic bytes, without content.
    Synthetic(u64),
}

impl Chunk {
    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Self::Real(b) => b.len() as u64,
            Self::Synthetic(n) => *n,
        }
    }
    /// Whether there is no byte.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_once_and_in_the_order_of_a_life() {
        let mut e = Events::default();
        for event in Event::ORDER.iter().rev() {
            e.push(*event);
            e.push(*event);
        }
        let popped: Vec<_> = std::iter::from_fn(|| e.pop()).collect();
        assert_eq!(popped, Event::ORDER);
    }
}
