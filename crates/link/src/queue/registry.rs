//! The disciplines by name, for listings and documentation.

/// A queueing discipline as listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueInfo {
    /// Name in scenarios.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [QueueParam],
}

/// A parameter as listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueParam {
    /// Name in scenarios.
    pub name: &'static str,
    /// Default, as written in a scenario.
    pub default: &'static str,
    /// What it does.
    pub summary: &'static str,
}

const fn param(name: &'static str, default: &'static str, summary: &'static str) -> QueueParam {
    QueueParam {
        name,
        default,
        summary,
    }
}

const ECN: &str = "mark ECN-capable packets instead of dropping them";
const LIMIT: &str = "packets that may wait";
const CE: &str = "mark ECN-capable packets that waited longer than this";

/// Every queueing discipline.
pub const QUEUES: &[QueueInfo] = &[
    QueueInfo {
        name: "droptail",
        summary: "first in, first out; what does not fit is dropped",
        source: "RFC 7567 §2.1",
        params: &[param(
            "limit",
            "1000 packets",
            "what may wait, in packets, bytes, time or bandwidth-delay products",
        )],
    },
    QueueInfo {
        name: "red",
        summary: "drops at random by the average queue length",
        source: "Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993; gentle: Floyd 2000",
        params: &[
            param("limit", "1000 packets", LIMIT),
            param(
                "min_threshold",
                "5",
                "average queue (packets) without drops",
            ),
            param(
                "max_threshold",
                "15",
                "average queue (packets) with max_probability",
            ),
            param(
                "max_probability",
                "0.1",
                "drop probability at max_threshold",
            ),
            param("weight", "0.002", "weight of a new sample in the average"),
            param(
                "gentle",
                "true",
                "grow to 1 between once and twice max_threshold",
            ),
            param("ecn", "false", ECN),
        ],
    },
    QueueInfo {
        name: "codel",
        summary: "drops at growing pace while packets wait too long",
        source: "RFC 8289",
        params: &[
            param("target", "5ms", "acceptable standing delay"),
            param("interval", "100ms", "worst usual round-trip time"),
            param("limit", "1000 packets", LIMIT),
            param("ecn", "false", ECN),
            param("ce_threshold", "none", CE),
        ],
    },
    QueueInfo {
        name: "fq-codel",
        summary: "a queue per flow, sparse flows first, CoDel on each",
        source: "RFC 8290",
        params: &[
            param("flows", "1024", "queues that flows are hashed to"),
            param("quantum", "1514B", "bytes a flow may send in its turn"),
            param("limit", "10240 packets", LIMIT),
            param("memory_limit", "32MiB", "bytes that may wait"),
            param(
                "drop_batch",
                "64 packets",
                "most packets dropped at once from the fattest queue",
            ),
            param("target", "5ms", "acceptable standing delay"),
            param("interval", "100ms", "worst usual round-trip time"),
            param("ecn", "true", ECN),
            param("ce_threshold", "none", CE),
        ],
    },
    QueueInfo {
        name: "pie",
        summary: "steers the drop probability so that the delay meets a target",
        source: "RFC 8033",
        params: &[
            param("target", "15ms", "reference delay"),
            param("update", "15ms", "time between updates of the probability"),
            param("alpha", "0.125", "weight of the deviation, per second"),
            param("beta", "1.25", "weight of the trend, per second"),
            param("max_burst", "150ms", "time a burst passes without drops"),
            param("limit", "1000 packets", LIMIT),
            param("ecn", "false", ECN),
            param(
                "mark_threshold",
                "0.1",
                "drop even ECN-capable packets from this probability on",
            ),
            param(
                "estimator",
                "timestamp",
                "how the delay is known: timestamp or departure-rate",
            ),
            param("derandomize", "true", "spread drops evenly"),
        ],
    },
    QueueInfo {
        name: "step",
        summary: "tail drop that marks every packet which finds more than a threshold waiting",
        source: "RFC 8257 §3.1; Alizadeh et al., SIGCOMM 2010 §3.1; in time: RFC 9332",
        params: &[
            param(
                "mark_above",
                "20 packets",
                "threshold K, in packets, bytes, time or bandwidth-delay products",
            ),
            param("limit", "1000 packets", LIMIT),
            param(
                "drop_incapable",
                "false",
                "drop what would be marked but is not ECN-capable",
            ),
            param("ecn", "true", "mark at all"),
        ],
    },
    QueueInfo {
        name: "dualpi2",
        summary: "the coupled dual queue of L4S: a shallow queue for ECT(1), PI2 for the others, about equal rates",
        source: "RFC 9332; defaults: tc-dualpi2(8)",
        params: &[
            param("target", "15ms", "reference delay"),
            param(
                "update",
                "16ms",
                "time between updates of the base probability",
            ),
            param("alpha", "0.16", "weight of the deviation, in Hz"),
            param("beta", "3.2", "weight of the trend, in Hz"),
            param(
                "coupling",
                "2",
                "factor k: the low-latency queue marks with k times the base probability, the other acts with its square",
            ),
            param(
                "step_threshold",
                "1ms",
                "the low-latency queue marks what waited longer, or finds more waiting, in time, packets, bytes or bandwidth-delay products",
            ),
            param(
                "ramp",
                "0s",
                "its probability rises to 1 within so much above the threshold (RFC 9332: 400us from 800us on)",
            ),
            param(
                "min_step",
                "0 packets",
                "the threshold holds while more than this are in the low-latency queue",
            ),
            param(
                "classic_protection",
                "0.1",
                "share of the link for the classic queue while both have packets",
            ),
            param(
                "drop_on_overload",
                "true",
                "drop in both queues when everything would be marked",
            ),
            param(
                "drop_early",
                "false",
                "decide by the base probability on arrival, not on departure",
            ),
            param(
                "any_ect",
                "false",
                "ECT(0) to the low-latency queue too, for DCTCP",
            ),
            param(
                "derandomize",
                "false",
                "spread marks and drops evenly, as the RFC's pseudocode does",
            ),
            param("limit", "10000 packets", LIMIT),
            param("memory_limit", "none", "bytes that may wait"),
            param("ecn", "true", "mark at all; without, PI2 for everything"),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{
        CoDelConfig, DualPi2Config, FqCoDelConfig, PieConfig, QueueConfig, RedConfig, StepConfig,
    };

    #[test]
    fn every_discipline_is_listed_once() {
        let configs = [
            QueueConfig::default(),
            QueueConfig::Red(RedConfig::default()),
            QueueConfig::CoDel(CoDelConfig::default()),
            QueueConfig::FqCoDel(FqCoDelConfig::default()),
            QueueConfig::Pie(PieConfig::default()),
            QueueConfig::Step(StepConfig::default()),
            QueueConfig::DualPi2(DualPi2Config::default()),
        ];
        let names: Vec<_> = configs.iter().map(QueueConfig::name).collect();
        let listed: Vec<_> = QUEUES.iter().map(|q| q.name).collect();
        assert_eq!(names, listed);
        assert!(configs.iter().all(|c| c.validate().is_ok()));
    }
}
