//! A TUN device.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, GROTable, SyncDevice};

use super::{Frame, HEADROOM};
use crate::{Error, Result};

/// Packets that may wait in the kernel for us to read them. Losses belong to the emulated links, so
/// this must be more than we ever fall behind.
const QUEUE: u32 = 10_000;

pub(super) struct TunDevice {
    device: SyncDevice,
    offload: bool,
    gro: GROTable,
    /// What is read with offloading, before it is split.
    whole: Vec<u8>,
    sizes: Vec<usize>,
}

impl fmt::Debug for TunDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunDevice").finish_non_exhaustive()
    }
}

impl TunDevice {
    /// Makes one in the namespace of the calling thread; also gives its index there.
    pub(super) fn new(name: &str, mtu: u32, offload: bool) -> Result<(Self, u32)> {
        let failed = |e: io::Error| Error::system(format!("making the TUN device {name}"), e);
        let device = DeviceBuilder::new()
            .name(name)
            .enable(false)
            .with(|b| {
                b.offload(offload);
            })
            .build_sync()
            .map_err(failed)?;
        device.set_nonblocking(true).map_err(failed)?;
        // Only the initial user namespace may; else the default of 500 must do.
        let _ = device.set_tx_queue_len(QUEUE);
        let index = device.if_index().map_err(failed)?;
        let largest = if offload { 65_535 } else { mtu as usize };
        let tun = Self {
            device,
            offload,
            gro: GROTable::default(),
            whole: vec![0; HEADROOM + largest],
            sizes: Vec::new(),
        };
        Ok((tun, index))
    }

    pub(super) fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        if !self.offload {
            let Some(frame) = frames.first_mut() else {
                return Ok(0);
            };
            let n = self.device.recv(&mut frame[HEADROOM..])?;
            frame.truncate(HEADROOM + n);
            return Ok(1);
        }
        self.sizes.resize(frames.len(), 0);
        let n = self
            .device
            .recv_multiple(&mut self.whole, frames, &mut self.sizes, HEADROOM)?;
        for (frame, size) in frames.iter_mut().zip(&self.sizes).take(n) {
            frame.truncate(HEADROOM + size);
        }
        Ok(n)
    }

    pub(super) fn send(&mut self, frames: &mut [Frame]) -> io::Result<()> {
        self.device
            .send_multiple(&mut self.gro, frames, HEADROOM)
            .map(drop)
    }
}

impl AsFd for TunDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
