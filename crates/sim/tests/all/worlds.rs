//! The engine: determinism, conservation, flows that come and go.

use std::sync::Arc;

use crate::support::*;
use gargalo_flow::{FlowSpec, Outcome, QuicSpec, TransportSpec};
use gargalo_link::{LossModel, Reorder};
use gargalo_quic::{self as quic, Implementation};
use gargalo_sim::{Recording, Settings, World};
use gargalo_tcp::Config;
use gargalo_units::{Bytes, Duration, Instant, Rate};
use gargalo_workload::Cbr;
use gargalo_workload::Workload;

fn fingerprint(out: &Outcome) -> String {
    format!(
        "{:?} {:?} {:?} {} {}",
        out.flows, out.links, out.samples, out.packets, out.events
    )
}

fn race(seed: u64, flows: u32) -> Outcome {
    let mut bottleneck = pipe(Rate::from_mbps(50), Duration::from_millis(10), 100);
    bottleneck.loss = LossModel::Independent(0.001);
    let topology = dumbbell(
        3,
        pipe(Rate::from_mbps(1000), Duration::from_millis(1), 1000),
        bottleneck,
    );
    let mut settings = settings(seed, 5.0);
    settings.recording = Recording {
        interval: Some(Duration::from_millis(100)),
        flows: true,
        links: true,
        events: true,
        ..Recording::default()
    };
    let flows = (0..flows)
        .map(|i| {
            let name = ["reno", "cubic", "bbr"][i as usize];
            flow(u64::from(i), i, 3 + i, tcp(name, Config::modern()), ENDLESS)
        })
        .collect();
    run(topology, settings, flows)
}

#[test]
fn same_seed_same_bytes_other_seed_other_bytes() {
    let first = fingerprint(&race(1, 3));
    assert_eq!(first, fingerprint(&race(1, 3)));
    assert_ne!(first, fingerprint(&race(2, 3)));
}

#[test]
fn gauges_are_of_the_instant_before_anything_leaves() {
    let mut settings = settings(1, 2.5);
    settings.recording = Recording {
        interval: Some(Duration::from_millis(100)),
        flows: true,
        gauges: true,
        datagrams: false,
        ..Recording::default()
    };
    let link = pipe(Rate::from_mbps(20), Duration::from_millis(25), 400);
    let flows = vec![flow(0, 0, 1, tcp("bbr3", Config::modern()), ENDLESS)];
    let out = run(simple(link.clone(), link), settings, flows);
    let gauges = &out.samples.gauges;
    let phases: Vec<_> = gauges
        .iter()
        .filter(|g| g.name == "round_count" && &*g.cause == "phase")
        .map(|g| g.phase)
        .collect();
    assert_eq!(
        phases,
        ["startup", "drain", "probe-bw-down", "probe-bw-cruise"]
    );
    let at = |phase, name| {
        let looked =
            |g: &&gargalo_flow::Gauge| &*g.cause == "phase" && g.phase == phase && g.name == name;
        gauges.iter().find(looked).unwrap().value.unwrap()
    };
    // DRAIN ends when no more is in flight than its target, before the acknowledgement lets more leave.
    let down = "probe-bw-down";
    assert!(at(down, "bytes_in_flight") <= at(down, "target_inflight_bytes"));
    assert_eq!(at("drain", "full_bandwidth_rounds"), 3.0);
    // One look with each sample from the handshake on, all quantities each time; no bound has no value.
    let samples = gauges.iter().filter(|g| &*g.cause == "sample");
    let names = samples
        .clone()
        .filter(|g| g.time == Instant::ZERO + Duration::from_secs(1));
    assert!(names.clone().count() > 15);
    assert_eq!(samples.clone().count() % names.count(), 0);
    let mut bounds = samples.filter(|g| g.name == "inflight_longterm_bytes");
    assert!(bounds.all(|g| g.value.is_none()));
}

#[test]
fn a_policer_passes_its_rate_and_its_burst() {
    let mut link = pipe(Rate::from_mbps(50), Duration::from_millis(10), 1000);
    link.policer = Some(gargalo_link::Policer {
        rate: Rate::from_mbps(4),
        burst: Bytes::new(500_000),
    });
    let workload = Workload::Cbr(Cbr::constant(Rate::from_mbps(20), Bytes::new(1000)));
    let flows = vec![flow(0, 0, 1, TransportSpec::Udp, workload)];
    let out = run(simple(link.clone(), link), settings(1, 10.0), flows);
    let got = out.flows[0].delivered.as_f64() * 1028.0 / 1000.0;
    let most = 500e3 + 10.0 * 4e6 / 8.0;
    assert!((got / most - 1.0).abs() < 0.01, "{got} of {most}");
    assert!(out.links[0].dropped_aqm > 0);
}

/// Thresholds of 5 and 15 packets are a small part of the 3,300 packets in flight: with them the flow uses 8%.
#[test]
fn red_with_its_automatic_thresholds_leaves_a_fast_link_used() {
    let down = pipe(Rate::from_mbps(1000), Duration::from_millis(20), 1000);
    let up = gargalo_link::LinkConfig {
        queue: gargalo_link::QueueConfig::Red(gargalo_link::queue::RedConfig::default()),
        ..down.clone()
    };
    let flows = vec![flow(0, 0, 1, tcp("cubic", Config::modern()), ENDLESS)];
    let out = run(simple(up, down), settings(1, 10.0), flows);
    let used = out.links[0].utilization.unwrap();
    assert!(used > 0.4, "{used}");
}

#[test]
fn a_bottleneck_is_filled_and_never_overfilled() {
    let out = race(1, 3);
    let up = &out.links[0];
    let utilization = up.utilization.unwrap();
    assert!(utilization > 0.9 && utilization <= 1.0, "{utilization}");
    let goodput: u64 = out.flows.iter().map(|f| f.delivered.get()).sum();
    assert!(goodput as f64 * 8.0 / 5.0 <= 50e6);
}

#[test]
fn every_byte_is_what_was_sent() {
    let mut up = pipe(Rate::from_mbps(20), Duration::from_millis(15), 50);
    up.loss = LossModel::Independent(0.02);
    up.duplicate = 0.01;
    up.reorder = Some(Reorder {
        probability: 0.05,
        ..Reorder::new(0.0)
    });
    let mut settings = settings(3, 120.0);
    settings.verify = true;
    let flows = ["reno", "cubic", "bbr"]
        .iter()
        .zip(0..)
        .map(|(name, id)| flow(id, 0, 1, tcp(name, Config::modern()), bulk(2_000_000)))
        .collect();
    let out = run(simple(up.clone(), up), settings, flows);
    for f in &out.flows {
        assert_eq!(f.delivered.get(), 2_000_000, "{f:?}");
        assert!(!f.corrupted && f.completion.is_some() && f.failure.is_none());
    }
}

#[test]
fn flows_come_and_go_without_leaking() {
    let link = pipe(Rate::from_mbps(1000), Duration::from_millis(5), 1000);
    let template = FlowSpec {
        arrivals: Some(Duration::from_micros(500)),
        stop: Some(secs(5.0)),
        ..flow(0, 0, 1, tcp("cubic", Config::modern()), bulk(20_000))
    };
    let out = run(simple(link.clone(), link), settings(1, 8.0), vec![template]);
    // 2,000 a second for 5 s: a Poisson count within four standard deviations.
    let n = out.flows.len() as f64;
    assert!((n - 10_000.0).abs() < 400.0, "{n} flows");
    assert!(out.flows.iter().all(|f| f.completion.is_some()));
    // 2,000/s alive for some 50 ms each.
    assert!(out.peak_flows < 400, "{} flows at once", out.peak_flows);
}

#[test]
fn requests_are_answered_in_order() {
    let link = pipe(Rate::from_mbps(100), Duration::from_millis(10), 1000);
    let workload = Workload::Request(gargalo_workload::Request {
        request_size: Bytes::new(200),
        ..gargalo_workload::Request::of([Bytes::new(5_000), Bytes::new(50_000)])
    });
    let flows = vec![flow(0, 0, 1, tcp("cubic", Config::modern()), workload)];
    let out = run(simple(link.clone(), link), settings(1, 10.0), flows);
    let f = &out.flows[0];
    assert_eq!(f.delivered.get(), 55_000);
    // Handshake, two round trips for the small object and the first window of the large one, two
    // more for its rest: five round trips of 20 ms and 5 ms of serialisation.
    let t = f.completion.unwrap().as_secs_f64();
    assert!((0.08..0.14).contains(&t), "{t}");
}

#[test]
fn constant_bit_rate_arrives_at_its_rate() {
    let link = pipe(Rate::from_mbps(10), Duration::from_millis(10), 100);
    let workload = Workload::Cbr(Cbr::constant(Rate::from_mbps(4), Bytes::new(1000)));
    let flows = vec![flow(0, 0, 1, TransportSpec::Udp, workload)];
    let out = run(simple(link.clone(), link), settings(1, 10.0), flows);
    let rate = out.flows[0].delivered.get() as f64 * 8.0 / 10.0;
    assert!((rate / 4e6 - 1.0).abs() < 0.005, "{rate}");
    assert_eq!(out.flows[0].counters.lost_packets, 0);
}

#[test]
fn results_are_in_the_order_of_numbers_and_a_run_may_end_with_its_last_flow() {
    let link = pipe(Rate::from_mbps(100), Duration::from_millis(5), 1000);
    let cubic = || tcp("cubic", Config::modern());
    let flows = || {
        vec![
            flow(5, 0, 2, cubic(), bulk(2_000_000)),
            flow(9, 1, 3, cubic(), bulk(10_000)),
            FlowSpec {
                start: secs(8.0),
                ..flow(7, 1, 3, cubic(), bulk(10_000))
            },
        ]
    };
    let go = |stop_when_idle| {
        let settings = Settings {
            stop_when_idle,
            ..settings(1, 20.0)
        };
        run(dumbbell(2, link.clone(), link.clone()), settings, flows())
    };
    let out = go(true);
    let numbers: Vec<_> = out.flows.iter().map(|f| f.id).collect();
    assert_eq!((numbers, out.peak_flows), (vec![5, 7, 9], 2));
    assert!(out.flows.iter().all(|f| f.completion.is_some()));
    assert!(out.end > secs(8.0) && out.end < secs(9.0), "{:?}", out.end);
    assert_eq!(go(false).end, secs(20.0));
    let links: Vec<_> = out.links.iter().map(|l| (&*l.name, l.direction)).collect();
    assert_eq!(
        links[..3],
        [
            ("bottleneck", "up"),
            ("bottleneck", "down"),
            ("left0", "up")
        ]
    );
    // Up the first access link, up the bottleneck, and down to the right: and the same way back.
    assert_eq!(out.routes[&(0, 2, 0)], [2, 0, 7]);
    assert_eq!(out.routes[&(2, 0, 0)], [6, 1, 3]);
}

/// A QUIC stack that can do nothing, or only checks what it is asked for.
#[derive(Debug)]
struct Unable {
    checks: bool,
}

impl Implementation for Unable {
    fn name(&self) -> &str {
        "unable"
    }
    fn check(&self, _: &quic::Config, _: quic::Uses, is_client: bool) -> Result<(), quic::Error> {
        match (self.checks, is_client) {
            (true, false) => Err(quic::Error::Option("no server".into())),
            _ => Ok(()),
        }
    }
    fn end(
        &self,
        _: &quic::Realm,
        _: &quic::Config,
        _: quic::Init,
        _: bool,
    ) -> Result<Box<dyn quic::Stack>, quic::Error> {
        Err(quic::Error::Tls("no certificate".into()))
    }
}

#[test]
fn what_a_stack_cannot_do_is_said_when_the_flow_is_added() {
    let link = pipe(Rate::from_mbps(10), Duration::from_millis(10), 100);
    for (checks, why) in [(true, "no server"), (false, "TLS: no certificate")] {
        let stack = || -> Arc<dyn Implementation> { Arc::new(Unable { checks }) };
        let spec = QuicSpec {
            config: quic::Config::default(),
            stacks: [stack(), stack()],
            congestion_name: "reno".into(),
        };
        let transport = TransportSpec::Quic(Box::new(spec));
        let mut world = World::new(simple(link.clone(), link.clone()), settings(1, 1.0)).unwrap();
        let error = world
            .add_flow(flow(0, 0, 1, transport, ENDLESS))
            .unwrap_err();
        assert_eq!(error.to_string(), format!("QUIC of flow flow0: {why}"));
    }
}
