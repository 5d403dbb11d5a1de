//! Quantities: texts with a unit.

use std::fmt;
use std::str::FromStr;

use gargalo_units::parse::split;
use gargalo_units::{Bytes, Duration, Instant, ParseError, Rate};
use serde_json::json;

use crate::schema::Format;
use crate::{Error, Files, Json, Schemas, Setting};

/// Implements [`Setting`] for a type that is parsed from and displayed as text with a unit: type, name of the
/// format in the schema, texts that are accepted, units that a bare number may have meant (none: a bare number is
/// accepted).
#[macro_export]
macro_rules! quantity {
    ($t:ty, $format:literal, [$($example:literal),*], [$($unit:literal),*]) => {
        impl $crate::Setting for $t {
            fn schema(schemas: &mut $crate::Schemas) -> $crate::Json {
                let format = $crate::Format {
                    examples: &[$($example),*],
                    units: &[$($unit),*],
                    check: |text| text.parse::<$t>().map(drop),
                };
                $crate::support::quantity(schemas, $format, format)
            }
            fn read(json: &$crate::Json, _: &mut $crate::Files) -> Result<Self, $crate::Error> {
                $crate::support::parse(json, $format, <[&str]>::is_empty(&[$($unit),*]))
            }
            fn write(&self) -> $crate::Json {
                $crate::Json::String(self.to_string())
            }
        }
    };
}

/// The schema of a quantity.
pub fn quantity(schemas: &mut Schemas, name: &'static str, format: Format) -> Json {
    schemas.formats.insert(name, format);
    if format.units.is_empty() {
        return json!({
            "type": ["string", "number"], "format": name, "examples": format.examples,
            "minimum": 0, "maximum": 1
        });
    }
    json!({ "type": "string", "format": name, "examples": format.examples })
}

/// Parses a quantity from its text, or from a number where that is accepted.
///
/// # Errors
/// When it is not a valid quantity.
pub fn parse<T: FromStr<Err = ParseError>>(
    json: &Json,
    format: &str,
    bare: bool,
) -> Result<T, Error> {
    let text = match json {
        Json::String(text) => text.clone(),
        Json::Number(n) if bare => n.to_string(),
        other => return Err(Error::new(format!("{other} is not a {format}"))),
    };
    text.parse().map_err(|e: ParseError| Error {
        path: String::new(),
        message: e.message,
        help: e.suggestion.map(|s| format!("did you mean \"{s}\"?")),
    })
}

quantity!(
    Rate,
    "rate",
    ["100Mbit/s", "1.5Gbit/s", "250kB/s"],
    ["Mbit/s"]
);
quantity!(Duration, "duration", ["50ms", "10s", "2min"], ["s", "ms"]);
quantity!(Packets, "packets", ["100 packets"], [" packets"]);
quantity!(Window, "window", ["10 packets", "14480B"], [" packets"]);

/// A probability: `"0.1%"`, `"0.001"` or the number 0.001.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Probability(pub f64);

/// A number of packets: `"100 packets"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packets(pub u64);

/// A congestion window: `"10 packets"`, or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// A number of full segments or datagrams.
    Packets(u64),
    /// A number of bytes.
    Bytes(Bytes),
}

impl Window {
    /// The window in bytes, with packets of this size.
    pub const fn bytes(self, packet: u64) -> Bytes {
        match self {
            Self::Packets(n) => Bytes::new(n.saturating_mul(packet)),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The window in packets of this size; a partial packet counts as one.
    pub const fn packets(self, size: u64) -> u64 {
        match self {
            Self::Packets(n) => n,
            Self::Bytes(bytes) => bytes.get().div_ceil(if size == 0 { 1 } else { size }),
        }
    }
}

macro_rules! wraps {
    ($($outer:ident($inner:ty);)*) => {$(
        impl From<$inner> for $outer {
            fn from(x: $inner) -> Self {
                Self(x)
            }
        }
        impl From<$outer> for $inner {
            fn from(x: $outer) -> Self {
                x.0
            }
        }
    )*};
}
wraps! { Probability(f64); Packets(u64); }

impl TryFrom<Packets> for u32 {
    type Error = std::num::TryFromIntError;
    fn try_from(n: Packets) -> Result<Self, Self::Error> {
        n.0.try_into()
    }
}
impl From<u32> for Packets {
    fn from(n: u32) -> Self {
        Self(n.into())
    }
}

/// Numbers are shorter than percentages and as exact.
impl Setting for Probability {
    fn schema(schemas: &mut Schemas) -> Json {
        let format = Format {
            examples: &["0.1%", "0.001"],
            units: &[],
            check: |text| text.parse::<Self>().map(drop),
        };
        quantity(schemas, "probability", format)
    }
    fn read(json: &Json, _: &mut Files) -> Result<Self, Error> {
        parse(json, "probability", true)
    }
    fn write(&self) -> Json {
        crate::number(self.0)
    }
    fn check(&self) -> Result<(), Error> {
        if (0.0..=1.0).contains(&self.0) {
            return Ok(());
        }
        let message = format!("{} is not a probability", self.0);
        Err(Error::new(message).help("give a number from 0 to 1"))
    }
}

/// Sizes are written exactly.
impl Setting for Bytes {
    fn schema(schemas: &mut Schemas) -> Json {
        let format = Format {
            examples: &["1500B", "64KiB", "50MB"],
            units: &["B"],
            check: |text| text.parse::<Self>().map(drop),
        };
        quantity(schemas, "size", format)
    }
    fn read(json: &Json, _: &mut Files) -> Result<Self, Error> {
        parse(json, "size", false)
    }
    fn write(&self) -> Json {
        let n = self.get();
        let units = [
            ("MB", 1_000_000),
            ("MiB", 1 << 20),
            ("KiB", 1 << 10),
            ("kB", 1000),
        ];
        let whole = units.iter().find(|(_, k)| n > 0 && n.is_multiple_of(*k));
        let (unit, k) = whole.unwrap_or(&("B", 1));
        format!("{}{unit}", n / k).into()
    }
}

/// An instant is written as the time since the start.
impl Setting for Instant {
    fn schema(schemas: &mut Schemas) -> Json {
        Duration::schema(schemas)
    }
    fn read(json: &Json, files: &mut Files) -> Result<Self, Error> {
        Duration::read(json, files).map(|d| Self::ZERO + d)
    }
    fn write(&self) -> Json {
        (*self - Self::ZERO).write()
    }
}

fn error(message: String, suggestion: Option<String>) -> ParseError {
    ParseError {
        message,
        suggestion,
    }
}

impl FromStr for Probability {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (value, unit) = split(text)?;
        let p = match unit {
            "" => value,
            "%" => value / 100.0,
            _ => {
                let message = format!("\"{unit}\" is not a unit of a probability; known: %");
                let percent = unit.eq_ignore_ascii_case("percent");
                return Err(error(message, percent.then(|| format!("{value}%"))));
            }
        };
        if p > 1.0 {
            let fix = (unit.is_empty() && value <= 100.0).then(|| format!("{value}%"));
            return Err(error(format!("\"{text}\" is more than 1 (100%)"), fix));
        }
        Ok(Self(p))
    }
}

/// Parses the number of `"100 packets"`; `None`: the text has another unit.
///
/// # Errors
/// When it is not a whole number.
pub fn packets(text: &str) -> Result<Option<u64>, ParseError> {
    let (value, unit) = split(text)?;
    if !matches!(unit, "packets" | "packet" | "p" | "pkts" | "segments") {
        return Ok(None);
    }
    if value.fract() != 0.0 || value > 1e15 {
        let fix = format!("{} packets", value.round().clamp(1.0, 1e15));
        return Err(error(
            format!("\"{text}\" is not a whole number"),
            Some(fix),
        ));
    }
    Ok(Some(value as u64))
}

impl FromStr for Packets {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if let Some(n) = packets(text)? {
            return Ok(Self(n));
        }
        let (value, unit) = split(text)?;
        let message = match unit {
            "" => format!("\"{text}\" has no unit; a number of packets needs one"),
            _ => format!("\"{unit}\" is not a unit of a number of packets; known: packets"),
        };
        Err(error(message, Some(format!("{value} packets"))))
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets", self.0)
    }
}

impl FromStr for Window {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if let Some(n) = packets(text)? {
            return Ok(Self::Packets(n));
        }
        let (value, unit) = split(text)?;
        if unit.is_empty() {
            let message = format!("\"{text}\" has no unit; a window needs one");
            return Err(error(message, Some(format!("{value} packets"))));
        }
        text.parse().map(Self::Bytes)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(n) => Packets(*n).fmt(f),
            Self::Bytes(n) => write!(f, "{}B", n.get()),
        }
    }
}
