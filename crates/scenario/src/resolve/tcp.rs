//! Resolves TCP: the settings that depend on the route and the congestion control.

use gargalo_settings::Json;
use gargalo_settings::support::Map;
use gargalo_tcp::{EcnMode, Profile};

use super::Context;
use crate::model::Tcp;

/// Sets what depends on the route and the congestion control; `written` is what the scenario sets.
pub(crate) fn settle(tcp: &mut Tcp, written: &Json, mtu: u32, at: &str, cx: &mut Context<'_>) {
    let none = Map::new();
    let given = written.as_object().unwrap_or(&none);
    // DCTCP and Prague require ECN and feedback of each mark (RFC 8257 §3.2, RFC 9331 §4.2).
    if matches!(given.get("ecn"), None | Some(Json::Bool(true))) {
        match tcp.congestion.name.as_str() {
            "dctcp" => tcp.config.ecn = EcnMode::Dctcp,
            "prague" => tcp.config.ecn = EcnMode::L4s,
            _ => {}
        }
    }
    // ns-3's NewReno adds one segment for each acknowledgement in slow start, however much it acknowledges, and
    // does not count bytes.
    const COUNTED: &str = "abc_limit";
    let congestion = &mut tcp.congestion;
    if tcp.config.profile == Profile::Ns3
        && congestion.name == "reno"
        && congestion.params.iter().all(|(key, _)| key != COUNTED)
    {
        congestion.params.push(COUNTED, 1.0.into());
    }
    congestion.complete();
    if let Err(e) = tcp.config.settle(given, mtu) {
        cx.refuse(at, e);
    }
}
