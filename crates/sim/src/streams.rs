//! How applications read and write the byte streams of TCP and Multipath TCP.

use bytes::Bytes as Content;
use gargalo_flow::{Conversation, content};
use gargalo_mptcp::Connection;
use gargalo_tcp::{Chunk, Endpoint, Event};
use gargalo_units::Instant;

/// A byte stream in both directions.
pub(crate) trait Stream {
    fn read(&mut self) -> Option<Chunk>;
    fn write(&mut self, data: Content) -> usize;
    fn write_synthetic(&mut self, n: u64) -> u64;
    fn write_room(&self) -> u64;
    fn unsent(&self) -> u64;
    fn close(&mut self, now: Instant);
}

macro_rules! streams {
    ($($connection:ty),+) => { $(
        impl Stream for $connection {
            #[inline]
            fn read(&mut self) -> Option<Chunk> {
                Self::read(self, u64::MAX)
            }
            fn write(&mut self, data: Content) -> usize {
                Self::write(self, data)
            }
            #[inline]
            fn write_synthetic(&mut self, n: u64) -> u64 {
                Self::write_synthetic(self, n)
            }
            fn write_room(&self) -> u64 {
                Self::write_room(self)
            }
            #[inline]
            fn unsent(&self) -> u64 {
                Self::unsent(self)
            }
            fn close(&mut self, now: Instant) {
                Self::close(self, now);
            }
        }
    )+ };
}

streams!(Endpoint, Connection);

/// The application at one end of a flow, while it is told of what happened to its stream.
pub(crate) struct Talking<'a> {
    pub(crate) talk: &'a mut Conversation,
    /// The end: 0 is the client.
    pub(crate) index: usize,
    pub(crate) now: Instant,
    /// Content is real, and compared, with the key of this flow.
    pub(crate) key: Option<u64>,
}

impl Talking<'_> {
    /// Tells the application of an event; returns whether the stream is over.
    #[inline]
    pub(crate) fn on_event(&mut self, event: Event) -> bool {
        match event {
            Event::Connected if self.index == 0 => self.talk.start(self.now),
            Event::PeerClosed => self.talk.peer_closed(self.index),
            Event::Closed => return true,
            Event::Reset => {
                self.talk.fail("reset");
                return true;
            }
            Event::TimedOut => {
                self.talk.fail("timed out");
                return true;
            }
            _ => {}
        }
        false
    }

    /// Lets the application read, write and close.
    #[inline]
    pub(crate) fn exchange(&mut self, stream: &mut impl Stream, over: bool) {
        let got = self.read_all(stream);
        self.talk
            .received(self.now, self.index, got, stream.unsent());
        if over {
            self.talk.over(self.now);
        }
        self.write_all(stream);
        if self.talk.closes(self.index) {
            stream.close(self.now);
        }
    }

    /// Reads everything in order from the transport, comparing real content; returns the number of bytes.
    #[inline]
    fn read_all(&mut self, stream: &mut impl Stream) -> u64 {
        let mut got = 0;
        while let Some(chunk) = stream.read() {
            got += match &chunk {
                Chunk::Synthetic(n) => *n,
                Chunk::Real(bytes) => {
                    let at = self.talk.positions(self.index).1 + got;
                    let key = self.key.map(|flow| content::key(flow, 1 - self.index));
                    if key.is_some_and(|key| !content::is_right(key, at, bytes)) {
                        self.talk.corrupt();
                    }
                    bytes.len() as u64
                }
            };
        }
        got
    }

    /// Writes what the application wants to write as far as the transport accepts it.
    #[inline]
    fn write_all(&mut self, stream: &mut impl Stream) {
        let want = self.talk.wants(self.index);
        if want > 0 {
            match self.key {
                Some(flow) => self.write_content(stream, content::key(flow, self.index)),
                None => {
                    let taken = stream.write_synthetic(want);
                    self.talk.wrote(self.index, taken);
                }
            }
        }
    }

    /// Writes real content as far as the send buffer accepts it.
    fn write_content(&mut self, stream: &mut impl Stream, key: u64) {
        while self.talk.wants(self.index) > 0 {
            let room = stream.write_room();
            if room == 0 {
                break; // every acknowledgement calls this again
            }
            // One extra byte informs the transport that more data follows.
            let want = self.talk.wants(self.index);
            let want = want.min(room + 1).min(content::PIECE);
            let data = content::piece(Some(key), self.talk.positions(self.index).0, want);
            let offered = data.len();
            let taken = stream.write(data);
            self.talk.wrote(self.index, taken as u64);
            if taken < offered {
                break;
            }
        }
    }
}
