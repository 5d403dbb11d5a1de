//! Fast Open between two hosts (RFC 7413).

use crate::common::*;
use bytes::Bytes;
use gargalo_host::{ConnectionId, Host, HostEvent, SocketOptions};
use gargalo_wire::ip::{Datagram, Transport, Verify};
use gargalo_wire::tcp::Segment;

fn fast() -> SocketOptions {
    SocketOptions {
        fast_open: true,
        ..cubic()
    }
}

/// Everything that a host sends now.
fn sent(host: &mut Host) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let mut out = Vec::new();
        if !host.poll_transmit(at(0), &mut out) {
            return all;
        }
        all.push(out);
    }
}

fn segment(datagram: &[u8]) -> Segment {
    match Datagram::parse(datagram, Verify::All).unwrap().transport {
        Transport::Tcp(segment) => segment,
        other => panic!("{other:?}"),
    }
}

fn cookie(s: &Segment) -> Option<Bytes> {
    s.options.extra.as_ref()?.fast_open.clone()
}

/// Moves datagrams in both directions until nothing is sent any more.
fn settle(client: &mut Host, server: &mut Host) {
    loop {
        let (there, back) = (sent(client), sent(server));
        if there.is_empty() && back.is_empty() {
            return;
        }
        there.iter().for_each(|d| server.handle(at(0), d));
        back.iter().for_each(|d| client.handle(at(0), d));
    }
}

fn accepted(server: &mut Host) -> Option<ConnectionId> {
    std::iter::from_fn(|| server.poll_event()).find_map(|e| match e {
        HostEvent::Accepted { connection, .. } => Some(connection),
        _ => None,
    })
}

#[test]
fn a_client_asks_for_a_cookie_and_then_sends_data_in_its_syn() {
    for v6 in [false, true] {
        let mut client = Host::new(host_config(CLIENT), at(0)).unwrap();
        let mut other = Host::new(host_config(SERVER), at(0)).unwrap();
        other.listen(server(v6), fast()).unwrap();
        let first = client.connect(at(0), None, server(v6), &fast()).unwrap();
        assert!(!client.shows_cookie(first));
        let syn = sent(&mut client).remove(0);
        assert_eq!(cookie(&segment(&syn)), Some(Bytes::new()), "a request");
        other.handle(at(0), &syn);
        let answer = sent(&mut other).remove(0);
        assert_eq!(cookie(&segment(&answer)).map(|c| c.len()), Some(8));
        client.handle(at(0), &answer);
        settle(&mut client, &mut other);
        assert!(accepted(&mut other).is_some());

        let second = client.connect(at(0), None, server(v6), &fast()).unwrap();
        assert!(client.shows_cookie(second));
        assert_eq!(client.write(second, Bytes::from_static(b"early")), 5);
        let syn = sent(&mut client).remove(0);
        assert_eq!(segment(&syn).payload.len(), 5);
        assert_eq!(cookie(&segment(&syn)), cookie(&segment(&answer)));
        other.handle(at(0), &syn);
        let taken = accepted(&mut other).expect("open before the handshake is complete");
        assert_eq!(other.read(taken, 100), Some(Bytes::from_static(b"early")));
        settle(&mut client, &mut other);
        assert_eq!(client.unacknowledged(second), 0);
    }
}

#[test]
fn a_wrong_cookie_and_a_listener_without_fast_open_take_no_data() {
    for listens_fast in [true, false] {
        let mut client = Host::new(host_config(CLIENT), at(0)).unwrap();
        let mut other = Host::new(host_config(SERVER), at(0)).unwrap();
        let mut options = fast();
        options.fast_open = true;
        let id = other.listen(server(false), options).unwrap();
        client.connect(at(0), None, server(false), &fast()).unwrap();
        settle(&mut client, &mut other);
        assert!(accepted(&mut other).is_some());
        // Another server at the same address has another key, or no Fast Open.
        other.close_listener(id);
        let mut config = host_config(SERVER);
        config.seed += 100;
        let mut other = Host::new(config, at(0)).unwrap();
        let options = SocketOptions {
            fast_open: listens_fast,
            ..cubic()
        };
        other.listen(server(false), options).unwrap();
        let id = client.connect(at(0), None, server(false), &fast()).unwrap();
        client.write(id, Bytes::from_static(b"early"));
        let syn = sent(&mut client).remove(0);
        assert_eq!(segment(&syn).payload.len(), 5);
        other.handle(at(0), &syn);
        assert_eq!(accepted(&mut other), None);
        let answer = sent(&mut other).remove(0);
        assert_eq!(
            segment(&answer).ack,
            segment(&syn).seq + 1,
            "the data is not acknowledged"
        );
        assert_eq!(cookie(&segment(&answer)).is_some(), listens_fast);
        client.handle(at(0), &answer);
        settle(&mut client, &mut other);
        let taken = accepted(&mut other).unwrap();
        assert_eq!(other.read(taken, 100), Some(Bytes::from_static(b"early")));
    }
}
