//! Resolves transports: the written settings, then those that depend on the route and the congestion control.

use std::sync::Arc;

use gargalo_settings::Json;

use super::{Context, tcp};
use crate::model::Transport as Spec;
use crate::resolved::Transport;

/// Resolves a transport whose packets must fit the MTU of its route.
pub(crate) fn resolve(raw: &Spec, mtu: u32, at: &str, cx: &mut Context<'_>) -> Transport {
    match raw {
        Spec::Tcp(written) => {
            let at = format!("{at}.transport.tcp");
            let mut read = cx.read(written, &at).unwrap_or_default();
            tcp::settle(&mut read, written.json(), mtu, &at, cx);
            Transport::Tcp(Arc::new(read))
        }
        Spec::Mptcp(written) => super::mptcp::resolve(written, mtu, at, cx),
        Spec::Quic(written) => super::quic::resolve(written, mtu, at, cx),
        Spec::Udp(_) => Transport::Udp,
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
