//! The records of schedulers: seconds, bytes, bits per second.

use std::sync::Arc;

use gargalo_mptcp::{Label, scheduler as mptcp};
use gargalo_units::{Duration, Rate};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

pub use super::connecting::{LocalAddress, Open, RemoteAddress, SubflowView, View};

/// What a scheduler or a path manager starts from.
#[pyclass(frozen, get_all, module = "gargalo")]
#[derive(Clone, Debug)]
pub struct ConnectionInit {
    /// Seed for a random stream of its own, derived from the run's; another for every connection and end.
    pub seed: u64,
}

#[pymethods]
impl ConnectionInit {
    #[new]
    #[pyo3(signature = (seed=0))]
    const fn new(seed: u64) -> Self {
        Self { seed }
    }
    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

/// What a scheduler may know of a subflow.
#[pyclass(frozen, get_all, module = "gargalo")]
#[derive(Clone, Debug)]
pub struct PathView {
    /// Position in `Context.paths`.
    pub index: usize,
    /// Number of the subflow, never given twice in a connection.
    pub id: u32,
    /// Smoothed round-trip time in seconds; none before the first measurement.
    pub srtt: Option<f64>,
    /// Mean deviation of the round-trip time in seconds.
    pub rttvar: Option<f64>,
    /// Latest round-trip sample in seconds.
    pub latest_rtt: Option<f64>,
    /// Least round-trip time in seconds.
    pub min_rtt: Option<f64>,
    /// Retransmission timeout in seconds.
    pub rto: f64,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow-start threshold in bytes; none: infinite, or there is none.
    pub ssthresh: Option<u64>,
    /// Whether the window about doubles every round trip: slow start, or Startup of a model-based control.
    pub in_slow_start: bool,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes given to the subflow and not sent yet.
    pub queued: u64,
    /// Payload of a full segment in bytes.
    pub mss: u64,
    /// Latest delivery rate in bit/s measured while the network was the limit.
    pub delivery_rate: Option<u64>,
    /// Pacing rate in bit/s; none: not paced.
    pub pacing_rate: Option<u64>,
    /// To be used only when no other path works (RFC 8684 §3.3.8).
    pub backup: bool,
    /// A retransmission timer has expired and nothing new was acknowledged since.
    pub in_loss: bool,
    /// New data may be given to it; false while it is opening or closing.
    pub usable: bool,
    /// Its windows have room and its pacer is ready.
    pub can_send: bool,
    /// Data packets sent so far.
    pub sent_packets: u64,
    /// Packets marked lost so far.
    pub lost_packets: u64,
    /// Name of the link by which what we send leaves; none if there is no name.
    pub link: Option<Name>,
    /// Name of the link by which what the peer sends leaves.
    pub peer_link: Option<Name>,
}

/// A name, cheap to copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(Arc<str>);

impl<'py> IntoPyObject<'py> for &Name {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = std::convert::Infallible;
    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(PyString::new(py, &self.0))
    }
}

impl PathView {
    fn of(index: usize, p: &mptcp::PathView, label: Option<&Label>) -> Self {
        let seconds = |d: Option<Duration>| d.map(Duration::as_secs_f64);
        let rate = |r: Option<Rate>| r.map(Rate::as_bps);
        Self {
            index,
            id: p.id,
            srtt: seconds(p.srtt),
            rttvar: seconds(p.rttvar),
            latest_rtt: seconds(p.latest_rtt),
            min_rtt: seconds(p.min_rtt),
            rto: p.rto.as_secs_f64(),
            cwnd: p.cwnd,
            ssthresh: p.ssthresh,
            in_slow_start: p.in_slow_start,
            in_flight: p.in_flight,
            queued: p.queued,
            mss: p.mss,
            delivery_rate: rate(p.delivery_rate),
            pacing_rate: rate(p.pacing_rate),
            backup: p.backup,
            in_loss: p.in_loss,
            usable: p.usable,
            can_send: p.can_send,
            sent_packets: p.sent_packets,
            lost_packets: p.lost_packets,
            link: label.and_then(|l| l.link.clone()).map(Name),
            peer_link: label.and_then(|l| l.peer_link.clone()).map(Name),
        }
    }

    const fn fits(&self) -> bool {
        self.usable && !self.in_loss
    }
}

#[pymethods]
impl PathView {
    /// For tests of schedulers: a path of which only what matters is said.
    #[new]
    #[pyo3(signature = (index, *, id=None, srtt=None, rttvar=None, latest_rtt=None, min_rtt=None, rto=1.0,
        cwnd=14480, ssthresh=None, in_flight=0, queued=0, mss=1448, delivery_rate=None, pacing_rate=None,
        backup=false, in_loss=false, usable=true, can_send=true, sent_packets=0, lost_packets=0, link=None,
        peer_link=None, in_slow_start=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        index: usize,
        id: Option<u32>,
        srtt: Option<f64>,
        rttvar: Option<f64>,
        latest_rtt: Option<f64>,
        min_rtt: Option<f64>,
        rto: f64,
        cwnd: u64,
        ssthresh: Option<u64>,
        in_flight: u64,
        queued: u64,
        mss: u64,
        delivery_rate: Option<u64>,
        pacing_rate: Option<u64>,
        backup: bool,
        in_loss: bool,
        usable: bool,
        can_send: bool,
        sent_packets: u64,
        lost_packets: u64,
        link: Option<String>,
        peer_link: Option<String>,
        in_slow_start: Option<bool>,
    ) -> Self {
        let name = |n: String| Name(n.into());
        Self {
            index,
            id: id.unwrap_or(u32::try_from(index).unwrap_or(u32::MAX)),
            srtt,
            rttvar,
            latest_rtt,
            min_rtt,
            rto,
            cwnd,
            ssthresh,
            in_slow_start: in_slow_start.unwrap_or(ssthresh.is_none_or(|s| cwnd < s)),
            in_flight,
            queued,
            mss,
            delivery_rate,
            pacing_rate,
            backup,
            in_loss,
            usable,
            can_send,
            sent_packets,
            lost_packets,
            link: link.map(name),
            peer_link: peer_link.map(name),
        }
    }

    /// The smoothed round-trip time in seconds for comparisons: infinite while unknown.
    #[getter]
    fn latency(&self) -> f64 {
        self.srtt.unwrap_or(f64::INFINITY)
    }

    /// Congestion window less bytes in flight, in whole segments; negative when the window has shrunk.
    #[getter]
    fn space(&self) -> i64 {
        let segments = |n: u64| (n / self.mss.max(1)) as i64;
        segments(self.cwnd) - segments(self.in_flight)
    }

    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

/// What a scheduler decides by.
#[pyclass(frozen, module = "gargalo")]
#[derive(Debug)]
pub struct Context {
    /// The present, in seconds.
    #[pyo3(get)]
    now: f64,
    paths: Vec<Py<PathView>>,
    /// Bytes written and never sent.
    #[pyo3(get)]
    unsent: u64,
    /// The application wants to write more than the send buffer takes: more data follows `unsent`.
    #[pyo3(get)]
    more: bool,
    /// The peer's window in bytes, from the first byte that it has not acknowledged, or the
    /// send buffer if that is smaller.
    #[pyo3(get)]
    window: u64,
    /// What of it may still be filled by new data, in bytes.
    #[pyo3(get)]
    window_room: u64,
    /// Segments sent again so far because data on a slower path filled the window.
    #[pyo3(get)]
    blocked: u64,
}

impl Context {
    /// The record of this moment.
    pub fn of(py: Python<'_>, c: &mptcp::Context<'_>) -> PyResult<Self> {
        let paths = c.paths.iter().enumerate();
        Ok(Self {
            now: c.now.as_secs_f64(),
            paths: paths
                .map(|(i, p)| Py::new(py, PathView::of(i, p, c.labels.get(i))))
                .collect::<PyResult<_>>()?,
            unsent: c.unsent,
            more: c.more,
            window: c.window,
            window_room: c.window_room,
            blocked: c.blocked,
        })
    }

    fn fit<'a, 'py: 'a>(
        &'a self,
        py: Python<'py>,
    ) -> impl Iterator<Item = &'a Bound<'py, PathView>> {
        let regular = self.paths.iter().any(|p| p.get().fits() && !p.get().backup);
        let fits = move |p: &&Bound<'py, PathView>| {
            let p = p.get();
            p.fits() && !(regular && p.backup)
        };
        self.paths.iter().map(move |p| p.bind(py)).filter(fits)
    }
}

#[pymethods]
impl Context {
    /// For tests of schedulers: much data, much room in the peer's window.
    #[new]
    #[pyo3(signature = (paths, *, now=0.0, unsent=1 << 40, more=false, window=1 << 30, window_room=1 << 29,
        blocked=0))]
    const fn new(
        paths: Vec<Py<PathView>>,
        now: f64,
        unsent: u64,
        more: bool,
        window: u64,
        window_room: u64,
        blocked: u64,
    ) -> Self {
        Self {
            now,
            paths,
            unsent,
            more,
            window,
            window_room,
            blocked,
        }
    }

    /// All subflows, in the order in which they were opened.
    #[getter]
    fn paths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.paths.iter().map(|p| p.bind(py)))
    }

    /// Paths that new data may use at all: usable, not in loss, and backups only if there is nothing else.
    fn candidates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.fit(py).collect::<Vec<_>>())
    }

    /// Candidates that can send now.
    fn ready<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let ready = self.fit(py).filter(|p| p.get().can_send);
        PyList::new(py, ready.collect::<Vec<_>>())
    }

    /// The ready path of least smoothed round-trip time, the earlier one of equals; none if none is ready.
    fn lowest_latency<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PathView>> {
        let ready = self.fit(py).filter(|p| p.get().can_send);
        let least = ready.min_by(|a, b| a.get().latency().total_cmp(&b.get().latency()));
        least.cloned()
    }

    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

/// A choice: new data goes to this path and a copy of it to every other one, as soon as each has room.
#[pyclass(frozen, get_all, module = "gargalo")]
#[derive(Debug)]
pub struct SendAll {
    /// The path, or its index.
    pub path: Py<PyAny>,
}

#[pymethods]
impl SendAll {
    #[new]
    const fn new(path: Py<PyAny>) -> Self {
        Self { path }
    }
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("SendAll({})", self.path.bind(py).repr()?))
    }
}
