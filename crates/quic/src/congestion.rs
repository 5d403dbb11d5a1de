//! The congestion control of a connection.

use std::fmt::Debug;
use std::sync::Arc;

use gargalo_cc as cc;
use gargalo_cc::chosen::Congestion as Ours;
use gargalo_settings::{Error, Files, Json, Schemas, Setting};
use serde_json::json;

/// Creates the congestion control of a path; the argument has the datagram size as `mss`.
pub type Build = Arc<dyn Fn(cc::Init) -> Result<Box<dyn cc::Controller>, String> + Send + Sync>;

/// The congestion control of a connection.
#[derive(Clone)]
pub enum Congestion {
    /// One of this project.
    Ours(Build),
    /// noq's own CUBIC.
    NoqCubic,
    /// noq's own NewReno (RFC 9002).
    NoqNewReno,
    /// noq's own BBRv3.
    NoqBbr3,
}

impl Congestion {
    /// The names of the congestion controls of the implementation itself.
    pub const OWN: &'static [&'static str] = &["noq-bbr3", "noq-cubic", "noq-newreno"];

    /// The implementation's own congestion control of this name; `None` if it is not one of these.
    pub fn own(name: &str) -> Option<Self> {
        match name {
            "noq-bbr3" => Some(Self::NoqBbr3),
            "noq-cubic" => Some(Self::NoqCubic),
            "noq-newreno" => Some(Self::NoqNewReno),
            _ => None,
        }
    }
}

impl Debug for Congestion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ours(_) => "Ours",
            Self::NoqCubic => "NoqCubic",
            Self::NoqNewReno => "NoqNewReno",
            Self::NoqBbr3 => "NoqBbr3",
        })
    }
}

/// A congestion control in a scenario: one of this project with its parameters, or one of the implementation's own.
#[derive(Clone)]
pub(crate) struct OursOrOwn(Ours);

impl From<Ours> for OursOrOwn {
    fn from(chosen: Ours) -> Self {
        Self(chosen)
    }
}

impl From<OursOrOwn> for Ours {
    fn from(written: OursOrOwn) -> Self {
        written.0
    }
}

impl Setting for OursOrOwn {
    fn schema(schemas: &mut Schemas) -> Json {
        schemas.define("QuicCongestion", |schemas| {
            json!({
                "description": "A congestion control, ours or the implementation's own.",
                "anyOf": [Ours::schema(schemas), { "type": "string", "enum": Congestion::OWN }]
            })
        })
    }
    fn read(json: &Json, files: &mut Files) -> Result<Self, Error> {
        Ours::read(json, files).map(Self)
    }
    fn write(&self) -> Json {
        self.0.write()
    }
}
