//! IPv4 and IPv6 datagrams with TCP and UDP: no panic, and a parsed datagram is written and read back.
#![no_main]

use gargalo_wire::ip::{Datagram, Transport, Verify};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // Random bytes hardly ever have a right checksum.
    let _ = Datagram::parse(bytes, Verify::All);
    let Ok(datagram) = Datagram::parse(bytes, Verify::Nothing) else {
        return;
    };
    assert!(!datagram.to_string().is_empty());
    let mut out = Vec::new();
    let written = match &datagram.transport {
        Transport::Tcp(segment) => datagram.header.emit_tcp(segment, &mut out),
        Transport::Udp(udp) => datagram.header.emit_udp(udp, &mut out),
        Transport::Other { .. } => return,
    };
    // Aligned options may lengthen a datagram beyond what IP can hold.
    if written.is_ok() {
        assert_eq!(Datagram::parse(&out, Verify::All).as_ref(), Ok(&datagram));
    }
});
