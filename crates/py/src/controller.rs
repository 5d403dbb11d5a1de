//! A congestion control written in Python as a [`gargalo_cc::Controller`].
//!
//! The interpreter lock is taken for each call, so only methods that the class overrides are called, and values that
//! the transport reads often (window, rate, …) are read once after each event. The first exception is kept in
//! [`Faults`]; from then on the controller does nothing, and the run is stopped at the next opportunity and raises
//! that exception.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gargalo_cc as cc;
use gargalo_flow::ControllerFactory;
use gargalo_units::{Bytes, Instant, Rate};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use rand::Rng;

use crate::records;

/// The first exception of a run's Python controllers.
#[derive(Debug, Default)]
pub struct Faults {
    raised: AtomicBool,
    first: Mutex<Option<PyErr>>,
}

impl Faults {
    /// Whether an exception was raised.
    pub fn raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Takes the exception.
    pub fn take(&self) -> Option<PyErr> {
        self.first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Keeps an exception if it is the first.
    pub(crate) fn put(&self, error: PyErr) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        self.raised.store(true, Ordering::Relaxed);
    }
}

/// Creates controllers from a Python class (or any callable that takes an `Init` and parameters).
#[derive(Debug)]
pub struct PyFactory {
    name: String,
    class: Py<PyAny>,
    params: cc::Params,
    faults: Arc<Faults>,
}

impl PyFactory {
    /// `class` is called once per flow and end.
    pub const fn new(
        name: String,
        class: Py<PyAny>,
        params: cc::Params,
        faults: Arc<Faults>,
    ) -> Self {
        Self {
            name,
            class,
            params,
            faults,
        }
    }
}

impl ControllerFactory for PyFactory {
    fn name(&self) -> &str {
        &self.name
    }

    fn build(&self, mut init: cc::Init) -> Result<Box<dyn cc::Controller>, String> {
        let seed = init.rng.next_u64();
        Python::attach(|py| {
            let kwargs = parameters(py, &self.params)?;
            let record = records::Init::from((&init, seed));
            let object = self.class.bind(py).call((record,), Some(&kwargs))?;
            PyController::new(&object, init.mss, Arc::clone(&self.faults))
        })
        .map(|c| Box::new(c) as Box<dyn cc::Controller>)
        .map_err(|e| {
            let text = e.to_string();
            // The exception is kept too: it contains more than its text.
            self.faults.put(e);
            text
        })
    }
}

/// Which methods a class overrides: only those are called.
#[derive(Clone, Copy, Debug)]
struct Overrides {
    on_send: bool,
    on_loss: bool,
    on_spurious: bool,
    on_recovered: bool,
    on_established: bool,
    on_mss: bool,
    ssthresh: bool,
    pacing_rate: bool,
    send_quantum: bool,
    governs_recovery: bool,
    phase: bool,
    gauges: bool,
}

impl Overrides {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let base = py.import("gargalo.controller")?.getattr("Controller")?;
        let class = object.get_type();
        if !class.is_subclass(&base)? {
            return Err(PyTypeError::new_err(format!(
                "{} is not a gargalo.Controller; derive the class from it",
                name_of(&class)
            )));
        }
        let has = |method: &str| -> PyResult<bool> {
            Ok(!class.getattr(method)?.is(&base.getattr(method)?))
        };
        for method in ["on_ack", "on_congestion", "cwnd"] {
            if !has(method)? {
                return Err(PyTypeError::new_err(format!(
                    "{} must define {method}()",
                    name_of(&class)
                )));
            }
        }
        Ok(Self {
            on_send: has("on_send")?,
            on_loss: has("on_loss")?,
            on_spurious: has("on_spurious")?,
            on_recovered: has("on_recovered")?,
            on_established: has("on_established")?,
            on_mss: has("on_mss")?,
            ssthresh: has("ssthresh")?,
            pacing_rate: has("pacing_rate")?,
            send_quantum: has("send_quantum")?,
            governs_recovery: has("governs_recovery")?,
            phase: has("phase")?,
            gauges: has("gauges")?,
        })
    }
}

/// The name of a class, for messages.
pub(crate) fn name_of(class: &Bound<'_, PyType>) -> String {
    class
        .name()
        .map_or_else(|_| "the class".to_owned(), |n| n.to_string())
}

/// Parameters of a scenario as keyword arguments.
pub(crate) fn parameters<'py>(
    py: Python<'py>,
    params: &cc::Params,
) -> PyResult<Bound<'py, PyDict>> {
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

/// The values that the transport reads, as of the last event.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    cwnd: Bytes,
    ssthresh: Option<Bytes>,
    pacing_rate: Option<Rate>,
    send_quantum: Option<Bytes>,
    governs_recovery: bool,
    phase: &'static str,
}

struct PyController {
    object: Py<PyAny>,
    overrides: Overrides,
    numbers: Numbers,
    mss: Bytes,
    faults: Arc<Faults>,
}

impl fmt::Debug for PyController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PyController")
            .field("numbers", &self.numbers)
            .finish_non_exhaustive()
    }
}

impl PyController {
    fn new(object: &Bound<'_, PyAny>, mss: Bytes, faults: Arc<Faults>) -> PyResult<Self> {
        let mut controller = Self {
            object: object.clone().unbind(),
            overrides: Overrides::of(object)?,
            numbers: Numbers {
                cwnd: mss,
                ssthresh: None,
                pacing_rate: None,
                send_quantum: None,
                governs_recovery: false,
                phase: "",
            },
            mss,
            faults,
        };
        controller.numbers = controller.read(object)?;
        Ok(controller)
    }

    /// Calls a method and reads the values again; on an exception, which is kept, they do not change.
    fn tell(
        &mut self,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) {
        if self.faults.raised() {
            return;
        }
        let result = Python::attach(|py| {
            let object = self.object.bind(py);
            call(object)?;
            self.read(object)
        });
        match result {
            Ok(numbers) => self.numbers = numbers,
            Err(e) => self.faults.put(e),
        }
    }

    fn read(&self, object: &Bound<'_, PyAny>) -> PyResult<Numbers> {
        let o = self.overrides;
        let bytes = |method: &str| -> PyResult<Option<Bytes>> {
            amount(object, method).map(|n| n.map(Bytes::from_f64))
        };
        let Some(cwnd) = bytes("cwnd")? else {
            let none = object.py().None().into_bound(object.py());
            return Err(wrong(object, "cwnd", &none, "a number of bytes"));
        };
        Ok(Numbers {
            cwnd: cwnd.max(self.mss),
            ssthresh: if o.ssthresh { bytes("ssthresh")? } else { None },
            pacing_rate: if o.pacing_rate {
                amount(object, "pacing_rate")?.map(Rate::from_bps_f64)
            } else {
                None
            },
            send_quantum: if o.send_quantum {
                bytes("send_quantum")?
            } else {
                None
            },
            governs_recovery: o.governs_recovery
                && answer(object, "governs_recovery", "True or False")?,
            phase: if o.phase {
                intern(&answer::<String>(object, "phase", "text")?)?
            } else {
                "congestion-avoidance"
            },
        })
    }
}

/// Calls a method without arguments and returns its result.
fn answer<'py, T: FromPyObjectOwned<'py>>(
    object: &Bound<'py, PyAny>,
    method: &str,
    expected: &str,
) -> PyResult<T> {
    let answer = object.call_method0(method)?;
    let value = answer.extract();
    value.map_err(|_| wrong(object, method, &answer, expected))
}

/// The error of a method that returned an invalid value.
pub(crate) fn wrong(
    object: &Bound<'_, PyAny>,
    method: &str,
    answer: &Bound<'_, PyAny>,
    expected: &str,
) -> PyErr {
    let message = returned(object, method, answer);
    PyTypeError::new_err(format!("{message}; it must be {expected}"))
}

/// `Class.method() returned …`, the beginning of the message about an invalid return value.
pub(crate) fn returned(
    object: &Bound<'_, PyAny>,
    method: &str,
    value: &Bound<'_, PyAny>,
) -> String {
    let value = value
        .repr()
        .map_or_else(|_| "something".to_owned(), |r| r.to_string());
    let class = name_of(&object.get_type());
    format!("{class}.{method}() returned {value}")
}

/// Calls a method that returns a non-negative number; `None` if it returns none.
fn amount(object: &Bound<'_, PyAny>, method: &str) -> PyResult<Option<f64>> {
    let expected = match method {
        "cwnd" => "a number of bytes",
        "pacing_rate" => "a number of bit/s, or None",
        _ => "a number of bytes, or None",
    };
    let Some(n) = answer::<Option<f64>>(object, method, expected)? else {
        return Ok(None);
    };
    if n.is_finite() && n >= 0.0 {
        Ok(Some(n))
    } else {
        Err(PyValueError::new_err(format!(
            "{}.{method}() returned {n}; it must be a finite number of 0 or more",
            name_of(&object.get_type())
        )))
    }
}

/// Makes a name live as long as the process, as results require; there are few distinct names.
fn intern(name: &str) -> PyResult<&'static str> {
    const MOST: usize = 1024;
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return Ok(known);
    }
    if names.len() == MOST {
        return Err(PyValueError::new_err(format!(
            "\"{name}\" is one phase or gauge too many: more than {MOST} different names; \
             put changing quantities into the values of gauges()"
        )));
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    Ok(kept)
}

impl cc::Controller for PyController {
    fn on_send(&mut self, sent: &cc::Sent, path: &cc::Path<'_>) {
        if self.overrides.on_send {
            self.mss = path.mss;
            let args = (records::Sent::from(sent), records::Path::from(path));
            self.tell(|o| o.call_method1("on_send", args));
        }
    }

    fn on_ack(&mut self, ack: &cc::Acked, path: &cc::Path<'_>) {
        self.mss = path.mss;
        let args = (records::Acked::from(ack), records::Path::from(path));
        self.tell(|o| o.call_method1("on_ack", args));
    }

    fn on_loss(&mut self, lost: &cc::Lost, path: &cc::Path<'_>) {
        if self.overrides.on_loss {
            self.mss = path.mss;
            let args = (records::Lost::from(lost), records::Path::from(path));
            self.tell(|o| o.call_method1("on_loss", args));
        }
    }

    fn on_congestion(&mut self, event: &cc::Congestion, path: &cc::Path<'_>) {
        self.mss = path.mss;
        let args = (records::Congestion::from(event), records::Path::from(path));
        self.tell(|o| o.call_method1("on_congestion", args));
    }

    fn on_spurious(&mut self, event: &cc::Spurious, path: &cc::Path<'_>) {
        if self.overrides.on_spurious {
            self.mss = path.mss;
            let args = (records::Spurious::from(event), records::Path::from(path));
            self.tell(|o| o.call_method1("on_spurious", args));
        }
    }

    fn on_recovered(&mut self, now: Instant, path: &cc::Path<'_>) {
        if self.overrides.on_recovered {
            self.mss = path.mss;
            let args = (now.as_secs_f64(), records::Path::from(path));
            self.tell(|o| o.call_method1("on_recovered", args));
        }
    }

    fn on_established(&mut self, window: Bytes, path: &cc::Path<'_>) {
        if !self.overrides.on_established {
            self.on_mss(path);
            return;
        }
        self.mss = path.mss;
        self.numbers.cwnd = self.numbers.cwnd.max(path.mss);
        let args = (window.get(), records::Path::from(path));
        self.tell(|o| o.call_method1("on_established", args));
    }

    fn on_mss(&mut self, path: &cc::Path<'_>) {
        self.mss = path.mss;
        self.numbers.cwnd = self.numbers.cwnd.max(path.mss);
        if self.overrides.on_mss {
            let args = (records::Path::from(path),);
            self.tell(|o| o.call_method1("on_mss", args));
        }
    }

    fn cwnd(&self) -> Bytes {
        self.numbers.cwnd
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.numbers.ssthresh
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.numbers.pacing_rate
    }

    fn send_quantum(&self) -> Option<Bytes> {
        self.numbers.send_quantum
    }

    fn governs_recovery(&self) -> bool {
        self.numbers.governs_recovery
    }

    /// Decided by the threshold, if the class has one (none is infinite); otherwise by the phase's name.
    fn in_slow_start(&self) -> bool {
        let n = &self.numbers;
        if self.overrides.ssthresh {
            n.ssthresh.is_none_or(|s| n.cwnd < s)
        } else {
            matches!(n.phase, "slow-start" | "startup")
        }
    }

    fn phase(&self) -> &'static str {
        self.numbers.phase
    }

    fn gauges(&self, out: &mut Vec<(&'static str, f64)>) {
        if !self.overrides.gauges || self.faults.raised() {
            return;
        }
        let read = Python::attach(|py| -> PyResult<Vec<_>> {
            let object = self.object.bind(py);
            let answer = object.call_method0("gauges")?;
            let wrong = || {
                wrong(
                    object,
                    "gauges",
                    &answer,
                    "a dictionary of names and numbers",
                )
            };
            let gauges = answer.cast::<PyDict>().map_err(|_| wrong())?;
            gauges
                .iter()
                .map(|(name, value)| {
                    let name = name.extract::<String>().map_err(|_| wrong())?;
                    let value = value.extract::<f64>().map_err(|_| wrong())?;
                    Ok((intern(&name)?, value))
                })
                .collect()
        });
        match read {
            Ok(gauges) => out.extend(gauges),
            Err(e) => self.faults.put(e),
        }
    }

    fn clone_box(&self) -> Box<dyn cc::Controller> {
        let copy = Python::attach(|py| {
            let copy = py.import("copy")?.getattr("deepcopy")?;
            Ok(copy.call1((self.object.bind(py),))?.unbind())
        });
        let object = copy.unwrap_or_else(|e| {
            // The run stops at once, so sharing the object does no harm.
            self.faults.put(e);
            Python::attach(|py| self.object.clone_ref(py))
        });
        Box::new(Self {
            object,
            overrides: self.overrides,
            numbers: self.numbers,
            mss: self.mss,
            faults: Arc::clone(&self.faults),
        })
    }
}
