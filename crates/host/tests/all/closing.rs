//! TIME-WAIT and its successors, released connections.

use crate::common::*;
use bytes::Bytes;
use gargalo_host::{Host, HostEvent};
use gargalo_tcp::{Error, State};
use gargalo_units::{Duration, Instant};
use gargalo_wire::ip::{Datagram, Transport, Verify};
use gargalo_wire::tcp::{Flags, Segment};

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

/// A connection that the server closes first, so that it is in TIME-WAIT there; returns the client's address.
fn linger(w: &mut World) -> std::net::SocketAddr {
    let ids = w.connect(server(false), &cubic());
    let local = w.hosts[CLIENT].local_addr(ids[CLIENT]).unwrap();
    for side in [SERVER, CLIENT] {
        let now = w.now;
        w.hosts[side].close(now, ids[side]);
        w.run_for(ms(50));
    }
    assert_eq!(
        w.hosts[SERVER].endpoint(ids[SERVER]).unwrap().state(),
        State::TimeWait
    );
    for side in [SERVER, CLIENT] {
        w.hosts[side].release(ids[side]);
        w.drain();
    }
    local
}

#[test]
fn a_new_syn_takes_the_place_of_a_connection_in_time_wait() {
    let mut w = World::new(Network::default());
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let local = linger(&mut w);
    assert_eq!(w.hosts[SERVER].connection_count(), 1);
    let (now, o) = (w.now, cubic());
    w.events.clear();
    let id = w.hosts[CLIENT]
        .connect(now, Some(local), server(false), &o)
        .unwrap();
    w.run_for(ms(20));
    assert!(w.events.contains(&(CLIENT, HostEvent::Connected(id))));
    assert_eq!(w.hosts[SERVER].stats().time_wait_reused, 1);
    assert_eq!(w.hosts[SERVER].connection_count(), 1);
}

#[test]
fn an_old_syn_does_not() {
    let mut w = World::new(Network::default());
    w.keep = 100;
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    linger(&mut w);
    let old = w.recent[CLIENT][0].clone();
    let now = w.now;
    w.hosts[SERVER].handle(now, &old);
    let answer = all_out(&mut w.hosts[SERVER], now);
    assert_eq!(answer.len(), 1);
    assert_eq!(answer[0].flags, Flags::ACK);
    assert_eq!(w.hosts[SERVER].stats().time_wait_reused, 0);
}

#[test]
fn time_wait_is_bounded() {
    let mut config = host_config(SERVER);
    config.most_in_time_wait = 5;
    let mut w = World::with([host_config(CLIENT), config], Network::default());
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    for _ in 0..20 {
        linger(&mut w);
    }
    assert_eq!(w.hosts[SERVER].connection_count(), 5);
    assert_eq!(w.hosts[SERVER].stats().time_wait_dropped, 15);
    w.run_for(Duration::from_secs(61));
    assert_eq!(w.hosts[SERVER].connection_count(), 0);
}

#[test]
fn a_released_connection_delivers_what_was_written_and_goes_away() {
    let mut w = World::new(Network::default());
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let ids = w.connect(server(false), &cubic());
    let mut t = Transfer::new(ids, CLIENT, 200_000);
    t.step(&mut w.hosts);
    assert_eq!(t.written, 200_000);
    w.hosts[CLIENT].release(ids[CLIENT]);
    assert_eq!(
        w.hosts[CLIENT].write(ids[CLIENT], Bytes::from_static(b"x")),
        0
    );
    assert_eq!(w.hosts[CLIENT].local_addr(ids[CLIENT]), None);
    w.run_while(Duration::from_secs(10), |w| !t.step(&mut w.hosts));
    w.run_for(ms(50));
    assert!(
        w.events
            .contains(&(SERVER, HostEvent::PeerClosed(ids[SERVER])))
    );
    w.hosts[SERVER].release(ids[SERVER]);
    w.run_for(Duration::from_secs(61));
    assert_eq!(w.hosts.each_ref().map(Host::connection_count), [0, 0]);
}

#[test]
fn a_released_connection_with_unread_data_is_a_reset() {
    let mut w = World::new(Network::default());
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    for before in [true, false] {
        let ids = w.connect(server(false), &cubic());
        if !before {
            w.hosts[SERVER].release(ids[SERVER]);
        }
        w.hosts[CLIENT].write(ids[CLIENT], Bytes::from_static(b"read me"));
        w.run_for(ms(50));
        w.hosts[SERVER].release(ids[SERVER]);
        w.run_for(ms(50));
        let reset = HostEvent::Closed {
            id: ids[CLIENT],
            error: Some(Error::Reset),
        };
        assert!(w.events.contains(&(CLIENT, reset)));
        assert_eq!(w.hosts[SERVER].connection_count(), 0);
    }
}

#[test]
fn a_released_connection_waits_only_so_long_for_a_peer_that_never_closes() {
    let mut w = World::new(Network::default());
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let ids = w.connect(server(false), &cubic());
    w.hosts[SERVER].release(ids[SERVER]);
    w.run_for(Duration::from_secs(59));
    assert_eq!(w.hosts[SERVER].connection_count(), 1);
    w.run_for(Duration::from_secs(2));
    assert_eq!(w.hosts[SERVER].connection_count(), 0);
    // And for one that is alive and takes nothing.
    let ids = w.connect(server(false), &cubic());
    let mut t = Transfer::new(ids, SERVER, 1 << 20);
    for _ in 0..10 {
        let room = w.hosts[SERVER].write_room(ids[SERVER]);
        w.hosts[SERVER].write(ids[SERVER], vec![0; room as usize].into());
        w.run_for(ms(100));
    }
    t.stop();
    w.hosts[SERVER].release(ids[SERVER]);
    w.run_for(Duration::from_secs(130));
    assert_eq!(w.hosts[SERVER].connection_count(), 0);
}

#[test]
fn the_end_is_told_once() {
    let mut w = World::new(Network::default());
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let ids = w.connect(server(false), &cubic());
    for side in [CLIENT, SERVER] {
        let now = w.now;
        w.hosts[side].close(now, ids[side]);
        w.run_for(ms(50));
    }
    let now = w.now;
    // In TIME-WAIT already.
    w.hosts[CLIENT].abort(now, ids[CLIENT]);
    w.run_for(Duration::from_secs(70));
    for side in [CLIENT, SERVER] {
        let of = |e: &&(usize, HostEvent)| e.0 == side && matches!(e.1, HostEvent::Closed { .. });
        assert_eq!(w.events.iter().filter(of).count(), 1);
    }
}

#[test]
fn a_successor_counts_from_above_its_predecessor() {
    let mut w = World::new(Network {
        delay: Duration::from_micros(10),
        ..Network::default()
    });
    w.keep = 1;
    w.hosts[SERVER].listen(server(false), cubic()).unwrap();
    let ids = w.connect(server(false), &cubic());
    let local = w.hosts[CLIENT].local_addr(ids[CLIENT]).unwrap();
    // Faster than the clock of initial sequence numbers: 250 kB/s.
    let start = w.now;
    w.transfer(ids, SERVER, 4 << 20, Duration::from_secs(10));
    assert!(w.now - start < Duration::from_secs(10));
    for side in [SERVER, CLIENT] {
        let now = w.now;
        w.hosts[side].close(now, ids[side]);
        w.run_for(ms(10));
    }
    let seq = |w: &World| match Datagram::parse(&w.recent[SERVER][0], Verify::All) {
        Ok(Datagram {
            transport: Transport::Tcp(s),
            ..
        }) => s.seq,
        other => panic!("{other:?}"),
    };
    let last = seq(&w);
    for side in [SERVER, CLIENT] {
        w.hosts[side].release(ids[side]);
        w.drain();
    }
    let (now, o) = (w.now, cubic());
    w.hosts[CLIENT]
        .connect(now, Some(local), server(false), &o)
        .unwrap();
    w.run_for(Duration::from_micros(15));
    assert_eq!(w.hosts[SERVER].stats().time_wait_reused, 1);
    assert_eq!(seq(&w).distance(last), 1 << 16);
}
