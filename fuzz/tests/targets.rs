//! Every target with its kept inputs and a fixed number of mutations, in bounded memory.

use std::alloc::System;

use cap::Cap;
use gargalo_fuzz::{Runner, TARGETS, corpus};

/// All targets at work at the same time need less; more is a fault, and the process is aborted.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, 1 << 30);

fn run(name: &str) {
    let target = gargalo_fuzz::target(name).unwrap();
    let mut runner = Runner::new(target);
    // `make test LONG=1` tries them all.
    if std::env::var_os("LONG").is_none_or(|value| value.is_empty()) {
        runner.inputs /= 3;
    }
    match runner.run(target) {
        Ok(report) => {
            assert!(report.kept > 0, "{name} has no kept inputs");
            println!("{name}: {report:?}");
        }
        Err(why) => panic!("{why}"),
    }
}

macro_rules! tests {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            run(stringify!($name));
        })*

        #[test]
        fn every_target_is_tested() {
            let names: Vec<_> = TARGETS.iter().map(|t| t.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
            let entries = std::fs::read_dir(corpus(&TARGETS[0]).parent().unwrap()).unwrap();
            for entry in entries {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(names.contains(&&*name), "corpus/{name} is of no target");
            }
        }
    };
}

tests! {
    tcp_options tcp_segment ip_datagram delivery_trace iperf3 host tcp mptcp quic recording scenario scenario_text
}
