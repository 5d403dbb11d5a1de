//! Packet captures: the links that are captured and the interfaces of the capture file.

use std::io::Write;
use std::path::PathBuf;

use gargalo_settings::names;
use gargalo_trace::pcapng;

use crate::routing::DirectionId;
use crate::topology::Topology;

/// Which links to capture, and the file to write.
#[derive(Clone, Debug)]
pub struct CaptureSpec {
    /// The pcapng file.
    pub path: PathBuf,
    /// Names of links.
    pub links: Vec<String>,
    /// The ends of these links at which packets are captured.
    pub ends: CaptureEnds,
    /// Keep whole packets. Otherwise only headers are kept, and whole QUIC datagrams of the simulator: truncated ones
    /// cannot be decrypted.
    pub payload: bool,
    /// Written into the file's section header.
    pub comment: String,
}

names! {
    /// At which ends of a link packets are captured. A program that follows connections takes what passes both for
    /// repetitions.
    pub enum CaptureEnds {
        /// Where up begins: the client's, the left one.
        From = "from",
        /// Where up ends: the server's, the right one.
        To = "to",
        /// Both, each as an interface of its own.
        Both = "both",
    }
}

/// The interfaces of a capture file, by link and end.
#[derive(Clone, Debug)]
pub struct CaptureInterfaces(Vec<[Option<u32>; 2]>);

impl CaptureInterfaces {
    /// Declares an interface for each captured end.
    ///
    /// # Errors
    /// Returns errors of the output.
    pub fn declare<W: Write>(
        spec: &CaptureSpec,
        topology: &Topology,
        writer: &mut pcapng::Writer<W>,
    ) -> std::io::Result<Self> {
        let wanted = match spec.ends {
            CaptureEnds::From => [true, false],
            CaptureEnds::To => [false, true],
            CaptureEnds::Both => [true, true],
        };
        let mut all = vec![[None; 2]; topology.links.len()];
        for (link, interfaces) in topology.links.iter().zip(&mut all) {
            if !spec.links.contains(&link.name) {
                continue;
            }
            for (end, node) in [link.a, link.b].into_iter().enumerate() {
                let node = &topology.nodes[node as usize].name;
                if wanted[end] {
                    interfaces[end] = Some(writer.add_interface(&pcapng::Interface {
                        name: format!("{} {node}", link.name),
                        description: format!("{node}'s end of link {}", link.name),
                        snap_len: 0,
                    })?);
                }
            }
        }
        Ok(Self(all))
    }

    /// The interface at which a packet is seen that enters a direction of a link, or that has `arrived` at its end;
    /// `None` if that end is not captured.
    #[inline]
    pub fn at(&self, direction: DirectionId, arrived: bool) -> Option<u32> {
        let end = (direction as usize & 1) ^ usize::from(arrived);
        self.0.get(direction as usize / 2)?[end]
    }
}

#[cfg(test)]
mod tests {
    use gargalo_link::LinkConfig;

    use super::*;
    use crate::topology::{LinkSpec, Node};

    /// The interfaces of the second of two links: where its directions are entered, and where packets arrive.
    fn of_the_second(ends: CaptureEnds) -> [Option<u32>; 4] {
        let node = |name: &str| Node {
            name: name.into(),
            is_host: true,
        };
        let link = |name: &str, a, b| LinkSpec {
            name: name.into(),
            a,
            b,
            up: LinkConfig::default(),
            down: LinkConfig::default(),
        };
        let topology = Topology {
            nodes: vec![node("left"), node("middle"), node("right")],
            links: vec![link("near", 0, 1), link("far", 1, 2)],
        };
        let spec = CaptureSpec {
            path: PathBuf::new(),
            links: vec!["far".into()],
            ends,
            payload: false,
            comment: String::new(),
        };
        let mut writer = pcapng::Writer::new(Vec::new(), "").unwrap();
        let all = CaptureInterfaces::declare(&spec, &topology, &mut writer).unwrap();
        for direction in [0, 1, 4] {
            assert_eq!(all.at(direction, false), None, "not captured");
        }
        [(2, false), (3, true), (3, false), (2, true)].map(|(d, arrived)| all.at(d, arrived))
    }

    #[test]
    fn a_packet_is_seen_where_it_enters_and_where_it_arrives() {
        assert_eq!(
            of_the_second(CaptureEnds::From),
            [Some(0), Some(0), None, None]
        );
        assert_eq!(
            of_the_second(CaptureEnds::To),
            [None, None, Some(0), Some(0)]
        );
        assert_eq!(
            of_the_second(CaptureEnds::Both),
            [Some(0), Some(0), Some(1), Some(1)]
        );
    }
}
