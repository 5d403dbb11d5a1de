//! Errors of values, with their positions.

use std::fmt;

/// An invalid value, the key at which it stands and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Dotted path of the key below the value that was read, like `queue.red.weight`; empty: the value itself.
    pub path: String,
    /// The problem, in one sentence.
    pub message: String,
    /// The likely fix.
    pub help: Option<String>,
}

impl Error {
    /// Creates the error of an invalid value.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            message: message.into(),
            help: None,
        }
    }

    /// Creates the error of a key's value.
    pub fn of(path: &str, message: impl Into<String>) -> Self {
        Self::new(message).at(path)
    }

    /// Adds the remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Puts `key` before the path, as seen from the enclosing table.
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
