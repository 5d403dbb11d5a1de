//! Units of other tools, and the most likely meaning of each.

/// The suggestion for a text that has a unit of another tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Likely {
    /// A text that is accepted.
    pub(crate) text: String,
    /// What distinguishes the possible meanings; empty if there is only one.
    pub(crate) note: String,
}

impl Likely {
    fn plain(text: String) -> Option<Self> {
        let note = String::new();
        Some(Self { text, note })
    }
}

/// A prefix in our notation, and its power of 1000 or 1024.
struct Prefix {
    letter: &'static str,
    power: i32,
    binary: bool,
}

impl Prefix {
    fn factor(&self) -> f64 {
        let base: f64 = if self.binary { 1024.0 } else { 1000.0 };
        (0..self.power).map(|_| base).product()
    }
}

/// What a unit counts.
enum Base {
    Bits,
    Bytes,
    /// A bare b, which stands for either.
    Either,
    /// A prefix alone.
    Nothing,
}

/// Splits a unit of data into prefix and base; `None` if it is no such unit.
fn data(unit: &str) -> Option<(Prefix, Base)> {
    const WORDS: [(&str, &str, i32); 4] = [
        ("kilo", "k", 1),
        ("mega", "M", 2),
        ("giga", "G", 3),
        ("tera", "T", 4),
    ];
    let small = unit.to_ascii_lowercase();
    let mut prefix = Prefix {
        letter: "",
        power: 0,
        binary: false,
    };
    let mut rest = unit;
    for (word, letter, power) in WORDS {
        let short = letter.to_ascii_lowercase();
        let length = match (small.starts_with(word), small.starts_with(&short)) {
            (true, _) => word.len(),
            (_, true) => 1,
            _ => continue,
        };
        prefix = Prefix {
            letter,
            power,
            binary: false,
        };
        rest = &unit[length..];
    }
    // Ki, Mi, Gi; but not the beginning of a word.
    if prefix.power > 0
        && let Some(after) = rest.strip_prefix(['i', 'I'])
    {
        prefix.binary = true;
        rest = after;
    }
    let base = match rest {
        "" if prefix.power > 0 => Base::Nothing,
        "b" => Base::Either,
        "B" => Base::Bytes,
        _ => match rest.to_ascii_lowercase().as_str() {
            "bit" | "bits" => Base::Bits,
            "byte" | "bytes" | "octet" | "octets" => Base::Bytes,
            _ => return None,
        },
    };
    Some((prefix, base))
}

/// The meaning of `value` in another tool's unit of a rate.
pub(crate) fn rate(value: f64, unit: &str) -> Option<Likely> {
    let small = unit.to_ascii_lowercase();
    let per = ["/second", "/sec", "/s", "ps"];
    let per = per.into_iter().find(|p| small.ends_with(p)).unwrap_or("");
    let amount = &unit[..unit.len() - per.len()];
    if amount.is_empty() {
        return None;
    }
    let (prefix, base) = data(amount)?;
    // tc's "mbps" means bytes, and capital letters make no difference.
    let shouted = per == "ps" && unit.chars().all(char::is_uppercase);
    let letter = prefix.letter;
    let note = match base {
        Base::Either if per == "ps" => {
            format!("ambiguous: bits for some tools, bytes for tc; {letter}bit/s or {letter}B/s")
        }
        Base::Either => {
            format!("ambiguous: bits are {letter}bit/s, bytes {letter}B/s, eight times as much")
        }
        _ if shouted => {
            format!("ambiguous: bits are {letter}bit/s, bytes {letter}B/s, eight times as much")
        }
        _ => String::new(),
    };
    let bytes = matches!(base, Base::Bytes) && !shouted;
    let text = match (prefix.binary, bytes) {
        (false, false) => format!("{value}{letter}bit/s"),
        (false, true) => format!("{value}{letter}B/s"),
        // Rates have no binary prefixes.
        (true, _) => {
            let bits = value * prefix.factor() * if bytes { 8.0 } else { 1.0 };
            format!("{}bit/s", bits.round())
        }
    };
    Some(Likely { text, note })
}

/// The meaning of `value` in another tool's unit of a size.
pub(crate) fn size(value: f64, unit: &str) -> Option<Likely> {
    let (prefix, base) = data(unit)?;
    let letter = prefix.letter;
    let own = match (prefix.binary, letter) {
        (true, "k") => "KiB".to_owned(),
        (true, "T") => return Likely::plain(format!("{}GiB", value * 1024.0)),
        (true, _) => format!("{letter}iB"),
        (false, _) => format!("{letter}B"),
    };
    match base {
        Base::Bits => {
            let bytes = value * prefix.factor() / 8.0;
            Some(Likely {
                text: format!("{}B", bytes.ceil()),
                note: "a size is in bytes; 8 bits are 1B".to_owned(),
            })
        }
        Base::Either => Some(Likely {
            text: format!("{value}{own}"),
            note: format!("ambiguous: a size is in bytes, {own}; 8 bits are 1B"),
        }),
        Base::Bytes | Base::Nothing => Likely::plain(format!("{value}{own}")),
    }
}

/// The meaning of `value` in another tool's unit of a time.
pub(crate) fn duration(value: f64, unit: &str) -> Option<Likely> {
    let small = unit.to_lowercase();
    let own = match small.as_str() {
        "m" => {
            return Some(Likely {
                text: format!("{value}min"),
                note: "ambiguous: minutes are min, milliseconds ms".to_owned(),
            });
        }
        "d" | "day" | "days" => return Likely::plain(format!("{}h", value * 24.0)),
        "ns" | "nsec" | "nsecs" | "nanosecond" | "nanoseconds" => "ns",
        // Micro sign and Greek letter.
        "us" | "usec" | "usecs" | "\u{b5}s" | "\u{3bc}s" | "microsecond" | "microseconds" => "us",
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => "ms",
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "min" | "mins" | "minute" | "minutes" => "min",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        _ => return None,
    };
    Likely::plain(format!("{value}{own}"))
}
