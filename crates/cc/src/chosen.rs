//! An entry of a registry in settings: its name, or a table of its name and parameters.

use std::fmt::Debug;
use std::marker::PhantomData;

use gargalo_settings::{Error, Files, Json, Schemas, Setting, number};
use gargalo_units::{Bytes, Instant};
use rand_pcg::Pcg64;
use serde_json::{Map, json};

use crate::params::{Param, ParamKind, ParamValue, Params};
use crate::registry::Entry;
use crate::{ALGORITHMS, Init, registry};

/// A registry whose entries are chosen by name.
pub trait Registry: Clone + Debug + PartialEq + 'static {
    /// What the entries are, like "A scheduler".
    const WHAT: &'static str;
    /// Name of the definition in the schema.
    const DEFINITION: &'static str;
    /// The default entry.
    const DEFAULT: &'static str;

    /// All entries of the registry, without their builders.
    fn entries() -> Vec<Entry<()>>;

    /// Checks the parameters of an entry; its name may be an alias.
    ///
    /// # Errors
    /// A sentence.
    fn check(name: &str, params: &Params) -> Result<(), String>;
}

/// An entry of a registry and its parameters. A name that is not in the registry belongs to a class of the caller;
/// its parameters are not checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen<R> {
    /// Name in the registry, never an alias.
    pub name: String,
    /// Parameters that were given.
    pub params: Params,
    registry: PhantomData<R>,
}

impl<R: Registry> Chosen<R> {
    /// An entry with parameters that were checked or need no check.
    pub fn new(name: &str, params: Params) -> Self {
        let known = R::entries()
            .into_iter()
            .find(|e| e.names().any(|n| n == name));
        Self {
            name: known.map_or(name, |e| e.name).to_owned(),
            params,
            registry: PhantomData,
        }
    }

    /// Adds the default values of parameters that were not given; those of an entry that is not in the registry are
    /// unchanged.
    pub fn complete(&mut self) {
        let known = R::entries().into_iter().find(|e| e.name == self.name);
        for param in known.map_or(&[][..], |e| (e.params)()) {
            self.params.complete(param.name, &param.default_value());
        }
    }
}

impl<R: Registry> Default for Chosen<R> {
    fn default() -> Self {
        Self::new(R::DEFAULT, Params::new())
    }
}

impl<R: Registry> Setting for Chosen<R> {
    fn schema(schemas: &mut Schemas) -> Json {
        schemas.define(R::DEFINITION, |_| {
            let entries = R::entries();
            let tables = entries.iter().flat_map(|entry| {
                let params = (entry.params)()
                    .iter()
                    .map(|p| (p.name.to_owned(), param(p)));
                let table = json!({
                    "type": "object",
                    "description": format!("{} ({})", entry.summary, entry.source),
                    "properties": params.collect::<Map<_, _>>(), "additionalProperties": false
                });
                entry.names().map(move |name| {
                    json!({
                        "type": "object", "properties": { name: table.clone() },
                        "required": [name], "additionalProperties": false
                    })
                })
            });
            let names: Vec<_> = entries.iter().flat_map(Entry::names).collect();
            json!({
                "description":
                    format!("{}: its name, or a table of its name and parameters.", R::WHAT),
                "anyOf": [
                    { "type": "string", "enum": names }, { "oneOf": tables.collect::<Vec<_>>() }
                ]
            })
        })
    }

    fn read(json: &Json, _: &mut Files) -> Result<Self, Error> {
        let mut params = Params::new();
        let name = match json {
            Json::String(name) => name,
            Json::Object(map) if map.len() == 1 => {
                let Some((name, Json::Object(given))) = map.iter().next() else {
                    return Err(Error::new("parameters must be a table"));
                };
                for (key, value) in given {
                    let value = match value {
                        Json::Bool(b) => ParamValue::Bool(*b),
                        Json::String(s) => ParamValue::Text(s.clone()),
                        Json::Number(n) => ParamValue::Number(n.as_f64().unwrap_or(f64::NAN)),
                        _ => return Err(Error::of(name, format!("{key} must be a plain value"))),
                    };
                    params.push(key, value);
                }
                name
            }
            _ => {
                let help = "give a name, or a table of one name";
                return Err(Error::new(format!("{json} is not possible here")).help(help));
            }
        };
        let is_known = R::entries()
            .iter()
            .any(|e| e.names().any(|n| n == name.as_str()));
        if is_known {
            R::check(name, &params).map_err(|e| Error::of(name, e))?;
        }
        Ok(Self::new(name, params))
    }

    fn write(&self) -> Json {
        let params = self.params.iter().map(|(key, value)| {
            let value = match value {
                ParamValue::Number(n) => number(*n),
                ParamValue::Bool(b) => (*b).into(),
                ParamValue::Text(s) => s.as_str().into(),
            };
            (key.to_owned(), value)
        });
        let params: Map<String, Json> = params.collect();
        match params.is_empty() {
            true => self.name.as_str().into(),
            false => json!({ self.name.as_str(): params }),
        }
    }
}

/// The schema of a parameter.
fn param(param: &Param) -> Json {
    let mut schema = match param.kind {
        ParamKind::Number {
            default,
            min,
            max,
            integer,
        } => {
            let kind = if integer { "integer" } else { "number" };
            json!({ "type": kind, "minimum": min, "maximum": max, "default": default })
        }
        ParamKind::Bool { default } => json!({ "type": "boolean", "default": default }),
        ParamKind::Choice { default, choices } => {
            json!({ "type": "string", "enum": choices, "default": default })
        }
        ParamKind::Duration { default, .. } => {
            json!({ "type": "string", "format": "duration", "default": default.to_string() })
        }
    };
    schema["description"] = format!("{}; {}", param.doc, param.valid()).into();
    schema
}

/// The congestion controls of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Algorithms;

/// A congestion control and its parameters.
pub type Congestion = Chosen<Algorithms>;

impl Registry for Algorithms {
    const WHAT: &'static str = "A congestion control";
    const DEFINITION: &'static str = "Congestion";
    const DEFAULT: &'static str = "cubic";

    fn entries() -> Vec<Entry<()>> {
        ALGORITHMS.iter().map(Entry::listed).collect()
    }

    fn check(name: &str, params: &Params) -> Result<(), String> {
        let init = Init {
            now: Instant::ZERO,
            mss: Bytes::new(1448),
            initial_window: Bytes::new(14_480),
            rng: Pcg64::new(0, 0),
        };
        let built = registry::build(name, params, init);
        built.map(drop).map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_a_table_of_one_is_read_checked_and_written() {
        let read = |json| Congestion::read(&json, &mut Files::default());
        let usual = read(json!("bbrv3")).unwrap();
        assert_eq!(usual, Congestion::new("bbr3", Params::new()));
        assert_eq!(usual.write(), json!("bbr3"));
        let written = json!({ "cubic": { "beta": 0.8, "fast_convergence": false } });
        assert_eq!(read(written.clone()).unwrap().write(), written);
        // Entries of the caller are not checked here.
        let own = json!({ "my-own": { "gain": 2 } });
        assert_eq!(read(own.clone()).unwrap().write(), own);
        let error = read(json!({ "cubic": { "beta": 7 } })).unwrap_err();
        assert_eq!(error.path, "cubic");
        assert!(error.message.contains("a number from"), "{error}");
        for wrong in [
            json!({ "cubic": 1 }),
            json!({ "reno": {}, "cubic": {} }),
            json!(1),
        ] {
            assert!(read(wrong).is_err());
        }
        assert_eq!(Congestion::default().write(), json!("cubic"));
    }

    #[test]
    fn what_is_not_said_can_be_said() {
        for entry in Algorithms::entries() {
            let mut chosen = Congestion::new(entry.name, Params::new());
            chosen.complete();
            assert_eq!(chosen.params.iter().count(), (entry.params)().len());
            let again = Congestion::read(&chosen.write(), &mut Files::default()).unwrap();
            assert_eq!(again.write(), chosen.write());
        }
        let mut written = Congestion::new("cubic", Params::new().with("beta", 0.5));
        written.complete();
        assert_eq!(written.write()["cubic"]["beta"], 0.5);
        let mut own = Congestion::new("my-own", Params::new());
        own.complete();
        assert_eq!(own.write(), "my-own");
    }
}
