//! The background of a 1 Gbit/s link over 20 s, as it goes over the wire: within 3% of what was asked for, in both
//! directions, composed as asked for.

use serde_json::Value;

use crate::common::simulate;

const SECONDS: u32 = 20;

fn background(load: &str, seed: u64) -> Value {
    let text = format!(
        r#"
duration = "{SECONDS}s"
seed = {seed}
[topology.dumbbell]
pairs      = 10
access     = {{ rate = "10Gbit/s", delay = "1ms" }}
bottleneck = {{ rate = "1Gbit/s", delay = "10ms", queue = {{ droptail = "1BDP" }} }}
[[flows]]
from = "left*"
to   = "right*"
transport.tcp = {{ congestion = "cubic" }}
workload.mix  = {{ link = "bottleneck", load = "{load}" }}
[record]
links = false
"#
    );
    simulate(&text).json
}

fn check(load: &str, seed: u64) {
    let asked: f64 = load.trim_end_matches('%').parse::<f64>().unwrap() / 100.0;
    let json = background(load, seed);
    let near = |got: &Value, want: f64, tolerance: f64| {
        let off = got.as_f64().unwrap() / want - 1.0;
        assert!(
            off.abs() < tolerance,
            "{load}, seed {seed}: {got} for {want}"
        );
    };
    let loads = json["summary"]["background"]["loads"].as_array().unwrap();
    assert_eq!(loads.len(), 2);
    for l in loads {
        near(&l["offered_load"], asked, 0.01);
        near(&l["sent_load"], asked, 0.03);
        near(&l["shares"]["cbr"], 0.20, 0.02);
        near(&l["shares"]["ftp"], 0.24, 0.02);
        near(&l["shares"]["web"], 0.56, 0.02);
    }
    for link in json["links"].as_array().unwrap().iter().take(2) {
        assert_eq!(link["name"], "bottleneck");
        near(&link["utilization"], asked, 0.03);
    }
    let flows = json["run"]["flows"].as_f64().unwrap() / f64::from(SECONDS);
    assert!(flows > 10_000.0 * asked, "{flows} flows a second");
    assert!(json["run"]["peak_flows"].as_u64().unwrap() < 5000);
    assert_eq!(json["run"]["warnings"], serde_json::json!([]));
}

#[test]
fn a_fifth() {
    check("20%", 1);
    check("20%", 2);
}

#[test]
fn half() {
    check("50%", 3);
}

#[test]
fn four_fifths() {
    check("80%", 4);
}
