//! The Python module `gargalo._core`: thin glue between the interpreter and the crates.
#![forbid(unsafe_code)]

mod answers;
mod carrying;
mod classes;
mod controller;
mod errors;
mod files;
mod lab;
mod methods;
mod multipath;
mod native;
mod recording;
mod records;
mod run;
mod script;
mod stack;
mod stacks;
mod tools;
mod window;
#[cfg(target_os = "linux")]
mod wire;

use pyo3::prelude::*;

/// The JSON Schema of scenarios.
#[pyfunction]
fn schema() -> String {
    gargalo_scenario::schema().to_string()
}

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("__engine__", env!("GARGALO_ENGINE"))?;
    errors::register(m)?;
    m.add_class::<run::RunResult>()?;
    m.add_class::<files::ResultsDir>()?;
    m.add_class::<window::Window>()?;
    m.add_class::<native::NativeCongestion>()?;
    m.add_class::<records::Init>()?;
    m.add_class::<records::Established>()?;
    m.add_class::<records::Sent>()?;
    m.add_class::<records::Acked>()?;
    m.add_class::<records::RateSample>()?;
    m.add_class::<records::Lost>()?;
    m.add_class::<records::Congestion>()?;
    m.add_class::<records::Spurious>()?;
    m.add_class::<records::Path>()?;
    m.add_class::<records::Sibling>()?;
    m.add_class::<stack::QuicHost>()?;
    m.add_class::<multipath::records::ConnectionInit>()?;
    m.add_class::<multipath::records::PathView>()?;
    m.add_class::<multipath::records::Context>()?;
    m.add_class::<multipath::records::SendAll>()?;
    m.add_class::<multipath::records::LocalAddress>()?;
    m.add_class::<multipath::records::RemoteAddress>()?;
    m.add_class::<multipath::records::SubflowView>()?;
    m.add_class::<multipath::records::Open>()?;
    m.add_class::<multipath::records::View>()?;
    m.add_class::<stacks::PyNativeStack>()?;
    m.add_function(wrap_pyfunction!(stacks::native_stack, m)?)?;
    m.add_function(wrap_pyfunction!(stacks::calls_outside, m)?)?;
    m.add_function(wrap_pyfunction!(schema, m)?)?;
    m.add_function(wrap_pyfunction!(run::run, m)?)?;
    m.add_function(wrap_pyfunction!(recording::read_recording, m)?)?;
    m.add_function(wrap_pyfunction!(recording::kind_of_log, m)?)?;
    m.add_function(wrap_pyfunction!(carrying::carry, m)?)?;
    m.add_function(wrap_pyfunction!(run::resolve, m)?)?;
    m.add_function(wrap_pyfunction!(run::setup, m)?)?;
    m.add_function(wrap_pyfunction!(files::replaceable, m)?)?;
    m.add_function(wrap_pyfunction!(files::recover, m)?)?;
    m.add_function(wrap_pyfunction!(files::verify, m)?)?;
    m.add_function(wrap_pyfunction!(files::add_files, m)?)?;
    m.add_function(wrap_pyfunction!(files::bad_name, m)?)?;
    m.add_function(wrap_pyfunction!(lab::enter_sandbox, m)?)?;
    m.add_function(wrap_pyfunction!(lab::shell, m)?)?;
    m.add_function(wrap_pyfunction!(script::scripts, m)?)?;
    m.add_function(wrap_pyfunction!(native::native_congestion, m)?)?;
    m.add_function(wrap_pyfunction!(native::seal_library, m)?)?;
    m.add_function(wrap_pyfunction!(native::native_congestion_named, m)?)?;
    m.add_function(wrap_pyfunction!(native::tell_crashes_to, m)?)?;
    m.add_function(wrap_pyfunction!(native::plugin_headers, m)?)?;
    m.add_function(wrap_pyfunction!(native::has_stuck_calls, m)?)?;
    m.add_function(wrap_pyfunction!(tools::nearest, m)?)?;
    m.add_function(wrap_pyfunction!(tools::memory_bytes, m)?)?;
    m.add_function(wrap_pyfunction!(tools::memory_limit, m)?)?;
    m.add_function(wrap_pyfunction!(tools::trace_generate, m)?)?;
    m.add_function(wrap_pyfunction!(tools::trace_info, m)?)?;
    m.add_function(wrap_pyfunction!(tools::trace_from_rates, m)?)?;
    m.add_function(wrap_pyfunction!(tools::trace_rates, m)?)?;
    m.add_function(wrap_pyfunction!(tools::congestion, m)?)?;
    m.add_function(wrap_pyfunction!(tools::schedulers, m)?)?;
    m.add_function(wrap_pyfunction!(tools::path_managers, m)?)?;
    m.add_function(wrap_pyfunction!(tools::queues, m)?)?;
    m.add_function(wrap_pyfunction!(tools::profiles, m)?)?;
    m.add_function(wrap_pyfunction!(tools::capabilities, m)?)?;
    m.add_function(wrap_pyfunction!(tools::lacking, m)?)?;
    m.add_function(wrap_pyfunction!(tools::tables, m)?)?;
    #[cfg(target_os = "linux")]
    {
        m.add_function(wrap_pyfunction!(wire::wire_iperf3, m)?)?;
        m.add_function(wrap_pyfunction!(wire::wire_connect, m)?)?;
    }
    Ok(())
}
