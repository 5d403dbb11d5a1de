//! An event: an object, or a row of the columns that its trace names (drafts 00 and 01).

use serde_json::Value;

/// What an event has, whatever form it has.
pub struct Event<'a> {
    /// Its time as it is written.
    pub time: Option<f64>,
    /// Its name without the category.
    pub name: String,
    /// Its data.
    pub data: &'a Value,
    /// The group it is of, if it is told beside the event itself.
    pub group: Option<&'a Value>,
    /// The path it is of, where a connection may have several.
    pub path: Option<u64>,
}

/// Columns of the rows of all writers of these drafts, with or without the trigger.
const COLUMNS: [&str; 4] = ["relative_time", "category", "event", "data"];
const COLUMNS_WITH_TRIGGER: [&str; 5] = ["relative_time", "category", "event", "trigger", "data"];

impl<'a> Event<'a> {
    /// Reads one; `None` if it has no name.
    pub fn read(value: &'a Value, columns: &[String]) -> Option<Self> {
        let field = |name: &str| match value {
            Value::Array(row) => {
                let default = match row.len() {
                    4 => &COLUMNS[..],
                    _ => &COLUMNS_WITH_TRIGGER[..],
                };
                // Some name a column that their rows do not have.
                let at = match columns.len() == row.len() {
                    true => columns.iter().position(|c| c == name),
                    false => default.iter().position(|c| *c == name),
                };
                row.get(at?)
            }
            other => other.get(name),
        };
        let text = |name: &str| field(name).and_then(Value::as_str);
        let name = text("name")
            .or_else(|| text("event"))
            .or_else(|| text("event_type"))?;
        let name = name.rsplit(':').next().unwrap_or(name).to_ascii_lowercase();
        let time = ["time", "relative_time", "delta_time"]
            .into_iter()
            .find_map(&field);
        Some(Self {
            time: time.and_then(signed),
            name,
            data: field("data").unwrap_or(&Value::Null),
            group: field("group_id"),
            path: field("path_id").and_then(integer),
        })
    }
}

/// A number, which some write as text.
pub fn signed(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(n) => n.as_f64(),
        Value::String(s) => s.trim().parse().ok(),
        _ => None,
    };
    number.filter(|n| n.is_finite())
}

/// A number that is not negative.
pub fn number(value: &Value) -> Option<f64> {
    signed(value).filter(|n| *n >= 0.0)
}

/// A number of things.
pub fn integer(value: &Value) -> Option<u64> {
    match value {
        Value::Number(n) => n.as_u64().or_else(|| number(value).map(|n| n as u64)),
        Value::String(s) => s.trim().parse().ok(),
        _ => None,
    }
}

/// Text, or a number as text.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(s) if !s.is_empty() => Some(s.clone()),
        Value::Number(n) => Some(n.to_string()),
        _ => None,
    }
}

/// The first of these fields that there is.
pub fn first<'a>(data: &'a Value, names: &[&str]) -> &'a Value {
    let found = names
        .iter()
        .find_map(|n| data.get(n).filter(|v| !v.is_null()));
    found.unwrap_or(&Value::Null)
}

/// The elements of an array.
pub fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
