//! From a captured frame to its IP packet (the registry of link types is <https://www.tcpdump.org/linktypes.html>).

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_PPPOE: u16 = 0x8864;
/// Tags before the EtherType: IEEE 802.1Q, 802.1ad, and the older double tags.
const VLAN_TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Most tags that are looked behind.
const MOST_TAGS: usize = 4;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;

/// What a frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// An IP packet, or what was kept of it, after a link-layer header of this length.
    Ip(&'a [u8], usize),
    /// Another protocol, or less than a header.
    Other,
    /// The link type is not known here.
    UnknownLink,
}

/// Finds the IP packet of a frame.
pub fn ip_packet(link_type: i32, frame: &[u8]) -> Content<'_> {
    match link_type {
        // Ethernet.
        1 => after_ethertype(frame, 12),
        // PPP, with or without the address and control fields of HDLC.
        9 | 50 => match frame {
            [0xff, 0x03, ..] => after_ppp(frame, 2),
            _ => after_ppp(frame, 0),
        },
        // Raw IP, under several numbers, and IPv4 and IPv6 alone.
        12 | 14 | 101 | 228 | 229 => at(frame, 0),
        // BSD and OpenBSD loopback: an address family, in the byte order of either machine.
        0 | 108 => at(frame, 4),
        // Linux cooked capture: `tcpdump -i any`, and its second version.
        113 => after_ethertype(frame, 14),
        276 => match frame.first_chunk::<2>().map(|b| u16::from_be_bytes(*b)) {
            Some(ETHERTYPE_IPV4 | ETHERTYPE_IPV6) => at(frame, 20),
            _ => Content::Other,
        },
        _ => Content::UnknownLink,
    }
}

/// What follows an EtherType at an offset, past VLAN tags and PPPoE.
fn after_ethertype(frame: &[u8], mut offset: usize) -> Content<'_> {
    for _ in 0..=MOST_TAGS {
        match word(frame, offset) {
            Some(ETHERTYPE_IPV4 | ETHERTYPE_IPV6) => return at(frame, offset + 2),
            Some(ETHERTYPE_PPPOE) => return after_ppp(frame, offset + 8),
            Some(tag) if VLAN_TAGS.contains(&tag) => offset += 4,
            _ => break,
        }
    }
    Content::Other
}

fn after_ppp(frame: &[u8], offset: usize) -> Content<'_> {
    match word(frame, offset) {
        Some(PPP_IPV4 | PPP_IPV6) => at(frame, offset + 2),
        _ => Content::Other,
    }
}

fn at(frame: &[u8], offset: usize) -> Content<'_> {
    match frame.get(offset..) {
        Some(rest) if matches!(rest.first().map(|b| b >> 4), Some(4 | 6)) => {
            Content::Ip(rest, offset)
        }
        _ => Content::Other,
    }
}

fn word(frame: &[u8], offset: usize) -> Option<u16> {
    let bytes = frame.get(offset..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: [u8; 2] = [0x45, 0];

    fn found(link_type: i32, before: &[u8]) -> Content<'static> {
        let frame: &'static [u8] = Box::leak([before, &IP].concat().into_boxed_slice());
        ip_packet(link_type, frame)
    }

    #[test]
    fn the_packet_is_behind_the_header_of_each_link_type() {
        let mac = [0u8; 12];
        for (link_type, before) in [
            (1, [&mac[..], &[8, 0]].concat()),
            (1, [&mac[..], &[0x81, 0, 0, 7, 8, 0]].concat()),
            (
                1,
                [&mac[..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 8, 0]].concat(),
            ),
            (
                1,
                [&mac[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0, 0x21]].concat(),
            ),
            (9, vec![0xff, 3, 0, 0x21]),
            (101, vec![]),
            (0, vec![2, 0, 0, 0]),
            (113, [&[0u8; 14][..], &[8, 0]].concat()),
            (276, [&[8u8, 0][..], &[0; 18]].concat()),
        ] {
            let expected = Content::Ip(&IP, before.len());
            assert_eq!(found(link_type, &before), expected, "link type {link_type}");
        }
    }

    #[test]
    fn other_protocols_and_short_frames_have_no_packet() {
        // ARP, a frame that ends in its header, a version that IP does not have, tags without an end.
        assert_eq!(
            found(1, &[[0u8; 12].as_slice(), &[8, 6]].concat()),
            Content::Other
        );
        assert_eq!(ip_packet(1, &[0; 13]), Content::Other);
        assert_eq!(ip_packet(101, &[0x75]), Content::Other);
        let tags = [0x81u8, 0, 0, 1].repeat(9);
        assert_eq!(
            found(1, &[[0u8; 12].as_slice(), &tags].concat()),
            Content::Other
        );
        assert_eq!(found(147, &[]), Content::UnknownLink);
    }
}
