//! What the application has written.

/// The end of the data that the application has written, and what is known of further data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// Offset after the last byte.
    pub(super) end: u64,
    /// Nothing more will be written: the FIN follows the last byte.
    pub(super) finished: bool,
    /// The send buffer is full, so more data is expected: a partial segment waits for it while anything is in
    /// flight (RFC 1122 §4.2.3.4).
    pub(super) buffer_full: bool,
    /// An upper layer has more data than it has written so far.
    pub(super) more_follows: bool,
    /// A write was not taken in full, and the send buffer has not become much emptier since.
    pub(crate) wants_room: bool,
}
