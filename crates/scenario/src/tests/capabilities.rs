//! A feature that one world lacks is refused where the scenario requests it, and nothing else is refused.

use super::grammar::simple;
use super::places::points_at_its_path;
use super::{ok, set};
use crate::capabilities::{LIMITS, Limit, capabilities, check, missing};
use crate::{Diagnostics, Names, Origin, Scenario, World, parse_for};

const LINK: &str = "rate = \"10Mbit/s\", delay = \"10ms\"";

fn parse(world: World, text: &str, set: &[(String, String)]) -> Result<Scenario, Diagnostics> {
    parse_for(world, text, &Origin::default(), set, &Names::default())
}

/// A scenario that says this, of a flow or at its top.
fn with(key: &str, line: &str) -> String {
    let carried = |what: &str, usual: &str| match line.starts_with(what) {
        true => String::new(),
        false => format!("{usual}\n"),
    };
    let transport = carried("transport", "transport.tcp = {}");
    let workload = carried("workload", "workload.bulk = { bytes = \"10kB\" }");
    match key.starts_with("flows.") {
        true => simple(LINK, &format!("{transport}{workload}{line}\n")),
        false => format!(
            "{line}\n{}",
            simple(LINK, &format!("{transport}{workload}"))
        ),
    }
}

fn diagnostic_of<'a>(limit: &Limit, errors: &'a Diagnostics) -> Option<&'a crate::Diagnostic> {
    errors.iter().find(|d| d.message == limit.reason)
}

#[test]
fn every_row_is_refused_at_its_key() {
    for limit in LIMITS {
        let text = with(limit.key, limit.example);
        let errors = parse(limit.lacking, &text, &[]).expect_err(limit.key);
        let d = diagnostic_of(limit, &errors).unwrap_or_else(|| panic!("{limit:?}: {errors}"));
        let path = d.path.as_deref().unwrap();
        let fits = |(part, key): (&str, &str)| part == "*" || part == key;
        assert_eq!(path.split('.').count(), limit.key.split('.').count());
        assert!(
            limit.key.split('.').zip(path.split('.')).all(fits),
            "{path}"
        );
        assert!(points_at_its_path(&text, d), "{d:?} in\n{text}");
        let line = text.lines().nth(d.line - 1).unwrap();
        let rest: String = line.chars().skip(d.column - 1).collect();
        let last = limit.key.rsplit('.').next().unwrap();
        assert!(rest.starts_with(last), "the caret is at {rest:?}");
        let other = World::ALL.iter().find(|w| **w != limit.lacking).unwrap();
        let help = d.help.as_deref().unwrap_or_default();
        assert!(
            help.contains(&format!("--world {}", other.name())),
            "{help}"
        );
        assert_eq!(missing(&text, limit.lacking), [limit.reason]);
        // The other world does not refuse it, nor does a scenario without a world.
        if let Err(errors) = parse(*other, &text, &[]) {
            assert!(diagnostic_of(limit, &errors).is_none(), "{errors}");
        }
        if let Err(errors) = set(&text, &[]) {
            assert!(diagnostic_of(limit, &errors).is_none(), "{errors}");
        }
    }
}

#[test]
fn what_asks_for_nothing_is_not_refused() {
    for limit in LIMITS.iter().filter(|l| !l.idle.is_empty()) {
        let idle = match limit.key {
            "flows.*.transport.quic.migration.change" => {
                "transport.quic.migration = { after = \"1s\", change = \"port\" }".to_owned()
            }
            key => {
                let key = key.trim_start_matches("flows.*.").replace('*', "client");
                format!("{key} = {}", limit.idle)
            }
        };
        let text = with(limit.key, &idle);
        let Err(errors) = parse(limit.lacking, &text, &[]) else {
            continue;
        };
        assert!(diagnostic_of(limit, &errors).is_none(), "{errors}");
    }
    // With every default written out.
    for (transport, worlds) in [
        ("tcp", World::ALL),
        ("mptcp", World::ALL),
        ("quic", World::ALL),
    ] {
        let s = ok(&simple(LINK, &format!("transport.{transport} = {{}}")));
        for world in worlds {
            assert!(check(&s, *world).is_ok(), "{}", s.document);
        }
    }
}

#[test]
fn an_override_is_refused_as_one_and_copies_once() {
    let text = simple(LINK, "transport.tcp = {}").replace("[[flows]]", "[[flows]]\nlabel = \"a\"");
    let two =
        format!("{text}\n[[flows]]\nfrom = \"client\"\nto = \"server\"\ntransport.tcp = {{}}\n");
    let change = (
        "flows.*.transport".to_owned(),
        "{ tcp = { receiver = \"optimistic\" } }".to_owned(),
    );
    let errors = parse(World::Lab, &two, &[change]).unwrap_err();
    let all: Vec<_> = errors.iter().map(|d| (d.path.as_deref(), d.line)).collect();
    assert_eq!(all, [(Some("flows.0.transport.tcp.receiver"), 0)]);
    assert!(
        errors
            .iter()
            .next()
            .unwrap()
            .file
            .starts_with("--set flows")
    );
}

#[test]
fn the_list_has_every_row_once() {
    let all = capabilities();
    for limit in LIMITS {
        let rows: Vec<_> = all.iter().filter(|c| c.key == limit.key).collect();
        let [row] = rows[..] else {
            panic!("{}: {rows:?}", limit.key)
        };
        let answer = match limit.lacking {
            World::Sim => row.sim,
            World::Lab => row.lab,
        };
        assert_eq!((answer, row.example), (Some(limit.reason), limit.example));
    }
    for key in [
        "topology.graph",
        "flows.*.transport.tcp",
        "flows.*.workload.bulk",
        "record.flows",
    ] {
        assert!(
            all.iter()
                .any(|c| c.key == key && c.sim.or(c.lab).is_none()),
            "{key}"
        );
    }
}
