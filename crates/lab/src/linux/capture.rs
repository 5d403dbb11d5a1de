//! Packet captures of the emulated network: packets at the ends of links.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use gargalo_flow::{CaptureInterfaces, CaptureSpec, Topology};
use gargalo_trace::pcapng::{Packet, Writer};
use gargalo_units::Instant;

use crate::linux::fabric::{Direction, Witness};
use crate::linux::header::headers;
use crate::{Error, Result};

/// An open capture file.
pub(crate) struct Capture {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
    interfaces: CaptureInterfaces,
    payload: bool,
    /// The first failure; later packets are not written.
    failed: Option<std::io::Error>,
}

impl Capture {
    /// Creates the file, with an interface for each captured end.
    pub(crate) fn create(spec: &CaptureSpec, topology: &Topology) -> Result<Self> {
        let failed = |reason| Error::file(&spec.path, reason);
        let mut writer = Writer::create(&spec.path, &spec.comment)
            .map_err(|e| failed(std::io::Error::other(e.to_string())))?;
        let interfaces = CaptureInterfaces::declare(spec, topology, &mut writer).map_err(failed)?;
        Ok(Self {
            path: spec.path.clone(),
            writer,
            interfaces,
            payload: spec.payload,
            failed: None,
        })
    }
}

impl Witness for Capture {
    fn seen(&mut self, at: Instant, direction: Direction, arrived: bool, datagram: &[u8]) {
        let Some(interface) = self.interfaces.at(direction, arrived) else {
            return;
        };
        if self.failed.is_none() {
            let kept = if self.payload {
                datagram.len()
            } else {
                headers(datagram)
            };
            let packet = Packet {
                time: at,
                interface,
                bytes: &datagram[..kept],
                original_len: datagram.len() as u32,
                comment: "",
            };
            self.failed = self.writer.write_packet(&packet).err();
        }
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let path = self.path;
        let failed = |reason| Error::file(&path, reason);
        match self.failed {
            Some(reason) => Err(failed(reason)),
            None => self.writer.finish().map(drop).map_err(failed),
        }
    }
}
