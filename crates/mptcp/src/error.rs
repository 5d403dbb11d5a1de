//! What can go wrong.

use gargalo_units::nearest;

/// Nothing is registered under a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} \"{name}\"{}", .nearest.map_or_else(String::new, |n| format!(" (did you mean \"{n}\"?)")))]
pub struct UnknownName {
    /// What was looked for.
    pub kind: &'static str,
    /// The name given.
    pub name: String,
    /// The closest existing name.
    pub nearest: Option<&'static str>,
}

impl UnknownName {
    pub(crate) fn look_up<T>(
        kind: &'static str,
        name: &str,
        table: &'static [T],
        name_of: fn(&T) -> &'static str,
    ) -> Result<&'static T, Self> {
        table
            .iter()
            .find(|t| name_of(t) == name)
            .ok_or_else(|| Self {
                kind,
                name: name.to_owned(),
                nearest: nearest(name, table.iter().map(name_of)),
            })
    }
}

/// Why a connection cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The congestion control cannot be built.
    #[error("{0}")]
    Congestion(String),
    /// The connection is to leave from an address that it was not given.
    #[error("{0} is none of the addresses of this host")]
    NoSuchAddress(std::net::IpAddr),
    /// More addresses than identifiers.
    #[error("a connection has at most 255 addresses, not {0}")]
    TooManyAddresses(usize),
}

/// Why a subflow ended, or was refused: the reason of MP_TCPRST (RFC 8684 §3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetReason {
    /// Not said.
    Unspecified,
    /// The peer does not do as RFC 8684 says.
    ProtocolError,
    /// Too many subflows.
    LackOfResources,
    /// Not wanted.
    Prohibited,
    /// A mapping that something on the path has broken.
    Middlebox,
}

impl ResetReason {
    /// The number in the option.
    pub const fn code(self) -> u8 {
        match self {
            Self::Unspecified => 0,
            Self::ProtocolError => 1,
            Self::LackOfResources => 2,
            Self::Prohibited => 3,
            Self::Middlebox => 6,
        }
    }
}
