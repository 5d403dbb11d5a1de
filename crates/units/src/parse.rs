//! Quantities as text: "12Mbit/s", "50ms", "1500B". A number without a unit is an error.
use std::fmt;
use std::str::FromStr;

use crate::{Bytes, Duration, Rate};

/// Why a text is not a quantity; `suggestion` is the likely fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// What is wrong, in one sentence.
    pub message: String,
    /// A text that would have been accepted.
    pub suggestion: Option<String>,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(s) => write!(f, " (did you mean \"{s}\"?)"),
            None => Ok(()),
        }
    }
}
impl std::error::Error for ParseError {}

/// A number and its unit, split: `"12.5 Mbit/s"` is `(12.5, "Mbit/s")`.
///
/// # Errors
/// When there is no number, it is negative or not finite.
pub fn split(text: &str) -> Result<(f64, &str), ParseError> {
    let t = text.trim();
    let bytes = t.as_bytes();
    let mut end = 0;
    while end < bytes.len() {
        let c = bytes[end];
        let exponent = (c == b'e' || c == b'E')
            && bytes
                .get(end + 1)
                .is_some_and(|n| n.is_ascii_digit() || *n == b'-' || *n == b'+');
        let sign = (c == b'-' || c == b'+') && (end == 0 || matches!(bytes[end - 1], b'e' | b'E'));
        if !(c.is_ascii_digit() || c == b'.' || c == b'_' || exponent || sign) {
            break;
        }
        end += 1;
    }
    let digits = t[..end].replace('_', "");
    let value: f64 = digits.parse().map_err(|_| ParseError {
        message: format!("\"{text}\" does not start with a number"),
        suggestion: None,
    })?;
    if value < 0.0 || t.starts_with('-') {
        return Err(ParseError {
            message: format!("\"{text}\" is negative"),
            suggestion: Some(t.trim_start_matches('-').to_owned()),
        });
    }
    if !value.is_finite() {
        return Err(ParseError {
            message: format!("\"{text}\" is not finite"),
            suggestion: None,
        });
    }
    Ok((value, t[end..].trim()))
}

fn scale(text: &str, kind: &str, fallback: &str, units: &[(&str, f64)]) -> Result<u64, ParseError> {
    let (value, unit) = split(text)?;
    if unit.is_empty() {
        return Err(ParseError {
            message: format!("\"{text}\" has no unit; a {kind} needs one"),
            suggestion: Some(format!("{}{fallback}", text.trim())),
        });
    }
    let Some((_, k)) = units.iter().find(|(name, _)| *name == unit) else {
        let nearest = units
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit));
        let all: Vec<_> = units.iter().map(|(name, _)| *name).collect();
        return Err(ParseError {
            message: format!(
                "\"{unit}\" is no unit of a {kind}; known: {}",
                all.join(", ")
            ),
            suggestion: nearest.map(|(name, _)| format!("{value}{name}")),
        });
    };
    let n = value * k;
    if n >= u64::MAX as f64 {
        return Err(ParseError {
            message: format!("\"{text}\" is too large"),
            suggestion: None,
        });
    }
    Ok((n + 0.5) as u64)
}

impl FromStr for Rate {
    type Err = ParseError;
    fn from_str(s: &str) -> Result<Self, ParseError> {
        // tc's "mbps" means bytes: ambiguous, so only spellings that say "bit" are units.
        if let Ok((value, unit)) = split(s) {
            let prefix = match unit {
                "bps" => Some(""),
                "kbps" | "Kbps" => Some("k"),
                "mbps" | "Mbps" => Some("M"),
                "gbps" | "Gbps" => Some("G"),
                _ => None,
            };
            if let Some(p) = prefix {
                return Err(ParseError {
                    message: format!("\"{unit}\" is ambiguous (bits for some tools, bytes for tc)"),
                    suggestion: Some(format!("{value}{p}bit/s")),
                });
            }
        }
        let units = [
            ("bit/s", 1.0),
            ("kbit/s", 1e3),
            ("Mbit/s", 1e6),
            ("Gbit/s", 1e9),
            ("Tbit/s", 1e12),
            ("B/s", 8.0),
            ("kB/s", 8e3),
            ("MB/s", 8e6),
            ("GB/s", 8e9),
        ];
        scale(s, "rate", "Mbit/s", &units).map(Self::from_bps)
    }
}

impl FromStr for Duration {
    type Err = ParseError;
    fn from_str(s: &str) -> Result<Self, ParseError> {
        let units = [
            ("ns", 1.0),
            ("us", 1e3),
            ("µs", 1e3),
            ("ms", 1e6),
            ("s", 1e9),
            ("min", 60e9),
            ("h", 3600e9),
        ];
        scale(s, "duration", "ms", &units).map(Self::from_nanos)
    }
}

impl FromStr for Bytes {
    type Err = ParseError;
    fn from_str(s: &str) -> Result<Self, ParseError> {
        let units = [
            ("B", 1.0),
            ("kB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("TB", 1e12),
            ("KiB", 1024.0),
            ("MiB", 1048576.0),
            ("GiB", 1073741824.0),
        ];
        scale(s, "size", "B", &units).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_carry_their_unit() {
        assert_eq!("12Mbit/s".parse::<Rate>().unwrap(), Rate::from_mbps(12));
        assert_eq!("1.5 Gbit/s".parse::<Rate>().unwrap(), Rate::from_mbps(1500));
        assert_eq!(
            "50ms".parse::<Duration>().unwrap(),
            Duration::from_millis(50)
        );
        assert_eq!(
            "1e3us".parse::<Duration>().unwrap(),
            Duration::from_millis(1)
        );
        assert_eq!("1MB".parse::<Bytes>().unwrap(), Bytes::new(1_000_000));
        assert_eq!("1MiB".parse::<Bytes>().unwrap(), Bytes::new(1_048_576));
    }

    #[test]
    fn errors_carry_the_fix() {
        let fix = |r: Result<Rate, ParseError>| r.unwrap_err().suggestion.unwrap();
        assert_eq!(fix("12".parse()), "12Mbit/s");
        assert_eq!(fix("12mbps".parse()), "12Mbit/s");
        assert_eq!(fix("-5Mbit/s".parse()), "5Mbit/s");
        assert_eq!(fix("12mbit/s".parse()), "12Mbit/s");
        assert!("fast".parse::<Rate>().is_err());
        assert!("".parse::<Bytes>().is_err());
    }
}
