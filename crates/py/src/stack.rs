//! The [`Callbacks`] of a QUIC stack written in Python.
//!
//! As for other classes the first exception is kept in [`Faults`]; from then on the stack does nothing, until the run
//! is stopped and raises it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use gargalo_quic::foreign::{
    About, Callbacks, Foreign, Outgoing, Packet, PacketEvent, PacketKind, Path, PathState, Pending,
    Request, Sender,
};
use gargalo_quic::{
    ALPN, Config, Error, Event, Features, INITIAL_RTT, Implementation, Init, MAX_STREAMS, Offered,
    Realm, SERVER_NAME, Stack, StreamId, Uses,
};
use gargalo_units::{Bytes, Duration, Ecn, Instant, Rate, SenderCounters};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};
use rand::Rng;

use crate::answers::{name_of, not_negative, wrong};
use crate::controller::Faults;

/// The largest UDP payload (IPv4).
const LARGEST_DATAGRAM: usize = 65_507;
/// The largest DATAGRAM frame to accept, as RFC 9221 §3 recommends: any that fits into a packet.
const LARGEST_FRAME: u32 = 65_535;
/// What a class must define.
const REQUIRED: [&str; 8] = [
    "datagram_in",
    "datagram_out",
    "next_timer",
    "timeout",
    "open_stream",
    "write",
    "close",
    "is_over",
];

/// The class of this name as an implementation.
pub struct PyStack {
    name: String,
    class: Py<PyType>,
    congestion: Vec<String>,
    features: Features,
    faults: Arc<Faults>,
}

impl PyStack {
    /// Checks the attributes and methods of the class.
    ///
    /// # Errors
    /// When it is not derived from `gargalo.QuicStack`, lacks a method, or lists no congestion control.
    pub fn of(name: &str, class: &Bound<'_, PyAny>, faults: &Arc<Faults>) -> PyResult<Self> {
        let py = class.py();
        let base = py.import("gargalo.plugins.stack")?.getattr("QuicStack")?;
        let refuse = |why: String| Err(PyTypeError::new_err(why));
        let class = match class.cast::<PyType>() {
            Ok(class) if class.is_subclass(&base)? => class,
            _ => {
                let text = class.repr()?;
                return refuse(format!(
                    "{text} is not a gargalo.QuicStack; derive the class from it"
                ));
            }
        };
        let features = Features::default();
        let mut stack = Self {
            name: name.to_owned(),
            class: class.clone().unbind(),
            congestion: Vec::new(),
            features,
            faults: Arc::clone(faults),
        };
        let own = name_of(class);
        let names = |attribute: &str| -> PyResult<Vec<String>> {
            let given = class.getattr(attribute)?;
            let all = given
                .try_iter()
                .ok()
                .filter(|_| !given.is_instance_of::<PyString>());
            let all = all.map(|all| {
                all.map(|one| one?.extract())
                    .collect::<PyResult<Vec<String>>>()
            });
            match all {
                Some(Ok(all)) => Ok(all),
                _ => Err(PyTypeError::new_err(format!(
                    "{own}.{attribute} is {}; it must have names",
                    given.repr()?
                ))),
            }
        };
        stack.congestion = names("congestion")?;
        if stack.congestion.is_empty() {
            return refuse(format!(
                "{own}.congestion is empty; it must have the names of its congestion controls, the default first"
            ));
        }
        for word in names("features")? {
            let mut all = stack.features.by_word();
            if let Some((_, has)) = all.iter_mut().find(|(known, _)| *known == word) {
                **has = true;
            } else {
                let known = all.map(|(known, _)| known).join(", ");
                return Err(PyValueError::new_err(format!(
                    "{own}.features has \"{word}\"; there are {known}"
                )));
            }
        }
        let features = stack.features;
        let needed = [
            ("migrate", features.migration),
            ("open_unidirectional_stream", features.unidirectional),
            ("send_datagram", features.datagrams),
            ("reset_stream", features.cancel),
            ("stop_sending", features.cancel),
            ("set_urgency", features.urgency),
            ("update_keys", features.key_update),
            ("open_path", features.multipath),
            ("paths", features.multipath),
        ];
        let needed = needed.iter().filter(|(_, has)| *has).map(|(name, _)| *name);
        for method in REQUIRED.into_iter().chain(needed) {
            if class.getattr(method)?.is(&base.getattr(method)?) {
                return refuse(format!("{own} must define {method}()"));
            }
        }
        Ok(stack)
    }
}

impl fmt::Debug for PyStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PyStack")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Implementation for PyStack {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs_ecdsa(&self) -> bool {
        self.features.ecdsa
    }

    fn check(&self, config: &Config, uses: Uses, is_client: bool) -> Result<(), Error> {
        self.features
            .check(&self.name, &self.congestion, config, uses, is_client)
    }

    fn end(
        &self,
        realm: &Realm,
        config: &Config,
        init: Init,
        is_client: bool,
    ) -> Result<Box<dyn Stack>, Error> {
        let about = About {
            name: &self.name,
            congestion: &self.congestion,
            features: self.features,
        };
        let (request, pending) = Request::of(about, realm, config, init, is_client);
        let made = Python::attach(|py| End::new(self, py, &request, pending));
        let end = made.map_err(|e| {
            let text = e.to_string();
            // The exception is kept too: it contains more than its text.
            self.faults.put(e);
            Error::Option(text)
        })?;
        Ok(Box::new(Foreign::new(end, about, &request)))
    }
}

/// The object to which a stack reports, and from which it takes random bytes.
#[pyclass(frozen, module = "gargalo")]
pub struct QuicHost {
    pending: Mutex<Pending>,
}

impl QuicHost {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl QuicHost {
    /// Returns random bytes of this object's own stream.
    fn random<'py>(&self, py: Python<'py>, length: usize) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, length, |out| {
            self.pending().rng.fill_bytes(out);
            Ok(())
        })
    }

    /// Reports an event: "early" (client: early data may be written), "connected" (the handshake is complete), "closed"
    /// (the connection has ended in order) or "failed" (`text` says why, and has "timed out" if that is why).
    /// `early_data`, of "connected": whether early data was accepted; None if there was none. The stack has discarded
    /// rejected data and its streams, and the host writes them again, unless it is `resent` by the stack itself.
    #[pyo3(signature = (kind, early_data=None, text=None, resent=false))]
    fn event(
        &self,
        kind: &str,
        early_data: Option<bool>,
        text: Option<&str>,
        resent: bool,
    ) -> PyResult<()> {
        let mut pending = self.pending();
        match kind {
            "early" => pending.early(),
            "connected" => pending.handshake(early_data, resent),
            "closed" => pending.end(Event::Closed),
            "failed" => {
                let why = text.unwrap_or("the stack does not say why").to_owned();
                pending.end(Event::Failed(why));
            }
            _ => {
                return Err(PyValueError::new_err(format!(
                    "there is no event \"{kind}\": early, connected, closed or failed"
                )));
            }
        }
        Ok(())
    }

    /// Stream data has arrived, in order, each byte once; `fin`: the stream ends after it. It counts as read.
    #[pyo3(signature = (stream, data, fin=false))]
    fn received(&self, stream: u64, data: &[u8], fin: bool) {
        self.pending().received(stream, data, fin);
    }

    /// Client: a session to resume from later, as bytes of the stack's own choice.
    fn session(&self, data: &[u8]) {
        self.pending().keep_session(data);
    }

    /// A line for an SSLKEYLOGFILE.
    fn secret(&self, line: &str) {
        self.pending().secret(line);
    }

    /// Bytes of a qlog file.
    fn qlog(&self, data: &[u8]) {
        self.pending().qlog(data);
    }

    /// Something worth a row in the table of events: a word such as "loss", and details.
    #[pyo3(signature = (kind, detail=""))]
    fn notice(&self, kind: &str, detail: &str) {
        self.pending().notice(kind, || detail.to_owned());
    }

    /// A round-trip sample in seconds.
    fn rtt_sample(&self, rtt: f64) -> PyResult<()> {
        if !(rtt.is_finite() && rtt >= 0.0) {
            return Err(PyValueError::new_err(format!(
                "rtt_sample({rtt}): it must be a finite number of 0 or more"
            )));
        }
        self.pending().rtt_sample(Duration::from_secs_f64(rtt));
        Ok(())
    }

    /// A round-trip sample of a path in seconds, in place of `rtt_sample`.
    fn path_rtt_sample(&self, path: u32, rtt: f64) -> PyResult<()> {
        if !(rtt.is_finite() && rtt >= 0.0) {
            return Err(PyValueError::new_err(format!(
                "path_rtt_sample({path}, {rtt}): it must be a finite number of 0 or more"
            )));
        }
        let rtt = Duration::from_secs_f64(rtt);
        self.pending().path_rtt_sample(path, rtt);
        Ok(())
    }

    /// A datagram has arrived (RFC 9221).
    fn datagram(&self, data: &[u8]) {
        self.pending().datagram(data);
    }

    /// The peer asks for the end of a stream (STOP_SENDING): the host calls `reset_stream`.
    fn stopped(&self, stream: u64) {
        self.pending().stopped(stream);
    }

    /// The peer has reset a stream: an error, unless the host has called `stop_sending` for it.
    fn reset(&self, stream: u64) {
        self.pending().reset(stream);
    }

    /// Something has happened to a packet, with the feature "packets": `event` is "sent", "received", "acknowledged" or
    /// "lost", the last two of packets that were sent; `kind` is "initial", "0-rtt", "handshake" or "1-rtt". `size` is
    /// its length in bytes, if that is known.
    #[pyo3(signature = (event, kind, number, size=None, ack_eliciting=true))]
    fn packet(
        &self,
        event: &str,
        kind: &str,
        number: u64,
        size: Option<u32>,
        ack_eliciting: bool,
    ) -> PyResult<()> {
        self.pending().packet(Packet {
            event: named(&PacketEvent::ALL, event)?,
            kind: named(&PacketKind::ALL, kind)?,
            number,
            size,
            ack_eliciting,
        });
        Ok(())
    }

    /// A datagram that is sent now, before those of `datagram_out`.
    fn send(&self, datagram: &Bound<'_, PyAny>) -> PyResult<()> {
        let made = outgoing(datagram).ok_or_else(|| {
            PyValueError::new_err("send() takes a gargalo.QuicDatagram of 1 to 65507 bytes")
        })?;
        self.pending().send(made);
        Ok(())
    }
}

/// What a word stands for.
fn named<T: Copy>(all: &[(&'static str, T); 4], word: &str) -> PyResult<T> {
    let found = all.iter().find(|(name, _)| *name == word);
    found.map(|(_, of)| *of).ok_or_else(|| {
        let names = all.each_ref().map(|(name, _)| *name).join(", ");
        PyValueError::new_err(format!("there is no \"{word}\": {names}"))
    })
}

/// One end of a connection.
struct End {
    object: Py<PyAny>,
    host: Py<QuicHost>,
    /// The class of datagrams.
    datagram: Py<PyAny>,
    faults: Arc<Faults>,
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End").finish_non_exhaustive()
    }
}

impl End {
    fn new(
        of: &PyStack,
        py: Python<'_>,
        request: &Request<'_>,
        pending: Pending,
    ) -> PyResult<Self> {
        let module = py.import("gargalo.plugins.stack")?;
        let config = module.getattr("QuicConfig")?;
        let config = config.call((), Some(&keywords(py, request)?))?;
        let host = Py::new(
            py,
            QuicHost {
                pending: pending.into(),
            },
        )?;
        let given = (config, host.clone_ref(py), request.now.as_secs_f64());
        let object = of.class.bind(py).call1(given)?;
        Ok(Self {
            object: object.unbind(),
            host,
            datagram: module.getattr("QuicDatagram")?.unbind(),
            faults: Arc::clone(&of.faults),
        })
    }

    /// Calls the object; after an exception, which is kept, the answer is `T`'s default.
    fn ask<T: Default>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> T {
        if self.faults.raised() {
            return T::default();
        }
        Python::attach(|py| call(self.object.bind(py))).unwrap_or_else(|e| {
            self.faults.put(e);
            T::default()
        })
    }
}

/// What a method returned, as the type it must have.
fn answer<'py, T>(
    object: &Bound<'py, PyAny>,
    method: &str,
    given: &Bound<'py, PyAny>,
    expected: &str,
) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    given
        .extract()
        .map_err(|_| wrong(object, method, given, expected))
}

impl Callbacks for End {
    fn datagram_in(&mut self, now: Instant, payload: &mut [u8], path: &Path) {
        self.ask(|object| {
            let py = object.py();
            let data = PyBytes::new(py, payload);
            let (local, remote) = (address(path.local), address(path.remote));
            let datagram = self
                .datagram
                .bind(py)
                .call1((data, local, remote, path.ecn as u8))?;
            let given = (now.as_secs_f64(), datagram);
            object.call_method1(intern!(py, "datagram_in"), given)?;
            Ok(())
        });
    }

    fn datagram_out(&mut self, now: Instant) -> Result<Option<Outgoing>, String> {
        Ok(self.ask(|object| {
            let name = intern!(object.py(), "datagram_out");
            let given = object.call_method1(name, (now.as_secs_f64(),))?;
            if given.is_none() {
                return Ok(None);
            }
            let expected = "a gargalo.QuicDatagram of 1 to 65507 bytes, or None";
            let made = outgoing(&given);
            made.map(Some)
                .ok_or_else(|| wrong(object, "datagram_out", &given, expected))
        }))
    }

    fn next_timer(&mut self) -> Option<Instant> {
        self.ask(|object| {
            let name = intern!(object.py(), "next_timer");
            let given = object.call_method0(name)?;
            let at: Option<f64> = answer(object, "next_timer", &given, "seconds, or None")?;
            at.map(|at| not_negative(object, name, at).map(instant))
                .transpose()
        })
    }

    fn timeout(&mut self, now: Instant) {
        self.ask(|object| {
            let name = intern!(object.py(), "timeout");
            object.call_method1(name, (now.as_secs_f64(),)).map(drop)
        });
    }

    fn open_stream(&mut self, now: Instant) -> Option<StreamId> {
        self.ask(|object| {
            let name = intern!(object.py(), "open_stream");
            let given = object.call_method1(name, (now.as_secs_f64(),))?;
            answer(
                object,
                "open_stream",
                &given,
                "the number of a stream, or None",
            )
        })
    }

    fn write(&mut self, now: Instant, stream: StreamId, data: &[u8], fin: bool) -> usize {
        self.ask(|object| {
            let py = object.py();
            let given = (now.as_secs_f64(), stream, PyBytes::new(py, data), fin);
            let taken = object.call_method1(intern!(py, "write"), given)?;
            answer(object, "write", &taken, "a number of bytes")
        })
    }

    fn open_unidirectional_stream(&mut self, now: Instant) -> Option<StreamId> {
        self.ask(|object| {
            let name = intern!(object.py(), "open_unidirectional_stream");
            let given = object.call_method1(name, (now.as_secs_f64(),))?;
            answer(
                object,
                "open_unidirectional_stream",
                &given,
                "the number of a stream, or None",
            )
        })
    }

    fn reset_stream(&mut self, now: Instant, stream: StreamId) {
        self.ask(|object| {
            let name = intern!(object.py(), "reset_stream");
            object
                .call_method1(name, (now.as_secs_f64(), stream))
                .map(drop)
        });
    }

    fn stop_sending(&mut self, now: Instant, stream: StreamId) {
        self.ask(|object| {
            let name = intern!(object.py(), "stop_sending");
            object
                .call_method1(name, (now.as_secs_f64(), stream))
                .map(drop)
        });
    }

    fn set_urgency(&mut self, now: Instant, stream: StreamId, urgency: u8) {
        self.ask(|object| {
            let name = intern!(object.py(), "set_urgency");
            object
                .call_method1(name, (now.as_secs_f64(), stream, urgency))
                .map(drop)
        });
    }

    fn send_datagram(&mut self, now: Instant, data: &[u8]) -> Offered {
        let taken: Option<bool> = self.ask(|object| {
            let py = object.py();
            let given = (now.as_secs_f64(), PyBytes::new(py, data));
            let taken = object.call_method1(intern!(py, "send_datagram"), given)?;
            answer(object, "send_datagram", &taken, "True, False or None")
        });
        match taken {
            Some(true) => Offered::Taken,
            Some(false) => Offered::Later,
            None => Offered::Refused,
        }
    }

    fn update_keys(&mut self, now: Instant) -> bool {
        self.ask(|object| {
            let name = intern!(object.py(), "update_keys");
            let begun = object.call_method1(name, (now.as_secs_f64(),))?;
            answer(object, "update_keys", &begun, "True or False")
        })
    }

    fn open_path(&mut self, now: Instant, local: SocketAddr, remote: SocketAddr) {
        self.ask(|object| {
            let given = (now.as_secs_f64(), address(local), address(remote));
            object.call_method1("open_path", given).map(drop)
        });
    }

    fn paths(&mut self) -> Vec<PathState> {
        self.ask(|object| {
            let given = object.call_method0("paths")?;
            let label = |text: &str| self.host.get().pending().label(text);
            let all = given.try_iter().and_then(|all| {
                all.map(|path| path_state(&path?, label))
                    .collect::<PyResult<Vec<_>>>()
            });
            all.map_err(|_| {
                let expected = "gargalo.QuicPath objects with numbers of 0 or more";
                wrong(object, "paths", &given, expected)
            })
        })
    }

    fn packet_too_big(&mut self, now: Instant, local: SocketAddr, remote: SocketAddr, mtu: u32) {
        self.ask(|object| {
            let given = (now.as_secs_f64(), address(local), address(remote), mtu);
            object.call_method1("packet_too_big", given).map(drop)
        });
    }

    fn unacknowledged(&mut self) -> Option<u64> {
        self.ask(|object| {
            let left = object.call_method0(intern!(object.py(), "unacknowledged"))?;
            answer(
                object,
                "unacknowledged",
                &left,
                "a number of 0 or more, or None",
            )
        })
    }

    fn migrate(&mut self, now: Instant, local: SocketAddr) {
        self.ask(|object| {
            let given = (now.as_secs_f64(), address(local));
            object.call_method1("migrate", given).map(drop)
        });
    }

    fn close(&mut self, now: Instant) {
        self.ask(|object| object.call_method1("close", (now.as_secs_f64(),)).map(drop));
    }

    fn is_over(&self) -> bool {
        self.ask(|object| {
            let over = object.call_method0(intern!(object.py(), "is_over"))?;
            answer(object, "is_over", &over, "True or False")
        })
    }

    fn stats(&mut self) -> Sender {
        self.ask(|object| {
            let given = object.call_method0(intern!(object.py(), "stats"))?;
            let label = |text: &str| self.host.get().pending().label(text);
            stats(&given, label).map_err(|_| {
                let expected = "a gargalo.QuicStats with numbers of 0 or more, or None";
                wrong(object, "stats", &given, expected)
            })
        })
    }

    fn pending<R>(&self, access: impl FnOnce(&mut Pending) -> R) -> R {
        access(&mut self.host.get().pending())
    }
}

/// A `gargalo.QuicDatagram`; `None` if it is none, or its length is not possible.
fn outgoing(given: &Bound<'_, PyAny>) -> Option<Outgoing> {
    type Fields<'py> = (Bound<'py, PyBytes>, Bound<'py, PyAny>, (IpAddr, u16), u8);
    let (data, local, (ip, port), ecn): Fields<'_> =
        given.cast::<PyTuple>().ok()?.extract().ok()?;
    let payload = data.as_bytes();
    let fits = !payload.is_empty() && payload.len() <= LARGEST_DATAGRAM;
    fits.then(|| Outgoing {
        payload: BytesMut::from(payload),
        local: local.extract::<(IpAddr, u16)>().ok().map(SocketAddr::from),
        remote: SocketAddr::new(ip, port),
        ecn: Ecn::from_bits(ecn & 3),
    })
}

/// What a scenario requests, as keyword arguments of `gargalo.QuicConfig`.
fn keywords<'py>(py: Python<'py>, request: &Request<'_>) -> PyResult<Bound<'py, PyDict>> {
    let config = request.config;
    let fields = PyDict::new(py);
    fields.set_item("is_server", !request.is_client)?;
    fields.set_item("local", address(request.local))?;
    fields.set_item("remote", address(request.remote))?;
    fields.set_item("congestion", request.congestion)?;
    fields.set_item("server_name", SERVER_NAME)?;
    fields.set_item("alpn", ALPN)?;
    fields.set_item("certificate", PyBytes::new(py, request.certificate))?;
    fields.set_item("private_key", PyBytes::new(py, request.private_key))?;
    fields.set_item("ticket_key", PyBytes::new(py, &request.ticket_key))?;
    fields.set_item("session", PyBytes::new(py, &request.session))?;
    fields.set_item("initial_window", config.initial_window().get())?;
    fields.set_item("stream_window", config.stream_window)?;
    fields.set_item("connection_window", config.connection_window)?;
    fields.set_item("send_window", config.send_window)?;
    fields.set_item("idle_timeout", config.idle_timeout.as_secs_f64())?;
    fields.set_item("initial_rtt", INITIAL_RTT.as_secs_f64())?;
    fields.set_item("max_streams", MAX_STREAMS)?;
    fields.set_item("datagram_size", config.datagram_size)?;
    fields.set_item("max_datagram_size", request.max_datagram_size)?;
    fields.set_item("early_data", request.early_data)?;
    fields.set_item("retry", config.retry)?;
    fields.set_item("ecn", config.ecn)?;
    fields.set_item("pacing", config.pacing)?;
    fields.set_item("qlog", request.qlog)?;
    fields.set_item("secrets", request.secrets)?;
    fields.set_item("notices", true)?;
    fields.set_item("packets", request.packets)?;
    fields.set_item("max_paths", config.paths())?;
    let unidirectional = request.max_unidirectional_streams.unwrap_or(0);
    fields.set_item("max_unidirectional_streams", unidirectional)?;
    fields.set_item(
        "max_datagram_frame",
        if request.datagrams { LARGEST_FRAME } else { 0 },
    )?;
    let json = py.import("json")?;
    fields.set_item("options", json.call_method1("loads", (&request.options,))?)?;
    Ok(fields)
}

fn stats(given: &Bound<'_, PyAny>, label: impl Fn(&str) -> &'static str) -> PyResult<Sender> {
    let count = |name: &str| -> PyResult<Option<u64>> { given.getattr(name)?.extract() };
    let number = |name: &str| -> PyResult<Option<f64>> {
        let number: Option<f64> = given.getattr(name)?.extract()?;
        match number {
            Some(n) if !(n.is_finite() && n >= 0.0) => Err(PyValueError::new_err(n)),
            n => Ok(n),
        }
    };
    let bytes =
        |name: &str| -> PyResult<Option<Bytes>> { Ok(number(name)?.map(|n| Bytes::new(n as u64))) };
    let rate = |name: &str| -> PyResult<Option<Rate>> {
        Ok(number(name)?.map(|n| Rate::from_bps(n as u64)))
    };
    let phase: Option<String> = given.getattr("phase")?.extract()?;
    Ok(Sender {
        counters: SenderCounters {
            sent_packets: count("sent_packets")?.into(),
            sent_bytes: count("sent_bytes")?.into(),
            retransmitted_packets: count("retransmitted_packets")?.into(),
            lost_packets: count("lost_packets")?.into(),
            timeouts: count("timeouts")?.into(),
            spurious_losses: count("spurious")?.into(),
            ..SenderCounters::UNKNOWN
        },
        cwnd: bytes("cwnd")?,
        ssthresh: bytes("ssthresh")?,
        in_flight: bytes("in_flight")?,
        srtt: number("srtt")?.map(Duration::from_secs_f64),
        pacing_rate: rate("pacing_rate")?,
        delivery_rate: rate("delivery_rate")?,
        phase: phase.map_or("", |p| label(&p)),
    })
}

/// A `gargalo.QuicPath`.
fn path_state(
    given: &Bound<'_, PyAny>,
    label: impl Fn(&str) -> &'static str,
) -> PyResult<PathState> {
    let socket = |name: &str| -> PyResult<SocketAddr> {
        Ok(given.getattr(name)?.extract::<(IpAddr, u16)>()?.into())
    };
    let time = |seconds: f64| match seconds.is_finite() && seconds >= 0.0 {
        true => Ok(instant(seconds)),
        false => Err(PyValueError::new_err(seconds)),
    };
    let closed: Option<f64> = given.getattr("closed")?.extract()?;
    Ok(PathState {
        id: given.getattr("id")?.extract()?,
        local: socket("local")?,
        remote: socket("remote")?,
        opened: time(given.getattr("opened")?.extract()?)?,
        closed: closed.map(time).transpose()?,
        received_bytes: given.getattr("received_bytes")?.extract()?,
        sender: stats(&given.getattr("sender")?, label)?,
    })
}

fn address(of: SocketAddr) -> (String, u16) {
    (of.ip().to_string(), of.port())
}

/// The first instant that is not before these seconds.
fn instant(seconds: f64) -> Instant {
    let at = Instant::from_nanos((seconds * 1e9) as u64);
    match at.as_secs_f64() < seconds {
        true => at + Duration::from_nanos(1),
        false => at,
    }
}
