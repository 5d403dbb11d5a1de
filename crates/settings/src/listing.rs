//! Lists of the alternatives of a choice, from its schema.

use crate::{Json, Schemas, Setting};

/// An alternative of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its word or key.
    pub name: String,
    /// The first paragraph of its documentation, without the full stop.
    pub summary: String,
    /// The second paragraph: the source of the specification.
    pub source: String,
    /// The keys of its table.
    pub keys: Vec<Key>,
}

/// A key of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The key as it is written.
    pub name: String,
    /// The values that it takes.
    pub takes: String,
    /// Its default; `required`, or `none`.
    pub default: String,
    /// Its documentation in one line.
    pub doc: String,
}

/// Lists every alternative of a choice that is a table, in the order of declaration.
pub fn kinds<T: Setting>() -> Vec<Kind> {
    let mut schemas = Schemas::default();
    let schema = T::schema(&mut schemas);
    let tables = schema["anyOf"]
        .as_array()
        .map_or(Some(&schema), |all| all.last());
    let all = tables.and_then(|t| schemas.target(t)["oneOf"].as_array());
    let tables = all.into_iter().flatten().filter_map(|s| {
        let (name, content) = s["properties"].as_object()?.iter().next()?;
        let (summary, source) = about(s);
        Some(Kind {
            name: name.clone(),
            summary,
            source,
            keys: keys(schemas.target(content)),
        })
    });
    tables.collect()
}

/// Lists every word of a choice among names, in the order of declaration.
pub fn words<T: Setting>() -> Vec<Kind> {
    let schema = T::schema(&mut Schemas::default());
    let words = schema["oneOf"].as_array().into_iter().flatten();
    let word = |s: &Json| {
        let (summary, source) = about(s);
        Some(Kind {
            name: s["const"].as_str()?.to_owned(),
            summary,
            source,
            keys: Vec::new(),
        })
    };
    words.filter_map(word).collect()
}

/// Returns the first and the second paragraph of a description, without full stops.
fn about(schema: &Json) -> (String, String) {
    let text = schema["description"].as_str().unwrap_or_default();
    let mut paragraphs = text.split("\n\n").map(|p| {
        let line = p.replace('\n', " ");
        line.trim_end_matches('.').to_owned()
    });
    let mut next = || paragraphs.next().unwrap_or_default();
    (next(), next())
}

fn keys(table: &Json) -> Vec<Key> {
    let required = |key: &str| {
        let list = table["required"].as_array();
        list.is_some_and(|l| l.iter().any(|k| k == key))
    };
    let all = table["properties"].as_object();
    let key = |(name, schema): (&String, &Json)| Key {
        name: name.clone(),
        takes: takes(schema),
        default: match &schema["default"] {
            Json::Null if required(name) => "required".to_owned(),
            Json::Null => "none".to_owned(),
            Json::String(text) => text.clone(),
            other => other.to_string(),
        },
        doc: schema["description"]
            .as_str()
            .unwrap_or_default()
            .replace('\n', " "),
    };
    all.into_iter().flatten().map(key).collect()
}

/// The values that a key takes, in a few words.
fn takes(schema: &Json) -> String {
    let words = schema["oneOf"].as_array().into_iter().flatten();
    let words: Vec<&str> = words.filter_map(|w| w["const"].as_str()).collect();
    if !words.is_empty() {
        return words.join(", ");
    }
    if let (Some(_), Some(example)) = (schema["format"].as_str(), schema["examples"][0].as_str()) {
        let range = match (&schema["formatMinimum"], &schema["formatMaximum"]) {
            (Json::String(a), Json::String(b)) => format!(", from {a} to {b}"),
            (Json::String(a), _) => format!(", {a} or more"),
            (_, Json::String(b)) => format!(", {b} or less"),
            _ => String::new(),
        };
        return format!("like \"{example}\"{range}");
    }
    let kind = match schema["type"].as_str() {
        Some("boolean") => "true or false",
        Some("integer") => "a whole number",
        Some("number") => "a number",
        Some("array") => "a list",
        _ => "",
    };
    match (&schema["minimum"], &schema["maximum"]) {
        (Json::Number(a), Json::Number(b)) => format!("{kind} from {a} to {b}"),
        (Json::Number(a), _) if a.as_f64() != Some(0.0) => format!("{kind} of {a} or more"),
        _ => kind.to_owned(),
    }
}
