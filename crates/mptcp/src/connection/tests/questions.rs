//! What a connection answers to its host and to its scheduler.

use super::*;
use gargalo_wire::tcp::Flags;

#[test]
fn what_is_received_and_not_read_counts_once_wherever_it_waits() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    ends.reads[1] = false;
    let mss = ends.ends[0].views[0].mss;
    let first = ends.carry(&told, 0, 3);
    let second = ends.carry(&told, 1, 2);
    // Bytes in segments: buffered, readable, behind a hole of the connection's stream.
    let count = |ends: &Ends| {
        let end = &ends.ends[1];
        [end.buffered(), end.readable(), end.out_of_order()].map(|n| n / mss)
    };
    // Behind a hole of the subflow.
    ends.deliver(&first[1]);
    assert_eq!(count(&ends), [1, 0, 0]);
    ends.deliver(&second[0]);
    ends.deliver(&second[1]);
    assert_eq!(count(&ends), [3, 0, 2]);
    // The same on the other path.
    let now = ends.now;
    ends.client().give_again(now, 1, mss, Carried::Copy);
    ends.client().give_again(now, 1, 2 * mss, Carried::Copy);
    let copies = ends.poll(0);
    assert_eq!(copies.len(), 2);
    copies.iter().for_each(|s| ends.deliver(s));
    assert_eq!(count(&ends), [4, 0, 4]);
    ends.deliver(&first[0]);
    assert_eq!(count(&ends), [5, 5, 0]);
    assert_eq!(ends.ends[1].stats().duplicate_bytes, mss);
    assert_eq!(ends.server().read(mss / 2).map(|c| c.len()), Some(mss / 2));
    ends.reads[1] = true;
    ends.poll(1);
    assert_eq!(
        (ends.ends[1].buffered(), ends.read[1]),
        (0, 5 * mss - mss / 2)
    );
}

#[test]
fn a_plain_connection_counts_what_its_subflow_has_not_given_yet() {
    let mut ends = Ends::both(&config(), 1);
    let mut strip = |s: &mut Sent| {
        s.transmit.segment.options.mptcp = None;
        true
    };
    ends.run(ms(100), &mut strip);
    ends.reads[1] = false;
    ends.client().write_synthetic(5000);
    let all = ends.poll(0);
    all[1..].iter().for_each(|s| ends.deliver(s));
    let first = u64::from(all[0].segment().payload.len());
    assert_eq!(
        (ends.ends[1].buffered(), ends.ends[1].readable()),
        (5000 - first, 0)
    );
    ends.deliver(&all[0]);
    assert_eq!(
        (ends.ends[1].buffered(), ends.ends[1].readable()),
        (5000, 5000)
    );
}

#[test]
fn a_round_trip_is_told_once_with_the_number_of_its_subflow() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    while ends.client().take_rtt_sample().is_some() {}
    for s in ends.carry(&told, 1, 2) {
        ends.deliver(&s);
    }
    ends.now += ms(35);
    ends.poll(1).iter().for_each(|s| ends.deliver(s));
    assert_eq!(ends.client().take_rtt_sample(), Some((1, ms(35))));
    assert_eq!(ends.client().take_rtt_sample(), None);
}

#[test]
fn an_acknowledgement_is_owed_by_the_path_that_received() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    assert!(!ends.ends[1].owes_ack());
    for s in ends.carry(&told, 1, 3) {
        ends.deliver(&s);
    }
    assert!(ends.ends[1].owes_ack());
    ends.poll(1);
    assert!(!ends.ends[1].owes_ack());
}

#[test]
fn notices_of_a_subflow_come_with_its_number() {
    let (mut config, told) = told(Options::default());
    config.tcp = Arc::new(gargalo_tcp::Config {
        notices: true,
        ..gargalo_tcp::Config::clone(&config.tcp)
    });
    let mut ends = Ends::open(&config, 2);
    while ends.client().poll_subflow_notice().is_some() {}
    ends.carry(&told, 1, 3);
    // Two round trips later it probes.
    ends.run(ms(45), &mut |_| false);
    let client = ends.client();
    let all: Vec<_> = std::iter::from_fn(|| client.poll_subflow_notice()).collect();
    assert_eq!(all, [(1, gargalo_tcp::Notice::Probe)]);
}

#[test]
fn a_view_has_the_same_version_only_while_nothing_but_sending_changes_it() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    ends.carry(&told, 0, 1);
    let before = ends.ends[0].views.clone();
    let sent = ends.carry(&told, 0, 2);
    let after = &ends.ends[0].views;
    assert_eq!(after[0].version, before[0].version);
    assert_eq!(after[0].in_flight, 3 * after[0].mss);
    assert_eq!(after[0].sent_packets, before[0].sent_packets + 2);
    sent.iter().for_each(|s| ends.deliver(s));
    ends.wait(ms(50));
    ends.client().write_synthetic(1);
    ends.poll(0);
    let after = &ends.ends[0].views;
    assert!(after.iter().all(|v| v.version > 0));
    assert!(after[0].version > before[0].version);
    assert_ne!(after[0].version, after[1].version);
}

#[test]
fn a_penalised_path_looks_like_one_with_a_smaller_window() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    let now = ends.now;
    let c = ends.client();
    let (mss, cwnd) = (c.views[0].mss, c.views[0].cwnd);
    assert_eq!(
        (c.views[0].ssthresh, c.views[0].in_slow_start),
        (None, true)
    );
    // A cap beyond the window changes nothing.
    for (in_flight, expected) in [(10 * cwnd, None), (6 * mss, Some(3 * mss))] {
        let c = ends.client();
        c.subflows[0].penalty = Default::default();
        c.subflows[0].penalty.halve(now, in_flight, mss, ms(20));
        c.refresh(now, 0);
        let v = &c.views[0];
        assert_eq!(v.cwnd, expected.unwrap_or(cwnd));
        assert_eq!(
            (v.ssthresh, v.in_slow_start),
            (expected, expected.is_none())
        );
    }
    // It carries as much, and waits until the penalty may end.
    told.send_on(Some(0));
    ends.client().write_synthetic(10 * mss);
    let sent = ends.poll(0);
    assert_eq!(sent.len(), 3);
    let c = ends.client();
    assert_eq!(c.subflows[0].paced_until, now + ms(40));
}

#[test]
fn a_path_may_send_while_it_is_open_and_has_sent_what_it_was_given() {
    let mut ends = Ends::open(&config(), 2);
    let now = ends.now;
    type Change = fn(&mut crate::subflow::Subflow);
    let cases: [(Change, bool, bool); 5] = [
        (|_| (), true, true),
        (|s| s.confirmed = false, false, false),
        (|s| s.closing = true, false, false),
        (|s| s.removal.at = Instant::ZERO, false, false),
        (
            |s| {
                s.endpoint.write_synthetic(1);
            },
            true,
            false,
        ),
    ];
    for (change, usable, can_send) in cases {
        let mut other = Ends::open(&config(), 2);
        let c = other.client();
        change(&mut c.subflows[1]);
        c.refresh(now, 1);
        assert_eq!((c.views[1].usable, c.views[1].can_send), (usable, can_send));
        assert_eq!(c.subflows[1].is_usable(), usable);
    }
    // After a burst it waits until that is paid for.
    let c = ends.client();
    for _ in 0..17 {
        c.subflows[1].burst.on_send(now, 1460);
    }
    c.refresh(now, 1);
    assert!(!c.views[1].can_send && c.subflows[1].paced_until > now);
}

#[test]
fn the_lowest_free_slot_is_that_of_the_next_subflow() {
    let mut ends = Ends::open(&config(), 3);
    let now = ends.now;
    let slots = |ends: &Ends| {
        ends.ends[0]
            .subflows
            .iter()
            .map(|s| (s.id, s.slot))
            .collect::<Vec<_>>()
    };
    assert_eq!(slots(&ends), [(0, 0), (1, 1), (2, 2)]);
    let c = ends.client();
    c.remove_address(now, address(0, 1));
    c.add_address(now, address(0, 3), false);
    assert_eq!(slots(&ends), [(0, 0), (2, 2), (3, 1)]);
    for (i, slot) in [(0, 0), (1, 2), (2, 1)] {
        assert_eq!(ends.ends[0].index_of_slot(slot), Some(i));
    }
    assert_eq!(ends.ends[0].index_of_slot(3), None);
    // Nothing of the old one is taken for something of the new one.
    ends.client().write_synthetic(500_000);
    ends.delays.push(DELAY);
    ends.wait(ms(1000));
    assert_eq!(ends.read[1], 500_000);
}

#[test]
fn options_of_an_acknowledgement_fit_beside_selective_ones() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    let all = ends.carry(&told, 0, 9);
    let mut most = 0;
    for s in all.iter().skip(1).step_by(2) {
        ends.deliver(s);
        for ack in ends.poll(1) {
            assert!(ack.segment().header_len() <= 60);
            assert!(ack.has(|o| matches!(o, MptcpOption::Dss(_))) || ack.path == 1);
            most = most.max(ack.segment().options.sack.len());
        }
    }
    // Of 40 octets 12 are timestamps and 8 a DATA_ACK: two blocks fit.
    assert_eq!(most, 2);
    // So do other options, alone on an acknowledgement.
    ends.server().stats();
    let id = ends.ends[1].subflows[0].id;
    let now = ends.now;
    ends.server().set_backup(now, id, true);
    let said = ends.poll(1);
    let prio = said
        .iter()
        .find(|s| s.has(|o| matches!(o, MptcpOption::Prio { .. })));
    assert!(prio.unwrap().segment().header_len() <= 60 && prio.unwrap().is(Flags::ACK));
}

#[test]
fn a_connection_has_255_addresses_at_most() {
    let many = |n: usize| {
        let addresses = (0..n).map(|i| IpAddr::V4(Ipv4Addr::from_bits(i as u32)));
        let init = Init {
            addresses: addresses.collect(),
            ..init(1, 1)
        };
        Connection::listen(config(), congestion(), init).map(drop)
    };
    assert!(many(255).is_ok());
    assert_eq!(many(256), Err(crate::ConfigError::TooManyAddresses(256)));
}

#[test]
fn writing_is_limited_by_the_send_buffer_and_ends_with_the_connection() {
    let mut config = config();
    config.tcp = Arc::new(gargalo_tcp::Config {
        send_buffer: Bytes::new(10_000),
        ..gargalo_tcp::Config::clone(&config.tcp)
    });
    let mut ends = Ends::open(&config, 1);
    let c = ends.client();
    assert_eq!(c.write_room(), 10_000);
    assert_eq!(c.write(vec![1; 6000].into()), 6000);
    assert_eq!(
        (c.write_room(), c.unsent(), c.unacknowledged()),
        (4000, 6000, 6000)
    );
    assert_eq!(c.write_synthetic(9000), 4000);
    assert_eq!(c.write_room(), 0);
    ends.wait(ms(500));
    assert_eq!(
        ends.events[0]
            .iter()
            .filter(|e| **e == Event::Writable)
            .count(),
        1
    );
    assert_eq!(
        (ends.ends[0].unsent(), ends.ends[0].unacknowledged()),
        (0, 0)
    );
    assert_eq!(ends.ends[0].config().options, config.options);
    let c = ends.client();
    c.over = true;
    assert_eq!(
        (
            c.write_room(),
            c.write(vec![1].into()),
            c.write_synthetic(1)
        ),
        (0, 0, 0)
    );
}
