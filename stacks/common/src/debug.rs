//! Fields that an implementation shows only in its text for debugging.

use std::fmt::{self, Debug, Write};

/// The value of the first field of this name whose value is one word, in small letters with hyphens.
///
/// The text is made as far as that value only: this may be asked for each packet.
pub fn field(of: &impl Debug, name: &str) -> Option<String> {
    let mut found = Field { name, comes: false, value: None };
    // Its error is how the text ends.
    let _ = write!(found, "{of:?}");
    found.value
}

struct Field<'a> {
    name: &'a str,
    comes: bool,
    value: Option<String>,
}

impl Write for Field<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if !self.comes || part == ": " {
            self.comes |= part == self.name;
            return Ok(());
        }
        let mut word = String::new();
        for c in part.chars() {
            if c.is_uppercase() && !word.is_empty() {
                word.push('-');
            }
            word.extend(c.to_lowercase());
        }
        self.value = Some(word);
        Err(fmt::Error)
    }
}
