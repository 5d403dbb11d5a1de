//! All scripts of the repository on our stack, in virtual time.

use std::fs;
use std::path::{Path, PathBuf};

use gargalo_script::ast::Only;
use gargalo_script::{Choices, Verdict, read, run_text};
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
        stack: Only::Ours,
        tolerance: Duration::ZERO,
        gargalo: Vec::new(),
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
        ("0 %{ print(1) }%", "`print` is not supported in %{ }%"),
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
