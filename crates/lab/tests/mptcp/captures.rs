//! What tshark thinks of our packets.

use std::process::Command;

use crate::Test;
use crate::case::*;
use crate::transfers::run;

pub const TESTS: &[Test] = &[("tshark_finds_nothing_wrong", clean)];

/// What tshark prints for the packets that `filter` chooses.
fn tshark(path: &std::path::Path, filter: &str, fields: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(path)
        .args(["-Y", filter, "-T", "fields"]);
    for f in fields {
        command.args(["-e", f]);
    }
    let done = command.output().expect("tshark runs");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    text.lines().map(str::to_owned).collect()
}

fn clean() {
    for (n, who) in [OURS_TO_KERNEL, KERNEL_TO_OURS, OURS]
        .into_iter()
        .enumerate()
    {
        for long in [false, true] {
            let name = format!("gargalo-mptcp-{}-{n}-{long}.pcapng", std::process::id());
            let path = std::env::temp_dir().join(name);
            let case = Case {
                capture: Some(path.clone()),
                checksum: long,
                long,
                ..Case::new(who, &[(30, 5), (30, 10)], 3_000_000)
            };
            run(case).is_whole();
            let fields = ["frame.number", "ip.src", "_ws.expert.message"];
            // Multipath TCP: bad lengths, checksums, mappings, tokens, unknown subtypes.
            let wrong = tshark(&path, "mptcp.expert || (mptcp && _ws.malformed)", &fields);
            assert_eq!(wrong, [""; 0], "{who:?}");
            // Anything that tshark calls an error, and options that are cut off.
            let errors = tshark(
                &path,
                "_ws.expert.severity == 8388608 || _ws.malformed",
                &fields,
            );
            assert_eq!(errors, [""; 0], "{who:?}");
            let bad = tshark(
                &path,
                "tcp.checksum.status == 0 || ip.checksum.status == 0",
                &fields,
            );
            assert_eq!(bad, [""; 0], "{who:?}");
            // It saw what it should have seen: joins, mappings and one connection with two subflows.
            let joins = tshark(&path, "tcp.options.mptcp.subtype == 1", &fields[..1]);
            let signals = tshark(&path, "tcp.options.mptcp.subtype == 2", &fields[..1]);
            assert!(
                joins.len() >= 3 && signals.len() > 1000,
                "{} {}",
                joins.len(),
                signals.len()
            );
            let _ = std::fs::remove_file(&path);
        }
    }
}
