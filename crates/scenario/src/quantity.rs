//! Quantities of a scenario as text with a unit, each with the name of its format in the schema.

use std::borrow::Cow;

pub use gargalo_settings::Window;
use gargalo_units::parse::split;
use gargalo_units::{Bytes, Duration, ParseError, Rate};
pub use gargalo_workload::quantity::{Load, PerSecond};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

/// A kind of quantity that scenarios write as text.
pub trait Unit: Sized {
    /// Name of the format in the JSON Schema.
    const FORMAT: &'static str;
    /// Texts that are accepted.
    const EXAMPLES: &'static [&'static str];
    /// What follows a bare number in the likely fix; empty where a bare number is fine.
    const FALLBACK: &'static [&'static str];
    /// From text.
    ///
    /// # Errors
    /// When the text is no such quantity.
    fn parse(text: &str) -> Result<Self, ParseError>;
}

/// A quantity in the model: text in the file, a value here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity<U>(pub U);

impl<'de, U: Unit> Deserialize<'de> for Quantity<U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(s) => s,
            serde_json::Value::Number(n) if U::FALLBACK.is_empty() => n.to_string(),
            other => return Err(de::Error::custom(format!("{other} is no {}", U::FORMAT))),
        };
        U::parse(&text).map(Self).map_err(de::Error::custom)
    }
}

impl<U: Unit> JsonSchema for Quantity<U> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        U::FORMAT.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        if U::FALLBACK.is_empty() {
            return json_schema!({
                "type": ["string", "number"], "format": U::FORMAT, "examples": U::EXAMPLES,
                "minimum": 0, "maximum": 1
            });
        }
        json_schema!({ "type": "string", "format": U::FORMAT, "examples": U::EXAMPLES })
    }
}

macro_rules! units {
    ($($t:ty, $format:literal, $examples:expr, $fallback:expr;)*) => {
        $(impl Unit for $t {
            const FORMAT: &'static str = $format;
            const EXAMPLES: &'static [&'static str] = &$examples;
            const FALLBACK: &'static [&'static str] = &$fallback;
            fn parse(text: &str) -> Result<Self, ParseError> {
                text.parse()
            }
        })*

        /// Every format and texts that it accepts.
        pub(crate) const EXAMPLES: &[(&str, &[&str])] = &[$(($format, &$examples),)*];

        /// What is wrong with a text of this format; formats unknown here are not checked.
        pub(crate) fn check(format: &str, text: &str) -> Result<(), ParseError> {
            match format {
                $($format => <$t as Unit>::parse(text).map(drop),)*
                _ => Ok(()),
            }
        }

        /// Whether a format needs a unit, and texts that a bare number may have meant.
        pub(crate) fn with_units(format: &str, number: &str) -> Vec<String> {
            let fallback: &[&str] = match format {
                $($format => <$t as Unit>::FALLBACK,)*
                _ => &[],
            };
            fallback.iter().map(|unit| format!("{number}{unit}")).collect()
        }
    };
}

units! {
    Rate, "rate", ["100Mbit/s", "1.5Gbit/s", "250kB/s"], ["Mbit/s"];
    Duration, "duration", ["50ms", "10s", "2min"], ["s", "ms"];
    Bytes, "size", ["1500B", "64KiB", "50MB"], ["B"];
    Probability, "probability", ["0.1%", "0.001"], [];
    Packets, "packets", ["100 packets"], [" packets"];
    QueueSize, "queue-size", ["250 packets", "150kB", "50ms", "1BDP"], [" packets"];
    Window, "window", ["10 packets", "14480B"], [" packets"];
    Load, "load", ["50%", "300Mbit/s", "0.5"], [];
    StartJitter, "start-jitter", ["1RTT", "20ms", "0s"], ["RTT", "s", "ms"];
    PerSecond, "frequency", ["1000/s", "30/min"], ["/s"];
}

/// A probability: `"0.1%"`, `"0.001"` or the number 0.001.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probability(pub f64);

/// A number of packets: `"100 packets"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets(pub u64);

/// How much may wait in a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueSize {
    /// So many packets.
    Packets(u64),
    /// So many bytes.
    Bytes(Bytes),
    /// As long as a packet may wait.
    Time(Duration),
    /// Multiple of the bandwidth-delay product.
    Bdp(f64),
}

/// How far starts of flows may move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StartJitter {
    /// So long.
    Time(Duration),
    /// So many round trips on the flow's empty path.
    RoundTrips(f64),
}

fn error(message: String, suggestion: Option<String>) -> ParseError {
    ParseError {
        message,
        suggestion,
    }
}

impl std::str::FromStr for Probability {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (value, unit) = split(text)?;
        let p = match unit {
            "" => value,
            "%" => value / 100.0,
            _ => {
                let message = format!("\"{unit}\" is no unit of a probability; known: %");
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

gargalo_settings::quantity!(
    StartJitter,
    "start-jitter",
    ["1RTT", "20ms", "0s"],
    ["RTT", "s", "ms"]
);
impl std::fmt::Display for StartJitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Time(time) => time.fmt(f),
            Self::RoundTrips(n) => write!(f, "{n}RTT"),
        }
    }
}

impl std::str::FromStr for StartJitter {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (value, unit) = split(text)?;
        if unit == "RTT" {
            return Ok(Self::RoundTrips(value));
        }
        text.parse().map(Self::Time).map_err(|e: ParseError| {
            let message = match unit {
                "" => format!("\"{text}\" has no unit; known: RTT, us, ms, s"),
                _ => format!("\"{unit}\" is no unit of a start jitter; known: RTT, us, ms, s"),
            };
            let rtt = unit.eq_ignore_ascii_case("rtt") || unit.is_empty();
            error(
                message,
                if rtt {
                    Some(format!("{value}RTT"))
                } else {
                    e.suggestion
                },
            )
        })
    }
}

fn packets(text: &str) -> Result<Option<u64>, ParseError> {
    let (value, unit) = split(text)?;
    if !matches!(unit, "packets" | "packet" | "p" | "pkts" | "segments") {
        return Ok(None);
    }
    if value.fract() != 0.0 || value > 1e15 {
        let fix = format!("{} packets", value.round().clamp(1.0, 1e15));
        return Err(error(format!("\"{text}\" is no whole number"), Some(fix)));
    }
    Ok(Some(value as u64))
}

impl std::str::FromStr for Packets {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if let Some(n) = packets(text)? {
            return Ok(Self(n));
        }
        let (value, unit) = split(text)?;
        let message = match unit {
            "" => format!("\"{text}\" has no unit; a number of packets needs one"),
            _ => format!("\"{unit}\" is no unit of a number of packets; known: packets"),
        };
        Err(error(message, Some(format!("{value} packets"))))
    }
}

impl std::str::FromStr for QueueSize {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if let Some(n) = packets(text)? {
            return Ok(Self::Packets(n));
        }
        let (value, unit) = split(text)?;
        match unit {
            "BDP" => return Ok(Self::Bdp(value)),
            "" => {
                let message = format!("\"{text}\" has no unit; a queue size needs one");
                return Err(error(message, Some(format!("{value} packets"))));
            }
            _ => {}
        }
        if let Ok(time) = text.parse() {
            return Ok(Self::Time(time));
        }
        if let Ok(bytes) = text.parse() {
            return Ok(Self::Bytes(bytes));
        }
        let message = format!(
            "\"{unit}\" is no unit of a queue size; known: packets, BDP, B, kB, MB, KiB, MiB, us, ms, s"
        );
        // A unit that is nearly one of time and of size offers neither.
        let times = text.parse::<Duration>().err().and_then(|e| e.suggestion);
        let sizes = text.parse::<Bytes>().err().and_then(|e| e.suggestion);
        let fix = match unit.to_ascii_lowercase().as_str() {
            "bdp" => Some(format!("{value}BDP")),
            "packets" | "packet" | "pkt" | "pkts" => Some(format!("{value} packets")),
            _ => times.xor(sizes),
        };
        Err(error(message, fix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_sizes_have_four_kinds_of_unit() {
        let q = |s: &str| s.parse::<QueueSize>().unwrap();
        assert_eq!(q("100 packets"), QueueSize::Packets(100));
        assert_eq!(q("1.5BDP"), QueueSize::Bdp(1.5));
        assert_eq!(q("50ms"), QueueSize::Time(Duration::from_millis(50)));
        assert_eq!(q("150kB"), QueueSize::Bytes(Bytes::new(150_000)));
        let e = |s: &str| s.parse::<QueueSize>().unwrap_err();
        assert_eq!(e("100").suggestion.as_deref(), Some("100 packets"));
        for (text, fix) in [
            ("2bdp", Some("2BDP")),
            ("2Packets", Some("2 packets")),
            ("2KB", Some("2kB")),
            ("2MS", Some("2ms")),
            ("2m", None),
            ("2 miles", None),
        ] {
            assert_eq!(e(text).suggestion.as_deref(), fix, "{text}");
        }
        assert!(e("1.5 packets").message.contains("whole"));
    }

    #[test]
    fn start_jitter_is_a_time_or_round_trips() {
        let j = |s: &str| s.parse::<StartJitter>();
        assert_eq!(j("1.5RTT"), Ok(StartJitter::RoundTrips(1.5)));
        let ms = Duration::from_millis(20);
        assert_eq!(j("20ms"), Ok(StartJitter::Time(ms)));
        assert_eq!(j("2 rtt").unwrap_err().suggestion.as_deref(), Some("2RTT"));
        assert_eq!(j("2").unwrap_err().suggestion.as_deref(), Some("2RTT"));
        assert!(j("-1RTT").is_err() && j("1 apple").is_err());
    }

    #[test]
    fn probabilities_are_at_most_one() {
        let p = |s: &str| s.parse::<Probability>();
        assert_eq!(p("0.1%").unwrap(), Probability(0.001));
        assert_eq!(p("0.25").unwrap(), Probability(0.25));
        assert_eq!(p("5").unwrap_err().suggestion.as_deref(), Some("5%"));
        assert!(p("101%").is_err() && p("-1%").is_err());
    }

    #[test]
    fn windows_and_frequencies() {
        assert_eq!("10 packets".parse::<Window>(), Ok(Window::Packets(10)));
        assert_eq!(
            "14480B".parse::<Window>(),
            Ok(Window::Bytes(Bytes::new(14_480)))
        );
        assert_eq!("1000/s".parse::<PerSecond>(), Ok(PerSecond(1000.0)));
        assert_eq!("30/min".parse::<PerSecond>(), Ok(PerSecond(0.5)));
        assert!("30".parse::<PerSecond>().is_err());
    }
}
