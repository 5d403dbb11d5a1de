use std::fmt;

use thiserror::Error;

/// Which header an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// IPv4 header (RFC 791).
    Ipv4,
    /// IPv6 header or extension header (RFC 8200).
    Ipv6,
    /// UDP header (RFC 768).
    Udp,
    /// TCP header (RFC 9293).
    Tcp,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
        })
    }
}

/// Why bytes are not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The bytes end before the header or the datagram does.
    #[error("{layer} is truncated: {needed} bytes needed, {have} available")]
    Truncated {
        /// The header that has the field.
        layer: Layer,
        /// Bytes needed from the start of that header.
        needed: usize,
        /// Bytes available from the start of that header.
        have: usize,
    },
    /// Neither version 4 nor 6, or not the one expected.
    #[error("IP version is {version}")]
    BadVersion {
        /// The version field.
        version: u8,
    },
    /// A length field contradicts itself.
    #[error("{layer} length field is {length}, which is too small")]
    BadLength {
        /// The header that has the field.
        layer: Layer,
        /// Value of the length field, in bytes.
        length: usize,
    },
    /// A TCP option's length is below two or past the header's end.
    #[error("TCP option {kind} has a bad length")]
    BadOption {
        /// Kind of the option as on the wire (IANA).
        kind: u8,
    },
    /// The checksum does not match.
    #[error("{layer} checksum is wrong")]
    BadChecksum {
        /// The header with the wrong checksum.
        layer: Layer,
    },
    /// A fragment of a datagram: it has no complete transport header.
    #[error("the packet is a fragment")]
    Fragment,
}

/// Why a value has no form on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EmitError {
    /// Options other than SACK take more than the 40 bytes of a TCP header.
    #[error("TCP options take {length} bytes; a header has room for 40")]
    OptionsTooLong {
        /// Bytes they take.
        length: u32,
    },
    /// The datagram exceeds the 16-bit length field.
    #[error("the datagram has {length} bytes; IP allows 65535")]
    TooLong {
        /// Its length in bytes, IP header included.
        length: u32,
    },
}
