//! Results of a run: tables, Parquet, Arrow IPC and packet captures.
//!
//! The columns of every results table are defined once, in [`schema`]; row types, files and the reference page are
//! derived from it.
#![forbid(unsafe_code)]

mod error;
mod manifest;
mod parquet;
pub mod pcapng;
mod quantiles;
mod recovery;
mod run_dir;
pub mod schema;
pub mod stats;
pub mod table;
mod tables;

pub use error::{Error, shown, why_not};
pub use manifest::{GoOn, Manifest, check_file, check_replaceable, never_stop};
pub use quantiles::{QuantileSummary, Quantiles};
pub use recovery::{Recovered, recover};
pub use run_dir::{Existing, RunDir};
pub use schema::{EventRow, FlowRow, FlowSample, LinkSample};
pub use table::{Columns, Table};
pub use tables::Tables;
