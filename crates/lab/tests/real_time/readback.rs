//! What the kernel is asked for, and what it says that it did.

use std::net::SocketAddr;
use std::ops::ControlFlow;

use gargalo_device::netlink::Netlink;
use gargalo_flow::AddressChange;
use gargalo_lab::sockets::Sockets;
use gargalo_units::{Duration, Instant};
use socket2::{Domain, Protocol, Socket, Type};

use crate::Test;
use crate::case::*;
use crate::transfers::run;

pub const TESTS: &[Test] = &[
    ("a_control_that_the_kernel_has_not_is_refused", refused),
    ("what_a_subflow_runs_is_read_back", read_back),
    ("subflows_of_the_kernel_have_their_times", times),
    ("the_kernel_serves_ndiffports", ndiffports),
];

const PATHS: [(u64, u64); 2] = [(25, 10), (25, 10)];

fn refused() {
    for plain in [false, true] {
        for (who, download) in [(KERNEL_TO_OURS, false), (OURS_TO_KERNEL, true)] {
            let case = Case {
                congestion: "olia",
                download,
                plain,
                ..Case::new(who, &PATHS, 100_000)
            };
            let done = gargalo_lab::run(case.spec(), &mut |_| ControlFlow::Continue(()));
            let error = done.expect_err("the kernel has no olia").to_string();
            assert!(error.contains("congestion = \"olia\""), "{error}");
            assert!(
                error.contains("transfer") && error.contains("offers"),
                "{error}"
            );
            assert!(error.contains("reno"), "{error}");
        }
    }
    // A host that only receives does not need it.
    let done = run(Case {
        congestion: "olia",
        ..Case::new(OURS_TO_KERNEL, &PATHS, 1_000_000)
    });
    done.is_whole();
    assert_eq!(done.flow().congestion, "olia");
}

/// A socket of Multipath TCP takes any name; its subflow runs what there is.
fn read_back() {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let made = |protocol| Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).unwrap();
    let listener = made(Protocol::MPTCP);
    listener.bind(&any.into()).unwrap();
    listener.listen(8).unwrap();
    let there = listener.local_addr().unwrap().as_socket().unwrap();
    Netlink::open().unwrap().loopback_up().unwrap();
    let sockets = Sockets::open().unwrap();
    for (protocol, asked, runs) in [
        (Protocol::TCP, "reno", Some("reno")),
        (Protocol::MPTCP, "reno", Some("reno")),
        (Protocol::MPTCP, "olia", None),
    ] {
        let socket = made(protocol);
        socket.set_tcp_congestion(asked.as_bytes()).unwrap();
        socket.connect(&there.into()).unwrap();
        let here = socket.local_addr().unwrap().as_socket().unwrap();
        let about = sockets.about(here, there).expect("the kernel tells");
        let runs_now = about.congestion;
        // A connection of TCP is no subflow.
        let is_subflow = protocol == Protocol::MPTCP;
        assert_eq!(about.backup, is_subflow.then_some(false));
        match runs {
            Some(name) => assert_eq!(runs_now, name),
            None => assert_ne!(runs_now, asked),
        }
        assert_eq!(sockets.about(any, any), None);
    }
    let done = run(Case {
        congestion: "reno",
        ..Case::new(KERNEL_TO_OURS, &PATHS, 1_000_000)
    });
    assert_eq!(done.flow().congestion, "reno");
}

/// Our server takes the address of a path away in the middle: the kernel ends that subflow, and then has zeros
/// of it or nothing.
fn times() {
    let away = Duration::from_millis(800);
    for link in [0, 1] {
        let done = run(Case {
            changes: vec![AddressChange {
                after: away,
                side: 1,
                link,
                add: false,
            }],
            ..Case::new(KERNEL_TO_OURS, &PATHS, 8_000_000)
        });
        done.is_whole();
        let report = done.report(0);
        let [first, join] = &report.subflows[..] else {
            panic!("two subflows: {report:?}");
        };
        let at = |t: Instant| t.as_secs_f64();
        // A handshake takes a round trip of 20 ms, and a join one more than that of the connection at least.
        let (opened, joined) = (at(first.result.opened), at(join.result.opened));
        assert!((0.02..0.5).contains(&opened), "{report:?}");
        assert!((opened + 0.02..0.7).contains(&joined), "{report:?}");
        let gone = &report.subflows[link].result;
        let closed = at(gone
            .closed
            .unwrap_or_else(|| panic!("it ended: {report:?}")));
        assert!((0.8..1.5).contains(&closed), "{report:?}");
        // It has ended with the connection, or was not seen again since.
        let stayed = report.subflows[1 - link].result.closed;
        assert!(stayed.is_none_or(|t| at(t) > closed), "{report:?}");
        for s in &report.subflows {
            assert!(s.result.counters.sent_bytes > 500_000, "{report:?}");
            assert!(s.result.delivered.get() > 300_000, "{report:?}");
        }
    }
}

fn ndiffports() {
    let done = run(Case {
        path_manager: "ndiffports",
        ..Case::new(OURS_TO_KERNEL, &PATHS, 3_000_000)
    });
    done.is_whole();
    let ends: Vec<_> = done.report(1).subflows.iter().map(|s| s.remote).collect();
    assert_eq!(ends.len(), 2, "{ends:?}");
    assert_eq!(ends[0].ip(), ends[1].ip());
    assert_ne!(ends[0].port(), ends[1].port());
}
