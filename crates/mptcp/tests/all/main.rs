//! The tests of the crate's interface in one program: what they share is compiled and linked once.

#[path = "../common/mod.rs"]
mod common;

mod aggregate;
mod basics;
mod failures;
mod grid;
mod hostile;
mod signals;
