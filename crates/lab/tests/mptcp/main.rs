//! Our Multipath TCP and the Linux kernel's, over emulated paths, in real time.
//!
//! Needs Linux with CONFIG_MPTCP and the sandbox; where either is missing every test is ignored, with the
//! reason. `GARGALO_MPTCP_SHOW=1` prints what every run did,
//! `GARGALO_MPTCP_CAPTURE=FILE` keeps the packets of the last one, `GARGALO_MPTCP_BYTES` makes the plain
//! transfers longer, `GARGALO_MPTCP_FASTER` their paths faster.

mod captures;
mod case;
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
    let missing = if arguments.list { None } else { why_not() };
    if let Some(why) = &missing {
        eprintln!("no tests of Multipath TCP against the kernel here: {why}");
    }
    let here = [
        transfers::TESTS,
        fallback::TESTS,
        failures::TESTS,
        goodput::TESTS,
        readback::TESTS,
    ]
    .concat();
    let no_tshark = Command::new("tshark").arg("-v").output().is_err();
    if no_tshark {
        eprintln!("no tests of captures here: tshark is not installed");
    }
    let trial = |(name, test): &Test, ignored: bool| {
        let test = *test;
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(*name, run).with_ignored_flag(ignored)
    };
    let ignored = missing.is_some();
    let tests = here.iter().map(|t| trial(t, ignored));
    let captures = captures::TESTS
        .iter()
        .map(|t| trial(t, ignored || no_tshark));
    let tests = tests.chain(captures);
    libtest_mimic::run(&arguments, tests.collect()).exit_code()
}

/// Enters the sandbox; or why these tests cannot run here.
fn why_not() -> Option<String> {
    if std::fs::read_to_string("/proc/sys/net/mptcp/enabled").is_err() {
        return Some("the kernel has no MPTCP (CONFIG_MPTCP)".to_owned());
    }
    sandbox::enter(Network::New).err().map(|e| e.to_string())
}
