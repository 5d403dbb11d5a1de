//! All scripts of the repository on our stack, in virtual time.

use std::fs;
use std::path::{Path, PathBuf};

use gargalo_script::ast::Only;
use gargalo_script::{Choices, Report, Source, Verdict, read, run_source, run_text};
use gargalo_units::Duration;

fn scripts() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
    let mut found = Vec::new();
    let mut directories = vec![root];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|e| e == "pkt") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn ours(text: &str) -> Verdict {
    let choices = Choices {
        tolerance: Duration::ZERO,
        strict_end: true,
        ..Choices::new(Only::Ours)
    };
    run_text(text, &choices)
}

/// Each script passes, except those whose head says what our stack does wrong, which fail.
#[test]
fn scripts_pass_on_our_stack() {
    let all = scripts();
    assert!(all.len() >= 10, "{} scripts", all.len());
    let mut wrong = Vec::new();
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        let fails = text.contains("\n// fails on ours: ");
        let name = path.display();
        match (ours(&text), fails) {
            (Verdict::Passed, false) | (Verdict::Failed(_), true) => {}
            (Verdict::Passed, true) => wrong.push(format!(
                "{name} passes now: take the line `fails on ours` out of its head"
            )),
            (other, _) => wrong.push(format!("{name}: {other:#?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn scripts_print_as_text_that_reads_the_same() {
    for path in scripts() {
        let script = read(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(read(&script.to_string()), Ok(script), "{}", path.display());
    }
}

const OPEN: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1000>
+0 > S. 0:0(0) ack 1 <mss 1460>
+.1 < . 1:1(0) ack 1 win 65535
+0 accept(3, ..., ...) = 4
";

/// Line and message of a script that fails.
fn failure(rest: &str) -> (u32, String) {
    match ours(&format!("{OPEN}{rest}")) {
        Verdict::Failed(m) => {
            assert!(m.packets.len() > 2, "the packets so far are shown");
            (m.at.line, m.came)
        }
        other => panic!("{rest}: {other:?}"),
    }
}

#[test]
fn what_differs_is_named_with_its_line() {
    let cases = [
        (
            "+0 write(4, ..., 500) = 500\n+0 > P. 1:401(400) ack 1\n",
            9,
            "payload: expected 400, came 500",
        ),
        (
            "+0 write(4, ..., 500) = 500\n+0 > P. 2:502(500) ack 1\n",
            9,
            "sequence number: expected 2, came 1",
        ),
        (
            "+0 write(4, ..., 500) = 500\n+0 > P. 1:501(500) ack 2\n",
            9,
            "ack: expected 2, came 1",
        ),
        (
            "+0 write(4, ..., 500) = 500\n+0 > F. 1:501(500) ack 1\n",
            9,
            "flags: expected F., came P.",
        ),
        (
            "+0 write(4, ..., 500) = 500\n+0 > P. 1:501(500) ack 1 win 1\n",
            9,
            "win: expected 1",
        ),
        (
            "+0 write(4, ..., 500) = 500\n+0 > P. 1:501(500) ack 1 <nop>\n",
            9,
            "options: expected <nop>, came <>",
        ),
        (
            "+0 write(4, ..., 500) = 500\n+.1 > P. 1:501(500) ack 1\n",
            9,
            "time: expected 0.200000",
        ),
        ("+0 > P. 1:501(500) ack 1\n", 8, "no packet"),
        ("+0 write(4, ..., 500) = 400\n", 8, "write(...) = 500"),
        ("+0 read(4, ..., 500) = 500\n", 8, "the call blocks"),
        (
            "+0...0.5 read(4, ..., 500) = 500\n",
            8,
            "did not return until 0.600000 s",
        ),
        (
            "+0...0.5 read(4, ..., 500) = 100\n+.1 < P. 1:101(100) ack 1 win 9\n",
            8,
            "it returned at 0.200000 s instead of 0.600000 s",
        ),
        (
            "+0 %{ assert tcpi_snd_cwnd == 7 }%\n",
            8,
            "tcpi_snd_cwnd = ",
        ),
        (
            "+0 write(4, ..., 500) = 500\n+.1 fcntl(4, F_GETFL) = 2\n",
            9,
            "which no event expects",
        ),
        (
            "+0 poll([{fd=4, events=POLLIN|POLLOUT, revents=POLLIN}], 1, 0) = 1\n",
            8,
            "revents: expected 0x1, came 0x4",
        ),
    ];
    for (rest, line, message) in cases {
        let (at, came) = failure(rest);
        assert_eq!(at, line, "{rest}: {came}");
        assert!(came.contains(message), "{rest}: {came}");
    }
}

#[test]
fn what_is_not_supported_is_named_with_line_and_remedy() {
    let cases = [
        ("", "the script has no events"),
        ("0 fork() = 3", "the call fork is not supported"),
        ("0 `iptables -F`", "the command `iptables -F` is not run"),
        (
            "--speed=3\n0 close(3) = 0",
            "the option --speed is not supported",
        ),
        ("0 close(3) = 0", "there is no socket 3"),
        (
            "0 < S 0:0(0) win 5 <mptcp>",
            "the TCP option mptcp is not supported",
        ),
        ("0 < udp (10)", "`udp` are no control bits"),
        ("0 < S 0:5(0) win 5", "0:5(0) contradicts itself"),
        ("0 %{ import os }%", "`import` is not supported in %{ }%"),
        ("0 %{ assert 'a' }%", "'a' is not a number"),
        (
            "0 `../common/defaults.sh`",
            "the file ../common/defaults.sh",
        ),
        (
            "0 `nstat > /dev/null`",
            "the command `nstat > /dev/null` is not run",
        ),
        (
            "--remote_ip=127.0.0.1\n0 close(3) = 0",
            "--remote_ip=127.0.0.1 is not valid",
        ),
        (
            "0 `sysctl -q net.ipv4.tcp_fastopen=0x4`",
            "our stack has nothing for net.ipv4.tcp_fastopen=0x4",
        ),
        // Our stack has hybrid slow start of Linux with Linux's profile.
        (
            "0 `echo 3 > /sys/module/tcp_cubic/parameters/hystart_detect`",
            "our stack has nothing for the parameter hystart_detect=3 of tcp_cubic",
        ),
        (
            "--gargalo=profile=linux-6\n0 `echo 4 > /sys/module/tcp_cubic/parameters/hystart_detect`",
            "our stack has nothing for the parameter hystart_detect=4 of tcp_cubic",
        ),
        (
            "0 %{ assert tcpi_snd_cwn == 1 }%",
            "TCP_INFO has no field tcpi_snd_cwn; did you mean tcpi_snd_cwnd?",
        ),
        ("0 %{ assert cwnd == 1 }%", "the name cwnd is not known"),
        (
            "--gargalo=sack=maybe\n0 close(3) = 0",
            "an option of our TCP is not valid",
        ),
        ("--congestion=turtle\n0 close(3) = 0", "turtle"),
        (
            "0 `sysctl net.ipv4.tcp_abort_on_overflow=1`",
            "our stack has nothing for",
        ),
        (
            "0 ioctl(3, FIONBIO, [1]) = 0",
            "these arguments of ioctl are not supported",
        ),
        (
            "0 < S 0:0(0) win 5 <mpcapable v2 flags[flag_h] nokey>",
            "`v2` is no version of MPTCP",
        ),
        (
            "0 < S 0:0(0) win 5 <mpcapable v1 flags[flag_x] nokey>",
            "`flag_x` is no flag of MP_CAPABLE",
        ),
        (
            "0 < . 0:0(0) win 5 <mp_prio backup=1 address_id=2>",
            "MP_PRIO of version 1 has no address_id",
        ),
        (
            "0 < . 0:0(0) win 5 <dss dack8=1 dsn8=1>",
            "a mapping has dsn, ssn and dll",
        ),
        (
            "0 < S 0:0(0) win 5 <mp_join_syn token=sha1_32(skey)>",
            "sha1_32 is not supported in token=",
        ),
        (
            "0 < S 0:0(0) win 5 <mp_join_syn token=sha256_32(skey)>",
            "the key skey is not known yet",
        ),
        (
            "0 < . 0:0(0) win 5 <dss dack8=1>",
            "no packet has shown the key of the stack yet",
        ),
        (
            "0 < addr[caddr7] > addr[saddr0] S 0:0(0) win 5",
            "the address caddr7 does not end with a number from 0 to 3",
        ),
        (
            "0 `ip mptcp monitor`",
            "the command `ip mptcp monitor` is not run",
        ),
        (
            "--mptcp=checksum=maybe\n0 close(3) = 0",
            "an option of our Multipath TCP is not valid",
        ),
        (
            "0~1 close(3) = 0",
            "only packets that the stack sends have a range of time",
        ),
        (
            "0 < P. 1:65536(65535) ack 1 win 65535",
            "this packet does not exist in this version of IP",
        ),
    ];
    for (text, message) in cases {
        match ours(text) {
            Verdict::Unsupported(fault) => {
                let told = fault.to_string();
                assert!(told.contains(message), "{text}: {told}");
                assert!(
                    text.is_empty()
                        || !fault.help.is_empty()
                        || told.contains("our")
                        || told.contains("gargalo list"),
                    "{told}"
                );
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

const MULTIPATH: &str = "0 socket(..., SOCK_STREAM, IPPROTO_MPTCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1460,nop,wscale 8,mpcapable v1 flags[flag_h] nokey>
+0 > S. 0:0(0) ack 1 <mss 1460,wscale 7,mpcapable v1 flags[flag_h] key[skey]>
+.1 < . 1:1(0) ack 1 win 256 <mpcapable v1 flags[flag_h] key[ckey=2,skey]>
+0 accept(3, ..., ...) = 4
+0 write(4, ..., 500) = 500
";

/// What an expected MPTCP option leaves open agrees; anything else does not, and is shown in the words of the language.
#[test]
fn options_of_multipath_tcp_are_compared() {
    for (expected, agrees) in [
        ("dss dack8=1 dsn8=1 ssn=1 dll=500", true),
        ("dss dack=1 dsn=1 ssn=1 dll=500 nocs", true),
        ("nop,nop,dss dack8=1 dsn8=1 ssn=1 dll=500", true),
        ("dss dack4=1 dsn8=1 ssn=1 dll=500", false),
        ("dss dack8=2 dsn8=1 ssn=1 dll=500", false),
        ("dss dack8=1 dsn8=2 ssn=1 dll=500", false),
        ("dss dack8=1 dsn8=1 ssn=2 dll=500", false),
        ("dss dack8=1 dsn8=1 ssn=1 dll=501", false),
        ("dss dack8=1 dsn8=1 ssn=1 dll=500 cksum=auto", false),
        ("dss dack8=1 dsn8=1 ssn=1 dll=500 fin", false),
        ("dss dack8=1", false),
        ("mp_prio backup=1", false),
        ("", false),
    ] {
        let text = format!("{MULTIPATH}+0 > P. 1:501(500) ack 1 <{expected}>\n");
        match (ours(&text), agrees) {
            (Verdict::Passed, true) => {}
            (Verdict::Failed(m), false) => {
                let came = "came <dss dack8=1 dsn8=1 ssn=1 dll=500 nocs>";
                assert!(m.came.contains(came), "{expected}: {}", m.came);
            }
            (other, _) => panic!("{expected}: {other:?}"),
        }
    }
}

#[test]
fn events_of_the_other_stack_do_not_happen() {
    let text = format!(
        "{OPEN}kernel: +0 > P. 1:9(8) ack 1\nours: +0 %{{ assert tcpi_snd_mss == 1000 }}%\n"
    );
    assert_eq!(ours(&text), Verdict::Passed);
}

/// Runs a script as the command does without `--strict-end`.
fn as_they_are(text: &str) -> Verdict {
    run_text(text, &Choices::new(Only::Ours))
}

/// With ACK and no number a packet acknowledges the initial sequence number, as in packetdrill: its data is taken.
#[test]
fn data_without_an_acknowledgement_number_is_taken() {
    let text = "+0 write(4, ..., 10) = 10\n+0 > P. 1:11(10) ack 1\n+.1 < . 1:1(0) ack 11 win 9\n\
        +0 < P. 1:101(100) win 65535\n+0 > . 11:11(0) ack 101\n+0 read(4, ..., 200) = 100\n";
    assert_eq!(ours(&format!("{OPEN}{text}")), Verdict::Passed);
}

/// As in packetdrill: numbers of packets with SYN are as written, all others count from the initial one.
#[test]
fn sequence_numbers_count_from_the_initial_ones() {
    let text = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 700:700(0) win 65535 <mss 1000,sackOK>
+0 > S. 90:90(0) ack 701 <mss 1460,nop,nop,sackOK>
+.1 < . 1:1(0) ack 1 win 65535
+0 accept(3, ..., ...) = 4
+0 < P. 101:201(100) ack 1 win 65535
+0 > . 1:1(0) ack 1 <nop,nop,sack 101:201>
+0 write(4, ..., 500) = 500
+0 > P. 1:501(500) ack 1
+0 < P. 1:101(100) ack 501 win 65535
+0 > . 501:501(0) ack 201
";
    assert_eq!(ours(text), Verdict::Passed);
}

/// A script ends with its last event, as in packetdrill; `strict_end` wants everything to be expected.
#[test]
fn packets_after_the_last_expected_one_are_no_fault() {
    let text = format!("{OPEN}+0 write(4, ..., 500) = 500\n+.1 fcntl(4, F_GETFL) = 2\n");
    assert_eq!(as_they_are(&text), Verdict::Passed);
    assert!(matches!(ours(&text), Verdict::Failed(_)));
}

/// Linux leaves it to the device to cut long segments, and scripts expect what it hands to the device.
#[test]
fn a_segment_longer_than_the_mss_may_come_as_several() {
    let long = format!(
        "{OPEN}+0 write(4, ..., 4000) = 4000\n+0 > P. 1:3001(3000) ack 1\n+0 > P. 3001:4001(1000) ack 1\n"
    );
    assert_eq!(ours(&long), Verdict::Passed);
    assert!(matches!(
        ours(&format!("--strict_segments\n{long}")),
        Verdict::Failed(_)
    ));
    for (expected, came) in [
        ("1:3501(3500)", "payload: expected 3500, came 3000"),
        ("1:5001(5000)", "payload: expected 5000, came 4000"),
        ("1:501(500)", "payload: expected 500, came 1000"),
    ] {
        let text = format!("+0 write(4, ..., 4000) = 4000\n+0 > P. {expected} ack 1\n");
        let (_, told) = failure(&text);
        assert!(told.contains(came), "{told}");
    }
    // Two that make up no more than the MSS are two.
    let short = "+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0";
    let text = OPEN.replace(
        "+0 bind",
        &format!("{}\n+0 bind", short.replace("(4", "(3")),
    );
    let text = format!(
        "{text}+0 write(4, ..., 400) = 400\n+0 write(4, ..., 400) = 400\n+0 > P. 1:801(800) ack 1\n"
    );
    assert!(matches!(ours(&text), Verdict::Failed(_)));
}

#[test]
fn code_has_variables() {
    let good = "+0 %{ cwnd = tcpi_snd_cwnd; print(cwnd) }%\n+0 %{ cwnd += 1; assert tcpi_snd_cwnd == cwnd - 1 }%\n";
    assert_eq!(ours(&format!("{OPEN}{good}")), Verdict::Passed);
    let (_, came) = failure("+0 %{ wanted = 3\nassert tcpi_snd_cwnd == wanted, 'cwnd' }%\n");
    assert_eq!(came, "tcpi_snd_cwnd = 10, wanted = 3");
}

#[test]
fn null_and_any_error() {
    let text = "+0 write(4, NULL, 10) = -1 EFAULT (Bad address)\n+0 send(4, NULL, 10, 0) = -1\n\
        +0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n+0 read(4, ..., 10) = -1 (nothing there)\n";
    assert_eq!(ours(&format!("{OPEN}{text}")), Verdict::Passed);
    let (_, came) = failure("+0 write(4, ..., 10) = -1\n");
    assert_eq!(came, "write(...) = 10");
}

/// The settings of a shell file that a script names are set; what else is in it is told.
#[test]
fn settings_of_a_shell_file_are_set() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("settings_of_a_shell_file");
    for directory in ["common", "subject"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    let file = "#!/bin/bash\n# comment\nsysctl -q net.ipv4.tcp_sack=0 net.ipv4.tcp_nonsense=1\n\
        sysctl -q net.ipv4.tcp_rmem=\"4096 540000 $((15*1024*1024))\"\n\
        tc qdisc add dev tun0 root pfifo\nif true; then sleep 9\n";
    fs::write(root.join("common/defaults.sh"), file).unwrap();
    let syn = "+0 < S 0:0(0) win 65535 <mss 1000,sackOK,nop,wscale 7>\n\
        +0 > S. 0:0(0) ack 1 <mss 1460,nop,wscale 8>\n";
    let open = OPEN.split_inclusive('\n').take(3).collect::<String>() + syn;
    let run = |text: String, init: Option<(std::path::PathBuf, String)>| {
        let source = Source {
            text,
            directory: Some(root.join("subject")),
        };
        let choices = Choices {
            init,
            ..Choices::new(Only::Ours)
        };
        run_source(&source, &choices)
    };
    let notes = [
        "defaults.sh:6: `if true` is not run",
        "defaults.sh:6: `then sleep 9` is not run",
        "this stack does not take net.ipv4.tcp_nonsense=1",
    ];
    let told = run(format!("`../common/defaults.sh`\n{open}"), None);
    let expected = Report {
        read: true,
        verdict: Verdict::Passed,
        notes: notes.map(str::to_owned).to_vec(),
    };
    assert_eq!(told, expected);
    let init = Some((root.join("common/defaults.sh"), file.to_owned()));
    assert_eq!(run(open.clone(), init.clone()), expected);
    // A file that is not there is one that `--init` stands for.
    let text = format!("`../../missing/defaults.sh`\n{open}");
    assert_eq!(run(text.clone(), init).verdict, Verdict::Passed);
    let told = run(text, None);
    assert!(!told.read);
    assert!(matches!(told.verdict, Verdict::Unsupported(f) if f.help.contains("--init")));
}

#[test]
fn words_can_be_defined() {
    let text = OPEN.replace("mss 1000", "mss SIZE");
    let choices = Choices {
        defines: vec![("SIZE".to_owned(), "1000".to_owned())],
        ..Choices::new(Only::Ours)
    };
    assert_eq!(run_text(&text, &choices), Verdict::Passed);
}

#[test]
fn addresses_are_those_of_the_script() {
    let text = format!("--local_ip=10.0.0.9\n--remote_ip=10.1.0.7\n{OPEN}");
    assert_eq!(ours(&text), Verdict::Passed);
}

/// A second socket that listens has a connection of its own, and what the first one still sends is passed over.
#[test]
fn a_script_may_go_on_with_another_connection() {
    let second = "+0 close(3) = 0
+0 close(4) = 0
+.1 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 900:900(0) win 65535 <mss 1000>
+0 > S. 0:0(0) ack 901 <mss 1460>
+.3 < . 1:1(0) ack 1 win 65535
+0 accept(3, ..., ...) = 4
+0 write(4, ..., 10) = 10
+0 > P. 1:11(10) ack 1
";
    assert_eq!(as_they_are(&format!("{OPEN}{second}")), Verdict::Passed);
}

/// The queue `fq` makes the sender pace: what the window allows does not leave at once.
#[test]
fn the_queue_fq_paces() {
    let rest = "+0 write(4, ..., 10000) = 10000
+0 > . 1:1001(1000) ack 1
+0 > . 1001:2001(1000) ack 1
+0 > . 2001:3001(1000) ack 1
";
    let passes = run_text(&format!("{OPEN}{rest}"), &Choices::new(Only::Ours));
    assert_eq!(passes, Verdict::Passed);
    let text = format!("0 `tc qdisc replace dev tun0 root fq`\n{OPEN}{rest}");
    let Verdict::Failed(mismatch) = ours(&text) else {
        panic!("it did not pace");
    };
    assert_eq!(mismatch.at.line, 12, "two leave at once");
}

/// Slow start ends with the ninth sample of a round that has risen, unless the search by delay is switched off.
#[test]
fn a_parameter_of_the_module_switches_a_search_of_slow_start_off() {
    let threshold = |searches: u8| {
        let mut text = format!(
            "--gargalo=profile=linux-6
0 `sysctl -q net.ipv4.tcp_congestion_control=cubic net.ipv4.tcp_early_retrans=0
echo {searches} > /sys/module/tcp_cubic/parameters/hystart_detect`
{OPEN}+0 write(4, ..., 60000) = 60000\n"
        );
        for n in 1..=21 {
            text.push_str(&format!("+.02 < . 1:1(0) ack {} win 65535\n", 2000 * n + 1));
        }
        text.push_str("+0 %{ assert tcpi_snd_ssthresh == 0x7fffffff }%\n");
        let choices = Choices::new(Only::Ours);
        run_text(&text, &choices)
    };
    assert_eq!(threshold(0), Verdict::Passed);
    assert!(matches!(threshold(3), Verdict::Failed(_)));
}

/// With `fq` a train of acknowledgements must last a whole round trip, without it half of one: Linux's CUBIC knows that
/// its packets are paced.
#[test]
fn the_queue_fq_lengthens_the_train_that_ends_slow_start() {
    let threshold = |queue: &str| {
        let mut text = format!(
            "--gargalo=profile=linux-6
0 `sysctl -q net.ipv4.tcp_congestion_control=cubic net.ipv4.tcp_early_retrans=0
echo 1 > /sys/module/tcp_cubic/parameters/hystart_detect
tc qdisc replace dev tun0 root {queue}`
{OPEN}+0 write(4, ..., 400000) = 400000\n"
        );
        for acknowledged in [10_001, 30_001, 70_001] {
            text.push_str(&format!("+.1 < . 1:1(0) ack {acknowledged} win 65535\n"));
        }
        text.push_str("+.099 %{ assert tcpi_snd_ssthresh == 0x7fffffff }%\n");
        for n in 71..=125 {
            text.push_str(&format!("+.001 < . 1:1(0) ack {n}001 win 65535\n"));
        }
        text.push_str("+0 %{ assert tcpi_snd_ssthresh == 0x7fffffff }%\n");
        run_text(&text, &Choices::new(Only::Ours))
    };
    assert_eq!(threshold("fq"), Verdict::Passed);
    let Verdict::Failed(mismatch) = threshold("pfifo") else {
        panic!("it did not end");
    };
    assert_eq!(mismatch.at.line, 72, "at the end of the train");
}
