//! Which implementations a scenario names.

use std::fmt;

use gargalo_settings::{Error, Files, Json, Schemas, Setting};
use serde_json::json;

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
