//! Errors of connections.

/// A name that is not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} \"{name}\"{}", .nearest.map_or_else(String::new, |n| format!(" (did you mean \"{n}\"?)")))]
pub struct UnknownName {
    /// The kind of thing that was looked up.
    pub kind: &'static str,
    /// The name given.
    pub name: String,
    /// The closest existing name.
    pub nearest: Option<&'static str>,
}

/// Why a connection cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The congestion control cannot be built.
    #[error("{0}")]
    Congestion(String),
    /// More addresses than identifiers.
    #[error("a connection has at most 255 addresses, not {0}")]
    TooManyAddresses(usize),
}

/// Why a subflow ended, or was refused: the reason of MP_TCPRST (RFC 8684 §3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetReason {
    /// No specific reason (code 0, the default).
    Unspecified,
    /// The peer violates RFC 8684.
    ProtocolError,
    /// Too many subflows.
    LackOfResources,
    /// Prohibited by the policy of the sender of the reset (code 3).
    Prohibited,
    /// A mapping that a middlebox has broken.
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
