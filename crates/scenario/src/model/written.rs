//! Settings as they stand in the model: what was written, to be read once everything around is known.

use std::marker::PhantomData;

use gargalo_settings::{Error, Files, Json, Schemas, Setting};

/// A setting as written: its text was checked against its schema; its value is read when what it depends on is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Written<T> {
    json: Json,
    kind: PhantomData<T>,
}

impl<T: Setting> Written<T> {
    /// What was written.
    pub const fn json(&self) -> &Json {
        &self.json
    }
}

impl<T: Setting> Setting for Written<T> {
    fn schema(schemas: &mut Schemas) -> Json {
        T::schema(schemas)
    }
    fn read(json: &Json, _: &mut Files) -> Result<Self, Error> {
        let json = json.clone();
        let kind = PhantomData;
        Ok(Self { json, kind })
    }
    fn write(&self) -> Json {
        self.json.clone()
    }
}
