//! Congestion controls: the interface of `include/gargalo_congestion.h`.

pub mod abi;
