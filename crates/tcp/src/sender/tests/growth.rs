//! How the window grows with the acknowledgements: real congestion controls on a scripted sender.

use gargalo_cc::{ALGORITHMS, Init, Params};
use rand_pcg::Pcg64;

use super::*;
use crate::endpoint::Room;

impl Rig {
    /// With a congestion control by name, in slow start at `segments`.
    fn controlled(name: &str, config: &Config, segments: u64) -> Self {
        let init = Init {
            now: at(0),
            mss: Bytes::new(MSS),
            initial_window: Bytes::new(segments * MSS),
            rng: Pcg64::new(1, 2),
        };
        let controller = gargalo_cc::build(name, &Params::new(), init).expect("registered");
        Self::with(config, controller, Arc::default())
    }

    fn cwnd(&self) -> u64 {
        self.sender.controller.cwnd().get()
    }
}

fn sack() -> Config {
    let mut config = config(Recovery::Sack);
    config.tail_loss_probe = false;
    config
}

#[test]
fn limited_transmit_sends_one_segment_for_each_duplicate() {
    // RFC 3042 §2, RFC 5681 §3.2 step 1: the window stays as it is, and each duplicate lets one segment out.
    for recovery in [Recovery::RackTlp, Recovery::Sack] {
        let mut r = Rig::controlled("reno", &config(recovery), 10);
        assert_eq!(r.write(40).len(), 10);
        assert_eq!(r.ack(100, 0, &[(1, 2)]), ["10"]);
        assert_eq!(r.ack(101, 0, &[(1, 3)]), ["11"]);
        assert_eq!(r.cwnd(), 10 * MSS);
        let flight = r.sender.flight();
        assert_eq!((flight.size, flight.pipe), (12 * MSS, 10 * MSS));
    }
}

#[test]
fn no_window_grows_for_what_is_only_reported() {
    for a in ALGORITHMS {
        let mut r = Rig::controlled(a.name, &sack(), 10);
        if r.sender.controller.governs_recovery() && !matches!(a.name, "tahoe" | "prague") {
            continue; // BBR and Copa follow deliveries, not acknowledgements
        }
        r.write(200);
        r.ack(100, 2, &[]);
        let before = r.cwnd();
        r.ack(101, 2, &[(3, 4)]);
        r.ack(102, 2, &[(3, 5)]);
        assert!(r.cwnd() <= before, "{}: {} > {before}", a.name, r.cwnd());
    }
}

#[test]
fn what_was_reported_counts_when_it_is_acknowledged() {
    // RFC 5681 §3.1: N is what the acknowledgement covers, in whatever order it arrived.
    let mut r = Rig::controlled("reno", &sack(), 10);
    r.write(40);
    r.ack(100, 0, &[(1, 2)]);
    assert_eq!(r.cwnd(), 10 * MSS);
    r.ack(101, 2, &[]);
    assert_eq!(r.cwnd(), 12 * MSS);
}

#[test]
fn what_was_reported_before_a_loss_never_counts() {
    let mut r = Rig::controlled("reno", &sack(), 10);
    r.write(100);
    for right in 2..=12 {
        r.ack(98 + right, 0, &[(1, right)]);
    }
    assert_eq!(r.cwnd(), 5 * MSS);
    // The acknowledgement that ends recovery leaves the window at ssthresh (RFC 5681 §3.2 step 6).
    r.ack(203, 12, &[]);
    assert_eq!((r.sender.episode.phase, r.cwnd()), (Phase::Open, 5 * MSS));
}

#[test]
fn without_sack_the_end_of_recovery_leaves_the_window_at_ssthresh() {
    // RFC 6582 §3.2 step 3: the full acknowledgement covers all that the duplicates stood for.
    let mut config = config(Recovery::NewReno);
    (config.prr, config.tail_loss_probe) = (false, false);
    let mut r = Rig::controlled("reno", &config, 10);
    r.write(100);
    for t in 101..112 {
        r.ack(t, 0, &[]);
    }
    assert_eq!(r.cwnd(), 5 * MSS);
    r.ack(203, 12, &[]);
    assert_eq!((r.sender.episode.phase, r.cwnd()), (Phase::Open, 5 * MSS));
}

#[test]
fn what_duplicates_stood_for_grows_no_window_in_linux() {
    // Linux counts it as delivered by the duplicate; one segment at least is new.
    let windows = |config: Config| {
        let mut r = Rig::controlled("reno", &config, 10);
        r.write(30);
        [(100, 0), (110, 2), (120, 4), (130, 4), (131, 4), (140, 5)].map(|(time, ack)| {
            r.ack(time, ack, &[]);
            r.cwnd() / MSS
        })
    };
    assert_eq!(windows(linux(Recovery::NewReno)), [10, 11, 13, 13, 13, 14]);
    assert_eq!(windows(config(Recovery::NewReno)), [10, 12, 14, 14, 14, 15]);
}

/// Writes when rounds start, milliseconds; the window is ten segments.
#[derive(Clone, Debug)]
struct Rounds(Arc<Mutex<Vec<String>>>);

impl Controller for Rounds {
    fn on_ack(&mut self, ack: &Acked, _path: &Path<'_>) {
        if ack.round_start {
            let at = ack.now.as_nanos() / 1_000_000;
            self.0.lock().expect("one thread").push(at.to_string());
        }
    }
    fn on_congestion(&mut self, _event: &Congestion, _path: &Path<'_>) {}
    fn cwnd(&self) -> Bytes {
        Bytes::new(10 * MSS)
    }
    fn in_slow_start(&self) -> bool {
        false
    }
    fn phase(&self) -> &'static str {
        "rounds"
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[test]
fn a_round_starts_with_the_first_acknowledgement_of_each_flight() {
    // RFC 9406 §4.2: a round ends when the byte that was next to be sent at its start is acknowledged. Flights of ten
    // segments, acknowledged in pairs; the last pair of a flight belongs to its round.
    let log = Arc::new(Mutex::new(Vec::new()));
    let rounds = Box::new(Rounds(Arc::clone(&log)));
    let mut r = Rig::with(&config(Recovery::RackTlp), rounds, log);
    r.write(100);
    for flight in 1..6 {
        for pair in 1..=5 {
            r.ack(100 * flight + pair, 10 * (flight - 1) + 2 * pair, &[]);
        }
    }
    assert_eq!(r.log(), ["101", "201", "301", "401", "501"]);
}

#[test]
fn with_pacing_segments_leave_in_bursts_of_the_given_time() {
    // A window of ten segments in 100 ms, 1.2 times in avoidance: 120 segments per second, six in 50 ms.
    for (burst, at_once) in [(0, 2), (50, 6), (1000, 10)] {
        let mut config = config(Recovery::RackTlp);
        config.pacing = crate::Pacing::Window(crate::PacingFactors {
            burst: ms(burst),
            ..crate::PacingFactors::default()
        });
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut r = Rig::with(&config, Box::new(Rounds(Arc::clone(&log))), log);
        assert_eq!(r.write(100).len(), at_once, "{burst} ms");
    }
}

#[test]
fn linux_paces_none_of_the_first_ten_segments() {
    let mut config = linux(Recovery::RackTlp);
    config.pacing = crate::Pacing::Window(crate::PacingFactors::default());
    let mut r = Rig::new(&config, 20);
    // The tenth begins the first burst, of two.
    assert_eq!(r.write(100).len(), 11);
    assert!((r.ack(100, 10, &[]).len()) < 4);
}

#[test]
fn the_room_for_new_data_is_the_window_less_what_is_in_flight() {
    let room = |r: &Rig| r.sender.room(r.now);
    let mut r = Rig::new(&sack(), 3);
    assert_eq!(room(&r), Room::Open(3 * MSS));
    r.write(2);
    assert_eq!(room(&r), Room::Open(MSS));
    r.write(1);
    assert_eq!(room(&r), Room::Full);
    r.ack(100, 1, &[]);
    assert_eq!(room(&r), Room::Open(MSS));
    // A window below a segment lets one out when nothing is in flight.
    let mut r = Rig::of_window(&sack(), MSS / 2);
    assert_eq!(room(&r), Room::Open(MSS));
    r.write(1);
    assert_eq!(room(&r), Room::Full);
}

#[test]
fn there_is_no_room_before_what_is_lost_was_sent_again() {
    let mut config = sack();
    (config.prr, config.rescue_retransmission) = (false, false);
    let mut r = Rig::new(&config, 10);
    r.write(8);
    let facts = r.facts(0, &[(MSS, 8 * MSS)]);
    r.sender.on_ack(&facts);
    assert_eq!(r.sender.room(r.now), Room::Full);
    assert_eq!(r.sent(), ["R0"]);
    // Half of the eight segments less the one in flight.
    assert_eq!(r.sender.room(r.now), Room::Open(3 * MSS));
}

#[test]
fn the_room_is_for_new_data_on_duplicates_with_limited_transmit_only() {
    for (recovery, sacks) in [(Recovery::Sack, &[(1, 2)][..]), (Recovery::NewReno, &[])] {
        for (limited_transmit, expected) in [(true, Room::Open(6 * MSS)), (false, Room::Full)] {
            let mut config = config(recovery);
            config.limited_transmit = limited_transmit;
            let mut r = Rig::new(&config, 10);
            r.write(5);
            r.ack(100, 0, sacks);
            assert_eq!(r.sender.room(r.now), expected, "{recovery:?}");
            r.ack(101, 2, &[]);
            assert_eq!(r.sender.room(r.now), Room::Open(7 * MSS));
        }
    }
}

#[test]
fn a_paced_sender_has_room_from_its_next_release_on() {
    let mut config = sack();
    config.pacing = crate::Pacing::Window(crate::PacingFactors::default());
    let mut r = Rig::new(&config, 20);
    let sent = r.write(100).len();
    let Room::Paced(release) = r.sender.room(r.now) else {
        panic!("{:?} after {sent}", r.sender.room(r.now));
    };
    assert!(release > r.now);
    r.now = release;
    assert!(matches!(r.sender.room(r.now), Room::Open(_)));
}

#[test]
fn the_intervals_between_losses_begin_with_each_loss_and_with_the_first_timeout_of_a_row() {
    // Khalili et al., CoNEXT 2012: bytes since the last loss, and between the last two.
    let intervals = |r: &Rig| {
        let of_path = r.sender.sibling(true);
        [of_path.since_loss, of_path.between_losses].map(|b| b.get() / MSS)
    };
    let mut config = sack();
    config.frto = false;
    let mut r = Rig::new(&config, 10);
    r.write(100);
    r.ack(100, 4, &[]);
    assert_eq!(intervals(&r), [4, 0]);
    r.ack(101, 4, &[(5, 8)]);
    assert_eq!(intervals(&r), [0, 7]);
    r.ack(200, 10, &[]);
    assert_eq!(intervals(&r), [3, 7]);
    for timeouts in 1..=3 {
        let (_, sent) = r.wait();
        assert_eq!(sent, ["R10"]);
        assert_eq!(intervals(&r), [0, 3], "{timeouts} timeouts");
    }
}

#[test]
fn a_sender_whose_upper_layer_has_more_is_not_limited_by_the_application() {
    for more in [false, true] {
        let mut r = Rig::new(&sack(), 10);
        r.sender.set_more(more);
        r.sender.append(2 * MSS, false);
        let orders: Vec<_> = std::iter::from_fn(|| r.sender.poll(r.now)).collect();
        let pushes: Vec<_> = orders.iter().map(|o| o.psh).collect();
        assert_eq!(pushes, [false, !more]);
        assert_eq!(r.sender.sampler.is_app_limited(), !more);
    }
}

#[test]
fn a_turn_left_unused_limits_a_sender_that_has_room_and_something_in_flight() {
    for (in_flight, limited) in [(0, false), (2, true), (3, false)] {
        let mut r = Rig::new(&sack(), 3);
        r.sender.set_more(true);
        r.write(in_flight);
        r.sender.leave_unused();
        assert_eq!(r.sender.sampler.is_app_limited(), limited, "{in_flight}");
    }
}

#[test]
fn siblings_see_the_window_after_recovery_while_it_lasts() {
    let mut config = sack();
    config.frto = false;
    let mut r = Rig::controlled("reno", &config, 10);
    let settled = |r: &Rig| [r.sender.sibling(true).cwnd.get(), r.cwnd()].map(|n| n / MSS);
    r.write(10);
    assert_eq!(settled(&r), [10, 10]);
    r.wait();
    assert_eq!(settled(&r), [5, 1]);
    r.ack(2000, 10, &[]);
    assert_eq!(settled(&r), [2, 2]);
}
