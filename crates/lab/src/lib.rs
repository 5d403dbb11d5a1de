//! The lab: real kernels and our own stacks over emulated links, in real time and without root.
