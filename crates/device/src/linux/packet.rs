//! A pair of Ethernet devices with a packet socket at the network's end (packet(7)), for users who may not open
//! `/dev/net/tun`.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrLike, bind,
    recvfrom, sendto, setsockopt, socket, sockopt,
};

use super::frame::{Frame, HEADROOM};
use super::namespace::NetNs;
use super::netlink::Netlink;
use crate::{Error, Result};

/// Receive buffer of the socket in bytes.
const BUFFER: usize = 16 << 20;
/// Datagrams read before control returns to the caller.
const READS: usize = 32;
/// Hardware address of a host's device: locally administered.
const ADDRESS: [u8; 6] = [0x02, 0x67, 0x61, 0x72, 0x67, 0x6f];
/// Name of the network's end.
const OURS: &str = "port";

#[derive(Debug)]
pub(crate) struct PacketDevice {
    socket: OwnedFd,
    /// The host's device, for IPv4 and for IPv6.
    to: [LinkAddr; 2],
    /// The network's end of the pair.
    _ours: NetNs,
}

impl PacketDevice {
    /// Creates a pair: `name` in the host's namespace, whose index is also returned, and the network's end in a
    /// namespace of its own.
    pub(crate) fn new(host: &NetNs, name: &str) -> Result<(Self, u32)> {
        let ours = NetNs::new()?;
        // Only the packet socket may respond.
        let _ = ours.set("ipv6/conf/all/disable_ipv6", "1");
        let peer = host.as_raw_fd();
        let (socket, to) = ours.run(|| {
            let mut netlink = Netlink::open()?;
            netlink.add_veth(OURS, name, ADDRESS, peer)?;
            let index = prepare(OURS, &mut netlink)?;
            netlink.link_up(index, 65_535)?;
            let to = [libc::ETH_P_IP, libc::ETH_P_IPV6].map(|p| link_address(index, p));
            Ok((open(index)?, to))
        })?;
        let index = host.run(|| prepare(name, &mut Netlink::open()?))?;
        let device = Self {
            socket,
            to,
            _ours: ours,
        };
        Ok((device, index))
    }

    pub(crate) fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        let fd = self.socket.as_raw_fd();
        let mut n = 0;
        while n < frames.len().min(READS) {
            let frame = &mut frames[n];
            match recvfrom::<LinkAddr>(fd, &mut frame[HEADROOM..]) {
                Ok((_, Some(from))) if from.pkttype() == libc::PACKET_OUTGOING => {}
                Ok((len, _)) => {
                    frame.truncate(HEADROOM + len);
                    n += 1;
                }
                Err(Errno::EAGAIN) if n > 0 => break,
                Err(e) => return Err(e.into()),
            }
        }
        Ok(n)
    }

    pub(crate) fn send(&mut self, frames: &mut [Frame]) -> io::Result<()> {
        for frame in frames {
            let datagram = &frame[HEADROOM..];
            let version = usize::from(datagram.first().is_some_and(|b| b >> 4 == 6));
            sendto(
                self.socket.as_raw_fd(),
                datagram,
                &self.to[version],
                MsgFlags::MSG_DONTWAIT,
            )?;
        }
        Ok(())
    }
}

/// Configures a device of the calling thread's namespace without address resolution and offloading, and returns its
/// index: the datagrams read must be whole, with checksums.
fn prepare(name: &str, netlink: &mut Netlink) -> Result<u32> {
    let index =
        if_nametoindex(name).map_err(|e| Error::system(format!("finding the device {name}"), e))?;
    netlink.no_arp(index)?;
    disable_offloads(name)?;
    Ok(index)
}

/// Opens a raw socket on one device that removes link-layer headers.
fn open(index: u32) -> Result<OwnedFd> {
    let failed = |e: Errno| Error::system("opening a packet socket", e);
    let socket = socket(
        AddressFamily::Packet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        SockProtocol::EthAll,
    )
    .map_err(failed)?;
    bind(socket.as_raw_fd(), &link_address(index, libc::ETH_P_ALL)).map_err(failed)?;
    // Only root in the initial namespace may exceed the system's limit; otherwise the limit is sufficient.
    let _ = setsockopt(&socket, sockopt::RcvBuf, &BUFFER);
    let _ = setsockopt(&socket, sockopt::SndBuf, &BUFFER);
    Ok(socket)
}

fn link_address(index: u32, protocol: i32) -> LinkAddr {
    let mut address = [0; 8];
    address[..6].copy_from_slice(&ADDRESS);
    let raw = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (protocol as u16).to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: address,
    };
    // SAFETY: the pointer and the length are those of a whole sockaddr_ll of its own family.
    let made = unsafe {
        LinkAddr::from_raw(
            (&raw const raw).cast(),
            Some(size_of::<libc::sockaddr_ll>() as u32),
        )
    };
    made.unwrap_or_else(|| unreachable!("the family is AF_PACKET"))
}

/// Disables segmentation and checksum offload of the device (ethtool's ioctl).
fn disable_offloads(name: &str) -> Result<()> {
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    /// ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO.
    const OFF: [u32; 4] = [0x17, 0x1f, 0x24, 0x2c];
    let socket = socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .map_err(|e| Error::system("opening a socket", e))?;
    for command in OFF {
        let mut value = Value { command, data: 0 };
        // SAFETY: all zeros is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request
            .ifr_name
            .iter_mut()
            .zip(name.bytes().take(libc::IFNAMSIZ - 1))
        {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the request names a device and points to an ethtool_value, as SIOCETHTOOL wants.
        let done =
            unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
        Errno::result(done)
            .map_err(|e| Error::system(format!("switching offloads of {name} off"), e))?;
    }
    Ok(())
}

impl AsFd for PacketDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
