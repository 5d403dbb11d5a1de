//! What a user says about one direction of a link.

use std::sync::Arc;

use gargalo_units::{Bytes, Duration, Instant, Rate};

use crate::delay::{DelayModel, check_steps};
use crate::loss::LossModel;
use crate::policer::Policer;
use crate::queue::QueueConfig;
use crate::reorder::Reorder;
use crate::server::Server;
use crate::trace::DeliveryTrace;

/// One direction of a link.
///
/// The default is a perfect wire: unlimited rate, no delay, no loss, MTU 1500, tail drop at 1000
/// packets (which an unlimited rate never reaches).
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// How fast bytes leave. Default: unlimited.
    pub rate: RateModel,
    /// Propagation delay and jitter. Default: zero.
    pub delay: DelayModel,
    /// Loss beside congestion. Default: none.
    pub loss: LossModel,
    /// Spans of time, each from the first instant up to the second, in which every packet that comes is
    /// lost; in order, apart from each other. Default: none.
    pub outages: Vec<(Instant, Instant)>,
    /// Drops what comes faster than a rate. Default: none.
    pub policer: Option<Policer>,
    /// Reordering; `None` keeps every packet in order. Default: none.
    pub reorder: Option<Reorder>,
    /// Probability that a packet is sent twice, 0 to 1. Default: 0.
    pub duplicate: f64,
    /// Largest packet in bytes, IP header included; larger ones are dropped. Default: 1500.
    pub mtu: u32,
    /// Queue in front of the link. Default: tail drop at 1000 packets.
    pub queue: QueueConfig,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: RateModel::Unlimited,
            delay: DelayModel::default(),
            loss: LossModel::None,
            outages: Vec::new(),
            policer: None,
            reorder: None,
            duplicate: 0.0,
            mtu: 1500,
            queue: QueueConfig::default(),
        }
    }
}

impl LinkConfig {
    /// Whether a link can be built from this.
    ///
    /// # Errors
    /// The first value that makes no sense, with its remedy.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.rate.validate()?;
        self.delay.validate()?;
        self.loss.validate()?;
        check_outages(&self.outages)?;
        if let Some(r) = &self.reorder {
            r.validate()?;
        }
        probability("duplicate", self.duplicate)?;
        if self.mtu == 0 {
            let problem = "0 lets no packet through; the usual value is 1500";
            return Err(ConfigError::new("mtu", problem));
        }
        if let Some(p) = &self.policer {
            p.validate(self.mtu)?;
        }
        self.queue.validate()
    }
}

fn check_outages(outages: &[(Instant, Instant)]) -> Result<(), ConfigError> {
    let mut before = None;
    for (from, to) in outages {
        let problem = if from >= to {
            "one ends before it begins; give pairs of instants, the first before the second"
        } else if before.is_some_and(|b| b > *from) {
            "they must be in order and not overlap"
        } else {
            before = Some(*to);
            continue;
        };
        return Err(ConfigError::new("outages", problem));
    }
    Ok(())
}

/// How fast bytes leave.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RateModel {
    /// A packet leaves as it comes; there is never a queue.
    #[default]
    Unlimited,
    /// Always the same rate.
    Constant(Rate),
    /// From each instant on the rate beside it; the first instant is zero, the others increase. A rate
    /// of zero is an outage; a packet in transmission goes on where it stopped.
    Steps(Vec<(Instant, Rate)>),
    /// Opportunities recorded elsewhere (see [`DeliveryTrace`]); repeats at its end.
    Trace(Arc<DeliveryTrace>),
}

impl RateModel {
    /// The long-run average: that of the last step, or of one period of a trace; [`Rate::MAX`] when
    /// unlimited.
    pub fn mean(&self) -> Rate {
        match self {
            Self::Unlimited => Rate::MAX,
            Self::Constant(r) => *r,
            Self::Steps(steps) => steps.last().map_or(Rate::MAX, |s| s.1),
            Self::Trace(t) => t.mean_rate(),
        }
    }

    /// How many bytes can be carried between two instants; `None` if any number.
    pub fn capacity(&self, from: Instant, to: Instant) -> Option<Bytes> {
        Server::new(self).capacity(from, to).map(Bytes::new)
    }

    /// Time of one `bytes` packet at the fastest rate that ever holds: what a queue may take as the
    /// typical transmission time.
    pub(crate) fn packet_time(&self, bytes: u32) -> Duration {
        let rate = match self {
            Self::Steps(steps) => steps.iter().map(|s| s.1).max().unwrap_or(Rate::MAX),
            other => other.mean(),
        };
        rate.transmission_time(Bytes::new(u64::from(bytes)))
    }

    fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Unlimited | Self::Trace(_) => Ok(()),
            Self::Constant(r) if r.is_zero() => Err(ConfigError::new(
                "rate",
                "0 bit/s lets nothing through; for an outage give steps",
            )),
            Self::Constant(_) => Ok(()),
            Self::Steps(steps) => check_steps("rate.steps", steps.iter().map(|s| s.0)),
        }
    }
}

/// A link that cannot be: which value, why, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct ConfigError {
    /// Path of the value, like `loss.independent`.
    pub field: &'static str,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl ConfigError {
    pub(crate) fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self {
            field,
            problem: problem.into(),
        }
    }
}

pub(crate) fn probability(field: &'static str, p: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    let problem = format!("{p} is not a probability; give a number from 0 to 1");
    Err(ConfigError::new(field, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_field_and_the_remedy() {
        let bad = LinkConfig {
            duplicate: 2.0,
            ..LinkConfig::default()
        };
        assert_eq!(
            bad.validate().unwrap_err().to_string(),
            "duplicate: 2 is not a probability; give a number from 0 to 1"
        );
        let bad = LinkConfig {
            rate: RateModel::Constant(Rate::ZERO),
            ..LinkConfig::default()
        };
        assert_eq!(bad.validate().unwrap_err().field, "rate");
        let bad = LinkConfig {
            mtu: 0,
            ..LinkConfig::default()
        };
        assert_eq!(bad.validate().unwrap_err().field, "mtu");
        let at = |s: u64| Instant::ZERO + Duration::from_secs(s);
        for bad in [vec![(at(2), at(2))], vec![(at(1), at(3)), (at(2), at(4))]] {
            let bad = LinkConfig {
                outages: bad,
                ..LinkConfig::default()
            };
            assert_eq!(bad.validate().unwrap_err().field, "outages");
        }
        assert!(LinkConfig::default().validate().is_ok());
    }
}
