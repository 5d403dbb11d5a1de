//! Data that is sent once more on another path: which, when, and on which path.

use super::*;
use crate::config::{OpportunisticRetransmission as Opportunistic, Penalisation};
use crate::scheduler::PathView;
use gargalo_units::Rate;

/// Sets the round-trip time of a path, and its timeout to three of it.
fn rtt(v: &mut PathView, millis: u64) {
    (v.srtt, v.rto) = (Some(ms(millis)), ms(3 * millis));
    v.rttvar = None;
}

/// The peer's window has this much room for new data, of which this much waits.
fn set_room(c: &mut Connection, room: u64, unsent: u64) {
    c.send.edge = c.send.next + room;
    c.send.end = c.send.next + unsent;
}

/// A slow path 0 carries these segments, and a fast path 1 has room; no window is left for the data that waits.
fn blocked(how: Opportunistic, penalisation: Penalisation, segments: u64) -> (Ends, Told) {
    let (config, told) = told(Options {
        opportunistic_retransmission: how,
        penalisation,
        ..Default::default()
    });
    let mut ends = Ends::open(&config, 2);
    ends.carry(&told, 0, segments);
    let c = ends.client();
    set_room(c, 0, 10_000);
    rtt(&mut c.views[0], 100);
    rtt(&mut c.views[1], 20);
    c.views[0].can_send = false;
    // It was not examined yet.
    c.send.opportunistic_end = 0;
    c.timers.opportunistic = Instant::MAX;
    (ends, told)
}

#[test]
fn a_segment_is_sent_again_if_that_arrives_first_or_when_it_is_late() {
    const NEVER: Option<u64> = None;
    // Round trip, timeout and deviation of its path; round trip of the path with room; milliseconds since it was sent.
    // After how many more it is sent again.
    let cases = [
        (100, 300, None, 20, 0, Some(0)),
        (100, 300, None, 20, 79, Some(0)),
        // Not before it is due, plus its deviation: a millisecond at least, and its round trip at most.
        (100, 300, None, 20, 80, Some(21)),
        (100, 300, Some(10), 20, 80, Some(30)),
        (100, 300, Some(200), 20, 80, Some(120)),
        (100, 300, Some(10), 20, 110, Some(0)),
        (100, 300, Some(10), 20, 109, Some(1)),
        // A path that is not faster leaves time for a fast retransmission.
        (100, 300, Some(10), 100, 0, Some(210)),
        (100, 300, Some(10), 150, 0, Some(260)),
        (100, 300, Some(10), 150, 260, Some(0)),
        // Later than its timeout it is not expected.
        (100, 60, None, 20, 39, Some(0)),
        (100, 60, None, 20, 40, Some(21)),
    ];
    for (usual, rto, deviation, takes, since, expected) in cases {
        let (mut ends, _) = blocked(Opportunistic::Late, Penalisation::Off, 1);
        let now = ends.now + ms(since);
        let c = ends.client();
        rtt(&mut c.views[0], usual);
        (c.views[0].rto, c.views[0].rttvar) = (ms(rto), deviation.map(ms));
        rtt(&mut c.views[1], takes);
        let sent = c.opportunistic_retransmit(now);
        let at = c.timers.opportunistic;
        let after = match (sent, at) {
            (true, _) => Some(0),
            (false, Instant::MAX) => NEVER,
            (false, at) => Some((at - now).as_millis()),
        };
        assert_eq!(
            after, expected,
            "{usual} {rto} {deviation:?} {takes} {since}"
        );
        let again = [(1, 0, Carried::Opportunistic)];
        assert_eq!(ends.assigned(), if sent { &again[..] } else { &[] });
    }
}

#[test]
fn a_segment_on_a_path_in_loss_is_sent_again_at_once_and_one_that_has_arrived_never() {
    let (mut ends, _) = blocked(Opportunistic::Late, Penalisation::Off, 2);
    let now = ends.now;
    let c = ends.client();
    rtt(&mut c.views[1], 500);
    c.views[0].in_loss = true;
    // The first was acknowledged on its path; it waits for another one at data level.
    c.subflows[0].acked = 1;
    assert!(c.opportunistic_retransmit(now));
    assert_eq!(ends.assigned(), [(1, 1, Carried::Opportunistic)]);
    let c = ends.client();
    c.views[1].can_send = true;
    assert!(
        !c.opportunistic_retransmit(now),
        "both are on this path or have arrived"
    );
    assert_eq!(c.stats().opportunistic_segments, 1);
    assert_eq!(c.timers.opportunistic, Instant::MAX);
}

#[test]
fn one_segment_after_the_other_is_sent_again_and_then_none() {
    let (mut ends, _) = blocked(Opportunistic::Late, Penalisation::Off, 5);
    let now = ends.now;
    for k in 0..5 {
        assert!(ends.client().opportunistic_retransmit(now));
        assert_eq!(ends.assigned(), [(1, k, Carried::Opportunistic)]);
        ends.client().views[1].can_send = true;
    }
    assert!(!ends.client().opportunistic_retransmit(now));
}

#[test]
fn segments_are_sent_again_where_the_window_is_full_or_the_data_ends() {
    use Opportunistic::{Head, Late, Off};
    // Room of the window, data that waits, whether more will be written; with which rules a segment is sent again.
    let cases: [(u64, u64, bool, &[Opportunistic]); 7] = [
        (0, 10_000, false, &[Late, Head]),
        (0, 1, true, &[Late, Head]),
        (1400, 10_000, false, &[Late, Head]),
        (1460, 10_000, false, &[]),
        (100, 100, false, &[]),
        (100, 0, false, &[Late]),
        (100, 0, true, &[Head]),
    ];
    for (room, unsent, more, rules) in cases {
        for how in [Off, Late, Head] {
            let (mut ends, _) = blocked(how, Penalisation::Off, 1);
            let now = ends.now;
            let c = ends.client();
            set_room(c, room, unsent);
            c.send.write_blocked = more;
            let sent = c.opportunistic_retransmit(now);
            assert_eq!(sent, rules.contains(&how), "{room} {unsent} {more} {how:?}");
        }
    }
    // There is nothing to send, or no other path.
    for how in [Late, Head] {
        let (mut ends, _) = blocked(how, Penalisation::Off, 1);
        let now = ends.now;
        let c = ends.client();
        c.send.on_ack(c.send.next, 0);
        assert!(!c.opportunistic_retransmit(now));
    }
}

#[test]
fn a_segment_is_sent_again_on_the_fastest_path_that_may() {
    type Change = fn(&mut [PathView]);
    let cases: [(Change, Option<usize>); 8] = [
        (|_| (), Some(2)),
        (|v| v[2].can_send = false, Some(1)),
        (|v| v[2].in_loss = true, Some(1)),
        (|v| v[2].backup = true, Some(1)),
        (|v| (v[1].backup, v[2].backup) = (true, true), None),
        (
            |v| (v[0].backup, v[1].backup, v[2].backup) = (true, true, true),
            Some(2),
        ),
        // A regular path that does not work is none.
        (
            |v| {
                v[1].backup = true;
                v[2].backup = true;
                v[0].in_loss = true;
            },
            Some(2),
        ),
        (|v| (v[1].can_send, v[2].can_send) = (false, false), None),
    ];
    for (change, expected) in cases {
        let (config, told) = told(Options::default());
        let mut ends = Ends::open(&config, 3);
        ends.carry(&told, 0, 1);
        let now = ends.now;
        let c = ends.client();
        set_room(c, 0, 10_000);
        for (v, millis) in c.views.iter_mut().zip([100, 30, 20]) {
            rtt(v, millis);
        }
        c.views[0].can_send = false;
        change(&mut c.views);
        assert_eq!(c.opportunistic_retransmit(now), expected.is_some());
        let paths: Vec<_> = ends.assigned().into_iter().map(|a| a.0).collect();
        assert_eq!(paths, Vec::from_iter(expected));
    }
}

#[test]
fn the_first_segment_is_sent_again_where_all_that_carry_it_are_four_times_slower_or_one_is_tiny() {
    // Windows in segments and round trips of the two paths that carry it; that of the other; whether it is sent.
    let cases = [
        ((10, 100), (10, 100), 24, true),
        ((10, 100), (10, 100), 25, false),
        ((10, 100), (10, 90), 24, false),
        ((10, 90), (10, 100), 24, false),
        ((5, 20), (10, 100), 20, false),
        ((4, 20), (10, 20), 20, true),
        ((10, 100), (4, 20), 20, true),
        ((10, 20), (4, 20), 20, false),
    ];
    for (first, second, fast, expected) in cases {
        let (config, told) = told(Options {
            opportunistic_retransmission: Opportunistic::Head,
            penalisation: Penalisation::Off,
            ..Default::default()
        });
        let mut ends = Ends::open(&config, 3);
        ends.carry(&told, 0, 1);
        let now = ends.now;
        let c = ends.client();
        c.give_again(now, 1, 0, Carried::Copy);
        set_room(c, 0, 10_000);
        for (v, (cwnd, millis)) in c.views.iter_mut().zip([first, second, (10, fast)]) {
            v.cwnd = cwnd * v.mss;
            rtt(v, millis);
            v.can_send = false;
        }
        c.views[2].can_send = true;
        ends.assigned();
        let c = ends.client();
        assert_eq!(
            c.opportunistic_retransmit(now),
            expected,
            "{first:?} {second:?}"
        );
        let sent = ends.assigned();
        assert_eq!(sent.contains(&(2, 0, Carried::Opportunistic)), expected);
        // Once on each path.
        let c = ends.client();
        c.views[2].can_send = true;
        assert!(!expected || !c.opportunistic_retransmit(now));
    }
}

fn penalties(ends: &mut Ends) -> Vec<(u32, u64)> {
    let client = ends.client();
    let all = std::iter::from_fn(|| client.poll_notice());
    let penalty = |n| match n {
        Notice::Penalised { subflow, cap, .. } => Some((subflow, cap)),
        _ => None,
    };
    all.filter_map(penalty).collect()
}

#[test]
fn a_path_that_fills_the_window_is_capped_if_the_other_would_have_delivered_by_now() {
    // Time since the segment was sent; rates of the two paths; whether the scheduler minds the window; how often the
    // window counts as blocked, and the cap in segments.
    let cases = [
        (21, 1, 1, false, 1, Some(5)),
        (20, 1, 1, false, 0, None),
        // It carries as much as the path that waits.
        (21, 1, 1, true, 1, None),
        (21, 2, 1, true, 1, None),
        (21, 1, 2, true, 1, Some(5)),
    ];
    for (since, slow, fast, minds, blocked_times, cap) in cases {
        for penalisation in [Penalisation::Cap, Penalisation::Off] {
            let (mut ends, told) = blocked(Opportunistic::Late, penalisation, 10);
            told.0.minds_window.store(minds, Relaxed);
            let now = ends.now + ms(since);
            let c = ends.client();
            let rate = |n| Some(Rate::from_mbps(n));
            (c.views[0].delivery_rate, c.views[1].delivery_rate) = (rate(slow), rate(fast));
            c.opportunistic_retransmit(now);
            assert_eq!(c.blocked, blocked_times);
            let mss = c.views[0].mss;
            let cap = cap.filter(|_| penalisation == Penalisation::Cap);
            assert_eq!(c.subflows[0].penalty.cap, cap.map(|n| n * mss));
            let told: Vec<_> = cap.iter().map(|n| (0, n * mss)).collect();
            assert_eq!(penalties(&mut ends), told);
        }
    }
}

#[test]
fn a_path_is_not_punished_for_what_it_has_delivered_or_what_is_its_own() {
    for which in 0..3 {
        let (mut ends, _) = blocked(Opportunistic::Late, Penalisation::Cap, 10);
        let now = ends.now + ms(50);
        let c = ends.client();
        match which {
            0 => c.subflows[0].acked = 1,
            // The path with room is that of the segment itself.
            1 => (c.views[0].can_send, c.views[1].can_send) = (true, false),
            // Nobody waits: the data ends.
            _ => set_room(c, 1000, 0),
        }
        c.opportunistic_retransmit(now);
        assert_eq!((c.blocked, c.subflows[0].penalty.cap), (0, None), "{which}");
    }
}

#[test]
fn the_window_of_a_path_that_holds_up_a_faster_one_is_halved_once_in_a_round_trip() {
    let (mut ends, _) = blocked(Opportunistic::Late, Penalisation::Halve, 10);
    let start = ends.now;
    let (mut windows, mut penalties) = (Vec::new(), Vec::new());
    for after in [0, 19, 20, 39, 40, 41] {
        let c = ends.client();
        rtt(&mut c.views[0], 100);
        c.views[1].can_send = true;
        c.opportunistic_retransmit(start + ms(after));
        let (window, mss) = (
            c.subflows[0].endpoint.snapshot(start).cwnd.get(),
            c.views[0].mss,
        );
        windows.push(window / mss);
        penalties.extend(self::penalties(&mut ends));
    }
    assert_eq!(windows, [5, 5, 2, 2, 1, 1]);
    assert_eq!(penalties.len(), 3);
    assert_eq!(ends.client().blocked, 3);
    // A path that is not slower is left alone, but counts.
    let (mut ends, _) = blocked(Opportunistic::Late, Penalisation::Halve, 10);
    let now = ends.now;
    let c = ends.client();
    rtt(&mut c.views[0], 20);
    let before = c.subflows[0].endpoint.snapshot(now).cwnd;
    c.opportunistic_retransmit(now);
    assert_eq!(c.blocked, 1);
    assert_eq!(c.subflows[0].endpoint.snapshot(now).cwnd, before);
}

#[test]
fn data_to_be_sent_again_takes_the_fastest_path_that_does_not_carry_it() {
    type Change = fn(&mut [PathView]);
    // The path, or none: whether the data still waits for one then.
    let cases: [(Change, Result<usize, bool>); 6] = [
        (|_| (), Ok(2)),
        (|v| v[2].usable = false, Ok(1)),
        (|v| v[2].in_loss = true, Ok(1)),
        (|v| v[2].can_send = false, Ok(1)),
        (
            |v| (v[1].can_send, v[2].can_send) = (false, false),
            Err(true),
        ),
        (|v| (v[1].in_loss, v[2].usable) = (true, false), Err(false)),
    ];
    for (change, expected) in cases {
        let (config, told) = told(Options::default());
        let mut ends = Ends::open(&config, 3);
        ends.carry(&told, 0, 2);
        let now = ends.now;
        let c = ends.client();
        for (v, millis) in c.views.iter_mut().zip([10, 30, 20]) {
            rtt(v, millis);
            v.can_send = true;
        }
        change(&mut c.views);
        let mss = c.views[0].mss;
        // In the middle of a segment nothing begins.
        c.send.again.extend([5, mss]);
        assert_eq!(c.resend(now), expected.is_ok());
        let left = Vec::from_iter(c.send.again.iter().copied());
        assert_eq!(
            left,
            if expected == Err(true) {
                vec![mss]
            } else {
                vec![]
            }
        );
        assert_eq!(c.stats().reinjected_segments, u64::from(expected.is_ok()));
        let sent = expected.map(|path| (path, 1, Carried::Reinjected));
        assert_eq!(ends.assigned(), Vec::from_iter(sent));
    }
}

#[test]
fn what_a_path_carries_is_offered_to_others_unless_it_has_arrived() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    ends.carry(&told, 0, 2);
    ends.carry(&told, 1, 2);
    ends.carry(&told, 0, 1);
    let now = ends.now;
    let c = ends.client();
    let mss = c.views[0].mss;
    // Half of the first segment has arrived.
    c.send.on_ack(mss / 2, 0);
    c.work.schedule_due = false;
    c.reinject(now, 0);
    assert!(c.send.again.iter().copied().eq([0, mss, 4 * mss]));
    assert!(c.work.schedule_due);
    c.send.again.clear();
    c.send.on_ack(mss, 0);
    c.reinject(now, 0);
    assert!(c.send.again.iter().copied().eq([mss, 4 * mss]));
    // Of a segment that is sent again, only the part that is missing.
    c.send.on_ack(mss + 100, 0);
    c.views[1].can_send = true;
    assert!(c.resend(now));
    let client = &mut ends.ends[0];
    let notice = std::iter::from_fn(|| client.poll_notice()).next();
    let expected = Notice::Scheduled {
        now,
        subflow: 1,
        offset: mss + 100,
        len: mss as u32 - 100,
        why: Carried::Reinjected,
    };
    assert_eq!(notice, Some(expected));
}

/// DATA_ACKs of the server do not arrive.
fn without_data_acks(s: &mut Sent) -> bool {
    if s.side == 1
        && let Some(list) = &mut s.transmit.segment.options.mptcp
        && let Some(MptcpOption::Dss(dss)) = list.lone()
    {
        let dss = gargalo_wire::mptcp::Dss {
            data_ack: None,
            ..*dss
        };
        set_option(&mut s.transmit.segment, MptcpOption::Dss(dss));
    }
    true
}

#[test]
fn data_that_a_path_delivered_and_nobody_confirms_goes_over_others_and_then_the_path_is_reset() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    let start = ends.now;
    let sent = ends.carry(&told, 0, 3);
    let arrive = sent.clone();
    for s in &arrive {
        ends.deliver(s);
    }
    ends.run(Duration::from_secs(5), &mut without_data_acks);
    let client = ends.client();
    let all: Vec<_> = std::iter::from_fn(|| client.poll_notice()).collect();
    let mut again = Vec::new();
    let mut reset = None;
    for n in all {
        match n {
            Notice::Scheduled {
                now, subflow, why, ..
            } => {
                again.push(((now - start).as_millis(), subflow, why));
            }
            Notice::ResetSubflow {
                now,
                subflow,
                reason,
            } => {
                assert_eq!((subflow, reason), (0, crate::ResetReason::Middlebox));
                reset.get_or_insert((now - start).as_millis());
            }
            _ => {}
        }
    }
    // Timeouts at data level: after a second and after two more. At the first all that it delivered goes over the other
    // path, except the first segment, which takes the faster of both; at the second one it ends.
    let on = |at, path| (at, path, Carried::Reinjected);
    assert_eq!(again, [on(1000, 0), on(1000, 1), on(1000, 1), on(3000, 1)]);
    assert_eq!(reset, Some(3000));
    assert_eq!(ends.client().stats().subflows_reset, 1);
}

#[test]
fn of_what_nobody_confirms_only_that_goes_over_others_which_the_path_has_delivered() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    ends.carry(&told, 0, 3);
    let now = ends.now;
    let c = ends.client();
    let mss = c.views[0].mss;
    let [first, third] = [0, 2 * mss].map(|at| *c.send.find(at).unwrap());
    c.on_lost_delivery(now, &first);
    assert!(c.send.again.is_empty());
    c.subflows[0].acked = third.subflow;
    c.on_lost_delivery(now, &first);
    assert!(c.send.again.iter().copied().eq([0, mss]));
}

#[test]
fn without_data_acks_a_lone_path_probes_ever_more_rarely_and_gives_up() {
    let (mut config, told) = told(Options::default());
    config.tcp = Arc::new(gargalo_tcp::Config {
        data_retries: 8,
        ..gargalo_tcp::Config::clone(&config.tcp)
    });
    let mut ends = Ends::open(&config, 1);
    let start = ends.now;
    told.send_on(Some(0));
    ends.client().write_synthetic(1000);
    let first = ends.poll(0);
    // The peer knows the keys, and its acknowledgements of TCP arrive with an option.
    ends.deliver(&first[0]);
    let all = ends.run(Duration::from_secs(1000), &mut without_data_acks);
    let from_client = |s: &Sent| s.side == 0 && !s.is(Flags::RST);
    let sent = times(&all, from_client);
    let after: Vec<_> = sent
        .iter()
        .map(|t| (*t - start).as_millis() / 1000)
        .collect();
    // The longest wait is 64 times the first.
    assert_eq!(after, [1, 3, 7, 15, 31, 63, 127, 191]);
    assert_eq!(ends.ends[0].error(), Some(gargalo_tcp::Error::TimedOut));
    assert!(ends.events[0].contains(&Event::TimedOut));
    let given_up = times(&all, |s| s.is(Flags::RST));
    assert_eq!((given_up[0] - start).as_millis() / 1000, 255);
}

#[test]
fn data_that_a_lone_path_delivered_and_the_peer_dropped_is_sent_again_after_a_probe() {
    let (config, _) = told(Options::default());
    let mut ends = Ends::open(&config, 1);
    ends.client().write_synthetic(1000);
    ends.wait(ms(300));
    assert_eq!(ends.client().unacknowledged(), 0);
    ends.assigned();
    let start = ends.now;
    ends.client().write_synthetic(1000);
    // The peer acknowledges what it had before.
    let base = ends.ends[0].own_base();
    let mut stale = |s: &mut Sent| {
        if s.side == 1
            && let Some(MptcpOption::Dss(dss)) = s.options().first()
        {
            let dss = gargalo_wire::mptcp::Dss {
                data_ack: Some(crate::mapping::number(1000, base, false)),
                ..*dss
            };
            set_option(&mut s.transmit.segment, MptcpOption::Dss(dss));
        }
        true
    };
    let all = ends.run(Duration::from_secs(5), &mut stale);
    let from_client = all.iter().filter(|s| s.side == 0);
    let sent = from_client.map(|s| ((s.at - start).as_millis(), s.segment().payload.len()));
    assert_eq!(
        sent.collect::<Vec<_>>(),
        [(0, 1000), (1020, 0), (3020, 1000)]
    );
    assert_eq!(ends.ends[0].stats().reinjected_segments, 1);
}

#[test]
fn a_probe_takes_the_fastest_path_that_is_not_in_loss() {
    // Round trips, and which path is in loss.
    for (first, second, in_loss, expected) in
        [(20, 30, None, 0), (30, 20, None, 1), (20, 30, Some(0), 1)]
    {
        let (config, told) = told(Options::default());
        let mut ends = Ends::open(&config, 2);
        told.send_on(Some(0));
        let now = ends.now;
        let c = ends.client();
        c.send.edge = 0;
        c.write_synthetic(5000);
        for (i, millis) in [(0, first), (1, second)] {
            rtt(&mut c.views[i], millis);
            c.views[i].in_loss = in_loss == Some(i);
        }
        c.on_data_timeout(now);
        let probe = ends.poll(0);
        assert_eq!(probe.iter().map(|s| s.path).collect::<Vec<_>>(), [expected]);
    }
}
