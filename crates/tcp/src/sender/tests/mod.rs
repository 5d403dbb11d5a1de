//! Scripted acknowledgements against a sender, with numbers from the RFCs: loss detection, recovery and timeouts.

mod forward;
mod growth;
mod plain;
mod probes_and_windows;
mod reordering;

use std::sync::{Arc, Mutex};

use gargalo_cc::{Acked, Cause, Congestion, Lost, Sent, Spurious};

use super::*;
use crate::config::Nagle;

const MSS: u64 = 1000;
const RTT: u64 = 100;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
const fn at(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000_000)
}

/// A controller that halves on congestion, never grows, and logs its calls.
#[derive(Clone, Debug)]
struct Diary {
    cwnd: u64,
    before: u64,
    log: Arc<Mutex<Vec<String>>>,
}

impl Diary {
    fn write(&self, line: String) {
        self.log.lock().expect("one thread").push(line);
    }
}

impl Controller for Diary {
    fn on_send(&mut self, sent: &Sent, _path: &Path<'_>) {
        if let Some(idle) = sent.idle
            && idle.duration > idle.rto
        {
            self.write(format!("idle {}", idle.duration.as_millis()));
        }
    }
    fn on_ack(&mut self, ack: &Acked, _path: &Path<'_>) {
        let recovery = if ack.in_recovery { " recovery" } else { "" };
        let limited = if ack.cwnd_limited { "" } else { " unlimited" };
        self.write(format!("acked {}{recovery}{limited}", ack.bytes.get()));
    }
    fn on_loss(&mut self, lost: &Lost, _path: &Path<'_>) {
        self.write(format!("lost {}", lost.bytes.get()));
    }
    fn on_congestion(&mut self, event: &Congestion, _path: &Path<'_>) {
        self.before = self.cwnd;
        self.cwnd = match event.cause {
            Cause::Timeout { .. } => MSS,
            _ => (self.cwnd.min(event.in_flight.get()) / 2).max(2 * MSS),
        };
        self.write(match event.cause {
            Cause::Timeout { consecutive } => format!("timeout {consecutive}"),
            cause => format!("{cause:?} of {}", event.in_flight.get()),
        });
    }
    fn on_spurious(&mut self, _event: &Spurious, _path: &Path<'_>) {
        self.cwnd = self.before;
        self.write("spurious".into());
    }
    fn on_recovered(&mut self, _now: Instant, _path: &Path<'_>) {
        self.write("recovered".into());
    }
    fn cwnd(&self) -> Bytes {
        Bytes::new(self.cwnd)
    }
    fn in_slow_start(&self) -> bool {
        true
    }
    fn phase(&self) -> &'static str {
        "diary"
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

struct Rig {
    sender: Sender,
    now: Instant,
    log: Arc<Mutex<Vec<String>>>,
    window: u64,
}

fn config(recovery: Recovery) -> Config {
    Config {
        mss: MSS as u16,
        recovery,
        ..Config::modern()
    }
}

/// The profile `linux-6` without pacing.
fn linux(recovery: Recovery) -> Config {
    Config {
        mss: MSS as u16,
        recovery,
        pacing: Pacing::Off,
        tail_loss_probe: false,
        ..Config::linux_6()
    }
}

impl Rig {
    /// Established at 0 ms over a path of 100 ms, window of `segments`.
    fn new(config: &Config, segments: u64) -> Self {
        Self::of_window(config, segments * MSS)
    }

    /// The same with a window in bytes.
    fn of_window(config: &Config, cwnd: u64) -> Self {
        let log = Arc::new(Mutex::new(Vec::new()));
        let diary = Diary {
            cwnd,
            before: 0,
            log: Arc::clone(&log),
        };
        Self::with(config, Box::new(diary), log)
    }

    fn with(
        config: &Config,
        controller: Box<dyn Controller>,
        log: Arc<Mutex<Vec<String>>>,
    ) -> Self {
        let config = Arc::new(config.clone());
        let mut sender = Sender::new(&config, controller, MSS as u16, at(0));
        let window = 1 << 30;
        sender.on_established(at(0), Some(ms(RTT)), 1, window);
        Self {
            sender,
            now: at(0),
            log,
            window,
        }
    }

    /// Turns tail loss probes off.
    fn without_probe(&mut self) {
        Arc::make_mut(&mut self.sender.config).tail_loss_probe = false;
    }

    /// The diary since the last call.
    fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().expect("one thread"))
    }

    /// Offsets sent now: `3` in segments, `R3` if again; `F` a FIN.
    fn sent(&mut self) -> Vec<String> {
        let now = self.now;
        std::iter::from_fn(|| self.sender.poll(now))
            .map(|o| {
                let again = if o.retransmission { "R" } else { "" };
                let cwr = if o.cwr { "W" } else { "" };
                let fin = if o.fin { "F" } else { "" };
                if o.probe {
                    "probe".into()
                } else {
                    format!("{again}{}{cwr}{fin}", o.offset as f64 / MSS as f64)
                }
            })
            .collect()
    }

    fn write(&mut self, segments: u64) -> Vec<String> {
        self.sender.append(segments * MSS, false);
        self.sent()
    }

    fn facts<'a>(&self, ack: u64, sacks: &'a [(u64, u64)]) -> AckFacts<'a> {
        AckFacts {
            now: self.now,
            ack: ack * MSS,
            sacks,
            dsack: None,
            window: self.window,
            echo_rtt: None,
            tsecr: None,
            ece: false,
            pure: true,
        }
    }

    /// An acknowledgement of `ack` segments at `time`, with these segments reported above.
    fn ack(&mut self, time: u64, ack: u64, sacks: &[(u64, u64)]) -> Vec<String> {
        self.now = at(time);
        let sacks: Vec<_> = sacks.iter().map(|(l, r)| (l * MSS, r * MSS)).collect();
        let facts = self.facts(ack, &sacks);
        self.sender.on_ack(&facts);
        self.sent()
    }

    fn ack_with(&mut self, time: u64, ack: u64, f: impl Fn(&mut AckFacts<'_>)) -> Vec<String> {
        self.now = at(time);
        let mut facts = self.facts(ack, &[]);
        f(&mut facts);
        self.sender.on_ack(&facts);
        self.sent()
    }

    /// Lets the next timer fire; when that is and what it sends.
    fn wait(&mut self) -> (u64, Vec<String>) {
        let next = self.sender.next_timeout().expect("a timer is armed");
        assert!(next > self.now, "a timer in the past");
        self.now = next;
        self.sender.on_timeout(next);
        let sent = self.sent();
        (self.now.as_nanos() / 1_000_000, sent)
    }
}

fn none() -> Vec<String> {
    Vec::new()
}

// ---- loss detection and recovery ----

#[test]
fn newreno_repairs_a_hole_per_round_trip_and_goes_on_sending() {
    // RFC 6582 §3.2. Segments 0 and 4 of ten are lost.
    let mut config = config(Recovery::NewReno);
    (config.prr, config.tail_loss_probe) = (false, false);
    let mut r = Rig::new(&config, 10);
    assert_eq!(r.write(30).len(), 10);
    // Limited transmit (RFC 3042).
    assert_eq!(r.ack(101, 0, &[]), ["10"]);
    assert_eq!(r.ack(102, 0, &[]), ["11"]);
    // Fast retransmit at once, although more than the halved window is in flight.
    assert_eq!(r.ack(103, 0, &[]), ["R0"]);
    let log = r.log();
    assert_eq!(log, ["lost 1000", "Loss of 12000"]);
    // Window 5 and twelve outstanding of which one was repaired: three have left; five more
    // duplicate acknowledgements are known (5 to 9), the next are of 10 and 11.
    assert_eq!(r.ack(104, 0, &[]), none());
    for t in 105..109 {
        r.ack(t, 0, &[]);
    }
    let before = r.sender.pipe();
    // Partial: 0 to 3 have arrived. Segment 4 leaves at once; the window deflates by what is
    // acknowledged less one segment.
    let sent = r.ack(203, 4, &[]);
    assert_eq!(sent[0], "R4");
    assert!(r.sender.pipe() <= before + MSS, "{}", r.sender.pipe());
    // The end: everything sent before the loss was found.
    r.ack(303, 12, &[]);
    assert!(r.log().contains(&"recovered".to_string()));
    assert_eq!(r.sender.episode.phase, Phase::Open);
}

#[test]
fn rfc6675_resends_at_once_and_then_as_the_pipe_drains() {
    let mut config = config(Recovery::Sack);
    (config.prr, config.tail_loss_probe) = (false, false);
    let mut r = Rig::new(&config, 10);
    r.write(30);
    assert_eq!(r.ack(100, 0, &[(1, 2)]), ["10"]);
    assert_eq!(r.ack(101, 0, &[(1, 3)]), ["11"]);
    assert_eq!(r.ack(102, 0, &[(1, 4)]), ["R0"]);
    assert_eq!(
        r.log()[2..],
        ["lost 1000", "Loss of 12000", "acked 1000 recovery"]
    );
    // Pipe 9 (4 to 11 and the retransmission), window 5: four have to leave first.
    for t in 103..107 {
        assert_eq!(r.ack(t, 0, &[(1, t - 98)]), none());
    }
    assert_eq!(r.ack(107, 0, &[(1, 9)]), ["12W"]);
}

#[test]
fn one_congestion_event_per_recovery_and_losses_first() {
    let mut r = Rig::new(&config(Recovery::RackTlp), 10);
    r.write(40);
    r.ack(100, 0, &[(1, 2)]);
    r.ack(101, 0, &[(1, 2), (3, 5)]);
    r.log();
    r.ack(102, 0, &[(1, 2), (3, 5), (6, 7)]);
    r.ack(103, 0, &[(1, 2), (3, 5), (6, 7), (8, 10)]);
    let log = r.log();
    let events = |what: &str| log.iter().filter(|l| l.starts_with(what)).count();
    assert_eq!(events("Loss of"), 0, "already reported: {log:?}");
    // Segments 5 and 7 follow 0 and 2 in the same recovery.
    assert_eq!(events("lost"), 2);
}

#[test]
fn rack_waits_a_quarter_of_the_least_round_trip_and_then_resends() {
    // RFC 8985 §6.2: segment 2 of three arrives; 0 and 1 may be reordered for RTT/4.
    let mut r = Rig::new(&config(Recovery::RackTlp), 10);
    assert_eq!(r.write(3).len(), 3);
    assert_eq!(r.ack(RTT, 0, &[(2, 3)]), none());
    assert_eq!(r.log(), ["acked 1000 unlimited"]);
    let (time, sent) = r.wait();
    assert_eq!(time, RTT + RTT / 4);
    // The first at once; nothing acknowledges yet what would let the second out.
    assert_eq!(sent[0], "R0");
    assert_eq!(r.log()[..3], ["lost 1000", "lost 1000", "Loss of 3000"]);
    assert_eq!(r.ack(225, 1, &[(2, 3)]), ["R1"]);
}

#[test]
fn rack_sees_the_loss_of_a_retransmission() {
    let mut r = Rig::new(&config(Recovery::RackTlp), 10);
    r.write(30);
    r.ack(100, 0, &[(1, 2)]);
    r.ack(101, 0, &[(1, 3)]);
    assert_eq!(r.ack(102, 0, &[(1, 4)]), ["R0"]);
    let mut again = none();
    // Data sent after the retransmission arrives, the retransmission does not.
    for t in 103..=125 {
        again.extend(r.ack(t + 100, 0, &[(1, t - 98)]));
    }
    assert!(again.contains(&"R0".to_string()), "{again:?}");
    assert_eq!(r.sender.counters.timeouts, 0);
}

#[test]
fn reordering_seen_stops_rack_from_counting_to_three() {
    let mut r = Rig::new(&config(Recovery::RackTlp), 10);
    r.write(40);
    // Segment 0 comes after 1: reordering.
    r.ack(100, 0, &[(1, 2)]);
    r.ack(101, 2, &[]);
    // Three above a hole are no proof any more.
    let sent = r.ack(102, 2, &[(3, 6)]);
    assert!(sent.iter().all(|s| !s.starts_with('R')), "{sent:?}");
    let (time, sent) = r.wait();
    assert_eq!((time, sent[0].as_str()), (102 + 25, "R2"));
}

#[test]
fn without_limited_transmit_nothing_leaves_on_duplicates() {
    let mut config = config(Recovery::Sack);
    config.limited_transmit = false;
    let mut r = Rig::new(&config, 10);
    r.write(30);
    assert_eq!(r.ack(100, 0, &[(1, 2)]), none());
    assert_eq!(r.ack(101, 0, &[(1, 3)]), none());
    assert_eq!(r.ack(102, 0, &[(1, 4)])[0], "R0");
}

// ---- timeouts ----

#[test]
fn timeouts_back_off_and_the_connection_is_given_up() {
    // RFC 6298 §5: 1 s (the minimum), doubled each time.
    let mut config = Config::rfc5681();
    config.mss = MSS as u16;
    config.data_retries = 3;
    let mut r = Rig::new(&config, 4);
    assert_eq!(r.write(10), ["0", "1", "2", "3"]);
    assert_eq!(r.wait(), (1000, vec!["R0".into()]));
    assert_eq!(
        r.log(),
        [
            "lost 1000",
            "lost 1000",
            "lost 1000",
            "lost 1000",
            "timeout 1"
        ]
    );
    assert_eq!(r.wait(), (3000, vec!["R0".into()]));
    assert_eq!(r.wait(), (7000, vec!["R0".into()]));
    assert_eq!(
        r.log(),
        ["lost 1000", "timeout 2", "lost 1000", "timeout 3"]
    );
    r.now = r.sender.next_timeout().unwrap();
    assert_eq!(r.now, at(15_000));
    r.sender.on_timeout(r.now);
    assert!(r.sender.has_given_up());
}

#[test]
fn after_a_timeout_everything_is_resent_in_order() {
    let mut config = Config::rfc5681();
    config.mss = MSS as u16;
    let mut r = Rig::new(&config, 4);
    r.write(4);
    assert_eq!(r.wait().1, ["R0"]);
    for n in 1..4 {
        assert_eq!(r.ack(1000 + 100 * n, n, &[]), [format!("R{n}")]);
    }
    r.ack(1500, 4, &[]);
    assert!(r.sender.next_timeout().is_none());
    assert!(r.log().contains(&"recovered".to_string()));
    // Karn: only the handshake gave a sample.
    assert_eq!(r.sender.rtt.latest(), Some(ms(RTT)));
}

#[test]
fn the_backed_off_timeout_holds_until_new_data_is_measured() {
    // RFC 6298 §5, Karn: an acknowledgement of what was sent again is no measurement without timestamps.
    let mut config = Config::rfc5681();
    config.mss = MSS as u16;
    let mut r = Rig::new(&config, 4);
    r.write(1);
    assert_eq!(r.wait(), (1000, vec!["R0".into()]));
    r.ack(1100, 1, &[]);
    r.write(1);
    assert_eq!(r.sender.next_timeout(), Some(at(1100 + 2000)));
    r.ack(1200, 2, &[]);
    r.write(1);
    assert_eq!(r.sender.next_timeout(), Some(at(1200 + 1000)));
    // An echoed timestamp is one.
    let mut r = Rig::new(&config, 4);
    r.write(1);
    r.wait();
    r.ack_with(1100, 1, |f| f.echo_rtt = Some(ms(5)));
    r.write(1);
    assert_eq!(r.sender.next_timeout(), Some(at(1100 + 1000)));
}

#[test]
fn what_waited_behind_a_hole_gives_no_round_trip() {
    let mut config = config(Recovery::NewReno);
    config.prr = false;
    let mut r = Rig::new(&config, 10);
    r.write(10);
    for t in 101..110 {
        r.ack(t, 0, &[]);
    }
    // The retransmission arrives and with it everything; segments 1 to 9 arrived long before.
    r.ack(203, 10, &[]);
    assert_eq!(r.sender.rtt.latest(), Some(ms(RTT)));
}

#[test]
fn go_back_n_sends_everything_again_from_the_first_missing_segment_on() {
    let mut config = config(Recovery::GoBackN);
    (config.prr, config.limited_transmit) = (false, false);
    let mut r = Rig::new(&config, 10);
    r.write(30);
    assert!(r.ack(101, 0, &[]).is_empty() && r.ack(102, 0, &[]).is_empty());
    // Half of the window (the diary's), from the first segment on; what arrived is sent again too.
    let again = r.ack(103, 0, &[]);
    assert_eq!(again.len(), 5, "{again:?}");
    // A partial acknowledgement lets the next ones go, without another reduction.
    assert_eq!(r.ack(203, 5, &[]).len(), 5);
    assert_eq!(r.sender.episode.phase, Phase::Recovery);
    r.ack(303, 10, &[]);
    assert_eq!(r.sender.episode.phase, Phase::Open);
}

#[test]
fn duplicates_after_a_timeout_open_no_window() {
    let mut config = config(Recovery::Sack);
    config.frto = false; // else what arrives late proves the timeout wrong
    let mut r = Rig::new(&config, 10);
    r.write(30);
    r.ack(150, 0, &[(9, 10)]);
    r.wait(); // the timeout resends the first segment
    r.log();
    let now = r.now.as_nanos() / 1_000_000;
    r.ack(now + 50, 0, &[(10, 11), (9, 10)]); // later segments only: growth is withheld as in recovery
    assert!(
        r.log()
            .iter()
            .all(|l| !l.starts_with("acked") || l.ends_with("recovery"))
    );
    r.ack(now + 100, 1, &[(10, 11), (9, 10)]);
    assert!(r.log().contains(&"acked 1000".to_owned()));
}

#[test]
fn a_spurious_timeout_is_found_by_originals_that_arrive() {
    // RFC 5682 §3.1.
    let mut r = Rig::new(&config(Recovery::RackTlp), 4);
    r.without_probe();
    r.write(20);
    assert_eq!(r.wait().1, ["R0"]);
    r.log();
    let sent = r.ack(450, 2, &[]);
    assert_eq!(r.log(), ["spurious", "acked 2000"]);
    assert_eq!(sent, ["4W", "5"], "nothing else was lost");
    assert_eq!(r.sender.counters.spurious_losses, 1);
}

#[test]
fn the_last_segment_before_a_timeout_is_an_original_too() {
    let mut r = Rig::new(&config(Recovery::RackTlp), 4);
    r.without_probe();
    r.write(20);
    assert_eq!(r.wait().1, ["R0"]);
    r.ack(450, 0, &[(3, 4)]);
    assert_eq!(r.sender.counters.spurious_losses, 1);
}

#[test]
fn a_real_timeout_is_not_undone() {
    let mut r = Rig::new(&config(Recovery::RackTlp), 4);
    r.without_probe();
    r.write(20);
    assert_eq!(r.wait().1, ["R0"]);
    // The retransmission arrives: new data tells whether more is missing (RFC 5682 §3.1 step 2b).
    assert_eq!(r.ack(450, 1, &[]), ["4W"]);
    // It overtakes nothing: the rest was lost.
    assert_eq!(r.ack(550, 1, &[(4, 5)]), ["R1"]);
    assert_eq!(r.sender.counters.spurious_losses, 0);
}

#[test]
fn frto_without_sack_needs_two_acknowledgements_that_advance() {
    // RFC 5682 §2.1. Segments 1 to 3 waited behind the hole: no proof.
    let mut config = config(Recovery::NewReno);
    config.prr = false;
    let mut r = Rig::new(&config, 6);
    r.write(20);
    assert_eq!(r.wait().1, ["R0"]);
    r.ack(450, 4, &[]);
    assert_eq!(r.sender.counters.spurious_losses, 0);
    r.ack(460, 5, &[]);
    assert_eq!(r.sender.counters.spurious_losses, 1);
}

#[test]
fn eifel_undoes_when_the_original_was_only_late() {
    // RFC 3522: the echo is of the time of the original.
    let mut r = Rig::new(&config(Recovery::Sack), 10);
    r.now = at(50);
    r.write(30);
    r.ack(150, 0, &[(1, 2)]);
    r.ack(151, 0, &[(1, 3)]);
    assert_eq!(r.ack(152, 0, &[(1, 4)])[0], "R0");
    r.log();
    r.ack_with(155, 4, |f| f.tsecr = Some(50));
    assert_eq!(r.log(), ["spurious", "acked 1000"]);
    assert_eq!(r.sender.episode.phase, Phase::Open);
    assert_eq!(r.sender.window(), 10 * MSS);
}

#[test]
fn dsack_undoes_when_every_retransmission_was_a_duplicate() {
    let mut r = Rig::new(&config(Recovery::Sack), 10);
    r.write(30);
    r.ack(150, 0, &[(1, 2)]);
    r.ack(151, 0, &[(1, 3)]);
    assert_eq!(r.ack(152, 0, &[(1, 4)])[0], "R0");
    r.ack(155, 4, &[]);
    r.log();
    r.ack_with(252, 8, |f| f.dsack = Some((0, MSS)));
    assert_eq!(r.log()[0], "spurious");
}
