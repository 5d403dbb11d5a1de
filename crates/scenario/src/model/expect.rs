//! What a run has to show.

use gargalo_settings::{Error, Files, Json, Schemas, Setting, names, settings};
use serde_json::json;

settings! {
    /// A figure of the results and what it has to be, for `gargalo check`.
    pub struct Expectation as "Expectation" {
        /// The figure by its place in the results: `flows.LABEL.COLUMN`, `links.NAME.FIGURE`,
        /// `summary.FIGURE`. `*` at the end of a name stands for any text, and each has to be as expected.
        metric: String;
        /// It is not less.
        at_least: Option<Bound> = None;
        /// It is not more.
        at_most: Option<Bound> = None;
        /// It is this.
        equals: Option<Bound> = None;
        /// Another figure, of which the bounds are multiples; or the directory of results, whose figure of the same
        /// place it is then.
        of: Option<String> = None;
        /// In a sweep: what of a cell's repeats has to be so.
        by: Repeats = Repeats::Mean;
        /// Why it has to be so, in a sentence.
        why: String = String::new();
    }
}

names! {
    /// What is compared of the repeats of a run.
    pub enum Repeats {
        /// Their mean.
        Mean = "mean",
        /// Both ends of the 95% interval of their mean, for which three repeats are needed.
        Interval = "interval",
        /// Each of them.
        Each = "each",
    }
}

/// A number, a quantity with its unit, a word, or yes or no. What it means follows from the figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound(Json);

impl Setting for Bound {
    fn schema(_: &mut Schemas) -> Json {
        json!({ "type": ["number", "string", "boolean"], "examples": [2, "2s", "10Mbit/s", "90%", true] })
    }
    fn read(json: &Json, _: &mut Files) -> Result<Self, Error> {
        match json {
            Json::Number(_) | Json::String(_) | Json::Bool(_) => Ok(Self(json.clone())),
            other => Err(Error::new(format!(
                "{other} is no number, no text and not true or false"
            ))),
        }
    }
    fn write(&self) -> Json {
        self.0.clone()
    }
}
