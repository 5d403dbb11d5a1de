//! The tests of the crate's interface in one program: what they share is compiled and linked once.

#[path = "../common/mod.rs"]
mod common;

mod closing;
mod fast_open;
mod hostile;
mod icmp;
mod listening;
mod multipath;
mod multipath_joins;
mod states;
mod transfer;
