//! One JSON document, read as a stream: an event is looked at and left.

use std::fmt;
use std::io::{self, BufRead, Read as _};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::Found;
use super::trace::Trace;

/// Most bytes of a document.
const MOST_DOCUMENT: u64 = 1 << 30;

/// Reads a document as far as it is one.
///
/// # Errors
/// When the file cannot be read.
pub fn read(input: &mut dyn BufRead, found: &mut Found) -> io::Result<()> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    if input.fill_buf()?.starts_with(MARK) {
        input.consume(MARK.len());
    }
    let mut json = serde_json::Deserializer::from_reader(input.take(MOST_DOCUMENT));
    match Document(found).deserialize(&mut json) {
        Err(e) if e.is_io() => Err(e.into()),
        // Of a document that is cut off or damaged there is what comes before that place.
        Err(_) => {
            found.unused += 1;
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

struct Document<'a>(&'a mut Found);
struct Traces<'a>(&'a mut Found);
struct OneTrace<'a>(&'a mut Found);
struct Events<'a>(&'a mut Found);

/// A seed that is its own visitor.
macro_rules! seeds {
    ($($seed:ident: $method:ident, $what:literal, $access:ident => $visit:ident;)+) => { $(
        impl<'de> DeserializeSeed<'de> for $seed<'_> {
            type Value = ();
            fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
                json.$method(self)
            }
        }

        impl<'de> Visitor<'de> for $seed<'_> {
            type Value = ();
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($what)
            }
            fn $visit<A: $access<'de>>(self, all: A) -> Result<(), A::Error> {
                self.take(all)
            }
        }
    )+ };
}

seeds! {
    Document: deserialize_map, "a qlog document", MapAccess => visit_map;
    Traces: deserialize_seq, "traces", SeqAccess => visit_seq;
    OneTrace: deserialize_map, "a trace", MapAccess => visit_map;
    Events: deserialize_seq, "events", SeqAccess => visit_seq;
}

impl Document<'_> {
    fn take<'de, A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(key) = fields.next_key::<String>()? {
            match key.as_str() {
                "traces" => fields.next_value_seed(Traces(self.0))?,
                "title" => {
                    let title = fields.next_value::<Value>()?;
                    self.0.title = title.as_str().unwrap_or_default().to_owned();
                }
                _ => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

impl Traces<'_> {
    fn take<'de, A: SeqAccess<'de>>(self, mut traces: A) -> Result<(), A::Error> {
        while traces.next_element_seed(OneTrace(self.0))?.is_some() {}
        Ok(())
    }
}

impl OneTrace<'_> {
    fn take<'de, A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        self.0.traces.push(Trace::default());
        while let Some(key) = fields.next_key::<String>()? {
            if key == "events" {
                fields.next_value_seed(Events(self.0))?;
                continue;
            }
            let value = fields.next_value::<Value>()?;
            // In the place of a trace that could not be made.
            self.0.unused += u64::from(key == "error_description");
            if let Some(trace) = self.0.traces.last_mut() {
                trace.set(&key, &value);
            }
        }
        Ok(())
    }
}

impl Events<'_> {
    fn take<'de, A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element::<Value>()? {
            let is_used = self
                .0
                .traces
                .last_mut()
                .is_some_and(|t| t.take_event(event));
            self.0.unused += u64::from(!is_used);
        }
        Ok(())
    }
}
