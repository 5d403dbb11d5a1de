//! Resolves TCP: the settings that depend on the route and the congestion control.

use gargalo_cc::chosen::Congestion;
use gargalo_cc::registry;
use gargalo_settings::Json;
use gargalo_settings::support::Map;
use gargalo_tcp::{EcnMode, Pacing};

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
    let congestion = &mut tcp.congestion;
    let control = tcp.config.profile.control(&congestion.name);
    // A table is of the implementation that it names.
    let named = !matches!(given.get("congestion"), Some(Json::Object(_)));
    if let Some(instead) = control.instead.filter(|_| named) {
        *congestion = Congestion::new(instead, control.params);
    } else if control.instead.is_none() {
        congestion.params.complete_with(&control.params);
    }
    // BBR is defined by its pacing (draft-ietf-ccwg-bbr-04 §5.6.2): a profile without is of its window-based controls.
    if matches!(tcp.config.pacing, Pacing::Off)
        && !given.contains_key("pacing")
        && registry::needs_pacing(&congestion.name)
    {
        tcp.config.pacing = Pacing::Controller;
    }
    congestion.complete();
    if let Err(e) = tcp.config.settle(given, mtu) {
        cx.refuse(at, e);
    }
}
