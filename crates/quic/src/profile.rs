//! Named sets of defaults.

use gargalo_settings::{Error, Files, Json, Schemas, Setting};
use serde_json::json;

/// A named set of defaults of both ends.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Name in scenarios.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// What differs from the standard, as a scenario would write it; its congestion control among it.
    pub options: fn() -> Json,
}

/// All profiles, the default first.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "rfc9000",
        summary: "the standard: initial window 10, CUBIC, pacing, datagrams of 1200 bytes and discovery of larger",
        source: "RFC 9000, 9002, 9438, 8899",
        options: || json!({ "profile": "rfc9000" }),
    },
    Profile {
        name: "google-v41",
        summary: "Google QUIC of 2018: initial window 32, CUBIC like two connections, hybrid slow start, datagrams of 1350 bytes",
        source: "Chromium's QUIC, version 41",
        options: || {
            json!({
                "profile": "google-v41",
                "congestion": { "cubic": { "connections": 2, "slow_start": "hystart" } },
                "datagram_size": "1350B",
                "mtu_discovery": false,
                // 32 and 2000 datagrams of 1350 bytes, whatever datagram size is given.
                "initial_window": "43200B",
                "max_window": "2700kB",
            })
        },
    },
];

impl Profile {
    /// The default.
    pub const STANDARD: &'static Self = &PROFILES[0];
}

impl PartialEq for Profile {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// A profile is written as its name.
impl Setting for &'static Profile {
    fn schema(_: &mut Schemas) -> Json {
        let names: Vec<_> = PROFILES.iter().map(|p| p.name).collect();
        json!({ "type": "string", "enum": names })
    }
    fn read(json: &Json, _: &mut Files) -> Result<Self, Error> {
        let found = PROFILES.iter().find(|p| json.as_str() == Some(p.name));
        found.ok_or_else(|| {
            let names: Vec<_> = PROFILES.iter().map(|p| p.name).collect();
            let help = format!("known here: {}", names.join(", "));
            Error::new(format!("there is no profile {json}")).help(help)
        })
    }
    fn write(&self) -> Json {
        self.name.into()
    }
}
