//! Congestion controls of shared libraries: those in Rust of `examples/`, and some in C that are compiled here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use gargalo_cc::{
    Acked, Cause, Congestion, Controller, ControllerFactory, Idle, Init, Params, Registered, Sent,
};
use gargalo_native::calls::{Ended, contained};
use gargalo_native::congestion::{NativeFactory, Plugin};
use gargalo_native::{Contents, Faults, Wrong};
use gargalo_units::{Bytes, Duration, Instant};
use rand_pcg::Pcg64;

const MSS: Bytes = Bytes::new(1448);

fn example(name: &str) -> Plugin {
    controls(&format!("{name}.so"), &example_library(name))
}

fn example_library(name: &str) -> Vec<u8> {
    // Tests are in target/PROFILE/deps, examples beside that folder.
    let exe = std::env::current_exe().unwrap();
    let file = exe
        .ancestors()
        .nth(2)
        .unwrap()
        .join(format!("examples/lib{name}.so"));
    fs::read(&file).unwrap_or_else(|e| {
        panic!(
            "{}: {e}; cargo test without --test builds it",
            file.display()
        )
    })
}

/// Compiles a library of this C code.
fn compiled(name: &str, code: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugins");
    fs::create_dir_all(&place).unwrap();
    let (source, library) = (
        place.join(format!("{name}.c")),
        place.join(format!("{name}.so")),
    );
    fs::write(&source, code).unwrap();
    let done = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"])
        .arg(format!(
            "-I{}/../plugin/include",
            env!("CARGO_MANIFEST_DIR")
        ))
        .arg(&source)
        .arg("-o")
        .arg(&library)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    library
}

fn controls(file: &str, library: &[u8]) -> Plugin {
    let contents = Contents::load(file, library).unwrap();
    contents.congestion.unwrap()
}

fn refused(name: &str, code: &str) -> String {
    let library = fs::read(compiled(name, code)).unwrap();
    let error = Contents::load(&format!("{name}.so"), &library).unwrap_err();
    error.to_string()
}

fn init() -> Init {
    Init {
        now: Instant::ZERO,
        mss: MSS,
        initial_window: MSS * 10,
        rng: Pcg64::new(1, 2),
    }
}

fn path() -> gargalo_cc::Path<'static> {
    let rtt = Some(Duration::from_millis(40));
    gargalo_cc::Path {
        mss: MSS,
        srtt: rtt,
        latest_rtt: rtt,
        min_rtt: rtt,
        in_flight: MSS * 9,
        siblings: &[],
        index: 0,
        sack: true,
    }
}

fn ack(ms: u64) -> Acked {
    Acked {
        now: Instant::ZERO + Duration::from_millis(ms),
        bytes: MSS * 2,
        acknowledged: MSS * 2,
        ce_bytes: Bytes::ZERO,
        rtt: Some(Duration::from_millis(40 + ms % 7)),
        sent_at: None,
        in_flight_before: MSS * 9,
        in_flight: MSS * 7,
        cwnd_limited: true,
        in_recovery: false,
        round_start: ms.is_multiple_of(5),
        sample: None,
    }
}

fn numbers(c: &dyn Controller) -> impl PartialEq + std::fmt::Debug + use<> {
    let mut gauges = Vec::new();
    c.gauges(&mut gauges);
    (
        (c.cwnd(), c.ssthresh(), c.pacing_rate(), c.send_quantum()),
        (c.in_slow_start(), c.governs_recovery(), c.phase()),
        gauges,
    )
}

fn factory(plugin: &Plugin, name: &str, params: Params) -> (NativeFactory, Arc<Faults>) {
    let faults = Faults::new();
    let mut algorithms = plugin.algorithms().iter();
    let algorithm = algorithms.find(|a| a.name() == name).unwrap();
    let factory = NativeFactory::new(algorithm, &params, Arc::clone(&faults)).unwrap();
    (factory, faults)
}

#[test]
fn a_built_in_algorithm_behind_the_interface_is_the_same() {
    let plugin = example("controls");
    let params = Params::new()
        .with("beta", 0.6)
        .with("slow_start", "hystart");
    let (native, faults) = factory(&plugin, "cubic-copy", params.clone());
    let own = Registered::new("cubic", params).unwrap();
    let mut pair = [native.build(init()).unwrap(), own.build(init()).unwrap()];
    for step in 0..2000 {
        for c in &mut pair {
            match step % 400 {
                100 => c.on_congestion(
                    &Congestion {
                        now: ack(step).now,
                        cause: Cause::Loss,
                        lost: MSS,
                        in_flight: MSS * 9,
                    },
                    &path(),
                ),
                110 => c.on_recovered(ack(step).now, &path()),
                200 => *c = c.clone_box(),
                300 => c.on_send(
                    &Sent {
                        now: ack(step).now,
                        bytes: MSS,
                        in_flight: Bytes::ZERO,
                        app_limited: true,
                        retransmission: false,
                        idle: Some(Idle {
                            duration: Duration::from_secs(1),
                            rto: Duration::from_millis(300),
                            restart_window: None,
                            was_app_limited: false,
                        }),
                    },
                    &path(),
                ),
                _ => c.on_ack(&ack(step), &path()),
            }
        }
        let [native, own] = &pair;
        assert_eq!(numbers(&**native), numbers(&**own), "step {step}");
    }
    assert!(!faults.raised());
}

#[test]
fn parameters_are_those_of_the_library_and_are_checked() {
    let plugin = example("controls");
    let wrong = plugin.algorithms()[1];
    let own = gargalo_cc::find("cubic").unwrap();
    assert_eq!(plugin.algorithms()[0].params(), (own.params)());
    let told = |params: Params| {
        let made = NativeFactory::new(wrong, &params, Faults::new());
        made.err().unwrap_or_default()
    };
    assert_eq!(told(Params::new().with("wait", "20ms")), "");
    assert!(told(Params::new().with("after", 1001.0)).contains("a whole number from 0 to 1000"));
    assert!(told(Params::new().with("deed", "panik")).contains("did you mean \"panic\"?"));
    assert!(told(Params::new().with("beta", 0.5)).contains("it has after, deed, wait"));
}

/// What is told of a library's control that fails after three acknowledgements.
fn failed(plugin: &Plugin, name: &str, params: Params) -> String {
    let (factory, faults) = factory(plugin, name, params);
    let mut c = factory.build(init()).unwrap();
    for ms in 0..4 {
        assert!(!faults.raised(), "after {ms}");
        c.on_ack(&ack(ms), &path());
    }
    let kept = (c.cwnd(), c.phase());
    c.on_ack(&ack(5), &path());
    assert_eq!((c.cwnd(), c.phase()), kept, "nothing is called any more");
    faults.first().unwrap().to_string()
}

#[test]
fn panics_and_invalid_numbers_are_named() {
    let plugin = example("controls");
    let deed = |deed: &str| failed(&plugin, "wrong", Params::new().with("deed", deed));
    assert_eq!(
        deed("panic"),
        "controls.so: wrong: on_ack(): panicked: 4 acknowledgements are too many"
    );
    assert_eq!(
        deed("zero"),
        "controls.so: wrong: on_ack() set cwnd_bytes to 0; it must be a number from 1448 (a segment) to 1099511627776"
    );
}

#[test]
fn a_loop_is_found_and_the_caller_goes_on() {
    let plugin = example("controls");
    let (factory, faults) = factory(
        &plugin,
        "wrong",
        Params::new().with("deed", "loop").with("after", 0.0),
    );
    let run = move || factory.build(init()).unwrap().on_ack(&ack(0), &path());
    let ended = contained(&faults, run, || ()).unwrap();
    assert!(matches!(ended, Ended::Stuck));
    let fault = faults.first().unwrap();
    assert_eq!(fault.wrong, Wrong::Loop { seconds: 1 });
    assert!(
        fault
            .to_string()
            .starts_with("controls.so: wrong: on_ack() has computed for 1 s")
    );
    assert!(gargalo_native::has_stuck_calls());
}

const HEAD: &str = "#include <math.h>\n#include <stdlib.h>\n#include \"gargalo_congestion.h\"\n";

/// A control in C whose window is `window` after three acknowledgements.
fn window(window: &str) -> String {
    format!(
        "{HEAD}
static void *create(const void *d, const gargalo_init *init, gargalo_state *state) {{
    (void)d;
    state->cwnd_bytes = (double)init->initial_window_bytes;
    return calloc(1, sizeof(int));
}}
static void *copy(const void *c, const gargalo_host *h) {{ (void)c; (void)h; return calloc(1, sizeof(int)); }}
static void on_ack(void *c, const gargalo_acked *a, const gargalo_path *p, gargalo_state *state) {{
    (void)a; (void)p; (void)state;
    if (++*(int *)c > 3) {{ {window}; }}
}}
static void on_congestion(void *c, const gargalo_congestion_event *e, const gargalo_path *p, gargalo_state *s) {{
    (void)c; (void)e; (void)p; (void)s;
}}
static const gargalo_algorithm ALL[] = {{{{.name = \"mine\", .summary = \"\", .source = \"\", .create = create,
    .destroy = free, .clone = copy, .on_ack = on_ack, .on_congestion = on_congestion}}}};
GARGALO_ALGORITHMS(ALL);
"
    )
}

#[test]
fn what_c_code_sets_is_checked() {
    for (name, code, told) in [
        ("nan", "state->cwnd_bytes = NAN", "set cwnd_bytes to NaN"),
        (
            "infinite",
            "state->cwnd_bytes = INFINITY",
            "set cwnd_bytes to inf",
        ),
        (
            "negative",
            "state->ssthresh_bytes = -2",
            "set ssthresh_bytes to -2",
        ),
        (
            "rate",
            "state->pacing_rate_bps = 0",
            "set pacing_rate_bps to 0; it must be a number from 1 to",
        ),
        (
            "quantum",
            "state->send_quantum_bytes = NAN",
            "set send_quantum_bytes to NaN",
        ),
        ("text", "state->phase = \"\\xff\"", "phase: not UTF-8 text"),
        (
            "said",
            "state->error = \"lost count\"",
            "on_ack(): lost count",
        ),
    ] {
        let library = fs::read(compiled(name, &window(code))).unwrap();
        let plugin = controls("mine.so", &library);
        let error = failed(&plugin, "mine", Params::new());
        assert!(error.starts_with("mine.so: mine: on_ack()"), "{error}");
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn libraries_that_are_no_plug_ins_are_refused() {
    let table = |table: &str| {
        format!("{HEAD}const gargalo_congestion *gargalo_congestion_v1(void) {{ {table} }}\n")
    };
    let good = window("return");
    for (name, code, told) in [
        ("nothing", "int x;\n".to_owned(), "it exports no function gargalo_congestion_v1"),
        ("null", table("return NULL;"), "gargalo_congestion_v1() returned no table"),
        (
            "version",
            table("static gargalo_congestion t = {7, 0, NULL, GARGALO_SIZES}; return &t;"),
            "made for version 7 of the plug-in interface; this gargalo has version 2",
        ),
        (
            "sizes",
            table("static gargalo_congestion t = {2, 0, NULL, {1}}; return &t;"),
            "its structures are of other sizes",
        ),
        (
            "empty",
            table("static gargalo_congestion t = {2, 0, NULL, GARGALO_SIZES}; return &t;"),
            "it has 0 algorithms",
        ),
        ("unnamed", good.replace("\"mine\"", "NULL"), "the name of an algorithm is NULL"),
        ("name", good.replace("\"mine\"", "\"my own\""), "cannot be the name of an algorithm"),
        ("on_ack", good.replace(".on_ack = on_ack", ".on_ack = 0 ? on_ack : NULL"), "mine: on_ack is NULL"),
        (
            "parameter",
            good.replace(
                ".summary = \"\"",
                ".summary = \"\", .parameter_count = 1, .parameters = (gargalo_parameter[]){{\"x\", \"\", NULL, 5, \
                 0, 1, GARGALO_NUMBER, 0}}",
            ),
            "its default must be in its range",
        ),
    ] {
        let error = refused(name, &code);
        assert!(error.starts_with(&format!("{name}.so: ")), "{error}");
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn the_stack_that_a_new_one_in_rust_begins_as_is_loaded() {
    let contents = Contents::load("toy.so", &example_library("toy_stack")).unwrap();
    let stack = contents.stack.unwrap();
    assert_eq!((stack.name(), stack.version()), ("toy-stack", "1.0"));
    assert_eq!(stack.congestion(), ["fixed"]);
    assert!(contents.congestion.is_none());
}

#[test]
fn the_crate_that_a_new_plug_in_begins_as_works() {
    let plugin = example("gentle");
    let (factory, faults) = factory(&plugin, "gentle-rust", Params::new().with("beta", 0.5));
    let mut c = factory.build(init()).unwrap();
    let lost = Congestion {
        now: Instant::ZERO,
        cause: Cause::Loss,
        lost: MSS,
        in_flight: MSS * 10,
    };
    c.on_congestion(&lost, &path());
    assert_eq!((c.cwnd(), faults.first()), (MSS * 5, None));
}
