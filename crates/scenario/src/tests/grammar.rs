//! Every form that the documentation promises.

use super::ok;

/// The scenario of the design.
pub(crate) const DUMBBELL: &str = r#"
# cubic-vs-bbr.toml
name     = "cubic-vs-bbr"
seed     = 1
duration = "60s"

[topology.dumbbell]
pairs      = 2
access     = { rate = "1Gbit/s", delay = "1ms" }
bottleneck = { rate = "100Mbit/s", delay = "20ms", queue = { droptail = "250 packets" } }

[[flows]]
from = "left0"
to   = "right0"
transport.tcp = { congestion = "cubic" }
workload.bulk = {}                       # until the end; or { bytes = "50MB" }

[[flows]]
from  = "left1"
to    = "right1"
start = "5s"
transport.tcp = { congestion = "bbr" }
workload.bulk = {}
"#;

#[test]
fn dumbbell_of_the_design() {
    let s = ok(DUMBBELL);
    assert_eq!(s.name, "cubic-vs-bbr");
    let names: Vec<_> = s.links.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["bottleneck", "left0-routerL", "routerR-right0", "left1-routerL", "routerR-right1"]);
    assert_eq!(s.flows.len(), 2);
}
