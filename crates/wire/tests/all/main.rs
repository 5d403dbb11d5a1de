//! The tests of the crate's interface in one program: what they share is compiled and linked once.

mod common;

mod linux_layout;
mod oracle;
mod round_trip;
