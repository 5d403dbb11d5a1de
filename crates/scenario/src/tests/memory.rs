//! What a run will record at least, and the limit.

use gargalo_units::Bytes;

use super::ok;
use crate::memory::{Estimate, left, usual_limit};

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
fn arrivals_count_until_they_stop() {
    let rows = |more: &str| {
        let head = "record.flows = false\nrecord.interval =";
        Estimate::of(&ok(&format!(
            "{}{more}",
            TEXT.replace("record.interval =", head)
        )))
        .rows
    };
    let arrivals = "workload.bulk.bytes = \"1kB\"\narrivals.rate = \"1/s\"\n";
    assert_eq!(rows(arrivals), 2_000_000_000);
    assert_eq!(rows(&format!("{arrivals}stop = \"10s\"\n")), 20_000_000);
}

#[test]
fn rows_of_subflows_and_gauges_are_counted() {
    let mptcp = TEXT.replace("tcp = {}", "mptcp = {}");
    assert_eq!(Estimate::of(&ok(&mptcp)).rows, 4_000_000_000);
    let gauges = TEXT.replace("record.interval", "record.gauges = true\nrecord.interval");
    assert_eq!(Estimate::of(&ok(&gauges)).rows, 8_000_000_000);
}

/// What is left where files have these contents.
fn left_with(files: &[(&str, &str)]) -> Option<u64> {
    let machine = (
        "/proc/meminfo",
        "MemTotal: 9 kB\nMemAvailable:    1000 kB\n",
    );
    let files: std::collections::BTreeMap<_, _> = files.iter().chain([&machine]).copied().collect();
    left(|path| files.get(path).map(|text| (*text).to_owned()))
}

#[test]
fn control_groups_limit_with_those_above_them_and_without_what_is_cached() {
    assert_eq!(left_with(&[]), Some(1_024_000));
    let own = ("/proc/self/cgroup", "0::/a/b\n");
    let inner = [
        own,
        ("/sys/fs/cgroup/a/b/memory.max", "500000\n"),
        ("/sys/fs/cgroup/a/b/memory.current", "400000\n"),
    ];
    assert_eq!(left_with(&inner), Some(100_000));
    let cached = (
        "/sys/fs/cgroup/a/b/memory.stat",
        "anon 1\ninactive_file 300000\n",
    );
    let mut all = inner.to_vec();
    all.push(cached);
    assert_eq!(left_with(&all), Some(400_000));
    all.extend([
        ("/sys/fs/cgroup/a/memory.max", "600000\n"),
        ("/sys/fs/cgroup/a/memory.current", "550000\n"),
        ("/sys/fs/cgroup/memory.max", "max\n"),
    ]);
    assert_eq!(left_with(&all), Some(50_000), "of the group above");
    // Of a container that sees its own group as the root, with the path of the host.
    let root = [
        own,
        ("/sys/fs/cgroup/memory.max", "70000"),
        ("/sys/fs/cgroup/memory.current", "9000"),
    ];
    assert_eq!(left_with(&root), Some(61_000));
    let old = [
        ("/proc/self/cgroup", "7:cpu,cpuacct:/x\n4:memory:/x/y\n"),
        ("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "90000"),
        ("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "80000"),
        (
            "/sys/fs/cgroup/memory/x/memory.stat",
            "inactive_file 1\ntotal_inactive_file 30000\n",
        ),
    ];
    assert_eq!(left_with(&old), Some(40_000));
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
