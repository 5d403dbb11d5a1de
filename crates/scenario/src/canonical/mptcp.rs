//! Multipath TCP in the canonical JSON.

use gargalo_mptcp::DataNumbers;
use serde_json::{Value, json};

use super::{params, seconds, tcp_transport};
use crate::resolved::{Chosen, Mptcp};

/// Multipath TCP under the names of the scenario, with units.
pub(super) fn json<'a>(
    m: &Mptcp,
    node: &dyn Fn(usize) -> &'a str,
    link: &dyn Fn(usize) -> &'a str,
) -> Value {
    let mut out = tcp_transport(&m.tcp);
    let chosen = |c: &Chosen| json!({ c.name.as_str(): params(&c.params) });
    let links = |l: &[usize]| l.iter().map(|l| link(*l)).collect::<Vec<_>>();
    let changes = m.changes.iter().map(|c| {
        json!({
            "after_s": seconds(c.after), "host": if c.side == 0 { "from" } else { "to" },
            if c.add { "add" } else { "remove" }: link(c.link)
        })
    });
    out["scheduler"] = chosen(&m.scheduler);
    out["path_manager"] = chosen(&m.path_manager);
    out["multipath"] = json!({
        "opportunistic_retransmission": m.opportunistic_retransmission,
        "penalisation": m.penalisation, "probe_interval_s": m.probe_interval.map(seconds),
        "checksum": m.checksum, "max_subflows": m.max_subflows,
        "data_numbers": match m.data_numbers {
            DataNumbers::Short => "short",
            DataNumbers::Long => "long",
        },
        "links": m.links.as_deref().map(links), "backup": links(&m.backups),
        "gateways": m.gateways.iter().map(|n| node(*n)).collect::<Vec<_>>(),
        "changes": changes.collect::<Vec<_>>(),
    });
    json!({ "mptcp": out })
}
