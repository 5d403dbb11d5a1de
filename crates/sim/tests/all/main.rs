//! The tests of the crate's interface in one program: what they share is compiled and linked once.

#[path = "../support/mod.rs"]
mod support;

mod ahead;
mod background;
mod l4s;
mod media;
mod nada;
mod objects;
mod path_mtu;
mod profiles;
mod response_function;
mod standstill;
mod worlds;
