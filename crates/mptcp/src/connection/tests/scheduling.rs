//! Which segments are made of the written data, and which of them are copied to other paths.

use super::*;
use gargalo_wire::mptcp::CapableKeys;

/// The lengths of the segments that the client sends now, with their paths.
fn lengths(ends: &mut Ends) -> Vec<(usize, u64)> {
    let sent = ends.poll(0);
    let data = sent.iter().filter(|s| !s.segment().payload.is_empty());
    data.map(|s| (s.path, u64::from(s.segment().payload.len())))
        .collect()
}

#[test]
fn the_first_data_leaves_room_for_the_keys() {
    // With checksums MP_CAPABLE is no longer than the room that is reserved anyhow, in whole words.
    for checksum in [false, true] {
        let config = Config {
            options: Options {
                checksum,
                ..Default::default()
            },
            ..config()
        };
        let mut ends = Ends::open(&config, 1);
        let c = ends.client();
        let (mss, reserved) = (c.views[0].mss, u64::from(c.reserved()));
        assert_eq!(reserved, 20);
        c.write_synthetic(3 * mss);
        let sent = ends.poll(0);
        let first = sent[0].segment();
        assert_eq!(u64::from(first.payload.len()), mss + reserved - 24);
        let [
            MptcpOption::Capable {
                keys:
                    CapableKeys::BothAndData {
                        length,
                        checksum: sum,
                        ..
                    },
                ..
            },
        ] = sent[0].options()[..]
        else {
            panic!("{first:?}");
        };
        assert_eq!(
            (u32::from(length), sum.is_some()),
            (first.payload.len(), checksum)
        );
        assert_eq!(u64::from(sent[1].segment().payload.len()), mss);
    }
}

#[test]
fn partial_segments_wait_while_something_is_outstanding_and_more_follows() {
    // Outstanding segments, data that waits and room in the window; the segments that are sent. In units of 100 bytes,
    // of which a segment has 10.
    let cases: [(u64, u64, u64, &[u64]); 7] = [
        (0, 25, 1000, &[10, 10, 5]),
        (1, 25, 1000, &[10, 10, 5]),
        (0, 25, 15, &[10]),
        (0, 25, 5, &[5]),
        (1, 25, 5, &[]),
        (1, 5, 5, &[5]),
        (1, 0, 1000, &[]),
    ];
    for (outstanding, unsent, room, expected) in cases {
        let (config, told) = told(Options::default());
        let mut ends = Ends::open(&config, 2);
        let now = ends.now;
        for i in 0..2 {
            let addresses = ends.ends[0].subflows[i].addresses;
            let c = ends.client();
            let reserved = i64::from(c.reserved());
            c.set_mss(now, addresses, (1000 + reserved + 12) as u16);
        }
        assert_eq!(ends.ends[0].views[0].mss, 1000);
        ends.carry(&told, 0, outstanding);
        told.send_on(Some(0));
        let c = ends.client();
        c.send.edge = c.send.next + 100 * room;
        c.write_synthetic(100 * unsent);
        let sent = lengths(&mut ends);
        let expected: Vec<_> = expected.iter().map(|n| (0, 100 * n)).collect();
        assert_eq!(sent, expected, "{outstanding} {unsent} {room}");
    }
}

#[test]
fn a_scheduler_that_waits_with_nothing_in_flight_is_overruled() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    told.send_on(None);
    ends.client().write_synthetic(100);
    assert_eq!(lengths(&mut ends), [(0, 100)]);
    ends.client().write_synthetic(100);
    assert_eq!(lengths(&mut ends), [], "its acknowledgement is an event");
}

#[test]
fn a_scheduler_that_chooses_a_path_that_may_not_send_sends_nothing() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    let now = ends.now;
    told.send_on(Some(7));
    ends.client().write_synthetic(100);
    assert_eq!(lengths(&mut ends), []);
    // A path that is closed by its host has no room.
    told.send_on(Some(0));
    ends.client().subflows[0].closing = true;
    ends.client().refresh(now, 0);
    assert_eq!(lengths(&mut ends), []);
}

#[test]
fn copies_for_all_go_to_all_paths_that_work_and_are_no_backups() {
    type Change = fn(&mut Connection);
    let cases: [(Change, &[usize]); 4] = [
        (|_| (), &[1, 2]),
        (|c| c.subflows[1].backup.peer = true, &[2]),
        (|c| c.subflows[2].closing = true, &[1]),
        // The path of the segment is one itself.
        (
            |c| {
                for s in &mut c.subflows[..2] {
                    s.backup.own = true;
                }
            },
            &[1, 2],
        ),
    ];
    for (change, copies) in cases {
        let (config, told) = told(Options::default());
        let mut ends = Ends::open(&config, 3);
        told.0.all.store(true, Relaxed);
        let now = ends.now;
        change(ends.client());
        (0..3).for_each(|i| ends.client().refresh(now, i));
        told.send_on(Some(0));
        let mss = ends.ends[0].views[0].mss;
        ends.client().write_synthetic(2 * mss);
        ends.poll(0);
        let mut all = ends.assigned();
        all.sort_by_key(|a| a.0);
        let mut expected = vec![(0, 0, Carried::New), (0, 1, Carried::New)];
        for path in copies {
            expected.extend([0, 1].map(|k| (*path, k, Carried::Copy)));
        }
        assert_eq!(all, expected);
        assert_eq!(
            ends.ends[0].stats().copied_segments,
            2 * copies.len() as u64
        );
        assert_eq!(ends.ends[0].stats().new_segments, 2);
    }
}

#[test]
fn what_is_acknowledged_before_its_copy_is_sent_needs_none() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    told.0.all.store(true, Relaxed);
    // The second path has no room.
    let now = ends.now;
    ends.client().subflows[1].penalty.halve(now, 0, 1, ms(20));
    ends.client().refresh(now, 1);
    told.send_on(Some(0));
    let mss = ends.ends[0].views[0].mss;
    ends.client().write_synthetic(3 * mss);
    ends.poll(0);
    assert!(ends.assigned().iter().all(|a| a.0 == 0));
    let c = ends.client();
    assert_eq!(c.subflows[1].copies, [(0, 3 * mss)]);
    c.send.on_ack(2 * mss, 1 << 20);
    c.subflows[1].penalty = Default::default();
    c.refresh(now, 1);
    c.work.schedule_due = true;
    ends.poll(0);
    assert_eq!(ends.assigned(), [(1, 2, Carried::Copy)]);
    // None is left, and none comes later.
    let c = ends.client();
    assert!(c.subflows[1].copies.is_empty());
    c.views[1].can_send = true;
    c.work.schedule_due = true;
    ends.poll(0);
    assert_eq!(ends.assigned(), []);
    assert!(!ends.client().work.has_copies);
}

#[test]
fn an_idle_path_is_probed_by_a_copy_once_in_the_interval_and_in_four_round_trips() {
    // Interval and round trip of the idle path; milliseconds since it last had data; whether it gets a copy.
    let cases = [
        (Switch::To(ms(1000)), Some(20), 1000, true),
        (Switch::To(ms(1000)), Some(20), 999, false),
        (Switch::To(ms(1000)), Some(300), 1200, true),
        (Switch::To(ms(1000)), Some(300), 1199, false),
        (Switch::To(ms(1000)), None, 0, true),
        (Switch::On, Some(20), 1000, true),
        (Switch::Off, None, 9999, false),
    ];
    for (probe_interval, round_trip, since, expected) in cases {
        let (mut config, told) = told(Options::default());
        config.options.probe_interval = probe_interval;
        let mut ends = Ends::open(&config, 3);
        let last = ends.now;
        for s in &mut ends.client().subflows {
            s.last_pushed = last;
        }
        ends.now += ms(since);
        let now = ends.now;
        told.send_on(Some(0));
        let c = ends.client();
        c.write_synthetic(100);
        c.update_changed_views(now);
        for v in &mut c.views[1..] {
            v.srtt = round_trip.map(ms);
        }
        // One of the other paths is not idle.
        c.views[2].in_flight = 1;
        assert!(c.schedule(now));
        let copies = &c.subflows[1].copies;
        assert_eq!(
            copies.len(),
            usize::from(expected),
            "{probe_interval:?} {since}"
        );
        assert!(c.subflows[2].copies.is_empty());
        // The next data comes before the copy has been sent: one is enough.
        let before = copies.clone();
        c.write_synthetic(100);
        c.views[0].can_send = true;
        c.views[1].can_send = false;
        c.schedule(now);
        assert_eq!(c.subflows[1].copies, before);
    }
}

#[test]
fn an_application_with_nothing_to_send_leaves_the_scheduler_alone() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 1);
    told.send_on(Some(0));
    let now = ends.now;
    let c = ends.client();
    c.work.schedule_due = true;
    assert!(!c.schedule(now));
    assert!(!c.work.schedule_due);
    // Nor is it asked while nothing has changed, or after the end.
    c.write_synthetic(100);
    c.work.schedule_due = false;
    assert!(!c.schedule(now));
    c.work.schedule_due = true;
    c.over = true;
    assert!(!c.schedule(now));
    c.over = false;
    assert!(c.schedule(now));
}
