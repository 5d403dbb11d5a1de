//! A capture of a handshake, data, a selective acknowledgement and a close, read by another parser.

use std::time;

use gargalo_trace::pcapng::{Interface, Packet, Writer};
use gargalo_units::{Instant, Seq};
use gargalo_wire::ip::{Addresses, Datagram, Header, Transport, Verify};
use gargalo_wire::tcp::{Extra, Flags, Options, Payload, SackBlocks, Segment, Timestamps};
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::section_header::SectionHeaderOption;
use pcap_file::pcapng::{Block, PcapNgReader};

fn addresses() -> Addresses {
    Addresses::V4 {
        src: [10, 0, 0, 1].into(),
        dst: [10, 0, 1, 1].into(),
    }
}

/// Segments with their direction: `true` from client to server.
fn exchange() -> Vec<(bool, Segment)> {
    let timestamps = |value, echo| Some(Timestamps { value, echo });
    let syn_options = |ts| Options {
        timestamps: ts,
        extra: Some(Box::new(Extra {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            ..Extra::default()
        })),
        ..Options::default()
    };
    let client = Segment {
        src_port: 49152,
        dst_port: 5001,
        window: 512,
        ..Segment::default()
    };
    let server = Segment {
        src_port: 5001,
        dst_port: 49152,
        window: 512,
        ..Segment::default()
    };
    let mut sack = SackBlocks::EMPTY;
    sack.push(Seq::new(1449), Seq::new(2897));
    let data = |seq, value| Segment {
        seq: Seq::new(seq),
        ack: Seq::new(1),
        flags: Flags::ACK,
        options: Options {
            timestamps: timestamps(value, 1),
            ..Options::default()
        },
        payload: Payload::synthetic(1448),
        ..client.clone()
    };
    vec![
        (
            true,
            Segment {
                flags: Flags::SYN,
                options: syn_options(timestamps(1, 0)),
                ..client.clone()
            },
        ),
        (
            false,
            Segment {
                ack: Seq::new(1),
                flags: Flags::SYN | Flags::ACK,
                options: syn_options(timestamps(1, 1)),
                ..server.clone()
            },
        ),
        (true, data(1, 2)),
        (true, data(1449, 2)),
        (
            false,
            Segment {
                seq: Seq::new(1),
                ack: Seq::new(1),
                flags: Flags::ACK,
                options: Options {
                    timestamps: timestamps(2, 2),
                    sack,
                    ..Options::default()
                },
                ..server
            },
        ),
    ]
}

const START: u64 = 5_000_000_123;

fn capture(snap_len: u32) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), "cubic-vs-bbr, seed 1").unwrap();
    let interface = |name: &str| Interface {
        name: name.to_owned(),
        description: "100Mbit/s, 20ms".to_owned(),
        snap_len,
    };
    let left = writer.add_interface(&interface("bottleneck left")).unwrap();
    let right = writer
        .add_interface(&interface("bottleneck right"))
        .unwrap();
    let mut bytes = Vec::new();
    for (i, (forward, segment)) in exchange().into_iter().enumerate() {
        let addresses = if forward {
            addresses()
        } else {
            addresses().reversed()
        };
        bytes.clear();
        Header::new(addresses)
            .emit_tcp(&segment, &mut bytes)
            .unwrap();
        let time = Instant::from_nanos(START + i as u64 * 10_000_001);
        let interface = if forward { left } else { right };
        writer.write(time, interface, &bytes).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn another_parser_reads_every_segment() {
    let file = capture(0);
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    let comment = SectionHeaderOption::Comment("cubic-vs-bbr, seed 1".into());
    assert!(reader.section().options.contains(&comment));
    let mut expected = exchange().into_iter().enumerate();
    let mut names = Vec::new();
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => {
                assert_eq!(interface.linktype, DataLink::RAW);
                assert!(
                    interface
                        .options
                        .contains(&InterfaceDescriptionOption::IfTsResol(9))
                );
                names.extend(interface.options.iter().find_map(|o| match o {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                }));
            }
            Block::EnhancedPacket(packet) => {
                let (i, (forward, mut segment)) = expected.next().unwrap();
                let nanos = START + i as u64 * 10_000_001;
                assert_eq!(packet.timestamp, time::Duration::from_nanos(nanos));
                assert_eq!(packet.interface_id, u32::from(!forward));
                assert_eq!(packet.original_len as usize, packet.data.len());
                let parsed = Datagram::parse(&packet.data, Verify::All).unwrap();
                let zeros = vec![0; segment.payload.len() as usize];
                segment.payload = Payload::real(zeros.into());
                assert_eq!(parsed.transport, Transport::Tcp(segment));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(names, ["bottleneck left", "bottleneck right"]);
    assert!(expected.next().is_none());
}

#[test]
fn snap_length_cuts_the_data_and_keeps_the_length() {
    let file = capture(96);
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    let mut cut = 0;
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            assert!(packet.data.len() <= 96);
            if packet.original_len == 1500 {
                assert_eq!(packet.data.len(), 96);
                cut += 1;
            }
        }
    }
    assert_eq!(cut, 2);
}

#[test]
fn beginnings_and_comments_of_packets() {
    let mut writer = Writer::new(Vec::new(), "").unwrap();
    let interface = writer.add_interface(&Interface::default()).unwrap();
    writer
        .write_packet(&Packet {
            time: Instant::from_nanos(1 << 40),
            interface,
            bytes: &[0x45, 0, 5],
            original_len: 1500,
            comment: "dropped: queue full",
        })
        .unwrap();
    let nowhere = writer.write(Instant::ZERO, interface + 1, &[]);
    assert!(nowhere.unwrap_err().to_string().contains("no interface 1"));
    let file = writer.finish().unwrap();
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    reader.next_block().unwrap().unwrap();
    let Some(Ok(Block::EnhancedPacket(packet))) = reader.next_block() else {
        panic!("no packet")
    };
    assert_eq!(packet.original_len, 1500);
    assert_eq!(packet.data[..], [0x45, 0, 5]);
    assert_eq!(packet.timestamp, time::Duration::from_nanos(1 << 40));
    let comment = EnhancedPacketOption::Comment("dropped: queue full".into());
    assert_eq!(packet.options, [comment]);
}
