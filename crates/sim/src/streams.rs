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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use gargalo_flow::{FlowSpec, Misbehaviour, Registered, TcpSpec, TransportSpec, rng};
    use gargalo_units::Bytes;
    use gargalo_workload::{Bulk, Workload};

    use super::*;

    /// A stream with some room, and what was done with it.
    #[derive(Debug, Default)]
    struct Told {
        arrived: VecDeque<Chunk>,
        room: u64,
        written: Vec<u8>,
        synthetic: u64,
        closed: bool,
    }

    impl Stream for Told {
        fn read(&mut self) -> Option<Chunk> {
            self.arrived.pop_front()
        }
        fn write(&mut self, data: Content) -> usize {
            let taken = data.len().min(self.room as usize);
            self.room -= taken as u64;
            self.written.extend(&data[..taken]);
            taken
        }
        fn write_synthetic(&mut self, n: u64) -> u64 {
            let taken = n.min(self.room);
            self.room -= taken;
            self.synthetic += taken;
            taken
        }
        fn write_room(&self) -> u64 {
            self.room
        }
        fn unsent(&self) -> u64 {
            0
        }
        fn close(&mut self, _: Instant) {
            self.closed = true;
        }
    }

    fn transfer(bytes: u64) -> Conversation {
        let reno = Registered::new("reno", gargalo_cc::Params::default()).unwrap();
        let tcp = TcpSpec {
            config: Arc::default(),
            congestion: Arc::new(reno),
            tls: None,
            misbehaviour: Misbehaviour::None,
        };
        let spec = FlowSpec {
            id: 7,
            label: "flow".into(),
            stream: "7".into(),
            from: 0,
            to: 1,
            path: 0,
            start: Instant::ZERO,
            stop: None,
            transport: TransportSpec::Tcp(tcp),
            workload: Workload::Bulk(Bulk::of(Bytes::new(bytes))).into(),
            arrivals: None,
            group: None,
            rows: true,
        };
        Conversation::new(&spec, rng::stream(1, "test"), || rng::stream(1, "sizes"))
    }

    fn talking(talk: &mut Conversation, index: usize, key: Option<u64>) -> Talking<'_> {
        Talking {
            talk,
            index,
            now: Instant::from_nanos(5),
            key,
        }
    }

    #[test]
    fn a_connection_that_ends_says_why() {
        let mut talk = transfer(10);
        let mut on = |index, event| talking(&mut talk, index, None).on_event(event);
        assert!(!on(1, Event::Connected) && !on(0, Event::Readable));
        assert!(!on(0, Event::PeerClosed) && on(0, Event::Closed));
        assert_eq!((talk.failure(), talk.wants(0)), (None, 0));
        assert!(talk.wanted(0).1, "it closes after its peer");
        for (event, why) in [(Event::Reset, "reset"), (Event::TimedOut, "timed out")] {
            let mut talk = transfer(10);
            assert!(talking(&mut talk, 0, None).on_event(event));
            assert_eq!(talk.failure(), Some(why));
        }
    }

    #[test]
    fn content_is_written_as_there_is_room_and_the_stream_closed_at_its_end() {
        for key in [None, Some(7)] {
            let (mut talk, mut stream) = (transfer(200_000), Told::default());
            talking(&mut talk, 0, key).on_event(Event::Connected);
            for room in [100, 0, 99_900, 150_000] {
                stream.room = room;
                talking(&mut talk, 0, key).exchange(&mut stream, false);
                assert_eq!(stream.closed, talk.wants(0) == 0);
            }
            assert_eq!((talk.positions(0).0, stream.room), (200_000, 50_000));
            assert_eq!(stream.synthetic, if key.is_none() { 200_000 } else { 0 });
            assert!(content::is_right(content::key(7, 0), 0, &stream.written));
        }
    }

    /// Whether the content is damaged in the eyes of the receiver of the second half of 2000 bytes, with this key.
    fn is_damaged(key: Option<u64>, at: u64) -> bool {
        let (mut talk, mut stream) = (transfer(2000), Told::default());
        stream.arrived.push_back(Chunk::Synthetic(1000));
        for from in [at, at + 500] {
            let half = content::piece(Some(content::key(7, 0)), from, 500);
            stream.arrived.push_back(Chunk::Real(half));
        }
        talking(&mut talk, 1, key).exchange(&mut stream, false);
        assert_eq!((talk.delivered(), talk.positions(1).1), (2000, 2000));
        assert_eq!(talk.completed(), Some(Instant::from_nanos(5)));
        format!("{talk:?}").contains("corrupted: true")
    }

    #[test]
    fn content_is_compared_with_that_of_its_place_if_it_is_asked_for() {
        assert!(!is_damaged(Some(7), 1000));
        assert!(is_damaged(Some(7), 999) && is_damaged(Some(8), 1000));
        assert!(!is_damaged(None, 999));
    }

    #[test]
    fn the_end_of_a_connection_completes_a_transfer_of_nothing() {
        let (mut talk, mut stream) = (transfer(0), Told::default());
        talking(&mut talk, 1, None).exchange(&mut stream, false);
        assert_eq!(talk.completed(), None);
        talking(&mut talk, 1, None).exchange(&mut stream, true);
        assert_eq!(talk.completed(), Some(Instant::from_nanos(5)));
    }
}
