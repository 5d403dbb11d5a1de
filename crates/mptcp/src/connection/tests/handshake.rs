//! MP_CAPABLE and MP_JOIN: what is agreed on, and what is refused (RFC 8684 §3.1, §3.2, §3.7).

use gargalo_cc::{Acked, Congestion, Controller, ControllerFactory, Established, Path};
use gargalo_units::Seq;
use gargalo_wire::mptcp::{CapableFlags, CapableKeys, Dss, Join, Reset};
use gargalo_wire::tcp::Payload;
use rand::Rng;

use super::super::Mode;
use super::*;

fn capable(version: u8, flags: u8, keys: CapableKeys) -> MptcpOption {
    MptcpOption::Capable {
        version,
        flags: CapableFlags::from_bits(flags),
        keys,
    }
}

/// Versions and flags, and whether this host understands them: HMAC-SHA256 and not the flag B, which has no meaning
/// yet; A and C are as the peer wishes.
const FLAGS: [(u8, u8, bool); 8] = [
    (1, 0x01, true),
    (1, 0x81, true),
    (1, 0x21, true),
    (1, 0x00, false),
    (1, 0x80, false),
    (1, 0x41, false),
    (0, 0x01, false),
    (2, 0x01, false),
];

#[test]
fn a_syn_that_is_not_understood_is_answered_as_by_plain_tcp() {
    let none = CapableKeys::None;
    let more = [(1, 1, CapableKeys::Sender(5), false)];
    let all = FLAGS.iter().map(|f| (f.0, f.1, none, f.2)).chain(more);
    for (version, flags, keys, understood) in all {
        let mut ends = Ends::both(&config(), 1);
        let mut syn = ends.poll(0).remove(0);
        set_option(&mut syn.transmit.segment, capable(version, flags, keys));
        ends.deliver(&syn);
        let answer = ends.poll(1).remove(0);
        assert_eq!(ends.ends[1].has_fallen_back(), !understood, "{flags:#x}");
        assert_eq!(answer.options().len(), usize::from(understood));
        // Either end can request checksums.
        if let Some(MptcpOption::Capable { flags: own, .. }) = answer.options().first() {
            assert_eq!(own.bits(), 0x01 | flags & 0x80);
        }
    }
}

#[test]
fn an_answer_that_is_not_understood_means_plain_tcp() {
    let key = CapableKeys::Sender(5);
    let more = [(1, 1, CapableKeys::None, false)];
    let all = FLAGS.iter().map(|f| (f.0, f.1, key, f.2)).chain(more);
    for (version, flags, keys, understood) in all {
        let mut ends = Ends::both(&config(), 1);
        let syn = ends.poll(0).remove(0);
        ends.deliver(&syn);
        let mut answer = ends.poll(1).remove(0);
        set_option(&mut answer.transmit.segment, capable(version, flags, keys));
        ends.deliver(&answer);
        assert_eq!(ends.ends[0].is_multipath(), understood, "{flags:#x}");
        assert_eq!(ends.ends[0].has_fallen_back(), !understood);
        let third = ends.poll(0).remove(0);
        assert_eq!(third.options().len(), usize::from(understood));
    }
}

#[test]
fn only_the_third_packet_with_the_servers_key_opens_a_multipath_connection() {
    let ends = || {
        let mut ends = Ends::both(&config(), 1);
        let syn = ends.poll(0).remove(0);
        ends.deliver(&syn);
        let answer = ends.poll(1).remove(0);
        ends.deliver(&answer);
        let third = ends.poll(0).remove(0);
        (ends, third)
    };
    let both = |receiver| CapableKeys::Both {
        sender: 1,
        receiver,
    };
    let dss = MptcpOption::Dss(Dss {
        data_fin: false,
        data_ack: None,
        mapping: None,
    });
    // With DSS it is a later packet: the third one comes again.
    for (option, mode) in [
        (Some(capable(1, 1, both(2))), Mode::Multipath),
        (Some(capable(1, 1, both(3))), Mode::Plain),
        (Some(capable(0, 1, both(2))), Mode::Plain),
        // Flags that are not understood in a SYN are not understood here.
        (Some(capable(1, 0x41, both(2))), Mode::Plain),
        (Some(capable(1, 0x80, both(2))), Mode::Plain),
        (Some(capable(1, 1, CapableKeys::Sender(1))), Mode::Plain),
        (None, Mode::Plain),
        (Some(dss), Mode::Opening),
    ] {
        let (mut ends, mut third) = ends();
        third.transmit.segment.options.mptcp = option.clone().map(|o| Box::new(List::from(o)));
        ends.deliver(&third);
        assert_eq!(ends.ends[1].mode, mode, "{option:?}");
        let open = ends.ends[1].subflows[0].endpoint.state().is_synchronised();
        assert_eq!(open, mode != Mode::Opening);
    }
    // An acknowledgement of something else is none of the handshake.
    let (mut ends, mut third) = ends();
    third.transmit.segment.ack = third.transmit.segment.ack + 1;
    third.transmit.segment.options.mptcp = None;
    ends.deliver(&third);
    assert_eq!(ends.ends[1].mode, Mode::Opening);
}

#[test]
fn two_syns_offer_multipath_and_all_later_ones_plain_tcp() {
    let mut ends = Ends::both(&config(), 1);
    let all = ends.run(Duration::from_secs(20), &mut |_| false);
    let with: Vec<_> = all.iter().map(|s| s.options().len()).collect();
    assert!(
        with.len() > 3 && with.iter().sum::<usize>() == 2,
        "{with:?}"
    );
    assert_eq!(with[..2], [1, 1]);
    // An answer to one of the first that comes now is too late.
    ends.deliver(&all[0]);
    let answer = ends.poll(1).remove(0);
    assert_eq!(answer.options().len(), 1);
    ends.deliver(&answer);
    assert!(ends.ends[0].has_fallen_back());
    // A server that repeats its answer repeats its key.
    let mut ends = Ends::both(&config(), 1);
    let all = ends.run(Duration::from_secs(3), &mut |s| s.side == 0);
    let answers = all.iter().filter(|s| s.side == 1);
    assert!(answers.clone().count() > 1);
    assert!(answers.clone().all(|s| s.options().len() == 1));
}

#[test]
fn a_segment_of_no_connection_is_answered_by_a_reset() {
    // RFC 9293 §3.10.7.1: flags, payload; then flags, sequence number and acknowledgement of the answer.
    let cases = [
        (Flags::ACK, 5, Some((Flags::RST, 2000, 0))),
        (Flags::SYN | Flags::ACK, 0, Some((Flags::RST, 2000, 0))),
        (Flags::SYN, 0, Some((Flags::RST | Flags::ACK, 0, 1001))),
        (Flags::FIN, 5, Some((Flags::RST | Flags::ACK, 0, 1006))),
        (Flags::RST, 0, None),
        (Flags::RST | Flags::ACK, 0, None),
    ];
    for (flags, len, expected) in cases {
        let mut ends = Ends::open(&config(), 1);
        let addresses = Addresses {
            local: SocketAddr::new(address(1, 0), 80),
            remote: SocketAddr::new(address(0, 0), 9),
        };
        let segment = Segment {
            src_port: 9,
            dst_port: 80,
            seq: Seq::new(1000),
            ack: Seq::new(2000),
            flags,
            payload: Payload::synthetic(len),
            ..Segment::default()
        };
        // They cause a bounded state.
        for _ in 0..100 {
            let now = ends.now;
            ends.server()
                .handle(now, addresses, segment.clone(), Ecn::NotEct);
        }
        assert_eq!(ends.server().stats().joins_refused, 0);
        let answers = ends.poll(1);
        assert_eq!(answers.len(), if expected.is_some() { 64 } else { 0 });
        if let (Some(t), Some((flags, seq, ack))) = (answers.first(), expected) {
            let s = t.segment();
            assert_eq!(
                (s.flags, s.seq, s.ack),
                (flags, Seq::new(seq), Seq::new(ack))
            );
            assert_eq!((s.src_port, s.dst_port), (80, 9));
            assert_eq!(t.transmit.addresses, addresses);
            assert!(t.options().is_empty());
        }
    }
}

/// Answers of a server to a SYN with MP_JOIN: the reason of the reset, or none.
fn join(ends: &mut Ends, token: u32) -> Option<u8> {
    let addresses = Addresses {
        local: SocketAddr::new(address(1, 0), 80),
        remote: SocketAddr::new(address(0, 0), 9),
    };
    let mut segment = Segment {
        src_port: 9,
        dst_port: 80,
        flags: Flags::SYN,
        ..Segment::default()
    };
    set_option(
        &mut segment,
        MptcpOption::Join(Join::Syn {
            backup: true,
            address_id: 9,
            receiver_token: token,
            nonce: 1,
        }),
    );
    ends.poll(1);
    let now = ends.now;
    ends.server().handle(now, addresses, segment, Ecn::NotEct);
    let answer = ends
        .poll(1)
        .into_iter()
        .find(|s| s.transmit.addresses == addresses)?;
    match answer.options()[..] {
        [MptcpOption::Reset(Reset { reason, .. })] => Some(reason),
        [MptcpOption::Join(Join::SynAck { .. })] => None,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_join_is_refused_with_the_reason() {
    let few = Config {
        options: crate::Options {
            max_subflows: 2,
            ..Default::default()
        },
        ..config()
    };
    let closed = |ends: &mut Ends| {
        for side in [0, 1] {
            let now = ends.now;
            ends.ends[side].close(now);
        }
        // Both DATA_FINs are acknowledged, or nearly.
        ends.wait(ms(30));
    };
    let plain = |ends: &mut Ends| ends.server().mode = Mode::Plain;
    let aborted = |ends: &mut Ends| {
        let now = ends.now;
        ends.server().abort(now);
        ends.poll(1);
    };
    type Change<'a> = &'a dyn Fn(&mut Ends);
    let cases: [(Change<'_>, usize, u32, Option<u8>); 7] = [
        (&|_| (), 1, 0, None),
        // RFC 8684 §3.6: MPTCP-specific error, prohibited by policy, lack of resources.
        (&|_| (), 1, 1, Some(1)),
        (&plain, 1, 0, Some(3)),
        (&closed, 1, 0, Some(3)),
        (&aborted, 1, 0, Some(3)),
        (&|_| (), 2, 0, Some(2)),
        (&|_| (), 2, 1, Some(1)),
    ];
    for (change, paths, other_token, expected) in cases {
        let mut ends = Ends::open(&few, paths);
        let token = ends.ends[1].token() ^ other_token;
        change(&mut ends);
        let before = ends.ends[1].subflows.len();
        assert_eq!(join(&mut ends, token), expected);
        assert_eq!(
            ends.server().stats().joins_refused,
            u64::from(expected.is_some())
        );
        let more = usize::from(expected.is_none());
        assert_eq!(ends.ends[1].subflows.len(), before + more);
        if expected.is_none() {
            let s = ends.ends[1].subflows.last().unwrap();
            assert_eq!((s.join.local_id, s.join.remote_id), (0, Some(9)));
            assert!(s.backup.peer && !s.backup.own && !s.confirmed);
        }
    }
}

#[test]
fn a_join_tells_the_identifier_of_its_address_and_whether_it_is_a_backup() {
    for backup in 0..2 {
        let inits = [0, 1].map(|side| Init {
            backups: vec![address(side, 1); usize::from(side == backup)],
            ..init(side, 2)
        });
        let mut ends = Ends::new([config(), config()], inits);
        let all = ends.wait(ms(300));
        let joins = all.iter().filter(|s| s.path == 1);
        let joins: Vec<_> = joins.flat_map(Sent::options).collect();
        let (Some(MptcpOption::Join(syn)), Some(MptcpOption::Join(answer))) =
            (joins.first(), joins.get(1))
        else {
            panic!("{joins:?}");
        };
        let (Join::Syn {
            backup: b,
            address_id,
            ..
        }
        | Join::SynAck {
            backup: b,
            address_id,
            ..
        }) = *syn
        else {
            panic!("{syn:?}");
        };
        assert_eq!((b, address_id), (backup == 0, 1));
        let (Join::Syn {
            backup: b,
            address_id,
            ..
        }
        | Join::SynAck {
            backup: b,
            address_id,
            ..
        }) = *answer
        else {
            panic!("{answer:?}");
        };
        assert_eq!((b, address_id), (backup == 1, 1));
        // Either of them makes it one for both.
        for end in &ends.ends {
            let is: Vec<_> = end.views.iter().map(|v| v.backup).collect();
            assert_eq!(is, [false, true]);
        }
    }
}

#[test]
fn the_third_packet_of_a_join_is_sent_until_it_is_answered() {
    let mut ends = Ends::both(&config(), 2);
    let mut answered = false;
    // The server's first answer arrives, and nothing after it.
    let all = ends.run(Duration::from_secs(4), &mut |s| {
        let first = s.side == 1 && !answered && s.path == 1;
        answered |= first;
        s.path == 0 || first || s.is(Flags::SYN) && s.side == 0
    });
    let third =
        |s: &Sent| s.path == 1 && s.has(|o| matches!(o, MptcpOption::Join(Join::Ack { .. })));
    let sent = times(&all, third);
    // After a retransmission timeout, 200 ms above the round trip, then each time after two of them.
    assert_eq!(gaps(&sent)[..3], [220, 440, 440]);
    assert_eq!(ends.ends[1].stats().subflows_opened, 1);
    // A repetition that finds the other end open is answered.
    ends.wait(Duration::from_secs(1));
    assert!(ends.ends.iter().all(|e| e.views[1].usable));
    let repeated = ends.ends[0].join_of_ack(1).unwrap();
    ends.poll(1);
    ends.tell(1, 1, repeated);
    let answer = ends.poll(1);
    assert_eq!(answer.len(), 1);
    assert_eq!(answer[0].path, 1);
}

#[test]
fn a_peer_that_denies_joins_to_its_first_address_gets_none_there() {
    for (flags, subflows) in [(0x01, 2), (0x21, 1)] {
        let mesh = Config {
            path_manager: Arc::new(
                crate::path_manager::Registered::new("full-mesh", Params::new()).unwrap(),
            ),
            ..config()
        };
        let mut ends = Ends::new([mesh.clone(), mesh], [init(0, 2), init(1, 1)]);
        ends.run(ms(50), &mut |s| {
            if s.side == 1 && s.is(Flags::SYN) && s.path == 0 {
                set_option(
                    &mut s.transmit.segment,
                    capable(1, flags, CapableKeys::Sender(2)),
                );
            }
            true
        });
        ends.client().write_synthetic(1000);
        ends.wait(ms(300));
        assert_eq!(ends.read[1], 1000);
        assert_eq!(ends.ends[0].subflows.len(), subflows);
    }
}

#[test]
fn a_control_has_a_random_stream_of_256_bits_of_the_connections() {
    #[derive(Debug)]
    struct Watch(std::sync::Mutex<Vec<Pcg64>>);
    impl ControllerFactory for Watch {
        fn name(&self) -> &'static str {
            "watch"
        }
        fn build(&self, init: gargalo_cc::Init) -> Result<Box<dyn gargalo_cc::Controller>, String> {
            self.0.lock().unwrap().push(init.rng.clone());
            congestion().build(init)
        }
    }
    let watch = Arc::new(Watch(Default::default()));
    let of = init(1, 1);
    let mut rng = of.rng.clone();
    Connection::listen(config(), watch.clone(), of).unwrap();
    let mut wide = || u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
    let (state, stream) = (wide(), wide());
    assert_eq!(*watch.0.lock().unwrap(), [Pcg64::new(state, stream)]);
}

/// What a control was told: the least round trip of its path at the end of the handshake, then the least and the sample
/// with each acknowledgement.
type Told = Arc<Mutex<Vec<(Option<Duration>, Option<Duration>)>>>;

#[derive(Clone, Debug)]
struct Witness(Told);

impl Controller for Witness {
    fn on_established(&mut self, _event: &Established, path: &Path<'_>) {
        self.0.lock().unwrap().push((path.min_rtt, None));
    }
    fn on_ack(&mut self, ack: &Acked, path: &Path<'_>) {
        self.0.lock().unwrap().push((path.min_rtt, ack.rtt));
    }
    fn on_congestion(&mut self, _event: &Congestion, _path: &Path<'_>) {}
    fn cwnd(&self) -> Bytes {
        Bytes::new(14_480)
    }
    fn in_slow_start(&self) -> bool {
        true
    }
    fn phase(&self) -> &'static str {
        "slow-start"
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// A witness for each subflow, in the order of their beginning.
#[derive(Debug, Default)]
struct Witnesses(Mutex<Vec<Told>>);

impl ControllerFactory for Witnesses {
    fn name(&self) -> &'static str {
        "witnesses"
    }
    fn build(&self, _init: gargalo_cc::Init) -> Result<Box<dyn Controller>, String> {
        let told = Told::default();
        self.0.lock().unwrap().push(told.clone());
        Ok(Box::new(Witness(told)))
    }
}

#[test]
fn each_control_begins_with_the_round_trip_of_its_own_handshake() {
    // docs/tcp.md, "The first round trip".
    for side in 0..2 {
        let mut ends = Ends::both(&config(), 2);
        let witnesses = Arc::new(Witnesses::default());
        let of = init(side, 2);
        ends.ends[side] = match side {
            0 => {
                let addresses = Addresses {
                    local: SocketAddr::new(address(0, 0), 40_000),
                    remote: SocketAddr::new(address(1, 0), 80),
                };
                Connection::connect(config(), witnesses.clone(), of, addresses, ends.now)
            }
            _ => Connection::listen(config(), witnesses.clone(), of),
        }
        .unwrap();
        ends.delays = vec![ms(10), ms(30)];
        ends.wait(ms(300));
        // Later samples are longer.
        ends.delays = vec![ms(50), ms(70)];
        ends.ends[side].write_synthetic(200_000);
        ends.wait(ms(1000));
        let all = witnesses.0.lock().unwrap();
        let all = all.iter().map(|told| told.lock().unwrap());
        // A control whose subflow never opened is told nothing.
        let all: Vec<_> = all.filter(|told| !told.is_empty()).collect();
        assert_eq!(all.len(), 2);
        for (told, (first, later)) in all.iter().zip([(20, 100), (60, 140)]) {
            assert_eq!(told[0], (Some(ms(first)), None), "side {side}");
            assert!(told.len() > 5, "{} acknowledgements", told.len() - 1);
            for t in &told[1..] {
                assert_eq!(t.0, Some(ms(first)), "side {side}");
                assert!(t.1.is_none_or(|rtt| rtt >= ms(later)), "{t:?}");
            }
        }
    }
}

#[test]
fn the_initial_subflow_may_be_resumed_from_the_third_packet_alone() {
    // A server that kept no state: SYN cookies (RFC 4987 §3.6).
    let mut ends = Ends::both(&config(), 1);
    let syn = ends.poll(0).remove(0);
    ends.deliver(&syn);
    let answer = ends.poll(1).remove(0);
    let tcp = gargalo_tcp::Init {
        local_port: 80,
        remote_port: 40_000,
        isn: answer.segment().seq,
        is_ipv6: false,
        ts_offset: answer.segment().options.timestamps.unwrap().value,
        fast_open_cookie: None,
    };
    let addresses = answer.transmit.addresses;
    let now = ends.now;
    let resumed = Connection::resume(
        config(),
        congestion(),
        init(1, 1),
        addresses,
        tcp,
        now,
        syn.segment(),
    );
    ends.ends[1] = resumed.unwrap();
    assert_eq!(ends.ends[1].subflow_changes(), 1);
    ends.deliver(&answer);
    ends.wait(ms(100));
    ends.client().write_synthetic(100_000);
    ends.wait(ms(1000));
    assert_eq!(ends.read[1], 100_000);
    assert!(ends.ends.iter().all(Connection::is_multipath));
    assert!(ends.ends[1].endpoint(addresses).is_some());
    assert!(ends.ends[1].endpoint(addresses.reversed()).is_none());
    assert_eq!(ends.ends[1].end_time_wait(addresses), None, "it is open");
}

#[test]
fn the_number_of_changes_grows_with_each_subflow_that_begins_or_ends() {
    let mut ends = Ends::open(&config(), 2);
    assert_eq!(ends.ends[0].subflow_changes(), 2);
    let (now, first) = (ends.now, address(0, 0));
    ends.client().remove_address(now, first);
    assert_eq!(ends.ends[0].subflow_changes(), 3);
}
