//! Where a host's kernel and the emulated network meet: one device a network interface.
//!
//! A TUN device if we may open one. Where `/dev/net/tun` is closed to ordinary users, a pair of
//! Ethernet devices with a packet socket at our end does the same, slower.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::kind::Choice;
use crate::namespace::NetNs;
use crate::netlink::Netlink;
use crate::packet::PacketDevice;
use crate::tun::TunDevice;
use crate::{Error, Result};

/// Free bytes in front of every datagram, for the header that offloading needs.
pub const HEADROOM: usize = tun_rs::VIRTIO_NET_HDR_LEN;

/// Most datagrams that one read may give.
pub const BATCH: usize = tun_rs::IDEAL_BATCH_SIZE;

/// A datagram behind [`HEADROOM`] bytes.
pub type Frame = Vec<u8>;

/// The network's end of an interface of a host.
#[derive(Debug)]
pub struct Device {
    kind: Kind,
    /// Index of the interface in the host's namespace.
    index: u32,
}

#[derive(Debug)]
enum Kind {
    Tun(Box<TunDevice>),
    Packet(Box<PacketDevice>),
}

impl Device {
    /// Makes an interface in the namespace of a host, up, with an MTU in bytes and without addresses.
    ///
    /// # Errors
    /// When neither kind of device can be made.
    pub fn new(host: &NetNs, name: &str, mtu: u32, choice: Choice) -> Result<Self> {
        let device = match choice {
            Choice::Veth => Self::veth(host, name)?,
            Choice::Best { offload } => match Self::tun(host, name, mtu, offload) {
                Err(Error::System { reason, .. })
                    if reason.kind() == io::ErrorKind::PermissionDenied
                        || reason.kind() == io::ErrorKind::NotFound =>
                {
                    Self::veth(host, name)?
                }
                made => made?,
            },
        };
        host.run(|| Netlink::open()?.link_up(device.index, mtu))?;
        Ok(device)
    }

    fn tun(host: &NetNs, name: &str, mtu: u32, offload: bool) -> Result<Self> {
        let (tun, index) = host.run(|| TunDevice::new(name, mtu, offload))?;
        let kind = Kind::Tun(Box::new(tun));
        Ok(Self { kind, index })
    }

    fn veth(host: &NetNs, name: &str) -> Result<Self> {
        let (packet, index) = PacketDevice::new(host, name)?;
        let kind = Kind::Packet(Box::new(packet));
        Ok(Self { kind, index })
    }

    /// Index of the interface in the host's namespace.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// "tun" or "veth".
    pub fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Tun(_) => "tun",
            Kind::Packet(_) => "veth",
        }
    }

    /// Reads what the host's kernel sent, at most [`BATCH`] datagrams, into `frames` (which has at
    /// least so many): how many; 0 when there is nothing. Each frame is cut to its datagram.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        let read = match &mut self.kind {
            Kind::Tun(tun) => tun.receive(frames),
            Kind::Packet(packet) => packet.receive(frames),
        };
        match read {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
            other => other,
        }
    }

    /// Gives datagrams to the host's kernel. Their frames are free afterwards, with any content.
    ///
    /// # Errors
    /// When the device is gone; what the kernel had no room for is lost, as in a network card.
    pub fn send(&mut self, frames: &mut [Frame]) -> io::Result<()> {
        let sent = match &mut self.kind {
            Kind::Tun(tun) => tun.send(frames),
            Kind::Packet(packet) => packet.send(frames),
        };
        match sent {
            Err(e) if is_temporary(&e) => Ok(()),
            other => other,
        }
    }
}

/// The kernel refused one packet, not all.
pub(crate) fn is_temporary(e: &io::Error) -> bool {
    use nix::libc::{EINVAL, EIO, ENETDOWN, ENOBUFS, ENOMEM};
    e.kind() == io::ErrorKind::WouldBlock
        || matches!(
            e.raw_os_error(),
            Some(ENOBUFS | ENOMEM | EIO | EINVAL | ENETDOWN)
        )
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Tun(tun) => tun.as_fd(),
            Kind::Packet(packet) => packet.as_fd(),
        }
    }
}
