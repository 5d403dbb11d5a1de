//! The tests of the crate's interface in one program: what they share is compiled and linked once.

#[path = "../pair/mod.rs"]
mod pair;

mod determinism;
mod early;
mod hostile;
mod options;
mod paths;
mod records;
mod robustness;
mod transfer;
