//! Which methods a congestion control written in Python has, and what is checked before its first call.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::answers::name_of;
use crate::window::Window;

/// Whose method a class has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// That of `gargalo.Controller`, which does nothing and is not called.
    Base,
    /// That of `gargalo.WindowBased`, which needs no interpreter.
    Window,
    /// One that the class defines itself.
    Class,
}

/// The methods of a class: only its own are called.
#[derive(Clone, Copy, Debug)]
pub struct Methods {
    pub on_send: Whose,
    pub on_ack: Whose,
    pub on_loss: Whose,
    pub on_spurious: Whose,
    pub on_recovered: Whose,
    pub on_established: Whose,
    pub on_mss: Whose,
    pub cwnd: Whose,
    pub ssthresh: Whose,
    pub pacing_rate: Whose,
    pub send_quantum: Whose,
    pub governs_recovery: Whose,
    pub phase: Whose,
    pub gauges: Whose,
    /// Acknowledgements are reported once a round trip.
    pub by_round: bool,
}

impl Methods {
    /// Those of the class of an object, which is checked.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let base = py
            .import("gargalo.plugins.controller")?
            .getattr("Controller")?;
        let class = object.get_type();
        if !class.is_subclass(&base)? {
            return Err(PyTypeError::new_err(format!(
                "{} is not a gargalo.Controller; derive the class from it",
                name_of(&class)
            )));
        }
        let window = py.get_type::<Window>();
        let whose = |method: &str| -> PyResult<Whose> {
            let own = class.getattr(method)?;
            if own.is(&base.getattr(method)?) {
                return Ok(Whose::Base);
            }
            let native = window.getattr_opt(method)?;
            Ok(if native.is_some_and(|m| own.is(&m)) {
                Whose::Window
            } else {
                Whose::Class
            })
        };
        for method in ["on_ack", "on_congestion", "cwnd"] {
            if whose(method)? == Whose::Base {
                return Err(PyTypeError::new_err(format!(
                    "{} must define {method}()",
                    name_of(&class)
                )));
            }
        }
        let methods = Self {
            on_send: whose("on_send")?,
            on_ack: whose("on_ack")?,
            on_loss: whose("on_loss")?,
            on_spurious: whose("on_spurious")?,
            on_recovered: whose("on_recovered")?,
            on_established: whose("on_established")?,
            on_mss: whose("on_mss")?,
            cwnd: whose("cwnd")?,
            ssthresh: whose("ssthresh")?,
            pacing_rate: whose("pacing_rate")?,
            send_quantum: whose("send_quantum")?,
            governs_recovery: whose("governs_recovery")?,
            phase: whose("phase")?,
            gauges: whose("gauges")?,
            by_round: by_round(object)?,
        };
        if let Ok(window) = object.cast::<Window>() {
            methods.check_window(window)?;
        }
        Ok(methods)
    }

    /// What a window-based class must and cannot define.
    fn check_window(&self, window: &Bound<'_, Window>) -> PyResult<()> {
        let class = name_of(&window.get_type());
        let increase = Window::defines(window, "increase")?;
        let segments = Window::defines(window, "segments_per_round")?;
        let error = match (increase, segments) {
            (false, false) if self.on_ack == Whose::Window => {
                "must define increase() or segments_per_round()"
            }
            (true, true) => "defines increase() and segments_per_round(); only one can decide",
            _ if self.by_round && self.on_ack == Whose::Class => {
                "defines on_ack() and has ack_interval = \"round\"; slow start needs every \
                 acknowledgement: define increase() instead, or derive from gargalo.Controller"
            }
            _ => return Ok(()),
        };
        Err(PyTypeError::new_err(format!("{class} {error}")))
    }
}

/// Whether the class asks for acknowledgements once a round trip.
fn by_round(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let interval = object.getattr("ack_interval")?;
    match interval.extract::<&str>() {
        Ok("ack") => Ok(false),
        Ok("round") => Ok(true),
        _ => Err(PyValueError::new_err(format!(
            "{}.ack_interval is {}; it must be \"ack\" or \"round\"",
            name_of(&object.get_type()),
            interval.repr()?
        ))),
    }
}
