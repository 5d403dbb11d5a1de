//! Named parameters of algorithms: what exists, what was given, what is wrong with it.

use gargalo_units::{Duration, ParseError, parse};

/// A parameter value as given by a user.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// A number.
    Number(f64),
    /// A switch.
    Bool(bool),
    /// A name, or a quantity with its unit ("200ms").
    Text(String),
}

impl From<f64> for ParamValue {
    fn from(n: f64) -> Self {
        Self::Number(n)
    }
}
impl From<bool> for ParamValue {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}
impl From<&str> for ParamValue {
    fn from(s: &str) -> Self {
        Self::Text(s.to_owned())
    }
}
impl std::fmt::Display for ParamValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(n) => write!(f, "{n}"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Text(s) => write!(f, "\"{s}\""),
        }
    }
}

/// The parameters given for one controller, in the order given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(Vec<(String, ParamValue)>);

impl Params {
    /// None given: all defaults.
    pub const fn new() -> Self {
        Self(Vec::new())
    }
    /// With one more parameter.
    pub fn with(mut self, name: &str, value: impl Into<ParamValue>) -> Self {
        self.push(name, value.into());
        self
    }
    /// Adds a parameter.
    pub fn push(&mut self, name: &str, value: ParamValue) {
        self.0.push((name.to_owned(), value));
    }
    /// What was given, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ParamValue)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v))
    }
}

impl FromIterator<(String, ParamValue)> for Params {
    fn from_iter<I: IntoIterator<Item = (String, ParamValue)>>(it: I) -> Self {
        Self(it.into_iter().collect())
    }
}

/// What values a parameter takes, and its published default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// A number within an inclusive range.
    Number {
        /// Default.
        default: f64,
        /// Least valid value.
        min: f64,
        /// Greatest valid value.
        max: f64,
        /// Only whole numbers.
        integer: bool,
    },
    /// A switch.
    Bool {
        /// Default.
        default: bool,
    },
    /// One of a few names.
    Choice {
        /// Default.
        default: &'static str,
        /// All names.
        choices: &'static [&'static str],
    },
    /// A span of time, given as text with its unit, within an inclusive range.
    Duration {
        /// Default.
        default: Duration,
        /// Least valid value.
        min: Duration,
        /// Greatest valid value.
        max: Duration,
    },
}

/// A parameter of an algorithm as listed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// Name in scenarios.
    pub name: &'static str,
    /// One line about it, with its unit and symbol in the source.
    pub doc: &'static str,
    /// Default and valid values.
    pub kind: ParamKind,
}

impl Param {
    /// A number in `min..=max`.
    pub const fn number(
        name: &'static str,
        doc: &'static str,
        default: f64,
        min: f64,
        max: f64,
    ) -> Self {
        let kind = ParamKind::Number {
            default,
            min,
            max,
            integer: false,
        };
        Self { name, doc, kind }
    }
    /// A whole number in `min..=max`.
    pub const fn integer(
        name: &'static str,
        doc: &'static str,
        default: f64,
        min: f64,
        max: f64,
    ) -> Self {
        let kind = ParamKind::Number {
            default,
            min,
            max,
            integer: true,
        };
        Self { name, doc, kind }
    }
    /// A switch.
    pub const fn bool(name: &'static str, doc: &'static str, default: bool) -> Self {
        let kind = ParamKind::Bool { default };
        Self { name, doc, kind }
    }
    /// One of `choices`.
    pub const fn choice(
        name: &'static str,
        doc: &'static str,
        default: &'static str,
        choices: &'static [&'static str],
    ) -> Self {
        let kind = ParamKind::Choice { default, choices };
        Self { name, doc, kind }
    }
    /// A span of time in `min..=max`.
    pub const fn duration(
        name: &'static str,
        doc: &'static str,
        default: Duration,
        min: Duration,
        max: Duration,
    ) -> Self {
        let kind = ParamKind::Duration { default, min, max };
        Self { name, doc, kind }
    }

    /// The default, as a user would write it.
    pub fn default_value(&self) -> ParamValue {
        match self.kind {
            ParamKind::Number { default, .. } => ParamValue::Number(default),
            ParamKind::Bool { default } => ParamValue::Bool(default),
            ParamKind::Choice { default, .. } => ParamValue::Text(default.to_owned()),
            ParamKind::Duration { default, .. } => ParamValue::Text(default.to_string()),
        }
    }

    /// The valid values, in words.
    pub fn valid(&self) -> String {
        match self.kind {
            ParamKind::Number {
                min, max, integer, ..
            } => {
                let what = if integer {
                    "a whole number"
                } else {
                    "a number"
                };
                format!("{what} from {min} to {max}")
            }
            ParamKind::Bool { .. } => "true or false".to_owned(),
            ParamKind::Choice { choices, .. } => format!("one of {}", choices.join(", ")),
            ParamKind::Duration { min, max, .. } => format!("a duration from {min} to {max}"),
        }
    }
}

/// Why a controller cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No algorithm has this name.
    #[error("there is no congestion control \"{name}\"{}", did_you_mean(.nearest))]
    UnknownAlgorithm {
        /// The name given.
        name: String,
        /// The closest existing name.
        nearest: Option<&'static str>,
    },
    /// The algorithm has no such parameter.
    #[error("{algorithm} has no parameter \"{name}\"{}; it has {}", did_you_mean(.nearest),
        known.join(", "))]
    UnknownParam {
        /// The algorithm.
        algorithm: &'static str,
        /// The name given.
        name: String,
        /// The closest existing name.
        nearest: Option<&'static str>,
        /// All its parameters.
        known: Vec<&'static str>,
    },
    /// The same parameter was given twice.
    #[error("{algorithm}: \"{param}\" is given twice")]
    Repeated {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter.
        param: &'static str,
    },
    /// The value is of the wrong type or out of range.
    #[error("{algorithm}: {param} = {value} is not valid: it must be {valid}{}",
        did_you_mean(.nearest))]
    InvalidValue {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter.
        param: &'static str,
        /// The value given.
        value: ParamValue,
        /// The valid values, in words.
        valid: String,
        /// The closest valid name, for choices.
        nearest: Option<&'static str>,
    },
    /// The value is no quantity with a unit.
    #[error("{algorithm}: {param}: {source}")]
    Quantity {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter.
        param: &'static str,
        /// What is wrong with it.
        source: ParseError,
    },
}

/// A number with the first unit that makes it a duration in a range.
fn with_unit(number: &str, min: Duration, max: Duration) -> Option<String> {
    let mut texts = ["ms", "s", "us"]
        .into_iter()
        .map(|u| format!("{number}{u}"));
    texts.find(|t| t.parse().is_ok_and(|d| (min..=max).contains(&d)))
}

fn did_you_mean(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |n| format!(" (did you mean \"{n}\"?)"))
}

/// Parameters checked against an algorithm's table: every getter answers for every table entry.
#[derive(Debug)]
pub struct Values<'a> {
    table: &'static [Param],
    given: Vec<(&'static str, Checked<'a>)>,
}

#[derive(Clone, Copy, Debug)]
enum Checked<'a> {
    Number(f64),
    Bool(bool),
    Text(&'a str),
    Duration(Duration),
}

impl<'a> Values<'a> {
    /// Checks names, types and ranges.
    ///
    /// # Errors
    /// The first parameter that is unknown, repeated or invalid.
    pub fn check(
        algorithm: &'static str,
        table: &'static [Param],
        params: &'a Params,
    ) -> Result<Self, BuildError> {
        let mut given: Vec<(&'static str, Checked<'a>)> = Vec::new();
        for (name, value) in params.iter() {
            let Some(param) = table.iter().find(|p| p.name == name) else {
                let known: Vec<_> = table.iter().map(|p| p.name).collect();
                return Err(BuildError::UnknownParam {
                    algorithm,
                    name: name.to_owned(),
                    nearest: nearest(name, known.iter().copied()),
                    known,
                });
            };
            if given.iter().any(|(n, _)| *n == name) {
                return Err(BuildError::Repeated {
                    algorithm,
                    param: param.name,
                });
            }
            given.push((param.name, Self::check_one(algorithm, param, value)?));
        }
        Ok(Self { table, given })
    }

    fn check_one(
        algorithm: &'static str,
        param: &Param,
        value: &'a ParamValue,
    ) -> Result<Checked<'a>, BuildError> {
        let invalid = |nearest| BuildError::InvalidValue {
            algorithm,
            param: param.name,
            value: value.clone(),
            valid: param.valid(),
            nearest,
        };
        match (param.kind, value) {
            (
                ParamKind::Number {
                    min, max, integer, ..
                },
                &ParamValue::Number(n),
            ) if (min..=max).contains(&n) && (!integer || libm::trunc(n) == n) => {
                Ok(Checked::Number(n))
            }
            (ParamKind::Bool { .. }, &ParamValue::Bool(b)) => Ok(Checked::Bool(b)),
            (ParamKind::Choice { choices, .. }, ParamValue::Text(t)) => {
                if choices.contains(&t.as_str()) {
                    Ok(Checked::Text(t))
                } else {
                    Err(invalid(nearest(t, choices.iter().copied())))
                }
            }
            (ParamKind::Duration { min, max, .. }, ParamValue::Text(_) | ParamValue::Number(_)) => {
                // A bare number goes through the parser for its advice on the missing unit.
                let text = match value {
                    ParamValue::Text(t) => t.clone(),
                    other => other.to_string(),
                };
                let d = text.parse().map_err(|mut source: ParseError| {
                    if let Ok((_, "")) = parse::split(&text) {
                        source.suggestion = with_unit(&text, min, max);
                    }
                    BuildError::Quantity {
                        algorithm,
                        param: param.name,
                        source,
                    }
                })?;
                if (min..=max).contains(&d) {
                    Ok(Checked::Duration(d))
                } else {
                    Err(invalid(None))
                }
            }
            _ => Err(invalid(None)),
        }
    }

    fn given(&self, name: &str) -> Option<Checked<'a>> {
        self.given.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
    }

    fn kind(&self, name: &str) -> ParamKind {
        self.table
            .iter()
            .find(|p| p.name == name)
            .expect(
                "an algorithm reads only parameters of its own table; every one is built in tests",
            )
            .kind
    }

    /// The number given for `name`, or its default.
    pub fn number(&self, name: &str) -> f64 {
        match (self.given(name), self.kind(name)) {
            (Some(Checked::Number(n)), _) => n,
            (_, ParamKind::Number { default, .. }) => default,
            _ => f64::NAN,
        }
    }
    /// The switch given for `name`, or its default.
    pub fn bool(&self, name: &str) -> bool {
        match (self.given(name), self.kind(name)) {
            (Some(Checked::Bool(b)), _) => b,
            (_, ParamKind::Bool { default }) => default,
            _ => false,
        }
    }
    /// The choice given for `name`, or its default.
    pub fn text(&self, name: &str) -> &'a str {
        match (self.given(name), self.kind(name)) {
            (Some(Checked::Text(t)), _) => t,
            (_, ParamKind::Choice { default, .. }) => default,
            _ => "",
        }
    }
    /// The duration given for `name`, or its default.
    pub fn duration(&self, name: &str) -> Duration {
        match (self.given(name), self.kind(name)) {
            (Some(Checked::Duration(d)), _) => d,
            (_, ParamKind::Duration { default, .. }) => default,
            _ => Duration::ZERO,
        }
    }
}

/// The candidate closest to `name`, if it is close enough to be a slip of the pen.
pub fn nearest(name: &str, candidates: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let plain = normalise(name);
    candidates
        .map(|c| (distance(&plain, &normalise(c)), c))
        .min_by_key(|(d, _)| *d)
        .filter(|(d, c)| *d <= 1 + plain.len().max(c.len()) / 4)
        .map(|(_, c)| c)
}

/// Case and separators are not what one misspells on purpose. Only the first 64 characters count,
/// which bounds the work on hostile input.
fn normalise(s: &str) -> String {
    s.chars()
        .take(64)
        .filter(|c| !matches!(c, '-' | '_' | ' '))
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// Edits (insertions, deletions, substitutions) between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(ca != *cb))
                .min(above + 1)
                .min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
    }

    #[test]
    fn nearest_forgives_slips_only() {
        let names = ["cubic", "bbr", "reno"];
        assert_eq!(nearest("cubik", names.into_iter()), Some("cubic"));
        assert_eq!(nearest("CUBIC", names.into_iter()), Some("cubic"));
        assert_eq!(nearest("quantum", names.into_iter()), None);
    }
}
