//! Every congestion control carries 100 MB over each of the six networks of `examples/networks`, and
//! every byte arrives as it was sent.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use gargalo_scenario::build::{RunOptions, run};
use gargalo_scenario::{Origin, parse};

const BYTES: u64 = 100_000_000;

fn networks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/networks")
}

/// Completion time in seconds, or what went wrong.
fn carry(network: &str, congestion: &str) -> Result<f64, String> {
    let path = networks().join(format!("{network}.toml"));
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let overrides = [
        // At 0.1% loss and 300 ms the slowest need twenty minutes.
        ("duration", "3h"),
        ("record.flows", "false"),
        ("record.links", "false"),
        ("record.events", "false"),
        ("record.verify", "true"),
        ("flows.0.workload.bulk.bytes", "100MB"),
        ("flows.0.transport.tcp.congestion", congestion),
    ]
    .map(|(k, v)| (k.to_owned(), v.to_owned()));
    let origin = Origin {
        path: Some(path.clone()),
    };
    let scenario = parse(&text, &origin, &overrides).map_err(|e| e.to_string())?;
    let out = run(&scenario, RunOptions::default()).map_err(|e| e.to_string())?;
    let flow = out.tables.flows.rows().next().ok_or("no flow")?;
    if flow["delivered_bytes"] != BYTES || flow["verified"] != true {
        return Err(flow.to_string());
    }
    flow["completion_s"]
        .as_f64()
        .ok_or_else(|| flow.to_string())
}

#[test]
fn every_byte_over_every_network() {
    let jobs: Vec<(&str, &str)> = [
        "access",
        "lan",
        "transatlantic",
        "satellite",
        "wifi",
        "cellular",
    ]
    .into_iter()
    .flat_map(|n| gargalo_cc::ALGORITHMS.iter().map(move |a| (n, a.name)))
    .collect();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((network, congestion)) =
                    jobs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    match carry(network, congestion) {
                        Ok(time) => println!("{network:>14} {congestion:>10} {time:>10.1} s"),
                        Err(e) => failures
                            .lock()
                            .unwrap()
                            .push(format!("{congestion} over {network}: {e}")),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
