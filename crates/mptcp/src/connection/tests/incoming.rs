//! What segments and their options change, and what is refused.

use super::super::{FallbackNotice, Mode};
use super::*;
use crate::mapping::number;
use gargalo_wire::mptcp::{CapableKeys, DataNumber, Dss, Mapping};
use gargalo_wire::tcp::Payload;

/// The last segment of data that a side sent.
fn data(all: &[Sent]) -> Sent {
    let found = all.iter().rfind(|s| !s.segment().payload.is_empty());
    found.unwrap().clone()
}

fn change_dss(s: &mut Sent, change: impl FnOnce(&mut Dss)) {
    let Some(MptcpOption::Dss(mut dss)) = s.options().into_iter().next() else {
        panic!("{s:?}");
    };
    change(&mut dss);
    set_option(&mut s.transmit.segment, MptcpOption::Dss(dss));
}

fn change_mapping(s: &mut Sent, change: impl FnOnce(&mut Mapping)) {
    change_dss(s, |d| change(d.mapping.as_mut().unwrap()));
}

fn write(ends: &mut Ends, side: usize, bytes: u64) -> Vec<Sent> {
    assert_eq!(ends.ends[side].write_synthetic(bytes), bytes);
    ends.poll(side)
}

fn fall_backs(ends: &Ends) -> [u64; 2] {
    [0, 1].map(|side| ends.ends[side].stats().fallbacks)
}

#[derive(Clone, Copy, Debug)]
enum Plain {
    /// An acknowledgement of our data.
    Ack,
    /// One of nothing new.
    Again,
    Data,
    Fin,
}

/// Whether a client falls back when a segment without options arrives, after `acked`: a DATA_ACK has come before;
/// with `again`: some data was sent twice; over this many paths.
fn falls_back(what: Plain, acked: bool, again: bool, paths: usize) -> bool {
    let mut ends = Ends::open(&config(), paths);
    if acked {
        ends.client().write_synthetic(1000);
        ends.wait(ms(100));
    } else {
        ends.client().handshake.data_acked = false;
    }
    ends.client().fallback.contiguous &= !again;
    let sent = write(&mut ends, 0, 1000);
    let mut s = match what {
        Plain::Ack => {
            sent.iter().for_each(|s| ends.deliver(s));
            ends.ack_of(1, 0)
        }
        Plain::Again => ends.ack_of(1, 0),
        Plain::Data => {
            let mut s = ends.ack_of(1, 0);
            s.transmit.segment.payload = Payload::synthetic(10);
            s
        }
        Plain::Fin => {
            let mut s = ends.ack_of(1, 0);
            s.transmit.segment.flags = s.transmit.segment.flags | Flags::FIN;
            s
        }
    };
    s.transmit.segment.options.mptcp = None;
    ends.deliver(&s);
    let fell_back = ends.ends[0].mode == Mode::Plain;
    // A FIN says it by itself; otherwise a peer that has our data with its mapping does not know.
    let expected = match what {
        Plain::Ack | Plain::Data if fell_back => FallbackNotice::DataAck,
        _ => FallbackNotice::None,
    };
    assert_eq!(ends.ends[0].fallback.notice, expected, "{what:?}");
    fell_back
}

#[test]
fn a_peer_without_options_is_plain_tcp_unless_it_was_known_to_have_them() {
    use Plain::{Ack, Again, Data, Fin};
    // RFC 8684 §3.7. A DATA_ACK has come; data was sent twice; paths.
    let cases = [
        (Ack, false, false, 1, true),
        (Again, false, false, 1, false),
        (Data, false, false, 1, true),
        (Fin, false, false, 1, true),
        // It has fallen back, as it is the only path and its stream is the connection's.
        (Ack, true, false, 1, true),
        (Again, true, false, 1, false),
        (Fin, true, false, 1, true),
        // Sent twice, the stream is another, and a mapping that is missing is a fault.
        (Ack, true, true, 1, false),
        (Fin, true, true, 1, false),
        (Ack, false, true, 1, true),
        // So it is with several paths.
        (Ack, true, true, 2, false),
        (Ack, true, false, 2, false),
    ];
    for (what, acked, again, paths, expected) in cases {
        let got = falls_back(what, acked, again, paths);
        assert_eq!(got, expected, "{what:?} {acked} {again} {paths}");
    }
}

#[test]
fn a_host_that_has_fallen_back_says_so_until_its_peer_can_know() {
    let mut ends = Ends::open(&config(), 1);
    ends.client().write_synthetic(1000);
    ends.server().write_synthetic(1000);
    ends.wait(ms(100));
    // A mapping without end from the peer: it sends plain TCP from now on (RFC 8684 §3.7).
    let sent = write(&mut ends, 1, 500);
    let mut s = data(&sent);
    change_mapping(&mut s, |m| m.length = 0);
    ends.deliver(&s);
    assert_eq!(fall_backs(&ends), [1, 0]);
    assert_eq!(ends.ends[0].fallback.notice, FallbackNotice::None);
    // The peer knows: an acknowledgement is one of plain TCP.
    let all = ends.wait(ms(300));
    let of_client: Vec<_> = all.iter().filter(|s| s.side == 0).collect();
    assert!(!of_client.is_empty() && of_client.iter().all(|s| s.options().is_empty()));
    assert_eq!(ends.read[0], 1500);
    // Its own data has such mappings until one is acknowledged.
    let all = write(&mut ends, 0, 3000);
    let mappings: Vec<_> = all.iter().flat_map(Sent::options).collect();
    let without_end = |at: u32| {
        MptcpOption::Dss(Dss {
            data_fin: false,
            data_ack: None,
            mapping: Some(Mapping {
                data_seq: number(i64::from(at), ends.ends[0].own_base(), false),
                subflow_seq: 1 + at,
                length: 0,
                checksum: None,
            }),
        })
    };
    assert_eq!(mappings[..2], [1000, 2428].map(without_end));
    all.iter().for_each(|s| ends.deliver(s));
    assert_eq!(fall_backs(&ends), [1, 1]);
    ends.wait(ms(100));
    let all = write(&mut ends, 0, 5000);
    assert!(all.iter().all(|s| s.options().is_empty()));
    all.iter().for_each(|s| ends.deliver(s));
    ends.wait(ms(100));
    assert_eq!(ends.read, [1500, 9000]);
}

#[test]
fn a_mapping_without_end_is_refused_on_one_of_several_paths() {
    let mut ends = Ends::open(&config(), 2);
    let mut s = data(&write(&mut ends, 1, 500));
    change_mapping(&mut s, |m| m.length = 0);
    ends.deliver(&s);
    assert_eq!(fall_backs(&ends), [0, 0]);
    assert_eq!(ends.ends[0].stats().subflows_reset, 1);
}

#[test]
fn data_without_a_mapping_is_plain_tcp_on_the_only_path_and_a_fault_on_one_of_several() {
    for paths in [1, 2] {
        let mut ends = Ends::open(&config(), paths);
        ends.client().write_synthetic(1000);
        ends.server().write_synthetic(1000);
        ends.wait(ms(100));
        let mut s = data(&write(&mut ends, 1, 500));
        change_dss(&mut s, |d| d.mapping = None);
        ends.deliver(&s);
        assert_eq!(ends.ends[0].stats().fallbacks, u64::from(paths == 1));
        assert_eq!(ends.ends[0].stats().subflows_reset, u64::from(paths == 2));
        let answer = ends.poll(0);
        if paths == 1 {
            // It was acknowledged at data level, so that the peer does not send it again.
            assert_eq!(ends.read[0], 1500);
            assert_eq!(ends.ends[0].fallback.notice, FallbackNotice::DataAck);
            answer.iter().for_each(|s| ends.deliver(s));
            ends.wait(ms(215));
            assert_eq!(ends.ends[1].unacknowledged(), 0);
        } else {
            assert!(answer.iter().any(|s| s.is(Flags::RST) && s.path == 0));
            let reason = answer.iter().find(|s| s.is(Flags::RST)).unwrap().options();
            let expected = super::super::opening::reset_option(crate::ResetReason::Middlebox);
            assert_eq!(reason, [expected]);
            ends.wait(ms(500));
            assert_eq!(ends.read[0], 1500);
        }
    }
}

#[test]
fn a_wrong_checksum_is_told_by_mp_fail_with_its_data_sequence_number() {
    for paths in [1, 2] {
        let mut config = config();
        config.options.checksum = true;
        let mut ends = Ends::open(&config, paths);
        ends.client().write_synthetic(1000);
        ends.server().write_synthetic(1000);
        ends.wait(ms(100));
        let mut s = data(&write(&mut ends, 1, 500));
        change_mapping(&mut s, |m| m.checksum = m.checksum.map(|c| c ^ 1));
        ends.deliver(&s);
        let answers = ends.poll(0);
        let said: Vec<_> = answers.iter().flat_map(Sent::options).collect();
        answers.iter().for_each(|s| ends.deliver(s));
        let data_seq = ends.ends[1].own_base().wrapping_add(1000);
        assert!(said.contains(&MptcpOption::Fail { data_seq }), "{said:?}");
        assert_eq!(ends.ends[0].has_fallen_back(), paths == 1);
        assert_eq!(ends.ends[0].stats().subflows_reset, u64::from(paths == 2));
        // Plain TCP takes the data as it is; another path repeats it.
        ends.wait(ms(500));
        assert_eq!(ends.read[0], 1500);
        assert_eq!(fall_backs(&ends), if paths == 1 { [1, 1] } else { [0, 0] });
    }
}

#[test]
fn mp_fail_means_plain_tcp_on_the_only_path_and_ends_one_of_several() {
    for (paths, again) in [(1, false), (1, true), (2, false)] {
        let mut ends = Ends::open(&config(), paths);
        ends.server().fallback.contiguous &= !again;
        ends.tell(1, 0, MptcpOption::Fail { data_seq: 1 });
        let alone = paths == 1 && !again;
        assert_eq!(ends.ends[1].has_fallen_back(), alone);
        assert_eq!(ends.ends[1].stats().subflows_reset, u64::from(!alone));
    }
}

#[test]
fn a_mapping_is_believed_up_to_a_distance_and_a_number_of_them() {
    // Four buffers and a MiB ahead in the subflow, and 2^40 in the connection.
    let most = 4 * 1_000_000 + (1 << 20);
    for (ahead, data_ahead, ignored) in [
        (0, 0, 0),
        (most, 0, 0),
        (most + 1, 0, 1),
        (-600, 0, 1),
        (0, 1 << 40, 0),
        (0, (1 << 40) + 1, 1),
        (0, -(1 << 40), 0),
        (0, -(1 << 40) - 1, 1),
    ] {
        let mut ends = Ends::open(&config(), 1);
        let mut s = data(&write(&mut ends, 1, 500));
        s.transmit.segment.payload = Payload::EMPTY;
        change_mapping(&mut s, |m| {
            m.subflow_seq = m.subflow_seq.wrapping_add(ahead as u32);
            let DataNumber::Short(_) = m.data_seq else {
                panic!("{m:?}");
            };
        });
        let base = ends.ends[1].own_base();
        change_mapping(&mut s, |m| m.data_seq = number(data_ahead, base, true));
        if ahead == -600 {
            // It begins before the first byte and reaches into the stream.
            change_mapping(&mut s, |m| m.length = 1000);
        }
        ends.deliver(&s);
        assert_eq!(
            ends.ends[0].stats().ignored_options,
            ignored,
            "{ahead} {data_ahead}"
        );
    }
}

#[test]
fn the_stored_mappings_are_bounded() {
    // One for each 128 bytes of the buffer, and 1024 at least.
    for (buffer, most) in [(1000, 1024), (1_000_000, 7812)] {
        let mut with = config();
        with.tcp = Arc::new(gargalo_tcp::Config {
            receive_buffer: Bytes::new(buffer),
            ..gargalo_tcp::Config::clone(&with.tcp)
        });
        let mut ends = Ends::open(&with, 1);
        let mut s = data(&write(&mut ends, 1, 500));
        s.transmit.segment.payload = Payload::EMPTY;
        change_mapping(&mut s, |m| m.length = 1);
        for _ in 0..most + 5 {
            ends.deliver(&s);
            change_mapping(&mut s, |m| m.subflow_seq += 1);
        }
        assert_eq!(ends.ends[0].stats().ignored_options, 5);
    }
}

#[test]
fn an_unknown_option_is_counted_and_a_forged_segment_changes_nothing() {
    let mut ends = Ends::open(&config(), 2);
    ends.tell(0, 0, MptcpOption::Unknown(vec![0x90].into()));
    assert_eq!(ends.ends[0].stats().ignored_options, 1);
    ends.tell(0, 0, MptcpOption::Prio { backup: true });
    assert!(ends.ends[0].subflows[0].is_backup());
    ends.tell(0, 0, MptcpOption::Prio { backup: false });
    assert!(!ends.ends[0].subflows[0].is_backup());
    // Its sequence number is not in the window.
    for option in [
        MptcpOption::Prio { backup: true },
        MptcpOption::Fail { data_seq: 1 },
        MptcpOption::RemoveAddr(vec![1].into()),
        MptcpOption::Unknown(vec![0x90].into()),
        MptcpOption::Dss(Dss {
            data_fin: true,
            data_ack: None,
            mapping: Some(Mapping {
                data_seq: number(0, ends.ends[1].own_base(), false),
                subflow_seq: 0,
                length: 1,
                checksum: None,
            }),
        }),
    ] {
        let mut s = ends.ack_of(1, 0);
        s.transmit.segment.seq = s.transmit.segment.seq + 0x4000_0000;
        set_option(&mut s.transmit.segment, option);
        ends.deliver(&s);
    }
    let c = &ends.ends[0];
    assert!(!c.subflows[0].is_backup() && c.views.iter().all(|v| v.usable));
    assert!(!c.receive.is_finished());
    assert_eq!(
        (c.stats().ignored_options, c.stats().subflows_reset),
        (1, 0)
    );
}

#[test]
fn the_first_data_of_a_client_is_mapped_by_its_keys() {
    let ends = || {
        let mut ends = Ends::both(&config(), 1);
        ends.wait(ms(100));
        let first = write(&mut ends, 0, 1000).remove(0);
        (ends, first)
    };
    let (mut good, first) = ends();
    let [
        MptcpOption::Capable {
            keys:
                CapableKeys::BothAndData {
                    sender,
                    receiver,
                    length,
                    ..
                },
            version,
            flags,
        },
    ] = first.options()[..]
    else {
        panic!("{first:?}");
    };
    assert_eq!((sender, receiver, length), (1, 2, 1000));
    good.deliver(&first);
    good.wait(ms(100));
    assert_eq!(good.read[1], 1000);
    // With other keys it is no mapping.
    for (sender, receiver) in [(1, 3), (3, 2)] {
        let (mut ends, mut first) = ends();
        let keys = CapableKeys::BothAndData {
            sender,
            receiver,
            length,
            checksum: None,
        };
        let option = MptcpOption::Capable {
            version,
            flags,
            keys,
        };
        set_option(&mut first.transmit.segment, option);
        ends.deliver(&first);
        assert!(ends.ends[1].has_fallen_back());
    }
}

#[test]
fn the_window_of_the_third_packet_is_that_of_the_connection() {
    let mut ends = Ends::both(&config(), 1);
    ends.wait(ms(25));
    let third = ends.full_ack_of(0, 0);
    let window = u64::from(third.segment().window);
    ends.wait(ms(50));
    let scaled = ends.ends[1].subflows[0]
        .endpoint
        .scaled_window(window as u16);
    assert_eq!(ends.ends[1].send.edge, scaled);
    assert!(scaled > 900_000, "{scaled}");
}

#[test]
fn only_new_acknowledgements_and_a_larger_window_put_off_the_data_timeout() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    let sent = ends.carry(&told, 0, 4);
    let start = ends.now;
    let first = ends.ends[0].timers.data;
    assert_eq!((first - start).as_millis(), 1000);
    let ack = |ends: &mut Ends, bytes: i64, more: u16| {
        ends.now += ms(10);
        let mut s = ends.full_ack_of(1, 1);
        let base = ends.ends[0].own_base();
        change_dss(&mut s, |d| {
            d.data_ack = Some(number(bytes, base, false));
            d.mapping = None;
        });
        s.transmit.segment.window += more;
        ends.deliver(&s);
        (ends.ends[0].timers.data - start).as_millis()
    };
    assert_eq!(ack(&mut ends, 0, 0), 1000);
    assert_eq!(ack(&mut ends, 0, 100), 1020);
    assert_eq!(ack(&mut ends, 0, 100), 1020);
    let mss = ends.ends[0].views[0].mss as i64;
    assert_eq!(ack(&mut ends, mss, 0), 1040);
    // What was never sent is not acknowledged.
    assert_eq!(ack(&mut ends, 5 * mss, 0), 1040);
    assert_eq!(ends.ends[0].unacknowledged(), 3 * mss as u64);
    // Neither is what the connection has before its first byte.
    assert_eq!(ack(&mut ends, -1, 0), 1040);
    assert_eq!(
        ack(&mut ends, 4 * mss, 0),
        Instant::MAX.as_nanos() / 1_000_000 - start.as_nanos() / 1_000_000
    );
    drop(sent);
}

#[test]
fn a_data_fin_that_comes_again_is_acknowledged_again_on_its_path() {
    let mut ends = Ends::open(&config(), 2);
    let now = ends.now;
    ends.client().close(now);
    let fin = ends.poll(0).remove(0);
    ends.deliver(&fin);
    let closed = |ends: &Ends| times_of(&ends.events[1], Event::PeerClosed);
    let paths = |sent: &[Sent]| sent.iter().map(|s| s.path).collect::<Vec<_>>();
    assert_eq!(paths(&ends.poll(1)), [fin.path]);
    assert_eq!(closed(&ends), 1);
    ends.now += ms(100);
    ends.deliver(&fin);
    assert_eq!(paths(&ends.poll(1)), [fin.path]);
    ends.poll(1);
    assert_eq!(closed(&ends), 1);
}

fn times_of(events: &[Event], event: Event) -> usize {
    events.iter().filter(|e| **e == event).count()
}

#[test]
fn a_data_fin_may_end_a_mapping_with_data() {
    for checksum in [false, true] {
        let mut config = config();
        config.options.checksum = checksum;
        let mut ends = Ends::open(&config, 2);
        let mut s = data(&write(&mut ends, 0, 500));
        let base = ends.ends[0].own_base();
        change_dss(&mut s, |d| {
            d.data_fin = true;
            let m = d.mapping.as_mut().unwrap();
            m.length += 1;
            let zeros = vec![0; 500];
            m.checksum = m
                .checksum
                .map(|_| super::super::reading::checksum(base, 1, 501, &zeros));
        });
        ends.deliver(&s);
        ends.poll(1);
        assert_eq!(ends.read[1], 500);
        assert!(ends.ends[1].receive.is_finished());
        assert_eq!(ends.ends[1].receive.next(), 501);
    }
}

#[test]
fn a_path_that_times_out_or_falls_silent_before_others_gives_its_data_away() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    ends.carry(&told, 0, 3);
    let start = ends.now;
    let client = &mut ends.ends[0];
    while client.poll_notice().is_some() {}
    ends.run(Duration::from_secs(2), &mut |s| s.path == 1);
    let client = &mut ends.ends[0];
    let all: Vec<_> = std::iter::from_fn(|| client.poll_notice()).collect();
    let stale = all.iter().find_map(|n| match n {
        Notice::Stale { now, subflow } => Some(((*now - start).as_millis(), *subflow)),
        _ => None,
    });
    let again = all.iter().filter_map(|n| match n {
        Notice::Scheduled {
            now,
            subflow,
            offset,
            why,
            ..
        } => {
            assert_eq!((*subflow, *why), (1, Carried::Reinjected));
            Some(((*now - start).as_millis(), *offset))
        }
        _ => None,
    });
    let mss = client.views[0].mss;
    let again: Vec<_> = again.collect();
    assert_eq!(again.len(), 3, "{again:?}");
    assert!(again.iter().map(|a| a.1).eq([0, mss, 2 * mss]));
    // When it sends a tail loss probe, after two round trips, before its timeout of 220 ms.
    assert!(again.iter().all(|a| a.0 < 100), "{again:?}");
    let (at, id) = stale.unwrap();
    assert!(id == 0 && at >= 220);
    assert!(client.subflows[0].stale);
    assert_eq!(ends.read[1], 3 * mss);
    // When it works again it is no longer stale.
    ends.wait(Duration::from_secs(5));
    assert!(!ends.ends[0].subflows[0].stale && !ends.ends[0].views[0].in_loss);
    assert_eq!(ends.ends[0].subflows[0].probe.at, Instant::MAX);
}

#[test]
fn data_of_a_slow_path_is_acknowledged_on_the_fast_one_when_a_sixteenth_of_the_window_has_come() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 4);
    // A faster path is in loss, and another one is not open.
    let v = &mut ends.server().views;
    (v[2].srtt, v[2].in_loss) = (Some(ms(1)), true);
    (v[3].srtt, v[3].usable) = (Some(ms(1)), false);
    ends.server().views[0].srtt = Some(ms(400));
    // A megabyte: 62 500 bytes are 44 segments.
    let mss = ends.ends[0].views[0].mss;
    let mut acks = Vec::new();
    for flight in 0..20 {
        for s in ends.carry(&told, 0, 4) {
            ends.deliver(&s);
        }
        for s in ends.poll(1) {
            acks.push((flight, s.path));
            ends.deliver(&s);
        }
        ends.now += ms(20);
        ends.poll(0);
    }
    assert_eq!(ends.read[1], 80 * mss);
    let fast: Vec<_> = acks.iter().filter(|a| a.1 == 1).collect();
    assert_eq!(fast, [&(10, 1)]);
}

#[test]
fn a_window_that_opens_is_told_on_the_fastest_path_and_on_the_last_one() {
    let mut ends = Ends::open(&config(), 4);
    ends.reads[1] = false;
    let s = &mut ends.server().views;
    // One in loss does not count, and one that is not open.
    (s[3].srtt, s[3].in_loss) = (Some(ms(1)), true);
    s[0].srtt = Some(ms(300));
    s[1].srtt = Some(ms(10));
    s[2].srtt = Some(ms(200));
    ends.server().timers.heard_on = 2;
    let left = ends.ends[1].receive.window();
    ends.server()
        .receive
        .take(0, gargalo_tcp::Chunk::Synthetic(left));
    assert_eq!(ends.ends[1].readable(), left);
    assert!(ends.ends[1].receive.window() == 0 && !ends.ends[1].owes_ack());
    ends.server().read(left);
    assert!(ends.ends[1].owes_ack());
    ends.reads[1] = true;
    let told = ends.poll(1);
    assert_eq!(told.iter().map(|s| s.path).collect::<Vec<_>>(), [1, 2]);
    assert!(told.iter().all(|s| s.segment().window > 0));
}

#[test]
fn data_that_a_sender_waits_for_is_acknowledged_at_once() {
    let (config, told) = told(Options {
        opportunistic_retransmission: crate::OpportunisticRetransmission::Off,
        ..Default::default()
    });
    let open = || {
        let mut ends = Ends::open(&config, 2);
        // Every second segment is acknowledged at once.
        for _ in 0..3 {
            for s in ends.carry(&told, 0, 2) {
                ends.deliver(&s);
            }
            ends.now += ms(10);
            ends.poll(1).iter().for_each(|s| ends.deliver(s));
        }
        ends.poll(0);
        assert!(!ends.ends[1].owes_ack());
        ends
    };
    // The first data after a tenth of a second: it probes its path.
    for (idle, at_once) in [(89, false), (90, true)] {
        let mut ends = open();
        ends.now += ms(idle);
        let s = ends.carry(&told, 0, 1).remove(0);
        ends.deliver(&s);
        assert_eq!(ends.ends[1].owes_ack(), at_once, "{idle}");
    }
    // What fills a hole of the connection, and what has come on another path.
    let mut ends = open();
    let missing = ends.carry(&told, 0, 1).remove(0);
    let other = ends.carry(&told, 1, 2);
    other.iter().for_each(|s| ends.deliver(s));
    ends.poll(1);
    assert!(!ends.ends[1].owes_ack());
    ends.deliver(&missing);
    assert!(ends.ends[1].owes_ack());
    let mut ends = open();
    let first = ends.carry(&told, 0, 1).remove(0);
    ends.deliver(&first);
    let (now, mss) = (ends.now, ends.ends[0].views[0].mss);
    ends.client().give_again(now, 1, 6 * mss, Carried::Copy);
    // The other path is not new.
    ends.server().subflows[1].input.read_at = now;
    let copy = ends.poll(0).remove(0);
    ends.deliver(&copy);
    assert!(ends.ends[1].subflows[1].endpoint.owes_ack());
    assert_eq!(ends.ends[1].stats().duplicate_bytes, mss);
}

#[test]
fn a_peer_that_repeats_itself_after_a_fallback_is_told_of_it() {
    let mut ends = Ends::open(&config(), 1);
    ends.client().write_synthetic(1000);
    ends.server().write_synthetic(1000);
    ends.wait(ms(300));
    let mut s = data(&write(&mut ends, 1, 500));
    change_dss(&mut s, |d| d.mapping = None);
    ends.deliver(&s);
    ends.poll(0);
    let start = ends.now;
    let data_seq = ends.ends[1].own_base().wrapping_add(1500);
    // It repeats a DATA_FIN that does not arrive as such; after a timeout it needs help.
    for (after, told) in [(219, 0), (220, 1), (900, 0)] {
        ends.now = start + ms(after);
        let mut idle = ends.ack_of(1, 0);
        idle.transmit.segment.options.mptcp = None;
        ends.deliver(&idle);
        let said = ends.poll(0);
        let fail = said
            .iter()
            .filter(|s| s.options() == [MptcpOption::Fail { data_seq }]);
        assert_eq!(fail.count(), told, "{after}");
    }
}
