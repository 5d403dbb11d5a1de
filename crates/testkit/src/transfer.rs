use bytes::Bytes;
use gargalo_tcp::{Chunk, Event, State};
use gargalo_units::Instant;

use crate::{Pair, Side};

/// Byte `offset` of the patterned stream of one side; its period is no power of two, so shifted or
/// swapped data does not match.
pub fn content(side: Side, offset: u64) -> u8 {
    let x = (offset ^ ((side as u64) << 63)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x >> 56) as u8 ^ (offset / 251) as u8
}

/// Why a transfer failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// A byte differs.
    #[error("{side:?} read a wrong byte at offset {offset}")]
    Wrong {
        /// The end that read.
        side: Side,
        /// Position in the stream, in bytes.
        offset: u64,
    },
    /// More arrived than was sent.
    #[error("{side:?} read past the end of the stream")]
    TooMuch {
        /// The end that read.
        side: Side,
    },
    /// Data is outstanding and there is no further event.
    #[error("deadlock at {now}: {delivered:?} of {wanted:?} bytes delivered")]
    Deadlock {
        /// Virtual time of the failure.
        now: Instant,
        /// Delivered to client and server.
        delivered: [u64; 2],
        /// Sent to client and server.
        wanted: [u64; 2],
    },
    /// The connection was given up.
    #[error("{side:?} lost the connection at {now}")]
    Lost {
        /// The end that reported it.
        side: Side,
        /// Virtual time of the failure.
        now: Instant,
    },
    /// It took longer than allowed.
    #[error("not finished at {now}: {delivered:?} of {wanted:?} bytes delivered")]
    TooSlow {
        /// Virtual time of the failure.
        now: Instant,
        /// Delivered to client and server.
        delivered: [u64; 2],
        /// Sent to client and server.
        wanted: [u64; 2],
    },
}

/// Transfers content both ways through a pair, with every byte checked, until both sides have closed.
#[derive(Debug)]
pub struct Transfer {
    /// Bytes the client and the server send.
    pub bytes: [u64; 2],
    /// Most bytes each side reads at a time (a slow reader fills its window).
    pub read_limit: u64,
}

impl Transfer {
    /// Runs the transfer to its end; `limit` bounds virtual time.
    ///
    /// # Errors
    /// At the first byte lost, duplicated or modified, at a deadlock, or past the limit.
    pub fn run(&self, pair: &mut Pair, limit: Instant) -> Result<(), TransferError> {
        let mut written = [0u64; 2];
        let mut read = [0u64; 2];
        let mut closed = [false; 2];
        let wanted = [self.bytes[1], self.bytes[0]];
        loop {
            for (i, side) in [Side::Client, Side::Server].into_iter().enumerate() {
                let end = &mut pair.ends[i];
                while let Some(event) = end.poll_event() {
                    if matches!(event, Event::Reset | Event::TimedOut) {
                        return Err(TransferError::Lost {
                            side,
                            now: pair.now,
                        });
                    }
                }
                let peer = if i == 0 { Side::Server } else { Side::Client };
                while let Some(chunk) = end.read(self.read_limit) {
                    let Chunk::Real(data) = chunk else {
                        return Err(TransferError::Wrong {
                            side,
                            offset: read[i],
                        });
                    };
                    for byte in &data {
                        if *byte != content(peer, read[i]) {
                            return Err(TransferError::Wrong {
                                side,
                                offset: read[i],
                            });
                        }
                        read[i] += 1;
                    }
                    if read[i] > wanted[i] {
                        return Err(TransferError::TooMuch { side });
                    }
                }
                while written[i] < self.bytes[i] {
                    let n = (self.bytes[i] - written[i]).min(16_384);
                    let data: Vec<u8> = (written[i]..written[i] + n)
                        .map(|at| content(side, at))
                        .collect();
                    let taken = end.write(Bytes::from(data)) as u64;
                    written[i] += taken;
                    if taken < n {
                        break;
                    }
                }
                if written[i] == self.bytes[i] && !closed[i] {
                    closed[i] = true;
                    end.close(pair.now);
                }
            }
            pair.flush();
            let over = |s: State| matches!(s, State::Closed | State::TimeWait);
            if read == wanted && pair.ends.iter().all(|e| over(e.state())) {
                return Ok(());
            }
            let state = (pair.now, read, wanted);
            if pair.now > limit {
                return Err(TransferError::TooSlow {
                    now: state.0,
                    delivered: state.1,
                    wanted: state.2,
                });
            }
            if !pair.step() {
                return Err(TransferError::Deadlock {
                    now: state.0,
                    delivered: state.1,
                    wanted: state.2,
                });
            }
        }
    }
}
