//! The JSON Schema of scenarios, from the model's types and doc comments.

use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::model;

/// JSON Schema (draft 2020-12) of a scenario file.
///
/// Quantities are strings with a `format` of our own: `rate`, `duration`, `size`, `probability`,
/// `packets`, `queue-size`, `window`, `load` and `frequency`, with examples.
pub fn schema() -> Value {
    internal().clone()
}

/// The schema, made once.
pub(crate) fn internal() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let generator = SchemaSettings::draft2020_12().into_generator();
        let mut schema = generator
            .into_root_schema_for::<model::Scenario>()
            .to_value();
        without_null(&mut schema);
        if let Value::Object(map) = &mut schema {
            map.insert("title".to_owned(), "Gargalo scenario".into());
        }
        schema
    })
}

/// TOML has no null: an option is a key that may be left out.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(without_null),
        Value::Object(map) => {
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|t| t != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    map.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(list)) = map.get_mut("anyOf") {
                list.retain(|s| s.get("type").is_none_or(|t| t != "null"));
                if let [only] = &list[..] {
                    let only = only.clone();
                    map.remove("anyOf");
                    if let Value::Object(only) = only {
                        // What the field says of itself goes before what its type says.
                        for (k, v) in only {
                            map.entry(k).or_insert(v);
                        }
                    }
                }
            }
            map.values_mut().for_each(without_null);
        }
        _ => {}
    }
}
