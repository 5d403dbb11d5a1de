//! Names of directories and files, and texts without control characters.

use crate::diagnostic::{Diagnostics, Place};
use crate::printable::{is_hidden, printable, steers};
use crate::tree::{Node, Value, joined};

/// Longest name in bytes: the seed, a number and the prefix of unfinished results are added, and a file system allows
/// 255.
const LONGEST: usize = 128;

/// Why a text cannot be a name of files and directories; `None` if it can.
///
/// A name is one plain component of a path, on every system.
pub fn bad_name(name: &str) -> Option<String> {
    let shown = printable(name);
    if name.is_empty() {
        return Some("the name is empty".to_owned());
    }
    if name.len() > LONGEST {
        let n = name.len();
        return Some(format!(
            "the name has {n} bytes; {LONGEST} are the most a file system has place for"
        ));
    }
    if let Some(c) = name.chars().find(|c| c.is_control() || is_hidden(*c)) {
        return Some(format!(
            "the name \"{shown}\" has the control character U+{:04X}",
            c as u32
        ));
    }
    if name.contains(['/', '\\']) {
        return Some(format!(
            "the name \"{shown}\" has a separator of paths in it"
        ));
    }
    if name.starts_with('.') {
        return Some(format!("the name \"{shown}\" begins with a dot"));
    }
    None
}

/// Builds a name from any text, such as the stem of a file's name.
pub(crate) fn made_of(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| match c {
            '/' | '\\' => '-',
            c if c.is_control() || is_hidden(c) => '-',
            c => c,
        })
        .collect();
    let plain = plain.trim_start_matches('.');
    let plain = &plain[..plain.floor_char_boundary(LONGEST)];
    if plain.is_empty() {
        "scenario".to_owned()
    } else {
        plain.to_owned()
    }
}

/// Reports every key and text with a control character other than line ends and tabs; `path` is that of the node.
pub(crate) fn check(node: &Node, path: &str, errors: &mut Diagnostics) {
    match &node.value {
        Value::String(text) => check_text(text, "text", (path, node.place.clone()), errors),
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                check(item, &joined(path, &i.to_string()), errors);
            }
        }
        Value::Table(entries) => {
            for e in entries {
                let path = joined(path, &e.key);
                check_text(&e.key, "key", (&path, e.place.clone()), errors);
                check(&e.value, &path, errors);
            }
        }
        Value::Number(_) | Value::Bool(_) | Value::Other(_) => {}
    }
}

fn check_text(text: &str, what: &str, (path, place): (&str, Place), errors: &mut Diagnostics) {
    if let Some(c) = text.replace("\r\n", "\n").chars().find(|c| steers(*c)) {
        let message = format!("the {what} has the control character U+{:04X}", c as u32);
        let help = "a scenario is plain text: leave it out".to_owned();
        errors.add(place, path, "in here", message, Some(help));
    }
}
