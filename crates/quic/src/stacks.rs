//! Which implementations a scenario names.

use std::fmt;

use gargalo_settings::{Error, Files, Json, Schemas, Setting};
use serde_json::{Map, json};

/// The name of noq in scenarios.
pub const NOQ: &str = "noq";

/// The stacks of both ends, by their names in scenarios.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stacks {
    /// Name of the client's stack.
    pub client: String,
    /// Name of the server's stack.
    pub server: String,
}

impl Stacks {
    /// Whether both ends are noq's.
    pub fn is_noq(&self) -> bool {
        self.client == NOQ && self.server == NOQ
    }
}

impl Default for Stacks {
    fn default() -> Self {
        Self {
            client: NOQ.to_owned(),
            server: NOQ.to_owned(),
        }
    }
}

impl fmt::Display for Stacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.client == self.server {
            return f.write_str(&self.client);
        }
        write!(f, "{} to {}", self.client, self.server)
    }
}

impl Setting for Stacks {
    fn schema(schemas: &mut Schemas) -> Json {
        schemas.define("QuicStacks", |_| {
            // Names of plug-ins are known to the caller.
            let name = json!({ "type": "string", "enum": [NOQ] });
            json!({
                "description": "A QUIC stack for both ends, or one for each.",
                "anyOf": [name, {
                    "type": "object", "properties": { "client": name, "server": name },
                    "required": ["client", "server"], "additionalProperties": false
                }]
            })
        })
    }

    fn read(json: &Json, _: &mut Files) -> Result<Self, Error> {
        let name = |json: &Json| json.as_str().filter(|n| !n.is_empty()).map(str::to_owned);
        if let Some(both) = name(json) {
            return Ok(Self {
                client: both.clone(),
                server: both,
            });
        }
        let ends = json.as_object().filter(|o| o.len() == 2);
        let end = |key: &str| ends.and_then(|o| o.get(key)).and_then(name);
        match (end("client"), end("server")) {
            (Some(client), Some(server)) => Ok(Self { client, server }),
            _ => Err(Error::new(format!("{json} is no stack"))
                .help("give a name, or a table { client = \"NAME\", server = \"NAME\" }")),
        }
    }

    fn write(&self) -> Json {
        if self.client == self.server {
            return self.client.as_str().into();
        }
        json!({ "client": self.client, "server": self.server })
    }
}

/// Options that the stack of a plug-in has by itself, handed over as they are: an object of JSON for each end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Those of the client's stack.
    pub client: Map<String, Json>,
    /// Those of the server's stack.
    pub server: Map<String, Json>,
}

impl Options {
    /// Those of one end.
    pub fn of(&self, is_client: bool) -> &Map<String, Json> {
        match is_client {
            true => &self.client,
            false => &self.server,
        }
    }
}

impl Setting for Options {
    fn schema(schemas: &mut Schemas) -> Json {
        schemas.define("QuicOptions", |_| {
            json!({
                "description": "Options of the stack, or tables `client` and `server` with those of each.",
                "type": "object", "additionalProperties": {}
            })
        })
    }

    fn read(json: &Json, _: &mut Files) -> Result<Self, Error> {
        let Some(given) = json.as_object() else {
            return Err(Error::new(format!("{json} is no table of options")));
        };
        let of = |end: &str| given.get(end).map(Json::as_object);
        let is_end = |key: &String| key == "client" || key == "server";
        if given.is_empty() || !given.keys().all(is_end) {
            let (client, server) = (given.clone(), given.clone());
            return Ok(Self { client, server });
        }
        match (of("client"), of("server")) {
            (Some(None), _) | (_, Some(None)) => {
                let message = "options of one end are no table";
                Err(Error::new(message).help("write options = { client = { KEY = VALUE } }"))
            }
            (client, server) => Ok(Self {
                client: client.flatten().cloned().unwrap_or_default(),
                server: server.flatten().cloned().unwrap_or_default(),
            }),
        }
    }

    fn write(&self) -> Json {
        if self.client == self.server {
            return self.client.clone().into();
        }
        json!({ "client": self.client, "server": self.server })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_of_both_ends_or_of_each() {
        let read = |json: Json| Options::read(&json, &mut Files::default());
        let both = read(json!({ "window": 3, "name": "x" })).unwrap();
        assert_eq!(both.of(true), both.of(false));
        assert_eq!(both.write(), json!({ "window": 3, "name": "x" }));
        let one = read(json!({ "client": { "window": 3 } })).unwrap();
        assert_eq!((one.of(true).len(), one.of(false).len()), (1, 0));
        assert_eq!(read(one.write()).unwrap(), one);
        assert_eq!(read(json!({})).unwrap(), Options::default());
        assert!(read(json!({ "client": 3 })).is_err());
        assert!(read(json!("window=3")).is_err());
        // A name of an end among others is an option.
        let mixed = read(json!({ "client": 3, "window": 1 })).unwrap();
        assert_eq!(mixed.of(false).len(), 2);
    }
}
