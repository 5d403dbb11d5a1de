//! What the application writes.

use super::super_segments::SuperSegments;
use crate::Config;
use crate::send_buffer::SendBuffer;

/// The send buffer, its limits, and what the application waits for.
#[derive(Debug)]
pub(super) struct Writes {
    pub(super) buffer: SendBuffer,
    /// Capacity of the buffer in bytes.
    pub(super) capacity: u64,
    /// Unsent bytes above which nothing is taken; [`u64::MAX`]: no limit.
    pub(super) notsent_lowat: u64,
    /// Of contents that are written to an open connection; `None`: they are not kept.
    pub(super) super_segments: Option<Box<SuperSegments>>,
    /// A write was not accepted in full: report when there is room.
    pub(super) blocked: bool,
    /// The application closed; the FIN waits for the handshake.
    pub(super) closed: bool,
}

impl Writes {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            buffer: SendBuffer::default(),
            capacity: config.send_buffer.get(),
            notsent_lowat: config.notsent_lowat.map_or(u64::MAX, |b| b.get()),
            super_segments: config.super_segments.then(Box::default),
            blocked: false,
            closed: false,
        }
    }
}
