//! The Rust types of the stacks' interface have the layout of the C header, and its constants their values.

use std::fmt::Write as _;
use std::mem::{align_of, offset_of};
use std::process::Command;

use gargalo_plugin::stack::{PacketEvent, PacketKind, abi};

/// Lines `name number` of the Rust side, and a C program that prints those of the header.
#[derive(Default)]
struct Both {
    rust: String,
    c: String,
}

impl Both {
    fn add(&mut self, name: &str, rust: u64, c: &str) {
        writeln!(self.rust, "{name} {rust}").unwrap();
        let line = format!("    printf(\"{name} %llu\\n\", (unsigned long long)({c}));");
        writeln!(self.c, "{line}").unwrap();
    }
}

macro_rules! compare {
    ($both:ident, $c:literal, $rust:ty, $($field:ident)*) => {
        $both.add(concat!($c, " size"), size_of::<$rust>() as u64, concat!("sizeof(struct ", $c, ")"));
        $both.add(concat!($c, " alignment"), align_of::<$rust>() as u64, concat!("_Alignof(struct ", $c, ")"));
        $($both.add(
            concat!($c, ".", stringify!($field)),
            offset_of!($rust, $field) as u64,
            concat!("offsetof(struct ", $c, ", ", stringify!($field), ")"),
        );)*
    };
}

#[test]
fn layout_and_constants_are_those_of_the_header() {
    let mut both = Both::default();
    compare!(both, "gargalo_address", abi::Address, ip port ip_length reserved);
    compare!(both, "gargalo_path", abi::Path, local remote ecn reserved);
    compare!(both, "gargalo_bytes", abi::Bytes, data length);
    compare!(both, "gargalo_stack_config", abi::Config,
        size local remote congestion server_name alpn certificate private_key ticket_key session
        initial_window stream_window connection_window send_window idle_timeout initial_rtt
        max_streams datagram_size max_datagram_size is_server early_data retry ecn pacing qlog
        secrets notices options max_unidirectional_streams max_datagram_frame packets reserved
        max_paths);
    compare!(both, "gargalo_stack_path", abi::StackPath,
        id local remote opened closed received_bytes sender);
    compare!(both, "gargalo_packet", abi::Packet, number size event ack_eliciting reserved);
    compare!(both, "gargalo_stack_host", abi::Host,
        context random event received session secret qlog notice rtt_sample send datagram
        stopped reset packet path_rtt_sample);
    compare!(both, "gargalo_stack_stats", abi::Stats,
        size sent_packets sent_bytes retransmitted_packets lost_packets timeouts spurious cwnd
        ssthresh in_flight srtt pacing_rate delivery_rate phase);
    compare!(both, "gargalo_stack", abi::Table,
        abi features size name version congestion create destroy datagram_in datagram_out
        next_timer timeout open_stream write unacknowledged migrate close is_over stats
        specifications prepare open_unidirectional_stream send_datagram reset_stream stop_sending
        set_urgency update_keys open_path paths packet_too_big);
    for (name, value) in [
        ("GARGALO_STACK_ABI", abi::ABI.into()),
        ("GARGALO_NONE", abi::NONE),
        ("GARGALO_STACK_ZERO_RTT", abi::feature::ZERO_RTT.into()),
        (
            "GARGALO_STACK_UNIDIRECTIONAL",
            abi::feature::UNIDIRECTIONAL.into(),
        ),
        ("GARGALO_STACK_DATAGRAMS", abi::feature::DATAGRAMS.into()),
        ("GARGALO_STACK_CANCEL", abi::feature::CANCEL.into()),
        ("GARGALO_STACK_URGENCY", abi::feature::URGENCY.into()),
        ("GARGALO_STACK_KEY_UPDATE", abi::feature::KEY_UPDATE.into()),
        ("GARGALO_STACK_PACKETS", abi::feature::PACKETS.into()),
        ("GARGALO_STACK_MULTIPATH", abi::feature::MULTIPATH.into()),
        ("GARGALO_PACKET_LOST", PacketEvent::Lost as u64),
        ("GARGALO_PACKET_1_RTT", PacketKind::OneRtt as u64),
        (
            "GARGALO_CALENDAR_START",
            gargalo_plugin::stack::CALENDAR_START.as_secs(),
        ),
        ("GARGALO_STACK_RETRY", abi::feature::RETRY.into()),
        ("GARGALO_STACK_MIGRATION", abi::feature::MIGRATION.into()),
        ("GARGALO_STACK_ECN", abi::feature::ECN.into()),
        ("GARGALO_STACK_QLOG", abi::feature::QLOG.into()),
        ("GARGALO_STACK_NO_PACING", abi::feature::NO_PACING.into()),
        (
            "GARGALO_STACK_MTU_DISCOVERY",
            abi::feature::MTU_DISCOVERY.into(),
        ),
        ("GARGALO_STACK_OPTIONS", abi::feature::OPTIONS.into()),
        (
            "GARGALO_STACK_LOCAL_ADDRESS",
            abi::feature::LOCAL_ADDRESS.into(),
        ),
        ("GARGALO_STACK_EARLY", abi::event::EARLY.into()),
        ("GARGALO_STACK_CONNECTED", abi::event::CONNECTED.into()),
        ("GARGALO_STACK_CLOSED", abi::event::CLOSED.into()),
        ("GARGALO_STACK_FAILED", abi::event::FAILED.into()),
        ("GARGALO_STACK_NO_EARLY_DATA", abi::early::NONE.into()),
        (
            "GARGALO_STACK_EARLY_DATA_ACCEPTED",
            abi::early::ACCEPTED.into(),
        ),
        (
            "GARGALO_STACK_EARLY_DATA_REJECTED",
            abi::early::REJECTED.into(),
        ),
        ("GARGALO_STACK_EARLY_DATA_RESENT", abi::early::RESENT.into()),
    ] {
        both.add(name, value, name);
    }
    assert_eq!(printed_by_c(&both.c), both.rust);
}

/// What a C program with the header prints.
fn printed_by_c(statements: &str) -> String {
    let folder = std::env::temp_dir().join(format!("gargalo-stack-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("layout.c"), folder.join("layout"));
    let text = format!(
        "#include <stdio.h>\n#include \"gargalo_stack.h\"\nint main(void) {{\n{statements}    return 0;\n}}\n"
    );
    std::fs::write(&source, text).unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let compiled = Command::new("cc")
        .args([
            "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", include, "-o",
        ])
        .args([&program, &source])
        .output()
        .expect("a C compiler is needed, as for linking");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let printed = Command::new(&program).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    String::from_utf8(printed.stdout).unwrap()
}
