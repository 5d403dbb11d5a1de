//! Frames of a packet (RFC 9000 §19, draft-ietf-quic-ack-frequency, draft-ietf-quic-multipath).

use super::varint::Reader;

/// A frame of a packet, with the fields that something here uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// PADDING, of this length in bytes.
    Padding(u64),
    /// PING.
    Ping,
    /// ACK.
    Ack(Ack<'a>),
    /// RESET_STREAM.
    ResetStream {
        /// The stream.
        stream: u64,
        /// Error code of the application.
        code: u64,
        /// Its final size.
        size: u64,
    },
    /// STOP_SENDING.
    StopSending {
        /// The stream.
        stream: u64,
        /// Error code of the application.
        code: u64,
    },
    /// CRYPTO: a part of the TLS handshake.
    Crypto {
        /// Where in the handshake data of its packet number space.
        offset: u64,
        /// The data.
        data: &'a [u8],
    },
    /// NEW_TOKEN.
    NewToken {
        /// Length of the token.
        len: u64,
    },
    /// STREAM.
    Stream(Stream),
    /// MAX_DATA.
    MaxData(u64),
    /// MAX_STREAM_DATA.
    MaxStreamData {
        /// The stream.
        stream: u64,
        /// Up to where it may go.
        most: u64,
    },
    /// MAX_STREAMS.
    MaxStreams {
        /// Whether it is about those of both directions.
        bidirectional: bool,
        /// How many there may be.
        most: u64,
    },
    /// DATA_BLOCKED, at this limit.
    DataBlocked(u64),
    /// STREAM_DATA_BLOCKED.
    StreamDataBlocked {
        /// The stream.
        stream: u64,
        /// The limit.
        limit: u64,
    },
    /// STREAMS_BLOCKED.
    StreamsBlocked {
        /// Whether it is about those of both directions.
        bidirectional: bool,
        /// The limit.
        limit: u64,
    },
    /// NEW_CONNECTION_ID.
    NewConnectionId {
        /// Its number.
        sequence: u64,
        /// Those before this are retired.
        retire_prior_to: u64,
        /// The identifier.
        id: &'a [u8],
    },
    /// RETIRE_CONNECTION_ID, of this number.
    RetireConnectionId(u64),
    /// PATH_CHALLENGE.
    PathChallenge(&'a [u8]),
    /// PATH_RESPONSE.
    PathResponse(&'a [u8]),
    /// CONNECTION_CLOSE.
    ConnectionClose {
        /// Whether the application closed it.
        application: bool,
        /// Error code.
        code: u64,
        /// Reason.
        reason: &'a [u8],
    },
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// A frame of an extension, of this type.
    Other(u64),
}

impl Frame<'_> {
    /// Whether a packet with it is to be acknowledged (RFC 9002 §2).
    pub const fn is_ack_eliciting(&self) -> bool {
        // Of extensions, the acknowledgements of multipath QUIC.
        !matches!(
            self,
            Self::Padding(_)
                | Self::Ack(_)
                | Self::ConnectionClose { .. }
                | Self::Other(0x3e | 0x3f)
        )
    }
}

/// A STREAM frame without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The stream.
    pub id: u64,
    /// Where in it the data is.
    pub offset: u64,
    /// How much there is.
    pub len: u64,
    /// Whether the stream ends with it.
    pub fin: bool,
}

/// An ACK frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// The largest packet number that is acknowledged.
    pub largest: u64,
    /// How long the acknowledgement was delayed, in units that the transport parameters set.
    pub delay: u64,
    first: u64,
    /// Pairs of gap and length.
    further: &'a [u8],
    /// ECT(0), ECT(1), CE.
    pub ecn: Option<[u64; 3]>,
}

impl Ack<'_> {
    /// Ranges of packet numbers, both ends included, from the largest down.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut further = Reader(self.further);
        let mut next = Some((self.largest.saturating_sub(self.first), self.largest));
        std::iter::from_fn(move || {
            let range = next.take()?;
            next = (|| {
                let (gap, len) = (further.varint()?, further.varint()?);
                let high = range.0.checked_sub(gap)?.checked_sub(2)?;
                Some((high.checked_sub(len)?, high))
            })();
            Some(range)
        })
    }
}

/// Iterates over the frames of a packet; ends at a malformed or unknown one.
#[derive(Clone, Copy, Debug)]
pub struct Frames<'a>(Reader<'a>);

impl<'a> Frames<'a> {
    /// Those of a packet's payload.
    #[inline]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self(Reader(payload))
    }

    /// Whether all of it has been read.
    pub const fn is_done(&self) -> bool {
        self.0.0.is_empty()
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    #[inline]
    fn next(&mut self) -> Option<Frame<'a>> {
        let kind = self.varint()?;
        if let 0x08..=0x0f = kind {
            return self.stream(kind);
        }
        self.other(kind)
    }
}

impl<'a> Frames<'a> {
    #[inline]
    fn stream(&mut self, kind: u64) -> Option<Frame<'a>> {
        let id = self.varint()?;
        let offset = if kind & 4 != 0 { self.varint()? } else { 0 };
        let len = if kind & 2 != 0 {
            self.varint()?
        } else {
            self.0.0.len() as u64
        };
        self.take(len)?;
        Some(Frame::Stream(Stream {
            id,
            offset,
            len,
            fin: kind & 1 != 0,
        }))
    }

    fn other(&mut self, kind: u64) -> Option<Frame<'a>> {
        Some(match kind {
            0x00 => {
                let more = self.0.0.iter().take_while(|b| **b == 0).count() as u64;
                self.take(more)?;
                Frame::Padding(1 + more)
            }
            0x01 => Frame::Ping,
            0x02 | 0x03 => Frame::Ack(self.ack(kind == 0x03)?),
            0x04 => Frame::ResetStream {
                stream: self.varint()?,
                code: self.varint()?,
                size: self.varint()?,
            },
            0x05 => Frame::StopSending {
                stream: self.varint()?,
                code: self.varint()?,
            },
            0x06 => {
                let (offset, len) = (self.varint()?, self.varint()?);
                let data = self.take(len)?;
                Frame::Crypto { offset, data }
            }
            0x07 => {
                let len = self.varint()?;
                self.take(len)?;
                Frame::NewToken { len }
            }
            0x10 => Frame::MaxData(self.varint()?),
            0x11 => Frame::MaxStreamData {
                stream: self.varint()?,
                most: self.varint()?,
            },
            0x12 | 0x13 => Frame::MaxStreams {
                bidirectional: kind == 0x12,
                most: self.varint()?,
            },
            0x14 => Frame::DataBlocked(self.varint()?),
            0x15 => Frame::StreamDataBlocked {
                stream: self.varint()?,
                limit: self.varint()?,
            },
            0x16 | 0x17 => Frame::StreamsBlocked {
                bidirectional: kind == 0x16,
                limit: self.varint()?,
            },
            0x18 => self.connection_id()?,
            0x19 => Frame::RetireConnectionId(self.varint()?),
            0x1a => Frame::PathChallenge(self.take(8)?),
            0x1b => Frame::PathResponse(self.take(8)?),
            0x1c | 0x1d => {
                let code = self.varint()?;
                if kind == 0x1c {
                    self.varint()?; // the type of the frame that was the cause
                }
                let len = self.varint()?;
                Frame::ConnectionClose {
                    application: kind == 0x1d,
                    code,
                    reason: self.take(len)?,
                }
            }
            0x1e => Frame::HandshakeDone,
            _ => {
                self.extension(kind)?;
                Frame::Other(kind)
            }
        })
    }

    fn extension(&mut self, kind: u64) -> Option<()> {
        match kind {
            0x1f => {}             // IMMEDIATE_ACK
            0xaf => self.skip(4)?, // ACK_FREQUENCY
            0x3e | 0x3f => {
                self.varint()?;
                self.ack(kind == 0x3f)?;
            }
            0x3e78 => {
                self.varint()?;
                self.connection_id()?;
            }
            0x3e7a | 0x3e7b => self.skip(1)?, // MAX_PATH_ID, PATHS_BLOCKED
            // PATH_ABANDON, PATH_STATUS, PATH_RETIRE_CONNECTION_ID, PATH_CIDS_BLOCKED
            0x3e75..=0x3e77 | 0x3e79 | 0x3e7c => self.skip(2)?,
            _ => return None,
        }
        Some(())
    }

    fn ack(&mut self, ecn: bool) -> Option<Ack<'a>> {
        let (largest, delay) = (self.varint()?, self.varint()?);
        let (count, first) = (self.varint()?, self.varint()?);
        let start = self.0.0;
        for _ in 0..count {
            self.skip(2)?;
        }
        let further = &start[..start.len() - self.0.0.len()];
        let ecn = match ecn {
            true => Some([self.varint()?, self.varint()?, self.varint()?]),
            false => None,
        };
        Some(Ack {
            largest,
            delay,
            first,
            further,
            ecn,
        })
    }

    fn connection_id(&mut self) -> Option<Frame<'a>> {
        let (sequence, retire_prior_to) = (self.varint()?, self.varint()?);
        let len = self.take(1)?[0];
        let id = self.take(u64::from(len))?;
        self.take(16)?;
        Some(Frame::NewConnectionId {
            sequence,
            retire_prior_to,
            id,
        })
    }

    fn skip(&mut self, varints: u32) -> Option<()> {
        for _ in 0..varints {
            self.varint()?;
        }
        Some(())
    }

    #[inline]
    fn take(&mut self, n: u64) -> Option<&'a [u8]> {
        self.0.take(n)
    }

    #[inline]
    fn varint(&mut self) -> Option<u64> {
        self.0.varint()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_rfc_9000_describes() {
        let packet = [
            &[0x02, 0x49, 0x00, 5, 2, 3, 1, 0, 0, 4][..], // ACK: 2304, first range 3, two more
            &[0x00, 0x00, 0x00, 0x01],
            &[0x06, 0, 2, 9, 9],
            &[0x0f, 4, 0x40, 0x80, 2, 7, 7],
            &[0x1d, 3, 2, b'h', b'i'],
            &[0x0a, 8, 0],
            &[0x08, 12, 1, 2, 3],
        ]
        .concat();
        let frames: Vec<_> = Frames::new(&packet).collect();
        let Frame::Ack(ack) = frames[0] else {
            panic!("{frames:?}");
        };
        let ranges: Vec<_> = ack.ranges().collect();
        assert_eq!(ranges, [(2301, 2304), (2298, 2298), (2292, 2296)]);
        assert_eq!(ack.delay, 5);
        let stream = |id, offset, len, fin| {
            Frame::Stream(Stream {
                id,
                offset,
                len,
                fin,
            })
        };
        assert_eq!(
            frames[1..],
            [
                Frame::Padding(3),
                Frame::Ping,
                Frame::Crypto {
                    offset: 0,
                    data: &[9, 9]
                },
                stream(4, 128, 2, true),
                Frame::ConnectionClose {
                    application: true,
                    code: 3,
                    reason: b"hi"
                },
                stream(8, 0, 0, false),
                stream(12, 0, 3, false),
            ]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_do(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for frame in Frames::new(&bytes) {
                if let Frame::Ack(ack) = frame {
                    prop_assert!(ack.ranges().count() <= bytes.len());
                }
            }
        }
    }
}
