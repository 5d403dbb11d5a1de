//! A request workload on a byte stream, and on streams.

use gargalo_settings::Setting;

use super::*;
use crate::{App, Workload};

fn sized(sizes: &[u64], think_time: Duration, order: Order) -> Request {
    let sizes: Vec<Bytes> = sizes.iter().copied().map(Bytes::new).collect();
    Request {
        think_time,
        order: Some(order),
        ..Request::of(sizes)
    }
}

fn rng() -> Pcg64 {
    crate::stream(1, "t")
}

fn app(request: Request) -> App {
    App::new(&Workload::Request(request), true, rng)
}

/// Object, and when it was requested, began and ended, in milliseconds.
fn times(app: &RequestApp) -> Vec<(u32, u64, Option<u64>, Option<u64>)> {
    let ms = |t: Instant| t.as_nanos() / 1_000_000;
    let row = |o: &crate::ObjectResult| {
        let (first, last) = (o.first_byte.map(ms), o.completed.map(ms));
        (o.object, ms(o.requested), first, last)
    };
    app.result().unwrap().objects.iter().map(row).collect()
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

#[test]
fn request_asks_one_after_another() {
    let mut app = app(sized(&[1000, 2000], Duration::ZERO, Order::Sequential));
    let mut rng = rng();
    assert_eq!(app.on_start(at(0), &mut rng).write, 100);
    assert_eq!(app.on_delivered(at(5), 1, 60, 0), (60, Action::default()));
    let (_, answer) = app.on_delivered(at(6), 1, 40, 0);
    assert_eq!((answer.write, answer.close), (1000, false));
    assert_eq!(app.on_delivered(at(7), 0, 999, 0), (999, Action::default()));
    let (_, second) = app.on_delivered(at(8), 0, 1, 0);
    assert_eq!((second.write, second.close), (100, true));
    let (_, last) = app.on_delivered(at(9), 1, 100, 1000);
    assert_eq!((last.write, last.close), (2000, true));
    assert_eq!(app.total(), Some(3000));
    let request = app.as_request().unwrap();
    assert_eq!(
        times(request),
        [(0, 0, Some(7), Some(8)), (1, 8, None, None)]
    );
}

#[test]
fn pipelined_answers_come_in_order() {
    let mut app = app(sized(&[10, 20, 30], Duration::ZERO, Order::Pipelined));
    let mut rng = rng();
    let ask = app.on_start(at(0), &mut rng);
    assert_eq!((ask.write, ask.close), (300, true));
    assert_eq!(app.on_delivered(at(1), 1, 250, 0).1.write, 30);
    let (_, rest) = app.on_delivered(at(2), 1, 50, 30);
    assert_eq!((rest.write, rest.close), (30, true));
    app.on_delivered(at(3), 0, 29, 0);
    app.on_delivered(at(4), 0, 31, 0);
    let times = times(app.as_request().unwrap());
    let expected = [
        (0, 0, Some(3), Some(3)),
        (1, 0, Some(3), Some(4)),
        (2, 0, Some(4), Some(4)),
    ];
    assert_eq!(times, expected);
}

#[test]
fn multiplexed_answers_come_in_turns() {
    let frame = Bytes::new(100);
    let mut app = app(Request {
        frame: Some(frame),
        ..sized(&[200, 100], Duration::ZERO, Order::Multiplexed)
    });
    let mut rng = rng();
    assert_eq!(app.on_start(at(0), &mut rng).write, 200);
    let (_, answer) = app.on_delivered(at(1), 1, 200, 0);
    assert_eq!((answer.write, answer.close), (300 + 3 * 9, true));
    assert_eq!(app.on_delivered(at(2), 0, 109, 0).0, 100);
    assert_eq!(app.on_delivered(at(3), 0, 109, 0).0, 100);
    assert_eq!(app.on_delivered(at(4), 0, 109, 0).0, 100);
    let times = times(app.as_request().unwrap());
    assert_eq!(times, [(0, 0, Some(2), Some(4)), (1, 0, Some(3), Some(3))]);
    assert_eq!(app.total(), Some(300), "headers are not counted");
}

#[test]
fn streams_one_after_another() {
    let think_time = Duration::from_millis(5);
    let mut app = app(sized(&[10, 20], think_time, Order::Sequential));
    let app = app.as_request().unwrap();
    assert!(!app.shares_stream());
    assert_eq!(
        (app.objects(), app.object_size(1), app.object_size(2)),
        (2, 20, 0)
    );
    assert_eq!(app.request_size(), 100);
    assert_eq!(app.ask_streams(at(0)), 0..1);
    assert_eq!(app.received_on_stream(at(1), 0, 9).1, Action::default());
    let (_, action) = app.received_on_stream(at(2), 0, 1);
    assert_eq!((action.write, action.timer), (0, Some(at(7))));
    assert_eq!(app.ask_streams(at(7)), 1..2);
    assert_eq!(app.received_on_stream(at(9), 1, 20).1, Action::default());
    assert_eq!(app.ask_streams(at(9)), 2..2);
    assert_eq!(
        times(app),
        [(0, 0, Some(1), Some(2)), (1, 7, Some(9), Some(9))]
    );
}

#[test]
fn streams_ask_at_once_without_think_time() {
    let mut app = app(sized(&[10, 20], Duration::ZERO, Order::Sequential));
    let app = app.as_request().unwrap();
    app.ask_streams(at(0));
    assert_eq!(app.received_on_stream(at(1), 0, 10).1.write, 100);
    assert_eq!(app.ask_streams(at(1)), 1..2);
    // Duplicate bytes and bytes of no object are not counted.
    assert_eq!(app.received_on_stream(at(1), 0, 10).1, Action::default());
    assert_eq!(app.received_on_stream(at(1), 9, 10).1, Action::default());
    assert_eq!(app.received_on_stream(at(2), 1, 20).1, Action::default());
}

#[test]
fn streams_all_at_once_do_not_wait_for_each_other() {
    let mut app = app(sized(&[1000, 10], Duration::ZERO, Order::Multiplexed));
    let app = app.as_request().unwrap();
    assert_eq!(app.ask_streams(at(0)), 0..2);
    app.received_on_stream(at(1), 1, 10);
    app.received_on_stream(at(2), 0, 1000);
    assert_eq!(
        times(app),
        [(0, 0, Some(2), Some(2)), (1, 0, Some(1), Some(1))]
    );
}

#[test]
fn pipelined_shares_one_stream() {
    let mut app = app(sized(&[10, 20], Duration::ZERO, Order::Pipelined));
    let app = app.as_request().unwrap();
    assert!(app.shares_stream());
    assert_eq!(app.ask_streams(at(0)), 0..2);
    app.received_on_stream(at(1), 0, 15);
    app.received_on_stream(at(2), 0, 15);
    assert_eq!(
        times(app),
        [(0, 0, Some(1), Some(1)), (1, 0, Some(1), Some(2))]
    );
}

#[test]
fn sizes_are_drawn_for_each_flow() {
    let request = Request {
        objects: Some(1000),
        size: Some(Size::Exponential(Bytes::new(5000))),
        ..Request::default()
    };
    let draw = |path| {
        let app = RequestApp::new(&request, false, || crate::stream(1, path));
        assert_eq!(app.objects(), 1000);
        assert!(app.result().is_none(), "a flow without a row keeps nothing");
        app.total()
    };
    let (a, b) = (draw("a"), draw("b"));
    assert_ne!(a, b);
    assert_eq!(a, draw("a"));
    // Within four standard deviations of the mean of a thousand.
    assert!((a as f64 / 5e6 - 1.0).abs() < 4.0 / 1000f64.sqrt(), "{a}");
}

fn giving_up(sizes: &[u64], think_time: Duration, order: Order, after: u64) -> App {
    app(Request {
        give_up: Some(Duration::from_millis(after)),
        ..sized(sizes, think_time, order)
    })
}

#[test]
fn what_takes_too_long_is_cancelled_and_the_next_is_requested() {
    let mut app = giving_up(&[10, 20, 30], Duration::ZERO, Order::Sequential, 5);
    let request = app.as_request().unwrap();
    assert_eq!((request.ask_streams(at(0)), request.due()), (0..1, None));
    request.asked_on_stream(at(1), 0);
    assert_eq!(request.due(), Some(at(6)));
    request.received_on_stream(at(2), 0, 4);
    assert_eq!(request.expire(at(5)), (vec![], 0..0));
    assert_eq!(request.expire(at(6)), (vec![0], 1..2));
    // What still arrives of it does not count.
    assert_eq!(
        request.received_on_stream(at(6), 0, 6),
        (0, Action::default())
    );
    request.asked_on_stream(at(6), 1);
    assert_eq!(request.received_on_stream(at(8), 1, 20).1.write, 100);
    assert_eq!((request.due(), request.ask_streams(at(8))), (None, 2..3));
    assert_eq!(
        times(request),
        [
            (0, 0, Some(2), None),
            (1, 6, Some(8), Some(8)),
            (2, 8, None, None)
        ]
    );
    assert_eq!(app.total(), Some(54));
}

#[test]
fn a_think_time_follows_what_was_cancelled() {
    let mut app = giving_up(&[10, 20], Duration::from_millis(7), Order::Sequential, 5);
    let request = app.as_request().unwrap();
    request.ask_streams(at(0));
    request.asked_on_stream(at(0), 0);
    assert_eq!(request.expire(at(5)), (vec![0], 0..0));
    assert_eq!(request.due(), Some(at(12)));
    assert_eq!(request.expire(at(12)), (vec![], 1..2));
}

#[test]
fn objects_at_once_are_cancelled_each_for_itself() {
    let mut app = giving_up(&[10, 20, 30], Duration::ZERO, Order::Multiplexed, 5);
    let request = app.as_request().unwrap();
    assert_eq!(request.ask_streams(at(0)), 0..3);
    for (object, asked) in [(0, 0), (1, 1), (2, 2)] {
        request.asked_on_stream(at(asked), object);
    }
    request.received_on_stream(at(3), 0, 10);
    assert_eq!(request.due(), Some(at(6)));
    assert_eq!(request.expire(at(7)), (vec![1, 2], 0..0));
    assert_eq!(app.total(), Some(10));
}

#[test]
fn what_only_streams_can_is_refused_without_them() {
    let request = |order, urgency: Option<&[u8]>, give_up| Request {
        objects: Some(2),
        size: Some(Size::Fixed(Bytes::new(10))),
        order: Some(order),
        urgency: urgency.map(Into::into),
        give_up,
        ..Request::default()
    };
    let soon = Some(Duration::from_millis(1));
    let refused = |r: Request| Setting::check(&r).unwrap_err().to_string();
    assert!(refused(request(Order::Pipelined, None, soon)).contains("share one stream"));
    let some = |u| refused(request(Order::Multiplexed, Some(u), None));
    assert!(some(&[8]).contains("an urgency of 8"));
    assert!(some(&[1, 1, 1]).contains("3 urgencies for 2 objects"));
    assert!(refused(request(Order::Sequential, Some(&[1]), None)).contains("do not compete"));
    let fits = request(Order::Multiplexed, Some(&[0, 7]), soon);
    assert!(Setting::check(&fits).is_ok() && fits.needs_streams());
    // They are dealt as the objects are.
    let two = Request {
        connections: 2,
        ..fits
    };
    let urgency = |r: &Request| r.urgency.clone().unwrap().to_vec();
    assert_eq!(
        two.connections().iter().map(urgency).collect::<Vec<_>>(),
        [vec![0], vec![7]]
    );
}
