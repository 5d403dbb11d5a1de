//! Parameters that are declared with `settings!`: their list, from the schema, and their values.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use gargalo_settings::support::{Keyed, Map};
use gargalo_settings::{Files, Json, Schemas, number, settings};
use gargalo_units::Duration;

use super::{BuildError, Checked, Param, ParamKind, Params, checked};

/// The parameters of an algorithm, declared with [`settings!`](gargalo_settings::settings!).
///
/// ```
/// use gargalo_cc::params::Declared;
/// use gargalo_settings::settings;
/// use gargalo_units::Duration;
///
/// settings! {
///     /// Parameters of an example.
///     pub struct ExampleParams: Copy as "Example", const {
///         /// Window kept after a loss, as a fraction (RFC 5681: 0.5).
///         beta: f64 = 0.7, in 0.01..=0.99;
///         /// Longest wait.
///         wait: Duration = Duration::from_millis(10), in Duration::ZERO..=Duration::from_secs(1);
///         /// Whether to wait at all.
///         waits: bool = true;
///     }
///     with {
///         /// The parameters that all window-based algorithms have.
///         window: gargalo_cc::WindowParams = gargalo_cc::WindowParams::DEFAULT;
///     }
/// }
/// let given = gargalo_cc::Params::new().with("wait", "20ms");
/// let params = ExampleParams::from_params("example", &given).unwrap();
/// assert_eq!((params.beta, params.wait), (0.7, Duration::from_millis(20)));
/// assert_eq!(ExampleParams::params()[0].doc, "Window kept after a loss, as a fraction (RFC 5681: 0.5)");
/// ```
///
/// A parameter is a number (`f64`, `u32`, `u64`, `usize`) or a `Duration`, both with a range from least to most, a
/// `bool`, or an enum of [`names!`](gargalo_settings::names!).
pub trait Declared: Keyed + Default + Clone + Send + 'static {
    /// All parameters in the order of declaration, those of included tables after the own.
    fn params() -> &'static [Param] {
        static KNOWN: Mutex<BTreeMap<TypeId, &'static [Param]>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .entry(TypeId::of::<Self>())
            .or_insert_with(|| Box::leak(list::<Self>().into()))
    }

    /// The defaults with what was given to `algorithm`.
    ///
    /// # Errors
    /// The first parameter that is unknown, repeated or invalid.
    fn from_params(algorithm: &'static str, given: &Params) -> Result<Self, BuildError> {
        if let Some(read) = read_before(given) {
            return Ok(read);
        }
        let mut table = Map::new();
        for (param, value) in checked(Self::params(), algorithm, given)? {
            if value != param.default_checked() {
                table.insert(param.name.to_owned(), json(value));
            }
        }
        let read = if table.is_empty() {
            Self::default()
        } else {
            Self::take(&table, &mut Files::default())
                .map_err(|source| BuildError::Setting { algorithm, source })?
        };
        keep_read(given, &read);
        Ok(read)
    }
}

impl<T: Keyed + Default + Clone + Send + 'static> Declared for T {}

/// For each type the last parameters given and what they were read to: thousands of short connections share them.
static READ: Mutex<BTreeMap<TypeId, Read>> = Mutex::new(BTreeMap::new());
type Read = (Params, Box<dyn Any + Send>);

/// What [`Declared::from_params`] gave the last time, if the same was given.
fn read_before<T: Declared>(given: &Params) -> Option<T> {
    let read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let (params, value) = read.get(&TypeId::of::<T>())?;
    (params == given).then(|| value.downcast_ref().cloned())?
}

fn keep_read<T: Declared>(given: &Params, value: &T) {
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    read.insert(TypeId::of::<T>(), (given.clone(), Box::new(value.clone())));
}

settings! {
    /// The parameters of an algorithm that has none.
    pub struct NoParams: Copy as "NoParams", const {}
}

/// A value as settings have it.
fn json(value: Checked) -> Json {
    match value {
        Checked::Number(n) => number(n),
        Checked::Bool(b) => b.into(),
        Checked::Choice(name) => name.into(),
        Checked::Duration(d) => d.to_string().into(),
    }
}

/// The parameters that are the keys of a table.
fn list<T: Keyed>() -> Vec<Param> {
    let mut schemas = Schemas::default();
    let table = T::schema(&mut schemas);
    let properties = &schemas.target(&table)["properties"];
    let keys = T::keys();
    let all: Vec<Param> = keys
        .iter()
        .filter_map(|name| param(name, &properties[*name]))
        .collect();
    debug_assert_eq!(all.len(), keys.len(), "a key of another type: {keys:?}");
    all
}

/// The parameter of this schema; `None` if its type is none of a parameter.
fn param(name: &'static str, schema: &Json) -> Option<Param> {
    let default = &schema["default"];
    let kind = if let Some(words) = schema["oneOf"].as_array() {
        let words: Vec<&'static str> = words
            .iter()
            .filter_map(|w| w["const"].as_str())
            .map(kept)
            .collect();
        ParamKind::Choice {
            default: words.iter().find(|w| default == **w)?,
            choices: Box::leak(words.into()),
        }
    } else if schema["format"] == "duration" {
        let duration = |json: &Json| json.as_str()?.parse::<Duration>().ok();
        ParamKind::Duration {
            default: duration(default)?,
            min: duration(&schema["formatMinimum"])?,
            max: duration(&schema["formatMaximum"])?,
        }
    } else if let Some(default) = default.as_bool() {
        ParamKind::Bool { default }
    } else {
        ParamKind::Number {
            default: default.as_f64()?,
            min: schema["minimum"].as_f64()?,
            max: schema["maximum"].as_f64()?,
            integer: schema["type"] == "integer",
        }
    };
    let doc = schema["description"].as_str()?.replace('\n', " ");
    let doc = kept(doc.trim_end_matches('.'));
    Some(Param { name, doc, kind })
}

/// A text of a declaration, of which there are few.
fn kept(text: &str) -> &'static str {
    Box::leak(text.into())
}
