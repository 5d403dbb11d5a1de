//! What the declarations expand to.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds, RangeInclusive};

use serde_json::json;

pub use crate::quantity::{parse, quantity};
use crate::schema::{self, describe, prose};
use crate::{Error, Files, Json, Schemas, Setting};
pub use serde_json::Map;

/// A key of a table: its name, range and default. `R` is what a `T` is written as.
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
    /// Any value, none if it is not given.
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

    /// Only values of a range; its ends belong to it.
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

    /// Only lists of this length.
    #[must_use]
    pub const fn items(mut self, range: RangeInclusive<usize>) -> Self {
        self.items = Some((*range.start(), *range.end()));
        self
    }

    /// This value if it is not given.
    #[must_use]
    pub fn or(mut self, default: fn() -> T) -> Self {
        self.default = Some(default);
        self
    }

    /// Adds it to the schema of its table.
    pub fn describe(&self, table: &mut Table, doc: &str, schemas: &mut Schemas) {
        let mut default = self.default.map_or(Json::Null, |d| written::<T, R>(&d()));
        // A table of which each key has its own default is shown empty.
        let empty = Json::Object(Map::new());
        if default.is_object()
            && R::read(&empty, &mut Files::default()).is_ok_and(|e| e.write() == default)
        {
            default = empty;
        }
        let mut schema = describe(R::schema(schemas), &prose(doc), default);
        for (key, bound) in [("minimum", &self.least), ("maximum", &self.most)] {
            let bound = bound.as_ref().map(written::<T, R>);
            // JSON Schema has bounds for numbers only; those of quantities are notes, checked while reading.
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

    /// Its value in a table.
    ///
    /// # Errors
    /// When it is missing, does not fit or is out of range.
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

    /// Whether a value can be.
    ///
    /// # Errors
    /// When it is out of range, or something in it cannot be.
    pub fn check(&self, value: &T) -> Result<(), Error> {
        self.in_range(value)?;
        check::<T, R>(value, self.key)
    }

    fn in_range(&self, value: &T) -> Result<(), Error> {
        let beyond = |end: &Option<T>, side| {
            let order = end.as_ref().map(|e| (self.compare)(value, e));
            // A number that is none has no order.
            order.is_some_and(|o| o.is_none_or(|o| o == side))
        };
        if !beyond(&self.least, Ordering::Less) && !beyond(&self.most, Ordering::Greater) {
            return Ok(());
        }
        let is_number = (self.compare)(value, value).is_some();
        if is_number && written::<T, R>(value).is_null() {
            // Nothing is said, which the range is not about.
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

    /// Writes it to a table.
    pub fn write(&self, value: &T, out: &mut Map<String, Json>) {
        let value = written::<T, R>(value);
        if !value.is_null() {
            out.insert(self.key.to_owned(), value);
        }
    }
}

/// A table whose keys can be those of another one, too.
pub trait Keyed: Setting {
    /// Adds its keys to the schema of a table.
    fn describe(table: &mut Table, schemas: &mut Schemas);
    /// Its keys.
    fn keys() -> Vec<&'static str>;
    /// From a table that may have other keys, too.
    ///
    /// # Errors
    /// When it does not fit.
    fn take(table: &Map<String, Json>, files: &mut Files) -> Result<Self, Error>;
    /// Adds what is written to a table.
    fn put(&self, out: &mut Map<String, Json>);
}

/// What `over` has goes before what `base` has, in tables inside as well; `true` leaves a table as it is.
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

/// The schema of a table while its keys are added.
pub struct Table {
    doc: &'static str,
    properties: Map<String, Json>,
    required: Vec<&'static str>,
}

impl Table {
    /// Without keys.
    pub fn new(doc: &'static str) -> Self {
        Self {
            doc,
            properties: Map::new(),
            required: Vec::new(),
        }
    }

    /// With all keys.
    pub fn schema(self) -> Json {
        schema::table(&prose(self.doc), self.properties, self.required)
    }
}

/// A value from what was written, by way of the type that it is written as.
///
/// # Errors
/// When it does not fit.
pub fn convert<T: TryFrom<R>, R: Setting>(json: &Json, files: &mut Files) -> Result<T, Error> {
    let too_large = |_| Error::new(format!("{} is too large", plain(json)));
    T::try_from(R::read(json, files)?).map_err(too_large)
}

/// Whether the value of a key can be.
///
/// # Errors
/// When something in it cannot be.
pub fn check<T: Clone + Into<R>, R: Setting>(value: &T, key: &str) -> Result<(), Error> {
    value.clone().into().check().map_err(|e| e.at(key))
}

/// What a value is written as.
pub fn written<T: Clone + Into<R>, R: Setting>(value: &T) -> Json {
    value.clone().into().write()
}

/// Text without quotes, anything else as JSON.
fn plain(json: &Json) -> String {
    match json {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The entries of a table that has only these keys.
///
/// # Errors
/// When it is no table, or has another key.
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

/// A word or key that is none of those known.
pub fn unknown(json: &Json, known: &[&str]) -> Error {
    let help = format!("known here: {}", known.join(", "));
    Error::new(format!("{} is not possible here", plain(json))).help(help)
}

/// What was written where several kinds are possible.
pub enum Shape<'a> {
    /// A text.
    Word(&'a str),
    /// A table of one key.
    Tagged(&'a str, &'a Json),
    /// Anything else.
    Other,
}

impl<'a> Shape<'a> {
    /// Of a value.
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

/// A table of one key.
pub fn tag(key: &str, content: Json) -> Json {
    json!({ key: content })
}

/// The schema of a word.
pub fn word(word: &str, doc: &str) -> Json {
    describe(
        json!({ "type": "string", "const": word }),
        &prose(doc),
        Json::Null,
    )
}

/// The schema of a table of one key.
pub fn tagged<T: Setting>(key: &str, doc: &str, schemas: &mut Schemas) -> Json {
    let content = T::schema(schemas);
    json!({
        "type": "object", "description": prose(doc), "properties": { key: content },
        "required": [key], "additionalProperties": false
    })
}

/// The schemas of tables of one of these keys.
pub fn maybe_tagged<T: Setting>(keys: &[&str], doc: &str, schemas: &mut Schemas) -> Vec<Json> {
    let table = |key: &&str| tagged::<T>(key, doc, schemas);
    keys.iter().map(table).collect()
}

/// The key and content of a table of one of these keys.
pub fn content<'a>(json: &'a Json, keys: &[&'static str]) -> Option<(&'static str, &'a Json)> {
    match Shape::of(json) {
        Shape::Tagged(key, content) => keys.iter().find(|k| **k == key).map(|k| (*k, content)),
        _ => None,
    }
}

/// The schema of a choice among words, or among tables.
pub fn one_of(doc: &str, all: Vec<Json>) -> Json {
    describe(json!({ "oneOf": all }), &prose(doc), Json::Null)
}

/// The schema of a choice among kinds: values as they are, and a definition of tables, which may have none.
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

/// The schema of a table for which the value of one of its keys may stand alone.
pub fn short(table: &Json, key: &str, schemas: &Schemas) -> Json {
    let mut alone = schemas.target(table)["properties"][key].clone();
    if let Json::Object(map) = &mut alone {
        map.remove("description");
        map.remove("default");
    }
    json!({ "anyOf": [alone, table] })
}

/// A table for a value that stands alone; `None`: it is a table.
pub fn lengthen(json: &Json, key: &str) -> Option<Json> {
    (!json.is_object()).then(|| tag(key, json.clone()))
}
