//! What a run has to show: it changes nothing of the run, and names what there is.

use serde_json::json;

use super::grammar::DUMBBELL;
use super::ok;
use super::slips::rejects;

fn with(expectation: &str) -> String {
    format!("{DUMBBELL}\n[[expect]]\n{expectation}\n")
}

#[test]
fn expectations_are_of_figures_that_there_are_and_change_no_run() {
    for wanted in [
        "metric = \"flows.bbr.goodput_bps\"\nat_least = \"1Mbit/s\"\nat_most = 5e6",
        "metric = \"flows.*.verified\"\nequals = true",
        "metric = \"flows.cu*.goodput_bps\"\nat_least = 0.9\nof = \"flows.bbr.goodput_bps\"",
        "metric = \"links.bottleneck.utilization\"\nat_least = \"90%\"",
        "metric = \"links.left0-routerL down.utilization\"\nat_most = 1\nof = \"results/before\"",
        "metric = \"summary.jain_index\"\nat_least = 0.8\nwhy = \"nobody starves\"",
    ] {
        let found = ok(&with(wanted));
        assert_eq!(found.document["expect"].as_array().unwrap().len(), 1);
        assert_eq!(found.to_json(), ok(DUMBBELL).to_json());
    }
    let found = ok(&with(
        "metric = \"summary.utilization\"\nat_least = \"90%\"",
    ));
    let written = json!([{
        "metric": "summary.utilization", "at_least": "90%", "by": "mean", "why": ""
    }]);
    assert_eq!(found.document["expect"], written);
}

#[test]
fn what_is_no_expectation_is_refused() {
    let line = DUMBBELL.lines().count() + 2;
    for (wanted, message, help, line) in [
        (
            "metric = \"summary.utilization\"",
            "nothing is expected",
            "at_least",
            line,
        ),
        ("at_least = 1", "metric", "", line),
        (
            "metric = \"flows.goodput_bps\"\nat_least = 1",
            "no place",
            "flows.LABEL.COLUMN",
            line + 1,
        ),
        (
            "metric = \"runs.a.b\"\nat_least = 1",
            "no place",
            "summary.FIGURE",
            line + 1,
        ),
        (
            "metric = \"summary.\"\nat_least = 1",
            "no place",
            "",
            line + 1,
        ),
        (
            "metric = \"summary.utilization\"\nat_least = [1]",
            "at_least",
            "",
            line + 2,
        ),
    ] {
        rejects(&with(wanted), message, help, line);
    }
}
