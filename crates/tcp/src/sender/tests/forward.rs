//! Forward acknowledgement, early retransmit and tail loss probes as Linux had them before RACK.

use super::*;

fn linux(segments: u64) -> Rig {
    Rig::new(&config(Recovery::Fack), segments)
}

#[test]
fn three_segments_below_the_highest_are_lost_however_few_arrived() {
    let mut r = linux(10);
    r.write(10);
    // Segment 3 alone was reported: 0 is three below it. RFC 6675 waits for three.
    let sent = r.ack(100, 0, &[(3, 4)]);
    assert_eq!(sent[0], "R0");
    assert_eq!(r.sender.counters.duplicate_acks, 1);
    assert_eq!(r.log()[..2], ["lost 1000", "Loss of 10000"]);
    // Segment 6 arrives: 1 to 3 are lost too, of which 3 was reported.
    r.ack(101, 0, &[(6, 7), (3, 4)]);
    assert_eq!(r.log()[..2], ["lost 1000", "lost 1000"]);
    let mut r = Rig::new(&config(Recovery::Sack), 10);
    r.write(10);
    r.ack(100, 0, &[(3, 4)]);
    assert_eq!(r.log(), ["acked 1000"]);
}

#[test]
fn reordering_turns_it_off() {
    let mut r = linux(10);
    r.write(10);
    r.ack(100, 0, &[(1, 2)]);
    // Segment 0 arrives after 1.
    r.ack(101, 2, &[]);
    r.log();
    r.ack(102, 2, &[(5, 6)]);
    assert!(!r.log().iter().any(|l| l.starts_with("lost")));
}

#[test]
fn a_lost_retransmission_is_found_by_new_data() {
    let mut r = linux(10);
    r.write(20);
    assert_eq!(r.ack(100, 0, &[(3, 4)])[0], "R0");
    let mut sent = none();
    for n in 4..10 {
        sent.extend(r.ack(100 + n, 0, &[(3, n + 1)]));
    }
    // New data left in recovery, after the retransmission; that it arrives shows that the retransmission did not.
    assert!(sent.contains(&"10W".into()), "{sent:?}");
    r.log();
    let sent = r.ack(210, 0, &[(10, 11), (3, 10)]);
    assert_eq!(r.log()[0], "lost 1000");
    assert_eq!(sent[0], "R0");
}

#[test]
fn fewer_than_four_segments_are_sent_again_early() {
    // RFC 5827 §3; a quarter of the round trip later.
    let mut r = linux(10);
    assert_eq!(r.write(2).len(), 2);
    assert_eq!(r.ack(100, 0, &[(1, 2)]), none());
    assert_eq!(r.wait(), (100 + RTT / 4, vec!["R0".into()]));
    assert_eq!(
        r.log(),
        ["acked 1000 unlimited", "lost 1000", "Loss of 2000"]
    );
    // What arrives in time ends the wait.
    let mut r = linux(10);
    r.write(2);
    r.ack(100, 0, &[(1, 2)]);
    r.ack(110, 2, &[]);
    assert_eq!(r.sender.next_timeout(), None);
    // Four wait for the timeout: two were reported, none of them three segments above the first.
    let mut r = linux(10);
    r.write(4);
    r.ack(100, 0, &[(1, 3)]);
    assert_eq!(r.wait().1, ["R0"]);
    assert_eq!(r.sender.counters.timeouts, 1);
}

#[test]
fn probes_wait_for_ten_milliseconds() {
    let config = Config {
        // Linux 4.1 had no slack of 2 ms.
        probe_slack_fixed: false,
        ..config(Recovery::Fack)
    };
    let mut r = Rig::new(&config, 10);
    for n in 1..200 {
        r.write(1);
        r.now += ms(1);
        let now = r.now.as_nanos() / 1_000_000;
        r.ack(now, n, &[]);
    }
    let now = r.now.as_nanos() / 1_000_000;
    assert_eq!(r.write(2).len(), 2);
    assert_eq!(r.wait(), (now + 10, vec!["R200".into()]));
    assert_eq!(r.sender.counters.timeouts, 0);
}

#[test]
fn half_the_window_is_taken_only_in_the_open_state() {
    let mut r = linux(10);
    r.write(10);
    assert!(r.sender.halve_window());
    r.ack(100, 0, &[(1, 2)]);
    assert!(
        !r.sender.halve_window(),
        "something was reported above a gap"
    );
}
