//! The connection between a host's kernel and the emulated network: one device per network interface.
//!
//! It is a TUN device if the user may open one. Where ordinary users may not open `/dev/net/tun`, a pair of Ethernet
//! devices with a packet socket at the network's end does the same, more slowly.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::frame::{Frame, is_temporary};
use super::namespace::NetNs;
use super::netlink::Netlink;
use super::packet::PacketDevice;
use super::tun::TunDevice;
use crate::kind::Choice;
use crate::{Error, Result};

/// Most datagrams that one read returns.
pub const BATCH: usize = tun_rs::IDEAL_BATCH_SIZE;

/// The network's end of a host's interface.
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
    /// Creates an interface in the namespace of a host: up, with an MTU in bytes and without addresses.
    ///
    /// # Errors
    /// When neither kind of device can be created.
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

    /// Reads at most [`BATCH`] datagrams that the host's kernel sent into `frames` (which has at least as many);
    /// returns their number, 0 when there are none. Each frame is truncated to its datagram.
    ///
    /// # Errors
    /// When the device has disappeared.
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

    /// Passes datagrams to the host's kernel. Their frames can be reused afterwards, with any content.
    ///
    /// # Errors
    /// When the device has disappeared; datagrams for which the kernel has no room are lost, as in a network card.
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

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Tun(tun) => tun.as_fd(),
            Kind::Packet(packet) => packet.as_fd(),
        }
    }
}
