//! What users get wrong, and the diagnostics that they get.

use proptest::prelude::*;

use super::grammar::{DUMBBELL, simple};
use super::places::points_at_its_path;
use super::{bad, set};

/// The only diagnostic says this, helps with that, and points at the line.
#[track_caller]
pub(super) fn rejects(text: &str, message: &str, help: &str, line: usize) {
    let errors = bad(text);
    let all = errors.render(false);
    let found = errors.iter().find(|d| d.message.contains(message));
    let Some(d) = found else {
        panic!("no \"{message}\" in\n{all}");
    };
    assert!(
        d.help.as_deref().unwrap_or_default().contains(help),
        "no \"{help}\" in\n{all}"
    );
    assert_eq!(d.line, line, "{all}");
}

#[test]
fn a_name_is_one_plain_component_of_a_path() {
    let named = |name: &str| {
        let text = format!("name = {name}\n{}", DUMBBELL.replacen("name", "#", 1));
        (bad(&text).render(false), text)
    };
    let long = format!("\"{}\"", "x".repeat(129));
    for (name, why) in [
        ("\"\"", "is empty"),
        ("\"../docs\"", "separator"),
        ("\"a/b\"", "separator"),
        ("'a\\b'", "separator"),
        ("\"..\"", "begins with a dot"),
        ("\".foo\"", "begins with a dot"),
        ("\"a\\nb\"", "U+000A"),
        ("\"a\\u0000b\"", "U+0000"),
        ("\"\\u001b[31mred\"", "U+001B"),
        ("\"\\u202Egnp\"", "U+202E"),
        (&long, "129 bytes"),
    ] {
        let (shown, text) = named(name);
        assert!(shown.contains(why), "{text}\n{shown}");
        assert!(
            !shown.chars().any(|c| c.is_control() && c != '\n'),
            "{shown}"
        );
        assert!(shown.contains("scenario:1:8]"), "{shown}");
    }
    for name in ["a", "mini-3", "caf\u{e9} 2", "-x", "a.b"] {
        assert_eq!(crate::bad_name(name), None, "{name}");
    }
    assert_eq!(crate::name::made_of("../\u{1b}x"), "--x");
    assert_eq!(crate::name::made_of(".."), "scenario");
    assert_eq!(crate::name::made_of(&"\u{e4}".repeat(100)).len(), 128);
}

#[test]
fn problems_are_drawn_within_80_columns() {
    let text = DUMBBELL.replacen("duration", "durration", 1);
    for text in [text, DUMBBELL.replacen("\"bbr\"", "\"bbbr\"", 1)] {
        let shown = bad(&text).render(false);
        assert!(shown.lines().count() > 6, "{shown}");
        assert!(shown.lines().all(|l| l.chars().count() <= 80), "{shown}");
    }
}

#[test]
fn control_characters_are_refused_and_not_shown() {
    let t = |from: &str, to: &str| DUMBBELL.replacen(from, to, 1);
    for text in [
        t("\"left1\"", "\"\\u001b[2Jleft1\""),
        t("bottleneck =", "\"\\u009b2J\" = 1\nbottleneck ="),
        // Not TOML at all: the line is quoted.
        t("bottleneck =", "\u{1b}[2J\u{9b}2J bottleneck ="),
        t("\"100Mbit/s\"", "\"\\u001b]0;title\\u0007\""),
    ] {
        let errors = bad(&text);
        for shown in [errors.render(false), errors.to_string()] {
            assert!(
                !shown.chars().any(|c| c.is_control() && c != '\n'),
                "{shown:?}"
            );
        }
    }
    let set = [("name".to_owned(), "\u{1b}[31m".to_owned())];
    let shown = crate::parse(DUMBBELL, &crate::Origin::default(), &set).unwrap_err();
    assert!(!shown.render(false).contains('\u{1b}'));
    // Line ends and tabs are fine.
    let long = DUMBBELL.replacen("\nduration", "\ndescription = \"a\\r\\n\\tb\"\nduration", 1);
    crate::parse(&long, &crate::Origin::default(), &[]).unwrap();
}

#[test]
fn slips_are_told_with_line_and_fix() {
    let t = |from: &str, to: &str| DUMBBELL.replacen(from, to, 1);
    rejects(
        &t("bottleneck =", "botleneck ="),
        "has no key \"botleneck\"",
        "did you mean `bottleneck`",
        9,
    );
    rejects(
        &t("\"20ms\"", "20"),
        "delay = 20 has no unit",
        "`delay = \"20ms\"`",
        9,
    );
    rejects(
        &t("\"60s\"", "60"),
        "duration = 60 has no unit",
        "\"60s\"",
        4,
    );
    rejects(
        &t("\"100Mbit/s\"", "\"-100Mbit/s\""),
        "negative",
        "\"100Mbit/s\"",
        9,
    );
    rejects(
        &t("\"100Mbit/s\"", "{ trace = \"no.down\" }"),
        "cannot be read",
        "relative to the scenario",
        9,
    );
    if cfg!(unix) {
        rejects(
            &t("\"100Mbit/s\"", "{ trace = \"/dev/zero\" }"),
            "not a regular file",
            "looked for /dev/zero",
            9,
        );
    }
}

#[test]
fn wrong_names_and_counts_are_told_with_line_and_fix() {
    let t = |from: &str, to: &str| DUMBBELL.replacen(from, to, 1);
    rejects(
        &t("left1", "left9"),
        "there is no host \"left9\"",
        "left1",
        18,
    );
    rejects(&t("\"60s\"", "\"0s\""), "duration is zero", "60s", 4);
    rejects(
        &t("\"100Mbit/s\"", "\"fast\""),
        "rate has no value \"fast\"",
        "known here: unlimited; accepted are texts like \"100Mbit/s\"",
        9,
    );
    rejects(
        &t("\"bbr\"", "\"bbbr\""),
        "has no value \"bbbr\"",
        "did you mean `bbr`",
        21,
    );
    rejects(
        &t("\"cubic\" }", "{ cubic = { beta = 7 } } }"),
        "beta = 7 is out of range",
        "from",
        14,
    );
    rejects(
        &t("\"cubic\" }", "{ cubic = { bata = 0.7 } } }"),
        "no key \"bata\"",
        "`beta`",
        14,
    );
    rejects(
        &t("{ droptail =", "{ drptail ="),
        "no key \"drptail\"",
        "`droptail`",
        9,
    );
    rejects(
        &t("workload.bulk", "workload.bluk"),
        "no key \"bluk\"",
        "`bulk`",
        15,
    );
    rejects(
        &t("pairs      = 2", "pairs = 0"),
        "out of range",
        "from 1",
        7,
    );
    rejects(
        &t("{ congestion = \"cubic\" }", "{ fast_open = true }"),
        "has no key",
        "congestion, data_retries",
        14,
    );
    rejects(&t("\"1Gbit/s\"", "1"), "has no unit", "1Mbit/s", 8);
    rejects(
        &t("from = \"left0\"", "from = \"left*\"\ncount = 3"),
        "only 2 hosts",
        "",
        12,
    );
    rejects(
        &t("{ rate = \"1Gbit/s\", delay = \"1ms\" }", "[{}]"),
        "1 links are given for pairs = 2",
        "give 2",
        8,
    );
    rejects(&t("seed     = 1", "seed = "), "", "", 3);
    rejects(&t("name     =", "nme ="), "has no key \"nme\"", "`name`", 2);
}

#[test]
fn graphs_are_checked() {
    let graph = |links: &str| {
        format!(
            "duration = \"1s\"\n[topology.graph]\nnodes = [\"a\", \"b\", \"c\"]\nlinks = [{links}]\n[[flows]]\nfrom \
             = \"a\"\nto = \"c\"\ntransport.tcp = {{}}\n"
        )
    };
    rejects(
        &graph(r#"{ from = "a", to = "b" }"#),
        "no path from \"a\" to \"c\"",
        "add a link",
        7,
    );
    let twice = r#"{ from = "a", to = "c" }, { from = "c", to = "a" }"#;
    rejects(&graph(twice), "already", "name", 4);
    rejects(
        &graph(r#"{ from = "a", to = "d" }"#),
        "no node \"d\"",
        "a, b, c",
        4,
    );
    rejects(&graph(r#"{ from = "a", to = "a" }"#), "to itself", "two", 4);
}

#[test]
fn what_cannot_work_is_refused() {
    let refused = |link: &str, flow: &str, message: &str| {
        let errors = bad(&simple(link, flow));
        let all = errors.render(false);
        assert!(
            errors.iter().any(|d| d.message.contains(message)),
            "no \"{message}\" in\n{all}"
        );
    };
    let tcp = "transport.tcp = {}";
    refused("", "transport.udp = {}", "UDP has no congestion control");
    refused(
        "queue = { droptail = \"1BDP\" }",
        tcp,
        "no bandwidth-delay product",
    );
    refused("ecn = true", tcp, "cannot mark");
    refused("mtu = \"10B\"", tcp, "out of range");
    refused(
        "mtu = \"1280B\"",
        "transport.tcp = { mss = \"1448B\" }",
        "does not fit",
    );
    refused(
        "",
        "transport.tcp = { min_rto = \"5s\", max_rto = \"1s\" }",
        "above max_rto",
    );
    refused(
        "",
        "transport.tcp = {}\narrivals = { rate = \"5/s\" }",
        "never finish",
    );
    refused("", "transport.tcp = {}\nstart = \"10s\"", "end of the run");
    refused(
        "",
        "transport.tcp = {}\ncount = 100000\nworkload.request = { objects = 9, size = \"1kB\", connections = 9 }",
        "more than 100000 flows",
    );
    refused(
        "",
        "transport.udp = {}\nworkload.cbr = { rate = \"1000Tbit/s\", packet_size = \"1B\" }",
        "nanosecond",
    );
    refused(
        "",
        "transport.tcp = {}\nworkload.request = { size = \"2TB\" }",
        "more than 1TB",
    );
    refused("rate = { steps = [[\"1s\", \"1Mbit/s\"]] }", tcp, "0s");
    refused(
        "rate = \"1Mbit/s\", loss = { periodic = 0 }",
        tcp,
        "a period of 0 is not possible",
    );
}

#[test]
fn several_errors_at_once_in_the_order_of_the_text() {
    let text = DUMBBELL
        .replace("\"60s\"", "60")
        .replace("\"20ms\"", "20")
        .replace("right1", "rigth1");
    let lines: Vec<usize> = bad(&text).iter().map(|d| d.line).collect();
    assert_eq!(lines, [4, 9]);
}

#[test]
fn overrides_are_named() {
    for (key, value, message) in [
        ("duration", "5", "has no unit"),
        ("flows.7.start", "1s", "not an item of a list of 2"),
        ("duration.x", "1", "not a table"),
        ("topology.dumbbell.botleneck.rate", "1Mbit/s", "botleneck"),
    ] {
        let errors = set(DUMBBELL, &[(key, value)]).unwrap_err();
        let all = errors.render(false);
        let d = errors.iter().next().unwrap();
        assert!(d.message.contains(message), "{all}");
        assert_eq!(d.file, format!("--set {key}={value}"));
        assert!(all.contains(key), "{all}");
    }
}

#[test]
fn what_is_inside_of_a_text_is_set_with_the_whole() {
    for (value, written) in [("foo.up", "\"foo.up\""), ("3", "3")] {
        let key = "topology.dumbbell.bottleneck.rate";
        let inside = format!("{key}.trace");
        let errors = set(DUMBBELL, &[(&inside, value)]).unwrap_err();
        let help = errors.iter().next().unwrap().help.clone().unwrap();
        let whole = format!("{{ trace = {written} }}");
        assert_eq!(
            help,
            format!("replace the whole value: --set '{key}={whole}'")
        );
    }
}

#[test]
fn colour_only_when_asked() {
    let errors = bad("duration = 5");
    assert!(!errors.render(false).contains('\u{1b}'));
    assert!(errors.render(true).contains('\u{1b}'));
    assert!(errors.render(false).contains("scenario:1:"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Cutting, doubling and inserting anywhere never panics, neither in parsing nor in drawing.
    #[test]
    fn mutations_never_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12, "[ -~\n\u{e9}]{0,3}"), 1..4),
        key in "[a-z.*0-9]{0,20}",
        value in "[ -~]{0,10}",
    ) {
        let mut text: Vec<char> = DUMBBELL.chars().collect();
        for (at, cut, insert) in edits {
            let at = at.index(text.len());
            let end = (at + cut).min(text.len());
            text.splice(at..end, insert.chars());
            if text.is_empty() {
                text.push(' ');
            }
        }
        let text: String = text.into_iter().collect();
        if let Err(e) = set(&text, &[]) {
            prop_assert!(!e.is_empty() && !e.render(false).is_empty());
            for d in e.iter() {
                prop_assert!(points_at_its_path(&text, d), "{:#?}\n{}", d, text);
            }
        }
        if let Err(e) = set(&text, &[(&key, &value)]) {
            prop_assert!(!e.render(true).is_empty());
        }
    }
}
