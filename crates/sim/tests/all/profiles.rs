//! Completion times of small transfers against published figures.

use std::sync::Arc;

use crate::support::*;
use gargalo_cc::Params;
use gargalo_flow::{Registered, TcpSpec, TransportSpec};
use gargalo_tcp::Config;
use gargalo_units::{Duration, Rate};

/// Seconds from the start of the flow to the receiver's last byte, the handshake included.
fn completion(config: Config, congestion: &str, params: Params, rate: Rate, bytes: u64) -> f64 {
    let link = pipe(rate, Duration::from_millis(50), 100);
    let congestion = Arc::new(Registered::new(congestion, params).unwrap());
    let transport = TransportSpec::Tcp(TcpSpec {
        config: config.into(),
        congestion,
        tls: None,
        misbehaviour: gargalo_flow::Misbehaviour::None,
    });
    let flows = vec![flow(0, 0, 1, transport, bulk(bytes))];
    let out = run(simple(link.clone(), link), settings(1, 60.0), flows);
    assert_eq!(out.flows[0].delivered.get(), bytes);
    out.flows[0].completion.expect("complete").as_secs_f64()
}

fn close(got: f64, want: f64, within: f64) {
    assert!(
        (got / want - 1.0).abs() < within,
        "{got:.4} s, not {want} s"
    );
}

/// ns-3's NewReno adds one segment per acknowledgement in slow start, its CUBIC counts segments.
#[test]
fn old_defaults_take_as_long_as_in_ns3() {
    let (slow, fast) = (Rate::from_mbps(5), Rate::from_mbps(1000));
    let old = |congestion, params, rate| {
        completion(Config::ns3_3_27(), congestion, params, rate, 1_000_000)
    };
    let per_ack = || Params::new().with("abc_limit", 1.0);
    // ns-3.44: 2.050221 s and 2.9292 s.
    close(old("newreno", per_ack(), fast), 2.0502, 0.001);
    close(old("newreno", per_ack(), slow), 2.9292, 0.01);
    close(old("cubic", Params::new(), fast), 2.05, 0.05);
    close(old("cubic", Params::new(), slow), 2.58, 0.01);
}

#[test]
fn modern_defaults_take_as_long_as_in_ns3() {
    let rate = Rate::from_mbps(10);
    let modern = |bytes| completion(Config::modern(), "cubic", Params::new(), rate, bytes);
    // ns-3.44 with the same settings: 0.158438 s and 0.459992 s.
    close(modern(10_000), 0.1584, 0.002);
    close(modern(100_000), 0.46, 0.002);
}
