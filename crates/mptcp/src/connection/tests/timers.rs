//! When a connection wants to be called, and what it does then.

use super::*;

#[test]
fn the_next_timer_is_the_earliest_of_all() {
    type Timer = fn(&mut Connection) -> &mut Instant;
    let timers: [Timer; 9] = [
        |c| &mut c.timers.data,
        |c| &mut c.timers.orphan,
        |c| &mut c.timers.retry,
        |c| &mut c.timers.announce,
        |c| &mut c.timers.repeat,
        |c| &mut c.timers.opportunistic,
        |c| &mut c.subflows[1].join.confirm_at,
        |c| &mut c.subflows[1].removal.at,
        |c| {
            let probe = &mut c.subflows[1].probe;
            if probe.at == Instant::MAX {
                probe.start(Instant::ZERO, ms(7));
            }
            &mut probe.at
        },
    ];
    for active in [false, true] {
        for (k, timer) in timers.iter().enumerate() {
            let mut ends = Ends::open(&config(), 2);
            let now = ends.now;
            let c = ends.client();
            assert_eq!(c.poll_timeout(), None);
            *timer(c) = now + ms(7);
            if active {
                c.work.active = 1;
            } else {
                let Connection {
                    places, subflows, ..
                } = &mut *c;
                places[1].arm(&mut subflows[1]);
            }
            assert_eq!(c.poll_timeout(), Some(now + ms(7)), "timer {k}, {active}");
            // Before its time nothing happens.
            c.handle_timeout(now + ms(6));
            assert_eq!(*timer(c), now + ms(7), "timer {k}");
            c.handle_timeout(now + ms(7));
            assert_ne!(*timer(c), now + ms(7), "timer {k}");
        }
    }
}

#[test]
fn a_pacer_is_waited_for_only_with_data_to_send() {
    let mut ends = Ends::open(&config(), 2);
    let now = ends.now;
    let c = ends.client();
    c.places[1].paced_until = now + ms(7);
    assert_eq!(c.poll_timeout(), None);
    type Change = fn(&mut Connection);
    let cases: [(Change, Change); 3] = [
        (|c| c.send.end += 1, |c| c.send.end -= 1),
        (|c| c.work.has_copies = true, |c| c.work.has_copies = false),
        (|c| c.send.again.extend([0]), |c| c.send.again.clear()),
    ];
    for (change, back) in cases {
        change(c);
        assert_eq!(c.poll_timeout(), Some(now + ms(7)));
        back(c);
        assert_eq!(c.poll_timeout(), None);
    }
}

#[test]
fn an_overdue_segment_and_a_ready_pacer_call_the_scheduler() {
    let mut ends = Ends::open(&config(), 2);
    let now = ends.now;
    for pacer in [false, true] {
        let c = ends.client();
        c.work.schedule_due = false;
        if pacer {
            c.subflows[1].paced_until = now;
        } else {
            c.timers.opportunistic = now;
        }
        c.handle_timeout(now);
        assert!(c.work.schedule_due);
    }
}

#[test]
fn the_data_timeout_is_longer_than_a_path_needs_to_repair_a_loss_and_doubles() {
    use crate::send::Fin;
    let mut ends = Ends::open(&config(), 3);
    let now = ends.now;
    // Timeouts and round trips of two paths that work; repetitions, whether only DATA_FIN is outstanding; the timeout.
    for ((rto, rtt), (other_rto, other_rtt), backoff, fin, expected) in [
        ((300, 100), (220, 20), 0, false, 1000),
        ((800, 300), (220, 20), 0, false, 1100),
        ((220, 20), (900, 500), 0, false, 1400),
        // An unknown or long round trip counts as the timeout.
        ((800, 2000), (220, 20), 0, false, 1600),
        ((800, 300), (220, 20), 1, false, 2200),
        ((800, 300), (220, 20), 6, false, 64 * 1100),
        ((800, 300), (220, 20), 9, false, 64 * 1100),
        ((300, 100), (220, 20), 0, true, 400),
        ((300, 100), (220, 20), 2, true, 1600),
    ] {
        let c = ends.client();
        for (v, (rto, rtt)) in
            c.views
                .iter_mut()
                .zip([(rto, rtt), (other_rto, other_rtt), (9999, 9999)])
        {
            (v.rto, v.srtt) = (ms(rto), Some(ms(rtt)));
        }
        // A path in loss, or one that is not open, has no say.
        c.views[2].in_loss = true;
        c.timers.backoff = backoff;
        (c.send.fin, c.send.end) = (if fin { Fin::Sent } else { Fin::Open }, u64::from(!fin));
        c.arm_data_timer(now);
        assert_eq!(
            (c.timers.data - now).as_millis(),
            expected,
            "{rto} {rtt} {backoff} {fin}"
        );
    }
    let c = ends.client();
    (c.send.fin, c.send.end) = (Fin::Open, 0);
    c.arm_data_timer(now);
    assert_eq!(c.timers.data, Instant::MAX, "nothing is outstanding");
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    ends.wait(ms(100));
    told.send_on(Some(0));
    let start = ends.now;
    let c = ends.client();
    c.send.edge = 0;
    c.write_synthetic(5000);
    c.arm_data_timer(start);
    // No answer arrives.
    let all = ends.run(Duration::from_secs(8), &mut |_| false);
    let probes: Vec<_> = all
        .iter()
        .map(|s| ((s.at - start).as_millis(), s.path))
        .collect();
    // At first on the fastest path, then on all.
    assert_eq!(
        probes,
        [(1000, 0), (3000, 0), (3000, 1), (7000, 0), (7000, 1)]
    );
    assert!(all.iter().all(|s| s.segment().payload.is_empty()));
    // The answer to the next has the window.
    ends.run(Duration::from_secs(10), &mut |_| true);
    assert_eq!(ends.read[1], 5000);
}
