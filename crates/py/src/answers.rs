//! What methods of Python classes return, checked; and the errors that name class, method and value.

use gargalo_cc as cc;
use gargalo_native::names;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

/// The name of a class, for messages.
pub fn name_of(class: &Bound<'_, PyType>) -> String {
    class
        .name()
        .map_or_else(|_| "the class".to_owned(), |n| n.to_string())
}

/// Parameters of a scenario as keyword arguments.
pub fn parameters<'py>(py: Python<'py>, params: &cc::Params) -> PyResult<Bound<'py, PyDict>> {
    let kwargs = PyDict::new(py);
    for (name, value) in params.iter() {
        match value {
            cc::ParamValue::Number(n) => kwargs.set_item(name, n)?,
            cc::ParamValue::Bool(b) => kwargs.set_item(name, b)?,
            cc::ParamValue::Text(t) => kwargs.set_item(name, t)?,
        }
    }
    Ok(kwargs)
}

/// What a number must be, for messages.
pub const BYTES: &str = "a number of bytes";
/// A number that may be missing.
pub const MAYBE_BYTES: &str = "a number of bytes, or None";
/// A rate that may be missing.
pub const MAYBE_RATE: &str = "a number of bit/s, or None";

/// Calls a method without arguments that returns a non-negative number; `None` if it returns none.
pub fn amount(
    object: &Bound<'_, PyAny>,
    method: &Bound<'_, PyString>,
    expected: &str,
) -> PyResult<Option<f64>> {
    let answer = object.call_method0(method)?;
    let Ok(number) = answer.extract::<Option<f64>>() else {
        return Err(wrong(object, &method.to_string(), &answer, expected));
    };
    match number {
        Some(n) => not_negative(object, method, n).map(Some),
        None => Ok(None),
    }
}

/// The number that a method returned, if it is finite and not negative.
pub fn not_negative(
    object: &Bound<'_, PyAny>,
    method: &Bound<'_, PyString>,
    n: f64,
) -> PyResult<f64> {
    if n.is_finite() && n >= 0.0 {
        return Ok(n);
    }
    Err(PyValueError::new_err(format!(
        "{}.{method}() returned {n}; it must be a finite number of 0 or more",
        name_of(&object.get_type())
    )))
}

/// The error of a method that returned an invalid value.
pub fn wrong(
    object: &Bound<'_, PyAny>,
    method: &str,
    answer: &Bound<'_, PyAny>,
    expected: &str,
) -> PyErr {
    let message = returned(object, method, answer);
    PyTypeError::new_err(format!("{message}; it must be {expected}"))
}

/// `Class.method() returned …`, the beginning of the message about an invalid return value.
pub fn returned(object: &Bound<'_, PyAny>, method: &str, value: &Bound<'_, PyAny>) -> String {
    let value = value
        .repr()
        .map_or_else(|_| "something".to_owned(), |r| r.to_string());
    let class = name_of(&object.get_type());
    format!("{class}.{method}() returned {value}")
}

/// Makes a name live as long as the process, as results require; there are few distinct names.
pub fn keep(name: &str) -> PyResult<&'static str> {
    names::keep(name).map_err(|e| PyValueError::new_err(e.to_string()))
}
