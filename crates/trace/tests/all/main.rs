//! The tests of the crate's interface in one program: what they share is compiled and linked once.

mod capture;
mod directories;
mod files;
