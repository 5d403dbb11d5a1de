//! The findings of an audit: codes, severities, texts.

use serde_json::{Value as Json, json};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// A note to be read with the result.
    Note,
    /// The result may not mean what it seems to mean.
    Warning,
    /// The result contradicts itself: a fault of Gargalo.
    Error,
}

impl Severity {
    /// The name in lower case, as in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Every code that a run's findings can have: stable, with its severity and meaning.
pub const CODES: [(&str, Severity, &str); 11] = [
    (
        "link-above-capacity",
        Severity::Error,
        "a link sent more bytes than its rate allows over the run or in the measured window",
    ),
    (
        "link-not-conserved",
        Severity::Error,
        "the packets offered to a link and duplicated by it are not equal to those sent, dropped and still queued",
    ),
    (
        "goodput-above-capacity",
        Severity::Error,
        "a flow delivered more bytes than its path carries in its time, or flows more than a link they cross sent",
    ),
    (
        "flow-not-conserved",
        Severity::Error,
        "a flow delivered more bytes than it sent, or retransmitted or lost more packets than it sent",
    ),
    (
        "rtt-below-path",
        Severity::Error,
        "a flow's smallest round-trip time (over UDP, one-way delay) is below the propagation delay of its path",
    ),
    (
        "sum-not-conserved",
        Severity::Error,
        "the goodput of the summary is more than all flows delivered in the measured window",
    ),
    (
        "ends-in-slow-start",
        Severity::Warning,
        "an unlimited flow had not left slow start: its rate was still growing",
    ),
    (
        "ends-before-data",
        Severity::Warning,
        "a flow delivered nothing, as its time is shorter than a handshake and the way of the first packet",
    ),
    (
        "few-packets",
        Severity::Note,
        "the measured window has room for fewer than 20 packets on the bottleneck",
    ),
    (
        "idle-behind-early-drops",
        Severity::Note,
        "a link used less than 60% of its rate although an unlimited flow crosses it: its queue drops or marks early",
    ),
    (
        "late-packets",
        Severity::Warning,
        "the lab was late by more than 5% of the shortest round trip",
    ),
];

/// A finding: something that a reader of the results should know.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// One of [`CODES`].
    pub code: &'static str,
    /// The flow or link concerned.
    pub subject: String,
    /// The text, one sentence.
    pub text: String,
    /// The figures that support it, in SI units.
    pub figures: Json,
}

impl Finding {
    pub(super) fn new(code: &'static str, subject: String, text: String, figures: Json) -> Self {
        Self {
            code,
            subject,
            text,
            figures,
        }
    }

    /// The severity of the finding.
    pub fn severity(&self) -> Severity {
        let of = CODES.iter().find(|(code, ..)| *code == self.code);
        of.map_or(Severity::Error, |(_, severity, _)| *severity)
    }

    /// Builds `{"code", "severity", "subject", "text", "figures"}`.
    pub fn to_json(&self) -> Json {
        json!({
            "code": self.code, "severity": self.severity().name(), "subject": self.subject,
            "text": self.text, "figures": self.figures,
        })
    }
}
