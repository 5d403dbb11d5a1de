//! What tshark thinks of our packets.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::Test;
use crate::case::*;
use crate::transfers::run;

pub const TESTS: &[Test] = &[("tshark_finds_nothing_wrong", clean)];

/// What tshark prints for the packets that `filter` chooses.
fn tshark(path: &Path, filter: &str, more: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.args(["-o", "mptcp.analyze_mappings:TRUE", "-r"]);
    command.arg(path).args(["-Y", filter]).args(more);
    let done = command.output().expect("tshark runs");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    text.lines().map(str::to_owned).collect()
}

const FIELDS: [&str; 8] = [
    "-T",
    "fields",
    "-e",
    "frame.number",
    "-e",
    "ip.src",
    "-e",
    "_ws.expert.message",
];

/// Every byte of data, sent for the first time or again, lies in the mapping of its own packet.
fn mappings_cover(path: &Path) {
    let fields = [
        "tcp.seq",
        "tcp.len",
        "tcp.options.mptcp.subflowseqno",
        "tcp.options.mptcp.datalvllen",
    ];
    let fields: Vec<&str> = fields.iter().flat_map(|f| ["-e", *f]).collect();
    let all = [&["-T", "fields"][..], &fields].concat();
    let data = tshark(
        path,
        "tcp.len > 0 && tcp.options.mptcp.subflowseqno > 0",
        &all,
    );
    assert!(data.len() > 1000, "{}", data.len());
    for line in data {
        let n: Vec<u64> = line
            .split('\t')
            .map(|n| n.parse().expect("a number"))
            .collect();
        let [seq, len, mapped, length] = n[..] else {
            panic!("{line}");
        };
        assert!(mapped <= seq && seq + len <= mapped + length, "{line}");
    }
}

fn clean() {
    let cases = [
        (OURS_TO_KERNEL, false),
        (KERNEL_TO_OURS, true),
        (OURS, true),
    ];
    for (n, (who, long)) in cases.into_iter().enumerate() {
        let name = format!("gargalo-mptcp-{}-{n}-{long}", std::process::id());
        let both = std::env::temp_dir().join(format!("{name}.pcapng"));
        let path = std::env::temp_dir().join(format!("{name}-server.pcapng"));
        let case = Case {
            capture: Some(both.clone()),
            checksum: long,
            long,
            ..Case::new(who, &[(30, 5), (30, 10)], 3_000_000)
        };
        run(case).is_whole();
        // What the server saw: tshark would take what passes both ends of a link for repetitions.
        let server = "frame.interface_id == 1 || frame.interface_id == 3";
        tshark(&both, server, &["-w", &path.to_string_lossy()]);
        let wrong = |filter: &str| {
            let found = tshark(&path, filter, &FIELDS);
            assert!(
                found.is_empty(),
                "{who:?}, long={long}, {filter}: {found:#?}"
            );
        };
        wrong("mptcp.connection.missing_algorithm");
        // Segments without data have no mapping (tshark says so of the kernel's FINs, too), and those of
        // repetitions it does not take in.
        let anew = "!(tcp.analysis.retransmission || tcp.analysis.out_of_order)";
        wrong(&format!(
            "mptcp.dss.missing_mapping && tcp.len > 0 && {anew}"
        ));
        wrong("tcp.len > 0 && !(tcp.options.mptcp.subtype in {0, 2})");
        mappings_cover(&path);
        // Anything that tshark calls an error, and options that are cut off.
        wrong("_ws.expert.severity == 8388608 || _ws.malformed");
        // Linux writes a checksum of 0 as 0xffff, which is the same, and wrong for tshark (RFC 1624).
        let sum = "tcp.checksum.status == 0 && tcp.checksum != 0xffff";
        wrong(&format!("({sum}) || ip.checksum.status == 0"));
        wrong("tcp.analysis.ack_lost_segment || tcp.options.mptcp.subtype > 8");
        // It saw what it should have seen: joins, mappings, and one connection of two subflows.
        let count = |filter: &str| tshark(&path, filter, &FIELDS[..4]).len();
        let joins = count("tcp.options.mptcp.subtype == 1");
        let signals = count("tcp.options.mptcp.subtype == 2");
        assert!(joins >= 3 && signals > 1000, "{joins} {signals}");
        let streams = tshark(
            &path,
            "mptcp.stream",
            &["-T", "fields", "-e", "mptcp.stream", "-e", "tcp.stream"],
        );
        let streams: BTreeSet<String> = streams.into_iter().collect();
        assert_eq!(streams.into_iter().collect::<Vec<_>>(), ["0\t0", "0\t1"]);
        let _ = std::fs::remove_file(&both);
        let _ = std::fs::remove_file(&path);
    }
}
