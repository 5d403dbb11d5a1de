//! Links as written: what [`LinkConfig`] has, for both directions, and what differs in one of them.

use gargalo_link::LinkConfig;
use gargalo_settings::{Error, Files, Json, Schemas, Setting};
use serde_json::{Map, json};

/// A link. What is not said is perfect: unlimited rate, no delay, no loss.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// What packets from the first end to the second meet (client to server, left to right).
    pub up: LinkConfig,
    /// What packets from the second end to the first meet.
    pub down: LinkConfig,
}

/// A link of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphLink {
    /// One end: the name of a node.
    pub from: String,
    /// The other end.
    pub to: String,
    /// Name of the link. Default: `from-to`.
    pub name: Option<String>,
    /// What packets meet.
    pub link: Link,
}

/// The keys of a direction, and these.
fn schema(doc: &str, own: Json, schemas: &mut Schemas) -> Json {
    let direction = LinkConfig::schema(schemas);
    let mut table = schemas.target(&direction).clone();
    table["description"] = doc.into();
    let side = |description: &str| {
        let mut side = direction.clone();
        side["description"] = description.into();
        side
    };
    let sides = [
        (
            "up",
            "Overrides for packets from the first end to the second (client to server, left to right).",
        ),
        (
            "down",
            "Overrides for packets from the second end to the first.",
        ),
    ];
    if let Some(keys) = table["properties"].as_object_mut() {
        keys.extend(sides.map(|(key, doc)| (key.to_owned(), side(doc))));
        keys.extend(
            own.as_object()
                .into_iter()
                .flatten()
                .map(|(k, v)| (k.clone(), v.clone())),
        );
    }
    table
}

impl Setting for Link {
    fn schema(schemas: &mut Schemas) -> Json {
        let doc = "A link. What is not said is perfect: unlimited rate, no delay, no loss.";
        schemas.define("Link", |schemas| schema(doc, json!({}), schemas))
    }

    fn read(json: &Json, files: &mut Files) -> Result<Self, Error> {
        let mut base = json.as_object().cloned().unwrap_or_default();
        let [up, down] = ["up", "down"].map(|side| base.remove(side));
        let base = Json::Object(base);
        let mut read = |side: &str, over: Option<Json>| {
            let table = LinkConfig::overlay(&base, over.as_ref());
            LinkConfig::read(&table, files).map_err(|e| {
                let key = e.path.split('.').next().unwrap_or_default();
                let is_own = over.as_ref().is_some_and(|o| o.get(key).is_some());
                if is_own { e.at(side) } else { e }
            })
        };
        Ok(Self {
            up: read("up", up)?,
            down: read("down", down)?,
        })
    }

    fn write(&self) -> Json {
        match self.up == self.down {
            true => self.up.write(),
            false => json!({ "up": self.up.write(), "down": self.down.write() }),
        }
    }
}

impl Setting for GraphLink {
    fn schema(schemas: &mut Schemas) -> Json {
        let text = |doc: &str| json!({ "type": "string", "description": doc });
        let own = json!({
            "from": text("One end: the name of a node."), "to": text("The other end."),
            "name": text("Name of the link. Default: `from-to`."),
        });
        schemas.define("GraphLink", |schemas| {
            let mut table = schema("A link of a graph.", own, schemas);
            table["required"] = json!(["from", "to"]);
            table
        })
    }

    fn read(json: &Json, files: &mut Files) -> Result<Self, Error> {
        let mut table = json.as_object().cloned().unwrap_or_default();
        let mut text = |key: &str| match table.remove(key) {
            Some(Json::String(text)) => Some(text),
            _ => None,
        };
        let missing = |key: &str| Error::new(format!("a link has no \"{key}\""));
        let from = text("from").ok_or_else(|| missing("from"))?;
        let to = text("to").ok_or_else(|| missing("to"))?;
        let name = text("name");
        let link = Link::read(&table.into(), files)?;
        Ok(Self {
            from,
            to,
            name,
            link,
        })
    }

    fn write(&self) -> Json {
        let mut table = Map::new();
        table.insert("from".to_owned(), self.from.as_str().into());
        table.insert("to".to_owned(), self.to.as_str().into());
        if let Some(name) = &self.name {
            table.insert("name".to_owned(), name.as_str().into());
        }
        if let Json::Object(link) = self.link.write() {
            table.extend(link);
        }
        table.into()
    }
}
