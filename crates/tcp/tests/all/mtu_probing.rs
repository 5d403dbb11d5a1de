//! Packetization layer path MTU discovery (RFC 4821): the search for the largest segment.

use std::sync::{Arc, Mutex};

use crate::common::*;
use gargalo_cc::{Acked, Congestion, Controller, Lost, Path};
use gargalo_tcp::{Config, Endpoint, MtuProbing};
use gargalo_units::{Bytes, Duration};
use gargalo_wire::tcp::Segment;

/// A constant window that notes what it is told of losses.
#[derive(Clone, Debug, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn write(&self, note: String) {
        self.0.lock().expect("one thread").push(note);
    }
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("one thread"))
    }
}

impl Controller for Notes {
    fn on_ack(&mut self, _ack: &Acked, _path: &Path<'_>) {}
    fn on_loss(&mut self, lost: &Lost, _path: &Path<'_>) {
        self.write(format!("lost {}", lost.bytes.get()));
    }
    fn on_congestion(&mut self, event: &Congestion, _path: &Path<'_>) {
        self.write(format!("{:?}", event.cause));
    }
    fn on_mss(&mut self, path: &Path<'_>) {
        self.write(format!("mss {}", path.mss.get()));
    }
    fn cwnd(&self) -> Bytes {
        Bytes::new(30_000)
    }
    fn in_slow_start(&self) -> bool {
        false
    }
    fn phase(&self) -> &'static str {
        "constant"
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// A client that searches by `mode`, over a network that drops what `drops` says, and the notes of its controller.
fn pair(mode: MtuProbing, mut drops: impl FnMut(&Segment) -> bool + 'static) -> (Pair, Notes) {
    let notes = Notes::default();
    let client = Config {
        mtu_probing: mode,
        ..Config::modern()
    };
    let pair = Pair::of([
        Endpoint::connect(client, Box::new(notes.clone()), init(0), at(0)),
        Endpoint::listen(Config::modern(), fixed(), init(1), at(0)),
    ])
    .with(move |side, n, segment| {
        if side == 0 && drops(segment) {
            Fate::Drop
        } else {
            // A microsecond apart, so that what is sent after an acknowledgement has a time of its own.
            Fate::Late(Duration::from_micros(n as u64))
        }
    });
    (pair, notes)
}

/// Transfers `bytes` within `limit`.
#[track_caller]
fn transfer(pair: &mut Pair, bytes: u64, limit: Duration) {
    let expected = pair.read[1] + bytes;
    assert_eq!(pair.ends[0].write_synthetic(bytes), bytes);
    pair.run_for(limit);
    assert_eq!(pair.read[1], expected);
}

fn longer(than: u32) -> impl FnMut(&Segment) -> bool {
    move |segment| segment.payload.len() > than
}

#[test]
fn the_search_begins_at_1024_bytes_and_tries_the_largest_first() {
    let (mut pair, notes) = pair(MtuProbing::Always, |_| false);
    transfer(&mut pair, 200_000, ms(500));
    let data = pair.log.iter().filter(|l| l.1 == 0);
    let sizes: Vec<_> = data
        .map(|l| l.2.segment.payload.len())
        .filter(|n| *n > 0)
        .collect();
    // 1024 bytes less the timestamps; one probe; when it is acknowledged, all are as long.
    assert_eq!(sizes[..3], [1448, 1012, 1012]);
    let others = sizes[1..].iter().take_while(|n| **n == 1012).count();
    assert!(
        (20..40).contains(&others),
        "a window of 30000 bytes: {others}"
    );
    assert_eq!(pair.ends[0].mss(), 1448);
    assert_eq!(notes.take(), ["mss 1012", "mss 1448"]);
}

#[test]
fn a_lost_probe_is_no_sign_of_congestion() {
    for narrow in [1100, 1300, 1400] {
        let (mut pair, notes) = pair(MtuProbing::Always, longer(narrow));
        transfer(&mut pair, 3_000_000, Duration::from_secs(20));
        let found = pair.ends[0].mss();
        assert!(
            (narrow - 8..=narrow).contains(&found),
            "{found} of {narrow}"
        );
        let notes = notes.take();
        assert!(notes.iter().all(|n| n.starts_with("mss")), "{notes:?}");
        let stats = pair.ends[0].stats();
        assert_eq!(stats.sender.timeouts + stats.sender.lost_packets, 0);
        // What the probes carried was sent again in two segments.
        let probes = pair
            .log
            .iter()
            .filter(|l| l.2.segment.payload.len() > narrow);
        assert_eq!(
            stats.sender.retransmitted_packets,
            2 * probes.count() as u64
        );
    }
}

#[test]
fn one_lost_probe_says_nothing_about_its_size() {
    let mut n = 0;
    let once = move |segment: &Segment| {
        n += u32::from(segment.payload.len() > 1012);
        segment.payload.len() > 1012 && n == 1
    };
    let (mut pair, notes) = pair(MtuProbing::Always, once);
    transfer(&mut pair, 500_000, Duration::from_secs(2));
    assert_eq!(pair.ends[0].mss(), 1448);
    assert_eq!(notes.take(), ["mss 1012", "mss 1448"]);
}

#[test]
fn a_probe_that_is_lost_with_others_was_lost_by_congestion() {
    let mut n = 0;
    let burst = move |segment: &Segment| {
        n += u32::from(!segment.payload.is_empty());
        !segment.payload.is_empty() && n <= 2
    };
    let (mut pair, notes) = pair(MtuProbing::Always, burst);
    transfer(&mut pair, 500_000, Duration::from_secs(2));
    assert_eq!(pair.ends[0].mss(), 1448);
    assert_eq!(notes.take(), ["mss 1012", "lost 1012", "Loss", "mss 1448"]);
}

#[test]
fn a_black_hole_is_left_by_smaller_segments_and_searched_upward() {
    let (mut pair, _notes) = pair(MtuProbing::BlackHole, longer(1200));
    transfer(&mut pair, 3_000_000, Duration::from_secs(60));
    let found = pair.ends[0].mss();
    assert!((1192..=1200).contains(&found), "{found}");
    assert_eq!(pair.ends[0].stats().sender.timeouts, 3);
    let (mut pair, _notes) = self::pair(MtuProbing::Off, longer(1200));
    pair.ends[0].write_synthetic(100_000);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.read[1], 0);
}

#[test]
fn what_was_too_long_is_tried_again_after_ten_minutes() {
    let narrow = Arc::new(Mutex::new(1200));
    let path = Arc::clone(&narrow);
    let (mut pair, _notes) = pair(MtuProbing::Always, move |segment| {
        segment.payload.len() > *path.lock().expect("one thread")
    });
    transfer(&mut pair, 3_000_000, Duration::from_secs(30));
    assert!(pair.ends[0].mss() <= 1200);
    *narrow.lock().expect("one thread") = 9000;
    pair.run_for(Duration::from_secs(500));
    transfer(&mut pair, 300_000, Duration::from_secs(5));
    assert!(pair.ends[0].mss() <= 1200);
    pair.run_for(Duration::from_secs(100));
    transfer(&mut pair, 300_000, Duration::from_secs(5));
    assert_eq!(pair.ends[0].mss(), 1448);
}

#[test]
fn a_router_that_gives_the_mtu_ends_the_search_at_it() {
    let (mut pair, notes) = pair(MtuProbing::Always, longer(1300));
    pair.ends[0].write_synthetic(30_000);
    pair.run_for(ms(25));
    let now = pair.now;
    // 1312 bytes with the timestamps.
    pair.ends[0].set_mss(now, 1312);
    pair.ends[0].write_synthetic(300_000);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.read[1], 330_000);
    assert_eq!(pair.ends[0].mss(), 1300);
    let told = pair.log.iter().filter(|l| l.2.segment.payload.len() > 1300);
    assert_eq!(told.count(), 1, "the first probe only");
    assert!(notes.take().iter().all(|n| n.starts_with("mss")));
}
