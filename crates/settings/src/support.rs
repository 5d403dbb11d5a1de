//! Support code for the expansion of the declarations.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds, RangeInclusive};

use serde_json::json;

pub use crate::quantity::{parse, quantity};
use crate::schema::{self, describe, prose};
use crate::{Error, Files, Json, Schemas, Setting};
pub use serde_json::Map;

/// A key of a table: its name, range and default. `R` is the type by which a `T` is written.
pub struct Field<T, R> {
    key: &'static str,
    least: Option<T>,
    most: Option<T>,
    compare: fn(&T, &T) -> Option<Ordering>,
    items: Option<(usize, usize)>,
    default: Option<fn() -> T>,
    written: PhantomData<R>,
}

impl<T, R> Field<T, R>
where
    T: Clone + TryFrom<R> + Into<R>,
    R: Setting,
{
    /// Creates a key without range or default.
    pub const fn new(key: &'static str) -> Self {
        Self {
            key,
            least: None,
            most: None,
            compare: |_, _| None,
            items: None,
            default: None,
            written: PhantomData,
        }
    }

    /// Limits values to an inclusive range.
    #[must_use]
    pub fn within(mut self, range: impl RangeBounds<T>) -> Self
    where
        T: PartialOrd,
    {
        let end = |bound: Bound<&T>| match bound {
            Bound::Included(x) | Bound::Excluded(x) => Some(x.clone()),
            Bound::Unbounded => None,
        };
        self.least = end(range.start_bound());
        self.most = end(range.end_bound());
        self.compare = T::partial_cmp;
        self
    }

    /// Limits the length of lists.
    #[must_use]
    pub const fn items(mut self, range: RangeInclusive<usize>) -> Self {
        self.items = Some((*range.start(), *range.end()));
        self
    }

    /// Sets the default.
    #[must_use]
    pub fn or(mut self, default: fn() -> T) -> Self {
        self.default = Some(default);
        self
    }

    /// Adds the key to the schema of its table.
    pub fn describe(&self, table: &mut Table, doc: &str, schemas: &mut Schemas) {
        let mut default = self.default.map_or(Json::Null, |d| written::<T, R>(&d()));
        // The default of a table whose keys have their own defaults is shown empty.
        let empty = Json::Object(Map::new());
        if default.is_object()
            && R::read(&empty, &mut Files::default()).is_ok_and(|e| e.write() == default)
        {
            default = empty;
        }
        let mut schema = describe(R::schema(schemas), &prose(doc), default);
        for (key, bound) in [("minimum", &self.least), ("maximum", &self.most)] {
            let bound = bound.as_ref().map(written::<T, R>);
            // JSON Schema has bounds for numbers only; those of quantities are described in text and checked while
            // parsing.
            let note = match key {
                "minimum" => "formatMinimum",
                _ => "formatMaximum",
            };
            match (&mut schema, bound) {
                (Json::Object(map), Some(n @ Json::Number(_))) => map.insert(key.to_owned(), n),
                (Json::Object(map), Some(text @ Json::String(_))) => {
                    map.insert(note.to_owned(), text)
                }
                _ => None,
            };
        }
        if let Some((least, most)) = self.items {
            schema["minItems"] = least.into();
            schema["maxItems"] = most.into();
        }
        table.properties.insert(self.key.to_owned(), schema);
        if self.default.is_none() {
            table.required.push(self.key);
        }
    }

    /// Reads its value from a table.
    ///
    /// # Errors
    /// When it is missing, invalid or out of range.
    pub fn read(&self, table: &Map<String, Json>, files: &mut Files) -> Result<T, Error> {
        match (table.get(self.key), self.default) {
            (Some(json), _) => {
                let value = convert::<T, R>(json, files).map_err(|e| e.at(self.key))?;
                self.in_range(&value)?;
                self.counts(json)?;
                Ok(value)
            }
            (None, Some(default)) => Ok(default()),
            (None, None) => Err(Error::new(format!("\"{}\" is missing", self.key))),
        }
    }

    fn counts(&self, json: &Json) -> Result<(), Error> {
        let n = json.as_array().map_or(0, Vec::len);
        match self.items {
            Some((least, most)) if json.is_array() && !(least..=most).contains(&n) => {
                let message = format!("{} has {n} items", self.key);
                Err(Error::of(self.key, message).help(format!("give {least} to {most}")))
            }
            _ => Ok(()),
        }
    }

    /// Checks a value.
    ///
    /// # Errors
    /// When it is out of range, or a part of it is invalid.
    pub fn check(&self, value: &T) -> Result<(), Error> {
        self.in_range(value)?;
        check::<T, R>(value, self.key)
    }

    fn in_range(&self, value: &T) -> Result<(), Error> {
        let beyond = |end: &Option<T>, side| {
            let order = end.as_ref().map(|e| (self.compare)(value, e));
            // NaN has no order.
            order.is_some_and(|o| o.is_none_or(|o| o == side))
        };
        if !beyond(&self.least, Ordering::Less) && !beyond(&self.most, Ordering::Greater) {
            return Ok(());
        }
        let is_number = (self.compare)(value, value).is_some();
        if is_number && written::<T, R>(value).is_null() {
            // No value is given, so the range does not apply.
            return Ok(());
        }
        let text = |x: &T| plain(&written::<T, R>(x));
        let range = match (&self.least, &self.most) {
            (Some(a), Some(b)) => format!("give {} to {}", text(a), text(b)),
            (Some(a), None) => format!("give {} or more", text(a)),
            (None, Some(b)) => format!("give {} or less", text(b)),
            (None, None) => String::new(),
        };
        let message = format!("{} = {} is out of range", self.key, text(value));
        Err(Error::of(self.key, message).help(range))
    }

    /// Writes its value to a table.
    pub fn write(&self, value: &T, out: &mut Map<String, Json>) {
        let value = written::<T, R>(value);
        if !value.is_null() {
            out.insert(self.key.to_owned(), value);
        }
    }
}

/// A table whose keys can be part of another table.
pub trait Keyed: Setting {
    /// Adds its keys to the schema of a table.
    fn describe(table: &mut Table, schemas: &mut Schemas);
    /// Returns its keys.
    fn keys() -> Vec<&'static str>;
    /// Reads it from a table that may have other keys, too.
    ///
    /// # Errors
    /// When it is invalid.
    fn take(table: &Map<String, Json>, files: &mut Files) -> Result<Self, Error>;
    /// Adds its keys and values to a table.
    fn put(&self, out: &mut Map<String, Json>);
}

/// Merges `over` into `base`, recursively for tables; `true` leaves a table unchanged.
pub fn overlay(base: &Json, over: &Map<String, Json>) -> Map<String, Json> {
    let mut out = base.as_object().cloned().unwrap_or_default();
    for (key, value) in over {
        match (out.get_mut(key), value) {
            (Some(Json::Object(_)), Json::Bool(true)) => {}
            (Some(inner @ Json::Object(_)), Json::Object(more)) => {
                *inner = overlay(inner, more).into();
            }
            _ => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    out
}

/// The schema of a table during its construction.
pub struct Table {
    doc: &'static str,
    properties: Map<String, Json>,
    required: Vec<&'static str>,
}

impl Table {
    /// Creates a schema without keys.
    pub fn new(doc: &'static str) -> Self {
        Self {
            doc,
            properties: Map::new(),
            required: Vec::new(),
        }
    }

    /// Makes the values of a table, whose keys were added, their defaults.
    pub fn usual(&mut self, values: &impl Keyed) {
        let mut written = Map::new();
        values.put(&mut written);
        for (key, value) in written {
            if let Some(schema) = self.properties.get_mut(&key) {
                schema["default"] = value;
            }
        }
    }

    /// Returns the schema with all keys.
    pub fn schema(self) -> Json {
        schema::table(&prose(self.doc), self.properties, self.required)
    }
}

/// Parses a value by way of the type by which it is written.
///
/// # Errors
/// When it is invalid.
pub fn convert<T: TryFrom<R>, R: Setting>(json: &Json, files: &mut Files) -> Result<T, Error> {
    let too_large = |_| Error::new(format!("{} is too large", plain(json)));
    T::try_from(R::read(json, files)?).map_err(too_large)
}

/// Checks the value of a key.
///
/// # Errors
/// When a part of it is invalid.
pub fn check<T: Clone + Into<R>, R: Setting>(value: &T, key: &str) -> Result<(), Error> {
    value.clone().into().check().map_err(|e| e.at(key))
}

/// Writes a value as JSON.
pub fn written<T: Clone + Into<R>, R: Setting>(value: &T) -> Json {
    value.clone().into().write()
}

/// Formats text without quotes, anything else as JSON.
fn plain(json: &Json) -> String {
    match json {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the entries of a table that must have only these keys.
///
/// # Errors
/// When it is not a table, or has another key.
pub fn keys<'a>(json: &'a Json, known: &[&str]) -> Result<&'a Map<String, Json>, Error> {
    let Some(table) = json.as_object() else {
        return Err(Error::new(format!("{} is not a table", plain(json))));
    };
    match table.keys().find(|k| !known.contains(&k.as_str())) {
        None => Ok(table),
        Some(key) => {
            let help = match known {
                [] => "it takes none".to_owned(),
                _ => format!("known here: {}", known.join(", ")),
            };
            Err(Error::new(format!("there is no key \"{key}\"")).help(help))
        }
    }
}

/// The error of an unknown word or key.
pub fn unknown(json: &Json, known: &[&str]) -> Error {
    let help = format!("known here: {}", known.join(", "));
    Error::new(format!("{} is not possible here", plain(json))).help(help)
}

/// The form of a written value where several kinds are possible.
pub enum Shape<'a> {
    /// A text, as a word of a choice is written.
    Word(&'a str),
    /// A table of one key.
    Tagged(&'a str, &'a Json),
    /// A value of any other form.
    Other,
}

impl<'a> Shape<'a> {
    /// Determines the form of a value.
    pub fn of(json: &'a Json) -> Self {
        match json {
            Json::String(word) => Self::Word(word),
            Json::Object(table) if table.len() == 1 => match table.iter().next() {
                Some((key, content)) => Self::Tagged(key, content),
                None => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

/// Builds a table with one key.
pub fn tag(key: &str, content: Json) -> Json {
    json!({ key: content })
}

/// Builds the schema of a word.
pub fn word(word: &str, doc: &str) -> Json {
    describe(
        json!({ "type": "string", "const": word }),
        &prose(doc),
        Json::Null,
    )
}

/// Builds the schema of a table with one key.
pub fn tagged<T: Setting>(key: &str, doc: &str, schemas: &mut Schemas) -> Json {
    let content = T::schema(schemas);
    json!({
        "type": "object", "description": prose(doc), "properties": { key: content },
        "required": [key], "additionalProperties": false
    })
}

/// Builds the schemas of tables with one of these keys.
pub fn maybe_tagged<T: Setting>(keys: &[&str], doc: &str, schemas: &mut Schemas) -> Vec<Json> {
    let table = |key: &&str| tagged::<T>(key, doc, schemas);
    keys.iter().map(table).collect()
}

/// Returns the key and content of a table with one of these keys.
pub fn content<'a>(json: &'a Json, keys: &[&'static str]) -> Option<(&'static str, &'a Json)> {
    match Shape::of(json) {
        Shape::Tagged(key, content) => keys.iter().find(|k| **k == key).map(|k| (*k, content)),
        _ => None,
    }
}

/// Builds the schema of a choice among words, or among tables.
pub fn one_of(doc: &str, all: Vec<Json>) -> Json {
    describe(json!({ "oneOf": all }), &prose(doc), Json::Null)
}

/// Builds the schema of a choice among kinds: plain values, and a definition of tables, which may be empty.
pub fn any_of(mut all: Vec<Json>, tables: Json, schemas: &mut Schemas) -> Json {
    if schemas.target(&tables)["oneOf"] == json!([]) {
        schemas.remove(&tables);
    } else {
        all.push(tables);
    }
    match all.as_slice() {
        [one] => one.clone(),
        _ => json!({ "anyOf": all }),
    }
}

/// Builds the schema of a table for which the value of one of its keys may stand alone.
pub fn short(table: &Json, key: &str, schemas: &Schemas) -> Json {
    let mut alone = schemas.target(table)["properties"][key].clone();
    if let Json::Object(map) = &mut alone {
        map.remove("description");
        map.remove("default");
    }
    json!({ "anyOf": [alone, table] })
}

/// Returns the table for a value that stands alone; `None`: it is a table already.
pub fn lengthen(json: &Json, key: &str) -> Option<Json> {
    (!json.is_object()).then(|| tag(key, json.clone()))
}
