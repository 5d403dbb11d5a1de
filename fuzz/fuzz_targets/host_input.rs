//! Datagrams into a host with a listener, a connection being opened and a UDP socket: no panic, and
//! bounded memory. Two bytes of length precede each datagram.
#![no_main]

use std::sync::Arc;

use gargalo_cc::{Params, Registered};
use gargalo_host::{Host, HostConfig, SocketOptions};
use gargalo_units::{Duration, Instant};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut now = Instant::from_nanos(1_000_000_000);
    let config = HostConfig::new(["10.0.0.1", "fd00::1"].map(|a| a.parse().unwrap()));
    let backlog = config.backlog;
    let mut host = Host::new(config, now).unwrap();
    let options = SocketOptions {
        tcp: Arc::default(),
        congestion: Arc::new(Registered::new("cubic", Params::new()).unwrap()),
    };
    host.listen("[::]:80".parse().unwrap(), options.clone()).unwrap();
    host.bind_udp("[::]:53".parse().unwrap()).unwrap();
    let remote = "10.0.0.2:80".parse().unwrap();
    host.connect(now, None, remote, &options).unwrap();
    let mut rest = bytes;
    while let Some((len, tail)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_le_bytes(*len)).min(tail.len());
        let (datagram, tail) = tail.split_at(len);
        rest = tail;
        host.handle(now, datagram);
        now += Duration::from_millis(1);
        host.handle_timeout(now);
        let mut out = Vec::new();
        while host.poll_transmit(now, &mut out) {}
        while host.poll_event().is_some() {}
    }
    assert!(host.connection_count() <= backlog + 1 + bytes.len() / 40);
});
