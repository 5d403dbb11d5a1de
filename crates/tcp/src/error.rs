use std::fmt;

/// Why a connection ended before both sides closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// The peer reset it (RFC 9293 §3.10.7.4).
    Reset,
    /// The peer answered the SYN with a reset: the port is closed.
    Refused,
    /// No answer after the last retransmission, SYN, data or keep-alive probe (RFC 9293 §3.8.3).
    TimedOut,
    /// The network reported that the peer cannot be reached (RFC 1122 §4.2.3.9).
    Unreachable,
    /// The application aborted it.
    Aborted,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "connection reset by peer",
            Self::Refused => "connection refused",
            Self::TimedOut => "connection timed out",
            Self::Unreachable => "destination unreachable",
            Self::Aborted => "connection aborted",
        })
    }
}

impl std::error::Error for Error {}
