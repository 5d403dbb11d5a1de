//! The configuration of one direction of a link.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use gargalo_settings::{Error, Files, Json, Probability, Schemas, Setting, kinds, settings};
use gargalo_units::{Bytes, Duration, Instant, Rate, reason};

use crate::delay::{Delay, Jitter, check_steps};
use crate::loss::LossModel;
use crate::policer::Policer;
use crate::queue::{QueueConfig, QueueLimit};
use crate::reorder::Reorder;
use crate::trace::DeliveryTrace;

settings! {
    /// One direction of a link: rate, delay, loss, queue. The default has no limit, no delay and no loss.
    pub struct LinkConfig as "Direction", checked by LinkConfig::consistent {
        /// Transmission rate: a rate, `"unlimited"`, steps over time or a recorded trace.
        rate: RateModel = RateModel::Unlimited;
        /// Propagation delay of one direction: constant, or steps over time.
        delay: Delay = Delay::Constant(Duration::ZERO);
        /// Random variation of the delay: half the width of a uniform distribution, or a table
        /// that names another one. Packets keep their order. Default: none.
        jitter: Option<Jitter> = None;
        /// Packets that left the queue wait for the next multiple of this time and leave together: frames of many
        /// packets (Wi-Fi, IEEE 802.11n), grants (DOCSIS, cellular networks) and interrupts that are coalesced.
        /// Default: none.
        aggregation: Option<Duration> = None;
        /// Packet loss that is not caused by congestion: a probability, or a model.
        loss: LossModel = LossModel::NONE;
        /// Outages: spans of time in which every packet that arrives is lost, like `[["10s", "15s"]]`, in order and
        /// without overlap. The first instant is included, the second is not.
        outages: Vec<(Instant, Instant)> = Vec::new();
        /// A policer in front of the queue: drops packets above a rate. Default: none.
        policer: Option<Policer> = None;
        /// A middlebox at the entrance of the link that removes Multipath TCP options from packets, as some
        /// firewalls do.
        strip_mptcp: Strip = Strip::None;
        /// Packet reordering. Default: none.
        reorder: Option<Reorder> = None;
        /// Probability that a packet is duplicated.
        duplicate: f64 as Probability = 0.0;
        /// Largest packet, IP header included; larger ones are dropped.
        mtu: u32 as Bytes = 1500, in 68..=65_535;
        /// Whether the sender of a packet that is larger than the MTU receives an ICMP error with the MTU (RFC 1191),
        /// which returns without delay. Without it such packets disappear, as behind some firewalls (RFC 2923).
        icmp: bool = true;
        /// Whether the queue marks ECN-capable packets instead of dropping them; a value in the queue's own table
        /// has precedence. Default: that of the queue. Tail drop cannot mark.
        ecn: Option<bool> = None;
        /// The queue in front of the link: a name, or a table with its parameters.
        queue: QueueConfig = QueueConfig::DropTail(QueueLimit::Packets(1000));
    }
}

impl LinkConfig {
    /// Checks the values that depend on each other.
    fn consistent(&self) -> Result<(), Error> {
        check_outages(&self.outages)?;
        if let Some(policer) = self.policer
            && policer.burst < Bytes::new(u64::from(self.mtu))
        {
            let message = format!(
                "{} never lets a packet of {} B through",
                policer.burst, self.mtu
            );
            return Err(Error::of("policer.burst", message).help("give at least the MTU"));
        }
        let mut queue = self.queue;
        if matches!(queue.size(), Some(QueueLimit::Bdp(_))) && self.rate == RateModel::Unlimited {
            let message = "a link of unlimited rate has no bandwidth-delay product";
            let help = "give the link a rate, or the queue another unit";
            return Err(Error::of("queue", message).help(help));
        }
        if self.ecn == Some(true) && matches!(self.queue, QueueConfig::DropTail(_)) {
            let others = QueueConfig::KINDS.iter().filter(|k| **k != "droptail");
            let others: Vec<&str> = others.copied().collect();
            let help = format!("choose a queue that marks: {}", others.join(", "));
            return Err(Error::of("ecn", "a droptail queue cannot mark packets").help(help));
        }
        Ok(())
    }

    /// The table of a direction: keys of `over` replace those of `base`. The link's `ecn` is copied into the
    /// queue's table if that does not have the key.
    pub fn overlay(base: &Json, over: Option<&Json>) -> Json {
        let mut table = base.as_object().cloned().unwrap_or_default();
        for (key, value) in over.and_then(Json::as_object).into_iter().flatten() {
            table.insert(key.clone(), value.clone());
        }
        if let (Some(Json::Bool(ecn)), Some(queue)) =
            (table.get("ecn").cloned(), table.get_mut("queue"))
        {
            if let Json::String(name) = queue {
                *queue = serde_json::json!({ name.as_str(): {} });
            }
            let contents = queue.as_object_mut().into_iter().flatten();
            for (_, content) in contents {
                if let Json::Object(content) = content {
                    content.entry("ecn").or_insert_with(|| ecn.into());
                }
            }
        }
        table.into()
    }
}

kinds! {
    /// The packets from which Multipath TCP options are removed.
    pub enum Strip: Copy as "StripMap" {
        words {
            /// No packet: all options pass.
            "none" => None;
            /// Every packet, those of the handshake included.
            "all" => All;
            /// SYN and SYN/ACK: the connection begins as plain TCP.
            "syn" => Syn;
            /// All packets except SYN and SYN/ACK.
            "rest" => Rest;
        }
        tables {
            /// All packets after this amount of payload has passed in this direction.
            "after" => After(u64 as Bytes);
        }
    }
}

fn check_outages(outages: &[(Instant, Instant)]) -> Result<(), Error> {
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
        return Err(Error::of("outages", problem));
    }
    Ok(())
}

kinds! {
    /// Transmission rate: constant, in steps, from a recorded trace, or unlimited.
    pub enum RateModel as "RateMap", checked by RateModel::possible {
        words {
            /// No limit: a packet leaves when it arrives, and there is never a queue.
            "unlimited" => Unlimited;
        }
        plain {
            /// A constant rate.
            Constant(Rate);
        }
        tables {
            /// Pairs of an instant and the rate from then on; the first instant is 0s, the others increase. A rate
            /// of zero is an outage; a packet in transmission continues after it.
            "steps" => Steps(Vec<(Instant, Rate)>);
            /// A file of packet-delivery opportunities in mahimahi's format, relative to the scenario; it is
            /// repeated at its end.
            "trace" => Trace(TraceFile);
        }
    }
}

/// A recorded trace, and the file it was read from.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceFile {
    /// Absolute path; empty for a trace that was not read from a file.
    pub file: String,
    trace: Arc<DeliveryTrace>,
}

impl From<DeliveryTrace> for TraceFile {
    fn from(trace: DeliveryTrace) -> Self {
        Arc::new(trace).into()
    }
}

impl From<Arc<DeliveryTrace>> for TraceFile {
    fn from(trace: Arc<DeliveryTrace>) -> Self {
        let file = String::new();
        Self { file, trace }
    }
}

impl Deref for TraceFile {
    type Target = DeliveryTrace;
    fn deref(&self) -> &DeliveryTrace {
        &self.trace
    }
}

impl TraceFile {
    /// The delivery opportunities, shared without a copy.
    pub fn shared(&self) -> Arc<DeliveryTrace> {
        Arc::clone(&self.trace)
    }

    /// Reads a trace that was given as `file`.
    fn load(file: &str, path: &Path) -> Result<DeliveryTrace, Error> {
        let text = Files::text(path).map_err(|e| {
            let relative = match Path::new(file).is_absolute() {
                true => "",
                false => "; paths are relative to the scenario file",
            };
            let help = format!("looked for {}{relative}", path.display());
            Error::new(format!("the trace cannot be read: {}", reason(&e))).help(help)
        })?;
        DeliveryTrace::parse(&text).map_err(|e| {
            let message = format!("this is not a packet-delivery trace: {e}");
            Error::new(message).help("a trace has one integer millisecond a line")
        })
    }
}

impl Setting for TraceFile {
    fn schema(schemas: &mut Schemas) -> Json {
        String::schema(schemas)
    }
    fn read(json: &Json, files: &mut Files) -> Result<Self, Error> {
        let file = String::read(json, files)?;
        let trace = files.get(&file, |path| Self::load(&file, path))?;
        let path = files.path(&file);
        let path = std::path::absolute(&path).unwrap_or(path);
        let file = path.to_string_lossy().into_owned();
        Ok(Self { file, trace })
    }
    fn write(&self) -> Json {
        self.file.as_str().into()
    }
}

impl RateModel {
    /// The long-run average: the rate of the last step, or the mean of one period of a trace; [`Rate::MAX`] when
    /// unlimited.
    pub fn mean(&self) -> Rate {
        match self {
            Self::Unlimited => Rate::MAX,
            Self::Constant(r) => *r,
            Self::Steps(steps) => steps.last().map_or(Rate::MAX, |s| s.1),
            Self::Trace(t) => t.mean_rate(),
        }
    }

    /// Transmission time of a packet of `bytes` at the highest configured rate: the typical transmission time for a
    /// queue.
    pub(crate) fn packet_time(&self, bytes: u32) -> Duration {
        let rate = match self {
            Self::Steps(steps) => steps.iter().map(|s| s.1).max().unwrap_or(Rate::MAX),
            other => other.mean(),
        };
        rate.transmission_time(Bytes::new(u64::from(bytes)))
    }

    fn possible(&self) -> Result<(), Error> {
        match self {
            Self::Constant(r) if r.is_zero() => {
                Err(Error::new("0 bit/s lets nothing through").help("for an outage give steps"))
            }
            Self::Steps(steps) => check_steps(steps.iter().map(|s| s.0)),
            Self::Unlimited | Self::Constant(_) | Self::Trace(_) => Ok(()),
        }
    }
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
            bad.check().unwrap_err().to_string(),
            "duplicate: 2 is not a probability (give a number from 0 to 1)"
        );
        let bad = LinkConfig {
            rate: RateModel::Constant(Rate::ZERO),
            ..LinkConfig::default()
        };
        assert_eq!(bad.check().unwrap_err().path, "rate");
        let bad = LinkConfig {
            mtu: 0,
            ..LinkConfig::default()
        };
        assert_eq!(bad.check().unwrap_err().path, "mtu");
        let at = |s: u64| Instant::ZERO + Duration::from_secs(s);
        for bad in [vec![(at(2), at(2))], vec![(at(1), at(3)), (at(2), at(4))]] {
            let bad = LinkConfig {
                outages: bad,
                ..LinkConfig::default()
            };
            assert_eq!(bad.check().unwrap_err().path, "outages");
        }
        assert!(LinkConfig::default().check().is_ok());
    }
}
