//! The table of a library: read, checked and copied.

use std::ffi::{CStr, c_char};

use gargalo_cc::params::{BuildError, Checked, checked};
use gargalo_cc::{Param, ParamKind, Params};
use gargalo_plugin::congestion::abi;
use gargalo_units::Duration;

use crate::calls::Callee;
use crate::library::{Library, LoadError, Read};

/// Most algorithms of a library, parameters of an algorithm and bytes of a text; more is a mistake.
const MOST_ALGORITHMS: u32 = 1000;
const MOST_PARAMETERS: u32 = 1000;
const LONGEST: usize = 4096;

/// The functions of an algorithm, as [`Callee`] numbers them.
pub(super) mod function {
    pub(in super::super) const CREATE: usize = 0;
    pub(in super::super) const DESTROY: usize = 1;
    pub(in super::super) const CLONE: usize = 2;
    pub(in super::super) const ON_ACK: usize = 3;
    pub(in super::super) const ON_CONGESTION: usize = 4;
    pub(in super::super) const ON_SEND: usize = 5;
    pub(in super::super) const ON_LOSS: usize = 6;
    pub(in super::super) const ON_SPURIOUS: usize = 7;
    pub(in super::super) const ON_RECOVERED: usize = 8;
    pub(in super::super) const ON_ESTABLISHED: usize = 9;
    pub(in super::super) const ON_MSS: usize = 10;
    pub(in super::super) const HALVE: usize = 11;
    pub(in super::super) const GAUGES: usize = 12;
    pub(in super::super) const NAMES: [&str; 13] = [
        "create",
        "destroy",
        "clone",
        "on_ack",
        "on_congestion",
        "on_send",
        "on_loss",
        "on_spurious",
        "on_recovered",
        "on_established",
        "on_mss",
        "halve",
        "gauges",
    ];
}

/// The functions that each algorithm has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Required {
    pub(super) create: unsafe extern "C" fn(
        *const std::ffi::c_void,
        *const abi::Init,
        *mut abi::State,
    ) -> *mut std::ffi::c_void,
    pub(super) destroy: unsafe extern "C" fn(*mut std::ffi::c_void),
    pub(super) clone:
        unsafe extern "C" fn(*const std::ffi::c_void, *const abi::Host) -> *mut std::ffi::c_void,
    pub(super) on_ack: abi::On<abi::Acked>,
    pub(super) on_congestion: abi::On<abi::Congestion>,
}

/// A congestion control of a library.
#[derive(Debug)]
pub struct Algorithm {
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    params: &'static [Param],
    library: &'static Library,
    pub(super) required: Required,
    pub(super) table: &'static abi::Algorithm,
    pub(super) callee: &'static Callee,
}

impl Algorithm {
    /// Its name in scenarios.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// One line about it.
    pub const fn summary(&self) -> &'static str {
        self.summary
    }

    /// Where it is specified, or nothing.
    pub const fn source(&self) -> &'static str {
        self.source
    }

    /// Its parameters, in the order of the library's table.
    pub const fn params(&self) -> &'static [Param] {
        self.params
    }

    /// The file that it is from.
    pub const fn file(&self) -> &'static str {
        self.callee.file
    }

    /// The library that it is from.
    pub const fn library(&self) -> &'static Library {
        self.library
    }

    /// The values of all parameters, as its `create` takes them.
    pub(super) fn values(&self, given: &Params) -> Result<Vec<f64>, BuildError> {
        let mut values: Vec<f64> = self.params.iter().map(default_value).collect();
        for (param, value) in checked(self.params, self.name, given)? {
            let at = self.params.iter().position(|p| p.name == param.name);
            if let Some(slot) = at.and_then(|i| values.get_mut(i)) {
                *slot = number(param, value);
            }
        }
        Ok(values)
    }
}

/// A value as plug-ins take it.
fn number(param: &Param, value: Checked) -> f64 {
    match (param.kind, value) {
        (_, Checked::Number(n)) => n,
        (_, Checked::Bool(b)) => f64::from(u8::from(b)),
        (ParamKind::Choice { choices, .. }, Checked::Choice(chosen)) => choices
            .iter()
            .position(|c| *c == chosen)
            .map_or(f64::NAN, |i| i as f64),
        (_, Checked::Choice(_)) => f64::NAN,
        (_, Checked::Duration(d)) => d.as_nanos() as f64,
    }
}

fn default_value(param: &Param) -> f64 {
    let default = match param.kind {
        ParamKind::Number { default, .. } => Checked::Number(default),
        ParamKind::Bool { default } => Checked::Bool(default),
        ParamKind::Choice { default, .. } => Checked::Choice(default),
        ParamKind::Duration { default, .. } => Checked::Duration(default),
    };
    number(param, default)
}

/// The congestion controls of a library.
#[derive(Clone, Debug)]
pub struct Plugin {
    library: &'static Library,
    algorithms: Vec<&'static Algorithm>,
}

impl Plugin {
    /// The congestion controls of a library; `None`: it exports none.
    ///
    /// # Errors
    /// When it was made for another version of the interface, or its table is not valid.
    pub fn of(library: &'static Library) -> Result<Option<Self>, LoadError> {
        static PLUGINS: Read<Option<Plugin>> = Read::new();
        PLUGINS.of(library, || {
            // SAFETY: in every version the function of this name takes nothing and returns a pointer.
            match unsafe { library.function(abi::SYMBOL) } {
                Ok(entry) => Self::read(library, entry).map(Some),
                Err(LoadError::NoSymbol { .. }) => Ok(None),
                Err(e) => Err(e),
            }
        })
    }

    fn read(library: &'static Library, entry: abi::Entry) -> Result<Self, LoadError> {
        // SAFETY: the function takes nothing; a plug-in answers for the rest by exporting it.
        let table = unsafe { entry() };
        let reader = Reader {
            file: library.file(),
            library,
        };
        let file = reader.file;
        if table.is_null() || !table.is_aligned() {
            return Err(reader.invalid("gargalo_congestion_v1() returned no table"));
        }
        // SAFETY: every version of the table begins with its version.
        let found = unsafe { (*table).abi };
        if found != abi::ABI {
            return Err(LoadError::Version {
                file: file.to_owned(),
                found,
                wanted: abi::ABI,
            });
        }
        // SAFETY: the version is right, so it is a table.
        let table = unsafe { &*table };
        if table.sizes != abi::SIZES {
            return Err(LoadError::Sizes {
                file: file.to_owned(),
                header: "congestion",
            });
        }
        let count = table.algorithm_count;
        if count == 0 || count > MOST_ALGORITHMS {
            return Err(reader.invalid(&format!("it has {count} algorithms")));
        }
        let mut algorithms: Vec<&'static Algorithm> = Vec::new();
        // SAFETY: the table says how many there are, and its sizes are those of this crate.
        for raw in unsafe { reader.slice(table.algorithms, count, "the list of algorithms")? } {
            let algorithm = reader.algorithm(raw)?;
            if algorithms.iter().any(|a| a.name == algorithm.name) {
                return Err(
                    reader.invalid(&format!("it has two algorithms \"{}\"", algorithm.name))
                );
            }
            algorithms.push(Box::leak(Box::new(algorithm)));
        }
        Ok(Self {
            library,
            algorithms,
        })
    }

    /// The library that exports the algorithms.
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// Its algorithms, in the order of its table.
    pub fn algorithms(&self) -> &[&'static Algorithm] {
        &self.algorithms
    }
}

/// Reads the parts of a table.
struct Reader {
    file: &'static str,
    library: &'static Library,
}

impl Reader {
    fn invalid(&self, what: &str) -> LoadError {
        LoadError::Invalid {
            file: self.file.to_owned(),
            what: what.to_owned(),
        }
    }

    /// # Safety
    /// `pointer` is null or points to `count` constants.
    unsafe fn slice<T>(
        &self,
        pointer: *const T,
        count: u32,
        what: &str,
    ) -> Result<&'static [T], LoadError> {
        if count == 0 {
            return Ok(&[]);
        }
        if pointer.is_null() {
            return Err(self.invalid(&format!("{what} is NULL")));
        }
        // SAFETY: the caller answers for the pointer.
        Ok(unsafe { std::slice::from_raw_parts(pointer, count as usize) })
    }

    fn text(&self, pointer: *const c_char, what: &str) -> Result<&'static str, LoadError> {
        if pointer.is_null() {
            return Err(self.invalid(&format!("{what} is NULL")));
        }
        // SAFETY: a text of a table is a constant that ends in a zero.
        let text = unsafe { CStr::from_ptr(pointer) };
        if text.count_bytes() > LONGEST {
            return Err(self.invalid(&format!("{what} is longer than {LONGEST} bytes")));
        }
        let text = text.to_str();
        text.map_err(|_| self.invalid(&format!("{what} is not UTF-8 text")))
    }

    fn algorithm(&self, raw: &'static abi::Algorithm) -> Result<Algorithm, LoadError> {
        let name = self.text(raw.name, "the name of an algorithm")?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(self.invalid(&format!(
                "\"{name}\" cannot be the name of an algorithm: use letters, digits and hyphens"
            )));
        }
        let lacks = |function: &str| self.invalid(&format!("{name}: {function} is NULL"));
        let required = Required {
            create: raw.create.ok_or_else(|| lacks("create"))?,
            destroy: raw.destroy.ok_or_else(|| lacks("destroy"))?,
            clone: raw.clone.ok_or_else(|| lacks("clone"))?,
            on_ack: raw.on_ack.ok_or_else(|| lacks("on_ack"))?,
            on_congestion: raw.on_congestion.ok_or_else(|| lacks("on_congestion"))?,
        };
        if raw.parameter_count > MOST_PARAMETERS {
            let count = raw.parameter_count;
            return Err(self.invalid(&format!("{name}: it has {count} parameters")));
        }
        let what = format!("{name}: the list of parameters");
        // SAFETY: the table says how many there are.
        let raw_params = unsafe { self.slice(raw.parameters, raw.parameter_count, &what)? };
        let mut params: Vec<Param> = Vec::new();
        for raw in raw_params {
            let param = self.param(name, raw)?;
            if params.iter().any(|p| p.name == param.name) {
                let what = format!("{name}: it has two parameters \"{}\"", param.name);
                return Err(self.invalid(&what));
            }
            params.push(param);
        }
        Ok(Algorithm {
            name,
            summary: self.text(raw.summary, &format!("{name}: its summary"))?,
            source: self.text(raw.source, &format!("{name}: its source"))?,
            params: params.leak(),
            library: self.library,
            required,
            table: raw,
            callee: Callee::new(self.file, name, &function::NAMES),
        })
    }

    fn param(&self, algorithm: &str, raw: &'static abi::Parameter) -> Result<Param, LoadError> {
        let name = self.text(raw.name, &format!("{algorithm}: the name of a parameter"))?;
        let what = format!("{algorithm}: parameter \"{name}\"");
        let (default, min, max) = (raw.default_value, raw.minimum, raw.maximum);
        let wrong = |why: &str| self.invalid(&format!("{what}: {why}"));
        let in_range = || match min.is_finite() && max.is_finite() && (min..=max).contains(&default)
        {
            true => Ok(()),
            false => Err(wrong(
                "its default must be in its range, which must be finite",
            )),
        };
        let kind = match raw.kind {
            abi::kind::NUMBER | abi::kind::INTEGER => {
                in_range()?;
                ParamKind::Number {
                    default,
                    min,
                    max,
                    integer: raw.kind == abi::kind::INTEGER,
                }
            }
            abi::kind::SWITCH => ParamKind::Bool {
                default: default != 0.0,
            },
            abi::kind::CHOICE => {
                let all = self.text(raw.choices, &format!("{what}: its choices"))?;
                let choices: Vec<&'static str> = all.split(',').map(str::trim).collect();
                let chosen = choices.get(default as usize).copied();
                let default =
                    chosen.ok_or_else(|| wrong("its default must be the number of a choice"))?;
                ParamKind::Choice {
                    default,
                    choices: choices.leak(),
                }
            }
            abi::kind::DURATION => {
                in_range()?;
                if min < 0.0 {
                    return Err(wrong("a duration is not negative"));
                }
                let span = |n: f64| Duration::from_nanos(n as u64);
                ParamKind::Duration {
                    default: span(default),
                    min: span(min),
                    max: span(max),
                }
            }
            other => return Err(wrong(&format!("there is no kind {other}"))),
        };
        Ok(Param {
            name,
            doc: self.text(raw.doc, &format!("{what}: its line"))?,
            kind,
        })
    }
}
