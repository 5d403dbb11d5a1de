//! Tests of the whole crate: the grammar, the diagnostics, the examples.

mod grammar;

use crate::{Diagnostics, Origin, Scenario, parse};

pub(crate) fn ok(text: &str) -> Scenario {
    match parse(text, &Origin::default(), &[]) {
        Ok(s) => s,
        Err(e) => panic!("{}", e.render(false)),
    }
}

pub(crate) fn bad(text: &str) -> Diagnostics {
    match parse(text, &Origin::default(), &[]) {
        Ok(_) => panic!("accepted: {text}"),
        Err(e) => e,
    }
}
