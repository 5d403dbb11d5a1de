//! Tail loss probes, ECN, windows and small segments.

use super::*;
use crate::config::RtoRestart;

// ---- the retransmission deadline ----

/// Reordering was seen; 2 to 5 are in flight since 101 ms, 3 and 4 were reported, and the timer of the hole is due.
fn with_a_hole(rto_restart: RtoRestart) -> Rig {
    let config = Config {
        rto_restart,
        ..config(Recovery::RackTlp)
    };
    let mut r = Rig::new(&config, 4);
    r.write(2);
    r.ack(100, 0, &[(1, 2)]);
    r.ack(101, 2, &[]);
    assert_eq!(r.write(4), ["2", "3", "4", "5"]);
    r.ack(201, 2, &[(4, 5)]);
    // Segment 2 arrives after 4; 3 is still missing, and 4 has been reported.
    r.ack(221, 3, &[(4, 5)]);
    assert_eq!(r.sender.timers.probe, Instant::MAX);
    r
}

#[test]
fn the_timeout_counts_from_the_acknowledgement() {
    // RFC 6298 §5.3.
    let r = with_a_hole(RtoRestart::Acknowledgement);
    assert_eq!(r.sender.timers.rto, at(221) + r.sender.rtt.rto());
}

#[test]
fn the_timeout_counts_from_the_transmission_after_a_shorter_timer() {
    // RFC 6298 §5: never less than one timeout after the segment was sent. Linux takes the time since then off.
    let mut r = with_a_hole(RtoRestart::Transmission);
    assert_eq!(r.sender.timers.rto, at(101) + r.sender.rtt.rto());
    // No shorter timer was due: a full timeout.
    r.sender.timers.reorder = Instant::MAX;
    r.ack(231, 4, &[(5, 6)]);
    assert_eq!(r.sender.timers.rto, at(231) + r.sender.rtt.rto());
}

// ---- tail loss probes ----

/// Two segments in flight, probed at 2 RTT + 2 ms (RFC 8985 §7.2); the probe repeats the second.
fn probed() -> Rig {
    let mut r = Rig::new(&config(Recovery::RackTlp), 10);
    assert_eq!(r.write(2), ["0", "1"]);
    assert_eq!(r.wait(), (2 * RTT + 2, vec!["R1".into()]));
    r.log();
    r
}

#[test]
fn a_probe_that_repaired_a_loss_reduces_the_window() {
    // RFC 8985 §7.4.2: only once later data is acknowledged is it certain.
    let mut r = probed();
    r.ack(302, 2, &[]);
    assert_eq!(r.log(), ["acked 2000 unlimited"]);
    r.write(1);
    r.ack(402, 3, &[]);
    assert_eq!(r.log()[0], "Loss of 1000");
}

#[test]
fn a_probe_that_was_not_needed_is_forgotten() {
    for dsack in [Some((MSS, 2 * MSS)), None] {
        let mut r = probed();
        r.ack(210, 2, &[]);
        // The probe arrives as a duplicate: reported, or a duplicate acknowledgement.
        r.ack_with(302, 2, |f| f.dsack = dsack);
        r.write(1);
        r.ack(402, 3, &[]);
        assert!(!r.log().iter().any(|l| l.starts_with("Loss")));
    }
}

#[test]
fn a_probe_prefers_new_data_and_finds_the_loss_before_it() {
    let mut r = Rig::new(&config(Recovery::RackTlp), 2);
    assert_eq!(r.write(5), ["0", "1"]);
    assert_eq!(r.wait(), (2 * RTT + 2, vec!["2".into()]));
    // Only it arrives: a quarter of a round trip later the others are lost, long before a timeout.
    assert_eq!(r.ack(302, 0, &[(2, 3)]), ["R0"]);
}

#[test]
fn a_lone_segment_is_probed_after_the_peers_delay_and_then_times_out() {
    let mut r = Rig::new(&config(Recovery::RackTlp), 10);
    r.write(1);
    let rto = 300; // srtt + max(200 ms, 4 rttvar)
    let (first, sent) = r.wait();
    assert_eq!((first, sent), (rto, vec!["R0".into()]));
    assert_eq!(
        r.sender.counters.timeouts, 0,
        "the probe goes before the timeout"
    );
    let (second, sent) = r.wait();
    assert_eq!((second, sent), (2 * rto, vec!["R0".into()]));
    assert_eq!(r.sender.counters.timeouts, 1);
}

// ---- ECN ----

#[test]
fn marks_reduce_once_per_window_and_cwr_answers_them() {
    // RFC 3168 §6.1.2.
    let mut r = Rig::new(&config(Recovery::RackTlp), 10);
    r.write(60);
    r.log();
    let mut sent = none();
    // Ten acknowledgements with ECE: one reduction. The eleventh is still of what left before CWR.
    for n in 1..=10 {
        sent.extend(r.ack_with(99 + n, n, |f| f.ece = true));
    }
    let log = r.log();
    let reductions = log.iter().filter(|l| l.starts_with("Ecn")).count();
    assert_eq!(reductions, 1, "{log:?}");
    assert_eq!(log[0], "Ecn of 10000");
    assert_eq!(sent.iter().filter(|s| s.contains('W')).count(), 1);
    // PRR has halved what is in flight.
    assert_eq!(r.sender.pipe(), 5 * MSS);
    // CWR has arrived with segment 10; a mark after that counts again.
    r.ack_with(220, 11, |f| f.ece = true);
    assert!(r.log().iter().any(|l| l.starts_with("Ecn")));
}

#[test]
fn linux_reduces_the_window_in_whole_segments() {
    // Acknowledgements that let a segment out, with nine of ten segments in flight at the mark.
    let senders = |config: Config| {
        let mut r = Rig::new(&config, 10);
        r.write(9);
        r.sender.append(30 * MSS, false);
        let acks = (1..=7).filter(|n| !r.ack_with(99 + n, *n, |f| f.ece = *n == 1).is_empty());
        acks.collect::<Vec<u64>>()
    };
    assert_eq!(senders(linux(Recovery::RackTlp)), [1, 3, 6]);
    assert_eq!(senders(config(Recovery::RackTlp)), [1, 4, 6]);
}

#[test]
fn a_reduction_by_loss_is_told_with_cwr_too() {
    let mut r = Rig::new(&config(Recovery::Sack), 10);
    r.write(60);
    r.ack(100, 0, &[(1, 2)]);
    r.ack(101, 0, &[(1, 3)]);
    r.ack(102, 0, &[(1, 4)]);
    let mut sent = none();
    for n in 5..12 {
        sent.extend(r.ack(98 + n, 0, &[(1, n)]));
    }
    assert!(sent[0].ends_with('W'), "{sent:?}");
}

// ---- windows and small segments ----

#[test]
fn a_closed_window_is_probed_ever_more_rarely_until_it_opens() {
    let mut r = Rig::new(&config(Recovery::RackTlp), 10);
    assert_eq!(r.write(1), ["0"]);
    r.window = 0;
    r.sender.append(5 * MSS, false);
    assert_eq!(r.ack(100, 1, &[]), none());
    let mut gaps = Vec::new();
    for _ in 0..5 {
        let before = r.now;
        let (time, sent) = r.wait();
        assert_eq!(sent, ["probe"]);
        gaps.push((r.now - before).as_millis());
        r.ack(time, 1, &[]);
    }
    assert!(gaps.windows(2).all(|g| g[1] == 2 * g[0]), "{gaps:?}");
    r.window = 3 * MSS;
    let later = r.now.as_nanos() / 1_000_000 + 5;
    assert_eq!(r.ack(later, 1, &[]), ["1", "2", "3"]);
}

#[test]
fn silly_windows_are_left_alone_until_the_timer() {
    // RFC 9293 §3.8.6.2.1: neither a full segment nor half of the largest window.
    let mut r = Rig::new(&config(Recovery::RackTlp), 10);
    r.write(1);
    r.window = 300;
    r.sender.append(5 * MSS, false);
    assert_eq!(r.ack(100, 1, &[]), none());
    assert_eq!(r.wait().1, ["1"]);
    assert_eq!(r.sender.nxt, MSS + 300);
}

#[test]
fn nagle_holds_short_segments_back() {
    let mut config = config(Recovery::RackTlp);
    config.nagle = Nagle::Standard;
    let mut r = Rig::new(&config, 10);
    r.sender.append(100, false);
    assert_eq!(r.sent(), ["0"]);
    r.sender.append(100, false);
    assert_eq!(r.sent(), none());
    r.sender.append(MSS, false);
    assert_eq!(r.sent(), ["0.1"], "a full one may leave");
    r.sender.finish();
    assert_eq!(r.sent(), ["1.1F"], "the end may leave");
}

#[test]
fn minshalls_rule_holds_a_short_segment_back_behind_a_short_one_only() {
    // RFC 9293 appendix A.3.
    let mut config = config(Recovery::RackTlp);
    config.nagle = Nagle::Minshall;
    let mut r = Rig::new(&config, 20);
    r.sender.append(2 * MSS + 100, false);
    assert_eq!(
        r.sent(),
        ["0", "1", "2"],
        "the rest of a write does not wait"
    );
    r.sender.append(100, false);
    assert_eq!(r.sent(), none(), "the next short one does");
    r.sender.append(MSS, false);
    assert_eq!(r.sent(), ["2.1"], "a full one may leave");
    r.now = at(100);
    let mut facts = r.facts(0, &[]);
    facts.ack = 2 * MSS;
    r.sender.on_ack(&facts);
    assert_eq!(r.sent(), none(), "the short segment is still outstanding");
    facts.ack = 2 * MSS + 100;
    r.sender.on_ack(&facts);
    assert_eq!(r.sent(), ["3.1"], "although a full one is outstanding");
    r.sender.append(100, false);
    assert_eq!(r.sent(), none());
    r.sender.finish();
    assert_eq!(r.sent(), ["3.2F"], "the end may leave");
    // The standard rule waits for all data.
    config.nagle = Nagle::Standard;
    let mut r = Rig::new(&config, 20);
    r.sender.append(2 * MSS + 100, false);
    assert_eq!(r.sent(), ["0", "1"]);
}

#[test]
fn the_fin_is_sent_and_acknowledged_once() {
    let mut r = Rig::new(&config(Recovery::RackTlp), 10);
    r.sender.append(1500, false);
    r.sender.finish();
    assert_eq!(r.sent(), ["0", "1F"]);
    r.now = at(100);
    let mut facts = r.facts(0, &[]);
    facts.ack = 1500;
    assert!(!r.sender.on_ack(&facts).fin_acked);
    facts.ack = 1501;
    assert!(r.sender.on_ack(&facts).fin_acked);
    assert!(r.sent().is_empty() && r.sender.next_timeout().is_none());
}

/// Segments and a FIN that wait for a window which has room for all but the FIN: what is sent, and when the window
/// opens further.
fn fin_at_the_edge(config: &Config, segments: u64) -> [Vec<String>; 3] {
    let mut r = Rig::new(config, 10);
    assert_eq!(r.write(1), ["0"]);
    r.window = 0;
    r.ack(100, 1, &[]);
    r.sender.append(segments * MSS, false);
    r.sender.finish();
    assert_eq!(r.sent(), none());
    r.window = segments * MSS;
    let first = r.ack(150, 1, &[]);
    let probe = if first.is_empty() { r.wait().1 } else { none() };
    r.window = MSS;
    let now = r.now.as_nanos() / 1_000_000;
    [first, probe, r.ack(now + 50, 1 + segments, &[])]
}

#[test]
fn a_fin_that_does_not_fit_follows_its_data() {
    let modern = config(Recovery::RackTlp);
    let after = |sent: &[&str]| sent.iter().map(ToString::to_string).collect::<Vec<_>>();
    let one = fin_at_the_edge(&modern, 1);
    assert_eq!(one, [after(&["1"]), none(), after(&["2F"])]);
    // In Linux it belongs to the last segment, which waits for the probe or leaves with it behind another.
    let linux = linux(Recovery::RackTlp);
    let one = fin_at_the_edge(&linux, 1);
    assert_eq!(one, [none(), after(&["1"]), after(&["2F"])]);
    let two = fin_at_the_edge(&linux, 2);
    assert_eq!(two[0], ["1", "2F"]);
}

#[test]
fn idle_time_is_told() {
    let mut r = Rig::new(&config(Recovery::RackTlp), 10);
    r.write(1);
    r.ack(100, 1, &[]);
    r.now = at(5000);
    r.log();
    r.write(1);
    assert_eq!(r.log(), ["idle 5000"]);
}

#[test]
fn the_application_or_the_window_limits() {
    let mut r = Rig::new(&config(Recovery::RackTlp), 10);
    r.write(30);
    r.log();
    r.ack(100, 1, &[]);
    assert_eq!(r.log(), ["acked 1000"]);
    // 19 remain: the window stays the limit until the last is sent.
    for n in 2..=20 {
        r.ack(99 + n, n, &[]);
    }
    assert!(r.log().iter().all(|l| l == "acked 1000"));
    // Two segments of a window of ten are the application's choice.
    r.ack(300, 30, &[]);
    r.write(2);
    r.log();
    r.ack(400, 32, &[]);
    assert_eq!(r.log(), ["acked 2000 unlimited"]);
}

#[test]
fn a_smaller_segment_size_cuts_what_was_too_long_and_resends_it_at_once() {
    let mut config = Config::rfc5681();
    config.mss = MSS as u16;
    let mut r = Rig::new(&config, 4);
    r.write(4);
    r.ack(100, 1, &[]);
    r.log();
    r.sender.set_mss(r.now, 500);
    let halves = ["R1", "R1.5", "R2", "R2.5", "R3", "R3.5"];
    assert_eq!(r.sent(), halves);
    assert_eq!(r.sender.timeouts_in_a_row(), 0);
    // Neither loss nor congestion was reported.
    assert_eq!(r.log(), [""; 0]);
    r.now = at(200);
    let facts = AckFacts {
        ack: 1500,
        ..r.facts(1, &[])
    };
    r.sender.on_ack(&facts);
    assert_eq!(r.sent(), [""; 0], "nothing is sent a third time");
    r.ack(210, 4, &[]);
    assert_eq!(r.sender.next_timeout(), None);
}

#[test]
fn a_size_that_nothing_exceeds_resends_nothing() {
    let mut r = Rig::new(&config(Recovery::RackTlp), 4);
    r.write(4);
    r.sender.set_mss(r.now, 2000);
    r.sender.set_mss(r.now, MSS as u16);
    assert_eq!(r.sent(), [""; 0]);
}
