use std::sync::{Arc, Mutex};

use gargalo_cc::{Acked, Congestion, Controller, Lost, Path, Sent, Spurious};
use gargalo_units::{Bytes, Duration, Instant};

use super::*;
use crate::Realm;
use crate::controller::report::Report;
use crate::tls::lock;

/// A controller that logs its calls; its window can be set.
#[derive(Clone, Debug, Default)]
struct Scribe(Arc<Mutex<(Vec<String>, u64)>>);

impl Scribe {
    fn write(&self, line: String) {
        lock(&self.0).0.push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.0).0)
    }
}

impl Controller for Scribe {
    fn on_send(&mut self, sent: &Sent, _: &Path<'_>) {
        if let Some(idle) = sent.idle {
            self.write(format!("idle {}", idle.duration.as_millis()));
        }
    }

    fn on_ack(&mut self, a: &Acked, path: &Path<'_>) {
        let flags = [
            (a.round_start, " round"),
            (a.in_recovery, " recovery"),
            (a.cwnd_limited, " limited"),
            (a.ce_bytes > Bytes::ZERO, " ce"),
            (a.sample.is_some_and(|s| s.app_limited), " app"),
        ];
        let flags: String = flags.iter().filter(|f| f.0).map(|f| f.1).collect();
        let rtt = a.rtt.map_or("-".to_owned(), |r| r.as_millis().to_string());
        assert_eq!(path.in_flight, a.in_flight);
        self.write(format!(
            "acked {} rtt {rtt} flight {}->{}{flags}",
            a.bytes.get(),
            a.in_flight_before.get(),
            a.in_flight.get()
        ));
    }

    fn on_loss(&mut self, l: &Lost, _: &Path<'_>) {
        let first = if l.new_burst { " first" } else { "" };
        self.write(format!(
            "lost {} flight {}{first}",
            l.bytes.get(),
            l.in_flight.get()
        ));
    }

    fn on_congestion(&mut self, c: &Congestion, _: &Path<'_>) {
        let (lost, flight) = (c.lost.get(), c.in_flight.get());
        self.write(format!(
            "congestion {:?} lost {lost} flight {flight}",
            c.cause
        ));
    }

    fn on_spurious(&mut self, s: &Spurious, _: &Path<'_>) {
        self.write(format!("spurious {:?}", s.cause));
    }

    fn on_recovered(&mut self, _: Instant, _: &Path<'_>) {
        self.write("recovered".to_owned());
    }

    fn on_mss(&mut self, path: &Path<'_>) {
        self.write(format!("mss {}", path.mss.get()));
    }

    fn cwnd(&self) -> Bytes {
        Bytes::new(lock(&self.0).1)
    }

    fn ssthresh(&self) -> Option<Bytes> {
        Some(Bytes::new(1))
    }

    fn in_slow_start(&self) -> bool {
        false
    }

    fn phase(&self) -> &'static str {
        "test"
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

const SRTT: std::time::Duration = std::time::Duration::from_millis(100);

/// A sender with a window of 20 packets of 1000 bytes.
fn sender(max_window: u64) -> (Sender, Scribe) {
    let scribe = Scribe::default();
    lock(&scribe.0).1 = 20_000;
    let settings = Settings {
        initial_window: 10_000,
        max_window,
        pacing: true,
        time: Realm::new(1).unwrap().time(),
    };
    let reporter = Reporter::new(Arc::new(Report::default()), true);
    let sender = Sender::new(Box::new(scribe.clone()), ms(0), 1000, settings, reporter);
    (sender, scribe)
}

fn send(s: &mut Sender, at: u64, numbers: std::ops::Range<u64>) {
    for n in numbers {
        s.on_sent(ms(at), 1000, n);
    }
}

/// Acknowledges packets sent at `sent`, as noq does.
fn ack(s: &mut Sender, at: u64, sent: u64, numbers: std::ops::Range<u64>, left: u64) {
    let largest = numbers.end - 1;
    for n in numbers {
        s.on_acked(ms(at), ms(sent), 1000, n, false, SRTT);
    }
    assert!(s.end_of_acks(left, Some(largest)));
}

#[test]
fn losses_come_before_the_acknowledgement_that_told_of_them() {
    let (mut s, scribe) = sender(u64::MAX);
    send(&mut s, 0, 0..10);
    assert_eq!(scribe.take(), ["idle 0"]);
    ack(&mut s, 100, 0, 0..1, 9_000);
    s.release();
    assert_eq!(
        scribe.take(),
        ["acked 1000 rtt 100 flight 10000->9000 round"]
    );
    // Packets 1 and 2 are missing.
    ack(&mut s, 101, 0, 3..6, 6_000);
    assert_eq!(scribe.take(), [""; 0], "held back");
    s.on_lost(ms(101), 1000, 1);
    s.on_lost(ms(101), 1000, 2);
    s.on_congestion(ms(101), ms(0), false, false, 2000);
    s.release();
    assert_eq!(
        scribe.take(),
        [
            "lost 1000 flight 5000 first",
            "lost 1000 flight 4000",
            "congestion Loss lost 2000 flight 6000",
            "acked 3000 rtt 101 flight 9000->4000 recovery",
        ]
    );
    // Another loss of the same flight is the same event.
    ack(&mut s, 102, 0, 7..10, 1_000);
    s.on_lost(ms(102), 1000, 6);
    s.on_congestion(ms(102), ms(0), false, false, 1000);
    s.release();
    assert_eq!(
        scribe.take(),
        [
            "lost 1000 flight 0 first",
            "acked 3000 rtt 102 flight 4000->0 recovery",
        ]
    );
    // A packet sent afterwards ends it, and may begin the next.
    send(&mut s, 103, 10..14);
    ack(&mut s, 203, 103, 10..11, 3_000);
    s.release();
    let calls = scribe.take();
    assert_eq!(calls[0], "idle 103");
    assert_eq!(
        calls[1..],
        ["recovered", "acked 1000 rtt 100 flight 4000->3000 round"]
    );
    s.on_lost(ms(204), 1000, 11);
    s.on_congestion(ms(204), ms(103), false, false, 1000);
    assert_eq!(
        scribe.take(),
        [
            "lost 1000 flight 2000 first",
            "congestion Loss lost 1000 flight 3000"
        ]
    );
    s.on_spurious();
    assert_eq!(scribe.take(), ["spurious Loss"]);
}

#[test]
fn persistent_congestion_is_a_timeout_during_which_windows_grow() {
    let (mut s, scribe) = sender(u64::MAX);
    send(&mut s, 0, 0..3);
    send(&mut s, 900, 3..5);
    ack(&mut s, 1000, 900, 4..5, 4_000);
    for n in 0..4 {
        s.on_lost(ms(1000), 1000, n);
    }
    s.on_congestion(ms(1000), ms(900), true, false, 4000);
    s.release();
    let calls = scribe.take();
    assert!(
        calls.contains(&"congestion Timeout { consecutive: 1 } lost 4000 flight 4000".to_owned())
    );
    assert_eq!(
        calls.last().unwrap(),
        "acked 1000 rtt 100 flight 5000->0 round"
    );
    s.on_spurious();
    assert_eq!(scribe.take(), ["spurious Timeout { consecutive: 1 }"]);
}

#[test]
fn marks_reduce_once_a_round_and_are_told_with_each_acknowledgement() {
    let (mut s, scribe) = sender(u64::MAX);
    send(&mut s, 0, 0..4);
    for (at, n) in [(100, 0), (101, 1)] {
        ack(&mut s, at, 0, n..n + 1, 3_000 - 1_000 * n);
        s.on_congestion(ms(at), ms(0), false, true, 0);
        s.release();
    }
    assert_eq!(
        scribe.take()[1..],
        [
            "congestion Ecn lost 0 flight 3000",
            "acked 1000 rtt 100 flight 4000->3000 round recovery ce",
            "acked 1000 rtt 101 flight 3000->2000 recovery ce",
        ]
    );
}

#[test]
fn the_limit_is_remembered_for_a_round() {
    let (mut s, scribe) = sender(u64::MAX);
    send(&mut s, 0, 0..20);
    s.on_window_limited();
    ack(&mut s, 100, 0, 0..2, 18_000);
    s.release();
    send(&mut s, 101, 20..21);
    ack(&mut s, 102, 0, 2..19, 2_000);
    s.release();
    let calls = scribe.take();
    assert!(
        calls[1].ends_with("round limited") && calls[2].ends_with("limited"),
        "{calls:?}"
    );
    // The application has nothing more: the next round is not limited, and its samples say so.
    s.on_acked(ms(103), ms(0), 1000, 19, true, SRTT);
    s.end_of_acks(1_000, Some(19));
    s.release();
    send(&mut s, 150, 21..22);
    ack(&mut s, 201, 101, 20..21, 1_000);
    s.release();
    ack(&mut s, 250, 150, 21..22, 0);
    s.release();
    let calls = scribe.take();
    assert!(!calls[2].contains("limited"), "{calls:?}");
    assert!(calls[2].ends_with(" app"), "{calls:?}");
}

#[test]
fn windows_have_bounds_and_rates_follow_from_them() {
    let (mut s, scribe) = sender(15_000);
    assert_eq!(s.window(), 15_000);
    lock(&scribe.0).1 = 1;
    assert_eq!(s.window(), 2_000, "two packets at least");
    lock(&scribe.0).1 = 12_000;
    assert_eq!(s.pacing_rate(), None, "no round-trip time yet");
    send(&mut s, 0, 0..10);
    ack(&mut s, 100, 0, 0..10, 0);
    s.release();
    assert_eq!(s.pacing_rate(), None, "a burst to begin with");
    send(&mut s, 100, 10..20);
    // 1.2 windows of 12 kB in 100 ms.
    assert_eq!(s.pacing_rate().unwrap().as_bps(), 1_152_000);
    s.on_mtu(1400);
    assert_eq!(scribe.take().last().unwrap(), "mss 1400");
    let mut moved = s.on_new_path();
    moved.on_lost(ms(150), 1000, 10);
    assert_eq!(
        scribe.take(),
        [""; 0],
        "a loss on the old path does not concern the new one"
    );
}
