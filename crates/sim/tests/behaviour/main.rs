//! How every registered congestion control behaves on a path, against what is known of it.
//!
//! A new algorithm meets [`Traits::DEFAULT`]; what is published to be otherwise is in [`traits`].

#[path = "../support/mod.rs"]
mod support;

mod changes;
mod loss;
mod steady;
mod workloads;

use gargalo_cc::ALGORITHMS;
use gargalo_flow::{Outcome, TransportSpec};
use gargalo_link::queue::QueueLimit;
use gargalo_link::{LinkConfig, QueueConfig, StepConfig};
use gargalo_sim::Recording;
use gargalo_tcp::{Config, EcnMode};
use gargalo_units::{Bytes, Duration, Instant, Rate};
use gargalo_workload::Workload;
use support::*;

/// What is known of an algorithm; ranges are inclusive.
#[derive(Clone, Copy, Debug)]
struct Traits {
    /// Utilisation of a clean link with a buffer of one bandwidth-delay product.
    fills: (f64, f64),
    /// The steady queueing delay on a link with a deep buffer (100 Mbit/s, 50 ms, 4 BDP), milliseconds.
    queue: (f64, f64),
    /// When that queue is steady, in seconds.
    settled: f64,
    /// Mean window in segments when every thousandth packet is lost and the round-trip time is 100 ms;
    /// the link and its buffer (200 Mbit/s) hold 3333.
    window: (f64, f64),
    /// Utilisation in the last third after the capacity came back.
    returns: (f64, f64),
    /// Utilisation in the last third after the round-trip time has doubled.
    reroutes: (f64, f64),
    /// Share of what a source of 3 s of 60 Mbit/s and 3 s of silence offers that is carried.
    resumes: (f64, f64),
    /// Largest window in segments while the application offers a twentieth of the link (21 segments a
    /// round trip).
    idle_window: f64,
    /// Needs ECN with the receiver of RFC 8257, and a queue that marks.
    ecn: Option<EcnMode>,
}

const FULL: (f64, f64) = (0.9, 1.01);

impl Traits {
    /// Fills the link and the buffer, answers loss by backing off.
    const DEFAULT: Self = Self {
        fills: FULL,
        queue: (30.0, 201.0),
        settled: 30.0,
        window: (15.0, 400.0),
        returns: FULL,
        reroutes: FULL,
        resumes: (0.97, 1.001),
        idle_window: 100.0,
        ecn: None,
    };
}

fn traits(name: &str) -> Traits {
    let d = Traits::DEFAULT;
    match name {
        // Windows at p = 1/1000: 1.2/√p = 38 (RFC 9438 table 1); with one acknowledgement for two segments and
        // growth by acknowledgement 0.87/√p = 27.
        // The coupled ones are Reno on a single path.
        "reno" | "lia" | "olia" | "balia" => Traits {
            window: (34.0, 42.0),
            ..d
        },
        "newreno" => Traits {
            window: (24.0, 30.0),
            ..d
        },
        "tahoe" => Traits {
            window: (20.0, 30.0),
            ..d
        },
        // RFC 9438 table 1: 39.
        "cubic" => Traits {
            window: (35.0, 43.0),
            ..d
        },
        // RFC 3649 §5: 0.12/p^0.835 = 38.
        "hstcp" => Traits {
            window: (34.0, 42.0),
            ..d
        },
        // Kelly 2003: 0.075/p.
        "scalable" => Traits {
            window: (62.0, 85.0),
            ..d
        },
        "bic" => Traits {
            window: (45.0, 75.0),
            ..d
        },
        "htcp" => Traits {
            window: (40.0, 80.0),
            ..d
        },
        // Reno at 25 ms has 38 segments a round trip, so four times that in 100 ms.
        "hybla" => Traits {
            window: (115.0, 165.0),
            idle_window: 200.0,
            ..d
        },
        "illinois" => Traits {
            window: (150.0, 300.0),
            ..d
        },
        // Adapts its increase to the capacity it believes in, which has just been a tenth.
        "libra" => Traits {
            window: (40.0, 400.0),
            returns: (0.7, 1.01),
            ..d
        },
        // Random loss costs a fifth, not half.
        "veno" => Traits {
            window: (45.0, 80.0),
            ..d
        },
        "compound" => Traits {
            window: (45.0, 75.0),
            ..d
        },
        // A loss without a queue leaves the window at the bandwidth-delay product measured.
        "westwood" => Traits {
            queue: (20.0, 201.0),
            window: (990.0, 3400.0),
            ..d
        },
        "westwood+" => Traits {
            queue: (20.0, 201.0),
            window: (120.0, 3400.0),
            ..d
        },
        "yeah" => Traits {
            queue: (5.0, 201.0),
            window: (60.0, 110.0),
            reroutes: (0.3, 1.01),
            ..d
        },
        // Two to four segments in the queue, 0.12 ms each. A longer route looks like a queue for good
        // (Mo, La, Anantharam, Walrand, INFOCOM 1999).
        "vegas" => Traits {
            queue: (0.1, 0.8),
            window: (33.0, 43.0),
            reroutes: (0.0, 0.5),
            ..d
        },
        // Alone on a path Vegas with ten to eleven segments; its slow start doubles every round, takes its
        // own burst for a queue and ends early.
        "wvegas" => Traits {
            queue: (1.0, 1.6),
            window: (33.0, 43.0),
            reroutes: (0.0, 0.5),
            resumes: (0.93, 1.001),
            ..d
        },
        // Twenty segments in the queue at 100 Mbit/s; the same weakness.
        "fast" => Traits {
            queue: (1.5, 4.0),
            window: (40.0, 70.0),
            reroutes: (0.0, 0.5),
            ..d
        },
        // The target of 100 ms, reached at a segment a round trip without slow start.
        "ledbat" => Traits {
            fills: (0.85, 1.01),
            queue: (80.0, 105.0),
            settled: 150.0,
            window: (30.0, 43.0),
            reroutes: (0.4, 1.01),
            resumes: (0.9, 1.001),
            ..d
        },
        // Marks above 70 packets, 8.4 ms.
        "dctcp" => Traits {
            queue: (5.0, 9.0),
            window: (34.0, 42.0),
            reroutes: (0.88, 1.01),
            ecn: Some(EcnMode::Dctcp),
            ..d
        },
        // The same, paced and with growth in every round.
        "prague" => Traits {
            queue: (1.0, 9.0),
            window: (34.0, 42.0),
            ecn: Some(EcnMode::L4s),
            ..d
        },
        // Two segments (1/δ) and its oscillation; loss is no signal.
        "copa" => Traits {
            queue: (0.1, 2.0),
            window: (1500.0, 3400.0),
            reroutes: (0.8, 1.01),
            ..d
        },
        // Cruise at the bandwidth-delay product; a thousandth lost is below the threshold of 2%.
        "bbr" => Traits {
            queue: (0.0, 10.0),
            window: (1500.0, 3600.0),
            idle_window: 400.0,
            ..d
        },
        // What the application wrote before the window had opened leaves in start-up, at up to 2.77 times the rate at
        // which it writes; the window is twice what that rate fills: 2 · 2.77 · 21.6.
        "bbr2" | "bbr3" => Traits {
            queue: (0.0, 10.0),
            window: (1200.0, 3600.0),
            idle_window: 120.0,
            ..d
        },
        _ => d,
    }
}

const RATE: Rate = Rate::from_mbps(100);
const RTT: Duration = Duration::from_millis(50);
/// 100 Mbit/s for 50 ms in packets of 1500 bytes.
const BDP: u64 = 416;
const MARK_ABOVE: u64 = 70;

fn config(name: &str) -> Config {
    let mut config = Config::modern();
    if let Some(mode) = traits(name).ecn {
        config.ecn = mode;
    }
    config
}

/// Link with what the algorithm needs: marking above a sixth of the bandwidth-delay product for DCTCP and Prague
/// (Alizadeh et al., SIGCOMM 2010: more than a seventh), tail drop for all others.
fn bottleneck(name: &str, rate: Rate, rtt: Duration, packets: u64) -> LinkConfig {
    let mut link = pipe(rate, rtt / 2, packets);
    if traits(name).ecn.is_some() {
        link.queue = QueueConfig::Step(StepConfig {
            mark_above: QueueLimit::Packets(MARK_ABOVE),
            limit: packets,
            ..Default::default()
        });
    }
    link
}

fn transport(name: &str) -> TransportSpec {
    tcp(name, config(name))
}

/// One flow of `name` over `up`, sampled every 20 ms.
fn alone(name: &str, up: LinkConfig, seconds: f64, workload: Workload) -> Outcome {
    let down = LinkConfig {
        queue: QueueConfig::DropTail(QueueLimit::Packets(100_000)),
        loss: gargalo_link::LossModel::NONE,
        ..up.clone()
    };
    let mut settings = settings(1, seconds);
    settings.recording = Recording {
        interval: Some(Duration::from_millis(20)),
        flows: true,
        links: true,
        events: false,
        ..Recording::default()
    };
    let flows = vec![flow(0, 0, 1, transport(name), workload)];
    run(simple(up, down), settings, flows)
}

/// Bytes the receiver got between two instants, as a share of what `rate` carries in payload.
fn utilisation(out: &Outcome, rate: Rate, from: f64, to: f64) -> f64 {
    let delivered = |t: f64| {
        let at = secs(t);
        out.samples
            .flows
            .iter()
            .take_while(|s| s.time <= at)
            .last()
            .map_or(0.0, |s| s.delivered.as_f64())
    };
    let payload = 1448.0 / 1500.0;
    (delivered(to) - delivered(from)) / ((to - from) * rate.bytes_per_sec() * payload)
}

/// The median queueing delay at the bottleneck between two instants, in seconds.
fn median_queue(out: &Outcome, from: f64, to: f64) -> f64 {
    let mut delays: Vec<f64> = out
        .samples
        .links
        .iter()
        .filter(|s| s.direction == 0 && s.time >= secs(from) && s.time <= secs(to))
        .map(|s| s.queue_delay.as_secs_f64())
        .collect();
    delays.sort_by(f64::total_cmp);
    delays[delays.len() / 2]
}

/// The congestion windows in segments after an instant.
fn windows(out: &Outcome, from: f64) -> impl Iterator<Item = f64> {
    let from: Instant = secs(from);
    out.samples
        .flows
        .iter()
        .filter(move |s| s.time >= from)
        .map(|s| s.cwnd.as_f64() / 1448.0)
}

/// Runs `check` on every algorithm; it returns a line to print, or what is wrong.
fn each(check: impl Fn(&'static str, &Traits) -> Result<String, String> + Sync) {
    let names: Vec<&'static str> = ALGORITHMS.iter().map(|a| a.name).collect();
    let mut wrong = Vec::new();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let results = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(name) = names.get(i) else { break };
                    let result = check(name, &traits(name));
                    results.lock().unwrap().push((*name, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(name, _)| *name);
    for (name, result) in results {
        match result {
            Ok(line) => println!("{name:>12}  {line}"),
            Err(line) => {
                println!("{name:>12}  {line}  <-- WRONG");
                wrong.push(format!("{name}: {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a figure is within its range, said in a line either way.
fn within(what: &str, value: f64, range: (f64, f64)) -> Result<String, String> {
    let line = format!("{what} {value:.3}, {} to {}", range.0, range.1);
    if (range.0..=range.1).contains(&value) {
        Ok(line)
    } else {
        Err(line)
    }
}

/// `Ok` if `good`, with the same line either way.
fn verdict(good: bool, line: String) -> Result<String, String> {
    if good { Ok(line) } else { Err(line) }
}
