//! Packet captures: packets at the ends of links, as a real network would show them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;

use bytes::Bytes;
use gargalo_flow::{CaptureInterfaces, CaptureSpec, DirectionId, NodeId, Topology};
use gargalo_trace::{pcapng, shown, why_not};
use gargalo_units::{Ecn, Instant};
use gargalo_wire as wire;

use crate::BuildError;
use crate::address::interface_address;
use crate::packet::{Body, Content};

/// An open capture file.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    writer: pcapng::Writer<BufWriter<File>>,
    interfaces: CaptureInterfaces,
    payload: bool,
    /// The hosts at the ends of each route, by its first hop.
    ends: Vec<Option<(NodeId, NodeId)>>,
    buffer: Vec<u8>,
    /// TLS secrets, written beside the capture; the file is created with the first of them.
    keys: Option<BufWriter<File>>,
    /// The first failure; later packets are not written.
    failed: Option<String>,
    /// The identification of the last TCP segment.
    identification: u16,
}

impl Capture {
    pub(crate) fn open(spec: &CaptureSpec, topology: &Topology) -> Result<Self, BuildError> {
        let failed = |reason| BuildError::Capture {
            path: shown(&spec.path).display().to_string(),
            reason,
        };
        let mut writer =
            pcapng::Writer::create(&spec.path, &spec.comment).map_err(|e| failed(e.to_string()))?;
        for name in &spec.links {
            if !topology.links.iter().any(|l| l.name == *name) {
                let known: Vec<_> = topology.links.iter().map(|l| l.name.as_str()).collect();
                return Err(BuildError::UnknownLink {
                    name: name.clone(),
                    known: known.join(", "),
                });
            }
        }
        let interfaces = CaptureInterfaces::declare(spec, topology, &mut writer)
            .map_err(|e| failed(why_not(&spec.path, &e)))?;
        Ok(Self {
            path: spec.path.clone(),
            writer,
            interfaces,
            payload: spec.payload,
            ends: Vec::new(),
            buffer: Vec::with_capacity(2048),
            keys: None,
            failed: None,
            identification: 0,
        })
    }

    /// Records the hosts whose packets take a route.
    pub(crate) fn add_route(&mut self, route: u32, from: NodeId, to: NodeId) {
        let route = route as usize;
        if route >= self.ends.len() {
            self.ends.resize(route + 1, None);
        }
        self.ends[route] = Some((from, to));
    }

    /// Whether packets are captured that enter (`arrived` false) or leave one direction of a link.
    pub(crate) fn sees(&self, direction: DirectionId, arrived: bool) -> bool {
        self.interfaces.at(direction, arrived).is_some()
    }

    /// Captures a packet that enters (`arrived` false) or leaves one direction of a link.
    pub(crate) fn packet(
        &mut self,
        now: Instant,
        direction: DirectionId,
        arrived: bool,
        ecn: Ecn,
        body: &Body,
    ) {
        let Some(interface) = self.interfaces.at(direction, arrived) else {
            return;
        };
        let Some(&Some((from, to))) = self.ends.get(body.route as usize) else {
            return;
        };
        if self.failed.is_some() {
            return;
        }
        self.buffer.clear();
        let identification = self.identification(&body.content);
        let built = encode(
            &mut self.buffer,
            identification,
            (
                interface_address(from, body.interfaces.0),
                interface_address(to, body.interfaces.1),
            ),
            ecn,
            body,
            self.payload,
        );
        let written = built.and_then(|original_len| {
            let packet = pcapng::Packet {
                time: now,
                interface,
                bytes: &self.buffer,
                original_len,
                comment: "",
            };
            self.writer
                .write_packet(&packet)
                .map_err(|e| why_not(&self.path, &e))
        });
        if let Err(reason) = written {
            self.failed = Some(reason);
        }
    }

    /// The identification of a packet's IP header. Datagrams of UDP, which have no content, are told apart by theirs,
    /// which is the same wherever they are captured. Those of QUIC have none: they are not fragmented (RFC 6864 §4.1).
    fn identification(&mut self, content: &Content) -> u16 {
        match content {
            Content::Udp(datagram) => datagram.number as u16,
            Content::Quic(_) => 0,
            Content::Tcp(_) => {
                self.identification = self.identification.wrapping_add(1);
                self.identification
            }
        }
    }

    /// Writes a TLS secret, as a line of an `SSLKEYLOGFILE`, into the capture and into `keys.log` beside it.
    pub(crate) fn secret(&mut self, line: &str) {
        if self.failed.is_some() {
            return;
        }
        if let Err(reason) = self.write_secret(line) {
            self.failed = Some(why_not(&self.path, &reason));
        }
    }

    fn write_secret(&mut self, line: &str) -> std::io::Result<()> {
        self.writer.add_tls_secrets(&format!("{line}\n"))?;
        let keys = match &mut self.keys {
            Some(keys) => keys,
            none => none.insert(BufWriter::new(File::create(
                self.path.with_file_name("keys.log"),
            )?)),
        };
        writeln!(keys, "{line}")
    }

    /// Writes what is buffered.
    pub(crate) fn close(self) -> Result<(), BuildError> {
        let keys = self.keys.map_or(Ok(()), |mut k| k.flush());
        let reason = match (self.failed, self.writer.finish(), keys) {
            (Some(reason), ..) => reason,
            (None, Err(e), _) | (None, Ok(_), Err(e)) => why_not(&self.path, &e),
            (None, Ok(_), Ok(())) => return Ok(()),
        };
        Err(BuildError::Capture {
            path: shown(&self.path).display().to_string(),
            reason,
        })
    }
}

/// Builds the IPv4 datagram as it would be on the wire, or without `payload` only its headers; content without bytes is
/// written as zeros. Returns the length of the whole datagram.
fn encode(
    out: &mut Vec<u8>,
    ident: u16,
    (src, dst): (Ipv4Addr, Ipv4Addr),
    ecn: Ecn,
    body: &Body,
    payload: bool,
) -> Result<u32, String> {
    // A QUIC host may have migrated to another address.
    let (src, dst) = match &body.content {
        Content::Quic(d) => (*d.from.ip(), *d.to.ip()),
        _ => (src, dst),
    };
    let addresses = wire::ip::Addresses::V4 { src, dst };
    let header = wire::ip::Header {
        ecn,
        ident,
        ..wire::ip::Header::new(addresses)
    };
    match &body.content {
        Content::Tcp(segment) if payload => header.emit_tcp(segment, out),
        Content::Tcp(segment) => header.emit_tcp_headers(segment, out),
        Content::Udp(datagram) => {
            let (src_port, dst_port) = datagram.ports;
            let datagram = wire::udp::Datagram {
                src_port,
                dst_port,
                payload: wire::tcp::Payload::synthetic(datagram.bytes),
            };
            if payload {
                header.emit_udp(&datagram, out)
            } else {
                header.emit_udp_headers(&datagram, out)
            }
        }
        Content::Quic(datagram) => {
            let payload = Bytes::copy_from_slice(&datagram.payload);
            header.emit_udp(
                &wire::udp::Datagram {
                    src_port: datagram.from.port(),
                    dst_port: datagram.to.port(),
                    payload: wire::tcp::Payload::real(payload),
                },
                out,
            )
        }
    }
    .map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Datagram, QuicDatagram};

    fn body(content: Content) -> Body {
        Body {
            flow: 0,
            generation: 0,
            side: 1,
            interfaces: (0, 0),
            route: 0,
            content,
        }
    }

    /// The bytes that are kept of a packet, and the length of the whole.
    fn encoded(content: Content, payload: bool) -> (Vec<u8>, u32) {
        let mut out = Vec::new();
        let ends = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let length = encode(&mut out, 77, ends, Ecn::Ce, &body(content), payload).unwrap();
        (out, length)
    }

    #[test]
    fn headers_are_kept_and_payload_if_it_is_asked_for() {
        let segment = || {
            Content::Tcp(wire::tcp::Segment {
                payload: wire::tcp::Payload::synthetic(500),
                ..wire::tcp::Segment::default()
            })
        };
        let datagram = || {
            Content::Udp(Datagram {
                bytes: 300,
                number: 0,
                sent_at: Instant::ZERO,
                ports: (49_152, 5001),
            })
        };
        let kept = |(bytes, length): (Vec<u8>, u32)| (bytes.len(), length);
        assert_eq!(kept(encoded(segment(), true)), (540, 540));
        assert_eq!(kept(encoded(segment(), false)), (40, 540));
        assert_eq!(kept(encoded(datagram(), true)), (328, 328));
        let (bytes, length) = encoded(datagram(), false);
        assert_eq!((bytes.len(), length), (28, 328));
        // Congestion Experienced, the identification, addresses and ports.
        assert_eq!((bytes[1] & 3, &bytes[4..6]), (3, &[0, 77][..]));
        assert_eq!(bytes[12..20], [10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(bytes[20..24], [192, 0, 19, 137]);
    }

    #[test]
    fn datagrams_of_quic_are_kept_whole_with_the_addresses_of_their_sockets() {
        let socket = |text: &str| text.parse().unwrap();
        let datagram = Content::Quic(QuicDatagram {
            payload: (&[1_u8, 2, 3][..]).into(),
            from: socket("10.128.0.1:50000"),
            to: socket("10.0.0.9:443"),
        });
        let (bytes, length) = encoded(datagram, false);
        assert_eq!((bytes.len(), length), (31, 31));
        assert_eq!(bytes[12..20], [10, 128, 0, 1, 10, 0, 0, 9]);
        assert_eq!(bytes[28..], [1, 2, 3]);
    }
}
