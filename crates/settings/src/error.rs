//! What is wrong with a value, and where.

use std::fmt;

/// A value that cannot be, the key at which it stands and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Dotted path of the key below the value that was read, like `queue.red.weight`; empty: the value itself.
    pub path: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The likely fix.
    pub help: Option<String>,
}

impl Error {
    /// A value that cannot be.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            message: message.into(),
            help: None,
        }
    }

    /// The value of a key that cannot be.
    pub fn of(path: &str, message: impl Into<String>) -> Self {
        Self::new(message).at(path)
    }

    /// With the remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same error seen from the table around: `key` goes before its path.
    #[must_use]
    pub fn at(mut self, key: &str) -> Self {
        self.path = match (key.is_empty(), self.path.is_empty()) {
            (true, _) => self.path,
            (_, true) => key.to_owned(),
            _ => format!("{key}.{}", self.path),
        };
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}
impl std::error::Error for Error {}
