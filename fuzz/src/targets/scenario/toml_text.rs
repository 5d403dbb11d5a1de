//! Writes a tree as TOML.

use serde_json::{Map, Value};

/// Writes a document: each key of the tree on a line.
pub(super) fn write(tree: &Value) -> String {
    let mut out = String::new();
    for (key, v) in tree.as_object().unwrap_or(&Map::new()) {
        if !v.is_null() {
            pair(key, v, &mut out);
            out.push('\n');
        }
    }
    out
}

fn pair(key: &str, v: &Value, out: &mut String) {
    text(key, out);
    out.push_str(" = ");
    value(v, out);
}

/// Writes a string with the escapes of JSON, which are those of TOML except for characters that JSON does not escape.
fn text(s: &str, out: &mut String) {
    let quoted = Value::from(s).to_string();
    out.push_str(&quoted.replace('\u{7f}', "\\u007f"));
}

fn value(v: &Value, out: &mut String) {
    match v {
        Value::String(s) => text(s, out),
        Value::Array(list) => {
            out.push('[');
            for v in list.iter().filter(|v| !v.is_null()) {
                value(v, out);
                out.push_str(", ");
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push_str("{ ");
            let mut first = true;
            for (key, v) in map.iter().filter(|(_, v)| !v.is_null()) {
                if !std::mem::take(&mut first) {
                    out.push_str(", ");
                }
                pair(key, v, out);
            }
            out.push_str(" }");
        }
        other => out.push_str(&other.to_string()),
    }
}
