//! A scenario as a tree of values with their positions in the text.

use std::ops::Range;

use serde_json::{Map, Number};
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostics, Place};

/// A value with its position.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) place: Place,
}

/// A value as it was written.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    String(String),
    Number(Number),
    Bool(bool),
    Array(Vec<Node>),
    Table(Vec<Entry>),
    /// A value that no scenario has: a date, a number that is infinite or too large.
    Other(&'static str),
}

/// Deepest nesting of keys.
const DEEPEST: usize = 32;

/// The dotted path of a key inside the table or list at `path`.
pub(crate) fn joined(path: &str, key: &str) -> String {
    let is_plain = !key.is_empty() && !key.contains(['.', '"', '\'', ' ']);
    match (path, is_plain) {
        ("", true) => key.to_owned(),
        ("", false) => format!("{key:?}"),
        (_, true) => format!("{path}.{key}"),
        (_, false) => format!("{path}.{key:?}"),
    }
}

/// A key, its position, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) value: Node,
}

impl Node {
    /// Parses a text; on syntax errors `None`, and the errors are reported.
    pub(crate) fn from_toml(text: &str, errors: &mut Diagnostics) -> Option<Self> {
        let (table, syntax) = DeTable::parse_recoverable(text);
        let span = table.span();
        for e in &syntax {
            let place = Place::File(e.span().unwrap_or(0..0));
            errors.add(place, "", "this is not TOML", e.message().to_owned(), None);
        }
        if !syntax.is_empty() {
            return None;
        }
        let entries = entries(table.into_inner(), &Place::File);
        Some(Self {
            value: Value::Table(entries),
            place: Place::File(span),
        })
    }

    /// Builds the tree from JSON, which has no positions; null means not written.
    pub(crate) fn from_json(json: &serde_json::Value) -> Option<Self> {
        use serde_json::Value as Json;
        let value = match json {
            Json::Null => return None,
            Json::Bool(b) => Value::Bool(*b),
            Json::Number(n) => Value::Number(n.clone()),
            Json::String(s) => Value::String(s.clone()),
            Json::Array(a) => Value::Array(a.iter().filter_map(Self::from_json).collect()),
            Json::Object(o) => {
                let entry = |(key, v): (&String, &Json)| {
                    let (key, place) = (key.clone(), Place::Nowhere);
                    Self::from_json(v).map(|value| Entry { key, place, value })
                };
                Value::Table(o.iter().filter_map(entry).collect())
            }
        };
        Some(Self {
            value,
            place: Place::Nowhere,
        })
    }

    /// Converts to JSON, without positions.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::String(s) => s.clone().into(),
            Value::Number(n) => n.clone().into(),
            Value::Bool(b) => (*b).into(),
            Value::Array(a) => a.iter().map(Self::to_json).collect(),
            Value::Table(t) => t
                .iter()
                .map(|e| (e.key.clone(), e.value.to_json()))
                .collect::<Map<_, _>>()
                .into(),
            Value::Other(_) => serde_json::Value::Null,
        }
    }

    /// The value of a key of a table.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(t) => t.iter().find(|e| e.key == key).map(|e| &e.value),
            Value::Array(a) => a.get(key.parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// The position of the value at a dotted path, or of the nearest table around it.
    pub(crate) fn place(&self, path: &str) -> Place {
        let mut at = self;
        for key in path.split('.').filter(|k| !k.is_empty()) {
            match at.get(key) {
                Some(next) => at = next,
                None => break,
            }
        }
        at.place.clone()
    }

    /// The type of the value, in a word or two.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::String(_) => "text",
            Value::Number(_) => "a number",
            Value::Bool(_) => "true or false",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
            Value::Other(kind) => kind,
        }
    }

    /// Sets the value at a dotted path; `*` stands for every item of a list.
    ///
    /// # Errors
    /// When the path leads through something that is not a table.
    pub(crate) fn set(&mut self, path: &[&str], new: &Self) -> Result<(), NoPlace> {
        let nowhere = |why| Err(NoPlace { why, inside: None });
        if path.len() > DEEPEST {
            return nowhere(format!("a key of {} parts leads nowhere", path.len()));
        }
        let Some((key, rest)) = path.split_first() else {
            *self = new.clone();
            return Ok(());
        };
        if key.is_empty() {
            return nowhere("a part of the key is empty".to_owned());
        }
        // `congestion.cubic.beta` refines a plain `congestion = "cubic"`.
        if matches!(&self.value, Value::String(s) if s == key) {
            self.value = Value::Table(Vec::new());
        }
        let kind = self.kind();
        match &mut self.value {
            Value::Table(t) => {
                if let Some(e) = t.iter_mut().find(|e| e.key == *key) {
                    return e.value.set(rest, new);
                }
                let mut value = Self {
                    value: Value::Table(Vec::new()),
                    place: new.place.clone(),
                };
                value.set(rest, new)?;
                t.push(Entry {
                    key: (*key).to_owned(),
                    place: new.place.clone(),
                    value,
                });
                Ok(())
            }
            Value::Array(a) if *key == "*" => {
                for item in a {
                    item.set(rest, new)?;
                }
                Ok(())
            }
            Value::Array(a) => {
                let n = a.len();
                match key.parse::<usize>().ok().and_then(|i| a.get_mut(i)) {
                    Some(item) => item.set(rest, new),
                    None => nowhere(format!(
                        "\"{key}\" is not an item of a list of {n}; items count from 0, * means all"
                    )),
                }
            }
            _ => Err(NoPlace {
                why: format!("\"{key}\" cannot be set inside of what is {kind}, not a table"),
                inside: Some(path.len()),
            }),
        }
    }

    /// The value of an override: parsed as TOML if possible, text otherwise.
    pub(crate) fn from_override(text: &str, index: usize) -> Self {
        let place = move |_: Range<usize>| Place::Override(index);
        let document = format!("value = {text}\n");
        if let Ok(table) = DeTable::parse(&document) {
            let mut entries = entries(table.into_inner(), &place);
            if let (1, Some(entry)) = (entries.len(), entries.pop())
                && entry.key == "value"
            {
                return entry.value;
            }
        }
        Self {
            value: Value::String(text.to_owned()),
            place: Place::Override(index),
        }
    }
}

/// Why a value cannot be set at a path.
pub(crate) struct NoPlace {
    /// A part of a sentence.
    pub why: String,
    /// How many parts of the path were left at a value that is not a table.
    pub inside: Option<usize>,
}

impl NoPlace {
    /// What to write instead of the override of `path`, with a value that is `written` so.
    pub(crate) fn help(&self, path: &[&str], value: &Node, written: &str) -> String {
        let Some(left) = self.inside.filter(|left| *left < path.len()) else {
            return "a key is a path like flows.0.transport.tcp.congestion".to_owned();
        };
        let (whole, part) = path.split_at(path.len() - left);
        let (whole, part) = (whole.join("."), part.join("."));
        // Inside of a table a text needs its quotes.
        let written = match &value.value {
            Value::String(text) => toml::Value::from(text.as_str()).to_string(),
            _ => written.to_owned(),
        };
        format!("replace the whole value: --set '{whole}={{ {part} = {written} }}'")
    }
}

fn entries(table: DeTable<'_>, place: &dyn Fn(Range<usize>) -> Place) -> Vec<Entry> {
    let entry = |(key, value): (toml::Spanned<_>, toml::Spanned<_>)| {
        let span = key.span();
        let key: std::borrow::Cow<'_, str> = key.into_inner();
        Entry {
            key: key.into_owned(),
            place: place(span),
            value: node(value, place),
        }
    };
    table.into_iter().map(entry).collect()
}

fn node(value: toml::Spanned<DeValue<'_>>, place: &dyn Fn(Range<usize>) -> Place) -> Node {
    let at = place(value.span());
    let value = match value.into_inner() {
        DeValue::String(s) => Value::String(s.into_owned()),
        DeValue::Integer(i) => match i64::from_str_radix(i.as_str(), i.radix()) {
            Ok(n) => Value::Number(n.into()),
            Err(_) => Value::Other("a number that is too large"),
        },
        DeValue::Float(f) => match f.as_str().parse().ok().and_then(Number::from_f64) {
            Some(n) => Value::Number(n),
            None => Value::Other("a number that is not finite"),
        },
        DeValue::Boolean(b) => Value::Bool(b),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(a) => Value::Array(a.into_iter().map(|v| node(v, place)).collect()),
        DeValue::Table(t) => Value::Table(entries(t, place)),
    };
    Node { value, place: at }
}
