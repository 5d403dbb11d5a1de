//! Quantities that scenarios alone have.

use gargalo_settings::quantity;
use gargalo_units::parse::split;
use gargalo_units::{Duration, ParseError};

/// How far starts of flows may move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StartJitter {
    /// Up to this time.
    Time(Duration),
    /// Up to this many round trips on the flow's empty path.
    RoundTrips(f64),
}

quantity!(
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
                _ => format!("\"{unit}\" is not a unit of a start jitter; known: RTT, us, ms, s"),
            };
            let rtt = unit.eq_ignore_ascii_case("rtt") || unit.is_empty();
            let own = rtt.then(|| format!("{value}RTT"));
            let suggestion = own.or(e.suggestion);
            ParseError {
                message,
                suggestion,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
