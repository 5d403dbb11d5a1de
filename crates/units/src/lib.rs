//! Typed quantities of a network: instants, durations, bytes, rates and sequence numbers.
//!
//! Time is integer nanoseconds, rates are bits per second. Only operators that have a physical meaning exist:
//! `Bytes / Duration = Rate`, `Rate * Duration = Bytes`, `Instant - Instant = Duration`. Text is parsed with its
//! unit or refused ([`parse`]); [`nearest`] finds the known name that is most like a misspelt one.
//! Files are read with a bound ([`read_file`]).
#![forbid(unsafe_code)]

#[macro_use]
mod amount;
mod bytes;
mod counters;
mod ecn;
mod foreign;
mod nearest;
pub mod parse;
mod rate;
mod seq;
mod system;
mod time;

pub use bytes::Bytes;
pub use counters::{Count, Counter, SenderCounters};
pub use ecn::Ecn;
pub use nearest::nearest;
pub use parse::ParseError;
pub use rate::Rate;
pub use seq::{DataSeq, Seq};
pub use system::{LONGEST_FILE, read_file, reason};
pub use time::{Duration, Instant};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
