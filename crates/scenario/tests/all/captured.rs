//! Captures are what a real network would show: addresses, ports, identifications, times and keys. The file is read
//! here by its format (draft-ietf-opsawg-pcapng) and the headers by RFC 791, 768 and 9293, without our own parsers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gargalo_flow::Outcome;
use gargalo_scenario::build::{RunError, RunOptions, simulate};

use crate::common::scenario;

/// A folder that goes with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gargalo-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn run(&self, text: &str) -> Result<Outcome, RunError> {
        let options = RunOptions {
            output: Some(self.0.clone()),
            ..RunOptions::default()
        };
        simulate(&scenario(text), options)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A captured packet.
struct Seen {
    interface: u32,
    nanos: u64,
    original: usize,
    bytes: Vec<u8>,
}

impl Seen {
    fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn protocol(&self) -> u8 {
        self.bytes[9]
    }

    fn identification(&self) -> u16 {
        self.u16(4)
    }

    /// Source and destination.
    fn ends(&self) -> [String; 2] {
        [(12, 20), (16, 22)].map(|(address, port)| {
            let a = &self.bytes[address..address + 4];
            format!("{}.{}.{}.{}:{}", a[0], a[1], a[2], a[3], self.u16(port))
        })
    }
}

/// The packets of a capture, and its TLS secrets.
fn read(folder: &Path) -> (Vec<Seen>, String) {
    let file = std::fs::read(folder.join("capture.pcapng")).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut at, mut packets, mut secrets) = (0, Vec::new(), String::new());
    while at < file.len() {
        let length = word(at + 4) as usize;
        match word(at) {
            6 => {
                let stored = word(at + 20) as usize;
                packets.push(Seen {
                    interface: word(at + 8),
                    nanos: u64::from(word(at + 12)) << 32 | u64::from(word(at + 16)),
                    original: word(at + 24) as usize,
                    bytes: file[at + 28..at + 28 + stored].to_vec(),
                });
            }
            10 => {
                let n = word(at + 12) as usize;
                secrets += std::str::from_utf8(&file[at + 16..at + 16 + n]).unwrap();
            }
            _ => {}
        }
        at += length;
    }
    (packets, secrets)
}

/// Two hosts with a router between them: 10 ms to it, and the captured link of 10 ms and 10 Mbit/s behind it.
fn network(record: &str, flows: &[&str]) -> String {
    let mut text = format!(
        "duration = \"4s\"\nrecord = {{ captures = [\"last\"], {record} }}\n[topology.graph]\n\
         nodes = [\"a\", \"b\", \"r\"]\nhosts = [\"a\", \"b\"]\nlinks = [\n\
         {{ from = \"a\", to = \"r\", name = \"first\", rate = \"100Mbit/s\", delay = \"10ms\" }},\n\
         {{ from = \"r\", to = \"b\", name = \"last\", rate = \"10Mbit/s\", delay = \"10ms\" }} ]\n"
    );
    for flow in flows {
        text += &format!("[[flows]]\nfrom = \"a\"\nto = \"b\"\n{flow}\n");
    }
    text
}

const TCP: &str = "transport.tcp = { ecn = true }\nworkload.bulk = { bytes = \"40kB\" }";
const QUIC: &str = "transport.quic = {}\nworkload.bulk = { bytes = \"40kB\" }";
const UDP: &str = "stop = \"100ms\"\ntransport.udp = {}\nworkload.cbr = { rate = \"1Mbit/s\", packet_size = \"500B\" }";

#[test]
fn both_ends_of_a_link_show_every_packet_a_delay_apart() {
    let folder = Folder::new("captured-ends");
    let out = folder
        .run(&network("capture_ends = \"both\"", &[TCP, QUIC, UDP]))
        .unwrap();
    let (packets, _) = read(&folder.0);
    let at_end = |i: u32| packets.iter().filter(move |p| p.interface == i);
    // Up and down in the order of the bottleneck, which is that of arrival.
    for (direction, there) in [(2, true), (3, false)] {
        let goes_there = |p: &&Seen| p.ends()[0].contains(".0.1:") == there;
        let (near, far) = if there { (0, 1) } else { (1, 0) };
        let entered: Vec<_> = at_end(near).filter(goes_there).collect();
        let left: Vec<_> = at_end(far).filter(goes_there).collect();
        let link = &out.links[direction];
        assert_eq!(entered.len() as u64, link.offered_packets);
        // What ended the last flow may still be on its way.
        let last = out.end.as_nanos() - 15_000_000;
        let arrived = entered.iter().filter(|p| p.nanos < last).count();
        assert!((arrived..=entered.len()).contains(&left.len()));
        let bytes: usize = entered.iter().map(|p| p.original).sum();
        assert!((link.sent_bytes..link.sent_bytes + 200).contains(&(bytes as u64)));
        for (a, b) in entered.iter().zip(&left) {
            assert_eq!((a.ends(), a.original), (b.ends(), b.original));
            // 10 ms and 800 ns a byte, or longer behind others.
            assert!(b.nanos >= a.nanos + 10_000_000 + 800 * a.original as u64);
        }
        assert!(entered.is_sorted_by_key(|p| p.nanos));
    }
    // The first packets of TCP and QUIC come after the first link: 10 ms, and 80 ns a byte.
    let syn = &packets[0];
    assert_eq!(
        (syn.protocol(), syn.nanos),
        (6, 10_000_000 + 80 * syn.original as u64)
    );
}

#[test]
fn headers_are_those_of_the_transports() {
    let folder = Folder::new("captured-headers");
    let flows = [TCP, TCP, QUIC, UDP];
    folder
        .run(&network("capture_payload = false", &flows))
        .unwrap();
    let (packets, _) = read(&folder.0);
    let mut ends: BTreeMap<u8, BTreeSet<[String; 2]>> = BTreeMap::new();
    for p in &packets {
        ends.entry(p.protocol()).or_default().insert(p.ends());
        // RFC 791: the total length is that of the whole datagram.
        assert_eq!(usize::from(p.u16(2)), p.original);
    }
    // Ports of clients in the order of flows (RFC 6335 §6); QUIC is at that of HTTP/3.
    let both = |a: &str, b: &str| [[a.to_owned(), b.to_owned()], [b.to_owned(), a.to_owned()]];
    let tcp = [
        both("10.0.0.1:49152", "10.0.0.2:5001"),
        both("10.0.0.1:49153", "10.0.0.2:5001"),
    ];
    assert_eq!(ends[&6], tcp.into_iter().flatten().collect());
    let [udp, _] = both("10.0.0.1:49155", "10.0.0.2:5001");
    let udp = both("10.0.0.1:49154", "10.0.0.2:443")
        .into_iter()
        .chain([udp]);
    assert_eq!(ends[&17], udp.collect());
    // TCP counts its packets, UDP has the number of the datagram, QUIC is not fragmented (RFC 6864 §4.1).
    let of = |protocol: u8, port: u16| {
        let is =
            move |p: &&Seen| p.protocol() == protocol && (p.u16(20) == port || p.u16(22) == port);
        packets.iter().filter(is)
    };
    let numbers: Vec<u16> = packets
        .iter()
        .filter(|p| p.protocol() == 6)
        .map(Seen::identification)
        .collect();
    assert_eq!(numbers, (1..=numbers.len() as u16).collect::<Vec<_>>());
    let numbers: Vec<u16> = of(17, 5001).map(Seen::identification).collect();
    assert_eq!(numbers, (0..numbers.len() as u16).collect::<Vec<_>>());
    assert!(numbers.len() > 20, "{numbers:?}");
    assert!(of(17, 443).all(|p| p.identification() == 0));
    // Headers of what has no content; whole datagrams of QUIC, which else could not be decrypted.
    assert!(of(17, 5001).all(|p| (p.bytes.len(), p.original) == (28, 528)));
    assert!(of(17, 443).all(|p| p.bytes.len() == p.original));
    let data = |p: &&Seen| p.original > 1000;
    assert!(of(6, 49152).filter(data).all(|p| p.bytes.len() == 52));
    // ECT(0) on data, and not on a SYN (RFC 3168 §6.1.1).
    assert!(of(6, 49152).filter(data).all(|p| p.bytes[1] & 3 == 2));
    // Sequence numbers and timestamps of connections begin anywhere (RFC 9293 §3.4.1, RFC 7323 §5.4).
    let syns: Vec<_> = packets
        .iter()
        .filter(|p| p.protocol() == 6 && p.bytes[33] & 2 != 0)
        .collect();
    assert_eq!(syns.len(), 4);
    let isn = |p: &&Seen| p.bytes[24..28].to_vec();
    assert_eq!(syns.iter().map(isn).collect::<BTreeSet<_>>().len(), 4);
    assert_eq!(syns[0].nanos, 10_000_000 + 80 * 60);
    assert!(
        syns[..2]
            .iter()
            .all(|p| p.bytes[1] & 3 == 0 && p.bytes[33] & 16 == 0)
    );
    let options: BTreeSet<_> = syns[..2].iter().map(|p| p.bytes[40..].to_vec()).collect();
    assert_eq!(options.len(), 2);
}

#[test]
fn payload_is_stored_on_request() {
    let folder = Folder::new("captured-payload");
    folder
        .run(&network(
            "capture_payload = true, verify = true",
            &[TCP, UDP],
        ))
        .unwrap();
    let (packets, _) = read(&folder.0);
    assert!(packets.len() > 50);
    assert!(packets.iter().all(|p| p.bytes.len() == p.original));
    // What is compared at the receiver is real content, and what is not are zeros.
    let is_zero = |p: &&Seen| p.bytes[p.bytes.len() - 100..].iter().all(|b| *b == 0);
    let large = |protocol| {
        packets
            .iter()
            .filter(move |p| p.original > 500 && p.protocol() == protocol)
    };
    assert!(!large(6).any(|p| is_zero(&p)) && large(17).all(|p| is_zero(&p)));
}

#[test]
fn keys_of_quic_are_in_the_capture_and_beside_it() {
    let folder = Folder::new("captured-keys");
    let kept = || std::fs::read_to_string(folder.0.join("keys.log"));
    for flow in [
        TCP,
        "transport.quic = { crypto = \"null\" }\nworkload.bulk = { bytes = \"40kB\" }",
    ] {
        folder.run(&network("", &[flow])).unwrap();
        let (_, secrets) = read(&folder.0);
        assert!(secrets.is_empty() && kept().is_err(), "{flow}");
    }
    folder.run(&network("", &[QUIC])).unwrap();
    let (packets, secrets) = read(&folder.0);
    assert_eq!(secrets, kept().unwrap());
    // Both directions, of the handshake and of what follows, each from both ends.
    for label in [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET ",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET ",
        "CLIENT_TRAFFIC_SECRET_0 ",
        "SERVER_TRAFFIC_SECRET_0 ",
    ] {
        assert!(secrets.contains(label), "{label} in {secrets}");
    }
    assert!(packets.len() > 30);
}

/// RFC 9000 §9: a connection goes on from another address, or from another port of a new binding.
#[test]
fn a_client_that_moves_has_another_address_from_then_on() {
    let folder = Folder::new("captured-moves");
    for (change, new) in [("port", "10.0.0.1:49153"), ("address", "10.128.0.1:49152")] {
        let quic = format!(
            "start = \"1s\"\ntransport.quic = {{ migration = {{ after = \"500ms\", change = \"{change}\" }} }}\n\
             workload.bulk = {{ bytes = \"1MB\" }}"
        );
        let out = folder.run(&network("", &[&quic])).unwrap();
        assert_eq!(out.flows[0].delivered.get(), 1_000_000, "{change}");
        let (packets, _) = read(&folder.0);
        let sent: Vec<_> = packets.iter().filter(|p| p.u16(22) == 443).collect();
        let moved = sent.iter().position(|p| p.ends()[0] == new).unwrap();
        // 10 ms over the first link.
        let at = sent[moved].nanos;
        assert!(
            (1_510_000_000..1_520_000_000).contains(&at),
            "{change}: {at}"
        );
        assert!(
            sent[..moved]
                .iter()
                .all(|p| p.ends()[0] == "10.0.0.1:49152")
        );
        assert!(sent[moved..].iter().all(|p| p.ends()[0] == new));
        assert!(packets.iter().any(|p| p.ends()[1] == new));
    }
}

/// What a full disk does: every write to it fails, at the latest when what is buffered is written at the end.
#[cfg(target_os = "linux")]
#[test]
fn a_capture_that_cannot_be_written_is_an_error() {
    let folder = Folder::new("captured-full");
    std::os::unix::fs::symlink("/dev/full", folder.0.join("capture.pcapng")).unwrap();
    for flow in [TCP.to_owned(), QUIC.replace("40kB", "2MB")] {
        let failed = folder.run(&network("", &[&flow])).unwrap_err().to_string();
        assert!(
            failed.contains("capture.pcapng") && failed.contains("o space left"),
            "{failed}"
        );
    }
    std::fs::remove_file(folder.0.join("capture.pcapng")).unwrap();
    std::fs::remove_file(folder.0.join("keys.log")).unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.0.join("keys.log")).unwrap();
    let failed = folder.run(&network("", &[QUIC])).unwrap_err().to_string();
    assert!(failed.contains("o space left"), "{failed}");
}

#[test]
fn a_qlog_trace_is_written_for_each_end_of_a_flow_with_a_row() {
    let folder = Folder::new("captured-qlog");
    let counted = format!("record = \"summary\"\n{QUIC}");
    let text = network("qlog = true", &[QUIC, TCP, &counted, QUIC]);
    folder
        .run(&text.replace("captures = [\"last\"], ", ""))
        .unwrap();
    let names = std::fs::read_dir(folder.0.join("qlog")).unwrap();
    let names: BTreeSet<_> = names
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected = ["0-client", "0-server", "3-client", "3-server"];
    assert_eq!(names, expected.map(|n| format!("flow{n}.sqlog")).into());
    let server = std::fs::read_to_string(folder.0.join("qlog/flow3-server.sqlog")).unwrap();
    assert!(server.contains("server") && server.lines().count() > 50);
    assert!(!folder.0.join("capture.pcapng").exists());
}
