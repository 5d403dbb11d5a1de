//! Congestion controls: the interface of `include/gargalo_congestion.h`, and algorithms in Rust behind it.
//!
//! An algorithm is an entry as those of `gargalo_cc::ALGORITHMS` are: name, parameters and a function that builds a
//! [`gargalo_cc::Controller`]. A crate of type `cdylib` exports its entries:
//!
//! ```no_run
//! use gargalo_cc::algorithms::reno;
//! use gargalo_cc::params::Declared;
//!
//! const GENTLE: gargalo_cc::Algorithm = gargalo_cc::Algorithm {
//!     name: "gentle",
//!     aliases: &[],
//!     summary: "Reno that keeps more of its window",
//!     source: "",
//!     params: reno::RenoParams::params,
//!     build: |params, init| {
//!         let mut reno = reno::RenoParams::from_params("gentle", params)?;
//!         reno.beta = 0.8;
//!         Ok(Box::new(reno::Reno::build(reno, &init)))
//!     },
//! };
//! gargalo_plugin::export_congestion!(GENTLE);
//! # fn main() {}
//! ```
//!
//! The generator that a controller is given is seeded from the one that the host has for it.

pub mod abi;
pub mod export;

/// Exports algorithms ([`gargalo_cc::Algorithm`]) as the library's congestion controls; once in a library.
#[macro_export]
macro_rules! export_congestion {
    ($($algorithm:expr),+ $(,)?) => {
        /// The table of this library's congestion controls.
        #[unsafe(no_mangle)]
        pub extern "C" fn gargalo_congestion_v1() -> *const $crate::congestion::abi::Table {
            static ALGORITHMS: &[$crate::congestion::export::Algorithm] = &[$($algorithm),+];
            static TABLE: $crate::congestion::export::Once = $crate::congestion::export::Once::new();
            $crate::congestion::export::table(ALGORITHMS, &TABLE)
        }
    };
}
