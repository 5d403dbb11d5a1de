//! Packet scripts: what is given to a TCP stack and what it must answer, packet by packet, with times.
//!
//! [`read`] reads packetdrill's language into a [`ast::Script`]. [`run_text`] runs a script on our user-space host in
//! virtual time, or on the running kernel in real time, through a TUN device in a network namespace of its own. What
//! is not supported is a [`Fault`] with line and remedy; nothing is skipped.

mod assertion;
pub mod ast;
mod batch;
mod calls;
mod cookies;
mod fault;
mod files;
#[cfg(target_os = "linux")]
mod kernel;
mod messages;
mod multipath;
mod ours;
mod packet;
mod print;
mod reader;
mod run;
mod setup;
mod sockets;
mod stack;
mod words;

pub use batch::run_all;
pub use fault::Fault;
pub use reader::{OPTIONS, read};
pub use run::{Mismatch, Verdict};
pub use setup::{Choices, Report, Source, run_source, run_text};
