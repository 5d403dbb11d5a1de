//! Settings as they stand in the model: what was written, to be read once everything around is known.

use std::borrow::Cow;
use std::marker::PhantomData;

use gargalo_settings::{Json, Schemas, Setting};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

use crate::resolve::Context;

/// A setting as written: its text was checked against its schema, its value is read with files and places at hand.
#[derive(Clone, Debug)]
pub struct Written<T> {
    json: Json,
    kind: PhantomData<T>,
}

impl<T: Setting> Written<T> {
    /// What was written.
    pub const fn json(&self) -> &Json {
        &self.json
    }

    /// Its value; what is wrong with it is noted at `path`.
    pub(crate) fn read(&self, path: &str, cx: &mut Context<'_>) -> Option<T> {
        let read = T::read(&self.json, &mut cx.files);
        read.map_err(|e| cx.refuse(path, e)).ok()
    }
}

impl<'de, T> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        let kind = PhantomData;
        Ok(Self { json, kind })
    }
}

impl<T: Setting> JsonSchema for Written<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        std::any::type_name::<T>().into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schemas = Schemas::default();
        let schema = T::schema(&mut schemas);
        generator.definitions_mut().extend(schemas.definitions);
        Schema::try_from(schema).unwrap_or_default()
    }
}
