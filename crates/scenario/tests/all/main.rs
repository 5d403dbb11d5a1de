//! The tests of the crate's interface in one program: what they share is compiled and linked once.

mod common;

mod audited;
mod background_load;
mod captured;
mod engine;
mod exchange;
mod measure;
mod mptcp;
mod parking_lot;
mod paths;
mod quic;
mod records;
mod send_buffer;
mod six_networks;
