//! Quantities as text: "12Mbit/s", "50ms", "1500B". A number without a unit is an error.
use std::fmt;
use std::str::FromStr;

use crate::foreign::{self, Likely};
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

/// A kind of quantity: its name, the likely unit of a bare number, our units, and the units of other tools.
struct Kind<'a> {
    name: &'a str,
    fallback: &'a str,
    units: &'a [(&'a str, f64)],
    foreign: fn(f64, &str) -> Option<Likely>,
}

fn scale(text: &str, kind: &Kind<'_>) -> Result<u64, ParseError> {
    let (value, unit) = split(text)?;
    let Kind { name, units, .. } = kind;
    if unit.is_empty() {
        return Err(ParseError {
            message: format!("\"{text}\" has no unit; a {name} needs one"),
            suggestion: Some(format!("{}{}", text.trim(), kind.fallback)),
        });
    }
    let Some((_, k)) = units.iter().find(|(name, _)| *name == unit) else {
        let likely = (kind.foreign)(value, unit);
        let note = likely.as_ref().map_or("", |l| &l.note);
        let message = if note.is_empty() {
            let all: Vec<_> = units.iter().map(|(name, _)| *name).collect();
            format!(
                "\"{unit}\" is not a unit of a {name}; known: {}",
                all.join(", ")
            )
        } else {
            format!("\"{unit}\" is not a unit of a {name}: {note}")
        };
        return Err(ParseError {
            message,
            suggestion: likely.map(|l| l.text),
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
        let kind = Kind {
            name: "rate",
            fallback: "Mbit/s",
            units: &units,
            foreign: foreign::rate,
        };
        scale(s, &kind).map(Self::from_bps)
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
        let kind = Kind {
            name: "duration",
            fallback: "s",
            units: &units,
            foreign: foreign::duration,
        };
        scale(s, &kind).map(Self::from_nanos)
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
        let kind = Kind {
            name: "size",
            fallback: "B",
            units: &units,
            foreign: foreign::size,
        };
        scale(s, &kind).map(Self::new)
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

    /// The suggestion for a rejected text, and the note on it.
    fn rejected<T: FromStr<Err = ParseError> + fmt::Debug>(text: &str) -> (String, String) {
        let e = text.parse::<T>().unwrap_err();
        let fix = e.suggestion.unwrap_or_default();
        if !fix.is_empty() {
            assert!(fix.parse::<T>().is_ok(), "{text}: {fix}");
        }
        (fix, e.message)
    }

    #[test]
    fn errors_carry_the_fix() {
        for (text, fix) in [
            ("12", "12Mbit/s"),
            ("-5Mbit/s", "5Mbit/s"),
            ("12mbit/s", "12Mbit/s"),
            ("12 Mbits/s", "12Mbit/s"),
            ("12Mbit", "12Mbit/s"),
            ("12Mbit/sec", "12Mbit/s"),
            ("12mB/s", "12MB/s"),
            ("12KB/s", "12kB/s"),
            ("12MBps", "12MB/s"),
            ("12Megabits/second", "12Mbit/s"),
            ("12megabytes/s", "12MB/s"),
            ("12G", "12Gbit/s"),
            ("12Kbit/s", "12kbit/s"),
            // No binary prefixes: the same prefix in our units.
            ("1MiB/s", "8388608bit/s"),
            ("10Kibit/s", "10240bit/s"),
            ("12 miles", ""),
            ("12/s", ""),
            ("fast", ""),
        ] {
            assert_eq!(rejected::<Rate>(text).0, fix, "{text}");
        }
        for (text, fix) in [
            ("5", "5s"),
            ("5Ms", "5ms"),
            ("5MS", "5ms"),
            ("5S", "5s"),
            ("5sec", "5s"),
            ("5 seconds", "5s"),
            ("5msec", "5ms"),
            ("5\u{3bc}s", "5us"),
            ("5usec", "5us"),
            ("5Min", "5min"),
            ("5mins", "5min"),
            ("5hours", "5h"),
            ("2days", "48h"),
            ("5m/s", ""),
        ] {
            assert_eq!(rejected::<Duration>(text).0, fix, "{text}");
        }
        for (text, fix) in [
            ("3", "3B"),
            ("3KB", "3kB"),
            ("3k", "3kB"),
            ("3mB", "3MB"),
            ("3M", "3MB"),
            ("3gb", "3GB"),
            ("3kib", "3KiB"),
            ("3MIB", "3MiB"),
            ("3TiB", "3072GiB"),
            ("3bytes", "3B"),
            ("3kilobytes", "3kB"),
            ("12kbit", "1500B"),
            ("3 miles", ""),
            ("", ""),
        ] {
            assert_eq!(rejected::<Bytes>(text).0, fix, "{text}");
        }
    }

    #[test]
    fn a_bare_b_is_taken_for_bits_of_a_rate_and_what_bytes_are_is_said() {
        for (text, fix, bytes) in [
            ("10Mb/s", "10Mbit/s", "MB/s"),
            ("10mb/s", "10Mbit/s", "MB/s"),
            ("10Mb", "10Mbit/s", "MB/s"),
            ("10kb/s", "10kbit/s", "kB/s"),
            ("10Kbps", "10kbit/s", "kB/s"),
            ("10mbps", "10Mbit/s", "MB/s"),
            ("10Mbps", "10Mbit/s", "MB/s"),
            ("10MBPS", "10Mbit/s", "MB/s"),
            ("10Gb/s", "10Gbit/s", "GB/s"),
            ("10b/s", "10bit/s", "B/s"),
            ("10bps", "10bit/s", "B/s"),
        ] {
            let (got, message) = rejected::<Rate>(text);
            assert_eq!(got, fix, "{text}");
            assert!(
                message.contains("ambiguous") && message.contains(bytes),
                "{text}: {message}"
            );
        }
        let (fix, message) = rejected::<Bytes>("10kb");
        assert!(
            fix == "10kB" && message.contains("8 bits are 1B"),
            "{fix} {message}"
        );
        let (fix, message) = rejected::<Duration>("5m");
        assert!(
            fix == "5min" && message.contains("milliseconds ms"),
            "{fix} {message}"
        );
    }
}
