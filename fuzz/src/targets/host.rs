//! Datagrams to a host, raw and well-formed.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use gargalo_cc::{Params, Registered};
use gargalo_host::{Host, HostConfig, HostEvent, MptcpOptions, SocketOptions, packet_too_big};
use gargalo_units::{Bytes, Duration, Instant};
use gargalo_wire::ip::{Datagram, Transport, Verify};

use super::segments;

const STEPS: u32 = 300;
/// Most datagrams that a host may send at once.
const BURST: u32 = 5_000;
/// Most half-open connections.
const BACKLOG: usize = 16;

fn options(is_multipath: bool) -> SocketOptions {
    let cubic = Registered::new("cubic", Params::new()).expect("it is in the registry");
    SocketOptions {
        tcp: Arc::new(gargalo_tcp::Config {
            receive_buffer: Bytes::new(40_000),
            send_buffer: Bytes::new(40_000),
            ..gargalo_tcp::Config::default()
        }),
        congestion: Arc::new(cubic),
        mptcp: is_multipath.then(Arc::<MptcpOptions>::default),
        fast_open: true,
        dscp: 0,
    }
}

fn addresses(side: usize) -> [IpAddr; 2] {
    let n = side as u8 + 1;
    [
        IpAddr::V4([10, 0, 0, n].into()),
        IpAddr::V6([0xfd00, 0, 0, 0, 0, 0, 0, n.into()].into()),
    ]
}

/// Connects two hosts; what the first sends reaches the second as the input says. The listeners are on port 80 (TCP)
/// and 81 (Multipath TCP), UDP on port 53.
pub(crate) fn host(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let bits: u8 = u.arbitrary().unwrap_or_default();
    let now = Instant::from_nanos(1_000_000_000);
    let hosts = [0, 1].map(|side| {
        let config = HostConfig {
            backlog: BACKLOG,
            accept_queue: BACKLOG,
            seed: side as u64,
            ..HostConfig::new(addresses(side))
        };
        Host::new(config, now).expect("the configuration is right")
    });
    let mut play = Play {
        u,
        hosts,
        now,
        flying: Default::default(),
        sent: Default::default(),
    };
    let server = addresses(1)[usize::from(bits & 1)];
    for (port, is_multipath) in [(80, false), (81, true)] {
        let local = (server, port).into();
        let bound = play.hosts[1].listen(local, options(is_multipath));
        bound.expect("nobody has the port");
    }
    let udp = play.hosts[1].bind_udp((server, 53).into());
    udp.expect("nobody has the port");
    let port = 80 + u16::from(bits >> 1 & 1);
    let client = play.hosts[0].connect(now, None, (server, port).into(), &options(port == 81));
    client.expect("there is a free port");
    play.settle(0);
    for _ in 0..STEPS {
        if play.u.is_empty() || play.step().is_err() {
            break;
        }
        // A well-formed handshake takes three steps of the input.
        assert!(play.hosts[1].connection_count() <= 2 * BACKLOG + 2 + bytes.len() / 3);
    }
}

struct Play<'a> {
    u: Unstructured<'a>,
    hosts: [Host; 2],
    now: Instant,
    flying: [VecDeque<Vec<u8>>; 2],
    /// The latest datagram of each host.
    sent: [Option<Vec<u8>>; 2],
}

impl Play<'_> {
    fn settle(&mut self, side: usize) {
        let host = &mut self.hosts[side];
        while let Some(event) = host.poll_event() {
            match event {
                HostEvent::Accepted { connection, .. } | HostEvent::Connected(connection) => {
                    host.write(connection, vec![1; 5_000].into());
                }
                HostEvent::Readable(connection) => {
                    while host.read(connection, u64::MAX).is_some() {}
                }
                HostEvent::PeerClosed(connection) => host.close(self.now, connection),
                HostEvent::Closed { id, .. } => host.release(id),
                HostEvent::UdpReadable(socket) => while host.recv_udp(socket).is_some() {},
                _ => {}
            }
        }
        let (mut out, mut sent) = (Vec::new(), 0);
        while host.poll_transmit(self.now, &mut out) {
            sent += 1;
            assert!(sent < BURST, "it does not stop to send");
            let datagram = std::mem::take(&mut out);
            self.sent[side] = Some(datagram.clone());
            self.flying[1 - side].push_back(datagram);
        }
    }

    fn deliver(&mut self, to: usize, datagram: &[u8]) {
        self.hosts[to].handle(self.now, datagram);
        self.settle(to);
    }

    fn wait_until(&mut self, t: Instant) {
        self.now = self.now.max(t);
        for side in 0..2 {
            self.hosts[side].handle_timeout(self.now);
            self.settle(side);
        }
    }

    fn step(&mut self) -> Result<()> {
        let op: u8 = self.u.arbitrary()?;
        let to = usize::from(op & 1);
        match op >> 1 & 15 {
            0..=3 => {
                for _ in 0..=op >> 5 {
                    if let Some(d) = self.flying[to].pop_front() {
                        self.deliver(to, &d);
                    }
                }
            }
            4 => drop(self.flying[to].pop_front()),
            5 => {
                if let Some(d) = self.flying[to].front().cloned() {
                    self.deliver(to, &d);
                }
            }
            6 | 7 => {
                let next = self.hosts.iter().filter_map(Host::poll_timeout).min();
                self.wait_until(next.unwrap_or(self.now));
            }
            8 => {
                let bits: u8 = self.u.arbitrary()?;
                let nanos = u64::from(bits | 0x80) << (bits & 31);
                self.wait_until(self.now + Duration::from_nanos(nanos));
            }
            9 => {
                let len = usize::from(self.u.arbitrary::<u8>()?).min(self.u.len());
                let raw = self.u.bytes(len)?.to_vec();
                self.deliver(to, &raw);
            }
            10 => {
                // A router reports that a datagram of the host is too big.
                if let Some(d) = &self.sent[to] {
                    let mtu = self.u.arbitrary::<u16>()?.into();
                    let router = addresses(1 - to)[usize::from(d[0] >> 4 == 6)];
                    if let Some(icmp) = packet_too_big(router, mtu, d) {
                        self.deliver(to, &icmp);
                    }
                }
            }
            _ => self.forged(to)?,
        }
        Ok(())
    }

    /// Delivers a real segment with a changed field and correct checksums.
    fn forged(&mut self, to: usize) -> Result<()> {
        let real = match self.u.arbitrary::<u8>()? & 3 {
            0 => self.flying[to].pop_front(),
            1 => self.flying[to].front().cloned(),
            _ => self.sent[1 - to].clone(),
        };
        let Some(real) = real else { return Ok(()) };
        let Ok(mut d) = Datagram::parse(&real, Verify::All) else {
            return Ok(());
        };
        let Transport::Tcp(segment) = &mut d.transport else {
            return Ok(());
        };
        for _ in 0..=self.u.arbitrary::<u8>()? & 3 {
            segments::change(&mut self.u, segment)?;
        }
        match self.u.arbitrary::<u8>()? & 15 {
            0 => segment.src_port = self.u.arbitrary()?,
            1 => segment.dst_port = 80 + u16::from(self.u.arbitrary::<u8>()? & 1),
            _ => {}
        }
        let mut out = Vec::new();
        if d.header.emit_tcp(segment, &mut out).is_ok() {
            self.deliver(to, &out);
        }
        Ok(())
    }
}
