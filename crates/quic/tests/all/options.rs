//! Invalid options.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::pair::{CLIENT, Link, Pair, SERVER, addr, init, ours, pair};
use gargalo_cc as cc;
use gargalo_quic::{Config, Congestion, Endpoint, Error, Event, Init, Realm, Stack};
use gargalo_settings::{Switch, Window};
use gargalo_units::{Bytes, Duration};

fn refusal(config: &Config) -> String {
    let realm = Realm::new(1).unwrap();
    let client = Endpoint::connect(&realm, config, &ours("cubic"), init(CLIENT, 1));
    let server = Endpoint::listen(&realm, config, &ours("cubic"), init(SERVER, 1));
    let (client, server) = (client.unwrap_err(), server.unwrap_err());
    assert!(matches!(client, Error::Option(_)), "{client:?}");
    assert_eq!(client.to_string(), server.to_string());
    client.to_string()
}

/// Configurations with one value that cannot be, and what is said of it.
fn impossible() -> Vec<(Config, &'static str)> {
    let d = Config::default;
    vec![
        (
            Config {
                datagram_size: 1199,
                ..d()
            },
            "datagram_size = 1199B is out of range",
        ),
        (
            Config {
                datagram_size: 65_528,
                ..d()
            },
            "give 1200B to 65527B",
        ),
        (
            Config {
                datagram_size: 1500,
                mtu_discovery: Switch::To(Bytes::new(1452)),
                ..d()
            },
            "give 1500B (datagram_size)",
        ),
        (
            Config {
                initial_window: Window::Bytes(Bytes::new(1000)),
                ..d()
            },
            "two datagrams",
        ),
        (
            Config {
                packet_threshold: 0,
                ..d()
            },
            "packet_threshold = 0",
        ),
        (
            Config {
                time_threshold: 0.5,
                ..d()
            },
            "time_threshold = 0.5",
        ),
        (
            Config {
                time_threshold: f64::NAN,
                ..d()
            },
            "time_threshold",
        ),
        (
            Config {
                idle_timeout: Duration::from_micros(3),
                ..d()
            },
            "idle_timeout = 3us",
        ),
        (
            Config {
                stream_window: 0,
                ..d()
            },
            "stream_window",
        ),
        (
            Config {
                connection_window: 0,
                ..d()
            },
            "connection_window",
        ),
        (
            Config {
                stream_window: 1 << 62,
                ..d()
            },
            "stream_window = \"4611686",
        ),
        (
            Config {
                send_window: 0,
                ..d()
            },
            "send_window",
        ),
        (
            Config {
                multipath: Switch::To(0),
                ..d()
            },
            "give 1 to 8",
        ),
    ]
}

#[test]
fn impossible_values_are_refused_with_a_remedy() {
    for (config, what) in impossible() {
        let said = refusal(&config);
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn addresses_must_fit() {
    let realm = Realm::new(1).unwrap();
    let make = |init: Init| {
        Endpoint::connect(&realm, &Config::default(), &ours("cubic"), init)
            .map_err(|e| e.to_string())
    };
    let mut other_family = init(CLIENT, 1);
    other_family.remote = "[::1]:4433".parse().unwrap();
    assert!(
        make(other_family)
            .unwrap_err()
            .contains("different families")
    );
    let mut nowhere = init(CLIENT, 1);
    nowhere.remote.set_port(0);
    assert!(make(nowhere).unwrap_err().contains("cannot connect"));
}

#[test]
fn a_controller_that_cannot_be_built_is_an_error() {
    let never = Congestion::Ours(Arc::new(|_| Err("no such thing".to_owned())));
    let realm = Realm::new(1).unwrap();
    for made in [
        Endpoint::connect(&realm, &Config::default(), &never, init(CLIENT, 1)),
        Endpoint::listen(&realm, &Config::default(), &never, init(SERVER, 1)),
    ] {
        let e = made.unwrap_err();
        assert!(
            matches!(&e, Error::Controller(why) if why == "no such thing"),
            "{e:?}"
        );
    }
}

#[test]
fn a_controller_that_cannot_be_built_later_ends_the_connection() {
    let built = Arc::new(AtomicU32::new(0));
    let count = built.clone();
    // Both ends are checked and both have a first path; the fifth is the server's second.
    let congestion = Congestion::Ours(Arc::new(move |init| {
        if count.fetch_add(1, Relaxed) >= 4 {
            return Err("enough".to_owned());
        }
        cc::build("reno", &cc::Params::new(), init).map_err(|e| e.to_string())
    }));
    let mut p = pair(1, &Config::default(), &congestion, Link::new(20, 10));
    p.apps[CLIENT].to_send = vec![3_000_000];
    p.run_until(Duration::from_secs(1), |p| !p.apps[SERVER].read.is_empty());
    assert_eq!(built.load(Relaxed), 4);
    let now = p.now;
    p.ends[CLIENT].migrate(now, std::net::SocketAddr::from(([10, 0, 7, 1], 4433)));
    p.poke();
    p.run_until(Duration::from_secs(20), |p| {
        p.ends.iter().all(gargalo_quic::Endpoint::is_over)
    });
    let failed = |p: &Pair, side: usize, what: &str| {
        let said = |e: &Event| matches!(e, Event::Failed(why) if why.contains(what));
        p.events[side].iter().any(|(_, e)| said(e))
    };
    assert!(failed(&p, SERVER, "enough"), "{:?}", p.events);
    assert!(failed(&p, CLIENT, "peer"), "{:?}", p.events);
    assert_eq!(addr(1).port(), 4433);
}
