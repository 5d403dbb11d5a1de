//! QUIC as written: a congestion control, and the options that [`Config`] declares.

use std::borrow::Cow;

use gargalo_quic::{Config, Congestion as Kinds};
use gargalo_settings::{Json, Schemas, Setting};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, json};

use super::Congestion;

/// QUIC and its options.
#[derive(Clone, Debug, Default)]
pub struct Quic {
    /// Congestion control of both ends; `None`: the profile's.
    pub congestion: Option<Congestion>,
    /// Its other options.
    pub options: Map<String, Json>,
}

const CONGESTION: &str = "congestion";

impl<'de> Deserialize<'de> for Quic {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut options = Map::deserialize(deserializer)?;
        let congestion = options.remove(CONGESTION).map(Congestion::deserialize);
        let congestion = congestion.transpose().map_err(de::Error::custom)?;
        Ok(Self {
            congestion,
            options,
        })
    }
}

impl JsonSchema for Quic {
    fn schema_name() -> Cow<'static, str> {
        "Quic".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut congestion = generator.subschema_for::<QuicCongestion>().to_value();
        congestion["description"] =
            "Congestion control of both ends: a name, or a table of one name and its \
            parameters. `noq-cubic`, `noq-newreno` and `noq-bbr3` are the implementation's own."
                .into();
        congestion["default"] = "cubic".into();
        let mut schemas = Schemas::default();
        let reference = Config::schema(&mut schemas);
        let mut table = schemas.target(&reference).clone();
        schemas.definitions.remove("Quic");
        generator.definitions_mut().extend(schemas.definitions);
        let mut keys = Map::new();
        keys.insert(CONGESTION.to_owned(), congestion);
        keys.extend(table["properties"].as_object().cloned().unwrap_or_default());
        table["properties"] = json!(keys);
        Schema::try_from(table).unwrap_or_default()
    }
}

/// One of ours with its parameters, or one of the implementation's own.
struct QuicCongestion;

impl JsonSchema for QuicCongestion {
    fn schema_name() -> Cow<'static, str> {
        "QuicCongestion".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let ours = generator.subschema_for::<Congestion>();
        json_schema!({
            "description": "A congestion control, ours or the implementation's own.",
            "anyOf": [ours, { "type": "string", "enum": Kinds::OWN }]
        })
    }
}
