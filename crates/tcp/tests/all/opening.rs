//! Opening of connections: RFC 9293 §3.5, RFC 7413.

use crate::common::*;
use gargalo_tcp::{Config, Ending, Endpoint, Error, Event, State};
use gargalo_units::{Bytes, Duration, Ecn, Seq};
use gargalo_wire::tcp::{Extra, Flags, Payload, Segment};

const OPEN: [State; 2] = [State::Established; 2];

#[test]
fn three_segments_open_a_connection() {
    let mut pair = Pair::new(config(), config());
    pair.run_for(ms(500));
    pair.assert_log(&["0 C S", "10 S S. ack 0", "20 C . ack 0"]);
    assert_eq!(pair.states(), OPEN);
    assert_eq!(
        pair.events,
        [vec![Event::Connected], vec![Event::Connected]]
    );
}

#[test]
fn the_syn_offers_what_is_configured_and_the_answer_only_what_was_offered() {
    let mut pair = Pair::new(
        Config {
            timestamps: false,
            window_scaling: false,
            ..config()
        },
        Config {
            receive_buffer: Bytes::new(1 << 20),
            ..config()
        },
    );
    pair.run_for(ms(500));
    let options = |i: usize| pair.log[i].2.segment.options.clone();
    let extra = |mss, scale| {
        Some(Box::new(Extra {
            mss: Some(mss),
            window_scale: scale,
            sack_permitted: true,
            ..Extra::default()
        }))
    };
    assert_eq!(options(0).extra, extra(1000, None));
    assert_eq!(options(0).timestamps, None);
    assert_eq!(options(1).extra, extra(1012, None));
    assert_eq!(options(1).timestamps, None);
    assert_eq!(pair.log[1].2.segment.window, u16::MAX);

    let mut pair = Pair::new(
        Config {
            receive_buffer: Bytes::new(1 << 20),
            ..config()
        },
        Config {
            sack: false,
            ..config()
        },
    );
    pair.run_for(ms(500));
    let answer = &pair.log[1].2.segment.options;
    let syn = pair.log[0].2.segment.options.timestamps.unwrap();
    assert_eq!(answer.timestamps.unwrap().echo, syn.value);
    assert!(!answer.extra.as_ref().unwrap().sack_permitted);
    assert_eq!(
        pair.log[0]
            .2
            .segment
            .options
            .extra
            .as_ref()
            .unwrap()
            .window_scale,
        Some(5)
    );
    // 1 MiB >> 5.
    assert_eq!(pair.log[2].2.segment.window, 1 << 15);
}

#[test]
fn the_smaller_segment_size_counts() {
    let mut pair = Pair::connected(
        config(),
        Config {
            mss: 700,
            ..config()
        },
    );
    pair.ends[0].write_synthetic(1500);
    pair.run_for(ms(1));
    pair.assert_log(&[
        "100 C . 0:700 ack 0",
        "100 C . 700:1400 ack 0",
        "100 C P. 1400:1500 ack 0",
    ]);
}

#[test]
fn a_lost_syn_is_sent_again_with_backoff() {
    let mut pair = Pair::new(config(), config()).with(|side, n, _| {
        if side == 0 && n < 2 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.run_for(Duration::from_secs(10));
    pair.assert_log(&[
        "0 C S",
        "1000 C S",
        "3000 C S",
        "3010 S S. ack 0",
        "3020 C . ack 0",
    ]);
    assert_eq!(pair.states(), OPEN);
}

#[test]
fn a_lost_syn_ack_is_sent_again_by_either_side() {
    let mut pair = Pair::new(config(), config()).with(|side, n, _| {
        if side == 1 && n == 0 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.states(), OPEN);
    assert_eq!(
        pair.lines()[..4],
        ["0 C S", "10 S S. ack 0", "1000 C S", "1010 S S. ack 0"]
    );
    assert!(pair.lines().len() <= 7, "{:?}", pair.lines());
}

#[test]
fn a_lost_last_acknowledgement_is_repeated_for_a_repeated_syn_ack() {
    let mut pair = Pair::new(config(), config()).with(|side, n, _| {
        if side == 0 && n == 1 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.run_for(Duration::from_secs(10));
    pair.assert_log(&[
        "0 C S",
        "10 S S. ack 0",
        "20 C . ack 0",
        "1010 S S. ack 0",
        "1020 C . ack 0",
    ]);
    assert_eq!(pair.states(), OPEN);
}

#[test]
fn data_replaces_a_lost_last_acknowledgement() {
    let mut pair = Pair::new(config(), config()).with(|side, n, _| {
        if side == 0 && n == 1 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.run_until(at(25));
    assert_eq!(pair.ends[1].state(), State::SynReceived);
    pair.ends[0].write_synthetic(10);
    pair.run_for(ms(40));
    assert_eq!(pair.states(), OPEN);
    assert_eq!(pair.read[1], 10);
}

#[test]
fn nobody_answers_and_the_opening_is_given_up() {
    let mut pair = Pair::new(
        Config {
            syn_retries: 2,
            ..config()
        },
        config(),
    )
    .with(|_, _, _| Fate::Drop);
    pair.run_for(Duration::from_secs(100));
    pair.assert_log(&["0 C S", "1000 C S", "3000 C S"]);
    assert_eq!(pair.ends[0].state(), State::Closed);
    assert_eq!(pair.events[0], [Event::TimedOut]);
    assert_eq!(pair.ends[0].error(), Some(Error::TimedOut));
    assert_eq!(pair.ends[0].poll_timeout(), None);
}

#[test]
fn both_open_at_once() {
    let now = at(0);
    let mut pair = Pair::of([
        Endpoint::connect(config(), fixed(), init(0), now),
        Endpoint::connect(config(), fixed(), init(1), now),
    ]);
    pair.ends[0].write_synthetic(5);
    pair.run_for(ms(500));
    assert_eq!(pair.states(), OPEN);
    assert_eq!(
        pair.lines()[..4],
        ["0 C S", "0 S S", "10 S S. ack 0", "10 C S. ack 0"]
    );
    assert_eq!(pair.read[1], 5);
    assert_eq!(pair.events[0], [Event::Connected]);
}

#[test]
fn both_open_at_once_and_one_syn_ack_is_lost() {
    let now = at(0);
    let mut pair = Pair::of([
        Endpoint::connect(config(), fixed(), init(0), now),
        Endpoint::connect(config(), fixed(), init(1), now),
    ])
    .with(|side, n, _| {
        if side == 0 && n == 1 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.states(), OPEN);
}

#[test]
fn a_closed_port_refuses() {
    let mut pair = Pair::new(config(), config());
    pair.ends[1].close(at(0));
    pair.run_for(ms(500));
    pair.assert_log(&["0 C S", "10 S R. -5001 ack 0"]);
    assert_eq!(pair.events[0], [Event::Reset]);
    assert_eq!(pair.ends[0].error(), Some(Error::Refused));
}

#[test]
fn a_syn_ack_for_another_syn_is_reset() {
    let mut end = Endpoint::connect(config(), fixed(), init(0), at(0));
    assert_eq!(show(0, &end.poll_transmit(at(0)).unwrap().segment), "S");
    let stray = Segment {
        flags: Flags::SYN | Flags::ACK,
        ack: gargalo_units::Seq::new(77),
        ..Segment::default()
    };
    end.handle(at(1), stray, gargalo_units::Ecn::NotEct);
    let t = end.poll_transmit(at(1)).unwrap();
    assert_eq!((t.segment.flags, t.segment.seq.get()), (Flags::RST, 77));
    assert_eq!(end.state(), State::SynSent);
}

#[test]
fn a_reset_before_the_end_of_a_passive_opening_leads_back_to_listen() {
    let mut pair = Pair::new(config(), config());
    pair.run_until(at(15));
    assert_eq!(pair.ends[1].state(), State::SynReceived);
    let mut rst = pair.log[0].2.segment.clone();
    rst.flags = Flags::RST;
    rst.seq = rst.seq + 1;
    pair.ends[1].handle(at(15), rst, gargalo_units::Ecn::NotEct);
    assert_eq!(pair.ends[1].state(), State::Listen);
    assert_eq!(pair.ends[1].poll_timeout(), None);
}

/// RFC 9293 §3.10.4: CLOSE in LISTEN deletes the connection if nothing waits to be sent, and so does a reset of a
/// passive opening that was closed meanwhile.
#[test]
fn a_close_in_listen_ends_it() {
    let mut pair = Pair::new(config(), config());
    pair.ends[1].close(at(0));
    assert_eq!(pair.ends[1].state(), State::Closed);
    pair.run_until(at(25));
    assert_eq!(
        pair.ends[0].state(),
        State::Closed,
        "refused: {:?}",
        pair.lines()
    );

    let mut pair = Pair::new(config(), config());
    pair.run_until(at(15));
    pair.ends[1].close(at(15));
    assert_eq!(pair.ends[1].state(), State::SynReceived);
    let mut rst = pair.log[0].2.segment.clone();
    rst.flags = Flags::RST;
    rst.seq = rst.seq + 1;
    pair.ends[1].handle(at(15), rst, gargalo_units::Ecn::NotEct);
    assert_eq!(pair.ends[1].state(), State::Closed);
}

#[test]
fn what_is_written_and_closed_before_the_opening_is_delivered() {
    let mut pair = Pair::new(config(), config());
    assert_eq!(pair.ends[0].write(real("hello")), 5);
    pair.ends[0].close(at(0));
    assert_eq!(pair.ends[0].write(real("more")), 0);
    pair.run_for(ms(500));
    assert_eq!(pair.content[1], b"hello");
    assert!(pair.events[1].contains(&Event::PeerClosed));
    assert_eq!(pair.states(), [State::FinWait2, State::CloseWait]);
}

mod fast_open {
    use super::*;

    fn pair(shown: Option<&'static str>, valid: &'static str) -> Pair {
        let (mut near, mut far) = (init(0), init(1));
        near.fast_open_cookie = shown.map(real);
        far.fast_open_cookie = Some(real(valid));
        Pair::of([
            Endpoint::connect(config(), fixed(), near, at(0)),
            Endpoint::listen(config(), fixed(), far, at(0)),
        ])
    }

    #[test]
    fn a_cookie_is_asked_for_and_granted() {
        let mut pair = pair(Some(""), "cookie");
        pair.ends[0].write(real("request"));
        pair.run_for(ms(500));
        assert_eq!(
            pair.lines()[..3],
            ["0 C S", "10 S S. ack 0", "20 C P. 0:7 ack 0"]
        );
        assert_eq!(pair.ends[0].granted_cookie().unwrap(), &real("cookie"));
        assert_eq!(pair.content[1], b"request");
    }

    #[test]
    fn with_the_cookie_the_request_travels_with_the_syn() {
        let mut pair = pair(Some("cookie"), "cookie");
        pair.ends[0].write(real("request"));
        pair.run_until(at(10));
        assert_eq!(pair.content[1], b"request");
        // The answer does not wait either.
        pair.ends[1].write(real("answer"));
        pair.run_until(at(20));
        assert_eq!(pair.content[0], b"answer");
        pair.ends[0].write(real("!"));
        pair.run_for(ms(500));
        assert_eq!(
            pair.lines()[..4],
            [
                "0 C S 0:7",
                "10 S S. ack 7",
                "10 S P. 0:6 ack 7",
                "20 C . ack 0"
            ],
        );
        assert_eq!(pair.content[1], b"request!");
        assert_eq!(pair.states(), OPEN);
        assert_eq!(pair.events[1][..2], [Event::Connected, Event::Readable]);
        assert_eq!(pair.ends[0].unacknowledged(), 0);
    }

    #[test]
    fn long_requests_start_with_the_syn() {
        let mut pair = pair(Some("cookie"), "cookie");
        pair.ends[0].write_synthetic(2500);
        pair.run_for(ms(500));
        // MSS, scale, SACK permitted and the cookie exceed the room of the timestamps by 16 bytes.
        assert_eq!(pair.lines()[..2], ["0 C S 0:984", "10 S S. ack 984"]);
        assert_eq!(pair.read[1], 2500);
    }

    #[test]
    fn records_end_segments_after_data_that_left_with_the_syn() {
        let mut pair = pair(Some("cookie"), "cookie");
        for (n, ending) in [
            (500, Ending::Record),
            (700, Ending::Record),
            (400, Ending::Record),
            (300, Ending::Plain),
        ] {
            pair.ends[0].write_with(vec![0; n].into(), ending);
        }
        pair.run_for(ms(500));
        let mut lines = pair.lines();
        lines.retain(|l| l.contains(" C "));
        // The SYN is full, in the middle of the second record.
        assert_eq!(
            lines,
            [
                "0 C S 0:984",
                "20 C P. 984:1200 ack 0",
                "20 C P. 1200:1600 ack 0",
                "20 C P. 1600:1900 ack 0"
            ]
        );
        assert_eq!(pair.read[1], 1900);
    }

    #[test]
    fn a_wrong_cookie_costs_the_round_trip_only() {
        let mut pair = pair(Some("former"), "cookie");
        pair.ends[0].write(real("request"));
        pair.run_for(ms(500));
        assert_eq!(
            pair.lines()[..3],
            ["0 C S 0:7", "10 S S. ack 0", "20 C P. 0:7 ack 0"]
        );
        assert_eq!(pair.content[1], b"request");
        assert_eq!(pair.ends[0].granted_cookie().unwrap(), &real("cookie"));
    }

    #[test]
    fn a_repeated_syn_with_data_and_a_wrong_cookie_is_answered_again() {
        let mut pair = pair(Some("former"), "cookie").with(|side, n, _| {
            if side == 1 && n == 0 {
                Fate::Drop
            } else if side == 0 {
                Fate::Twice
            } else {
                Fate::Pass
            }
        });
        pair.ends[0].write(real("request"));
        pair.run_until(at(40));
        assert_eq!(
            pair.lines()[..3],
            ["0 C S 0:7", "10 S S. ack 0", "10 S S. ack 0"]
        );
        pair.run_for(ms(500));
        assert_eq!(pair.content[1], b"request");
    }

    #[test]
    fn a_server_may_close_before_the_handshake_is_complete() {
        let mut pair = pair(Some("cookie"), "cookie");
        pair.ends[0].write(real("request"));
        pair.run_until(at(10));
        pair.ends[1].write(real("answer"));
        pair.ends[1].close(pair.now);
        pair.run_for(ms(100));
        assert_eq!(pair.content[0], b"answer");
        assert_eq!(pair.states(), [State::CloseWait, State::FinWait2]);
    }

    #[test]
    fn a_lost_syn_with_data_is_followed_by_a_plain_one() {
        let mut pair = pair(Some("cookie"), "cookie").with(|side, n, _| {
            if side == 0 && n == 0 {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        pair.ends[0].write(real("request"));
        pair.run_for(Duration::from_secs(3));
        assert_eq!(pair.lines()[..2], ["0 C S 0:7", "1000 C S"]);
        assert_eq!(pair.content[1], b"request");
    }

    #[test]
    fn a_lost_syn_ack_after_early_data_is_repeated() {
        let mut pair = pair(Some("cookie"), "cookie").with(|side, n, _| {
            if side == 1 && n == 0 {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        pair.ends[0].write(real("request"));
        pair.run_for(Duration::from_secs(5));
        assert_eq!(pair.content[1], b"request");
        assert_eq!(pair.states(), OPEN);
        assert_eq!(pair.ends[0].unacknowledged(), 0);
    }

    #[test]
    fn early_data_twice_is_delivered_once() {
        let mut pair = pair(Some("cookie"), "cookie").with(|side, n, _| {
            if side == 0 && n == 0 {
                Fate::Twice
            } else {
                Fate::Pass
            }
        });
        pair.ends[0].write(real("request"));
        pair.run_for(Duration::from_secs(5));
        assert_eq!(pair.content[1], b"request");
        assert_eq!(pair.states(), OPEN);
    }

    #[test]
    fn cookies_of_other_lengths_are_ignored() {
        // RFC 7413 §4.1.1: 4 to 16 bytes, an even number; empty is a request.
        let text = "0123456789abcdefgh";
        for len in 0..=18 {
            let cookie = &text[..len];
            let valid = (4..=16).contains(&len) && len % 2 == 0;
            // Sent by us.
            let mut near = init(0);
            near.fast_open_cookie = Some(real(cookie));
            let mut end = Endpoint::connect(config(), fixed(), near, at(0));
            end.write(real("request"));
            let syn = end.poll_transmit(at(0)).unwrap().segment;
            let shown = syn.options.extra.as_ref().unwrap().fast_open.clone();
            assert_eq!(shown.is_some(), valid || len == 0);
            assert_eq!(syn.payload.is_empty(), !valid);
            // Shown to a server that has this one, and another.
            for ours in [cookie, "cookie"] {
                let mut far = init(1);
                far.fast_open_cookie = Some(real(ours));
                let mut server = Endpoint::listen(config(), fixed(), far, at(0));
                let mut shown = syn.clone();
                shown.payload = Payload::real(real("request"));
                shown.options.extra.as_mut().unwrap().fast_open = Some(real(cookie));
                server.handle(at(1), shown, Ecn::NotEct);
                let answer = server.poll_transmit(at(1)).unwrap().segment;
                let granted = answer.options.extra.as_ref().unwrap().fast_open.clone();
                let accepted = valid && ours == cookie;
                assert_eq!(server.readable(), if accepted { 7 } else { 0 });
                // A request or a valid cookie that is wrong is answered by the right one, another not at all.
                let wanted = ours == "cookie" && !accepted && (valid || len == 0);
                assert_eq!(granted, wanted.then(|| real("cookie")));
            }
            // Granted by a server.
            let mut near = init(0);
            near.fast_open_cookie = Some(real(""));
            let mut end = Endpoint::connect(config(), fixed(), near, at(0));
            end.poll_transmit(at(0)).unwrap();
            let mut answer = Segment {
                src_port: 80,
                dst_port: 40_000,
                seq: Seq::new(ISN[1]),
                ack: Seq::new(ISN[0]) + 1,
                flags: Flags::SYN | Flags::ACK,
                window: 1000,
                ..Segment::default()
            };
            answer.options.extra = Some(Box::new(Extra {
                fast_open: Some(real(cookie)),
                ..Extra::default()
            }));
            end.handle(at(1), answer, Ecn::NotEct);
            assert_eq!(end.state(), State::Established);
            assert_eq!(end.granted_cookie().is_some(), valid);
        }
    }
}
