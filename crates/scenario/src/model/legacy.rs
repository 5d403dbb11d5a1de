//! Settings that are still declared with derives.

use gargalo_settings::{Error, Files, Json, Schemas, Setting};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;

/// A value whose type derives its schema and its reading.
#[derive(Clone, Debug)]
pub struct Legacy<T> {
    /// What was read.
    pub value: T,
    json: Json,
}

impl<T> PartialEq for Legacy<T> {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl<T> std::ops::Deref for Legacy<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: DeserializeOwned + JsonSchema> Setting for Legacy<T> {
    fn schema(schemas: &mut Schemas) -> Json {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        let mut schema = generator.subschema_for::<T>().to_value();
        without_null(&mut schema);
        for (name, mut definition) in generator.take_definitions(true) {
            without_null(&mut definition);
            schemas.definitions.insert(name, definition);
        }
        schema
    }
    fn read(json: &Json, _: &mut Files) -> Result<Self, Error> {
        let value = T::deserialize(json).map_err(|e| Error::new(e.to_string()))?;
        let json = json.clone();
        Ok(Self { value, json })
    }
    fn write(&self) -> Json {
        self.json.clone()
    }
}

/// TOML has no null: an option is a key that may be left out.
fn without_null(schema: &mut Json) {
    match schema {
        Json::Array(list) => list.iter_mut().for_each(without_null),
        Json::Object(map) => {
            if let Some(Json::Array(types)) = map.get_mut("type") {
                types.retain(|t| t != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    map.insert("type".to_owned(), only);
                }
            }
            if let Some(Json::Array(list)) = map.get_mut("anyOf") {
                list.retain(|s| s.get("type").is_none_or(|t| t != "null"));
                if let [only] = &list[..] {
                    let only = only.clone();
                    map.remove("anyOf");
                    if let Json::Object(only) = only {
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
