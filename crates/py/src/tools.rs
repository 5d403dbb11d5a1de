//! Delivery traces and listings.

use gargalo_cc as cc;
use gargalo_link::trace::{CellularModel, TraceError};
use gargalo_link::{DeliveryTrace, QueueConfig};
use gargalo_mptcp as mptcp;
use gargalo_scenario::World;
use gargalo_scenario::memory::usual_limit;
use gargalo_settings::listing;
use gargalo_units::{Bytes, Duration, Rate};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

fn bad(e: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(e.to_string())
}

fn trace(text: &str) -> Result<DeliveryTrace, TraceError> {
    DeliveryTrace::parse(text)
}

/// The known name that a misspelt one is nearest to; `None` if none is near.
#[pyfunction]
pub fn nearest(name: &str, known: Vec<String>) -> Option<String> {
    gargalo_units::nearest(name, known.iter().map(String::as_str)).map(str::to_owned)
}

/// An amount of memory, written like "4GB", in bytes.
#[pyfunction]
pub fn memory_bytes(text: &str) -> PyResult<u64> {
    match text.parse::<Bytes>() {
        Ok(n) if !n.is_zero() => Ok(n.get()),
        Ok(_) => Err(bad("an amount of zero; write one like 4GB")),
        Err(e) => Err(bad(format!("{}; write an amount like 4GB", e.message))),
    }
}

/// What a run may take of memory unless told otherwise, in bytes: half of what the machine has left; `None`
/// where the system does not say.
#[pyfunction]
pub fn memory_limit() -> Option<u64> {
    usual_limit().map(Bytes::get)
}

/// A synthetic cellular trace (Sprout, NSDI 2013) as text; quantities are written with their units.
#[pyfunction]
#[pyo3(signature = (
    *, seed, duration="60s", initial_rate="5Mbit/s", max_rate="12Mbit/s", volatility=200.0, outage_escape=1.0
))]
pub fn trace_generate(
    seed: u64,
    duration: &str,
    initial_rate: &str,
    max_rate: &str,
    volatility: f64,
    outage_escape: f64,
) -> PyResult<String> {
    let model = CellularModel {
        duration: duration.parse::<Duration>().map_err(bad)?,
        initial_rate: initial_rate.parse::<Rate>().map_err(bad)?,
        max_rate: max_rate.parse::<Rate>().map_err(bad)?,
        volatility,
        outage_escape,
    };
    let mut rng = gargalo_flow::rng::stream(seed, "trace/cellular");
    Ok(model.generate(&mut rng).map_err(bad)?.to_text())
}

/// What a trace is like, in SI.
#[pyfunction]
pub fn trace_info<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyDict>> {
    let info = trace(text).map_err(bad)?.info();
    let d = PyDict::new(py);
    d.set_item("opportunities", info.opportunities)?;
    d.set_item("duration_s", info.duration.decimal_secs())?;
    d.set_item("longest_gap_s", info.longest_gap.decimal_secs())?;
    for (name, rate) in [
        ("rate_mean_bps", info.mean_rate),
        ("rate_min_bps", info.min_rate),
        ("rate_p5_bps", info.rate_p5),
        ("rate_p25_bps", info.rate_p25),
        ("rate_p50_bps", info.rate_p50),
        ("rate_p75_bps", info.rate_p75),
        ("rate_p95_bps", info.rate_p95),
        ("rate_max_bps", info.max_rate),
    ] {
        d.set_item(name, rate.as_bps())?;
    }
    Ok(d)
}

/// A trace from rows of (seconds, Mbit/s), as text.
#[pyfunction]
pub fn trace_from_rates(rows: Vec<(f64, f64)>) -> PyResult<String> {
    Ok(DeliveryTrace::from_rates(&rows).map_err(bad)?.to_text())
}

/// The rate of each bin of a trace: (seconds, bit/s).
#[pyfunction]
pub fn trace_rates(text: &str, bin: &str) -> PyResult<Vec<(f64, u64)>> {
    let bin = bin.parse::<Duration>().map_err(bad)?;
    let rates = trace(text).map_err(bad)?.rates(bin);
    Ok(rates
        .into_iter()
        .map(|(t, r)| (t.decimal_secs(), r.as_bps()))
        .collect())
}

fn entry<'py>(
    py: Python<'py>,
    name: &str,
    aliases: &[&str],
    summary: &str,
    source: &str,
    params: Vec<(&str, String, &str, String)>,
) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("name", name)?;
    d.set_item("aliases", aliases)?;
    d.set_item("summary", summary)?;
    d.set_item("source", source)?;
    let list = PyList::empty(py);
    for (name, default, doc, valid) in params {
        let p = PyDict::new(py);
        p.set_item("name", name)?;
        p.set_item("default", default)?;
        p.set_item("doc", doc)?;
        p.set_item("valid", valid)?;
        list.append(p)?;
    }
    d.set_item("parameters", list)?;
    Ok(d)
}

/// Every congestion control.
#[pyfunction]
pub fn congestion(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    cc::ALGORITHMS
        .iter()
        .map(|a| {
            let params = (a.params)().iter();
            let params = params.map(|p| (p.name, p.default_value().to_string(), p.doc, p.valid()));
            entry(py, a.name, a.aliases, a.summary, a.source, params.collect())
        })
        .collect()
}

/// Every scheduler of Multipath TCP.
#[pyfunction]
pub fn schedulers(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let all = mptcp::scheduler::SCHEDULERS.iter();
    all.map(|e| chooser(py, e.name, e.summary, e.source, (e.params)()))
        .collect()
}

/// Every path manager of Multipath TCP.
#[pyfunction]
pub fn path_managers(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let all = mptcp::path_manager::PATH_MANAGERS.iter();
    all.map(|e| chooser(py, e.name, e.summary, e.source, (e.params)()))
        .collect()
}

/// An entry of a list.
pub(crate) fn chooser<'py>(
    py: Python<'py>,
    name: &str,
    summary: &str,
    source: &str,
    params: &[cc::Param],
) -> PyResult<Bound<'py, PyDict>> {
    let params = params.iter();
    let params = params.map(|p| (p.name, p.default_value().to_string(), p.doc, p.valid()));
    entry(py, name, &[], summary, source, params.collect())
}

/// Every queueing discipline.
#[pyfunction]
pub fn queues(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let all = listing::kinds::<QueueConfig>();
    let listed = all.iter().map(|q| {
        let key = |k: &'_ listing::Key| {
            (
                k.name.clone(),
                k.default.clone(),
                k.doc.clone(),
                k.takes.clone(),
            )
        };
        let keys: Vec<_> = q.keys.iter().map(key).collect();
        let keys = keys.iter().map(|(name, default, doc, takes)| {
            (name.as_str(), default.clone(), doc.as_str(), takes.clone())
        });
        entry(py, &q.name, &[], &q.summary, &q.source, keys.collect())
    });
    listed.collect()
}

/// Every set of TCP defaults.
#[pyfunction]
pub fn profiles(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    use gargalo_settings::listing::words;
    let tcp = words::<gargalo_tcp::Profile>();
    let quic = words::<gargalo_quic::Profile>();
    let tcp = tcp.iter().map(|p| ("TCP", p));
    tcp.chain(quic.iter().map(|p| ("QUIC", p)))
        .map(|(transport, p)| {
            let summary = format!("{transport} {}", p.summary);
            entry(py, &p.name, &[], &summary, &p.source, Vec::new())
        })
        .collect()
}

/// What a scenario can ask for, and who does it: `key`, `example`, and for `sim` and `lab` why not; none: it does.
#[pyfunction]
pub fn capabilities(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |c: &gargalo_scenario::capabilities::Capability| {
        let d = PyDict::new(py);
        d.set_item("key", &c.key)?;
        d.set_item("example", c.example)?;
        d.set_item("sim", c.sim)?;
        d.set_item("lab", c.lab)?;
        Ok(d)
    };
    let all = gargalo_scenario::capabilities::capabilities();
    all.iter().map(row).collect()
}

/// What "sim" or "lab" lacks of what a scenario asks for, a sentence each; the text need not be right otherwise.
#[pyfunction]
pub fn lacking(text: &str, world: &str) -> PyResult<Vec<String>> {
    let known = |w: &&World| w.name() == world;
    let Some(world) = World::ALL.iter().find(known) else {
        let known = World::NAMES.join(" or ");
        return Err(bad(format!("there is no world \"{world}\": {known}")));
    };
    Ok(gargalo_scenario::capabilities::missing(text, *world))
}

/// Every results table with its columns.
#[pyfunction]
pub fn tables(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    gargalo_trace::schema::TABLES
        .iter()
        .map(|t| {
            let columns = PyList::empty(py);
            for c in t.columns {
                let d = PyDict::new(py);
                d.set_item("name", c.name)?;
                d.set_item("type", c.ty.name())?;
                d.set_item("nullable", c.nullable)?;
                d.set_item("unit", c.unit)?;
                d.set_item("doc", c.doc())?;
                columns.append(d)?;
            }
            let d = PyDict::new(py);
            d.set_item("name", t.name)?;
            d.set_item("doc", t.doc())?;
            d.set_item("columns", columns)?;
            Ok(d)
        })
        .collect()
}
