//! The TUN device of a user-space host: whole datagrams, or with offloading runs of segments that pass in one system
//! call (IFF_VNET_HDR, virtio_net_hdr).

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use bytes::{Bytes, BytesMut};
use tun_rs::{SyncDevice, VIRTIO_NET_HDR_LEN, VirtioNetHdr};

use super::coalesce::{DATA_VALID, NEEDS_CSUM, Run};
use super::frame::is_temporary;
use super::tun;
use crate::{Error, Result};

/// Most bytes of a datagram, and of a run of segments.
const LONGEST: usize = 65_535;
/// Datagrams of at least this length are passed with their buffer, which is at most four times as large.
const LARGE: usize = 16 << 10;
/// Most lent buffers that are tracked.
const LENT: usize = 256;

const REMEDY: &str = "run it inside `gargalo shell`, or as root";

/// A TUN device in the network namespace of the calling thread; it is removed when the process ends.
pub struct Port {
    device: SyncDevice,
    offload: bool,
    buffer: BytesMut,
    /// Lent buffers: each is reused when nothing refers to it any more.
    lent: VecDeque<Bytes>,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("offload", &self.offload)
            .finish_non_exhaustive()
    }
}

/// A datagram that arrived.
#[derive(Clone, Debug)]
pub enum Arrived<'a> {
    /// A datagram whose checksums must be verified.
    Raw(&'a [u8]),
    /// One whose checksums need no verification: the packet never left this machine, or a device verified them.
    Verified(&'a [u8]),
    /// The same, large enough to be kept instead of copied.
    Large(Bytes),
}

impl Arrived<'_> {
    /// The bytes of the datagram.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Raw(bytes) | Self::Verified(bytes) => bytes,
            Self::Large(bytes) => bytes,
        }
    }
}

impl Port {
    /// Creates a device; also returns its name and its index.
    pub fn new(offload: bool) -> Result<(Self, String, u32)> {
        let failed = |e| Error::with_remedy("making a TUN device", e, REMEDY);
        let (device, index) = tun::open("gargalo%d", offload).map_err(failed)?;
        let name = device.name().map_err(failed)?;
        let port = Self {
            device,
            offload,
            buffer: BytesMut::new(),
            lent: VecDeque::new(),
        };
        Ok((port, name, index))
    }

    /// Whether runs of segments pass in one system call.
    pub fn offloads(&self) -> bool {
        self.offload
    }

    /// Returns the next datagram from the kernel, which may be a run of segments as one; `None`: there is none.
    pub fn receive(&mut self) -> io::Result<Option<Arrived<'_>>> {
        self.buffer.resize(VIRTIO_NET_HDR_LEN + LONGEST, 0);
        let n = match self.device.recv(&mut self.buffer) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(e) => return Err(e),
        };
        if !self.offload {
            return Ok(Some(Arrived::Raw(&self.buffer[..n])));
        }
        let header = VirtioNetHdr::decode(&self.buffer[..n])?;
        let is_verified = header.flags & (NEEDS_CSUM | DATA_VALID) != 0;
        if !is_verified || n < LARGE {
            let datagram = &self.buffer[VIRTIO_NET_HDR_LEN..n];
            return Ok(Some(if is_verified {
                Arrived::Verified(datagram)
            } else {
                Arrived::Raw(datagram)
            }));
        }
        let next = self.take_buffer();
        let whole = std::mem::replace(&mut self.buffer, next).freeze();
        let datagram = whole.slice(VIRTIO_NET_HDR_LEN..n);
        self.lent.push_back(whole);
        Ok(Some(Arrived::Large(datagram)))
    }

    /// Returns a lent buffer that is no longer in use, or a new one. Checking a few is enough: data is read in the
    /// order in which it arrives.
    fn take_buffer(&mut self) -> BytesMut {
        if let Some(oldest) = self.lent.pop_front() {
            match oldest.try_into_mut() {
                Ok(buffer) => return buffer,
                // A slow reader keeps it; beyond a limit, it is no longer tracked.
                Err(held) if self.lent.len() < LENT => self.lent.push_back(held),
                Err(_) => {}
            }
        }
        BytesMut::with_capacity(VIRTIO_NET_HDR_LEN + LONGEST)
    }

    /// Passes a run of segments, or a single datagram, to the kernel. Datagrams for which it has no room are lost, as
    /// in a network card.
    pub fn send(&mut self, run: &Run<'_>) -> io::Result<()> {
        let sent = tun::send(&self.device, run, self.offload);
        match sent {
            Err(e) if !is_temporary(&e) => Err(e),
            _ => Ok(()),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
