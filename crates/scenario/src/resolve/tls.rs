//! TLS: the usual sizes, then those given.

use gargalo_units::Bytes;
use gargalo_workload::tls::Tls;

use super::Context;
use crate::model::{TlsMap, TlsSpec};

/// Largest flight: certificates of a megabyte are a slip.
const LARGEST: Bytes = Bytes::new(1_000_000);

/// Sizes of TLS at a dotted path, if there is any.
pub(super) fn resolve(spec: Option<TlsSpec>, at: &str, cx: &mut Context<'_>) -> Option<Tls> {
    let map = match spec? {
        TlsSpec::Set(false) => return None,
        TlsSpec::Set(true) | TlsSpec::Version(_) => TlsMap::default(),
        TlsSpec::To(map) => map,
    };
    let usual = if map.early_data == Some(true) {
        Tls::RESUMED
    } else {
        Tls::FULL
    };
    let mut size = |key: &str, given: Option<crate::quantity::Quantity<Bytes>>, usual, most| {
        let size = given.map_or(usual, |q| q.0);
        if !(Bytes::new(1)..=most).contains(&size) {
            let message = format!("{key} = \"{size}\" is out of range");
            let help = format!("give 1B to {most}; {usual} is usual");
            cx.error(&format!("{at}.{key}"), "out of range", message, help);
        }
        size
    };
    Some(Tls {
        client_hello: size(
            "client_hello",
            map.client_hello,
            usual.client_hello,
            LARGEST,
        ),
        server_flight: size(
            "server_flight",
            map.server_flight,
            usual.server_flight,
            LARGEST,
        ),
        client_finished: size(
            "client_finished",
            map.client_finished,
            usual.client_finished,
            LARGEST,
        ),
        record: size("record_size", map.record_size, usual.record, usual.record),
        ..usual
    })
}
