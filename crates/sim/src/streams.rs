//! How applications read and write the byte streams of TCP and Multipath TCP.

use bytes::Bytes as Content;
use gargalo_flow::{Conversation, content};
use gargalo_mptcp::Connection;
use gargalo_tcp::{Chunk, Endpoint};

/// A byte stream in both directions.
pub(crate) trait Stream {
    fn read(&mut self) -> Option<Chunk>;
    fn write(&mut self, data: Content) -> usize;
    fn write_synthetic(&mut self, n: u64) -> u64;
    fn write_room(&self) -> u64;
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
        }
    )+ };
}

streams!(Endpoint, Connection);

/// Reads everything in order from the transport, comparing real content if there is a `key`; returns the number of
/// bytes.
#[inline]
pub(crate) fn read_all(
    talk: &mut Conversation,
    index: usize,
    stream: &mut impl Stream,
    key: Option<u64>,
) -> u64 {
    let mut got = 0;
    while let Some(chunk) = stream.read() {
        got += match &chunk {
            Chunk::Synthetic(n) => *n,
            Chunk::Real(bytes) => {
                let at = talk.positions(index).1 + got;
                let key = key.map(|flow| content::key(flow, 1 - index));
                if key.is_some_and(|key| !content::is_right(key, at, bytes)) {
                    talk.corrupt();
                }
                bytes.len() as u64
            }
        };
    }
    got
}

/// Writes what the application wants to write as far as the transport accepts it, with real content if there is a
/// `key`. Returns whether to close the stream now.
#[inline]
pub(crate) fn write_all(
    talk: &mut Conversation,
    index: usize,
    stream: &mut impl Stream,
    key: Option<u64>,
) -> bool {
    let want = talk.wants(index);
    if want > 0 {
        match key {
            Some(flow) => write_content(talk, index, stream, content::key(flow, index)),
            None => {
                let taken = stream.write_synthetic(want);
                talk.wrote(index, taken);
            }
        }
    }
    talk.closes(index)
}

/// Writes real content as far as the send buffer accepts it.
fn write_content(talk: &mut Conversation, index: usize, stream: &mut impl Stream, key: u64) {
    while talk.wants(index) > 0 {
        let room = stream.write_room();
        if room == 0 {
            break; // every acknowledgement calls this again
        }
        // One extra byte tells the transport that more data follows.
        let want = talk.wants(index).min(room + 1).min(content::PIECE);
        let data = content::piece(Some(key), talk.positions(index).0, want);
        let offered = data.len();
        let taken = stream.write(data);
        talk.wrote(index, taken as u64);
        if taken < offered {
            break;
        }
    }
}
