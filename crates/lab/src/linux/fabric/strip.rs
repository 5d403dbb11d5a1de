//! A middlebox that removes Multipath TCP options from packets, as some firewalls do.

use gargalo_flow::Stripper;
use gargalo_wire::ip::TCP;
use gargalo_wire::mptcp::KIND;

use crate::linux::header::transport;

const SYN: u8 = 0x02;
/// Kind of the option No-Operation (RFC 9293 §3.2).
const NOP: u8 = 1;

/// Passes a datagram through a middlebox that replaces the options by no-operations.
pub(super) fn pass(stripper: &mut Stripper, datagram: &mut [u8]) {
    let found = transport(datagram).filter(|t| t.protocol == TCP && t.fragment == 0);
    let Some(tcp) = found.and_then(|t| datagram.get_mut(t.offset..)) else {
        return;
    };
    let Some(header) = tcp.first_chunk::<20>() else {
        return;
    };
    let (length, is_syn) = (usize::from(header[12] >> 4) * 4, header[13] & SYN != 0);
    if stripper.wants(is_syn, tcp.len().saturating_sub(length) as u64) {
        take_out(tcp, length);
    }
}

/// Replaces Multipath TCP options of a segment with a header of `length` bytes, and updates the checksum.
fn take_out(tcp: &mut [u8], length: usize) {
    let end = length.min(tcp.len());
    let mut at = 20;
    while at < end {
        let size = match tcp[at] {
            0 => return,
            NOP => 1,
            kind => {
                let size = usize::from(tcp.get(at + 1).copied().unwrap_or(0));
                if size < 2 || at + size > end {
                    return;
                }
                if kind == KIND {
                    for i in at..at + size {
                        replace(tcp, i, NOP);
                    }
                }
                size
            }
        };
        at += size;
    }
}

/// Replaces a byte and updates the checksum (RFC 1624, equation 3).
fn replace(tcp: &mut [u8], at: usize, byte: u8) {
    let word = |b: u8| u16::from_be_bytes(if at.is_multiple_of(2) { [b, 0] } else { [0, b] });
    let [high, low] = [tcp[16], tcp[17]];
    let (old, new) = (word(tcp[at]), word(byte));
    tcp[at] = byte;
    let sum = !u16::from_be_bytes([high, low]);
    let mut total = u32::from(sum) + u32::from(!old) + u32::from(new);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    let sum = !(total as u16);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use gargalo_link::Strip;
    use gargalo_units::Seq;
    use gargalo_wire::ip::{Addresses, Datagram, Header, Transport, Verify};
    use gargalo_wire::mptcp::{DataNumber, Dss, List, Mapping, MptcpOption};
    use gargalo_wire::tcp::{Flags, Options, Payload, Segment, Timestamps};

    fn datagram(v6: bool, flags: Flags, payload: usize) -> Vec<u8> {
        let (a, b) = if v6 {
            ("fd00::1", "fd00::2")
        } else {
            ("10.0.0.1", "10.0.0.2")
        };
        let addresses = Addresses::new(a.parse().unwrap(), b.parse().unwrap()).unwrap();
        let dss = MptcpOption::Dss(Dss {
            data_fin: false,
            data_ack: Some(DataNumber::Short(7)),
            mapping: Some(Mapping {
                data_seq: DataNumber::Long(0x0102_0304_0506_0708),
                subflow_seq: 1,
                length: 999,
                checksum: None,
            }),
        });
        let segment = Segment {
            src_port: 1,
            dst_port: 2,
            seq: Seq::new(5),
            flags,
            options: Options {
                timestamps: Some(Timestamps { value: 1, echo: 2 }),
                mptcp: Some(Box::new(List::from(dss))),
                ..Options::default()
            },
            payload: Payload::real(vec![9; payload].into()),
            ..Segment::default()
        };
        let mut out = Vec::new();
        Header::new(addresses).emit_tcp(&segment, &mut out).unwrap();
        out
    }

    fn has_options(datagram: &[u8]) -> bool {
        let parsed = Datagram::parse(datagram, Verify::All).expect("the checksum fits");
        let Transport::Tcp(segment) = parsed.transport else {
            panic!("no TCP");
        };
        assert!(segment.options.timestamps.is_some());
        segment.options.mptcp.is_some()
    }

    #[test]
    fn options_are_taken_out_where_they_should_and_the_checksum_fits() {
        for v6 in [false, true] {
            for (strip, syn, rest) in [
                (Strip::All, false, false),
                (Strip::Syn, false, true),
                (Strip::Rest, true, false),
            ] {
                let mut m = Stripper::new(strip);
                for (flags, kept) in [(Flags::SYN, syn), (Flags::ACK, rest)] {
                    let mut d = datagram(v6, flags, 101);
                    pass(&mut m, &mut d);
                    assert_eq!(has_options(&d), kept, "{strip:?}");
                }
            }
        }
    }

    #[test]
    fn after_so_much_payload_everything_is_stripped() {
        let mut m = Stripper::new(Strip::After(200));
        let kept: Vec<bool> = (0..4)
            .map(|_| {
                let mut d = datagram(false, Flags::ACK, 100);
                pass(&mut m, &mut d);
                has_options(&d)
            })
            .collect();
        assert_eq!(kept, [true, true, false, false]);
    }

    #[test]
    fn every_start_of_a_datagram_is_survived() {
        for v6 in [false, true] {
            let d = datagram(v6, Flags::ACK, 10);
            let mut m = Stripper::new(Strip::All);
            for n in 0..d.len() {
                pass(&mut m, &mut d[..n].to_vec());
                let mut bad = d.clone();
                bad[n] = 0xff;
                pass(&mut m, &mut bad);
            }
        }
    }
}
