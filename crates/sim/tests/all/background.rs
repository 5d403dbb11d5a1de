//! Sources of flows: what they offer, how it is spread over time, and what is kept of it.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::support::*;
use gargalo_flow::rng::stream;
use gargalo_flow::{FlowSpec, Outcome, TcpSpec, TransportSpec};
use gargalo_flow::{GeneratorSpec, wire_model};
use gargalo_sim::World;
use gargalo_tcp::Config;
use gargalo_units::{Bytes, Duration, Instant, Rate};
use gargalo_workload::ftp::Ftp;
use gargalo_workload::plan::{Demand, Job, Model, Plan};
use gargalo_workload::random::{Count, Size, SizePareto, Time};
use gargalo_workload::tls::Tls;
use gargalo_workload::web::Web;

/// The model of NGMN.
fn web() -> Web {
    Web::default()
}

fn ftp() -> Ftp {
    Ftp::default()
}

fn files(size: Size) -> Model {
    Model::Ftp(Arc::new(Ftp { size, ..ftp() }))
}

fn load(mbps: u64) -> Demand {
    Demand::Load {
        forward: Rate::from_mbps(mbps),
        opposite: Rate::ZERO,
    }
}

fn cubic() -> TcpSpec {
    match tcp("cubic", Config::modern()) {
        TransportSpec::Tcp(spec) => spec,
        other => panic!("not TCP: {other:?}"),
    }
}

fn plan(model: Model, demand: Demand, seconds: f64, seed: u64) -> Plan {
    let wire = wire_model(&Config::modern());
    Plan::new(
        model,
        demand,
        &wire,
        10,
        (secs(0.0), secs(seconds)),
        &|what| stream(seed, &format!("test/{what}")),
    )
    .unwrap()
    .0
}

fn jobs(mut plan: Plan) -> Vec<Job> {
    std::iter::from_fn(|| plan.next_job()).collect()
}

fn source(model: Model, demand: Demand) -> GeneratorSpec {
    GeneratorSpec {
        id: 0,
        label: "background".into(),
        stream: "0".into(),
        pairs: vec![(0, 1)],
        path: 0,
        start: Instant::ZERO,
        stop: None,
        transport: cubic(),
        model,
        demand,
        group: 0,
        rows: false,
    }
}

fn go(spec: GeneratorSpec, seconds: f64, seed: u64, also: Vec<FlowSpec>) -> Outcome {
    let link = pipe(Rate::from_mbps(1000), Duration::from_millis(5), 10_000);
    let mut world = World::new(simple(link.clone(), link), settings(seed, seconds)).unwrap();
    world.add_group(Arc::from("background"), (Instant::ZERO, secs(seconds)));
    for f in also {
        world.add_flow(f).unwrap();
    }
    world.add_generator(spec).unwrap();
    world.run(&mut |_| ControlFlow::Continue(())).unwrap()
}

/// Every load over a minute, whatever the seed: what is planned is what was asked for.
#[test]
fn loads_are_met_by_every_seed() {
    let wire = wire_model(&Config::modern());
    for mbps in [2, 20, 200, 500, 800] {
        for seed in 0..6 {
            for (model, share) in [
                (Model::Ftp(ftp().into()), 0.24),
                (Model::Web(web().into()), 0.56),
            ] {
                let asked = Rate::from_mbps(mbps).mul_f64(share);
                let demand = Demand::Load {
                    forward: asked,
                    opposite: Rate::ZERO,
                };
                let plan = plan(model.clone(), demand, 60.0, seed);
                let offered = plan.sum(&wire).0.forward as f64 * 8.0 / 60.0;
                let off = offered / asked.as_bps() as f64 - 1.0;
                // At 2 Mbit/s there are eight files a minute: headers are all that is rounded.
                assert!(
                    off.abs() < 0.005,
                    "{mbps} Mbit/s, seed {seed}: {off} of {model:?}"
                );
            }
        }
    }
}

#[test]
fn a_load_in_both_directions_counts_what_comes_back() {
    let wire = wire_model(&Config::modern());
    let both = Demand::Load {
        forward: Rate::from_mbps(300),
        opposite: Rate::from_mbps(300),
    };
    let sum = plan(Model::Web(web().into()), both, 60.0, 1).sum(&wire).0;
    // The twin of the same load sends as much back as this one does.
    let on_wire = (sum.forward + sum.reverse) as f64 * 8.0 / 60.0;
    assert!((on_wire / 300e6 - 1.0).abs() < 0.01, "{on_wire}");
}

/// Number of events per bin: variance over mean, 1 for a Poisson process.
fn dispersion(times: &[f64], bin: f64, seconds: f64) -> f64 {
    let n = (seconds / bin) as usize;
    let mut counts = vec![0.0; n];
    for t in times {
        if let Some(c) = counts.get_mut((t / bin) as usize) {
            *c += 1.0;
        }
    }
    let mean = counts.iter().sum::<f64>() / n as f64;
    counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / (n - 1) as f64 / mean
}

/// Chi-square of the gaps against an exponential distribution of their mean in ten equal parts; 99.9% of
/// exponential samples stay below 26.1 (8 degrees of freedom: the mean is estimated).
fn chi_square(times: &[f64]) -> f64 {
    let gaps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let mut parts = [0.0; 10];
    for g in gaps {
        let u = 1.0 - (-g / mean).exp();
        parts[((u * 10.0) as usize).min(9)] += 1.0;
    }
    parts
        .iter()
        .map(|c| (c - n / 10.0) * (c - n / 10.0) / (n / 10.0))
        .sum()
}

#[test]
fn files_and_sessions_begin_as_poisson_processes() {
    for seed in 0..5 {
        let files = jobs(plan(Model::Ftp(ftp().into()), load(200), 100.0, seed));
        let sessions = jobs(plan(Model::Web(web().into()), load(200), 100.0, seed));
        let sessions = sessions
            .into_iter()
            .filter(|j| j.begins_session)
            .collect::<Vec<_>>();
        for list in [files, sessions] {
            let times: Vec<f64> = list.iter().map(|j| j.at.as_secs_f64()).collect();
            assert!(times.len() > 3000, "{}", times.len());
            // 500 bins: a standard error of 0.063.
            let d = dispersion(&times, 0.2, 100.0);
            assert!((d - 1.0).abs() < 0.25, "seed {seed}: dispersion {d}");
            let x = chi_square(&times);
            assert!(x < 26.1, "seed {seed}: chi-square {x}");
        }
    }
}

#[test]
fn sessions_are_under_way_from_the_beginning() {
    let pages = jobs(plan(Model::Web(web().into()), load(400), 60.0, 3));
    let early = pages.iter().filter(|j| j.at < secs(10.0)).count() as f64;
    let late = pages.iter().filter(|j| j.at >= secs(50.0)).count() as f64;
    assert!(
        (early / late - 1.0).abs() < 0.05,
        "{early} pages, then {late}"
    );
    // A session has five pages: of 1,000 pages 200 begin one.
    let begun = pages.iter().filter(|j| j.begins_session).count() as f64;
    let share = begun / pages.len() as f64;
    assert!((share - 0.2).abs() < 0.01, "{share}");
    // 5.64 embedded objects in the mean (3GPP2 C.R1002).
    let objects: usize = pages.iter().map(|j| j.objects.len() - 1).sum();
    let mean = objects as f64 / pages.len() as f64;
    assert!((mean - 5.64).abs() < 0.15, "{mean}");
}

#[test]
fn sizes_keep_their_tail_index_when_a_load_is_met() {
    let alpha = 1.1;
    let size = Size::Pareto(SizePareto {
        alpha,
        min: Bytes::new(10_000),
        max: Bytes::new(10_000_000_000),
    });
    let mut sizes: Vec<f64> = jobs(plan(files(size), load(900), 60.0, 7))
        .iter()
        .map(|j| j.objects[0] as f64)
        .collect();
    sizes.sort_unstable_by(|a, b| b.total_cmp(a));
    let k = sizes.len() / 10;
    assert!(k > 1000, "{k}");
    let hill = sizes[..k].iter().map(|x| (x / sizes[k]).ln()).sum::<f64>() / k as f64;
    // Standard error alpha/sqrt(k) is 3% at most.
    assert!(
        (1.0 / hill / alpha - 1.0).abs() < 0.12,
        "index {}",
        1.0 / hill
    );
}

#[test]
fn what_is_planned_is_what_is_sent() {
    what_is_planned_is_sent(None);
}

#[test]
fn what_is_planned_is_what_is_sent_inside_tls() {
    what_is_planned_is_sent(Some(Tls::FULL));
    what_is_planned_is_sent(Some(Tls::RESUMED));
}

fn what_is_planned_is_sent(tls: Option<Tls>) {
    let persistent = Web {
        persistent: true,
        ..web()
    };
    for model in [
        Model::Ftp(ftp().into()),
        Model::Web(web().into()),
        Model::Web(persistent.into()),
    ] {
        // Nothing is begun in the last five seconds, so that all is sent.
        let spec = GeneratorSpec {
            stop: Some(secs(5.0)),
            transport: TcpSpec { tls, ..cubic() },
            ..source(model.clone(), load(100))
        };
        let out = go(spec, 10.0, 1, Vec::new());
        let g = &out.groups[0];
        assert_eq!((g.completed, g.failed), (g.flows, 0), "{model:?}");
        assert!(out.flows.is_empty());
        let ratio = |a: u64, b: u64| a as f64 / b as f64;
        let (planned, sent) = (g.planned, g.sent);
        if g.counters.retransmitted_packets == 0 {
            assert!(
                (ratio(sent.forward, planned.forward) - 1.0).abs() < 0.005,
                "{model:?}: {sent:?} {planned:?}"
            );
        }
        assert!(
            (ratio(sent.reverse, planned.reverse) - 1.0).abs() < 0.15,
            "{model:?}: {sent:?} {planned:?}"
        );
        let asked = g.offer.asked.unwrap();
        assert!((planned.forward as f64 / asked - 1.0).abs() < 0.005);
        assert_eq!(g.offered, g.delivered, "{model:?}");
        if let Model::Web(_) = model {
            assert_eq!(g.page_time.count(), g.pages);
        }
    }
}

#[test]
fn a_page_is_its_main_object_then_the_others_a_few_at_a_time() {
    let web = Web {
        pages: Count::Fixed(1),
        main_size: Some(Size::Fixed(Bytes::new(1000))),
        embedded: Some(Count::Fixed(5)),
        embedded_size: Some(Size::Fixed(Bytes::new(1000))),
        parsing_time: Time::Fixed(Duration::from_millis(100)),
        connections: 2,
        ..web()
    };
    let spec = GeneratorSpec {
        stop: Some(secs(5.0)),
        rows: true,
        ..source(Model::Web(web.clone().into()), Demand::PerSecond(0.5))
    };
    let out = go(spec, 10.0, 2, Vec::new());
    let g = &out.groups[0];
    assert!(g.pages >= 1);
    assert_eq!(out.flows.len() as u64, 6 * g.pages);
    // One object takes two round trips of 10 ms; six take it four times, with the parsing in between.
    let page = g.page_time.summary().unwrap();
    let expected = 4.0 * 0.020 + 0.1;
    assert!(
        (page.min.as_secs_f64() - expected).abs() < 0.002,
        "{page:?}"
    );
    let persistent = GeneratorSpec {
        stop: Some(secs(5.0)),
        ..source(
            Model::Web(
                Web {
                    persistent: true,
                    ..web
                }
                .into(),
            ),
            Demand::PerSecond(0.5),
        )
    };
    let g = &go(persistent, 10.0, 2, Vec::new()).groups[0];
    assert_eq!(g.flows, 3 * g.pages);
    // Handshake and three objects one after another.
    let page = g.page_time.summary().unwrap();
    let expected = 0.020 + 0.1 + 4.0 * 0.010;
    assert!(
        (page.min.as_secs_f64() - expected).abs() < 0.002,
        "{page:?}"
    );
}

#[test]
fn the_same_seed_gives_the_same_and_other_flows_change_nothing_of_the_plan() {
    let run = |seed, also| go(source(Model::Web(web().into()), load(50)), 3.0, seed, also);
    let alone = run(1, Vec::new());
    assert_eq!(
        format!("{:?}", alone.groups),
        format!("{:?}", run(1, Vec::new()).groups)
    );
    assert_ne!(
        alone.groups[0].planned,
        run(2, Vec::new()).groups[0].planned
    );
    let other = flow(7, 0, 1, tcp("reno", Config::modern()), bulk(1_000_000));
    let beside = run(1, vec![other]);
    assert_eq!(alone.groups[0].planned, beside.groups[0].planned);
    assert_eq!(beside.flows.len(), 1, "background flows have no rows");
}

#[test]
fn other_flows_can_be_counted_together_too() {
    let link = pipe(Rate::from_mbps(100), Duration::from_millis(5), 1000);
    let mut world = World::new(simple(link.clone(), link), settings(1, 8.0)).unwrap();
    let group = world.add_group("short".into(), (secs(0.0), secs(8.0)));
    world
        .add_flow(FlowSpec {
            arrivals: Some(Duration::from_millis(10)),
            stop: Some(secs(5.0)),
            group: Some(group),
            rows: false,
            ..flow(0, 0, 1, tcp("cubic", Config::modern()), bulk(20_000))
        })
        .unwrap();
    let out = world.run(&mut |_| ControlFlow::Continue(())).unwrap();
    let g = &out.groups[0];
    assert!(out.flows.is_empty() && out.samples.flows.is_empty());
    assert!((400..600).contains(&g.flows), "{}", g.flows);
    assert_eq!((g.completed, g.delivered), (g.flows, g.flows * 20_000));
    assert_eq!(g.completion.count(), g.flows);
}

#[test]
fn generated_flows_are_numbered_after_all_that_is_declared() {
    let with_rows = |id| GeneratorSpec {
        id,
        rows: true,
        ..source(files(Size::Fixed(Bytes::new(10_000))), load(2))
    };
    for (declared, first) in [(&[0][..], 1), (&[0, 2], 3), (&[5, 2], 6)] {
        let link = pipe(Rate::from_mbps(1000), Duration::from_millis(5), 10_000);
        let mut world = World::new(simple(link.clone(), link), settings(1, 2.0)).unwrap();
        world.add_group(Arc::from("background"), (Instant::ZERO, secs(2.0)));
        for &id in declared {
            world.add_generator(with_rows(id)).unwrap();
        }
        let done = world.run(&mut |_| ControlFlow::Continue(())).unwrap();
        let ids: Vec<u64> = done.flows.iter().map(|f| f.id).collect();
        let n = ids.len() as u64;
        assert!(n > 10, "{ids:?}");
        assert_eq!(ids, (first..first + n).collect::<Vec<_>>(), "{declared:?}");
    }
}

#[test]
fn more_transfers_than_a_run_could_carry_are_refused() {
    let size = Size::Fixed(Bytes::new(1));
    let spec = source(files(size), load(1_000_000));
    let link = pipe(Rate::from_mbps(1000), Duration::from_millis(5), 10_000);
    let mut world = World::new(simple(link.clone(), link), settings(1, 3600.0)).unwrap();
    world.add_group("background".into(), (secs(0.0), secs(3600.0)));
    let error = world.add_generator(spec).unwrap_err().to_string();
    assert!(error.contains("billion"), "{error}");
}
