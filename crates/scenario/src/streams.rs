//! Names of the random streams of flows, and the order in which a world gets them. Neither depends on the order of the
//! entries of a scenario, so that exchanging two entries changes nothing of their flows.
//!
//! A flow is named by its hosts, its label if one was given, and a number among flows that have these in common. The
//! numbers go by the usual label (transport and congestion control), then by the start, the path and the place. So a
//! flow that is alone between its hosts draws the same numbers whatever its algorithm is.

use std::sync::Arc;

use crate::resolved::{Flow, Scenario};

/// The names by the flows' identifiers, and the flows in the order of their names.
pub(crate) struct Streams {
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) order: Vec<usize>,
}

/// The label of a flow, if it does not follow from its transport.
fn own_label(flow: &Flow) -> &str {
    if flow.is_labelled || flow.source.is_some() {
        &flow.label
    } else {
        ""
    }
}

impl Streams {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let flows = &scenario.flows;
        let mut keys: Vec<_> = flows
            .iter()
            .map(|f| {
                let named = (f.from, f.to, own_label(f));
                (named, f.transport.label(), f.start, f.path, f.id as usize)
            })
            .collect();
        keys.sort();
        let mut names: Vec<Arc<str>> = vec!["".into(); flows.len()];
        let mut before = None;
        let mut number = 0;
        for (named, .., id) in &keys {
            number = if before == Some(named) { number + 1 } else { 0 };
            before = Some(named);
            let (from, to, label) = named;
            let (from, to) = (&scenario.nodes[*from].name, &scenario.nodes[*to].name);
            names[*id] = format!("{from}/{to}/{number}/{label}").into();
        }
        let order = keys.into_iter().map(|(.., id)| id).collect();
        Self { names, order }
    }
}
