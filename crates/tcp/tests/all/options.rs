//! Options of a connection in use.

use crate::common::*;
use gargalo_tcp::{Config, Ending, Error, Event, Nagle, State};
use gargalo_units::{Bytes, Duration, Ecn};
use gargalo_wire::tcp::{Extra, Flags};

fn acknowledge(l: &mut Lone, bytes: u32) {
    let mut ack = l.segment(Flags::ACK, 0, 0);
    ack.ack = ack.ack + bytes;
    l.end.handle(l.now, ack, Ecn::NotEct);
}

fn write(l: &mut Lone, n: usize, ending: Ending) {
    assert_eq!(l.end.write_with(vec![0; n].into(), ending), n);
}

#[test]
fn what_more_follows_waits_for_the_next_write_or_an_acknowledgement() {
    let mut l = Lone::new(config());
    write(&mut l, 100, Ending::More);
    assert_eq!(l.sent(), [""; 0]);
    write(&mut l, 60, Ending::Plain);
    assert_eq!(l.sent(), ["P. 0:160 ack 0"]);
    write(&mut l, 1500, Ending::More);
    assert_eq!(l.sent(), [". 160:1160 ack 0"]);
    acknowledge(&mut l, 160);
    assert_eq!(l.sent(), [". 1160:1660 ack 0"]);
}

#[test]
fn a_cork_holds_until_it_is_off_or_a_timer_is_due() {
    let mut l = Lone::new(config());
    l.end.set_cork(true);
    write(&mut l, 40, Ending::Plain);
    assert_eq!(l.sent(), [""; 0]);
    let due = l.end.poll_timeout().unwrap();
    assert!(due >= l.now + ms(200), "the retransmission timeout");
    l.now = due;
    l.end.handle_timeout(due);
    assert_eq!(l.sent(), ["P. 0:40 ack 0"]);
    acknowledge(&mut l, 40);
    write(&mut l, 30, Ending::Plain);
    l.end.set_cork(false);
    assert_eq!(l.sent(), ["P. 40:70 ack 0"]);
    l.end.set_cork(true);
    write(&mut l, 30, Ending::Plain);
    assert_eq!(l.sent(), [""; 0]);
    l.end.set_nagle(Nagle::Off);
    assert_eq!(l.sent(), ["P. 70:100 ack 0"]);
}

#[test]
fn a_record_ends_a_segment() {
    let mut l = Lone::new(config());
    write(&mut l, 400, Ending::Record);
    write(&mut l, 300, Ending::Record);
    write(&mut l, 1500, Ending::Plain);
    assert_eq!(
        l.sent(),
        [
            "P. 0:400 ack 0",
            "P. 400:700 ack 0",
            ". 700:1700 ack 0",
            "P. 1700:2200 ack 0"
        ]
    );
}

#[test]
fn unsent_data_limits_what_is_taken() {
    let mut l = Lone::new(Config {
        notsent_lowat: Some(Bytes::new(1)),
        ..config()
    });
    assert_eq!(l.end.poll_event(), Some(Event::Connected));
    assert_eq!(l.end.write_synthetic(5_000), 1000, "a segment");
    assert_eq!(l.end.poll_event(), None);
    assert!(!l.end.is_writable());
    assert_eq!(l.sent().len(), 1);
    assert!(l.end.is_writable());
    assert_eq!(l.end.poll_event(), Some(Event::Writable));
}

#[test]
fn a_send_buffer_is_changed_in_use() {
    let mut l = Lone::new(config());
    l.end.set_send_buffer(Bytes::new(3_000));
    assert_eq!(l.end.write_synthetic(5_000), 3_000);
    l.end.set_send_buffer(Bytes::new(1_000));
    assert_eq!(l.end.write_room(), 0);
    l.sent();
    acknowledge(&mut l, 2_500);
    assert_eq!(l.end.write_room(), 500);
}

#[test]
fn the_user_timeout_ends_a_connection_that_is_not_answered() {
    let mut l = Lone::new(config());
    l.end.set_user_timeout(Some(Duration::from_secs(3)));
    write(&mut l, 100, Ending::Plain);
    l.sent();
    let began = l.now;
    while let Some(due) = l.end.poll_timeout() {
        l.now = due;
        l.end.handle_timeout(due);
        l.sent();
    }
    assert_eq!(l.end.state(), State::Closed);
    assert_eq!(l.end.error(), Some(Error::TimedOut));
    let took = l.now - began;
    assert!(
        took > Duration::from_secs(3) && took < Duration::from_secs(7),
        "{took}"
    );
}

#[test]
fn the_time_limited_by_the_window_is_counted() {
    let mut l = Lone::new(config());
    let mut closed = l.segment(Flags::ACK, 0, 0);
    closed.window = 0;
    l.end.handle(l.now, closed, Ecn::NotEct);
    write(&mut l, 500, Ending::Plain);
    assert_eq!(l.sent(), [""; 0]);
    l.now += ms(100);
    let activity = l.end.activity(l.now);
    assert_eq!((activity.busy, activity.window_limited), (ms(100), ms(100)));
    acknowledge(&mut l, 0);
    assert_eq!(l.sent(), ["P. 0:500 ack 0"]);
    l.now += ms(50);
    acknowledge(&mut l, 500);
    l.sent();
    l.now += ms(50);
    let activity = l.end.activity(l.now);
    assert_eq!((activity.busy, activity.window_limited), (ms(150), ms(100)));
    assert_eq!(activity.delivered_packets, 1);
    assert_eq!(activity.since_heard, ms(50));
}

#[test]
fn the_announced_segment_size_is_told_less_what_each_segment_needs_for_timestamps() {
    let told = |timestamp| {
        let extra = Extra {
            mss: Some(1012),
            ..Extra::default()
        };
        let lone = Lone::offering(config(), extra, timestamp);
        lone.end.activity(lone.now).announced_mss
    };
    assert_eq!([told(Some(100)), told(None)], [1000, 1012]);
}
