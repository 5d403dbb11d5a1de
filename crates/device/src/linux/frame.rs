//! Datagrams as devices read and write them.

use std::io;

/// Free bytes in front of every datagram, for the header of offloading.
pub const HEADROOM: usize = tun_rs::VIRTIO_NET_HDR_LEN;

/// A datagram after [`HEADROOM`] bytes.
pub type Frame = Vec<u8>;

/// Whether the kernel refused one packet only.
pub(crate) fn is_temporary(e: &io::Error) -> bool {
    use nix::libc::{EINVAL, EIO, ENETDOWN, ENOBUFS, ENOMEM};
    e.kind() == io::ErrorKind::WouldBlock
        || matches!(
            e.raw_os_error(),
            Some(ENOBUFS | ENOMEM | EIO | EINVAL | ENETDOWN)
        )
}
