//! A congestion control written in Python as a [`gargalo_cc::Controller`].
//!
//! Only methods that the class defines are called, and values that the transport reads often (window, rate, …) are read
//! once after each event. The records that a method is given are objects that the next call fills anew, unless the
//! class has kept them. What a class derived from `gargalo.WindowBased` leaves to the base is done here, without a
//! call. The first exception is kept in [`Faults`]; from then on the controller does nothing, and the run is stopped at
//! the next opportunity and raises that exception.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gargalo_cc as cc;
use gargalo_flow::ControllerFactory;
use gargalo_units::{Bytes, Instant, Rate};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rand::Rng;

use crate::answers::{BYTES, MAYBE_BYTES, MAYBE_RATE, amount, keep, parameters, wrong};
use crate::methods::{Methods, Whose};
use crate::records::{self, Reused};
use crate::window::Window;

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
            let record = records::Init {
                raw: (init.clone(), seed),
            };
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

/// Acknowledgements that were not reported yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    acks: records::Acks,
    /// Bytes that slow start has left for congestion avoidance.
    left: Bytes,
}

struct PyController {
    object: Py<PyAny>,
    /// The same object, if its class derives from `gargalo.WindowBased`.
    window: Option<Py<Window>>,
    methods: Methods,
    numbers: Numbers,
    mss: Bytes,
    pending: Option<Pending>,
    acked: Reused<records::Acked>,
    sent: Reused<records::Sent>,
    path: Reused<records::Path>,
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
            window: object.cast::<Window>().ok().map(|w| w.clone().unbind()),
            methods: Methods::of(object)?,
            numbers: Numbers {
                cwnd: mss,
                ssthresh: None,
                pacing_rate: None,
                send_quantum: None,
                governs_recovery: false,
                phase: "",
            },
            mss,
            pending: None,
            acked: Reused::default(),
            sent: Reused::default(),
            path: Reused::default(),
            faults,
        };
        controller.numbers = controller.read(object)?;
        Ok(controller)
    }

    /// Does something with the object and reads the values again; on an exception, which is kept, they do not change.
    #[inline]
    fn tell(&mut self, act: impl FnOnce(&mut Self, &Bound<'_, PyAny>) -> PyResult<()>) {
        if self.faults.raised() {
            return;
        }
        let result = Python::attach(|py| {
            let object = self.object.clone_ref(py).into_bound(py);
            act(self, &object)?;
            self.read(&object)
        });
        match result {
            Ok(numbers) => self.numbers = numbers,
            Err(e) => self.faults.put(e),
        }
    }

    /// Tells of an event other than an acknowledgement: calls a method with a record and the path, after
    /// acknowledgements that are to be reported.
    fn event(
        &mut self,
        path: &cc::Path<'_>,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>, Bound<'py, records::Path>) -> PyResult<()>,
    ) {
        self.mss = path.mss;
        self.tell(|this, object| {
            this.report(object, path)?;
            let path = this.path.lend(object.py(), path.into())?;
            call(object, path)
        });
    }

    /// Does something to the window of `gargalo.WindowBased`, without a call of Python.
    fn with_window(&mut self, act: impl FnOnce(&mut Window) -> PyResult<()>) {
        self.tell(|this, object| match &this.window {
            Some(window) => act(&mut *window.bind(object.py()).try_borrow_mut()?),
            None => Ok(()),
        });
    }

    /// Reports an acknowledgement, or with `by_round` several once a round trip.
    fn acknowledged(
        &mut self,
        object: &Bound<'_, PyAny>,
        ack: &cc::Acked,
        path: &cc::Path<'_>,
    ) -> PyResult<()> {
        let py = object.py();
        let left = match &self.window {
            Some(window) if self.methods.on_ack == Whose::Window => {
                let window = window.bind(py);
                let left = Window::slow_start(window, ack)?;
                if !self.methods.by_round {
                    if left.is_zero() {
                        return Ok(());
                    }
                    let window = window.clone();
                    return Window::avoid(&window, left, || {
                        let ack = records::Acked { raw: ack.into() };
                        Ok((self.acked.lend(py, ack)?, self.path.lend(py, path.into())?))
                    });
                }
                left
            }
            _ if self.methods.by_round => ack.acknowledged,
            _ => return self.call_on_ack(object, ack.into(), path),
        };
        if self.pending.is_some_and(|p| !p.acks.fits(ack)) {
            self.report(object, path)?;
        }
        match &mut self.pending {
            Some(pending) => {
                pending.acks.add(ack);
                pending.left += left;
            }
            None => {
                let acks = ack.into();
                self.pending = Some(Pending { acks, left });
            }
        }
        if ack.round_start {
            self.report(object, path)?;
        }
        Ok(())
    }

    /// Reports the acknowledgements that were not reported yet.
    fn report(&mut self, object: &Bound<'_, PyAny>, path: &cc::Path<'_>) -> PyResult<()> {
        let Some(Pending { acks, left }) = self.pending.take() else {
            return Ok(());
        };
        let py = object.py();
        match &self.window {
            Some(_) if left.is_zero() => Ok(()),
            Some(window) => {
                let window = window.clone_ref(py).into_bound(py);
                Window::avoid(&window, left, || {
                    let ack = records::Acked { raw: acks };
                    Ok((self.acked.lend(py, ack)?, self.path.lend(py, path.into())?))
                })
            }
            None => self.call_on_ack(object, acks, path),
        }
    }

    #[inline]
    fn call_on_ack(
        &mut self,
        object: &Bound<'_, PyAny>,
        acks: records::Acks,
        path: &cc::Path<'_>,
    ) -> PyResult<()> {
        let py = object.py();
        let ack = self.acked.lend(py, records::Acked { raw: acks })?;
        let path = self.path.lend(py, path.into())?;
        object.call_method1(intern!(py, "on_ack"), (ack, path))?;
        Ok(())
    }

    #[inline]
    fn read(&self, object: &Bound<'_, PyAny>) -> PyResult<Numbers> {
        let py = object.py();
        let m = &self.methods;
        let (cwnd, ssthresh, phase) = match &self.window {
            Some(window) => window.bind(py).try_borrow()?.numbers()?,
            None => (Bytes::ZERO, None, "congestion-avoidance"),
        };
        let bytes = |method, expected| {
            amount(object, method, expected).map(|n: Option<f64>| n.map(Bytes::from_f64))
        };
        let cwnd = if m.cwnd == Whose::Class {
            let method = intern!(py, "cwnd");
            bytes(method, BYTES)?
                .ok_or_else(|| wrong(object, "cwnd", &py.None().into_bound(py), BYTES))?
        } else {
            cwnd
        };
        Ok(Numbers {
            cwnd: cwnd.max(self.mss),
            ssthresh: if m.ssthresh == Whose::Class {
                bytes(intern!(py, "ssthresh"), MAYBE_BYTES)?
            } else {
                ssthresh
            },
            pacing_rate: if m.pacing_rate == Whose::Class {
                amount(object, intern!(py, "pacing_rate"), MAYBE_RATE)?.map(Rate::from_bps_f64)
            } else {
                None
            },
            send_quantum: if m.send_quantum == Whose::Class {
                bytes(intern!(py, "send_quantum"), MAYBE_BYTES)?
            } else {
                None
            },
            governs_recovery: m.governs_recovery == Whose::Class && governs_recovery(object)?,
            phase: if m.phase == Whose::Class {
                self.read_phase(object)?
            } else {
                phase
            },
        })
    }

    fn read_phase(&self, object: &Bound<'_, PyAny>) -> PyResult<&'static str> {
        let answer = object.call_method0(intern!(object.py(), "phase"))?;
        match answer.extract::<&str>() {
            Ok(same) if same == self.numbers.phase => Ok(self.numbers.phase),
            Ok(other) => keep(other),
            Err(_) => Err(wrong(object, "phase", &answer, "text")),
        }
    }
}

fn governs_recovery(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let answer = object.call_method0(intern!(object.py(), "governs_recovery"))?;
    answer
        .extract()
        .map_err(|_| wrong(object, "governs_recovery", &answer, "True or False"))
}

impl cc::Controller for PyController {
    #[inline]
    fn on_send(&mut self, sent: &cc::Sent, path: &cc::Path<'_>) {
        match self.methods.on_send {
            Whose::Base => {}
            Whose::Window => {
                if sent.idle.is_some() {
                    self.mss = path.mss;
                    self.with_window(|w| w.sent(sent));
                }
            }
            Whose::Class => {
                self.mss = path.mss;
                self.tell(|this, object| {
                    let py = object.py();
                    let sent = this.sent.lend(py, records::Sent { raw: *sent })?;
                    let path = this.path.lend(py, path.into())?;
                    object.call_method1(intern!(py, "on_send"), (sent, path))?;
                    Ok(())
                });
            }
        }
    }

    fn on_ack(&mut self, ack: &cc::Acked, path: &cc::Path<'_>) {
        self.mss = path.mss;
        self.tell(|this, object| this.acknowledged(object, ack, path));
    }

    fn on_loss(&mut self, lost: &cc::Lost, path: &cc::Path<'_>) {
        if self.methods.on_loss == Whose::Class {
            let lost = records::Lost { raw: *lost };
            self.event(path, |o, path| {
                o.call_method1(intern!(o.py(), "on_loss"), (lost, path))
                    .map(drop)
            });
        }
    }

    fn on_congestion(&mut self, event: &cc::Congestion, path: &cc::Path<'_>) {
        let event = records::Congestion { raw: *event };
        self.event(path, |o, path| {
            o.call_method1(intern!(o.py(), "on_congestion"), (event, path))
                .map(drop)
        });
    }

    fn on_spurious(&mut self, event: &cc::Spurious, path: &cc::Path<'_>) {
        if self.methods.on_spurious == Whose::Class {
            let event = records::Spurious { raw: *event };
            self.event(path, |o, path| {
                o.call_method1(intern!(o.py(), "on_spurious"), (event, path))
                    .map(drop)
            });
        }
    }

    fn on_recovered(&mut self, now: Instant, path: &cc::Path<'_>) {
        match self.methods.on_recovered {
            Whose::Base => {}
            Whose::Window => self.with_window(Window::recovered),
            Whose::Class => {
                let now = now.as_secs_f64();
                self.event(path, |o, path| {
                    o.call_method1(intern!(o.py(), "on_recovered"), (now, path))
                        .map(drop)
                });
            }
        }
    }

    fn halve(&mut self) {
        if self.window.is_some() {
            self.with_window(Window::halve);
        }
    }

    fn on_established(&mut self, established: &cc::Established, path: &cc::Path<'_>) {
        if self.methods.on_established != Whose::Class {
            self.on_mss(path);
            return;
        }
        self.numbers.cwnd = self.numbers.cwnd.max(path.mss);
        self.event(path, |o, path| {
            let method = intern!(o.py(), "on_established");
            let established = records::Established { raw: *established };
            o.call_method1(method, (established, path)).map(drop)
        });
    }

    fn on_mss(&mut self, path: &cc::Path<'_>) {
        self.mss = path.mss;
        self.numbers.cwnd = self.numbers.cwnd.max(path.mss);
        if self.methods.on_mss == Whose::Class {
            self.event(path, |o, path| {
                o.call_method1(intern!(o.py(), "on_mss"), (path,)).map(drop)
            });
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
        if self.methods.ssthresh != Whose::Base {
            n.ssthresh.is_none_or(|s| n.cwnd < s)
        } else {
            matches!(n.phase, "slow-start" | "startup")
        }
    }

    fn phase(&self) -> &'static str {
        self.numbers.phase
    }

    fn gauges(&self, out: &mut Vec<(&'static str, f64)>) {
        if self.methods.gauges != Whose::Class || self.faults.raised() {
            return;
        }
        let read = Python::attach(|py| -> PyResult<Vec<_>> {
            let object = self.object.bind(py);
            let answer = object.call_method0(intern!(py, "gauges"))?;
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
                    Ok((keep(&name)?, value))
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
        let window = Python::attach(|py| {
            let window = object.bind(py).cast::<Window>();
            window.ok().map(|w| w.clone().unbind())
        });
        Box::new(Self {
            object,
            window,
            methods: self.methods,
            numbers: self.numbers,
            mss: self.mss,
            pending: self.pending,
            acked: Reused::default(),
            sent: Reused::default(),
            path: Reused::default(),
            faults: Arc::clone(&self.faults),
        })
    }
}
