//! Fuzz targets: functions of bytes that panic when a check fails, listed in one table.
//!
//! Two drivers run them: [`Runner`], with the stored corpus and seeded mutations of it, which needs only stable Rust;
//! and libFuzzer, guided by coverage (`make fuzz`).
#![forbid(unsafe_code)]

mod failure;
mod mutate;
mod runner;
mod targets;

pub use runner::{Report, Runner};

use std::path::PathBuf;

/// A function to be tested with arbitrary bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of the directory of its corpus.
    pub name: &'static str,
    /// What it does and which conditions it checks.
    pub about: &'static str,
    /// Runs one input; panics when a check fails.
    pub run: fn(&[u8]),
    /// Longest useful input in bytes.
    pub longest: usize,
    /// Number of inputs generated in `make test`, in addition to the corpus.
    pub inputs: u64,
    /// Dictionary of words in its inputs; empty for binary ones.
    pub words: &'static [&'static str],
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "tcp_options",
        about: "TCP and MPTCP options: nothing is lost on the way there and back",
        run: targets::wire::tcp_options,
        longest: 64,
        inputs: 100_000,
        words: &[],
    },
    Target {
        name: "tcp_segment",
        about: "TCP segments: what is decoded is written and read back",
        run: targets::wire::tcp_segment,
        longest: 120,
        inputs: 100_000,
        words: &[],
    },
    Target {
        name: "ip_datagram",
        about: "IPv4 and IPv6 with TCP, UDP and others: what is parsed is written and read back",
        run: targets::wire::ip_datagram,
        longest: 200,
        inputs: 100_000,
        words: &[],
    },
    Target {
        name: "delivery_trace",
        about: "packet-delivery traces in mahimahi's format: the text is read back the same",
        run: targets::delivery_trace,
        longest: 400,
        inputs: 20_000,
        words: &["0\n", "1\n", "1000\n", "18446744073709551615\n", "# \n"],
    },
    Target {
        name: "iperf3",
        about: "the control connection of iperf3, whole and in pieces: what is read is written and read back",
        run: targets::iperf3::iperf3,
        longest: 2_000,
        inputs: 50_000,
        words: targets::iperf3::WORDS,
    },
    Target {
        name: "host",
        about: "raw and well-formed datagrams into a host with listeners, connections and UDP: memory is bounded",
        run: targets::host::host,
        longest: 2_000,
        inputs: 10_000,
        words: &[],
    },
    Target {
        name: "tcp",
        about: "a TCP connection whose segments are lost, changed and forged: without forgery every byte arrives",
        run: targets::segments::tcp,
        longest: 1_000,
        inputs: 5_000,
        words: &[],
    },
    Target {
        name: "mptcp",
        about: "the same for Multipath TCP, with options changed and forged",
        run: targets::segments::mptcp,
        longest: 1_000,
        inputs: 5_000,
        words: &[],
    },
    Target {
        name: "quic",
        about: "a QUIC connection whose datagrams are changed, outside of and within packet protection",
        run: targets::quic::quic,
        longest: 1_000,
        inputs: 2_000,
        words: &[],
    },
    Target {
        name: "recording",
        about: "captures, whole and damaged, with keys and without: what is told of their flows is possible",
        run: targets::recording,
        longest: 7_000,
        inputs: 2_000,
        words: &[],
    },
    Target {
        name: "scenario",
        about: "scenarios grown from the JSON Schema or changed examples: text and tree agree, and what is accepted \
            runs",
        run: targets::scenario::tree,
        longest: 2_000,
        inputs: 2_000,
        words: &[],
    },
    Target {
        name: "scenario_text",
        about: "the text of scenarios: diagnostics, or a scenario that is the same each time",
        run: targets::scenario::text,
        longest: 3_000,
        inputs: 3_000,
        words: targets::scenario::WORDS,
    },
];

/// Returns the target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|t| t.name == name)
}

/// The directory of a target's corpus.
pub fn corpus(target: &Target) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus")).join(target.name)
}
