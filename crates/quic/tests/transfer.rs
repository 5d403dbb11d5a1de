//! Bulk transfers between two endpoints.

mod pair;

use gargalo_quic::{Config, Congestion, Crypto, Event};
use gargalo_units::{Duration, Instant};
use pair::{CLIENT, Link, SERVER, ours, pair};

const MB: u64 = 1_000_000;

fn transfer(config: &Config, congestion: &Congestion, link: Link, bytes: u64) -> pair::Pair {
    let mut p = pair(1, config, congestion, link);
    p.apps[CLIENT].to_send = vec![bytes];
    p.run_until(Duration::from_secs(300), |p| p.is_settled());
    assert_eq!(p.apps[SERVER].read.values().sum::<u64>(), bytes);
    assert_eq!(p.apps[SERVER].ended.len(), 1);
    p
}

#[test]
fn connects_transfers_and_closes() {
    for crypto in [Crypto::Tls, Crypto::Null] {
        let config = Config {
            crypto,
            ..Config::default()
        };
        let mut p = transfer(&config, &ours("cubic"), Link::new(100, 10), 5 * MB);
        let connected = p
            .happened(CLIENT, &Event::Connected { early: false })
            .unwrap();
        let ms = (connected - Instant::ZERO).as_secs_f64() * 1e3;
        assert!((20.0..21.0).contains(&ms), "one round trip, not {ms} ms");
        let seconds = (p.apps[SERVER].ended[0].0 - Instant::ZERO).as_secs_f64();
        assert!((0.4..0.7).contains(&seconds), "{seconds} s");
        p.close();
        assert!(p.happened(CLIENT, &Event::Closed).is_some());
        assert!(p.happened(SERVER, &Event::Closed).is_some());
    }
}
