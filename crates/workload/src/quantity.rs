//! Amounts of traffic as text with a unit.

use std::fmt;
use std::str::FromStr;

use gargalo_settings::support::quantity as schema_of;
use gargalo_settings::{Error, Files, Format, Json, Schemas, Setting, number, quantity};
use gargalo_units::parse::split;
use gargalo_units::{ParseError, Rate};

/// A load: a share of a capacity, `"50%"` or 0.5, or a rate, `"300Mbit/s"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// A share of a capacity.
    Share(f64),
    /// A rate, independent of the capacity.
    Rate(Rate),
}

/// Events per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerSecond(pub f64);

impl FromStr for Load {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (value, unit) = split(text)?;
        if unit.is_empty() || unit == "%" {
            let share = if unit == "%" { value / 100.0 } else { value };
            if share > 1.0 && unit.is_empty() {
                let fix = (value <= 100.0).then(|| format!("{value}%"));
                return Err(error(format!("\"{text}\" is more than 1 (100%)"), fix));
            }
            return Ok(Self::Share(share));
        }
        let rate = text.parse::<Rate>();
        rate.map(Self::Rate).map_err(|e| {
            let message = format!(
                "\"{unit}\" is not a unit of a load; known: %, bit/s, kbit/s, Mbit/s, Gbit/s"
            );
            error(message, e.suggestion)
        })
    }
}

impl FromStr for PerSecond {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (value, unit) = split(text)?;
        let seconds = match unit {
            "/s" | "1/s" | "Hz" => 1.0,
            "/min" => 60.0,
            "/h" => 3600.0,
            "" => {
                let message = format!("\"{text}\" has no unit; a frequency needs one");
                return Err(error(message, Some(format!("{value}/s"))));
            }
            _ => {
                let message =
                    format!("\"{unit}\" is not a unit of a frequency; known: /s, /min, /h");
                let own = match unit.to_ascii_lowercase().as_str() {
                    "hz" | "/sec" | "/second" | "per second" => "/s",
                    "/minute" | "per minute" => "/min",
                    "/hour" | "per hour" => "/h",
                    _ => return Err(error(message, None)),
                };
                return Err(error(message, Some(format!("{value}{own}"))));
            }
        };
        Ok(Self(value / seconds))
    }
}

fn error(message: String, suggestion: Option<String>) -> ParseError {
    ParseError {
        message,
        suggestion,
    }
}

quantity!(PerSecond, "frequency", ["1000/s", "30/min"], ["/s"]);

impl fmt::Display for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

/// Shares are written as numbers.
impl Setting for Load {
    fn schema(schemas: &mut Schemas) -> Json {
        let format = Format {
            examples: &["50%", "300Mbit/s", "0.5"],
            units: &[],
            check: |text| text.parse::<Self>().map(drop),
        };
        schema_of(schemas, "load", format)
    }
    fn read(json: &Json, _: &mut Files) -> Result<Self, Error> {
        gargalo_settings::support::parse(json, "load", true)
    }
    fn write(&self) -> Json {
        match self {
            Self::Share(share) => number(*share),
            Self::Rate(rate) => rate.write(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_and_frequencies_read_as_they_are_written() {
        for text in ["30%", "0.3", "12.5Mbit/s", "7%"] {
            let load: Load = text.parse().unwrap();
            assert_eq!(Load::read(&load.write(), &mut Files::default()), Ok(load));
        }
        for text in ["30/min", "1000/s", "0.1/h"] {
            let n: PerSecond = text.parse().unwrap();
            assert_eq!(PerSecond::read(&n.write(), &mut Files::default()), Ok(n));
        }
    }
}
