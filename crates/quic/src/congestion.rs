//! Who controls congestion.

use std::fmt::Debug;
use std::sync::Arc;

use gargalo_cc as cc;

/// Makes a path's congestion control; the argument has the datagram size as `mss`.
pub type Build = Arc<dyn Fn(cc::Init) -> Result<Box<dyn cc::Controller>, String> + Send + Sync>;

/// Who controls congestion.
#[derive(Clone)]
pub enum Congestion {
    /// One of ours.
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

    /// That of the implementation itself which has this name; `None`: the name is one of ours.
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
