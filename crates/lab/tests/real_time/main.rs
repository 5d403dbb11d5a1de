//! Emulated links between real kernels, and over them our Multipath TCP against the kernel's.
//!
//! Needs Linux, the sandbox, and for Multipath TCP CONFIG_MPTCP; what cannot be tested is ignored, with the
//! reason. `GARGALO_MPTCP_SHOW=1` prints what every run did,
//! `GARGALO_MPTCP_CAPTURE=FILE` keeps the packets of the last one, `GARGALO_MPTCP_BYTES` makes the plain
//! transfers longer, `GARGALO_MPTCP_FASTER` their paths faster.

mod captures;
mod case;
mod delay;
mod failures;
mod fallback;
mod goodput;
mod readback;
mod transfers;

use std::process::{Command, ExitCode};

use gargalo_lab::sandbox::{self, Network};
use libtest_mimic::{Arguments, Trial};

type Test = (&'static str, fn());

/// Transfers that run at a time, each with hosts and links of its own: few enough to leave two processors idle most
/// of the time, so that packets are not late.
const AT_A_TIME: usize = 4;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They mostly wait: for 160 s, in which they compute for 30.
    arguments.test_threads.get_or_insert(AT_A_TIME);
    let told = |missing: Option<String>, tests: &str| {
        if let Some(why) = &missing {
            eprintln!("no tests of {tests} here: {why}");
        }
        missing.is_some()
    };
    let no_sandbox = match arguments.list {
        true => None,
        false => sandbox::enter(Network::New).err().map(|e| e.to_string()),
    };
    let no_sandbox = told(no_sandbox, "emulated links");
    let no_mptcp = told(no_mptcp(), "Multipath TCP against the kernel");
    let tshark = Command::new("tshark").arg("-v").output();
    let no_tshark = tshark.err().map(|_| "tshark is not installed".to_owned());
    let no_tshark = told(no_tshark, "captures");
    let against_the_kernel = [
        transfers::TESTS,
        fallback::TESTS,
        failures::TESTS,
        goodput::TESTS,
        readback::TESTS,
    ]
    .concat();
    let sets = [
        (delay::TESTS, no_sandbox),
        (&against_the_kernel, no_sandbox || no_mptcp),
        (captures::TESTS, no_sandbox || no_mptcp || no_tshark),
    ];
    let trial = |(name, test): Test, ignored: bool| {
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(ignored)
    };
    let tests = sets
        .into_iter()
        .flat_map(|(set, ignored)| set.iter().map(move |t| trial(*t, ignored)));
    libtest_mimic::run(&arguments, tests.collect()).exit_code()
}

/// Why this kernel has no Multipath TCP.
fn no_mptcp() -> Option<String> {
    let found = std::fs::read_to_string("/proc/sys/net/mptcp/enabled");
    found
        .is_err()
        .then(|| "the kernel has no MPTCP (CONFIG_MPTCP)".to_owned())
}
