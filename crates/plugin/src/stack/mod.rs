//! QUIC stacks: the interface of `include/gargalo_stack.h`.

pub mod abi;
