//! What a run will record at least, and the limit.

use gargalo_units::Bytes;

use super::ok;
use crate::memory::{Estimate, usual_limit};

const TEXT: &str = r#"
duration = "1000s"
topology.simple.link = { rate = "10Mbit/s", delay = "10ms" }
record.interval = "1us"
[[flows]]
from = "client"
to = "server"
transport.tcp = {}
"#;

#[test]
fn samples_are_counted_before_the_start() {
    let e = Estimate::of(&ok(TEXT));
    assert_eq!(e.rows, 3_000_000_000);
    assert!((100..1000).contains(&(e.bytes / e.rows)), "{e:?}");
    let without = |key: &str| {
        let text = TEXT.replace("interval =", &format!("{key} = false\nrecord.interval ="));
        Estimate::of(&ok(&text)).rows
    };
    assert_eq!(without("flows"), 2_000_000_000);
    assert_eq!(without("links"), 1_000_000_000);
}

#[test]
fn what_may_end_early_is_not_counted() {
    let text = format!("{TEXT}workload.bulk.bytes = \"1kB\"\n");
    assert_eq!(Estimate::of(&ok(&text)), Estimate::default());
}

#[test]
fn a_refusal_has_the_figures_and_an_interval_that_does() {
    let scenario = ok(TEXT);
    let limit = Some(Bytes::new(1 << 30));
    let e = Estimate::of(&scenario).check(&scenario, limit).unwrap_err();
    let text = e.to_string();
    for part in [
        "3000000000 rows",
        "record.interval = \"1us\"",
        "--memory-limit",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let enough = TEXT.replace("1us", &e.enough.to_string());
    let scenario = ok(&enough);
    assert_eq!(Estimate::of(&scenario).check(&scenario, limit), Ok(()));
    assert_eq!(Estimate::of(&scenario).check(&scenario, None), Ok(()));
}

#[test]
fn the_machine_says_what_there_is() {
    if cfg!(target_os = "linux") {
        assert!(usual_limit().unwrap() > Bytes::new(1 << 20));
    }
}
