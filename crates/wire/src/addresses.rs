//! Pairs of IP addresses, and what transports compute of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{Checksum, ipv4, ipv6};

/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;

/// Source and destination, of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// Two IPv4 addresses.
    V4 {
        /// Address of the sender.
        src: Ipv4Addr,
        /// Address of the receiver.
        dst: Ipv4Addr,
    },
    /// Two IPv6 addresses.
    V6 {
        /// Address of the sender.
        src: Ipv6Addr,
        /// Address of the receiver.
        dst: Ipv6Addr,
    },
}

impl Addresses {
    /// Pairs two addresses of one family; `None` if the families differ.
    pub const fn new(src: IpAddr, dst: IpAddr) -> Option<Self> {
        match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Some(Self::V4 { src, dst }),
            (IpAddr::V6(src), IpAddr::V6(dst)) => Some(Self::V6 { src, dst }),
            _ => None,
        }
    }
    /// Source address, whatever the family.
    pub const fn src(&self) -> IpAddr {
        match self {
            Self::V4 { src, .. } => IpAddr::V4(*src),
            Self::V6 { src, .. } => IpAddr::V6(*src),
        }
    }
    /// Destination address, whatever the family.
    pub const fn dst(&self) -> IpAddr {
        match self {
            Self::V4 { dst, .. } => IpAddr::V4(*dst),
            Self::V6 { dst, .. } => IpAddr::V6(*dst),
        }
    }
    /// The other direction.
    pub const fn reversed(self) -> Self {
        match self {
            Self::V4 { src, dst } => Self::V4 { src: dst, dst: src },
            Self::V6 { src, dst } => Self::V6 { src: dst, dst: src },
        }
    }
    /// Length of the IP header without options: 20 or 40 bytes.
    pub const fn header_len(&self) -> u32 {
        match self {
            Self::V4 { .. } => ipv4::HEADER_LEN as u32,
            Self::V6 { .. } => ipv6::HEADER_LEN as u32,
        }
    }
    /// Sum over the pseudo header of TCP and UDP (RFC 9293 §3.1, RFC 8200 §8.1); `len` is that of the
    /// transport header and its data.
    pub fn pseudo_header(&self, protocol: u8, len: u32) -> Checksum {
        let sum = match self {
            Self::V4 { src, dst } => Checksum::new()
                .add_bytes(&src.octets())
                .add_bytes(&dst.octets()),
            Self::V6 { src, dst } => Checksum::new()
                .add_bytes(&src.octets())
                .add_bytes(&dst.octets()),
        };
        sum.add_u16(u16::from(protocol)).add_u32(len)
    }
}
