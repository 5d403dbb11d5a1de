//! Data packets of QUIC through a bottleneck of 1 Gbit/s and 40 ms of round trip, per second of processor time.
//!
//! `cargo bench -p gargalo-scenario --bench quic`; `SECONDS` is the virtual duration, an argument selects cases.

use gargalo_scenario::build::{RunOptions, run};
use gargalo_scenario::{Origin, parse};

/// Processor time of this process, in seconds (proc_pid_schedstat: nanoseconds on a processor come first).
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next().and_then(|n| n.parse().ok());
    first.map_or(f64::NAN, |nanoseconds: f64| nanoseconds / 1e9)
}

fn scenario(crypto: &str, flows: u32, seconds: u32) -> String {
    let mut text = format!(
        "duration = \"{seconds}s\"\nseed = 1\n[topology.simple]\nlink = {{ rate = \"1Gbit/s\", delay = \"20ms\", \
         queue = {{ droptail = \"1BDP\" }} }}\n"
    );
    for _ in 0..flows {
        text += &format!(
            "[[flows]]\nfrom = \"client\"\nto = \"server\"\ntransport.quic = {{ crypto = \"{crypto}\" \
             }}\nworkload.bulk = {{}}\n"
        );
    }
    text
}

fn main() {
    let seconds = std::env::var("SECONDS").map_or(20, |s| s.parse().unwrap());
    let only = std::env::args().nth(1).filter(|a| !a.starts_with('-'));
    for (crypto, flows) in [("tls", 1), ("tls", 20), ("null", 1), ("null", 20)] {
        let name = format!("{crypto} {flows}");
        if only.as_ref().is_some_and(|o| *o != name) {
            continue;
        }
        let text = scenario(crypto, flows, seconds);
        let parsed = match parse(&text, &Origin::default(), &[]) {
            Ok(parsed) => parsed,
            Err(e) => panic!("{}", e.render(false)),
        };
        let start = processor_time();
        let out = run(&parsed, RunOptions::default()).unwrap();
        let time = processor_time() - start;
        let packets: u64 = out
            .tables
            .flows
            .rows()
            .map(|f| f["sent_packets"].as_u64().unwrap_or(0))
            .sum();
        println!(
            "{name:8} {:8.0} data packets/s, {packets} packets, {time:.2} s of processor time",
            packets as f64 / time
        );
    }
}
