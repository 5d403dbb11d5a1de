//! Congestion controls of shared libraries.
