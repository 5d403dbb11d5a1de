//! The JSON Schema of scenarios, built from the model's types and doc comments.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use gargalo_settings::{Format, Schemas, Setting};
use serde_json::{Map, Value};

use crate::model;

/// JSON Schema (draft 2020-12) of a scenario file.
///
/// Quantities are strings with a `format` of our own, like `rate` or `duration`, with examples.
pub fn schema() -> Value {
    internal().clone()
}

/// The schema, built once.
pub(crate) fn internal() -> &'static Value {
    &made().0
}

/// The quantity format of this name; `None`: not one of ours.
pub(crate) fn format(name: &str) -> Option<&'static Format> {
    made().1.get(name)
}

/// The schema, and the formats that it names.
fn made() -> &'static (Value, BTreeMap<&'static str, Format>) {
    static SCHEMA: OnceLock<(Value, BTreeMap<&'static str, Format>)> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schemas = Schemas::default();
        model::Scenario::schema(&mut schemas);
        let mut schema = Map::new();
        schema.insert(
            "$schema".to_owned(),
            "https://json-schema.org/draft/2020-12/schema".into(),
        );
        schema.insert("title".to_owned(), "Gargalo scenario".into());
        if let Some(Value::Object(scenario)) = schemas.definitions.remove("Scenario") {
            schema.extend(scenario);
        }
        let definitions: Map<String, Value> = schemas.definitions.into_iter().collect();
        schema.insert("$defs".to_owned(), definitions.into());
        (schema.into(), schemas.formats)
    })
}
