//! ICMP: echo, errors about connections, path MTU with and without it; and UDP.

use std::sync::Arc;

use crate::common::*;
use bytes::Bytes;
use gargalo_host::{Host, HostEvent, SocketError};
use gargalo_tcp::{Error, MtuProbing};
use gargalo_units::{Duration, Ecn};
use gargalo_wire::ip::Addresses;

fn toward(v6: bool, side: usize) -> Addresses {
    Addresses::new(address(v6, 1 - side), address(v6, side)).unwrap()
}

fn all_out(host: &mut Host, w_now: gargalo_units::Instant) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let mut out = Vec::new();
        if !host.poll_transmit(w_now, &mut out) {
            return all;
        }
        all.push(out);
    }
}

#[test]
fn an_echo_comes_back_and_a_flood_of_them_does_not() {
    for v6 in [false, true] {
        let mut host = Host::new(host_config(SERVER), at(1000)).unwrap();
        let (kind, protocol) = if v6 { (128, 58) } else { (8, 1) };
        let mut body = vec![kind, 0, 0, 0, 1, 2, 0, 7];
        body.extend(b"are you there?");
        let request = dress(toward(v6, SERVER), protocol, &mut body, Ecn::NotEct);
        host.handle(at(1000), &request);
        body[0] = if v6 { 129 } else { 0 };
        let expected = dress(toward(v6, CLIENT), protocol, &mut body, Ecn::NotEct);
        let mut answers = all_out(&mut host, at(1000));
        // The host sets flow label and DF itself.
        assert_eq!(answers.len(), 1);
        assert_eq!(answers.pop().unwrap(), expected);
        for _ in 0..500 {
            host.handle(at(1000), &request);
        }
        assert_eq!(all_out(&mut host, at(1000)).len(), 49, "a burst of fifty");
        assert_eq!(host.stats().icmp_limited, 451);
        let mut damaged = request.clone();
        *damaged.last_mut().unwrap() ^= 1;
        host.handle(at(9000), &damaged);
        assert_eq!(all_out(&mut host, at(9000)).len(), 0);
    }
}

#[test]
fn an_opening_connection_heeds_hard_errors_and_remembers_soft_ones() {
    for v6 in [false, true] {
        let mut w = World::new(Network::default());
        let (now, o) = (w.now, cubic());
        let [hard, soft, forged] =
            [0; 3].map(|_| w.hosts[CLIENT].connect(now, None, server(v6), &o).unwrap());
        let syns = all_out(&mut w.hosts[CLIENT], now);
        // Port unreachable; host unreachable; administratively prohibited with a wrong number.
        w.hosts[CLIENT].handle(now, &icmp_error(&syns[0], 0, (3, 3), (1, 4)));
        w.hosts[CLIENT].handle(now, &icmp_error(&syns[1], 0, (3, 1), (1, 3)));
        let mut wrong = syns[2].clone();
        wrong[if v6 { 44 } else { 24 }] ^= 1;
        w.hosts[CLIENT].handle(now, &icmp_error(&wrong, 0, (3, 13), (1, 1)));
        let event = |id, error| {
            let error = Some(error);
            (CLIENT, HostEvent::Closed { id, error })
        };
        // The SYNs are lost on purpose.
        w.network.loss = 1.0;
        w.drain();
        assert_eq!(w.events, [event(hard, Error::Unreachable)]);
        w.run_for(Duration::from_secs(300));
        assert!(w.events.contains(&event(soft, Error::Unreachable)));
        assert!(w.events.contains(&event(forged, Error::TimedOut)));
        let stats = w.hosts[CLIENT].stats();
        assert_eq!((stats.icmp_heeded, stats.icmp_ignored), (2, 1));
    }
}

#[test]
fn an_open_connection_outlives_errors() {
    let mut w = World::new(Network::default());
    w.keep = 64;
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let ids = w.connect(server(false), &cubic());
    let mut t = Transfer::new(ids, CLIENT, 4 << 20);
    w.run_while(Duration::from_secs(60), |w| {
        let latest = w.recent[CLIENT].back().unwrap().clone();
        for code in 0..16 {
            let now = w.now;
            // Code 4 would be about the MTU, and is below.
            if code != 4 {
                let error = icmp_error(&latest, 0, (3, code), (1, 0));
                w.hosts[CLIENT].handle(now, &error);
            }
        }
        !t.step(&mut w.hosts)
    });
    assert!(w.hosts[CLIENT].stats().icmp_heeded > 100);
}

#[test]
fn a_narrow_path_that_tells_is_found_at_once() {
    for v6 in [false, true] {
        let mut w = World::new(Network {
            mtu: 1400,
            ..Network::default()
        });
        w.hosts[SERVER].listen(server(v6), cubic()).unwrap();
        let ids = w.connect(server(v6), &cubic());
        for from in [CLIENT, SERVER] {
            let start = w.now;
            w.transfer(ids, from, 1 << 20, Duration::from_secs(10));
            assert!(w.now - start < ms(400), "took {}", w.now - start);
            let e = w.hosts[from].endpoint(ids[from]).unwrap();
            assert_eq!(e.mss(), 1400 - if v6 { 72 } else { 52 });
            assert_eq!(w.hosts[from].path_mtu(ids[from]), Some(1400));
            let stats = e.stats();
            assert_eq!(stats.sender.timeouts + stats.sender.lost_packets, 0);
            assert_eq!(w.hosts[from].stats().too_big, 1);
        }
        assert!(
            w.too_long <= 20,
            "an initial window each way: {}",
            w.too_long
        );
    }
}

#[test]
fn a_path_that_narrows_in_the_middle_of_a_transfer() {
    let mut w = World::new(Network {
        loss: 0.01,
        ..Network::default()
    });
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let ids = w.connect(server(false), &cubic());
    let mut t = Transfer::new(ids, CLIENT, 6 << 20);
    for mtu in [1500, 1400, 1000, 552] {
        w.network.mtu = mtu;
        let until = t.read + (1 << 20);
        w.run_while(Duration::from_secs(60), |w| {
            t.step(&mut w.hosts);
            t.read < until
        });
        assert_eq!(w.hosts[CLIENT].path_mtu(ids[CLIENT]), Some(mtu as u32));
    }
    w.run_while(Duration::from_secs(60), |w| !t.step(&mut w.hosts));
}

#[test]
fn a_router_that_gives_no_mtu_is_answered_by_plateaus() {
    let mut w = World::new(Network::default());
    w.keep = 10;
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let ids = w.connect(server(false), &cubic());
    for expected in [1492, 1006, 576, 552, 552] {
        w.recent[CLIENT].clear();
        w.hosts[CLIENT].write(ids[CLIENT], vec![0; 1448].into());
        w.drain();
        let longest = w.recent[CLIENT].iter().max_by_key(|d| d.len());
        let sent = longest.unwrap().clone();
        let now = w.now;
        w.hosts[CLIENT].handle(now, &icmp_error(&sent, 0, (3, 4), (2, 0)));
        assert_eq!(w.hosts[CLIENT].path_mtu(ids[CLIENT]), Some(expected));
        w.run_for(ms(300));
    }
    // Outdated: the quoted segment was acknowledged.
    let (now, old) = (w.now, w.recent[CLIENT][0].clone());
    let ignored = w.hosts[CLIENT].stats().icmp_ignored;
    w.hosts[CLIENT].handle(now, &icmp_error(&old, 553, (3, 4), (2, 0)));
    assert_eq!(w.hosts[CLIENT].stats().icmp_ignored, ignored + 1);
}

#[test]
fn a_path_that_drops_long_datagrams_silently_is_found_if_wanted() {
    for v6 in [false, true] {
        for mode in [MtuProbing::BlackHole, MtuProbing::Always, MtuProbing::Off] {
            let mut options = cubic();
            options.tcp = Arc::new(gargalo_tcp::Config {
                mtu_probing: mode,
                ..gargalo_tcp::Config::clone(&options.tcp)
            });
            let mut w = World::with(
                [host_config(CLIENT), host_config(SERVER)],
                Network {
                    mtu: 1400,
                    tells: false,
                    ..Network::default()
                },
            );
            w.hosts[SERVER].listen(server(v6), cubic()).unwrap();
            let ids = w.connect(server(v6), &options);
            if mode != MtuProbing::Off {
                w.transfer(ids, CLIENT, 4 << 20, Duration::from_secs(60));
                // Found to a few bytes: 1400 less the headers.
                let most = 1400 - if v6 { 72 } else { 52 };
                let end = w.hosts[CLIENT].endpoint(ids[CLIENT]).unwrap();
                assert!((most - 8..=most).contains(&end.mss()), "{}", end.mss());
            } else {
                let mut t = Transfer::new(ids, CLIENT, 1 << 20);
                t.step(&mut w.hosts);
                w.run_for(Duration::from_secs(20));
                t.step(&mut w.hosts);
                assert_eq!(t.read, 0);
            }
        }
    }
}

#[test]
fn udp_goes_both_ways_and_queues_are_bounded() {
    for v6 in [false, true] {
        let mut w = World::new(Network::default());
        let near = w.hosts[CLIENT].bind_udp(std::net::SocketAddr::new(address(v6, CLIENT), 0));
        let near = near.unwrap();
        let any = if v6 { "[::]:53" } else { "0.0.0.0:53" };
        let far = w.hosts[SERVER].bind_udp(any.parse().unwrap()).unwrap();
        let to = std::net::SocketAddr::new(address(v6, SERVER), 53);
        for ecn in [Ecn::NotEct, Ecn::Ect1] {
            let hello = Bytes::from_static(b"hello");
            w.hosts[CLIENT].send_udp(near, to, hello, ecn).unwrap();
        }
        w.hosts[CLIENT]
            .send_udp(near, to, Bytes::new(), Ecn::Ce)
            .unwrap();
        w.run_for(ms(20));
        assert_eq!(w.events, [(SERVER, HostEvent::UdpReadable(far))]);
        let from = w.hosts[CLIENT].udp_local_addr(near).unwrap();
        let hello = Bytes::from_static(b"hello");
        let got: Vec<_> = std::iter::from_fn(|| w.hosts[SERVER].recv_udp(far)).collect();
        assert_eq!(
            got,
            [
                (from, hello.clone(), Ecn::NotEct),
                (from, hello.clone(), Ecn::Ect1),
                (from, Bytes::new(), Ecn::Ce)
            ]
        );
        w.hosts[SERVER]
            .send_udp(far, from, hello.clone(), Ecn::NotEct)
            .unwrap();
        w.run_for(ms(20));
        assert_eq!(
            w.hosts[CLIENT].recv_udp(near),
            Some((to, hello, Ecn::NotEct))
        );
        let most = 1500 - if v6 { 48 } else { 28 };
        let too_long = w.hosts[CLIENT].send_udp(near, to, vec![0; most + 1].into(), Ecn::NotEct);
        assert_eq!(
            too_long,
            Err(SocketError::TooLong {
                length: 1501,
                mtu: 1500
            })
        );
        let mut taken = 0;
        while w.hosts[CLIENT]
            .send_udp(near, to, vec![0; most].into(), Ecn::NotEct)
            .is_ok()
        {
            taken += 1;
        }
        assert!((100..130).contains(&taken));
        w.run_for(ms(20));
        w.hosts[CLIENT]
            .send_udp(near, to, vec![0; most].into(), Ecn::NotEct)
            .unwrap();
        w.run_for(ms(20));
        assert_eq!(w.hosts[SERVER].stats().udp_dropped, 1);
    }
}

#[test]
fn a_udp_port_that_nobody_has_is_told() {
    for v6 in [false, true] {
        let mut w = World::new(Network::default());
        let local = std::net::SocketAddr::new(address(v6, CLIENT), 1234);
        let near = w.hosts[CLIENT].bind_udp(local).unwrap();
        assert!(w.hosts[CLIENT].bind_udp(local).is_err());
        let to = std::net::SocketAddr::new(address(v6, SERVER), 53);
        for _ in 0..200 {
            w.hosts[CLIENT]
                .send_udp(near, to, vec![1; 700].into(), Ecn::NotEct)
                .unwrap();
        }
        w.run_for(ms(20));
        let unreachable = HostEvent::UdpUnreachable {
            socket: near,
            remote: to,
        };
        assert_eq!(w.events, [(CLIENT, unreachable)]);
        let stats = w.hosts[SERVER].stats();
        assert_eq!((stats.udp_unreachable, stats.icmp_errors_sent), (200, 50));
        w.hosts[CLIENT].close_udp(near);
        let gone = w.hosts[CLIENT].send_udp(near, to, Bytes::new(), Ecn::NotEct);
        assert_eq!(gone, Err(SocketError::Unknown));
    }
}

#[test]
fn what_is_not_for_us_is_dropped_and_counted() {
    let mut host = Host::new(host_config(SERVER), at(0)).unwrap();
    let a =
        |src: &str, dst: &str| Addresses::new(src.parse().unwrap(), dst.parse().unwrap()).unwrap();
    for (addresses, protocol) in [
        (a("10.0.0.1", "10.0.0.3"), 132),
        (a("224.0.0.1", "10.0.0.2"), 132),
        (a("0.0.0.0", "10.0.0.2"), 132),
        (a("10.0.0.1", "10.0.0.2"), 132),
        // ICMPv6 over IPv4.
        (a("10.0.0.1", "10.0.0.2"), 58),
    ] {
        host.handle(
            at(0),
            &dress(addresses, protocol, &mut [0; 20].clone(), Ecn::NotEct),
        );
    }
    let mut fragment = dress(a("10.0.0.1", "10.0.0.2"), 6, &mut [0; 20], Ecn::NotEct);
    fragment[6] = 0x20;
    fragment[10..12].fill(0);
    let sum = gargalo_wire::Checksum::new()
        .add_bytes(&fragment[..20])
        .finish();
    fragment[10..12].copy_from_slice(&sum.to_be_bytes());
    host.handle(at(0), &fragment);
    host.handle(at(0), &[]);
    host.handle(at(0), &[0x45; 3]);
    let s = *host.stats();
    assert_eq!((s.not_ours, s.bad_sources, s.unknown_protocols), (1, 2, 2));
    assert_eq!((s.fragments, s.malformed, s.received), (1, 2, 8));
    assert!(all_out(&mut host, at(0)).is_empty());
}
