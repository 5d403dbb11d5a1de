//! When an event was: the many ways in which traces say so.

use serde_json::Value;

use super::event;

/// Times before this have no date: a clock that began at zero.
const FIRST_DATE_NS: i64 = 315_360_000_000_000_000;

/// How the times of a trace are meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    /// Nanoseconds of a unit: of times, and of round trips.
    pub unit_ns: i64,
    /// Whether a time is since the event before.
    pub is_delta: bool,
    /// Whether times are told to be since the reference.
    is_relative: bool,
    /// The reference; `None` if it has no date.
    reference: Option<Reference>,
    /// What is to be added to all times, in units.
    offset: f64,
    last_ns: i64,
}

/// A time since 1970, as it is told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reference {
    Nanos(i64),
    /// In the units of the trace.
    Units(f64),
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            unit_ns: 1_000_000,
            is_delta: false,
            is_relative: false,
            reference: None,
            offset: 0.0,
            last_ns: 0,
        }
    }
}

impl Clock {
    /// `configuration`, of drafts 00 to 02.
    pub fn configure(&mut self, configuration: &Value) {
        self.unit_ns = match configuration["time_units"].as_str() {
            Some("us") => 1_000,
            Some("ns") => 1,
            Some("s") => 1_000_000_000,
            _ => 1_000_000,
        };
        self.offset = event::signed(&configuration["time_offset"]).unwrap_or(0.0);
    }

    /// `common_fields`.
    pub fn set(&mut self, common: &Value) {
        let reference = &common["reference_time"];
        let date = |value: &Value| value.as_str().and_then(date_ns).map(Reference::Nanos);
        let number = event::signed(reference).map(Reference::Units);
        self.reference = match reference {
            Value::Object(_) => {
                date(&reference["epoch"]).or_else(|| date(&reference["wall_clock_time"]))
            }
            _ => date(reference).or(number),
        };
        match common["time_format"].as_str() {
            Some("delta" | "relative_to_previous_event") => self.is_delta = true,
            Some("absolute") => self.reference = None,
            Some("relative" | "relative_to_epoch") => self.is_relative = true,
            _ => (),
        }
    }

    /// The name of the column of times, of drafts 00 and 01.
    pub fn set_column(&mut self, name: &str) {
        match name {
            "relative_time" => self.is_relative = true,
            "delta_time" => self.is_delta = true,
            _ => (),
        }
    }

    /// A number of units in nanoseconds.
    pub fn nanos(&self, value: f64) -> i64 {
        // Whole units apart: dates in milliseconds have as many digits as a float.
        let whole = (value.trunc() as i64).saturating_mul(self.unit_ns);
        whole.saturating_add((value.fract() * self.unit_ns as f64).round() as i64)
    }

    /// When an event was, in nanoseconds on the clock of the trace; without a time it was with the one before.
    pub fn time(&mut self, value: Option<f64>) -> i64 {
        if let Some(value) = value {
            let time = self.nanos(value);
            self.last_ns = match self.is_delta {
                true => self.last_ns.saturating_add(time),
                false => time,
            };
        }
        self.last_ns
    }

    /// The date of a time, if it has one.
    pub fn date_ns(&self, time_ns: i64) -> Option<u64> {
        let reference = match self.reference {
            Some(Reference::Nanos(ns)) => ns,
            Some(Reference::Units(units)) => self.nanos(units),
            None => 0,
        };
        let date = reference
            .saturating_add(self.nanos(self.offset))
            .saturating_add(time_ns);
        // Without a reference it is a date only if it looks like one.
        (date >= FIRST_DATE_NS).then_some(date as u64)
    }

    /// Whether times of other traces of the file are on the same clock, which begins with all of them.
    pub fn begins_at_zero(&self) -> bool {
        self.is_relative || self.is_delta
    }
}

/// Nanoseconds since 1970 of a date as in RFC 3339, such as 2026-03-01T12:30:00.5Z.
pub fn date_ns(text: &str) -> Option<i64> {
    let (date, rest) = text.trim().split_once(['T', 't', ' '])?;
    let mut parts = date.splitn(3, '-').map(|n| n.parse::<u16>().ok());
    let mut part = || parts.next().flatten().map(i64::from);
    let (year, month, day) = (part()?, part()?, part()?);
    let zone = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(zone);
    let mut parts = time.splitn(3, ':');
    let mut whole = || parts.next()?.parse::<u8>().ok().map(i64::from);
    let (hour, minute) = (whole()?, whole()?);
    let second: f64 = parts
        .next()?
        .parse()
        .ok()
        .filter(|s| (0.0..61.0).contains(s))?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 24 || minute > 59 {
        return None;
    }
    let ahead = match zone.split_at_checked(1) {
        Some((sign @ ("+" | "-"), of)) => {
            let (hours, minutes) = of.split_once(':').unwrap_or((of, "0"));
            let minutes =
                i64::from(hours.parse::<u8>().ok()?) * 60 + i64::from(minutes.parse::<u8>().ok()?);
            if sign == "+" { minutes } else { -minutes }
        }
        _ => 0,
    };
    let minutes = days(year, month, day) * 1_440 + hour * 60 + minute - ahead;
    minutes
        .checked_mul(60_000_000_000)?
        .checked_add((second * 1e9).round() as i64)
}

/// Days since 1970 of a date of the Gregorian calendar, by years that begin in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // By `date -u -d @N`.
        for (text, seconds) in [
            ("1970-01-01T00:00:00.000Z", Some(0.0)),
            ("2000-02-29T23:59:59Z", Some(951_868_799.0)),
            ("2024-03-01T00:00:00.25Z", Some(1_709_251_200.25)),
            ("2026-11-28T02:00:00+02:00", Some(1_795_824_000.0)),
            ("2026-11-27 22:30:00.0-01:30", Some(1_795_824_000.0)),
            ("unknown", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-11-28T02:00:00+é", None),
            ("2026-11-28T", None),
        ] {
            let ns = seconds.map(|s: f64| (s * 4.0) as i64 * 250_000_000);
            assert_eq!(date_ns(text), ns, "{text}");
        }
    }
}
