//! The window that `gargalo.WindowBased` is made of: [`gargalo_cc::Window`] as a Python class to derive from.
//!
//! Slow start, growth, reductions, undo and restart after idle times are those of the built-in algorithms. A class in
//! Python is called only for what it decides: how the window grows in congestion avoidance and how far it falls.

use gargalo_cc as cc;
use gargalo_units::{Bytes, Instant};
use pyo3::exceptions::{PyAttributeError, PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use rand_pcg::Pcg64;

use crate::answers::{BYTES, name_of, not_negative, wrong};
use crate::records::{Acked, Congestion, Path, Sent, Spurious};

/// The congestion window of a class derived from `gargalo.WindowBased`.
#[pyclass(subclass, module = "gargalo._core")]
#[derive(Debug, Default)]
pub struct Window {
    /// `None` until `__init__` was called.
    window: Option<cc::Window>,
    /// Whether the class defines `segments_per_round`.
    by_round: bool,
    /// Segments that congestion avoidance adds in this round trip; `None`: not known yet.
    segments: Option<f64>,
}

impl Window {
    fn get<'a>(slf: &'a PyRef<'_, Self>) -> PyResult<&'a cc::Window> {
        slf.window.as_ref().ok_or_else(no_init)
    }

    fn get_mut(&mut self) -> PyResult<&mut cc::Window> {
        self.window.as_mut().ok_or_else(no_init)
    }

    /// Window, threshold and phase.
    #[inline]
    pub fn numbers(&self) -> PyResult<(Bytes, Option<Bytes>, &'static str)> {
        let w = self.window.as_ref().ok_or_else(no_init)?;
        Ok((w.cwnd(), w.ssthresh(), w.phase()))
    }

    /// Takes half of the window, see [`cc::Controller::halve`].
    pub fn halve(&mut self) -> PyResult<()> {
        self.get_mut()?.halve();
        Ok(())
    }

    /// A packet is about to leave.
    pub fn sent(&mut self, sent: &cc::Sent) -> PyResult<()> {
        self.get_mut()?.on_send(sent);
        Ok(())
    }

    /// Recovery has ended.
    pub fn recovered(&mut self) -> PyResult<()> {
        self.get_mut()?.on_recovered();
        Ok(())
    }

    /// Grows the window in slow start and returns the acknowledged bytes that are left for congestion avoidance.
    #[inline]
    pub fn slow_start(slf: &Bound<'_, Self>, ack: &cc::Acked) -> PyResult<Bytes> {
        let limited = {
            let mut this = slf.try_borrow_mut()?;
            if ack.round_start {
                this.segments = None;
            }
            let window = this.get_mut()?;
            if !window.in_slow_start() {
                return Ok(window.slow_start(ack));
            }
            ack.cwnd_limited && !ack.in_recovery
        };
        let limit = if limited { Some(abc_limit(slf)?) } else { None };
        let mut this = slf.try_borrow_mut()?;
        let window = this.get_mut()?;
        if let Some(limit) = limit {
            window.set_abc_limit(limit);
        }
        Ok(window.slow_start(ack))
    }

    /// Congestion avoidance for `left` bytes: by `segments_per_round`, if the class defines it; otherwise `increase` is
    /// called with `left` and the records.
    #[inline]
    pub fn avoid<'py>(
        slf: &Bound<'py, Self>,
        left: Bytes,
        records: impl FnOnce() -> PyResult<(Bound<'py, Acked>, Bound<'py, Path>)>,
    ) -> PyResult<()> {
        let py = slf.py();
        let known = {
            let this = slf.try_borrow()?;
            this.by_round.then_some(this.segments)
        };
        let segments = match known {
            None => {
                let (ack, path) = records()?;
                slf.call_method1(intern!(py, "increase"), (left.get(), ack, path))?;
                return Ok(());
            }
            Some(Some(segments)) => segments,
            Some(None) => {
                let method = intern!(py, "segments_per_round");
                let (_, path) = records()?;
                let answer = slf.call_method1(method, (path,))?;
                let segments = number(slf, method, &answer, "a number of segments")?;
                not_negative(slf, method, segments)?
            }
        };
        let mut this = slf.try_borrow_mut()?;
        this.segments = Some(segments);
        let window = this.get_mut()?;
        // The order of operations is that of the built-in additive increase.
        let share = window.mss().as_f64() * left.as_f64() / window.cwnd().as_f64();
        window.grow_by(segments * share);
        Ok(())
    }

    /// Whether the class of this object has its own method of this name.
    pub fn defines(slf: &Bound<'_, Self>, method: &str) -> PyResult<bool> {
        let base = slf.py().get_type::<Self>();
        Ok(!slf.get_type().getattr(method)?.is(&base.getattr(method)?))
    }
}

#[cold]
fn no_init() -> PyErr {
    PyAttributeError::new_err(
        "the window has no value yet; __init__ must call super().__init__(init) first",
    )
}

fn abc_limit(slf: &Bound<'_, Window>) -> PyResult<u64> {
    let value = slf.getattr(intern!(slf.py(), "abc_limit"))?;
    match value.extract() {
        Ok(limit @ 1..) => Ok(limit),
        _ => Err(PyTypeError::new_err(format!(
            "{}.abc_limit is {}; it must be a whole number of segments, 1 or more",
            name_of(&slf.get_type()),
            value.repr()?
        ))),
    }
}

/// The number that a method returned.
fn number(
    slf: &Bound<'_, Window>,
    method: &Bound<'_, PyString>,
    answer: &Bound<'_, PyAny>,
    expected: &str,
) -> PyResult<f64> {
    answer
        .extract()
        .map_err(|_| wrong(slf, &method.to_string(), answer, expected))
}

/// A number of bytes that a class gives, rounded down.
fn whole(n: f64) -> PyResult<Bytes> {
    if n.is_finite() {
        // A cast saturates: less than nothing is nothing.
        return Ok(Bytes::new(n as u64));
    }
    Err(PyValueError::new_err(format!(
        "{n} is no number of bytes; it must be finite"
    )))
}

#[pymethods]
impl Window {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self::default()
    }

    /// Begins in slow start with the transport's initial window.
    #[pyo3(name = "_begin")]
    fn begin(slf: &Bound<'_, Self>, mss: u64, initial_window: u64) -> PyResult<()> {
        let by_round = Self::defines(slf, "segments_per_round")?;
        let init = cc::Init {
            now: Instant::ZERO,
            mss: Bytes::new(mss),
            initial_window: Bytes::new(initial_window),
            rng: Pcg64::new(0, 0),
        };
        *slf.try_borrow_mut()? = Self {
            window: Some(cc::Window::new(&init, cc::WindowParams::DEFAULT)),
            by_round,
            segments: None,
        };
        Ok(())
    }

    /// Takes the state of another window.
    #[pyo3(name = "_become")]
    fn take(&mut self, other: PyRef<'_, Self>) {
        self.window.clone_from(&other.window);
        self.by_round = other.by_round;
        self.segments = other.segments;
    }

    /// The maximum segment size in bytes.
    #[getter]
    fn mss(slf: PyRef<'_, Self>) -> PyResult<u64> {
        Ok(Self::get(&slf)?.mss().get())
    }

    /// The congestion window in bytes.
    #[getter]
    fn window(slf: PyRef<'_, Self>) -> PyResult<u64> {
        Ok(Self::get(&slf)?.cwnd().get())
    }

    #[setter(window)]
    fn assign_window(&mut self, window: f64) -> PyResult<()> {
        self.set_window(window)
    }

    /// The slow-start threshold in bytes; None while infinite.
    #[getter]
    fn threshold(slf: PyRef<'_, Self>) -> PyResult<Option<u64>> {
        Ok(Self::get(&slf)?.ssthresh().map(Bytes::get))
    }

    #[setter]
    fn set_threshold(&mut self, threshold: Option<f64>) -> PyResult<()> {
        let threshold = threshold.map(whole).transpose()?;
        self.get_mut()?.set_ssthresh(threshold);
        Ok(())
    }

    /// Grows the window by some bytes; fractions add up.
    fn grow(&mut self, amount: f64) -> PyResult<()> {
        if amount.is_nan() {
            return Err(PyValueError::new_err(
                "grow(nan): the window cannot grow by it; it must be a number of bytes",
            ));
        }
        self.get_mut()?.grow_by(amount);
        Ok(())
    }

    /// Sets the window, at least one segment.
    fn set_window(&mut self, window: f64) -> PyResult<()> {
        let window = whole(window)?;
        self.get_mut()?.set_cwnd(window);
        Ok(())
    }

    /// Returns whether slow start is in force (RFC 5681 §3.1).
    fn in_slow_start(slf: PyRef<'_, Self>) -> PyResult<bool> {
        Ok(Self::get(&slf)?.in_slow_start())
    }

    /// Goes on with congestion avoidance from the present window.
    fn leave_slow_start(&mut self) -> PyResult<()> {
        self.get_mut()?.exit_slow_start();
        Ok(())
    }

    /// Grows: in slow start as RFC 5681 and RFC 3465 say, then by `increase` or `segments_per_round`.
    fn on_ack<'py>(
        slf: &Bound<'py, Self>,
        ack: &Bound<'py, Acked>,
        path: &Bound<'py, Path>,
    ) -> PyResult<()> {
        let raw = ack.try_borrow()?.raw.ack;
        let left = Self::slow_start(slf, &raw)?;
        if left.is_zero() {
            return Ok(());
        }
        Self::avoid(slf, left, || Ok((ack.clone(), path.clone())))
    }

    /// Falls to the restart window after idle times, if the transport says so (RFC 5681 §4.1).
    fn on_send(&mut self, sent: &Bound<'_, Sent>, path: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = path;
        let raw = sent.try_borrow()?.raw;
        self.sent(&raw)
    }

    /// Recovery has ended.
    fn on_recovered(&mut self, now: f64, path: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = (now, path);
        self.recovered()
    }

    /// Shrinks to `target`; after a timeout to one segment.
    #[pyo3(name = "_reduce")]
    fn reduce(
        slf: &Bound<'_, Self>,
        event: &Bound<'_, Congestion>,
        target: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let method = intern!(slf.py(), "decrease");
        let target = number(slf, method, target, BYTES)?;
        if !target.is_finite() {
            return Err(PyValueError::new_err(format!(
                "{}.decrease() returned {target}; it must be a finite number of bytes",
                name_of(&slf.get_type())
            )));
        }
        let event = event.try_borrow()?.raw;
        let mut this = slf.try_borrow_mut()?;
        this.segments = None;
        this.get_mut()?
            .reduce(&event, Bytes::from_f64(target.max(0.0)));
        Ok(())
    }

    /// Restores the window before the latest congestion event; returns whether it did.
    #[pyo3(name = "_undo")]
    fn undo(&mut self, event: &Bound<'_, Spurious>) -> PyResult<bool> {
        let event = event.try_borrow()?.raw;
        self.segments = None;
        Ok(self.get_mut()?.undo(&event))
    }

    /// The window keeps its bytes.
    #[pyo3(name = "_resize")]
    fn resize(&mut self, path: &Bound<'_, Path>) -> PyResult<()> {
        let mss = path.try_borrow()?.segment();
        self.get_mut()?.on_mss(mss);
        Ok(())
    }

    /// Returns the window.
    fn cwnd(slf: PyRef<'_, Self>) -> PyResult<u64> {
        Self::window(slf)
    }

    /// Returns the threshold.
    fn ssthresh(slf: PyRef<'_, Self>) -> PyResult<Option<u64>> {
        Self::threshold(slf)
    }

    /// Returns `slow-start`, `congestion-avoidance` or `recovery`.
    fn phase(slf: PyRef<'_, Self>) -> PyResult<&'static str> {
        Ok(Self::get(&slf)?.phase())
    }

    /// Congestion avoidance: calls `grow` for `acked` bytes that slow start has left over.
    fn increase(
        &self,
        acked: u64,
        ack: &Bound<'_, PyAny>,
        path: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (acked, ack, path);
        Err(PyNotImplementedError::new_err(
            "define increase() or segments_per_round()",
        ))
    }

    /// Returns how many segments congestion avoidance adds in this round trip.
    fn segments_per_round(&self, path: &Bound<'_, PyAny>) -> PyResult<f64> {
        let _ = path;
        Err(PyNotImplementedError::new_err(
            "define increase() or segments_per_round()",
        ))
    }
}
