//! Backlog, accept queue, SYN cookies, floods.

use crate::common::*;
use gargalo_host::{HostConfig, HostEvent, SynCookies};
use gargalo_tcp::Config;
use gargalo_units::{Duration, Seq};
use gargalo_wire::ip::{Addresses, Header};
use gargalo_wire::tcp::{Extra, Flags, Options, Segment, Timestamps};

fn world(change: impl FnOnce(&mut HostConfig), network: Network) -> World {
    let mut config = host_config(SERVER);
    change(&mut config);
    World::with([host_config(CLIENT), config], network)
}

/// A SYN from an address that never answers.
fn stray_syn(n: u32) -> Vec<u8> {
    let segment = Segment {
        src_port: (n % 60_000) as u16 + 1,
        dst_port: 80,
        seq: Seq::new(n),
        flags: Flags::SYN,
        window: 65_535,
        options: Options {
            timestamps: Some(Timestamps { value: n, echo: 0 }),
            extra: Some(Box::new(Extra {
                mss: Some(1460),
                window_scale: Some(7),
                sack_permitted: true,
                ..Extra::default()
            })),
            ..Options::default()
        },
        ..Segment::default()
    };
    let addresses = Addresses::V4 {
        src: (0xac10_0000 + n / 60_000).into(),
        dst: [10, 0, 0, 2].into(),
    };
    let mut out = Vec::new();
    Header::new(addresses).emit_tcp(&segment, &mut out).unwrap();
    out
}

#[test]
fn a_million_syns_stop_nobody_and_take_no_memory() {
    let mut w = World::new(Network::default());
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let backlog = host_config(SERVER).backlog;
    let mut out = Vec::new();
    for n in 0..1_000_000 {
        let now = w.now;
        w.hosts[SERVER].handle(now, &stray_syn(n));
        // Half of them before the host may send: its queue is bounded too.
        if n % 2048 == 0 {
            out.clear();
            while w.hosts[SERVER].poll_transmit(now, &mut out) {}
        }
    }
    let stats = *w.hosts[SERVER].stats();
    assert_eq!(w.hosts[SERVER].connection_count(), backlog);
    assert!(stats.outgoing_dropped > 100_000);
    assert_eq!(
        stats.cookies_sent + stats.outgoing_dropped + backlog as u64,
        1_000_000
    );
    let ids = w.connect(server(false), &cubic());
    assert_eq!(w.hosts[SERVER].stats().cookies_accepted, 1);
    w.transfer(ids, CLIENT, 1 << 20, Duration::from_secs(10));
    w.transfer(ids, SERVER, 1 << 20, Duration::from_secs(10));
    // The half-open ones are given up finally.
    w.run_for(Duration::from_secs(200));
    assert_eq!(w.hosts[SERVER].connection_count(), 1);
    assert_eq!(w.hosts[SERVER].stats().half_open_failed, backlog as u64);
}

#[test]
fn without_cookies_what_exceeds_the_backlog_is_dropped() {
    let mut w = world(
        |c| {
            c.syn_cookies = SynCookies::Off;
            c.backlog = 10;
        },
        Network::default(),
    );
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    for n in 0..25 {
        let now = w.now;
        w.hosts[SERVER].handle(now, &stray_syn(n));
    }
    assert_eq!(w.hosts[SERVER].connection_count(), 10);
    assert_eq!(w.hosts[SERVER].stats().dropped_by_backlog, 15);
}

#[test]
fn a_connection_made_by_a_cookie_is_like_any_other() {
    for v6 in [false, true] {
        let mut w = world(
            |c| c.syn_cookies = SynCookies::Always,
            Network {
                loss: 0.02,
                jitter: ms(2),
                ..Network::default()
            },
        );
        w.hosts[SERVER].listen(server(v6), cubic()).unwrap();
        let ids = w.connect(server(v6), &cubic());
        assert!(w.hosts[SERVER].stats().cookies_accepted >= 1);
        w.transfer(ids, CLIENT, 2 << 20, Duration::from_secs(600));
        w.transfer(ids, SERVER, 2 << 20, Duration::from_secs(600));
        let mss = w.hosts[SERVER].endpoint(ids[SERVER]).unwrap().mss();
        assert_eq!(mss, if v6 { 1428 } else { 1448 });
    }
}

#[test]
fn without_timestamps_a_cookie_carries_no_options_and_both_sides_know() {
    let mut w = world(|c| c.syn_cookies = SynCookies::Always, Network::default());
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let plain = options(
        Config {
            timestamps: false,
            ..Config::default()
        },
        "reno",
    );
    let ids = w.connect(server(false), &plain);
    w.transfer(ids, CLIENT, 1 << 20, Duration::from_secs(60));
    w.transfer(ids, SERVER, 1 << 20, Duration::from_secs(60));
    // The class below what was offered.
    assert_eq!(w.hosts[SERVER].endpoint(ids[SERVER]).unwrap().mss(), 1440);
}

#[test]
fn a_guessed_cookie_opens_nothing() {
    let mut w = world(|c| c.syn_cookies = SynCookies::Always, Network::default());
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let ack = |n: u32| {
        let mut bytes = Vec::new();
        let segment = Segment {
            src_port: 5,
            dst_port: 80,
            ack: Seq::new(n),
            flags: Flags::ACK,
            ..Segment::default()
        };
        let addresses = Addresses::V4 {
            src: [10, 0, 0, 1].into(),
            dst: [10, 0, 0, 2].into(),
        };
        Header::new(addresses)
            .emit_tcp(&segment, &mut bytes)
            .unwrap();
        bytes
    };
    let now = w.now;
    // Without a recent cookie acknowledgements are not checked.
    w.hosts[SERVER].handle(now, &ack(1));
    assert_eq!(w.hosts[SERVER].stats().cookies_refused, 0);
    w.hosts[SERVER].handle(now, &stray_syn(1));
    for n in 0..1000 {
        w.hosts[SERVER].handle(now, &ack(n * 7919));
    }
    let stats = w.hosts[SERVER].stats();
    assert_eq!((stats.cookies_refused, stats.resets_sent), (1000, 1001));
    assert_eq!(w.hosts[SERVER].connection_count(), 0);
}

#[test]
fn the_accept_queue_is_bounded_and_what_waits_gets_in_later() {
    for cookies in [SynCookies::Off, SynCookies::Always] {
        let mut w = world(
            |c| {
                c.accept_queue = 3;
                c.syn_cookies = cookies;
            },
            Network::default(),
        );
        w.hosts[SERVER].listen(server(false), cubic()).unwrap();
        let o = cubic();
        let mut ids = Vec::new();
        for _ in 0..6 {
            let now = w.now;
            ids.push(
                w.hosts[CLIENT]
                    .connect(now, None, server(false), &o)
                    .unwrap(),
            );
        }
        // The server's application does not look: packets alone are moved.
        for _ in 0..30 {
            for side in [CLIENT, SERVER] {
                let (now, mut datagrams) = (w.now, Vec::new());
                loop {
                    let mut out = Vec::new();
                    if !w.hosts[side].poll_transmit(now, &mut out) {
                        break;
                    }
                    datagrams.push(out);
                }
                for d in datagrams {
                    w.hosts[1 - side].handle(now, &d);
                }
            }
        }
        let stats = *w.hosts[SERVER].stats();
        assert_eq!(stats.accepted, 3);
        assert!(stats.dropped_by_backlog + stats.dropped_by_accept_queue >= 3);
        // A client that got a cookie but was not accepted is noticed only when it sends.
        for id in ids {
            w.hosts[CLIENT].write(id, b"knock".as_slice().into());
        }
        w.run_for(Duration::from_secs(20));
        let accepted = |e: &&(usize, HostEvent)| matches!(e.1, HostEvent::Accepted { .. });
        assert_eq!(w.events.iter().filter(accepted).count(), 6);
    }
}

#[test]
fn a_listener_that_closes_resets_what_nobody_took() {
    let mut w = World::new(Network::default());
    let listener = w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let ids = w.connect(server(false), &cubic());
    let now = w.now;
    w.hosts[SERVER].handle(now, &stray_syn(1));
    assert_eq!(w.hosts[SERVER].connection_count(), 2);
    w.hosts[SERVER].close_listener(listener);
    w.hosts[SERVER].close_listener(listener);
    w.run_for(ms(1));
    assert_eq!(
        w.hosts[SERVER].connection_count(),
        1,
        "the accepted one lives"
    );
    w.transfer(ids, CLIENT, 1000, Duration::from_secs(1));
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
}

#[test]
fn who_listens_on_the_address_goes_before_who_listens_on_any() {
    let mut w = World::new(Network::default());
    let any4 = w.hosts[SERVER]
        .listen("0.0.0.0:80".parse().unwrap(), cubic())
        .unwrap();
    let both = w.hosts[SERVER]
        .listen("[::]:81".parse().unwrap(), cubic())
        .unwrap();
    let own = w.hosts[SERVER].listen(server(true), cubic()).unwrap();
    let in_use = w.hosts[SERVER].listen(server(true), cubic());
    assert!(in_use.is_err());
    let foreign = w.hosts[SERVER].listen("10.9.9.9:80".parse().unwrap(), cubic());
    assert_eq!(
        foreign.unwrap_err().to_string(),
        "10.9.9.9 is not an address of this host"
    );
    for (v6, port, expected) in [
        (false, 80, any4),
        (true, 80, own),
        (false, 81, both),
        (true, 81, both),
    ] {
        let mut remote = server(v6);
        remote.set_port(port);
        w.events.clear();
        w.connect(remote, &cubic());
        let by = w.events.iter().find_map(|e| match e.1 {
            HostEvent::Accepted { listener, .. } => Some(listener),
            _ => None,
        });
        assert_eq!(by, Some(expected));
    }
}
