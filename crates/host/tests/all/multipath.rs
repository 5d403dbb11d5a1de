//! Multipath TCP at hosts with several addresses: assignment of subflows, peers and paths without support, changing
//! addresses.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::common::multi::*;
use crate::common::*;
use gargalo_host::{HostEvent, SocketError, SocketOptions};
use gargalo_units::{Count, Duration, Instant};

#[test]
fn subflows_find_their_connection_and_carry_both_directions() {
    let mut w = world(Network {
        loss: 0.01,
        jitter: ms(2),
        ..Network::default()
    });
    let ids = open(&mut w, [&mptcp(), &mptcp()]);
    w.transfer(ids, CLIENT, 8 << 20, Duration::from_secs(60));
    w.transfer(ids, SERVER, 8 << 20, Duration::from_secs(60));
    for (side, id) in ids.into_iter().enumerate() {
        let host = &w.hosts[side];
        let c = host.multipath(id).unwrap();
        assert!(c.is_multipath() && !c.has_fallen_back());
        let all: Vec<_> = c.subflows(w.now).collect();
        assert_eq!(all.len(), usize::from(PATHS));
        for s in &all {
            assert!(
                s.received_bytes > 100_000 && s.stats.sender.sent_packets > 100,
                "{s:?}"
            );
        }
        let sum: Count = all.iter().map(|s| s.stats.sender.sent_packets).sum();
        assert_eq!(host.tcp_stats(id).unwrap().sender.sent_packets, sum);
        assert!(host.endpoint(id).is_none());
        // A join may need a second attempt on a path with losses, nothing else is refused.
        assert_eq!(host.stats().joins_refused, 0);
        let news = w.events.iter().filter(|e| {
            let opened = |n: &_| matches!(n, gargalo_mptcp::Event::SubflowOpened { .. });
            matches!(e, (s, HostEvent::Multipath { id: i, news }) if *s == side && *i == id && opened(news))
        });
        assert!(news.count() >= usize::from(PATHS));
    }
    close(&mut w, ids);
    w.run_for(Duration::from_secs(200));
    assert_eq!(
        w.hosts[CLIENT].connection_count() + w.hosts[SERVER].connection_count(),
        0
    );
}

#[test]
fn a_full_mesh_has_every_pair_and_no_address_that_was_not_given() {
    let mut w = world(Network::default());
    let ids = open(&mut w, [&with("full-mesh"), &with("full-mesh")]);
    assert_eq!(subflows(&w, CLIENT, ids[CLIENT]), 9);
    assert_eq!(subflows(&w, SERVER, ids[SERVER]), 9);
    let mut few = (**with("full-mesh").mptcp.as_ref().unwrap()).clone();
    few.addresses = vec![on(0, CLIENT), on(2, CLIENT)];
    let few = SocketOptions {
        mptcp: Some(Arc::new(few)),
        ..cubic()
    };
    let ids = w.connect(server(false), &few);
    w.run_for(ms(500));
    assert_eq!(subflows(&w, CLIENT, ids[CLIENT]), 6);
    let mut foreign = (**few.mptcp.as_ref().unwrap()).clone();
    foreign.addresses = vec![on(7, CLIENT)];
    let foreign = SocketOptions {
        mptcp: Some(Arc::new(foreign)),
        ..cubic()
    };
    let now = w.now;
    let refused = w.hosts[CLIENT].connect(now, None, server(false), &foreign);
    assert_eq!(
        refused,
        Err(SocketError::NotOurs {
            address: on(7, CLIENT)
        })
    );
    let refused = w.hosts[CLIENT].listen(SocketAddr::new(on(0, CLIENT), 81), foreign);
    assert!(matches!(refused, Err(SocketError::NotOurs { .. })));
}

#[test]
fn one_side_without_it_gives_plain_tcp_by_the_same_calls() {
    for plain in [CLIENT, SERVER] {
        let mut w = world(Network::default());
        let (multipath, tcp) = (mptcp(), cubic());
        let mut options = [&multipath, &multipath];
        options[plain] = &tcp;
        let ids = open(&mut w, options);
        w.transfer(ids, CLIENT, 1 << 20, Duration::from_secs(30));
        w.transfer(ids, SERVER, 1 << 20, Duration::from_secs(30));
        match w.hosts[CLIENT].multipath(ids[CLIENT]) {
            Some(c) => assert!(c.has_fallen_back()),
            None => assert_eq!(plain, CLIENT),
        }
        // A SYN without the option creates a TCP endpoint.
        assert!(w.hosts[SERVER].endpoint(ids[SERVER]).is_some());
        close(&mut w, ids);
        w.run_for(Duration::from_secs(200));
        assert_eq!(w.hosts[SERVER].connection_count(), 0);
        assert_eq!(w.hosts[CLIENT].connection_count(), 0);
    }
}

/// Replaces MPTCP options by NOPs.
fn strip(datagram: &mut [u8]) {
    let header = usize::from(datagram[0] & 15) * 4;
    let end = header + usize::from(datagram[header + 12] >> 4) * 4;
    let mut at = header + 20;
    while at < end {
        let (kind, length) = match datagram[at] {
            0 => break,
            1 => (1, 1),
            kind => (kind, usize::from(datagram[at + 1])),
        };
        if kind == 30 {
            datagram[at..at + length].fill(1);
        }
        at += length;
    }
    let addresses = parses(datagram).unwrap();
    let dressed = dress(
        addresses,
        6,
        &mut datagram[header..],
        gargalo_units::Ecn::NotEct,
    );
    datagram.copy_from_slice(&dressed);
}

#[test]
fn a_path_that_strips_the_options_gives_plain_tcp() {
    let strippers: [Alter; 3] = [
        |_, _, d| {
            strip(d);
            true
        },
        |_, from, d| {
            if from == CLIENT {
                strip(d);
            }
            true
        },
        |_, from, d| {
            if from == SERVER {
                strip(d);
            }
            true
        },
    ];
    for (n, alter) in strippers.into_iter().enumerate() {
        let mut w = world(Network::default());
        w.alter = Some(alter);
        let ids = open(&mut w, [&mptcp(), &mptcp()]);
        w.transfer(ids, CLIENT, 1 << 20, Duration::from_secs(30));
        w.transfer(ids, SERVER, 1 << 20, Duration::from_secs(30));
        for (side, id) in ids.into_iter().enumerate() {
            if let Some(c) = w.hosts[side].multipath(id) {
                assert!(c.has_fallen_back(), "case {n}, side {side}");
            }
        }
        close(&mut w, ids);
        w.run_for(Duration::from_secs(200));
        let left = w.hosts[CLIENT].connection_count() + w.hosts[SERVER].connection_count();
        assert_eq!(left, 0, "case {n}");
    }
}

#[test]
fn options_that_vanish_later_from_the_only_path_give_plain_tcp() {
    let late: [Alter; 3] = [
        |now, _, d| {
            if now >= at(1520) {
                strip(d);
            }
            true
        },
        |now, from, d| {
            if now >= at(1520) && from == CLIENT {
                strip(d);
            }
            true
        },
        |now, from, d| {
            if now >= at(1520) && from == SERVER {
                strip(d);
            }
            true
        },
    ];
    for (n, alter) in late.into_iter().enumerate() {
        for from in [CLIENT, SERVER] {
            let mut w = world(Network::default());
            w.alter = Some(alter);
            let ids = open(&mut w, [&with("default"), &with("default")]);
            assert!(w.now < at(1520));
            w.transfer(ids, from, 8 << 20, Duration::from_secs(30));
            w.transfer(ids, 1 - from, 1 << 20, Duration::from_secs(30));
            for (side, id) in ids.into_iter().enumerate() {
                let c = w.hosts[side].multipath(id).unwrap();
                let seen = c.has_fallen_back();
                // A side that only acknowledges may continue as before.
                assert!(
                    seen || (n > 0 && side == from),
                    "case {n}, from {from}, side {side}"
                );
            }
            // Ends arrive, too.
            let now = w.now;
            for side in [from, 1 - from] {
                w.hosts[side].close(now, ids[side]);
            }
            let closed = |w: &World, side: usize| {
                let wanted = HostEvent::PeerClosed(ids[side]);
                w.events.iter().any(|(s, e)| *s == side && *e == wanted)
            };
            w.run_while(Duration::from_secs(20), |w| {
                !(closed(w, CLIENT) && closed(w, SERVER))
            });
        }
    }
}

#[test]
fn a_path_that_dies_costs_nothing_but_time() {
    let mut w = world(Network::default());
    let ids = open(&mut w, [&mptcp(), &mptcp()]);
    let mut transfer = Transfer::new(ids, CLIENT, 16 << 20);
    w.run_while(Duration::from_secs(60), |w| {
        if transfer.read > 4 << 20 {
            w.alter = Some(|_, _, d| !(d[14] == 1 || d[18] == 1));
        }
        !transfer.step(&mut w.hosts)
    });
}

#[test]
fn addresses_come_and_go_during_a_transfer() {
    let mut client = config(CLIENT);
    client.addresses.truncate(1);
    let mut w = World::with([client, config(SERVER)], Network::default());
    let ids = open(&mut w, [&mptcp(), &mptcp()]);
    assert_eq!(subflows(&w, CLIENT, ids[CLIENT]), 1);
    let mut transfer = Transfer::new(ids, CLIENT, 12 << 20);
    let mut step = 0;
    w.run_while(Duration::from_secs(60), |w| {
        let now = w.now;
        let host = &mut w.hosts[CLIENT];
        if step == 0 && transfer.read > 2 << 20 {
            step = 1;
            assert!(host.add_address(now, on(1, CLIENT)));
            assert!(!host.add_address(now, on(1, CLIENT)));
        }
        if step == 1 && transfer.read > 6 << 20 {
            step = 2;
            assert_eq!(subflows(w, SERVER, ids[SERVER]), 2);
            assert!(w.hosts[CLIENT].remove_address(now, on(0, CLIENT)));
            assert!(!w.hosts[CLIENT].remove_address(now, on(0, CLIENT)));
        }
        !transfer.step(&mut w.hosts)
    });
    assert_eq!(step, 2);
    let c = w.hosts[CLIENT].multipath(ids[CLIENT]).unwrap();
    assert!(c.subflow_addresses().all(|a| a.local.ip() == on(1, CLIENT)));
    assert!(!w.hosts[CLIENT].add_address(w.now, "0.0.0.0".parse().unwrap()));
}

#[test]
fn a_router_with_a_small_mtu_shortens_segments_of_every_subflow() {
    let mut w = world(Network {
        mtu: 1200,
        ..Network::default()
    });
    let ids = open(&mut w, [&mptcp(), &mptcp()]);
    w.transfer(ids, CLIENT, 4 << 20, Duration::from_secs(60));
    assert!(w.too_long > 0);
    assert!(w.hosts[CLIENT].stats().too_big >= u64::from(PATHS));
    let before = w.too_long;
    w.transfer(ids, CLIENT, 1 << 20, Duration::from_secs(60));
    assert_eq!(w.too_long, before);
}

#[test]
fn a_port_that_another_connection_has_is_left_to_it() {
    let mut w = world(Network::default());
    w.hosts[SERVER]
        .listen(SocketAddr::new("0.0.0.0".parse().unwrap(), 80), mptcp())
        .unwrap();
    // What the join on path 1 would have.
    let taken = SocketAddr::new(on(1, CLIENT), 5000);
    let now = w.now;
    let remote = SocketAddr::new(on(1, SERVER), 80);
    let other = w.hosts[CLIENT]
        .connect(now, Some(taken), remote, &cubic())
        .unwrap();
    w.run_for(ms(100));
    let first = Some(SocketAddr::new(on(0, CLIENT), 5000));
    let now = w.now;
    let id = w.hosts[CLIENT]
        .connect(now, first, server(false), &mptcp())
        .unwrap();
    w.run_for(ms(500));
    let tuples = |w: &World| -> Vec<_> {
        let c = w.hosts[CLIENT].multipath(id).unwrap();
        c.subflow_addresses().map(|a| (a.local, a.remote)).collect()
    };
    // Its address has another partner now, or none.
    assert!(tuples(&w).len() >= 2 && !tuples(&w).contains(&(taken, remote)));
    assert_eq!(
        w.hosts[CLIENT].state(other),
        Some(gargalo_tcp::State::Established)
    );
    let far = w.events.iter().rev().find_map(|e| match e {
        (
            SERVER,
            HostEvent::Accepted {
                connection, remote, ..
            },
        ) if *remote == taken => Some(*connection),
        _ => None,
    });
    w.transfer(
        [other, far.unwrap()],
        CLIENT,
        1 << 20,
        Duration::from_secs(30),
    );
}

#[test]
fn many_connections_at_once_keep_their_subflows_apart_and_repeat_exactly() {
    let run = || {
        let mut w = world(Network {
            loss: 0.005,
            jitter: ms(1),
            ..Network::default()
        });
        w.hosts[SERVER].listen(server(false), mptcp()).unwrap();
        let mut all: Vec<Transfer> = (0..40)
            .map(|n| {
                let ids = w.connect(server(false), &mptcp());
                Transfer::new(ids, n % 2, 200_000)
            })
            .collect();
        w.run_while(Duration::from_secs(120), |w| {
            let mut busy = false;
            for t in &mut all {
                busy |= !t.step(&mut w.hosts);
            }
            busy
        });
        (w.now, *w.hosts[CLIENT].stats(), *w.hosts[SERVER].stats())
    };
    let (end, client, server) = run();
    assert!(end > Instant::ZERO && client.opened == 40 && server.accepted == 40);
    assert_eq!((end, client, server), run());
}
