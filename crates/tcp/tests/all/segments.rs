//! The size of segments, and what is counted in segments.

use crate::common::*;
use gargalo_cc::{Acked, Congestion, Controller, Established, Path};
use gargalo_settings::Window;
use gargalo_tcp::{Config, Endpoint, Init, Profile};
use gargalo_units::Bytes;
use gargalo_wire::tcp::{Extra, Flags, Segment};

/// A window that the handshake sets.
#[derive(Clone, Debug)]
struct First(Bytes);

impl Controller for First {
    fn on_established(&mut self, established: &Established, _path: &Path<'_>) {
        self.0 = established.window;
    }
    fn on_ack(&mut self, _ack: &Acked, _path: &Path<'_>) {}
    fn on_congestion(&mut self, _event: &Congestion, _path: &Path<'_>) {}
    fn cwnd(&self) -> Bytes {
        self.0
    }
    fn in_slow_start(&self) -> bool {
        true
    }
    fn phase(&self) -> &'static str {
        "first"
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// A peer's options in its SYN: this MSS.
fn mss(mss: u16) -> Extra {
    Extra {
        mss: Some(mss),
        window_scale: Some(7),
        sack_permitted: true,
        ..Extra::default()
    }
}

/// A server that `peer` has connected to, with timestamps or without.
fn server(config: Config, peer: Extra, timestamps: bool) -> Lone {
    server_of(config, peer, timestamps, init(1))
}

fn server_of(config: Config, peer: Extra, timestamps: bool, init: Init) -> Lone {
    let first = First(config.first_window());
    let end = Endpoint::listen(config, Box::new(first), init, at(0));
    let timestamp = timestamps.then_some(100);
    Lone::with(end, peer, timestamp)
}

/// The lengths of the segments that leave at once when `bytes` are written.
fn burst(lone: &mut Lone, bytes: u64) -> Vec<u32> {
    lone.end.write_synthetic(bytes);
    let sent = lone.sent_segments();
    sent.iter().map(|t| t.segment.payload.len()).collect()
}

#[test]
fn the_initial_window_counts_segments_of_the_agreed_size() {
    // RFC 6928 §2.
    for (theirs, expected) in [
        (100, vec![100; 10]),
        (536, vec![536; 10]),
        (1460, vec![1460; 10]),
    ] {
        let mut lone = server(Config::modern(), mss(theirs), false);
        assert_eq!(burst(&mut lone, 100_000), expected);
    }
    // Large segments: max(2 MSS, 14600).
    let large = || Config {
        mss: 8948,
        ..Config::modern()
    };
    assert_eq!(
        burst(&mut server(large(), mss(8960), true), 100_000),
        [8948; 2]
    );
    assert_eq!(
        burst(&mut server(large(), mss(4012), true), 100_000),
        [4000; 3]
    );
    // RFC 5681 §3.1.
    let standard = |theirs| burst(&mut server(Config::rfc5681(), mss(theirs), false), 100_000);
    assert_eq!(standard(536), [536; 4]);
    assert_eq!(standard(1460), [1460; 3]);
}

#[test]
fn an_initial_window_that_is_given_is_kept() {
    let given = |window| Config {
        initial_window: Some(window),
        ..Config::modern()
    };
    let packets = given(Window::Packets(20));
    assert_eq!(
        burst(&mut server(packets, mss(100), false), 100_000),
        [100; 20]
    );
    let bytes = given(Window::Bytes(Bytes::new(3000)));
    assert_eq!(
        burst(&mut server(bytes, mss(100), false), 100_000),
        [100; 30]
    );
    let ns3 = Profile::Ns3.config();
    assert_eq!(burst(&mut server(ns3, mss(100), false), 100_000), [100; 1]);
}

#[test]
fn two_lost_syns_leave_one_segment() {
    // RFC 6928 §2: not after one retransmission.
    for (losses, expected) in [(1, 10), (2, 1)] {
        let first = || Box::new(First(Config::modern().first_window()));
        let mut pair = Pair::of([
            Endpoint::connect(Config::modern(), first(), init(0), at(0)),
            Endpoint::listen(Config::modern(), fixed(), init(1), at(0)),
        ])
        .with(move |side, n, _| {
            if side == 0 && n < losses {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        pair.ends[0].write_synthetic(100_000);
        pair.run_for(ms(3021));
        let data = |segment: &Segment| !segment.payload.is_empty();
        let (since, log) = (pair.now - ms(1), &pair.log);
        let opened = log
            .iter()
            .position(|(_, side, t)| *side == 0 && data(&t.segment));
        let opened = log[opened.expect("data was sent")].0;
        assert!(opened <= since);
        let count = log
            .iter()
            .filter(|(t, _, x)| *t == opened && data(&x.segment));
        assert_eq!(count.count(), expected, "{losses} lost");
    }
}

#[test]
fn after_an_idle_time_the_window_has_the_initial_size_again() {
    // RFC 5681 §4.1: RW = min(IW, cwnd), of segments of the size in use.
    #[derive(Clone, Debug)]
    struct Restart(Bytes, Option<Bytes>);
    impl Controller for Restart {
        fn on_send(&mut self, sent: &gargalo_cc::Sent, _path: &Path<'_>) {
            if let Some(idle) = sent.idle.filter(|i| i.duration > i.rto) {
                self.1 = idle.restart_window;
                self.0 = idle.restart_window.unwrap_or(self.0);
            }
        }
        fn on_ack(&mut self, _ack: &Acked, _path: &Path<'_>) {}
        fn on_congestion(&mut self, _event: &Congestion, _path: &Path<'_>) {}
        fn cwnd(&self) -> Bytes {
            self.0
        }
        fn in_slow_start(&self) -> bool {
            true
        }
        fn phase(&self) -> &'static str {
            "restart"
        }
        fn clone_box(&self) -> Box<dyn Controller> {
            Box::new(self.clone())
        }
    }
    let start = Restart(Bytes::new(200_000), None);
    let end = Endpoint::listen(Config::modern(), Box::new(start), init(1), at(0));
    let mut lone = Lone::with(end, mss(1460), None);
    lone.end.set_mss(lone.now, 576);
    lone.now = at(20_000);
    assert_eq!(burst(&mut lone, 100_000), [576; 10]);
}

#[test]
fn a_segment_is_full_without_the_options_that_were_not_agreed() {
    // RFC 9293 §3.7.1, RFC 6691 §2: the options in use reduce the payload, and no others.
    let modern =
        |peer, timestamps| burst(&mut server(Config::modern(), mss(peer), timestamps), 5000)[0];
    assert_eq!(modern(1460, true), 1448);
    assert_eq!(modern(1460, false), 1460);
    assert_eq!(modern(1400, true), 1388);
    assert_eq!(modern(1400, false), 1400);
    assert_eq!(modern(9000, false), 1460);
    // We do not offer them: the peer's cannot be agreed on.
    let plain = || Config {
        timestamps: false,
        ..Config::modern()
    };
    assert_eq!(burst(&mut server(plain(), mss(1460), true), 5000)[0], 1448);
    // A smaller path MTU is shared by the same rule.
    for (timestamps, expected) in [(true, 1188), (false, 1200)] {
        let mut lone = server(Config::modern(), mss(1460), timestamps);
        lone.end.set_mss(lone.now, 1200);
        assert_eq!(burst(&mut lone, 5000)[0], expected);
    }
}

#[test]
fn a_syn_with_data_fits_the_announced_size() {
    for timestamps in [true, false] {
        let config = Config {
            timestamps,
            ..Config::modern()
        };
        let announced = if timestamps { 1460 } else { 1448 };
        let cookie = Some(real("12345678"));
        let init = Init {
            fast_open_cookie: cookie,
            ..init(0)
        };
        let mut end = Endpoint::connect(config, fixed(), init, at(0));
        end.write_synthetic(5000);
        let syn = end.poll_transmit(at(0)).expect("a SYN").segment;
        assert!(syn.flags.contains(Flags::SYN));
        let options = syn.options.padded_len();
        assert_eq!(syn.payload.len() + options, announced);
    }
}

#[test]
fn a_peer_without_the_option_gets_the_default_of_its_family() {
    // RFC 9293 §3.7.1: 536 or 1220 bytes, less the options in use.
    let none = || Extra {
        mss: None,
        ..mss(0)
    };
    for (is_ipv6, timestamps, expected) in [
        (false, false, 536),
        (false, true, 524),
        (true, false, 1220),
        (true, true, 1208),
    ] {
        let init = Init { is_ipv6, ..init(1) };
        let mut lone = server_of(Config::modern(), none(), timestamps, init);
        assert_eq!(burst(&mut lone, 20_000), [expected; 10]);
    }
}
