//! Joins of unknown connections, floods of them, and connections opened by cookies.

use std::net::SocketAddr;

use crate::common::multi::*;
use crate::common::*;
use gargalo_host::{HostEvent, SynCookies};
use gargalo_units::{Duration, Seq};
use gargalo_wire::ip::{Addresses, Datagram, Header, Transport, Verify};
use gargalo_wire::mptcp::{CapableFlags, CapableKeys, Join, MptcpOption};
use gargalo_wire::tcp::{Flags, Options, Segment};

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
    // A listener without Multipath TCP treats it as TCP, as RFC 8684 §3.1 says.
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
