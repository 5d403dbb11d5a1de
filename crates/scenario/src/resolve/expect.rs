//! What a run has to show: figures are of flows and links that there are.

use gargalo_units::nearest;

use super::{Context, did_you_mean};
use crate::model::{self, Expectation};
use crate::resolved::{Flow, Group, Link};

/// Where figures are, and of what.
const PLACES: [&str; 3] = ["flows", "links", "summary"];

/// Checks all of them.
pub(super) fn check(
    raw: &model::Scenario,
    (flows, groups, links): (&[Flow], &[Group], &[Link]),
    cx: &mut Context<'_>,
) {
    let flows = flows.iter().map(|f| &*f.label);
    let labels: Vec<&str> = flows.chain(groups.iter().map(|g| &*g.label)).collect();
    let links: Vec<&str> = links.iter().map(|l| &*l.name).collect();
    for (i, wanted) in raw.expect.iter().enumerate() {
        if !wanted.is_bounded() {
            let help = "give `at_least`, `at_most` or `equals`".to_owned();
            let message = format!("of \"{}\" nothing is expected", wanted.metric);
            cx.error(&format!("expect.{i}"), "no bound", message, help);
        }
        let mut place = |key: &str, metric: &str| {
            if let Err((label, message, help)) = of(metric, &labels, &links) {
                cx.error(&format!("expect.{i}.{key}"), label, message, help);
            }
        };
        place("metric", &wanted.metric);
        // Anything else is a directory.
        if let Some(other) = wanted.of.as_deref().filter(|o| is_place(o)) {
            place("of", other);
        }
    }
}

impl Expectation {
    const fn is_bounded(&self) -> bool {
        self.at_least.is_some() || self.at_most.is_some() || self.equals.is_some()
    }
}

fn is_place(text: &str) -> bool {
    PLACES.iter().any(|p| {
        text.strip_prefix(p)
            .is_some_and(|rest| rest.starts_with('.'))
    })
}

/// Checks a place: of which flows or links a figure is.
fn of(metric: &str, labels: &[&str], links: &[&str]) -> Result<(), (&'static str, String, String)> {
    let unknown = || {
        let message = format!("\"{metric}\" is no place of a figure");
        let help = "write `flows.LABEL.COLUMN`, `links.NAME.FIGURE` or `summary.FIGURE`";
        ("not a place", message, help.to_owned())
    };
    let (place, rest) = metric.split_once('.').ok_or_else(unknown)?;
    let names = match place {
        "flows" => labels,
        "links" => links,
        "summary" if !rest.is_empty() => return Ok(()),
        _ => return Err(unknown()),
    };
    let (pattern, figure) = rest.rsplit_once('.').ok_or_else(unknown)?;
    if figure.is_empty() {
        return Err(unknown());
    }
    // A direction of a link is named behind it.
    let pattern = match place {
        "links" => pattern
            .strip_suffix(" up")
            .or_else(|| pattern.strip_suffix(" down"))
            .unwrap_or(pattern),
        _ => pattern,
    };
    let fits = |name: &&&str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => **name == pattern,
    };
    if names.iter().any(|n| fits(&n)) {
        return Ok(());
    }
    let near = nearest(pattern, names.iter().copied());
    Err((
        "not there",
        format!("\"{pattern}\" is none of the {place} of this scenario"),
        did_you_mean(near, place, names.iter().copied()),
    ))
}
