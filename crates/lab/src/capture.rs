//! Packet captures of the emulated network: what passes the two ends of a link, byte for byte.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use gargalo_sim::{CaptureSpec, Topology};
use gargalo_trace::pcapng::{Interface, Writer};
use gargalo_units::Instant;

use crate::fabric::{Direction, Witness};
use crate::{Error, Result};

/// An open capture file.
pub(crate) struct Capture {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
    /// Per direction: the interface at the sending end and the one at the receiving end.
    interfaces: Vec<Option<(u32, u32)>>,
    /// The first failure; later packets are not tried.
    failed: Option<std::io::Error>,
}

impl Capture {
    /// Makes the file, with an interface for each end of each link.
    pub(crate) fn create(spec: &CaptureSpec, topology: &Topology) -> Result<Self> {
        let failed = |reason| Error::File {
            path: spec.path.clone(),
            reason,
        };
        let mut writer = Writer::create(&spec.path, &spec.comment)
            .map_err(|e| failed(std::io::Error::other(e.to_string())))?;
        let mut interfaces = Vec::with_capacity(2 * topology.links.len());
        for link in &topology.links {
            if !spec.links.contains(&link.name) {
                interfaces.extend([None, None]);
                continue;
            }
            let mut end = |node: u32| {
                let node = &topology.nodes[node as usize].name;
                let interface = Interface {
                    name: format!("{} {node}", link.name),
                    description: format!("{node}'s end of link {}", link.name),
                    snap_len: 0,
                };
                writer.add_interface(&interface).map_err(failed)
            };
            let (a, b) = (end(link.a)?, end(link.b)?);
            interfaces.extend([Some((a, b)), Some((b, a))]);
        }
        Ok(Self {
            path: spec.path.clone(),
            writer,
            interfaces,
            failed: None,
        })
    }
}

impl Witness for Capture {
    fn seen(&mut self, at: Instant, direction: Direction, arrived: bool, datagram: &[u8]) {
        let Some(Some((near, far))) = self.interfaces.get(direction as usize) else {
            return;
        };
        if self.failed.is_none() {
            let interface = if arrived { *far } else { *near };
            self.failed = self.writer.write(at, interface, datagram).err();
        }
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let path = self.path;
        let failed = |reason| Error::File {
            path: path.clone(),
            reason,
        };
        match self.failed {
            Some(reason) => Err(failed(reason)),
            None => self.writer.finish().map(drop).map_err(failed),
        }
    }
}
