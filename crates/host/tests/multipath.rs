//! Multipath TCP at hosts with several addresses: whose subflow is whose, peers without it, joins that
//! belong to nobody, cookies, addresses that come and go.

mod common;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use common::*;
use gargalo_host::{
    ConnectionId, HostConfig, HostEvent, MptcpOptions, SocketError, SocketOptions, SynCookies,
};
use gargalo_mptcp::path_manager::Registered;
use gargalo_units::{Duration, Instant, Seq};
use gargalo_wire::ip::{Addresses, Datagram, Header, Transport, Verify};
use gargalo_wire::mptcp::{CapableFlags, CapableKeys, Join, MptcpOption};
use gargalo_wire::tcp::{Flags, Options, Segment};

const PATHS: u8 = 3;

/// The address of a side on path `n`.
fn on(n: u8, side: usize) -> IpAddr {
    [10, 0, n, side as u8 + 1].into()
}

fn config(side: usize) -> HostConfig {
    HostConfig {
        seed: 3 + side as u64,
        ..HostConfig::new((0..PATHS).map(|n| on(n, side)))
    }
}

fn with(manager: &str) -> SocketOptions {
    let manager = Registered::new(manager, Default::default()).unwrap();
    SocketOptions {
        mptcp: Some(Arc::new(MptcpOptions {
            config: gargalo_mptcp::Config {
                path_manager: Arc::new(manager),
                ..Default::default()
            },
            ..Default::default()
        })),
        ..cubic()
    }
}

fn mptcp() -> SocketOptions {
    with("single-mesh")
}

fn world(network: Network) -> World {
    World::with([config(CLIENT), config(SERVER)], network)
}

/// An open connection after every join that follows.
fn open(w: &mut World, options: [&SocketOptions; 2]) -> [ConnectionId; 2] {
    w.hosts[SERVER]
        .listen(server(false), options[1].clone())
        .unwrap();
    let ids = w.connect(server(false), options[0]);
    w.run_for(ms(500));
    ids
}

fn subflows(w: &World, side: usize, id: ConnectionId) -> usize {
    let c = w.hosts[side].multipath(id).expect("multipath");
    c.subflow_addresses().count()
}

fn close(w: &mut World, ids: [ConnectionId; 2]) {
    for (side, id) in ids.into_iter().enumerate() {
        let now = w.now;
        w.hosts[side].close(now, id);
        w.hosts[side].release(id);
    }
}

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
                s.received_bytes > 100_000 && s.stats.sent_packets > 100,
                "{s:?}"
            );
        }
        let sum: u64 = all.iter().map(|s| s.stats.sent_packets).sum();
        assert_eq!(host.tcp_stats(id).unwrap().sent_packets, sum);
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
        // A SYN without the option makes an ordinary endpoint.
        assert!(w.hosts[SERVER].endpoint(ids[SERVER]).is_some());
        close(&mut w, ids);
        w.run_for(Duration::from_secs(200));
        assert_eq!(w.hosts[SERVER].connection_count(), 0);
        assert_eq!(w.hosts[CLIENT].connection_count(), 0);
    }
}

/// Puts NOPs in the place of Multipath TCP options.
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

fn datagram(src: SocketAddr, dst: SocketAddr, flags: Flags, option: MptcpOption) -> Vec<u8> {
    let segment = Segment {
        src_port: src.port(),
        dst_port: dst.port(),
        seq: Seq::new(77),
        flags,
        window: 65_535,
        options: Options {
            mptcp: Some(Box::new(option.into())),
            ..Options::default()
        },
        ..Segment::default()
    };
    let addresses = Addresses::new(src.ip(), dst.ip()).unwrap();
    let mut out = Vec::new();
    Header::new(addresses).emit_tcp(&segment, &mut out).unwrap();
    out
}

fn join(token: u32, n: u32) -> Vec<u8> {
    let src = SocketAddr::new([172, 16, (n >> 8) as u8, n as u8].into(), 999);
    let option = MptcpOption::Join(Join::Syn {
        backup: false,
        address_id: 9,
        receiver_token: token,
        nonce: n,
    });
    datagram(src, server(false), Flags::SYN, option)
}

/// What a host sends now.
fn sent(w: &mut World, side: usize) -> Vec<Segment> {
    let mut all = Vec::new();
    let mut out = Vec::new();
    let now = w.now;
    while w.hosts[side].poll_transmit(now, &mut out) {
        match Datagram::parse(&out, Verify::All).unwrap().transport {
            Transport::Tcp(segment) => all.push(segment),
            other => panic!("{other:?}"),
        }
        out.clear();
    }
    all
}

#[test]
fn a_join_that_belongs_to_nobody_is_refused_with_the_reason() {
    let mut w = world(Network::default());
    let ids = open(&mut w, [&mptcp(), &mptcp()]);
    let token = w.hosts[SERVER].multipath(ids[SERVER]).unwrap().token();
    let now = w.now;
    w.hosts[SERVER].handle(now, &join(token ^ 1, 1));
    let answers = sent(&mut w, SERVER);
    let [answer] = answers.as_slice() else {
        panic!("{answers:?}");
    };
    assert!(answer.flags.contains(Flags::RST | Flags::ACK));
    assert_eq!(answer.ack, Seq::new(78));
    let words = answer.options.mptcp.as_deref().unwrap();
    assert!(
        words
            .iter()
            .any(|o| matches!(o, MptcpOption::Reset(r) if r.reason == 1))
    );
    assert_eq!(w.hosts[SERVER].stats().joins_refused, 1);
    // A listener that knows nothing of it takes it for TCP, as RFC 8684 §3.1 has it of such hosts.
    let plain = SocketAddr::new(on(0, SERVER), 81);
    w.hosts[SERVER].listen(plain, cubic()).unwrap();
    let src = SocketAddr::new([172, 16, 0, 1].into(), 999);
    let option = MptcpOption::Join(Join::Syn {
        backup: false,
        address_id: 9,
        receiver_token: 5,
        nonce: 6,
    });
    w.hosts[SERVER].handle(now, &datagram(src, plain, Flags::SYN, option));
    let answers = sent(&mut w, SERVER);
    assert!(answers[0].flags.contains(Flags::SYN | Flags::ACK));
    assert!(answers[0].options.mptcp.is_none());
}

#[test]
fn a_flood_of_joins_takes_bounded_memory_and_stops_nobody() {
    let mut w = world(Network::default());
    let ids = open(&mut w, [&mptcp(), &mptcp()]);
    let token = w.hosts[SERVER].multipath(ids[SERVER]).unwrap().token();
    let mut transfer = Transfer::new(ids, CLIENT, 4 << 20);
    let mut n = 0;
    w.run_while(Duration::from_secs(60), |w| {
        for _ in 0..20 {
            let now = w.now;
            n += 1;
            w.hosts[SERVER].handle(now, &join(token, n));
            w.hosts[SERVER].handle(now, &join(token.wrapping_add(n), n));
        }
        assert!(subflows(w, SERVER, ids[SERVER]) <= 32);
        !transfer.step(&mut w.hosts)
    });
    assert!(n > 1_000, "{n}");
    assert_eq!(w.hosts[SERVER].connection_count(), 1);
    // Those that never answer are given up.
    w.run_for(Duration::from_secs(300));
    assert_eq!(subflows(&w, SERVER, ids[SERVER]), usize::from(PATHS));
    w.transfer(ids, SERVER, 1 << 20, Duration::from_secs(30));
}

#[test]
fn cookies_bring_multipath_back_and_the_key_must_be_ours() {
    let mut server_config = config(SERVER);
    server_config.syn_cookies = SynCookies::Always;
    let network = Network {
        loss: 0.01,
        ..Network::default()
    };
    let mut w = World::with([config(CLIENT), server_config.clone()], network);
    let ids = open(&mut w, [&mptcp(), &mptcp()]);
    assert_eq!(w.hosts[SERVER].stats().cookies_accepted, 1);
    w.transfer(ids, CLIENT, 4 << 20, Duration::from_secs(60));
    w.transfer(ids, SERVER, 4 << 20, Duration::from_secs(60));
    let c = w.hosts[SERVER].multipath(ids[SERVER]).unwrap();
    assert!(c.is_multipath());
    assert_eq!(c.subflows(w.now).count(), usize::from(PATHS));
    // A third packet with another key than ours opens no multipath connection.
    let mut w = World::with([config(CLIENT), server_config], Network::default());
    w.hosts[SERVER].listen(server(false), mptcp()).unwrap();
    let src = SocketAddr::new([172, 16, 0, 1].into(), 999);
    let flags = CapableFlags::HMAC_SHA256;
    let offer = |keys| MptcpOption::Capable {
        version: 1,
        flags,
        keys,
    };
    let now = w.now;
    let syn = datagram(src, server(false), Flags::SYN, offer(CapableKeys::None));
    w.hosts[SERVER].handle(now, &syn);
    let answers = sent(&mut w, SERVER);
    let words = answers[0].options.mptcp.as_deref().unwrap();
    assert!(words.iter().any(|o| matches!(
        o,
        MptcpOption::Capable {
            keys: CapableKeys::Sender(_),
            ..
        }
    )));
    let third = Segment {
        src_port: 999,
        dst_port: 80,
        seq: Seq::new(78),
        ack: answers[0].seq + 1,
        flags: Flags::ACK,
        window: 1000,
        options: Options {
            mptcp: Some(Box::new(
                offer(CapableKeys::Both {
                    sender: 1,
                    receiver: 2,
                })
                .into(),
            )),
            ..Options::default()
        },
        ..Segment::default()
    };
    let mut out = Vec::new();
    let addresses = Addresses::new(src.ip(), server(false).ip()).unwrap();
    Header::new(addresses).emit_tcp(&third, &mut out).unwrap();
    w.hosts[SERVER].handle(now, &out);
    let accepted = w.hosts[SERVER].poll_event();
    let Some(HostEvent::Accepted { connection, .. }) = accepted else {
        panic!("{accepted:?}");
    };
    assert!(w.hosts[SERVER].multipath(connection).is_none());
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
