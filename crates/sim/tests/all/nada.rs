//! Media by NADA on the paths of RFC 8867 §5.

use crate::support::*;
use gargalo_flow::{Outcome, TransportSpec};
use gargalo_link::queue::QueueLimit;
use gargalo_link::{Delay, LinkConfig, QueueConfig, RateModel};
use gargalo_sim::Recording;
use gargalo_units::{Duration, Instant, Rate};
use gargalo_workload::AppResult;
use gargalo_workload::Workload;
use gargalo_workload::media::Media;

const MS: Duration = Duration::from_millis(1);

fn media() -> Workload {
    Workload::Media(Media::default())
}

/// The path of RFC 8867 §4: 50 ms one way, tail drop of 300 ms.
fn path(rate: RateModel) -> LinkConfig {
    LinkConfig {
        rate,
        delay: Delay::Constant(MS * 50),
        queue: QueueConfig::DropTail(QueueLimit::Time(MS * 300)),
        ..LinkConfig::default()
    }
}

/// Flows of media that start at these seconds.
fn call(up: LinkConfig, starts: &[f64], seconds: f64) -> Outcome {
    let down = path(RateModel::Constant(Rate::from_mbps(10)));
    let flows = starts.iter().enumerate().map(|(i, start)| {
        let mut f = flow(i as u64, 0, 1, TransportSpec::Udp, media());
        f.start = secs(*start);
        f
    });
    let mut settings = settings(1, seconds);
    settings.recording = Recording {
        interval: Some(MS * 100),
        flows: true,
        links: true,
        events: false,
        gauges: false,
        datagrams: false,
    };
    run(simple(up, down), settings, flows.collect())
}

/// Mean rate in kbit/s that reached the receiver between two instants.
fn rate(out: &Outcome, flow: u64, from: f64, to: f64) -> f64 {
    let at = |t: Instant| {
        let samples = out.samples.flows.iter().filter(|s| s.flow == flow);
        samples
            .take_while(|s| s.time <= t)
            .last()
            .map_or(0, |s| s.delivered.get())
    };
    (at(secs(to)) - at(secs(from))) as f64 * 8e-3 / (to - from)
}

/// Queueing delays in milliseconds between two instants, sorted.
fn queue(out: &Outcome, from: f64, to: f64) -> Vec<f64> {
    let within = |t: Instant| t >= secs(from) && t < secs(to);
    let samples = out.samples.links.iter();
    let up = samples.filter(|s| s.direction == 0 && within(s.time));
    let mut all: Vec<f64> = up.map(|s| s.queue_delay.as_secs_f64() * 1e3).collect();
    all.sort_by(f64::total_cmp);
    all
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * q) as usize]
}

#[test]
fn alone_it_uses_the_link_and_keeps_the_queue_short() {
    let out = call(path(RateModel::Constant(Rate::from_mbps(1))), &[0.0], 60.0);
    let got = rate(&out, 0, 20.0, 60.0);
    let delays = queue(&out, 20.0, 60.0);
    let (median, high) = (quantile(&delays, 0.5), quantile(&delays, 0.95));
    eprintln!("{got:.0} kbit/s, queue {median:.1} and {high:.1} ms");
    assert!((800.0..1000.0).contains(&got), "{got} kbit/s");
    assert!(median < 60.0 && high < 100.0, "{median} and {high} ms");
    assert_eq!(out.flows[0].counters.lost_packets, 0);
    let Some(AppResult::Media(m)) = &out.flows[0].application else {
        panic!("no media");
    };
    assert!(m.reports > 580 && m.loss == 0.0, "{m:?}");
}

/// RFC 8867 §5.1: 1 Mbit/s, from 40 s on 2.5, from 60 s on 0.6, from 80 s on 1 again.
#[test]
fn steps_of_the_capacity_are_followed() {
    let steps = [(0.0, 1000), (40.0, 2500), (60.0, 600), (80.0, 1000)];
    let steps = steps.map(|(t, kbps)| (secs(t), Rate::from_bps(kbps * 1000)));
    let out = call(path(RateModel::Steps(steps.to_vec())), &[0.0], 100.0);
    for (from, to, least, most) in [
        (20.0, 40.0, 800.0, 1000.0),
        // No more than the encoder's highest rate.
        (50.0, 60.0, 1400.0, 1600.0),
        (70.0, 80.0, 450.0, 600.0),
        (90.0, 100.0, 700.0, 1000.0),
    ] {
        let got = rate(&out, 0, from, to);
        let delay = quantile(&queue(&out, from, to), 0.95);
        eprintln!("{from} to {to} s: {got:.0} kbit/s, {delay:.0} ms");
        assert!(
            (least..most).contains(&got),
            "{from} to {to} s: {got} kbit/s"
        );
        assert!(delay < 150.0, "{from} to {to} s: {delay} ms");
    }
}

#[test]
fn two_share_fairly_and_a_late_one_gets_its_part() {
    let out = call(
        path(RateModel::Constant(Rate::from_mbps(2))),
        &[0.0, 20.0],
        120.0,
    );
    let rates = [0, 1].map(|flow| rate(&out, flow, 60.0, 120.0));
    let ratio = rates[0] / rates[1];
    eprintln!("{rates:?}");
    assert!((0.75..1.34).contains(&ratio), "{rates:?}");
    assert!(rates[0] + rates[1] > 1600.0, "{rates:?}");
    assert!(quantile(&queue(&out, 60.0, 120.0), 0.95) < 100.0);
}

/// Loss of reports slows it down no more than it must; an outage of the reverse path stops it.
#[test]
fn lost_reports_are_survived_and_none_at_all_halves_the_rate() {
    let up = || path(RateModel::Constant(Rate::from_mbps(1)));
    let mut down = path(RateModel::Constant(Rate::from_mbps(10)));
    down.loss = gargalo_link::LossModel::Independent(0.3);
    down.outages = vec![(secs(40.0), secs(60.0))];
    let flows = vec![flow(0, 0, 1, TransportSpec::Udp, media())];
    let mut settings = settings(1, 60.0);
    settings.recording.interval = Some(MS * 100);
    settings.recording.flows = true;
    let out = run(simple(up(), down), settings, flows);
    assert!(rate(&out, 0, 20.0, 40.0) > 700.0);
    let silent = rate(&out, 0, 50.0, 60.0);
    assert!((130.0..170.0).contains(&silent), "{silent}");
    assert_eq!(
        out.flows[0].counters.lost_packets, 0,
        "reports are no media"
    );
}
