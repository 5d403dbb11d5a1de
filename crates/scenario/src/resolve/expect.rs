//! What a run has to show: each says what it expects, and of a place in the results. Which flows and links there are is
//! another question, of the results: a sweep may give them other names.

use super::Context;
use crate::model::{self, Expectation};

/// Where figures are, and how many names are before the figure.
const PLACES: [(&str, usize); 3] = [("flows", 1), ("links", 1), ("summary", 0)];

/// Checks all of them.
pub(super) fn check(raw: &model::Scenario, cx: &mut Context<'_>) {
    for (i, wanted) in raw.expect.iter().enumerate() {
        if !wanted.is_bounded() {
            let help = "give `at_least`, `at_most` or `equals`".to_owned();
            let message = format!("of \"{}\" nothing is expected", wanted.metric);
            cx.error(&format!("expect.{i}"), "no bound", message, help);
        }
        if !is_place(&wanted.metric) {
            let help = "write `flows.LABEL.COLUMN`, `links.NAME.FIGURE` or `summary.FIGURE`";
            let message = format!("\"{}\" is no place of a figure", wanted.metric);
            let at = format!("expect.{i}.metric");
            cx.error(&at, "not a place", message, help.to_owned());
        }
    }
}

impl Expectation {
    const fn is_bounded(&self) -> bool {
        self.at_least.is_some() || self.at_most.is_some() || self.equals.is_some()
    }
}

fn is_place(metric: &str) -> bool {
    let Some((first, rest)) = metric.split_once('.') else {
        return false;
    };
    let names = PLACES.iter().find(|(place, _)| *place == first);
    names.is_some_and(|(_, many)| {
        rest.split('.').count() > *many && rest.split('.').all(|word| !word.is_empty())
    })
}
