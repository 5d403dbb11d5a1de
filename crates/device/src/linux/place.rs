//! Addresses and forwarding that connect a user-space host to a network namespace.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::ifaddrs::getifaddrs;

use super::netlink::Netlink;
use crate::{Error, Result};

/// Shared address space (RFC 6598): 100.64.0.0/10.
const SHARED: u32 = 0x6440_0000;
/// Number of networks of four addresses in it.
const NETWORKS: u32 = 1 << 20;
/// A unique local prefix (RFC 4193), fd67:6172:6761::/48.
const LOCAL: u128 = 0xfd67_6172_6761 << 80;

/// The addresses of the two ends of a link: the kernel's and ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// IPv4: the kernel's, ours; a /30 network.
    pub v4: (Ipv4Addr, Ipv4Addr),
    /// IPv6: the kernel's, ours; a /126 network.
    pub v6: (Ipv6Addr, Ipv6Addr),
}

impl Place {
    fn numbered(n: u32) -> Self {
        let v4 = SHARED + 4 * (n % NETWORKS);
        let v6 = LOCAL + (u128::from(n % NETWORKS) << 2);
        Self {
            v4: ((v4 + 1).into(), (v4 + 2).into()),
            v6: ((v6 + 1).into(), (v6 + 2).into()),
        }
    }

    /// Finds a pair that no interface of this namespace uses; the search begins at `seed`.
    ///
    /// # Errors
    /// When the interfaces cannot be listed, or all are in use.
    pub fn free(seed: u32) -> Result<Self> {
        let taken = addresses()?;
        (0..NETWORKS)
            .map(|i| Self::numbered(seed.wrapping_add(i)))
            .find(|p| !taken.iter().any(|a| p.contains(*a)))
            .ok_or_else(|| Error::Unsupported("every network of 100.64.0.0/10 is in use".into()))
    }

    fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(a) => u32::from(a) & !3 == u32::from(self.v4.0) & !3,
            IpAddr::V6(a) => u128::from(a) & !3 == u128::from(self.v6.0) & !3,
        }
    }

    /// The kernel's address of the same family as `like`.
    pub fn kernel(&self, like: IpAddr) -> IpAddr {
        match like {
            IpAddr::V4(_) => self.v4.0.into(),
            IpAddr::V6(_) => self.v6.0.into(),
        }
    }

    /// Our address of the same family as `like`.
    pub fn ours(&self, like: IpAddr) -> IpAddr {
        match like {
            IpAddr::V4(_) => self.v4.1.into(),
            IpAddr::V6(_) => self.v6.1.into(),
        }
    }

    /// Assigns the kernel's end to the device `index`, whose MTU is `mtu` bytes. IPv6 is left out where the system
    /// does not have it; returns whether it does.
    pub fn take(&self, index: u32, mtu: u32) -> Result<bool> {
        let mut netlink = Netlink::open()?;
        netlink.link_up(index, mtu)?;
        netlink.add_address(index, self.v4.0.into(), 30)?;
        Ok(netlink.add_address(index, self.v6.0.into(), 126).is_ok())
    }
}

/// Lists all addresses of this namespace's interfaces.
///
/// # Errors
/// When they cannot be listed.
pub fn addresses() -> Result<Vec<IpAddr>> {
    let all = getifaddrs().map_err(|e| Error::system("listing the interfaces", e))?;
    Ok(all
        .filter_map(|i| i.address)
        .filter_map(|a| {
            let v4 = a.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
            v4.or_else(|| a.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip())))
        })
        .collect())
}

/// How a remote address can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It belongs to this machine, in this namespace.
    Local,
    /// Packets must be forwarded.
    Forwarded,
}

/// Determines how `remote` can be reached.
///
/// # Errors
/// When the interfaces cannot be listed.
pub fn reach(remote: IpAddr) -> Result<Reach> {
    if remote.is_loopback() || addresses()?.contains(&remote) {
        Ok(Reach::Local)
    } else {
        Ok(Reach::Forwarded)
    }
}

/// Whether this is the network namespace that the system's first process lives in.
pub fn is_initial() -> bool {
    let of = |who: &str| fs::read_link(format!("/proc/{who}/ns/net"));
    match (of("thread-self"), of("1")) {
        (Ok(ours), Ok(first)) => ours == first,
        // Inside a user namespace the first process is not visible.
        _ => false,
    }
}

/// The path of the forwarding switch.
pub fn forwarding(remote: IpAddr) -> &'static str {
    match remote {
        IpAddr::V4(_) => "/proc/sys/net/ipv4/ip_forward",
        IpAddr::V6(_) => "/proc/sys/net/ipv6/conf/all/forwarding",
    }
}

/// Reads a switch.
pub fn is_on(path: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.trim() != "0")
}

/// Sets a switch.
pub fn set(path: &str, value: &str) -> Result<()> {
    fs::write(path, value).map_err(|e| Error::system(format!("setting {path} to {value}"), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_distinct_networks_within_their_prefixes() {
        let (a, b) = (Place::numbered(0), Place::numbered(NETWORKS - 1));
        assert_eq!(a.v4.0, "100.64.0.1".parse::<Ipv4Addr>().unwrap());
        assert_eq!(a.v4.1, "100.64.0.2".parse::<Ipv4Addr>().unwrap());
        assert_eq!(b.v4.1, "100.127.255.254".parse::<Ipv4Addr>().unwrap());
        assert_eq!(a.v6.0, "fd67:6172:6761::1".parse::<Ipv6Addr>().unwrap());
        assert_eq!(Place::numbered(NETWORKS), a);
        assert!(a.contains(a.v4.1.into()) && a.contains(a.v6.0.into()));
        assert!(!a.contains(b.v4.0.into()) && !a.contains(b.v6.0.into()));
    }
}
