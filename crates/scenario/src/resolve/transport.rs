//! Resolves transports: the written settings, then those that depend on the route and the congestion control.

use std::sync::Arc;

use gargalo_settings::Json;
use gargalo_settings::support::Map;
use gargalo_tcp::{EcnMode, Profile};

use super::Context;
use crate::model::{Tcp, Transport as Spec};
use crate::resolved::Transport;

/// Resolves a transport whose packets must fit the MTU of its route.
pub(crate) fn resolve(raw: &Spec, mtu: u32, at: &str, cx: &mut Context<'_>) -> Transport {
    match raw {
        Spec::Tcp(written) => {
            let at = format!("{at}.transport.tcp");
            let mut tcp = written.read(&at, cx).unwrap_or_default();
            settle(&mut tcp, written.json(), mtu, &at, cx);
            Transport::Tcp(Arc::new(tcp))
        }
        Spec::Mptcp(written) => super::mptcp::resolve(written, mtu, at, cx),
        Spec::Quic(written) => super::quic::resolve(written, mtu, at, cx),
        Spec::Udp(_) => Transport::Udp,
    }
}

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

/// A transport as a scenario writes it, with every default: it reads as the same again, as what was left to the route
/// and the congestion control is said. `copies`: the same between each pair of hosts; a path manager that follows
/// from the hosts and is not the same for all is not said.
pub(crate) fn written_out(transport: &Transport, copies: &[Transport]) -> Json {
    let mut out = transport.write();
    let manager = |t: &Transport| match t {
        Transport::Mptcp(m) => m.spec.path_manager.clone(),
        _ => None,
    };
    if copies.iter().any(|c| manager(c) != manager(transport))
        && let Some(table) = out["mptcp"].as_object_mut()
    {
        table.remove("path_manager");
    }
    out
}
