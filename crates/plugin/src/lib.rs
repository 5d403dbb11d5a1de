//! The binary interface of compiled plug-ins: versioned tables of functions, as C structures.
//!
//! Each kind of plug-in is a module: its structures, which a C header in `include/` declares too, and what a library
//! written in Rust exports.

pub mod congestion;
pub mod headers;
pub mod stack;
