//! Resets, restarts, many connections, ports, fair service.

use std::collections::BTreeSet;

use crate::common::*;
use bytes::Bytes;
use gargalo_host::{Host, HostEvent, SocketError};
use gargalo_tcp::Error;
use gargalo_units::{Duration, Instant, Seq};
use gargalo_wire::ip::{Addresses, Datagram, Header, Transport, Verify};
use gargalo_wire::tcp::{Flags, Segment};

fn datagram(segment: &Segment) -> Vec<u8> {
    let addresses = Addresses::new(address(false, CLIENT), address(false, SERVER)).unwrap();
    let mut out = Vec::new();
    Header::new(addresses).emit_tcp(segment, &mut out).unwrap();
    out
}

fn all_out(host: &mut Host, now: Instant) -> Vec<Segment> {
    let mut segments = Vec::new();
    loop {
        let mut out = Vec::new();
        if !host.poll_transmit(now, &mut out) {
            return segments;
        }
        match Datagram::parse(&out, Verify::All).unwrap().transport {
            Transport::Tcp(s) => segments.push(s),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn strangers_are_reset_by_the_rules() {
    let mut host = Host::new(host_config(SERVER), at(0)).unwrap();
    let base = Segment {
        src_port: 9,
        dst_port: 80,
        seq: Seq::new(1000),
        ack: Seq::new(2000),
        ..Segment::default()
    };
    let mut answer = |flags| {
        let segment = Segment {
            flags,
            ..base.clone()
        };
        host.handle(at(0), &datagram(&segment));
        let out = all_out(&mut host, at(0));
        out.iter()
            .map(|s| (s.flags, s.seq.get(), s.ack.get()))
            .collect::<Vec<_>>()
    };
    // RFC 9293 §3.10.7.1.
    assert_eq!(answer(Flags::ACK), [(Flags::RST, 2000, 0)]);
    assert_eq!(answer(Flags::SYN), [(Flags::RST | Flags::ACK, 0, 1001)]);
    assert_eq!(answer(Flags::FIN), [(Flags::RST | Flags::ACK, 0, 1001)]);
    assert_eq!(answer(Flags::SYN | Flags::ACK), [(Flags::RST, 2000, 0)]);
    assert_eq!(answer(Flags::RST), []);
    assert_eq!(answer(Flags::RST | Flags::ACK), []);
    assert_eq!(host.connection_count(), 0);
}

#[test]
fn a_server_that_crashed_resets_what_it_forgot() {
    let mut w = World::new(Network::default());
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let ids = w.connect(server(false), &cubic());
    w.hosts[SERVER] = Host::new(host_config(SERVER), w.now).unwrap();
    w.hosts[CLIENT].write(ids[CLIENT], Bytes::from_static(b"still there?"));
    w.run_for(ms(100));
    let reset = HostEvent::Closed {
        id: ids[CLIENT],
        error: Some(Error::Reset),
    };
    assert!(w.events.contains(&(CLIENT, reset)));
}

#[test]
fn a_client_that_crashed_gets_through_on_the_same_port() {
    let mut w = World::new(Network::default());
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let ids = w.connect(server(false), &cubic());
    let local = w.hosts[CLIENT].local_addr(ids[CLIENT]);
    w.transfer(ids, CLIENT, 100_000, Duration::from_secs(1));
    w.hosts[CLIENT] = Host::new(host_config(CLIENT), w.now).unwrap();
    let (now, o) = (w.now, cubic());
    let again = w.hosts[CLIENT]
        .connect(now, local, server(false), &o)
        .unwrap();
    w.events.clear();
    // RFC 9293 §3.5.1, figure 9: the challenge is answered by a reset, and the SYN tried again.
    w.run_for(Duration::from_secs(3));
    let reset = HostEvent::Closed {
        id: ids[SERVER],
        error: Some(Error::Reset),
    };
    assert!(w.events.contains(&(SERVER, reset)), "{:?}", w.events);
    assert!(w.events.contains(&(CLIENT, HostEvent::Connected(again))));
}

#[test]
fn a_thousand_connections_carry_their_own_bytes() {
    for v6 in [false, true] {
        // A cookie whose acknowledgement is lost opens nothing until the client speaks.
        let mut config = host_config(SERVER);
        config.backlog = 1000;
        let network = Network {
            loss: 0.005,
            jitter: ms(1),
            ..Network::default()
        };
        let mut w = World::with([host_config(CLIENT), config], network);
        w.hosts[SERVER].listen(server(v6), cubic()).unwrap();
        let (now, o) = (w.now, cubic());
        let near: Vec<_> = (0..1000)
            .map(|_| w.hosts[CLIENT].connect(now, None, server(v6), &o).unwrap())
            .collect();
        let mut far = Vec::new();
        w.run_while(Duration::from_secs(60), |w| {
            for (_, e) in w.events.drain(..) {
                if let HostEvent::Accepted { connection, .. } = e {
                    far.push(connection);
                }
            }
            far.len() < 1000
        });
        let of_peer = |w: &World, id| w.hosts[SERVER].remote_addr(id).unwrap();
        let mut streams: Vec<_> = near
            .iter()
            .enumerate()
            .map(|(i, id)| {
                let local = w.hosts[CLIENT].local_addr(*id).unwrap();
                let peer = far.iter().find(|f| of_peer(&w, **f) == local).unwrap();
                Transfer::new([*id, *peer], i % 2, 20_000 + i as u64)
            })
            .collect();
        let mut end = w.now + Duration::from_secs(120);
        loop {
            let done = streams
                .iter_mut()
                .filter_map(|s| s.step(&mut w.hosts).then_some(()));
            if done.count() == 1000 {
                break;
            }
            w.run_for(ms(5));
            assert!(w.now < end, "not done");
        }
        end = w.now + Duration::from_secs(200);
        for (a, b) in near.iter().zip(&far) {
            w.hosts[CLIENT].release(*a);
            w.hosts[SERVER].release(*b);
        }
        w.run_until(end);
        assert_eq!(w.hosts.each_ref().map(Host::connection_count), [0, 0]);
    }
}

#[test]
fn ports_are_chosen_apart_and_run_out_in_the_end() {
    let mut config = host_config(CLIENT);
    config.ephemeral_ports = (50_000, 50_099);
    let mut host = Host::new(config, at(0)).unwrap();
    let o = cubic();
    let mut ports = BTreeSet::new();
    for _ in 0..100 {
        let id = host.connect(at(0), None, server(false), &o).unwrap();
        ports.insert(host.local_addr(id).unwrap().port());
    }
    assert_eq!(ports.len(), 100);
    assert_eq!(ports.first(), Some(&50_000));
    let none = host.connect(at(0), None, server(false), &o);
    assert_eq!(none, Err(SocketError::NoPortLeft));
    let other = "10.0.0.9:80".parse().unwrap();
    assert!(host.connect(at(0), None, other, &o).is_ok());
    let own = host.connect(at(0), None, "10.0.0.1:80".parse().unwrap(), &o);
    assert!(matches!(own, Err(SocketError::Ourselves { .. })));
    let taken = host.connect(
        at(0),
        Some("10.0.0.1:50005".parse().unwrap()),
        server(false),
        &o,
    );
    assert!(matches!(taken, Err(SocketError::InUse { .. })));
    for bad in [
        "0.0.0.0:80",
        "10.0.0.2:0",
        "224.0.0.1:80",
        "255.255.255.255:80",
    ] {
        let bad = host.connect(at(0), None, bad.parse().unwrap(), &o);
        assert!(matches!(bad, Err(SocketError::BadRemote { .. })));
    }
}

#[test]
fn connections_take_turns() {
    let mut w = World::new(Network::default());
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let a = w.connect(server(false), &cubic())[CLIENT];
    let b = w.connect(server(false), &cubic())[CLIENT];
    w.run_for(ms(300));
    for id in [a, b] {
        w.hosts[CLIENT].write(id, vec![1; 10 * 1448].into());
    }
    let now = w.now;
    let ports: Vec<_> = all_out(&mut w.hosts[CLIENT], now)
        .iter()
        .map(|s| s.src_port)
        .collect();
    assert_eq!(ports.len(), 20);
    assert!(ports.windows(2).all(|p| p[0] != p[1]), "{ports:?}");
}

#[test]
fn what_arrives_at_once_is_acknowledged_as_if_it_had_not() {
    let mut w = World::new(Network::default());
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let ids = w.connect(server(false), &cubic());
    w.transfer(ids, CLIENT, 100_000, Duration::from_secs(1));
    w.run_for(ms(500));
    w.hosts[CLIENT].write(ids[CLIENT], vec![1; 8 * 1448].into());
    let (now, mut datagrams) = (w.now, Vec::new());
    loop {
        let mut out = Vec::new();
        if !w.hosts[CLIENT].poll_transmit(now, &mut out) {
            break;
        }
        datagrams.push(out);
    }
    assert_eq!(datagrams.len(), 8);
    for d in &datagrams {
        w.hosts[SERVER].handle(now, d);
    }
    let acks = all_out(&mut w.hosts[SERVER], now);
    assert_eq!(acks.len(), 4, "every second one");
}

#[test]
fn an_unknown_id_is_nobody() {
    let mut w = World::new(Network::default());
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let ids = w.connect(server(false), &cubic());
    let now = w.now;
    let host = &mut w.hosts[CLIENT];
    host.abort(now, ids[CLIENT]);
    host.release(ids[CLIENT]);
    host.release(ids[CLIENT]);
    host.abort(now, ids[CLIENT]);
    host.close(now, ids[CLIENT]);
    assert_eq!(host.read(ids[CLIENT], 10), None);
    assert!(host.endpoint(ids[CLIENT]).is_none() && host.endpoint_mut(ids[CLIENT]).is_none());
    w.run_for(ms(50));
    let next = w.connect(server(false), &cubic());
    assert_ne!(
        next[CLIENT], ids[CLIENT],
        "the slot is reused, the id is not"
    );
    assert_eq!(w.hosts[CLIENT].remote_addr(ids[CLIENT]), None);
}

#[test]
fn an_impossible_host_is_refused_in_a_sentence() {
    let with = |change: fn(&mut gargalo_host::HostConfig)| {
        let mut config = host_config(CLIENT);
        change(&mut config);
        Host::new(config, at(0)).unwrap_err().to_string()
    };
    assert_eq!(
        with(|c| c.mtu = 1279),
        "MTU 1279 is out of range: give 1280 to 65535 bytes"
    );
    assert_eq!(
        with(|c| c.addresses.clear()),
        "a host needs at least one address"
    );
    assert_eq!(
        with(|c| c.addresses.push([127, 0, 0, 1].into())),
        "127.0.0.1 is not the address of a host: give a unicast address"
    );
    assert_eq!(
        with(|c| c.ephemeral_ports = (9, 8)),
        "ephemeral ports 9 to 8 are not a range: give 1 <= first <= last"
    );
    assert_eq!(
        with(|c| c.ttl = 0),
        "a time to live of 0 is not possible: give 1 to 255"
    );
}
