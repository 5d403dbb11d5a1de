//! The C headers compile without a warning, and their structures have the layout of the Rust ones.

use std::fmt::Write as _;
use std::fs;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use gargalo_plugin::congestion::abi;
use gargalo_plugin::headers::HEADERS;

fn scratch(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&place).unwrap();
    place
}

fn compile(standard: &str, source: &Path, program: &Path) {
    let done = Command::new("cc")
        .args([standard, "-Wall", "-Wextra", "-pedantic", "-Werror"])
        .arg(format!("-I{}/include", env!("CARGO_MANIFEST_DIR")))
        .arg(source)
        .arg("-o")
        .arg(program)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{told}");
}

/// Lines of C that print an offset, and what each prints if the layouts are the same.
#[derive(Default)]
struct Layout {
    code: String,
    expected: String,
}

impl Layout {
    fn says(&mut self, what: &str, value: usize) {
        writeln!(self.code, "printf(\"{what} %zu\\n\", (size_t)({what}));").unwrap();
        writeln!(self.expected, "{what} {value}").unwrap();
    }
}

macro_rules! layout {
    ($layout:ident, $($Type:ident as $c:literal: $($field:ident),+;)+) => { $(
        $layout.says(concat!("sizeof(", $c, ")"), size_of::<abi::$Type>());
        $(
            let place = concat!("offsetof(", $c, ", ", stringify!($field), ")");
            $layout.says(place, offset_of!(abi::$Type, $field));
        )+
    )+ };
}

#[test]
fn structures_have_the_same_layout_in_c_and_in_rust() {
    let mut layout = Layout::default();
    layout! { layout,
        Host as "gargalo_host": context, random, cbrt, exp, log, pow;
        Init as "gargalo_init": now_ns, mss_bytes, initial_window_bytes, parameters, host;
        Sibling as "gargalo_sibling": cwnd_bytes, srtt_ns, min_rtt_ns, mss_bytes, since_loss_bytes,
            between_losses_bytes, rate_bytes_per_s, can_send;
        Path as "gargalo_path": mss_bytes, srtt_ns, latest_rtt_ns, min_rtt_ns, in_flight_bytes, siblings,
            sibling_count, index;
        Established as "gargalo_established": now_ns, window_bytes;
        Sent as "gargalo_sent": now_ns, bytes, in_flight_bytes, idle_ns, rto_ns, restart_window_bytes,
            app_limited, retransmission, was_app_limited, reserved;
        RateSample as "gargalo_rate_sample": delivered_bytes, lost_bytes, interval_ns, send_elapsed_ns,
            ack_elapsed_ns, prior_delivered_bytes, total_delivered_bytes, tx_in_flight_bytes, app_limited,
            retransmission;
        Acked as "gargalo_acked": now_ns, bytes, acknowledged_bytes, ce_bytes, rtt_ns, sent_at_ns,
            in_flight_before_bytes, in_flight_bytes, sample, has_sample, cwnd_limited, in_recovery, round_start;
        Lost as "gargalo_lost": now_ns, bytes, in_flight_bytes, sent_at_ns, first_sent_at_ns, delivered_bytes,
            delivered_at_ns, lost_bytes, tx_in_flight_bytes, app_limited, new_burst;
        Congestion as "gargalo_congestion_event": now_ns, lost_bytes, in_flight_bytes, cause, consecutive;
        Spurious as "gargalo_spurious": now_ns, cause, consecutive;
        State as "gargalo_state": cwnd_bytes, ssthresh_bytes, pacing_rate_bps, send_quantum_bytes, phase, error,
            flags, reserved;
        Parameter as "gargalo_parameter": name, doc, choices, default_value, minimum, maximum, kind, reserved;
        Algorithm as "gargalo_algorithm": name, summary, source, parameters, parameter_count, flags, data, create,
            destroy, clone, on_ack, on_congestion, on_send, on_loss, on_spurious, on_recovered, on_established,
            on_mss, halve, gauges;
        Table as "gargalo_congestion": abi, algorithm_count, algorithms, sizes;
    }
    layout.says("GARGALO_CONGESTION_ABI", abi::ABI as usize);
    layout.says("GARGALO_SLOW_START", abi::SLOW_START as usize);
    layout.says("GARGALO_GOVERNS_RECOVERY", abi::GOVERNS_RECOVERY as usize);
    layout.says("GARGALO_WATCHES_SENDS", abi::WATCHES_SENDS as usize);
    layout.says("GARGALO_TIMEOUT", abi::cause::TIMEOUT as usize);
    layout.says("GARGALO_DURATION", abi::kind::DURATION as usize);
    for (i, size) in abi::SIZES.iter().enumerate() {
        layout.says(
            &format!("((const uint32_t[])GARGALO_SIZES)[{i}]"),
            *size as usize,
        );
    }

    let place = scratch("layout");
    let (source, program) = (place.join("layout.c"), place.join("layout"));
    let code = format!(
        "#include <stddef.h>\n#include <stdio.h>\n#include \"gargalo_congestion.h\"\n\
         int main(void) {{\n{}return 0;\n}}\n",
        layout.code
    );
    fs::write(&source, code).unwrap();
    compile("-std=c99", &source, &program);
    let printed = Command::new(&program).output().unwrap().stdout;
    assert_eq!(String::from_utf8(printed).unwrap(), layout.expected);
}

#[test]
fn the_version_is_said_once() {
    for (name, text) in HEADERS {
        let (about, _) = text.split_once("*/").unwrap();
        let mut said = about.split("version ").skip(1);
        let number = said.find(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        assert_eq!(number, None, "{name} has its version in a constant");
    }
}

#[test]
fn each_header_compiles_alone_and_without_a_warning() {
    let place = scratch("headers");
    for (standard, header) in [
        ("-std=c99", "gargalo_congestion.h"),
        ("-std=c99", "gargalo_window.h"),
        ("-std=c17", "gargalo_window.h"),
    ] {
        let (source, program) = (place.join("alone.c"), place.join("alone"));
        let code = format!("#include \"{header}\"\nint main(void) {{ return 0; }}\n");
        fs::write(&source, code).unwrap();
        compile(standard, &source, &program);
    }
}
