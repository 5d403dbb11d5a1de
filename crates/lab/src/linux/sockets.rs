//! The kernel's information about TCP sockets of a namespace, by their addresses (sock_diag(7)). This includes the
//! subflows of Multipath TCP, for which no program has a descriptor.

use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::NlasIterator;
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use nix::libc;

use crate::{Error, Result};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `INET_DIAG_INFO`: counters; a request for them also returns those of the protocol above.
const INFO: u16 = 2;
/// `INET_DIAG_CONG`: the name of the congestion control.
const CONGESTION: u16 = 4;
/// `INET_DIAG_ULP_INFO`: information of the protocol above; only for privileged users.
const ABOVE: u16 = 19;
/// `INET_ULP_INFO_MPTCP` in it, and of that `MPTCP_SUBFLOW_ATTR_FLAGS`.
const MULTIPATH: u16 = 3;
const FLAGS: u16 = 8;
/// `MPTCP_SUBFLOW_FLAG_BKUP_REM` and `MPTCP_SUBFLOW_FLAG_BKUP_LOC`.
const BACKUP: u32 = 1 << 4 | 1 << 5;
/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Length of `struct inet_diag_req_v2`.
const REQUEST: usize = 56;
/// Length of `struct inet_diag_msg`.
const ANSWER: usize = 72;
/// Longest response, in bytes.
const LONGEST: usize = 8192;

/// A netlink socket that queries the sockets of the namespace of the thread that opened it.
pub struct Sockets(Socket);

impl Sockets {
    /// Opens it for the namespace of the calling thread.
    ///
    /// # Errors
    /// When the system has no netlink.
    pub fn open() -> Result<Self> {
        let made = Socket::new(NETLINK_SOCK_DIAG);
        let socket = made.map_err(|e| Error::system("asking for sockets", e))?;
        Ok(Self(socket))
    }

    /// Queries the connection between two addresses; `None` if there is none, or the kernel does not report it
    /// (`CONFIG_INET_TCP_DIAG`).
    pub fn about(&self, local: SocketAddr, remote: SocketAddr) -> Option<About> {
        let address = netlink_sys::SocketAddr::new(0, 0);
        self.0.send_to(&request(local, remote), &address, 0).ok()?;
        let mut bytes = Vec::with_capacity(LONGEST);
        self.0.recv(&mut bytes, 0).ok()?;
        about(&bytes)
    }
}

/// The kernel's information about a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its congestion control.
    pub congestion: String,
    /// Whether it is a subflow that either end has made a backup; `None` if it is no subflow, or the kernel does not
    /// report it (before 5.7, or without `CAP_NET_ADMIN`).
    pub backup: Option<bool>,
}

/// Builds a request for one socket.
fn request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + REQUEST);
    out.extend(((HEADER + REQUEST) as u32).to_ne_bytes());
    out.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    out.extend([0; 8]); // number and port
    let family = match local {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    let wanted = 1 << (CONGESTION - 1) | 1 << (INFO - 1);
    out.extend([family as u8, libc::IPPROTO_TCP as u8, wanted, 0]);
    out.extend(u32::MAX.to_ne_bytes()); // in any state
    out.extend(local.port().to_be_bytes());
    out.extend(remote.port().to_be_bytes());
    for end in [local, remote] {
        let mut address = [0; 16];
        match end.ip() {
            IpAddr::V4(v4) => address[..4].copy_from_slice(&v4.octets()),
            IpAddr::V6(v6) => address = v6.octets(),
        }
        out.extend(address);
    }
    out.extend([0; 4]); // any interface
    out.extend([0xff; 8]); // no cookie
    out
}

/// Parses a response.
fn about(answer: &[u8]) -> Option<About> {
    if answer.get(4..6)? != SOCK_DIAG_BY_FAMILY.to_ne_bytes() {
        return None; // an error
    }
    let attributes = answer.get(HEADER + ANSWER..)?;
    let name = value(attributes, CONGESTION)?;
    let flags = value(attributes, ABOVE)
        .and_then(|above| value(&above, MULTIPATH))
        .and_then(|subflow| value(&subflow, FLAGS));
    let flags = flags.and_then(|f| f.first_chunk().copied());
    Some(About {
        congestion: String::from_utf8_lossy(&name)
            .trim_end_matches('\0')
            .to_owned(),
        backup: flags.map(|f| u32::from_ne_bytes(f) & BACKUP != 0),
    })
}

/// Returns the value of the first attribute of a type.
fn value(attributes: &[u8], kind: u16) -> Option<Vec<u8>> {
    let mut known = NlasIterator::new(attributes).filter_map(std::result::Result::ok);
    let found = known.find(|nla| nla.kind() == kind)?;
    Some(found.value().to_vec())
}
