//! Trees generated from the JSON Schema, bounded so that valid ones are small.

use std::sync::OnceLock;

use arbitrary::{Result, Unstructured};
use serde_json::{Map, Value, json};

use super::EXAMPLES;

/// Below this depth the simplest values are generated.
const DEEPEST: u32 = 9;
/// Most hosts, copies and similar counts.
const MOST: u64 = 12;

/// Names that may be valid somewhere.
const NAMES: &[&str] = &[
    "left0",
    "right0",
    "left*",
    "right*",
    "left",
    "right",
    "client",
    "server",
    "cross*",
    "sink*",
    "cross0",
    "router0",
    "a",
    "b",
    "c",
    "a-b",
    "link",
    "bottleneck",
    "bottleneck0",
    "path0",
    "path1",
    "mine",
    "*",
    "",
];

/// Units that give numbers a meaning, and no unit.
const UNITS: &[&str] = &[
    "s", "ms", "us", "ns", "min", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "MB/s", "B", "kB", "MB",
    "KiB", "%", " packets", "BDP", "/s", "/min", "", "parsec",
];

fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(gargalo_scenario::schema)
}

fn examples() -> &'static [Value] {
    static TREES: OnceLock<Vec<Value>> = OnceLock::new();
    TREES.get_or_init(|| {
        let tree = |text: &&str| toml::from_str(text).expect("the examples are TOML");
        EXAMPLES.iter().map(tree).collect()
    })
}

/// Generates a whole scenario.
pub(super) fn scenario(u: &mut Unstructured<'_>) -> Result<Value> {
    let kind: u8 = u.arbitrary()?;
    if kind & 7 == 0 {
        return Ok(grow(schema(), u, 0));
    }
    let mut tree = examples()[usize::from(kind >> 3) % EXAMPLES.len()].clone();
    for _ in 0..u.arbitrary::<u8>()? & 15 {
        change(&mut tree, schema(), u, 0)?;
    }
    Ok(tree)
}

/// Generates pairs of a key and a value, as on the command line; usually none.
pub(super) fn overrides(u: &mut Unstructured<'_>, tree: &Value) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    if u.arbitrary::<u8>()? & 7 != 0 {
        return Ok(all);
    }
    for _ in 0..u.arbitrary::<u8>()? & 3 {
        let (mut at, mut key) = (tree, Vec::new());
        while u.arbitrary::<u8>()? & 7 != 0 {
            match at {
                Value::Object(map) if !map.is_empty() => {
                    let n = usize::from(u.arbitrary::<u8>()?) % map.len();
                    let Some((k, v)) = map.iter().nth(n) else {
                        break;
                    };
                    key.push(k.clone());
                    at = v;
                }
                Value::Array(list) if !list.is_empty() => {
                    let n = usize::from(u.arbitrary::<u8>()?) % list.len();
                    key.push(if n == 0 {
                        "*".to_owned()
                    } else {
                        n.to_string()
                    });
                    at = &list[n];
                }
                _ => break,
            }
        }
        let value = match u.arbitrary::<u8>()? & 3 {
            0 => at.to_string(),
            1 => quantity(u)?,
            2 => (*u.choose(NAMES)?).to_owned(),
            _ => String::from_utf8_lossy(u.bytes(u.len().min(6))?).into_owned(),
        };
        all.push((key.join("."), value));
    }
    Ok(all)
}

/// The schema that a reference leads to; of alternatives the one that fits the value.
fn resolved<'a>(schema: &'a Value, value: Option<&Value>) -> &'a Value {
    let mut at = schema;
    for _ in 0..20 {
        if let Some(name) = at.get("$ref").and_then(Value::as_str) {
            let name = name.trim_start_matches("#/$defs/");
            at = &self::schema()["$defs"][name];
        } else if let (Some(list), Some(v)) = (alternatives(at), value) {
            match list.iter().find(|s| fits(s, v)) {
                Some(one) => at = one,
                None => return at,
            }
        } else {
            return at;
        }
    }
    at
}

fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    let list = schema.get("anyOf").or_else(|| schema.get("oneOf"));
    list.and_then(Value::as_array)
}

/// Whether a value roughly fits a schema: a table with such a key, a list for lists.
fn fits(schema: &Value, value: &Value) -> bool {
    let schema = resolved(schema, None);
    match value {
        Value::Object(map) => {
            let keys = &schema["properties"];
            map.keys().any(|k| keys.get(k).is_some())
                || alternatives(schema).is_some_and(|l| l.iter().any(|s| fits(s, value)))
        }
        Value::Array(_) => schema["type"] == "array",
        _ => false,
    }
}

/// Changes a random part of a tree.
fn change(value: &mut Value, schema: &Value, u: &mut Unstructured<'_>, depth: u32) -> Result<()> {
    let op: u8 = u.arbitrary()?;
    let own = resolved(schema, Some(value));
    match value {
        Value::Object(map) if op & 15 != 0 && depth < DEEPEST => {
            let n = usize::from(op >> 4);
            match op & 15 {
                1 if !map.is_empty() => {
                    let k = map.keys().nth(n % map.len()).cloned();
                    k.and_then(|k| map.remove(&k));
                }
                2 => drop(map.insert("unknown".to_owned(), json!(1))),
                3..=7 => {
                    if let Some((k, s)) = nth(&own["properties"], u.arbitrary()?) {
                        map.insert(k.clone(), grow(s, u, depth + 1));
                    }
                }
                _ if !map.is_empty() => {
                    let len = map.len();
                    if let Some((k, v)) = map.iter_mut().nth(n % len) {
                        let inner = property(own, k);
                        return change(v, inner, u, depth + 1);
                    }
                }
                _ => {}
            }
        }
        Value::Array(list) if op & 7 != 0 && !list.is_empty() && depth < DEEPEST => {
            let n = usize::from(op >> 3) % list.len();
            match op & 7 {
                1 => drop(list.remove(n)),
                2 => list.push(list[n].clone()),
                _ => {
                    let inner = item(own, n);
                    return change(&mut list[n], inner, u, depth + 1);
                }
            }
        }
        _ => *value = grow(schema, u, depth),
    }
    Ok(())
}

fn nth(properties: &Value, n: u8) -> Option<(&String, &Value)> {
    let map = properties.as_object()?;
    map.iter().nth(usize::from(n) % map.len().max(1))
}

fn property<'a>(schema: &'a Value, key: &str) -> &'a Value {
    let own = schema["properties"].get(key);
    own.unwrap_or(&schema["additionalProperties"])
}

fn item(schema: &Value, n: usize) -> &Value {
    let own = schema["prefixItems"].get(n);
    own.unwrap_or(&schema["items"])
}

/// Generates a value that the schema usually allows; the simplest one when the input is exhausted.
fn grow(schema: &Value, u: &mut Unstructured<'_>, depth: u32) -> Value {
    let op: u8 = u.arbitrary().unwrap_or_default();
    if op == 255 {
        return odd(u);
    }
    let schema = resolved(schema, None);
    if let Some(list) = alternatives(schema) {
        let n = if depth < DEEPEST {
            usize::from(op) % list.len()
        } else {
            0
        };
        return grow(&list[n], u, depth + 1);
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(list) = schema["enum"].as_array() {
        return list[usize::from(op) % list.len().max(1)].clone();
    }
    let kind = match &schema["type"] {
        Value::Array(types) => types[usize::from(op) % types.len().max(1)].as_str(),
        one => one.as_str(),
    };
    match kind {
        Some("object") => object(schema, op, u, depth),
        Some("array") => {
            let fixed = schema["prefixItems"].as_array().map(Vec::len);
            let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
            let len = fixed.unwrap_or((usize::from(op) & 3).max(least));
            let len = if depth < DEEPEST { len } else { least };
            (0..len)
                .map(|n| grow(item(schema, n), u, depth + 1))
                .collect()
        }
        Some("string") => string(schema, op, u).unwrap_or_default().into(),
        Some("boolean") => (op & 1 == 1).into(),
        Some("integer") => (number(u) as i64).into(),
        Some("number") => json!(number(u)),
        _ => odd(u),
    }
}

fn object(schema: &Value, op: u8, u: &mut Unstructured<'_>, depth: u32) -> Value {
    let mut map = Map::new();
    let required = schema["required"].as_array();
    let is_required = |k: &str| required.is_some_and(|r| r.iter().any(|r| r == k));
    if let Some(properties) = schema["properties"].as_object() {
        for (k, s) in properties {
            let wanted = depth < DEEPEST && u.ratio(1, 4 + depth).unwrap_or(false);
            if is_required(k) || wanted {
                map.insert(k.clone(), grow(s, u, depth + 1));
            }
        }
    }
    if schema["additionalProperties"].is_object() {
        for _ in 0..op & 1 {
            let k = (*u.choose(NAMES).unwrap_or(&"a")).to_owned();
            let v = grow(&schema["additionalProperties"], u, depth + 1);
            map.insert(k, v);
        }
    }
    map.into()
}

fn string(schema: &Value, op: u8, u: &mut Unstructured<'_>) -> Result<String> {
    if schema.get("format").is_some() {
        if op & 3 == 0 {
            return quantity(u);
        }
        if let Some(list) = schema["examples"].as_array().filter(|l| !l.is_empty()) {
            let text = list[usize::from(op >> 2) % list.len()].as_str();
            return Ok(text.unwrap_or_default().to_owned());
        }
    }
    Ok((*u.choose(NAMES)?).to_owned())
}

fn quantity(u: &mut Unstructured<'_>) -> Result<String> {
    let unit = *u.choose(UNITS)?;
    Ok(match u.arbitrary::<u8>()? & 3 {
        0 => format!("{}{unit}", u.arbitrary::<u8>()?),
        1 => format!("{}.{}{unit}", u.arbitrary::<u8>()?, u.arbitrary::<u8>()?),
        _ => format!("{}{unit}", number(u)),
    })
}

/// Generates a number: small ones, edge cases, and any.
fn number(u: &mut Unstructured<'_>) -> f64 {
    let edges = [
        0.0,
        1.0,
        -1.0,
        0.5,
        1e-9,
        1e9,
        65_535.0,
        65_536.0,
        4_294_967_296.0,
        9.2e18,
        1.8e19,
        1e300,
    ];
    match u.arbitrary::<u8>().unwrap_or_default() {
        n @ 0..=199 => f64::from(n),
        n @ 200..=239 => edges[usize::from(n) % edges.len()],
        _ => {
            let any: f64 = u.arbitrary().unwrap_or_default();
            if any.is_finite() { any } else { 0.0 }
        }
    }
}

/// Generates a value that no schema asks for.
fn odd(u: &mut Unstructured<'_>) -> Value {
    match u.arbitrary::<u8>().unwrap_or_default() % 8 {
        0 => json!(true),
        1 => json!(-1),
        2 => json!(1.5),
        3 => json!(""),
        4 => json!("\u{1b}[31m\u{0}\u{202e}x"),
        5 => json!([]),
        6 => json!({}),
        _ => (0..40).fold(json!(1), |v, _| json!([v])),
    }
}

/// Reduces what is large: lengths of runs, numbers of hosts and flows, tables.
pub(super) fn bound(tree: &mut Value) {
    if let Some(d) = tree.get_mut("duration").filter(|d| d.is_string()) {
        let digits: usize = d.as_str().map_or(0, str::len);
        *d = ["200ms", "10ms", "1s"][digits % 3].into();
    }
    shrink(tree);
}

fn shrink(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(shrink),
        Value::Object(map) => {
            for (key, v) in map {
                let crowd = ["pairs", "hops", "count", "objects", "connections"];
                match v.as_u64() {
                    Some(n) if crowd.contains(&key.as_str()) => *v = (n % MOST).into(),
                    _ => shrink(v),
                }
            }
        }
        _ => {}
    }
}
