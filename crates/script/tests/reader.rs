//! The reader: what is printed reads the same, and anything can be read.

use gargalo_script::ast::mptcp::*;
use gargalo_script::ast::*;
use gargalo_script::read;
use gargalo_units::Ecn;
use proptest::prelude::*;

fn micros() -> impl Strategy<Value = u64> {
    0..9_000_000_000_000_u64
}

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![
        micros().prop_map(Time::Absolute),
        micros().prop_map(Time::Relative),
        Just(Time::Any),
        (0..1_000_000_u64, 1_000_000..9_000_000_u64).prop_map(|(a, b)| Time::Between(a, b)),
        (0..1_000_000_u64, 1_000_000..9_000_000_u64).prop_map(|(a, b)| Time::RelativeBetween(a, b)),
    ]
}

fn option() -> impl Strategy<Value = TcpOption> {
    let cookie = || prop::collection::vec(any::<u8>(), 0..17);
    prop_oneof![
        Just(TcpOption::Nop),
        Just(TcpOption::Eol),
        any::<u16>().prop_map(TcpOption::Mss),
        any::<u8>().prop_map(TcpOption::WindowScale),
        Just(TcpOption::SackPermitted),
        prop::collection::vec(any::<(u32, u32)>(), 1..=4).prop_map(TcpOption::Sack),
        any::<(u32, u32)>().prop_map(|(a, b)| TcpOption::Timestamps(a, b)),
        cookie().prop_map(TcpOption::FastOpen),
        cookie().prop_map(TcpOption::FastOpenExperimental),
        (35_u8.., cookie()).prop_map(|(kind, data)| TcpOption::Other(kind, data)),
        multipath().prop_map(TcpOption::Mptcp),
    ]
}

fn key() -> impl Strategy<Value = Key> {
    ("[a-z]key", any::<Option<u64>>()).prop_map(|(name, value)| Key { name, value })
}

fn code() -> impl Strategy<Value = Code> {
    prop_oneof![
        Just(Code::Auto),
        prop::collection::vec(any::<u8>(), 5..20).prop_map(Code::Bytes),
        Just(Code::Keys("ckey".to_owned(), "skey".to_owned())),
    ]
}

fn checksum() -> impl Strategy<Value = Checksum> {
    prop_oneof![
        Just(Checksum::None),
        Just(Checksum::Auto),
        any::<u16>().prop_map(Checksum::Value)
    ]
}

fn data_number() -> impl Strategy<Value = DataNumber> {
    let octets = prop::sample::select(vec![None, Some(4), Some(8)]);
    (octets, any::<u64>()).prop_map(|(octets, value)| DataNumber { octets, value })
}

fn multipath() -> impl Strategy<Value = Mptcp> {
    let keys = prop::collection::vec(key(), 0..3);
    let data = prop::option::of((any::<u16>(), checksum()));
    let capable = (0..2_u8, any::<u8>(), keys, data).prop_map(|(version, flags, keys, data)| {
        let data = data.filter(|_| keys.len() == 2);
        Mptcp::Capable {
            version,
            flags,
            keys,
            data,
        }
    });
    let token = prop_oneof![
        Just(Token::Auto),
        any::<u32>().prop_map(Token::Number),
        Just(Token::Of("skey".to_owned()))
    ];
    let (id, nonce) = (|| any::<Option<u8>>(), || any::<Option<u32>>());
    let syn = (any::<bool>(), id(), token, nonce()).prop_map(|(backup, id, token, nonce)| {
        Mptcp::JoinSyn {
            backup,
            id,
            token,
            nonce,
        }
    });
    let syn_ack = (any::<bool>(), id(), code(), nonce()).prop_map(|(backup, id, code, nonce)| {
        Mptcp::JoinSynAck {
            backup,
            id,
            code,
            nonce,
        }
    });
    let mapping = (data_number(), any::<u32>(), any::<u16>(), checksum());
    let mapping = mapping.prop_map(|(data, subflow, length, checksum)| Mapping {
        data,
        subflow,
        length,
        checksum,
    });
    let dss = (
        prop::option::of(data_number()),
        prop::option::of(mapping),
        any::<bool>(),
    );
    let dss = dss.prop_map(|(ack, mapping, fin)| Mptcp::Dss { ack, mapping, fin });
    let value = prop::option::of(any::<[u8; 4]>().prop_map(std::net::IpAddr::from));
    let address = ("[a-z]addr[0-3]", value).prop_map(|(name, value)| Address { name, value });
    let port = any::<Option<u16>>();
    let add =
        (id(), address, port, prop::option::of(code())).prop_map(|(id, address, port, code)| {
            Mptcp::AddAddress {
                id,
                address,
                port,
                code,
            }
        });
    prop_oneof![
        capable,
        syn,
        syn_ack,
        code().prop_map(|code| Mptcp::JoinAck { code }),
        dss,
        add,
        prop::collection::vec(any::<u8>(), 1..4).prop_map(|ids| Mptcp::RemoveAddress { ids }),
        any::<bool>().prop_map(|backup| Mptcp::Prio { backup }),
        any::<u64>().prop_map(|value| Mptcp::Fail { value }),
        prop::option::of(key()).prop_map(|key| Mptcp::FastClose { key }),
        any::<(u8, bool)>().prop_map(|(reason, transient)| Mptcp::Reset { reason, transient }),
    ]
}

fn segment() -> impl Strategy<Value = Segment> {
    let numbers = (0_u16..0x200, any::<u32>(), 0_u32..=65_535);
    let fields = (
        any::<Option<u32>>(),
        any::<Option<u16>>(),
        any::<Option<u16>>(),
    );
    let options = prop::option::of(prop::collection::vec(option(), 0..5));
    (numbers, fields, options).prop_map(|((flags, seq, len), (ack, window, urgent), options)| {
        Segment {
            flags,
            seq,
            len,
            ack,
            window,
            urgent,
            options,
        }
    })
}

fn packet() -> impl Strategy<Value = Packet> {
    let ecn = prop_oneof![
        Just(None),
        Just(Some(EcnField::Capable)),
        prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce])
            .prop_map(|e| Some(EcnField::Is(e))),
    ];
    let icmp = (any::<u32>(), 0_u32..=65_535, any::<Option<u32>>()).prop_map(|(seq, len, mtu)| {
        Body::Icmp(Icmp {
            about: (seq, len),
            kind: "unreachable".to_owned(),
            code: Some("frag_needed".to_owned()),
            mtu,
        })
    });
    let body = prop_oneof![4 => segment().prop_map(Body::Tcp), 1 => icmp];
    let name = || prop::option::of("[cs]addr[0-3]");
    let between = (name(), name());
    let parts = (any::<bool>(), any::<Option<u32>>(), between, ecn, body);
    parts.prop_map(|(inbound, connection, between, ecn, body)| Packet {
        inbound: inbound || matches!(body, Body::Icmp(_)),
        connection,
        between,
        ecn,
        body,
    })
}

fn arg() -> impl Strategy<Value = Arg> {
    let leaf = prop_oneof![
        Just(Arg::Dots),
        any::<i64>().prop_map(Arg::Int),
        prop::collection::vec("[A-Z][A-Z_]{0,7}", 1..3).prop_map(Arg::Symbols),
        "[a-z ]{0,8}".prop_map(Arg::Text),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Arg::List),
            prop::collection::vec(("[a-z]{1,5}", inner), 1..3).prop_map(Arg::Fields),
        ]
    })
}

fn call() -> impl Strategy<Value = Action> {
    let names = ["socket", "read", "write", "poll", "setsockopt"];
    let name = prop::sample::select(names.to_vec());
    let result = prop_oneof![
        Just(Outcome::Any),
        any::<i64>().prop_map(Outcome::Value),
        "E[A-Z]{2,6}".prop_map(Outcome::Error),
    ];
    (name, prop::collection::vec(arg(), 0..4), result).prop_map(|(name, args, result)| {
        Action::Call(Call {
            until: None,
            name: name.to_owned(),
            args,
            result,
        })
    })
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        (0..i64::MAX).prop_map(Expr::Int),
        "tcpi_[a-z]{1,6}".prop_map(|n| Expr::Name(At::default(), n)),
    ];
    let ops = vec![
        Op::Or,
        Op::And,
        Op::Eq,
        Op::Ne,
        Op::Le,
        Op::Ge,
        Op::Lt,
        Op::Gt,
        Op::BitOr,
        Op::BitAnd,
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::Div,
        Op::Rem,
    ];
    leaf.prop_recursive(4, 16, 2, move |inner| {
        let op = prop::sample::select(ops.clone());
        prop_oneof![
            inner.clone().prop_map(|e| Expr::Not(Box::new(e))),
            inner.clone().prop_map(|e| Expr::Minus(Box::new(e))),
            (op, inner.clone(), inner).prop_map(|(op, a, b)| Expr::Binary(
                op,
                Box::new(a),
                Box::new(b)
            )),
        ]
    })
}

fn statement() -> impl Strategy<Value = Statement> {
    let told = prop_oneof![
        expr(),
        "[a-z =%']{0,6}".prop_map(Expr::Text),
        prop::collection::vec(expr(), 0..3).prop_map(Expr::Tuple),
    ];
    prop_oneof![
        expr().prop_map(Statement::Assert),
        ("v[a-z]{1,6}", expr()).prop_map(|(name, e)| Statement::Assign(name, e)),
        prop::collection::vec(told, 0..3).prop_map(Statement::Print),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    let sysctl = || ("net[.]ipv4[.]tcp_[a-z]{1,6}", "[a-z0-9]{1,4}( [0-9]{1,3})?");
    let address = prop_oneof![
        any::<[u8; 4]>().prop_map(std::net::IpAddr::from),
        any::<[u8; 16]>().prop_map(std::net::IpAddr::from)
    ];
    let endpoint = (address, any::<Option<u8>>(), any::<[bool; 4]>()).prop_map(
        |(address, id, [signal, subflow, backup, fullmesh])| Endpoint {
            address,
            id,
            signal,
            subflow,
            backup,
            fullmesh,
        },
    );
    prop_oneof![
        sysctl().prop_map(|(name, value)| Command::Set(name, value)),
        sysctl().prop_map(|(name, value)| Command::SetIfKnown(name, value)),
        "[.][.]/[a-z/]{1,6}[.]sh".prop_map(Command::File),
        endpoint.prop_map(|e| Command::Manage(Manage::Add(e))),
        any::<u8>().prop_map(|id| Command::Manage(Manage::Delete(id))),
        any::<(u8, bool)>().prop_map(|(id, on)| Command::Manage(Manage::Change(id, on))),
        any::<(u32, u32)>().prop_map(|(n, m)| Command::Manage(Manage::Limits(n, m))),
        Just(Command::Manage(Manage::Flush)),
        Just(Command::Pace),
        ["tcp_[a-z]{1,6}", "[a-z_]{1,9}", "[a-zA-Z0-9]{1,4}"]
            .prop_map(|[module, name, value]| Command::Parameter(module, name, value)),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let action = prop_oneof![
        packet().prop_map(Action::Packet),
        call(),
        prop::collection::vec(command(), 1..3).prop_map(Action::Commands),
        prop::collection::vec(statement(), 0..3).prop_map(Action::Code),
    ];
    let only = prop_oneof![Just(None), Just(Some(Only::Ours)), Just(Some(Only::Kernel))];
    (only, time(), action, prop::option::of(0..1_000_u64)).prop_map(
        |(only, time, mut action, longer)| {
            let is_awaited = matches!(&action, Action::Packet(p) if !p.inbound);
            let time = match time {
                Time::Absolute(_) | Time::Relative(_) => time,
                _ if is_awaited => time,
                _ => Time::Relative(7),
            };
            if let (Action::Call(c), Some(longer), Time::Absolute(t) | Time::Relative(t)) =
                (&mut action, longer, time)
            {
                c.until = Some(t + longer);
            }
            Event {
                at: At::default(),
                only,
                time,
                action,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_printed_script_reads_the_same(events in prop::collection::vec(event(), 0..8), mtu: u16) {
        let options = vec![Choice { at: At::default(), name: "mtu".to_owned(), value: mtu.to_string() }];
        let script = Script { options, events };
        let text = script.to_string();
        prop_assert_eq!(read(&text), Ok(script), "{}", text);
    }

    #[test]
    fn anything_can_be_read(text in ".{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn pieces_of_scripts_can_be_read(
        event in event(),
        cut in 0.0..1.0_f64,
        other in "[<>S.0-9:()%{} a-z*+~`/\\[\\],=\"-]{0,12}",
    ) {
        let text = event.to_string();
        let at = (text.len() as f64 * cut) as usize;
        if text.is_char_boundary(at) {
            let _ = read(&format!("{}{other}{}", &text[..at], &text[at..]));
            let _ = read(&text[..at]);
        }
    }
}

fn one(text: &str) -> Event {
    read(text).unwrap().events.remove(0)
}

#[test]
fn the_words_of_a_packet() {
    let text = "+.1 > [ect0] P. 1:1001(1000) ack 1 win 5 urg 2 \
        <mss 1460,sackOK,TS val 100 ecr 7,nop,wscale 7,sack 1:2 5:9,FO 0aff,FO> // comment";
    let Action::Packet(p) = one(text).action else {
        panic!("not a packet");
    };
    let Body::Tcp(s) = p.body else {
        panic!("not a segment");
    };
    assert_eq!((p.inbound, p.ecn), (false, Some(EcnField::Is(Ecn::Ect0))));
    assert_eq!(
        (s.flags, s.seq, s.len, s.ack, s.window, s.urgent),
        (0x18, 1, 1000, Some(1), Some(5), Some(2))
    );
    let expected = vec![
        TcpOption::Mss(1460),
        TcpOption::SackPermitted,
        TcpOption::Timestamps(100, 7),
        TcpOption::Nop,
        TcpOption::WindowScale(7),
        TcpOption::Sack(vec![(1, 2), (5, 9)]),
        TcpOption::FastOpen(vec![0x0a, 0xff]),
        TcpOption::FastOpen(vec![]),
    ];
    assert_eq!(s.options, Some(expected));
}

#[test]
fn times_are_absolute_relative_ranges_and_any() {
    let packet = "> . 1:1(0) ack 1";
    for (text, time) in [
        ("1.5", Time::Absolute(1_500_000)),
        ("+.000001", Time::Relative(1)),
        ("*", Time::Any),
        ("1~2", Time::Between(1_000_000, 2_000_000)),
        ("+1~+2", Time::RelativeBetween(1_000_000, 2_000_000)),
    ] {
        assert_eq!(one(&format!("{text} {packet}")).time, time);
    }
    let Action::Call(c) =
        one("0...0.3 read(4, ..., 100) = -1 ECONNRESET (Connection reset)").action
    else {
        panic!("not a call");
    };
    assert_eq!(
        (c.until, c.result),
        (Some(300_000), Outcome::Error("ECONNRESET".to_owned()))
    );
}

#[test]
fn operators_bind_as_in_python() {
    let Action::Code(list) = one(
        "0 %{ assert not 1 + 2 * 3 == 7 and 1 < 2 <= 3 or 5 & 4 | 1, 'x'\n }%"
            .replace(", 'x'", ", tcpi_rtt")
            .as_str(),
    )
    .action
    else {
        panic!("not an assertion");
    };
    let printed = list[0].to_string();
    assert_eq!(
        printed,
        "assert (((not ((1 + (2 * 3)) == 7)) and ((1 < 2) and (2 <= 3))) or ((5 & 4) | 1))"
    );
}

fn commands(text: &str) -> Vec<Command> {
    let Action::Commands(list) = one(text).action else {
        panic!("not a command");
    };
    list
}

/// What public suites set: by sysctl with dots or slashes, by a program that saves the values, by echo.
#[test]
fn settings_of_shell_commands_are_read() {
    let set = |name: &str, value: &str| Command::Set(name.to_owned(), value.to_owned());
    for (text, expected) in [
        (
            "`../common/defaults.sh\n ../common/set_sysctls.py \
             /proc/sys/net/ipv4/tcp_sack=0 \\\n\t/proc/sys/net/ipv4/tcp_wmem=\"1 2 3\"`",
            vec![
                Command::File("../common/defaults.sh".to_owned()),
                set("net.ipv4.tcp_sack", "0"),
                set("net.ipv4.tcp_wmem", "1 2 3"),
            ],
        ),
        (
            "`sysctl -q net/ipv4/tcp_ecn=2 # accepts\necho 1 > /proc/sys/net/ipv4/tcp_frto`",
            vec![set("net.ipv4.tcp_ecn", "2"), set("net.ipv4.tcp_frto", "1")],
        ),
        (
            "`sysctl -w net.ipv4.tcp_rmem=\"4096 $((2*1024)) 3\" > /dev/null 2>&1; ethtool -K tun0 gso off tso off`",
            vec![set("net.ipv4.tcp_rmem", "4096 2048 3")],
        ),
        (
            "`sysctl -e -q net.ipv4.tcp_sack=1`",
            vec![Command::SetIfKnown(
                "net.ipv4.tcp_sack".to_owned(),
                "1".to_owned(),
            )],
        ),
        (
            "`/tmp/sysctl_restore_${PPID}.sh; ip tcp_metrics flush all &> /dev/null; tc qdisc add dev tun0 root \
             pfifo`",
            vec![],
        ),
        (
            "`tc qdisc replace dev tun0 root fq\necho 3 > /sys/module/tcp_cubic/parameters/hystart_detect`",
            vec![
                Command::Pace,
                Command::Parameter(
                    "tcp_cubic".to_owned(),
                    "hystart_detect".to_owned(),
                    "3".to_owned(),
                ),
            ],
        ),
    ] {
        assert_eq!(commands(text), expected, "{text}");
    }
}

#[test]
fn a_command_that_is_not_run_is_named_with_its_own_line() {
    for (text, line, column) in [
        ("0 `sleep 1`", 1, 4),
        (
            "0 `sysctl -q net.ipv4.tcp_sack=0\n  tc qdisc replace dev tun0 root tbf`",
            2,
            3,
        ),
        ("0 `\\\n cat /proc/net/tcp`", 1, 4),
    ] {
        let fault = read(text).unwrap_err();
        assert_eq!((fault.at.line, fault.at.column), (line, column), "{fault}");
        assert!(fault.message.contains("is not run"), "{fault}");
        assert!(fault.help.contains("sysctl NAME=VALUE"), "{fault}");
    }
}

#[test]
fn times_may_have_blanks() {
    for text in ["+.1 ... 0.2", "+.1 ...0.2", "+.1...+.2"] {
        let event = one(&format!("{text} connect(3, ..., ...) = 0"));
        let Action::Call(call) = event.action else {
            panic!("not a call");
        };
        assert_eq!(
            (event.time, call.until),
            (Time::Relative(100_000), Some(200_000))
        );
    }
    let event = one("+1 ~ +2 > . 1:1(0) ack 1");
    assert_eq!(event.time, Time::RelativeBetween(1_000_000, 2_000_000));
}

/// As packetdrill has them: the segment in question stands last, and is the SYN if it is left out.
#[test]
fn an_icmp_error_may_begin_with_its_type() {
    for (text, about, code, mtu) in [
        (
            "icmp unreachable frag_needed mtu 1200 [1:1001(1000)]",
            (1, 1000),
            Some("frag_needed"),
            Some(1200),
        ),
        ("icmp unreachable [5:5(0)]", (5, 0), None, None),
        (
            "icmp unreachable host_unreachable",
            (0, 0),
            Some("host_unreachable"),
            None,
        ),
    ] {
        let Action::Packet(Packet {
            body: Body::Icmp(icmp),
            ..
        }) = one(&format!("+0 < {text}")).action
        else {
            panic!("not an ICMP error");
        };
        assert_eq!(icmp.about, about);
        assert_eq!((icmp.code.as_deref(), icmp.mtu), (code, mtu));
    }
}

#[test]
fn null_is_not_any_buffer() {
    let Action::Call(call) = one("0 read(4, NULL, 10) = -1 EFAULT (Bad address)").action else {
        panic!("not a call");
    };
    assert_eq!(call.args, [Arg::Int(4), Arg::Null, Arg::Int(10)]);
    assert_eq!(call.result, Outcome::Error("EFAULT".to_owned()));
}

#[test]
fn code_has_variables_messages_and_lines_that_go_on() {
    let text = "0 %{\n# comment\ncwnd = 10; cwnd += 2\nprint(tcpi_snd_cwnd)\n\
        assert 1 < cwnd <= 12, 'cwnd %d of %d' % (cwnd, 12) # why\n\
        assert tcpi_probes == 0, tcpi_probes; \\\n assert True }%";
    let Action::Code(list) = one(text).action else {
        panic!("not code");
    };
    let told: Vec<String> = list.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "cwnd = 10",
            "cwnd = (cwnd + 2)",
            "print(tcpi_snd_cwnd)",
            "assert ((1 < cwnd) and (cwnd <= 12))",
            "assert (tcpi_probes == 0)",
            "assert True",
        ]
    );
    for wrong in [
        "0 %{ import os }%",
        "0 %{ print 1 }%",
        "0 %{ 3 = 4 }%",
        "0 %{ assert 'a }%",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
