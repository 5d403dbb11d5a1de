//! Builds the JSON Schema of settings.

use std::collections::BTreeMap;

use gargalo_units::ParseError;
use serde_json::{Map, json};

use crate::Json;

/// A text format with a unit.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Examples of accepted texts.
    pub examples: &'static [&'static str],
    /// Units that a bare number may have meant; empty where a bare number is accepted.
    pub units: &'static [&'static str],
    /// Returns the problem of a text.
    pub check: fn(&str) -> Result<(), ParseError>,
}

/// Definitions and formats to which a schema refers.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    /// Schemas of tables by name (`$defs`).
    pub definitions: BTreeMap<String, Json>,
    /// Formats of texts by the name of their `format`.
    pub formats: BTreeMap<&'static str, Format>,
}

impl Schemas {
    /// Returns a reference to the definition of this name, which is built on first use.
    pub fn define(&mut self, name: &str, make: impl FnOnce(&mut Self) -> Json) -> Json {
        if !self.definitions.contains_key(name) {
            // Added before it is built, so that a definition may refer to itself.
            self.definitions.insert(name.to_owned(), Json::Null);
            let made = make(self);
            self.definitions.insert(name.to_owned(), made);
        }
        json!({ "$ref": format!("#/$defs/{name}") })
    }

    /// Removes the definition that a reference leads to.
    pub(crate) fn remove(&mut self, reference: &Json) {
        let name = reference["$ref"].as_str().unwrap_or_default();
        let name = name.trim_start_matches("#/$defs/");
        self.definitions.remove(name);
    }

    /// The schema that a reference leads to; any other schema is returned as it is.
    pub fn target<'a>(&'a self, schema: &'a Json) -> &'a Json {
        let name = schema.get("$ref").and_then(Json::as_str);
        let name = name.and_then(|r| r.strip_prefix("#/$defs/"));
        name.and_then(|n| self.definitions.get(n)).unwrap_or(schema)
    }
}

/// Adds missing entries to a schema; a reference keeps its position.
pub(crate) fn describe(mut schema: Json, doc: &str, default: Json) -> Json {
    if let Json::Object(map) = &mut schema {
        if !doc.is_empty() {
            map.insert("description".to_owned(), doc.into());
        }
        if !default.is_null() {
            map.insert("default".to_owned(), default);
        }
    }
    schema
}

/// Joins the lines of each paragraph of a doc comment.
pub(crate) fn prose(doc: &str) -> String {
    let mut paragraphs = vec![String::new()];
    for line in doc.lines().map(str::trim) {
        match (line.is_empty(), paragraphs.last_mut()) {
            (true, _) => paragraphs.push(String::new()),
            (false, Some(last)) => {
                if !last.is_empty() {
                    last.push('\n');
                }
                last.push_str(line);
            }
            (false, None) => {}
        }
    }
    paragraphs.retain(|p| !p.is_empty());
    paragraphs.join("\n\n")
}

/// Builds the schema of a table.
pub(crate) fn table(doc: &str, properties: Map<String, Json>, required: Vec<&str>) -> Json {
    let mut out = json!({
        "type": "object", "properties": properties, "additionalProperties": false
    });
    if !required.is_empty() {
        out["required"] = required.into();
    }
    describe(out, doc, Json::Null)
}
