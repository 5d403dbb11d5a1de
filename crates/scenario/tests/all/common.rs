//! Scenarios from text.

use gargalo_scenario::build::{Outcome, RunOptions, run};
use gargalo_scenario::{Origin, Scenario, parse};

/// A scenario, which must be valid.
pub fn scenario(text: &str) -> Scenario {
    match parse(text, &Origin::default(), &[]) {
        Ok(s) => s,
        Err(e) => panic!("{}{text}", e.render(false)),
    }
}

/// What a run of it gives, with the rows of flows, subflows and links in its JSON.
pub fn simulate(text: &str) -> Outcome {
    let mut out = run(&scenario(text), RunOptions::default()).unwrap();
    out.json["flows"] = out.tables.flows.rows().collect();
    out.json["subflows"] = out.tables.subflows.rows().collect();
    out.json["links"] = out.tables.links.rows().collect();
    out
}
