//! Checks a tree against the JSON Schema of the model, so that mistakes are reported with position and likely fix,
//! several at once, before anything is deserialized.

use gargalo_quic::NOQ;
use gargalo_units::nearest;
use serde_json::Value as Json;

use crate::Names;
use crate::diagnostic::{Diagnostics, Place};
use crate::schema;
use crate::tree::{Entry, Node, Value, joined};

/// A check of one tree.
pub(crate) struct Checker<'a> {
    schema: &'a Json,
    /// Additional names that the registries do not know.
    extra: &'a Names,
    errors: &'a mut Diagnostics,
    /// The dotted path of the node being checked.
    path: String,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(schema: &'a Json, extra: &'a Names, errors: &'a mut Diagnostics) -> Self {
        Self {
            schema,
            extra,
            errors,
            path: String::new(),
        }
    }

    /// Reports a problem of the node being checked.
    fn add(
        &mut self,
        place: Place,
        label: impl Into<String>,
        message: String,
        help: Option<String>,
    ) {
        self.errors.add(place, &self.path, label, message, help);
    }

    /// Checks a part of the node being checked, at a key.
    fn inside(&mut self, key: &str, check: impl FnOnce(&mut Self)) {
        let inner = joined(&self.path, key);
        let outer = std::mem::replace(&mut self.path, inner);
        check(self);
        self.path = outer;
    }

    /// Checks the whole scenario.
    pub(crate) fn check(&mut self, root: &Node) {
        let schema = self.schema;
        self.node(root, schema, "the scenario");
    }

    /// Returns the schema that a reference leads to.
    fn resolve(&self, schema: &'a Json) -> &'a Json {
        let mut at = schema;
        // A chain of references is as deep as the nesting of the model.
        for _ in 0..8 {
            let target = at.get("$ref").and_then(Json::as_str);
            match target.and_then(|t| self.schema.pointer(t.trim_start_matches('#'))) {
                Some(next) => at = next,
                None => break,
            }
        }
        at
    }

    /// Collects the alternatives of a value: the leaves of nested `anyOf` and `oneOf`.
    fn alternatives(&self, schema: &'a Json, out: &mut Vec<&'a Json>) {
        let schema = self.resolve(schema);
        let nested = schema.get("anyOf").or_else(|| schema.get("oneOf"));
        match nested.and_then(Json::as_array) {
            Some(list) => list.iter().for_each(|s| self.alternatives(s, out)),
            None => out.push(schema),
        }
    }

    fn node(&mut self, node: &Node, schema: &'a Json, name: &str) {
        let mut all = Vec::new();
        self.alternatives(schema, &mut all);
        let fitting: Vec<&Json> = all.iter().copied().filter(|s| accepts(s, node)).collect();
        if fitting.is_empty() {
            return self.wrong_kind(node, &all, name);
        }
        match &node.value {
            Value::String(s) => self.text(node, s, &fitting, name),
            Value::Number(_) => self.number(node, &fitting, name),
            Value::Array(items) => self.array(node, items, fitting[0], name),
            Value::Table(entries) => self.table(node, entries, &fitting, name),
            Value::Bool(_) | Value::Other(_) => {}
        }
    }

    fn wrong_kind(&mut self, node: &Node, all: &[&Json], name: &str) {
        let place = node.place.clone();
        if let Value::Number(n) = &node.value {
            let help = units_for(&n.to_string(), all, name);
            if help.is_some() {
                let message = format!("{name} = {n} has no unit");
                return self.add(place, "a bare number", message, help);
            }
        }
        let mut expected: Vec<String> = all.iter().map(|s| describe(s)).collect();
        expected.dedup();
        let message = format!("{name} cannot be {}", node.kind());
        let help = format!("{name} is {}", join_or(&expected));
        self.add(place, "wrong kind of value", message, Some(help));
    }

    fn text(&mut self, node: &Node, text: &str, fitting: &[&'a Json], name: &str) {
        let mut names: Vec<&str> = Vec::new();
        let mut failure = None;
        for s in fitting {
            let listed = s.get("enum").and_then(Json::as_array);
            let constant = s.get("const").and_then(Json::as_str);
            if let Some(list) = listed {
                names.extend(list.iter().filter_map(Json::as_str));
            } else if let Some(c) = constant {
                names.push(c);
            } else if let Some(format) = s.get("format").and_then(Json::as_str) {
                match schema::format(format).map_or(Ok(()), |f| (f.check)(text)) {
                    Ok(()) => return,
                    Err(e) => failure = Some(e),
                }
            } else {
                return; // any text is valid
            }
        }
        if names.contains(&text) || self.is_extra(name, text) {
            return;
        }
        if names == [NOQ] {
            return self.unknown_stack(node.place.clone(), text);
        }
        let quantity_like = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        // A number in quotes is treated as one without.
        let number = text.trim();
        if quantity_like
            && number
                .parse::<f64>()
                .is_ok_and(|n| n.is_finite() && n >= 0.0)
        {
            let help = units_for(number, fitting, name);
            if failure.is_some() && help.is_some() {
                let message = format!("{name} = \"{text}\" has no unit");
                return self.add(node.place.clone(), "no unit", message, help);
            }
        }
        match failure {
            Some(e) if quantity_like || names.is_empty() => {
                let fix = e
                    .suggestion
                    .map(|s| format!("did you mean `{name} = \"{s}\"`?"));
                let help = fix.or_else(|| examples(fitting));
                let message = format!("{name}: {}", e.message);
                self.add(node.place.clone(), "here", message, help);
            }
            // A word or a quantity would do.
            Some(_) if nearest(text, names.iter().copied()).is_none() => {
                let known = format!("known here: {}", names.join(", "));
                let help = examples(fitting).map(|e| format!("{known}; {e}"));
                let message = format!("{name} has no value \"{text}\"");
                self.add(node.place.clone(), "unknown value", message, help);
            }
            _ => self.unknown(node.place.clone(), text, &names, name, "value"),
        }
    }

    fn is_extra(&self, key: &str, name: &str) -> bool {
        let known = match key {
            "congestion" => &self.extra.congestion,
            "scheduler" => &self.extra.schedulers,
            "path_manager" => &self.extra.path_managers,
            "stack" | "client" | "server" => &self.extra.stacks,
            _ => return false,
        };
        known.iter().any(|c| c == name)
    }

    /// Whether a value names a QUIC stack that is not known.
    fn has_unknown_stack(&self, stack: &Node) -> bool {
        match &stack.value {
            Value::String(name) => name != NOQ && !self.is_extra("stack", name),
            Value::Table(ends) => ends.iter().any(|e| self.has_unknown_stack(&e.value)),
            _ => false,
        }
    }

    fn unknown_stack(&mut self, place: Place, text: &str) {
        let more = self.extra.stacks.iter().chain(&self.extra.installed);
        let mut known: Vec<&str> = more.map(String::as_str).chain([NOQ]).collect();
        known.sort_unstable();
        known.dedup();
        let near = nearest(text, known.iter().copied());
        let meant = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        let help = format!(
            "{meant}here are {}; `gargalo stacks` lists them, `make stacks` in a clone of the repository installs \
             others",
            known.join(", ")
        );
        let message = format!("there is no QUIC stack \"{text}\"");
        self.add(place, "unknown stack", message, Some(help));
    }

    fn unknown_key(&mut self, e: &Entry, known: &[&str], name: &str) {
        self.inside(&e.key, |c| {
            c.unknown(e.place.clone(), &e.key, known, name, "key");
        });
    }

    fn unknown(&mut self, place: Place, text: &str, known: &[&str], name: &str, what: &str) {
        let list = || format!("known here: {}", known.join(", "));
        let help = match nearest(text, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? {}", list()),
            None if known.is_empty() => format!("{name} takes none"),
            None => list(),
        };
        let message = format!("{name} has no {what} \"{text}\"");
        self.add(place, format!("unknown {what}"), message, Some(help));
    }

    fn number(&mut self, node: &Node, fitting: &[&Json], name: &str) {
        let Value::Number(n) = &node.value else {
            return;
        };
        let value = n.as_f64().unwrap_or(f64::NAN);
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        for s in fitting {
            let bound = |key: &str| s.get(key).and_then(Json::as_f64);
            low = low.max(bound("minimum").unwrap_or(f64::NEG_INFINITY));
            high = high.min(bound("maximum").unwrap_or(f64::INFINITY));
        }
        if (low..=high).contains(&value) {
            return;
        }
        let range = match (low.is_finite(), high.is_finite()) {
            (true, true) => format!("from {low} to {high}"),
            (true, false) => format!("of {low} or more"),
            _ => format!("of {high} or less"),
        };
        let message = format!("{name} = {n} is out of range");
        let help = format!("give a number {range}");
        self.add(node.place.clone(), "out of range", message, Some(help));
    }

    fn array(&mut self, node: &Node, items: &[Node], schema: &'a Json, name: &str) {
        let bound = |key: &str| schema.get(key).and_then(Json::as_u64);
        let n = items.len() as u64;
        let (low, high) = (bound("minItems").unwrap_or(0), bound("maxItems"));
        if n < low || high.is_some_and(|h| n > h) {
            let message = format!("{name} has {n} items");
            let help = match high {
                Some(h) if h == low => format!("give exactly {low}"),
                Some(h) => format!("give {low} to {h}"),
                None => format!("give {low} or more"),
            };
            self.add(node.place.clone(), "wrong length", message, Some(help));
            return;
        }
        let tuple = schema.get("prefixItems").and_then(Json::as_array);
        for (i, item) in items.iter().enumerate() {
            let schema = tuple.and_then(|t| t.get(i)).or_else(|| schema.get("items"));
            if let Some(schema) = schema {
                self.inside(&i.to_string(), |c| c.node(item, schema, name));
            }
        }
    }

    fn table(&mut self, node: &Node, entries: &[Entry], fitting: &[&'a Json], name: &str) {
        // Several tables fit: each is one key that says which, or they differ in their keys.
        let tagged: Vec<(&str, &'a Json)> = fitting.iter().filter_map(|s| tag(s)).collect();
        if tagged.len() == fitting.len() && fitting.len() > 1 {
            return self.tagged(node, entries, &tagged, name);
        }
        let known_keys = |s: &&&Json| {
            let known = |e: &&Entry| properties(s).any(|(k, _)| k == e.key);
            entries.iter().filter(known).count()
        };
        // The last of equals, so that the plain table is preferred to a tagged one with which it shares no key.
        let Some(schema) = fitting.iter().max_by_key(known_keys) else {
            return;
        };
        self.plain(node, entries, schema, name);
    }

    fn tagged(&mut self, node: &Node, entries: &[Entry], tagged: &[(&str, &'a Json)], name: &str) {
        let known: Vec<&str> = tagged.iter().map(|(k, _)| *k).collect();
        let mut found = Vec::new();
        for e in entries {
            match tagged.iter().find(|(k, _)| *k == e.key) {
                Some((_, schema)) => found.push((e, *schema)),
                None if self.is_extra(name, &e.key) => return,
                None => self.unknown_key(e, &known, name),
            }
        }
        if entries.is_empty() {
            let help = format!("give one of {}", known.join(", "));
            let message = format!("{name} is empty");
            self.add(node.place.clone(), "nothing given", message, Some(help));
        }
        if let [_, (second, _), ..] = &found[..] {
            let names: Vec<_> = found.iter().map(|(e, _)| e.key.as_str()).collect();
            let message = format!("{name} is given as {} at once", names.join(" and "));
            let help = Some("keep one of them".to_owned());
            self.inside(&second.key, |c| {
                c.add(second.place.clone(), "one too many", message, help);
            });
        }
        for (e, schema) in found {
            self.inside(&e.key, |c| c.node(&e.value, schema, &e.key));
        }
    }

    fn plain(&mut self, node: &Node, entries: &[Entry], schema: &'a Json, name: &str) {
        let known: Vec<&str> = properties(schema).map(|(k, _)| k).collect();
        // Which congestion controls there are depends on the stack.
        let is_open = name == "quic"
            && entries
                .iter()
                .any(|e| e.key == "stack" && self.has_unknown_stack(&e.value));
        for e in entries {
            if is_open && e.key == "congestion" {
                continue;
            }
            match properties(schema).find(|(k, _)| *k == e.key) {
                Some((_, schema)) => self.inside(&e.key, |c| c.node(&e.value, schema, &e.key)),
                None => match schema.get("additionalProperties") {
                    // Whatever it is, somebody else knows it.
                    Some(Json::Object(any)) if any.is_empty() => {}
                    // A table whose keys are names.
                    Some(values @ Json::Object(_)) => {
                        self.inside(&e.key, |c| c.node(&e.value, values, &e.key));
                    }
                    _ => self.unknown_key(e, &known, name),
                },
            }
        }
        let required = schema.get("required").and_then(Json::as_array);
        for key in required.into_iter().flatten().filter_map(Json::as_str) {
            // A misspelt key is reported already; that it is missing is not reported again.
            let misspelt = |e: &Entry| {
                !known.contains(&e.key.as_str())
                    && nearest(&e.key, known.iter().copied()) == Some(key)
            };
            if entries.iter().any(|e| e.key == key || misspelt(e)) {
                continue;
            }
            let property = properties(schema).find(|(k, _)| *k == key);
            let mut all = Vec::new();
            if let Some((_, s)) = property {
                self.alternatives(s, &mut all);
            }
            let help = format!("add `{key} = {}`", sample(&all));
            let message = format!("{name} has no \"{key}\"");
            let label = format!("\"{key}\" is missing");
            self.inside(key, |c| {
                c.add(node.place.clone(), label, message, Some(help));
            });
        }
    }
}

/// Whether the type of the value is one of the schema's.
fn accepts(schema: &Json, node: &Node) -> bool {
    let kind = match &node.value {
        Value::String(_) => "string",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Bool(_) => "boolean",
        Value::Array(_) => "array",
        Value::Table(_) => "object",
        Value::Other(_) => return false,
    };
    let fits = |t: &str| t == kind || (t == "number" && kind == "integer");
    match schema.get("type") {
        Some(Json::String(t)) => fits(t),
        Some(Json::Array(list)) => list.iter().filter_map(Json::as_str).any(fits),
        _ if schema.get("const").is_some() || schema.get("enum").is_some() => kind == "string",
        _ => schema.is_object(),
    }
}

fn properties(schema: &Json) -> impl Iterator<Item = (&str, &Json)> {
    let properties = schema.get("properties").and_then(Json::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(k, v)| (k.as_str(), v))
}

/// The key and content of a table that has exactly one key, which is required.
fn tag(schema: &Json) -> Option<(&str, &Json)> {
    let mut all = properties(schema);
    let (key, content) = all.next()?;
    let required = schema.get("required")?.as_array()?;
    (all.next().is_none() && required.len() == 1).then_some((key, content))
}

fn describe(schema: &Json) -> String {
    let kind = schema.get("type").and_then(Json::as_str);
    let format = schema.get("format").and_then(Json::as_str);
    let names = schema.get("enum").and_then(Json::as_array);
    if let Some(c) = schema.get("const").and_then(Json::as_str) {
        return format!("\"{c}\"");
    }
    if let Some(names) = names {
        let names: Vec<String> = names.iter().map(Json::to_string).collect();
        return join_or(&names);
    }
    if let Some((name, example)) = format.and_then(|f| Some((f, example(f)?))) {
        return format!("a {name} like \"{example}\"");
    }
    match kind {
        Some("string") => "text".to_owned(),
        Some("integer") => "a whole number".to_owned(),
        Some("number") => "a number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("array") => "a list".to_owned(),
        _ => match tag(schema) {
            Some((key, _)) => format!("{{ {key} = … }}"),
            None => "a table".to_owned(),
        },
    }
}

/// An example of a text that a format accepts.
fn example(format: &str) -> Option<&'static str> {
    schema::format(format)?.examples.first().copied()
}

fn examples(fitting: &[&Json]) -> Option<String> {
    let format = fitting.iter().find_map(|s| s.get("format")?.as_str())?;
    let examples = schema::format(format)?.examples;
    let list: Vec<String> = examples.iter().map(|e| format!("\"{e}\"")).collect();
    Some(format!("accepted are texts like {}", list.join(", ")))
}

/// An example of a valid value.
fn sample(all: &[&Json]) -> String {
    let format = all.iter().find_map(|s| s.get("format")?.as_str());
    if let Some(example) = format.and_then(example) {
        return format!("\"{example}\"");
    }
    match all.first() {
        Some(s) => match s.get("type").and_then(Json::as_str) {
            Some("string") => "\"…\"".to_owned(),
            Some("integer" | "number") => "…".to_owned(),
            Some("array") => "[…]".to_owned(),
            _ => match tag(s) {
                Some((key, _)) => format!("{{ {key} = {{}} }}"),
                None => "{ … }".to_owned(),
            },
        },
        None => "…".to_owned(),
    }
}

/// The number written with a unit; `None`: it needs none.
fn units_for(number: &str, all: &[&Json], name: &str) -> Option<String> {
    let formats = all.iter().filter_map(|s| s.get("format")?.as_str());
    let fixes: Vec<String> = formats
        .flat_map(|f| schema::format(f).map_or(&[][..], |f| f.units))
        .map(|unit| format!("`{name} = \"{number}{unit}\"`"))
        .collect();
    (!fixes.is_empty()).then(|| format!("write the unit, like {}", fixes.join(" or ")))
}

fn join_or(list: &[String]) -> String {
    match list.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}
