//! What a trace tells of itself.

/// At which end a trace was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    Client,
    Server,
    #[default]
    Unknown,
}

/// What a trace tells of itself.
#[derive(Default)]
pub struct Head {
    /// Its title, if it has one of its own.
    pub title: String,
    /// The connection's name.
    pub id: String,
    /// The end whose packets are those that were sent.
    pub end: End,
    /// Whether that is seen from a place in between.
    pub is_between: bool,
}
