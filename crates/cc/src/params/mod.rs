//! Parameters of algorithms by name: declared ones, given ones, and their validation.
//!
//! A parameter is declared once, as a key of a table of [`settings!`](gargalo_settings::settings!): its name, its type,
//! its default, its valid values and its documentation; see [`Declared`]. Plug-ins declare theirs when they are loaded.

mod declared;
#[cfg(test)]
mod tests;

use gargalo_units::{Duration, ParseError, nearest, parse};

pub use declared::{Declared, NoParams};

/// A parameter value as given by a user.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// A number without a unit.
    Number(f64),
    /// `true` or `false`.
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
    /// Adds a parameter that was not given.
    pub fn complete(&mut self, name: &str, value: &ParamValue) {
        if self.0.iter().all(|(key, _)| key != name) {
            self.push(name, value.clone());
        }
    }
    /// Adds the parameters of another set that were not given.
    pub fn complete_with(&mut self, others: &Self) {
        for (name, value) in others.iter() {
            self.complete(name, value);
        }
    }
    /// The given parameters, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ParamValue)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v))
    }
}

impl FromIterator<(String, ParamValue)> for Params {
    fn from_iter<I: IntoIterator<Item = (String, ParamValue)>>(it: I) -> Self {
        Self(it.into_iter().collect())
    }
}

/// The valid values of a parameter, and its published default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// A number within an inclusive range.
    Number {
        /// Value of the parameter if it is not given.
        default: f64,
        /// Least valid value.
        min: f64,
        /// Greatest valid value.
        max: f64,
        /// Only whole numbers.
        integer: bool,
    },
    /// A switch: `true` or `false`.
    Bool {
        /// Value of the parameter if it is not given.
        default: bool,
    },
    /// One of a few names.
    Choice {
        /// Name that applies if none is given.
        default: &'static str,
        /// All valid names, in the order of declaration.
        choices: &'static [&'static str],
    },
    /// A span of time, given as text with its unit, within an inclusive range.
    Duration {
        /// Value of the parameter if it is not given.
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
    /// Description, with the unit and the symbol in the source, without a full stop at the end.
    pub doc: &'static str,
    /// Default and valid values.
    pub kind: ParamKind,
}

impl Param {
    /// The default, as a user would write it.
    pub fn default_value(&self) -> ParamValue {
        match self.kind {
            ParamKind::Number { default, .. } => ParamValue::Number(default),
            ParamKind::Bool { default } => ParamValue::Bool(default),
            ParamKind::Choice { default, .. } => ParamValue::Text(default.to_owned()),
            ParamKind::Duration { default, .. } => ParamValue::Text(default.to_string()),
        }
    }

    /// The default as a value that fits.
    fn default_checked(&self) -> Checked {
        match self.kind {
            ParamKind::Number { default, .. } => Checked::Number(default),
            ParamKind::Bool { default } => Checked::Bool(default),
            ParamKind::Choice { default, .. } => Checked::Choice(default),
            ParamKind::Duration { default, .. } => Checked::Duration(default),
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

    /// Whether `value`, given to `algorithm`, fits.
    fn check(&self, algorithm: &'static str, value: &ParamValue) -> Result<Checked, BuildError> {
        let invalid = |nearest| BuildError::InvalidValue {
            algorithm,
            param: self.name,
            value: value.clone(),
            valid: self.valid(),
            nearest,
        };
        match (self.kind, value) {
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
                let chosen = choices.iter().find(|c| *c == t);
                chosen
                    .map(|c| Checked::Choice(c))
                    .ok_or_else(|| invalid(nearest(t, choices.iter().copied())))
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
                        param: self.name,
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
        /// Name of the algorithm that was to be built.
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
        /// Name of the algorithm that was to be built.
        algorithm: &'static str,
        /// Name of the repeated parameter.
        param: &'static str,
    },
    /// The value is of the wrong type or out of range.
    #[error("{algorithm}: {param} = {value} is not valid: it must be {valid}{}",
        did_you_mean(.nearest))]
    InvalidValue {
        /// Name of the algorithm that was to be built.
        algorithm: &'static str,
        /// Name of the parameter with the value.
        param: &'static str,
        /// The value given.
        value: ParamValue,
        /// The valid values, in words.
        valid: String,
        /// The closest valid name, for choices.
        nearest: Option<&'static str>,
    },
    /// Values do not go together.
    #[error("{algorithm}: {source}")]
    Setting {
        /// Name of the algorithm that was to be built.
        algorithm: &'static str,
        /// What is wrong with them.
        source: gargalo_settings::Error,
    },
    /// The value is not a quantity with a unit.
    #[error("{algorithm}: {param}: {source}")]
    Quantity {
        /// Name of the algorithm that was to be built.
        algorithm: &'static str,
        /// Name of the parameter with the value.
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

/// A value that fits its parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Checked {
    /// Value of a [`ParamKind::Number`], within its range.
    Number(f64),
    /// Value of a [`ParamKind::Bool`].
    Bool(bool),
    /// Value of a [`ParamKind::Choice`], one of its names.
    Choice(&'static str),
    /// Value of a [`ParamKind::Duration`], within its range.
    Duration(Duration),
}

/// What was given to `algorithm`, whose parameters are `table`: each parameter with its checked value.
///
/// # Errors
/// The first parameter that is unknown, repeated or invalid.
pub fn checked(
    table: &'static [Param],
    algorithm: &'static str,
    given: &Params,
) -> Result<Vec<(&'static Param, Checked)>, BuildError> {
    let mut values: Vec<(&'static Param, Checked)> = Vec::new();
    for (name, value) in given.iter() {
        let Some(param) = table.iter().find(|p| p.name == name) else {
            let known: Vec<_> = table.iter().map(|p| p.name).collect();
            return Err(BuildError::UnknownParam {
                algorithm,
                name: name.to_owned(),
                nearest: nearest(name, known.iter().copied()),
                known,
            });
        };
        if values.iter().any(|(earlier, _)| earlier.name == param.name) {
            return Err(BuildError::Repeated {
                algorithm,
                param: param.name,
            });
        }
        values.push((param, param.check(algorithm, value)?));
    }
    Ok(values)
}
