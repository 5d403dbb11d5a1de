//! The reference page of scenarios, generated from the schema.

use gargalo_settings::Setting;
use serde_json::Value;

use crate::schema;

/// Markdown with every table of a scenario: its keys, what they take, their defaults and meaning; and
/// the TCP options of every profile.
pub fn reference() -> String {
    let schema = schema::internal();
    let mut out = String::from("# Scenario reference\n\n");
    table("Scenario", schema, &mut out);
    if let Some(definitions) = schema.get("$defs").and_then(Value::as_object) {
        for (name, definition) in definitions {
            table(name, definition, &mut out);
        }
    }
    profiles(&mut out);
    out
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Formats a table cell: one line, with escaped bars.
fn cell(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

fn table(name: &str, schema: &Value, out: &mut String) {
    out.push_str(&format!("## {name}\n\n"));
    let description = text(schema, "description");
    if !description.is_empty() {
        out.push_str(&format!("{description}\n\n"));
    }
    if schema.get("anyOf").is_some() {
        out.push_str(&format!("Takes {}.\n\n", takes(schema)));
    }
    let mut rows = Vec::new();
    rows_of(schema, &mut rows);
    if rows.is_empty() {
        return;
    }
    out.push_str("| key | takes | default | meaning |\n| --- | --- | --- | --- |\n");
    for [key, takes, default, meaning] in rows {
        out.push_str(&format!("| {key} | {takes} | {default} | {meaning} |\n"));
    }
    out.push('\n');
}

fn rows_of(schema: &Value, rows: &mut Vec<[String; 4]>) {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |key: &str| required.is_some_and(|r| r.iter().any(|k| k == key));
    let alternatives = ["oneOf", "anyOf"]
        .iter()
        .filter_map(|k| schema.get(k)?.as_array());
    let listed: Vec<&Value> = alternatives.flatten().collect();
    for (key, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        // In a choice each table has a single key, which is required only there.
        let default = match property.get("default") {
            Some(d) => format!("`{d}`"),
            None if is_required(key) => "required".to_owned(),
            None => String::new(),
        };
        let own = text(property, "description");
        let meaning = if own.is_empty() {
            text(schema, "description")
        } else {
            own
        };
        rows.push([
            format!("`{key}`"),
            cell(&takes(property)),
            cell(&default),
            cell(meaning),
        ]);
    }
    for alternative in listed {
        if let Some(constant) = alternative.get("const") {
            let meaning = cell(text(alternative, "description"));
            rows.push([
                format!("`{constant}`"),
                "word".to_owned(),
                String::new(),
                meaning,
            ]);
        } else {
            let before = rows.len();
            rows_of(alternative, rows);
            for row in &mut rows[before..] {
                if row[2] == "required" {
                    row[2] = String::new();
                }
            }
        }
    }
}

/// The values that a key takes, in a few words.
fn takes(schema: &Value) -> String {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let name = target.rsplit('/').next().unwrap_or_default();
        return format!("[{name}](#{})", name.to_lowercase());
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(list) = schema.get(key).and_then(Value::as_array) {
            let mut all: Vec<String> = list.iter().map(takes).collect();
            all.dedup();
            return all.join(" or ");
        }
    }
    if let Some(constant) = schema.get("const") {
        return format!("`{constant}`");
    }
    if let Some(names) = schema.get("enum").and_then(Value::as_array) {
        let names: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
        return names.join(", ");
    }
    // Formats such as uint32 are Rust types and mean nothing to the user.
    let format = text(schema, "format");
    if let Some(example) = crate::schema::format(format).and_then(|f| f.examples.first()) {
        return format!("{format}, like `\"{example}\"`");
    }
    let low = schema.get("minimum");
    let high = schema.get("maximum");
    let range = match (low, high) {
        (Some(l), Some(h)) => format!(", {l} to {h}"),
        (Some(l), None) => format!(", {l} or more"),
        _ => String::new(),
    };
    match text(schema, "type") {
        "string" => "text".to_owned(),
        "integer" => format!("whole number{range}"),
        "number" => format!("number{range}"),
        "boolean" => "true or false".to_owned(),
        "array" => match schema.get("items") {
            Some(items) => format!("list of {}", takes(items)),
            None => "list".to_owned(),
        },
        _ => "table".to_owned(),
    }
}

fn profiles(out: &mut String) {
    out.push_str("## TCP profiles\n\n| option |");
    let all: Vec<(&str, Value)> = gargalo_tcp::Profile::ALL
        .iter()
        .map(|p| (p.name(), p.config().write()))
        .collect();
    for (name, _) in &all {
        out.push_str(&format!(" {name} |"));
    }
    out.push_str("\n| --- |");
    out.push_str(&" --- |".repeat(all.len()));
    out.push('\n');
    let keys = all.first().and_then(|(_, v)| v.as_object());
    for key in keys.into_iter().flatten().map(|(k, _)| k) {
        out.push_str(&format!("| `{key}` |"));
        for (_, values) in &all {
            let value = values.get(key).map(Value::to_string).unwrap_or_default();
            out.push_str(&format!(" {} |", cell(&value)));
        }
        out.push('\n');
    }
}
