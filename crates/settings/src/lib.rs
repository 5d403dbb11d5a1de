//! Settings that are declared once, in the crate that owns them.
//!
//! A declaration has the name, the type, the default, the range and one line of meaning of each key:
//!
//! ```
//! use gargalo_settings::{Files, Setting, names, settings};
//! use gargalo_units::Duration;
//!
//! settings! {
//!     /// Controlled Delay (RFC 8289).
//!     pub struct CoDel: Copy as "CoDel" {
//!         /// Acceptable standing delay.
//!         target: Duration = Duration::from_millis(5), in Duration::from_micros(1)..;
//!         /// How the delay is measured.
//!         clock: Clock = Clock::Sojourn;
//!     }
//! }
//! names! {
//!     /// How the delay is measured.
//!     pub enum Clock {
//!         /// By the time that a packet waited.
//!         Sojourn = "sojourn",
//!         /// By the bytes that wait.
//!         Backlog = "backlog",
//!     }
//! }
//!
//! let json = serde_json::json!({ "target": "10ms" });
//! let codel = CoDel::read(&json, &mut Files::default())?;
//! assert_eq!(codel.target, Duration::from_millis(10));
//! assert_eq!(codel.write(), serde_json::json!({ "target": "10ms", "clock": "sojourn" }));
//! # Ok::<(), gargalo_settings::Error>(())
//! ```
//!
//! The macros generate from it the struct with its `Default`, the parser with errors that name the key, the writer of
//! text that parses to the same value ([`Setting::write`]), and the JSON Schema with descriptions and defaults
//! ([`Setting::schema`]), from which the reference pages, the Python types and the check of whole scenarios are built.
#![forbid(unsafe_code)]

mod error;
mod files;
pub mod listing;
mod macros;
mod quantity;
mod schema;
#[doc(hidden)]
pub mod support;
mod values;

pub use error::Error;
pub use files::Files;
pub use quantity::{Packets, Probability, Window, packets};
pub use schema::{Format, Schemas};
pub use serde_json::Value as Json;
pub use values::{Switch, number};

/// A type whose values can be written in a scenario.
pub trait Setting: Sized {
    /// The JSON Schema (draft 2020-12) of valid values; named tables are added to `schemas` and referred to.
    fn schema(schemas: &mut Schemas) -> Json;

    /// Parses what was written.
    ///
    /// # Errors
    /// When it is invalid, with the dotted path below this value.
    fn read(json: &Json, files: &mut Files) -> Result<Self, Error>;

    /// Writes JSON that parses to the same value; null: nothing is written.
    fn write(&self) -> Json;

    /// Checks the value; values that were parsed are checked already, those made by code are not.
    ///
    /// # Errors
    /// Returns the first invalid value below this one.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}
