//! The same seeds give the same datagrams, bit for bit, in every process.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::Command;

use crate::pair::{CLIENT, Link, Pair, SERVER, ours, pair};
use gargalo_quic::{Config, Congestion, Crypto};
use gargalo_units::Duration;

const CHILD: &str = "GARGALO_QUIC_TRACE";

/// A hash of all datagrams with their times per run, and their number.
fn traces(seed: u64) -> String {
    let mut out = String::new();
    for (congestion, crypto) in [
        (ours("cubic"), Crypto::Tls),
        (ours("bbr"), Crypto::Tls),
        (Congestion::NoqBbr3, Crypto::Null),
    ] {
        let config = Config {
            crypto,
            ecn: true,
            ..Config::default()
        };
        let mut link = Link::new(20, 15);
        link.loss = 0.01;
        link.duplication = 0.01;
        link.jitter = Duration::from_millis(2);
        let mut p = pair(seed, &config, &congestion, link);
        p.apps[CLIENT].to_send = vec![100_000; 8];
        p.apps[SERVER].answer = Some(50_000);
        p.run_until(Duration::from_secs(60), |p| {
            p.is_settled() && p.apps[CLIENT].ended.len() == 8
        });
        p.close();
        // This hasher has fixed keys.
        let mut hasher = DefaultHasher::new();
        for sent in &p.sent {
            (sent.at.as_nanos(), sent.from, &sent.payload).hash(&mut hasher);
        }
        out += &format!("{:016x}/{} ", hasher.finish(), p.sent.len());
    }
    out
}

#[test]
fn two_processes_send_the_same() {
    let own = traces(5);
    if std::env::var_os(CHILD).is_some() {
        println!("trace: {own}");
        return;
    }
    assert_eq!(own, traces(5), "twice in one process");
    assert_ne!(own, traces(6), "another seed");
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "determinism::two_processes_send_the_same",
            "--nocapture",
        ])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(text.contains(&format!("trace: {own}")), "{own}, but {text}");
}

#[test]
fn a_realm_may_serve_several_threads() {
    let config = Config::default();
    let run = |mut p: Pair| {
        p.apps[CLIENT].to_send = vec![300_000];
        p.run_until(Duration::from_secs(60), Pair::is_settled);
        p.sent
    };
    let make = || pair(9, &config, &ours("cubic"), Link::new(20, 15));
    let alone = run(make());
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| run(make()))).collect();
        for thread in all {
            assert_eq!(thread.join().unwrap(), alone);
        }
    });
}

#[test]
fn what_is_written_at_once_changes_no_packet() {
    // Without limits, and where each window in turn limits the sender.
    for (stream_window, send_window) in [
        (64 << 20, 64 << 20),
        (300_000, 64 << 20),
        (64 << 20, 300_000),
    ] {
        let config = Config {
            stream_window,
            send_window,
            ..Config::default()
        };
        let sent = |at_once| {
            let mut link = Link::new(100, 10);
            link.loss = 0.002;
            let mut p = pair(3, &config, &ours("cubic"), link);
            p.apps[CLIENT].bulk = 5_000_000;
            p.apps[CLIENT].at_once = at_once;
            p.apps[SERVER].unchecked = true;
            p.run_until(Duration::from_secs(60), Pair::is_settled);
            p.sent
        };
        let usual = sent(1 << 16);
        assert!(usual.len() > 4000);
        assert!(sent(1 << 18) == usual, "{stream_window} {send_window}");
    }
}
