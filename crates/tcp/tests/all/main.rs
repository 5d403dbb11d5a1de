//! The tests of the crate's interface in one program: what they share is compiled and linked once.

#[path = "../common/mod.rs"]
mod common;

mod closing;
mod ecn_and_probes;
mod hostile;
mod mtu_probing;
mod opening;
mod options;
mod path;
mod receiving;
mod segments;
mod sending;
mod simultaneous;
