//! The duplicate threshold after reordering.

use super::*;

/// Loss detection by counting, with a duplicate threshold that grows to `most`.
fn counting(most: u32) -> Rig {
    let config = Config {
        max_dup_thresh: most,
        tail_loss_probe: false,
        ..config(Recovery::Sack)
    };
    let mut r = Rig::new(&config, 20);
    r.write(60);
    r
}

fn retransmits(sent: &[String]) -> bool {
    sent.iter().any(|s| s.starts_with('R'))
}

/// The original of segment 0 comes after 1 to 5, when it has been sent again.
fn reordered_by_five(r: &mut Rig) {
    for right in 2..=6 {
        r.ack(99 + right, 0, &[(1, right)]);
    }
    // Its timestamp is from before the retransmission (RFC 3522).
    r.ack_with(106, 6, |f| f.tsecr = Some(0));
    assert_eq!(r.sender.episode.phase, Phase::Open);
    assert_eq!(r.sender.counters.spurious_losses, 1);
}

#[test]
fn the_threshold_grows_with_the_reordering_that_was_undone() {
    let mut r = counting(300);
    reordered_by_five(&mut r);
    assert!(!retransmits(&r.ack(107, 6, &[(7, 12)])), "five above");
    assert!(retransmits(&r.ack(108, 6, &[(7, 13)])), "six above");
}

#[test]
fn the_threshold_is_three_unless_it_may_grow() {
    // RFC 6675 §2.
    let mut r = counting(3);
    reordered_by_five(&mut r);
    assert!(!retransmits(&r.ack(107, 6, &[(7, 9)])), "two above");
    assert!(retransmits(&r.ack(108, 6, &[(7, 10)])), "three above");
}

#[test]
fn the_threshold_grows_to_its_bound_and_falls_after_a_timeout() {
    let mut r = counting(4);
    reordered_by_five(&mut r);
    assert_eq!(r.sender.rack.dup_thresh(MSS as u32, 4), 4);
    assert_eq!(r.sender.rack.dup_thresh(MSS as u32, 300), 6);
    // Three reported segments, no more, and the timeout: the threshold was too high.
    assert!(!retransmits(&r.ack(107, 6, &[(7, 10)])));
    assert!(retransmits(&r.wait().1));
    assert_eq!(r.sender.rack.dup_thresh(MSS as u32, 300), 3);
}

#[test]
fn two_segments_late_is_within_the_threshold() {
    let mut r = counting(300);
    r.ack(100, 0, &[(1, 3)]);
    r.ack(101, 3, &[]);
    assert_eq!(r.sender.rack.dup_thresh(MSS as u32, 300), 3);
}

#[test]
fn with_rack_a_segment_late_by_four_is_measured() {
    // The timer decides, so that a late original need not be sent again.
    let mut r = Rig::new(
        &Config {
            max_dup_thresh: 300,
            ..config(Recovery::RackTlp)
        },
        20,
    );
    r.write(60);
    r.ack(100, 0, &[(1, 2)]);
    r.ack(101, 2, &[]); // reordering: three segments above are no loss any more (RFC 8985 §6.2)
    r.ack(102, 2, &[(3, 7)]);
    r.ack(103, 7, &[]);
    assert_eq!(r.sender.rack.dup_thresh(MSS as u32, 300), 5);
}
