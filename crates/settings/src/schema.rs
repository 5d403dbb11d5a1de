//! The JSON Schema of settings, as it is put together.

use std::collections::BTreeMap;

use gargalo_units::ParseError;
use serde_json::{Map, json};

use crate::Json;

/// A kind of text with a unit.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Texts that are accepted.
    pub examples: &'static [&'static str],
    /// Units that a bare number may have meant; empty where a bare number is accepted.
    pub units: &'static [&'static str],
    /// What is wrong with a text.
    pub check: fn(&str) -> Result<(), ParseError>,
}

/// Definitions and formats that a schema refers to.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    /// Schemas of tables by name (`$defs`).
    pub definitions: BTreeMap<String, Json>,
    /// Kinds of text by the name of their `format`.
    pub formats: BTreeMap<&'static str, Format>,
}

impl Schemas {
    /// A reference to the definition of this name, which is made when it is first asked for.
    pub fn define(&mut self, name: &str, make: impl FnOnce(&mut Self) -> Json) -> Json {
        if !self.definitions.contains_key(name) {
            // Noted before it is made, so that a definition may contain itself.
            self.definitions.insert(name.to_owned(), Json::Null);
            let made = make(self);
            self.definitions.insert(name.to_owned(), made);
        }
        json!({ "$ref": format!("#/$defs/{name}") })
    }

    /// Forgets the definition that a reference leads to.
    pub(crate) fn remove(&mut self, reference: &Json) {
        let name = reference["$ref"].as_str().unwrap_or_default();
        let name = name.trim_start_matches("#/$defs/");
        self.definitions.remove(name);
    }

    /// What a reference leads to; anything else is itself.
    pub fn target<'a>(&'a self, schema: &'a Json) -> &'a Json {
        let name = schema.get("$ref").and_then(Json::as_str);
        let name = name.and_then(|r| r.strip_prefix("#/$defs/"));
        name.and_then(|n| self.definitions.get(n)).unwrap_or(schema)
    }
}

/// Adds to a schema what is not there yet; a reference keeps its place.
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

/// A doc comment as one text: lines of a paragraph are joined.
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

/// The schema of a table.
pub(crate) fn table(doc: &str, properties: Map<String, Json>, required: Vec<&str>) -> Json {
    let mut out = json!({
        "type": "object", "properties": properties, "additionalProperties": false
    });
    if !required.is_empty() {
        out["required"] = required.into();
    }
    describe(out, doc, Json::Null)
}
