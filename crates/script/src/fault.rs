//! What is wrong with a script.

use std::fmt;

use serde::Serialize;

use crate::ast::At;

/// A part of a script that cannot be read or is not supported, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Position in the text of the script; line 0 if it is not known.
    #[serde(flatten)]
    pub at: At,
    /// What is wrong.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
}

impl Fault {
    pub(crate) fn new(at: At, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            help: String::new(),
        }
    }
    /// The fault with this place, unless it has one.
    pub(crate) fn or_at(mut self, at: At) -> Self {
        if self.at.line == 0 {
            self.at = at;
        }
        self
    }
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.at.line, self.at.column, self.message)?;
        if !self.help.is_empty() {
            write!(f, "; {}", self.help)?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
