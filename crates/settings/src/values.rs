//! Plain values, lists and optional values.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, json};

use crate::{Error, Files, Json, Schemas, Setting};

/// The largest integer up to which a float represents every integer exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A number as one would write it: `5`, not `5.0`.
pub fn number(x: f64) -> Json {
    if x.fract() == 0.0 && x.abs() < EXACT {
        return Json::from(x as i64);
    }
    Json::from(x)
}

fn wrong(json: &Json, wanted: &str) -> Error {
    Error::new(format!("{json} is not {wanted}"))
}

impl Setting for bool {
    fn schema(_: &mut Schemas) -> Json {
        json!({ "type": "boolean" })
    }
    fn read(json: &Json, _: &mut Files) -> Result<Self, Error> {
        json.as_bool().ok_or_else(|| wrong(json, "true or false"))
    }
    fn write(&self) -> Json {
        (*self).into()
    }
}

impl Setting for f64 {
    fn schema(_: &mut Schemas) -> Json {
        json!({ "type": "number" })
    }
    fn read(json: &Json, _: &mut Files) -> Result<Self, Error> {
        json.as_f64().ok_or_else(|| wrong(json, "a number"))
    }
    fn write(&self) -> Json {
        number(*self)
    }
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Setting for $t {
            fn schema(_: &mut Schemas) -> Json {
                json!({ "type": "integer", "minimum": <$t>::MIN })
            }
            fn read(json: &Json, _: &mut Files) -> Result<Self, Error> {
                // A float without a fraction is accepted as an integer: templates and JSON create them.
                let whole = json.as_u64().or_else(|| {
                    let x = json.as_f64()?;
                    (x.fract() == 0.0 && (0.0..EXACT).contains(&x)).then_some(x as u64)
                });
                let n = whole.and_then(|n| <$t>::try_from(n).ok());
                n.ok_or_else(|| wrong(json, concat!("a whole number (", stringify!($t), ")")))
            }
            fn write(&self) -> Json {
                (*self).into()
            }
        }
    )*};
}
integers! { u8 u16 u32 u64 usize }

impl Setting for String {
    fn schema(_: &mut Schemas) -> Json {
        json!({ "type": "string" })
    }
    fn read(json: &Json, _: &mut Files) -> Result<Self, Error> {
        let text = json.as_str().map(str::to_owned);
        text.ok_or_else(|| wrong(json, "text"))
    }
    fn write(&self) -> Json {
        self.as_str().into()
    }
}

/// TOML has no null: `None` is written by leaving the key out.
impl<T: Setting> Setting for Option<T> {
    fn schema(schemas: &mut Schemas) -> Json {
        T::schema(schemas)
    }
    fn read(json: &Json, files: &mut Files) -> Result<Self, Error> {
        match json {
            Json::Null => Ok(None),
            some => T::read(some, files).map(Some),
        }
    }
    fn write(&self) -> Json {
        self.as_ref().map_or(Json::Null, T::write)
    }
    fn check(&self) -> Result<(), Error> {
        self.as_ref().map_or(Ok(()), T::check)
    }
}

/// Off, on with the usual values, or on with given ones: `false`, `true` or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch<T> {
    /// Off: written as `false`.
    Off,
    /// On with the usual values: written as `true`.
    On,
    /// On with these values.
    To(T),
}

/// None is off.
impl<T> From<Option<T>> for Switch<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Off, Self::To)
    }
}

/// Off is none, on is the default.
impl<T: Default> From<Switch<T>> for Option<T> {
    fn from(switch: Switch<T>) -> Self {
        match switch {
            Switch::Off => None,
            Switch::On => Some(T::default()),
            Switch::To(value) => Some(value),
        }
    }
}

impl<T: Setting> Setting for Switch<T> {
    fn schema(schemas: &mut Schemas) -> Json {
        json!({ "anyOf": [bool::schema(schemas), T::schema(schemas)] })
    }
    fn read(json: &Json, files: &mut Files) -> Result<Self, Error> {
        match json {
            Json::Bool(false) => Ok(Self::Off),
            Json::Bool(true) => Ok(Self::On),
            value => T::read(value, files).map(Self::To),
        }
    }
    fn write(&self) -> Json {
        match self {
            Self::Off => false.into(),
            Self::On => true.into(),
            Self::To(value) => value.write(),
        }
    }
    fn check(&self) -> Result<(), Error> {
        match self {
            Self::Off | Self::On => Ok(()),
            Self::To(value) => value.check(),
        }
    }
}

impl<T: Setting> Setting for Box<T> {
    fn schema(schemas: &mut Schemas) -> Json {
        T::schema(schemas)
    }
    fn read(json: &Json, files: &mut Files) -> Result<Self, Error> {
        T::read(json, files).map(Self::new)
    }
    fn write(&self) -> Json {
        T::write(self)
    }
    fn check(&self) -> Result<(), Error> {
        T::check(self)
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn schema(schemas: &mut Schemas) -> Json {
        json!({ "type": "array", "items": T::schema(schemas) })
    }
    fn read(json: &Json, files: &mut Files) -> Result<Self, Error> {
        let items = json.as_array().ok_or_else(|| wrong(json, "a list"))?;
        let read =
            |(i, item): (usize, &Json)| T::read(item, files).map_err(|e| e.at(&i.to_string()));
        items.iter().enumerate().map(read).collect()
    }
    fn write(&self) -> Json {
        self.iter().map(T::write).collect()
    }
    fn check(&self) -> Result<(), Error> {
        let check = |(i, item): (usize, &T)| item.check().map_err(|e| e.at(&i.to_string()));
        self.iter().enumerate().try_for_each(check)
    }
}

impl<T: Setting> Setting for Arc<[T]> {
    fn schema(schemas: &mut Schemas) -> Json {
        Vec::<T>::schema(schemas)
    }
    fn read(json: &Json, files: &mut Files) -> Result<Self, Error> {
        Vec::read(json, files).map(Self::from)
    }
    fn write(&self) -> Json {
        self.iter().map(T::write).collect()
    }
    fn check(&self) -> Result<(), Error> {
        let check = |(i, item): (usize, &T)| item.check().map_err(|e| e.at(&i.to_string()));
        self.iter().enumerate().try_for_each(check)
    }
}

impl<A: Setting, B: Setting> Setting for (A, B) {
    fn schema(schemas: &mut Schemas) -> Json {
        json!({
            "type": "array", "prefixItems": [A::schema(schemas), B::schema(schemas)],
            "minItems": 2, "maxItems": 2
        })
    }
    fn read(json: &Json, files: &mut Files) -> Result<Self, Error> {
        match json.as_array().map(Vec::as_slice) {
            Some([a, b]) => Ok((
                A::read(a, files).map_err(|e| e.at("0"))?,
                B::read(b, files).map_err(|e| e.at("1"))?,
            )),
            _ => Err(wrong(json, "a list of two")),
        }
    }
    fn write(&self) -> Json {
        json!([self.0.write(), self.1.write()])
    }
}

impl<T: Setting> Setting for BTreeMap<String, T> {
    fn schema(schemas: &mut Schemas) -> Json {
        json!({ "type": "object", "additionalProperties": T::schema(schemas) })
    }
    fn read(json: &Json, files: &mut Files) -> Result<Self, Error> {
        let table = json.as_object().ok_or_else(|| wrong(json, "a table"))?;
        let read = |(key, value): (&String, &Json)| {
            let value = T::read(value, files).map_err(|e| e.at(key))?;
            Ok((key.clone(), value))
        };
        table.iter().map(read).collect()
    }
    fn write(&self) -> Json {
        let entry = |(key, value): (&String, &T)| (key.clone(), value.write());
        Json::Object(self.iter().map(entry).collect::<Map<_, _>>())
    }
}
