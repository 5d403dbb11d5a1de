//! What logs in lines of text have in common: their lines, and how times are written.

use std::io::{self, BufRead, Read as _};

/// Stands behind the end of a text, to tell whether its last line has one.
const END: &str = "\u{4}";

/// Gives each line of a text to `each`, as [`super::lines`] does. A last line without an end may have been cut: it
/// comes without its last word, of which a part may be missing.
///
/// # Errors
/// When the text cannot be read.
pub fn whole_lines(input: &mut dyn BufRead, each: &mut dyn FnMut(&str)) -> io::Result<u64> {
    super::lines(
        &mut input.chain(END.as_bytes()),
        &mut |line| match line.strip_suffix(END) {
            None => each(line),
            Some(cut) => match cut.rfind(char::is_whitespace) {
                Some(at) => each(&cut[..at]),
                None => each(""),
            },
        },
    )
}

/// Lines of the beginning of a file, without the last, which may be cut there.
pub fn first_lines(start: &str) -> impl Iterator<Item = &str> {
    let whole = start.rfind('\n').map_or("", |at| &start[..at]);
    whole.lines()
}

/// The time at the beginning of a line, in nanoseconds since 1970, or since any other instant if it is that small; and
/// what follows it.
///
/// It is a number of seconds with a fraction (`date +%s.%N`, `ts %.s`) or without (`date +%s`, then with 10 digits), of
/// milli-, micro- or nanoseconds (13, 16 or 19 digits), or a date and a time of ISO 8601, of UTC if it names no zone.
pub fn stamp(line: &str) -> Option<(u64, &str)> {
    let (first, rest) = word(line)?;
    let first = first.trim_start_matches('[').trim_end_matches([']', ':']);
    if let Some(ns) = number(first) {
        return Some((ns, rest));
    }
    if let Some((date, time)) = first.split_once(['T', 't']) {
        return Some((iso_8601(date, time)?, rest));
    }
    let (second, rest) = word(rest)?;
    let second = second.trim_end_matches([']', ':']);
    Some((iso_8601(first, second)?, rest))
}

/// Whether a time is one of the clock, from the year 2001, not one that was counted from elsewhere.
pub const fn is_of_clock(ns: u64) -> bool {
    ns >= 1_000_000_000 * 1_000_000_000
}

/// Seconds as a decimal fraction, in nanoseconds.
pub fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once(['.', ','])?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(nanos(fraction)?)
}

fn number(text: &str) -> Option<u64> {
    if text.contains(['.', ',']) {
        return seconds(text);
    }
    let unit = match text.len() {
        10 => 1_000_000_000,
        13 => 1_000_000,
        16 => 1_000,
        19 => 1,
        _ => return None,
    };
    digits(text)?.checked_mul(unit)
}

/// The fraction of a second with these digits.
fn nanos(text: &str) -> Option<u64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    let mut ns = digits(text)?;
    for _ in text.len()..9 {
        ns *= 10;
    }
    for _ in 9..text.len() {
        ns /= 10;
    }
    Some(ns)
}

/// A number of digits alone: no sign.
fn digits(text: &str) -> Option<u64> {
    let all = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| all)
}

fn iso_8601(date: &str, time: &str) -> Option<u64> {
    let mut parts = date.splitn(3, '-').map(digits);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let is_date = (1970..2500).contains(&year) && (1..=12).contains(&month) && day <= 31;
    let (time, ahead_s) = zone(time)?;
    let mut parts = time.splitn(3, ':');
    let (hour, minute) = (digits(parts.next()?)?, digits(parts.next()?)?);
    let last = parts.next().unwrap_or("0");
    let (second, fraction) = last.split_once(['.', ',']).unwrap_or((last, "0"));
    let second = digits(second)?;
    if !is_date || day == 0 || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let of_day = hour * 3600 + minute * 60 + second;
    let seconds = (days(year, month, day) * 86_400 + of_day).checked_add_signed(-ahead_s)?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(nanos(fraction)?)
}

/// A time without its zone, and by how many seconds the zone is ahead of UTC.
fn zone(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let Some(at) = time.find(['+', '-']) else {
        return Some((time, 0));
    };
    let (time, offset) = time.split_at(at);
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let all: String = offset[1..].chars().filter(|c| *c != ':').collect();
    let number = digits(&all)? as i64;
    let (hours, minutes) = match all.len() {
        2 => (number, 0),
        4 => (number / 100, number % 100),
        _ => return None,
    };
    Some((time, sign * (hours * 3600 + minutes * 60)))
}

/// Days from 1970 to a date of the Gregorian calendar.
const fn days(year: u64, month: u64, day: u64) -> u64 {
    // Years begin in March: a leap day is then the last of its year.
    let y = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * y + y / 4 - y / 100 + y / 400 + of_year - 719_468
}

/// The first word and what follows it.
pub fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The host of `10.0.0.1:80`, `[2001:db8::1]:80` or `2001:db8::1:80`; `None`: there is none, or no port.
pub fn host(end: &str) -> Option<&str> {
    let (host, port) = end.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty() && !port.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_people_write_it() {
        let at = 1_767_323_045_123_456_789;
        for text in [
            "1767323045.123456789",
            "[1767323045.123456789]",
            "1767323045123456789",
            "2026-01-02T03:04:05.123456789Z",
            "2026-01-02T03:04:05,123456789+00:00",
            "2026-01-02T05:04:05.123456789+0200",
            "2026-01-01T20:34:05.123456789-06:30",
            "2026-01-02 03:04:05.123456789",
        ] {
            assert_eq!(stamp(text), Some((at, "")), "{text}");
        }
        assert_eq!(stamp("1767323045"), Some((1_767_323_045_000_000_000, "")));
        assert_eq!(stamp("0.25 \tcubic"), Some((250_000_000, " \tcubic")));
        // The day after the leap day of a century that has one.
        let day = 951_868_800_000_000_000;
        assert_eq!(stamp("2000-03-01T00:00:00Z x"), Some((day, " x")));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "cubic",
            "0 0",
            "12",
            "-1.5",
            "1.",
            "1.x",
            "2026-13-01T00:00:00Z",
            "T",
            "2026-01-02T",
            "1.5.5",
            "2026-01-02T03:04:05+1",
            "99999999999999999999.5",
            "2026-01-00T00:00:00Z",
            "+123456789",
        ] {
            assert_eq!(stamp(text), None, "{text}");
        }
    }

    #[test]
    fn a_last_line_without_an_end_loses_its_last_word() {
        let read = |text: &str| {
            let mut found = Vec::new();
            let mut input = text.as_bytes();
            whole_lines(&mut input, &mut |line| found.push(line.to_owned())).unwrap();
            found.retain(|line| !line.is_empty());
            found
        };
        assert_eq!(read("a b\nc d\n"), ["a b", "c d"]);
        assert_eq!(read("a b\nc d"), ["a b", "c"]);
        assert_eq!(read("a b\nc"), ["a b"]);
    }

    #[test]
    fn the_host_is_what_stands_before_the_port() {
        assert_eq!(host("10.0.0.1:80"), Some("10.0.0.1"));
        assert_eq!(host("[2001:db8::1]:80"), Some("2001:db8::1"));
        assert_eq!(host("2001:db8::1:80"), Some("2001:db8::1"));
        assert_eq!(host("10.0.0.1"), None);
        assert_eq!(host(":80"), None);
    }
}
