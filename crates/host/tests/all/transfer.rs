//! Two hosts: connections open, carry every byte and close, whatever the network does.

use crate::common::*;
use gargalo_host::HostEvent;
use gargalo_tcp::{Error, State};
use gargalo_units::Duration;

#[test]
fn a_connection_opens_carries_data_both_ways_and_closes() {
    for v6 in [false, true] {
        let mut w = World::new(Network::default());
        w.hosts[SERVER].listen(server(v6), cubic()).unwrap();
        let ids = w.connect(server(v6), &cubic());
        assert_eq!(
            w.hosts[SERVER].remote_addr(ids[SERVER]),
            w.hosts[CLIENT].local_addr(ids[CLIENT])
        );
        w.transfer(ids, CLIENT, 1 << 20, Duration::from_secs(10));
        w.transfer(ids, SERVER, 1 << 20, Duration::from_secs(10));
        let now = w.now;
        w.hosts[CLIENT].close(now, ids[CLIENT]);
        w.run_for(ms(100));
        assert!(
            w.events
                .contains(&(SERVER, HostEvent::PeerClosed(ids[SERVER])))
        );
        let now = w.now;
        w.hosts[SERVER].close(now, ids[SERVER]);
        w.run_for(ms(100));
        for side in [CLIENT, SERVER] {
            let closed = HostEvent::Closed {
                id: ids[side],
                error: None,
            };
            assert!(w.events.contains(&(side, closed)));
            w.hosts[side].release(ids[side]);
        }
        w.run_for(ms(10));
        assert_eq!(w.hosts[SERVER].connection_count(), 0);
        assert_eq!(w.hosts[CLIENT].connection_count(), 1, "TIME-WAIT");
        w.run_for(Duration::from_secs(61));
        assert_eq!(w.hosts[CLIENT].connection_count(), 0);
        assert_eq!(w.hosts[CLIENT].poll_timeout(), None);
    }
}

#[test]
fn nobody_listens() {
    let mut w = World::new(Network::default());
    let o = cubic();
    let now = w.now;
    let id = w.hosts[CLIENT]
        .connect(now, None, server(false), &o)
        .unwrap();
    w.run_for(ms(100));
    let refused = HostEvent::Closed {
        id,
        error: Some(Error::Refused),
    };
    assert_eq!(w.events, [(CLIENT, refused)]);
    assert_eq!(w.hosts[SERVER].stats().resets_sent, 1);
    assert_eq!(w.hosts[CLIENT].endpoint(id).unwrap().state(), State::Closed);
    w.hosts[CLIENT].release(id);
    w.run_for(ms(1));
    assert_eq!(w.hosts[CLIENT].connection_count(), 0);
}

#[test]
fn every_byte_arrives_through_a_bad_network() {
    for v6 in [false, true] {
        let mut w = World::new(Network {
            loss: 0.02,
            duplicate: 0.02,
            jitter: ms(4),
            ..Network::default()
        });
        w.hosts[SERVER].listen(server(v6), cubic()).unwrap();
        let ids = w.connect(server(v6), &cubic());
        w.transfer(ids, CLIENT, 3 << 20, Duration::from_secs(600));
        w.transfer(ids, SERVER, 3 << 20, Duration::from_secs(600));
    }
}
