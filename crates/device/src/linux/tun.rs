//! A TUN device.

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, SyncDevice};

use super::coalesce::{Batch, Run, Sums};
use super::frame::{Frame, HEADROOM, is_temporary};
use crate::{Error, Result};

/// Transmit queue length of the kernel's side, in packets. Losses belong to the emulated links, so this must exceed
/// any backlog.
const QUEUE: u32 = 10_000;

/// Creates a TUN device in the namespace of the calling thread, down and non-blocking; also returns its index. `%d` in
/// the name is replaced by an unused number.
pub(crate) fn open(name: &str, offload: bool) -> io::Result<(SyncDevice, u32)> {
    let device = DeviceBuilder::new()
        .name(name)
        .enable(false)
        .with(|b| {
            b.offload(offload);
        })
        .build_sync()?;
    device.set_nonblocking(true)?;
    // Only the initial user namespace may set it; otherwise the default of 500 must suffice.
    let _ = device.set_tx_queue_len(QUEUE);
    let index = device.if_index()?;
    Ok((device, index))
}

/// Passes a run of segments, or a single datagram, to the kernel.
pub(crate) fn send(device: &SyncDevice, run: &Run<'_>, offload: bool) -> io::Result<usize> {
    if !offload {
        return device.send(run.first());
    }
    let mut header = [0; HEADROOM];
    run.virtio_header().encode(&mut header)?;
    let mut slices = [IoSlice::new(&[]); Run::MOST_SLICES + 1];
    slices[0] = IoSlice::new(&header);
    let n = run.slices(&mut slices[1..]);
    device.send_vectored(&slices[..=n])
}

pub(crate) struct TunDevice {
    device: SyncDevice,
    offload: bool,
    batch: Batch,
    /// Data read with offloading, before it is split.
    whole: Vec<u8>,
    sizes: Vec<usize>,
}

impl fmt::Debug for TunDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunDevice").finish_non_exhaustive()
    }
}

impl TunDevice {
    /// Creates one in the namespace of the calling thread; also returns its index there.
    pub(crate) fn new(name: &str, mtu: u32, offload: bool) -> Result<(Self, u32)> {
        let failed = |e: io::Error| Error::system(format!("making the TUN device {name}"), e);
        let (device, index) = open(name, offload).map_err(failed)?;
        let largest = if offload { 65_535 } else { mtu as usize };
        let tun = Self {
            device,
            offload,
            batch: Batch::new(Sums::Done),
            whole: vec![0; HEADROOM + largest],
            sizes: Vec::new(),
        };
        Ok((tun, index))
    }

    pub(crate) fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
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

    pub(crate) fn send(&mut self, frames: &mut [Frame]) -> io::Result<()> {
        self.batch.clear();
        for frame in frames {
            self.batch.push(self.offload, |out| {
                out.extend_from_slice(&frame[HEADROOM..]);
                true
            });
        }
        for run in self.batch.runs() {
            match send(&self.device, &run, self.offload) {
                Err(e) if !is_temporary(&e) => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }
}

impl AsFd for TunDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
