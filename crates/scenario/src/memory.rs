//! How much memory a run may take: what it will record at least is known before it starts, and what it
//! takes is watched while it runs.

use std::fmt;
use std::time;

use gargalo_sim::Progress;
use gargalo_units::{Bytes, Duration, Instant};

use crate::resolved::{Flow, Scenario, Transport, Workload};

/// Time between two looks at what the process takes.
const LOOK_EVERY: time::Duration = time::Duration::from_millis(20);

/// Rows that a run will record for certain, and the bytes that they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Samples of flows and links.
    pub rows: u64,
    /// While the run goes on and when they have become tables.
    pub bytes: u64,
}

impl Estimate {
    /// Of samples alone, and only for as long as something is sure to send: flows without an end and
    /// arrivals. What transfers with an end will record depends on the network.
    pub fn of(scenario: &Scenario) -> Self {
        let record = &scenario.record;
        let end = Instant::ZERO + scenario.duration;
        let interval = record.interval.as_nanos().max(1);
        let (mut last, mut flow_rows) = (Instant::ZERO, 0_u64);
        for f in &scenario.flows {
            let until = f.stop.unwrap_or(Instant::MAX).min(end);
            if f.arrivals.is_some() {
                last = end;
            } else if is_endless(f) {
                last = last.max(until);
                if f.rows && f.transport != Transport::Udp {
                    let samples = until.saturating_since(f.start).as_nanos() / interval;
                    flow_rows = flow_rows.saturating_add(samples);
                }
            }
        }
        let samples = last.as_nanos() / interval;
        let directions = 2 * scenario.links.len() as u64;
        let flow_rows = if record.flows { flow_rows } else { 0 };
        let link_rows = if record.links {
            samples.saturating_mul(directions)
        } else {
            0
        };
        let flow = flow_rows.saturating_mul(FLOW_ROW);
        let link = link_rows.saturating_mul(LINK_ROW);
        Self {
            rows: flow_rows.saturating_add(link_rows),
            bytes: flow.saturating_add(link),
        }
    }

    /// The same, refused if it is more than `limit` bytes.
    ///
    /// # Errors
    /// The figures, and what to change.
    pub(crate) fn check(self, scenario: &Scenario, limit: Option<Bytes>) -> Result<(), TooMuch> {
        let Some(limit) = limit.filter(|l| self.bytes > l.get()) else {
            return Ok(());
        };
        let factor = self.bytes as f64 / limit.as_f64().max(1.0);
        Err(TooMuch {
            rows: self.rows,
            bytes: Bytes::new(self.bytes),
            limit,
            interval: scenario.record.interval,
            enough: scenario.record.interval.mul_f64(factor.ceil()),
        })
    }
}

/// What will be recorded fits no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "record.interval = \"{interval}\" would record at least {rows} rows, {} in memory, and the limit is {}: write record.interval = \"{enough}\" or more, record.flows = false or record.links = false, or raise the limit (--memory-limit, memory_limit)",
    shown(*bytes),
    shown(*limit)
)]
pub struct TooMuch {
    /// Samples.
    pub rows: u64,
    /// What they take.
    pub bytes: Bytes,
    /// What they may take.
    pub limit: Bytes,
    /// Time between samples.
    pub interval: Duration,
    /// Time between samples that would do.
    pub enough: Duration,
}

/// With three digits.
fn shown(bytes: Bytes) -> String {
    let scale = 10_u64.pow(bytes.get().max(1).ilog10().saturating_sub(2));
    Bytes::new((bytes.get() + scale / 2) / scale * scale).to_string()
}

/// Whether a flow sends until it is stopped, whatever the network does.
fn is_endless(f: &Flow) -> bool {
    match &f.workload {
        Workload::Bulk { bytes } => bytes.is_none(),
        Workload::Cbr { .. } | Workload::OnOff { .. } => true,
        Workload::Media(_) | Workload::Voice(_) => true,
        Workload::Request { .. } | Workload::Video(_) => false,
        Workload::Web(_) | Workload::Ftp(_) => false,
    }
}

/// Bytes of a row as the engine keeps it, and in its table with names of ordinary length.
const FLOW_ROW: u64 = size_of::<gargalo_sim::FlowSample>() as u64 + 10 * 9 + 24;
const LINK_ROW: u64 = size_of::<gargalo_sim::LinkSample>() as u64 + 8 * 9 + 2 * 20;

/// Watches what a run takes.
#[derive(Debug)]
pub(crate) struct Guard {
    limit: Option<Bytes>,
    /// What the process took before.
    before: u64,
    looked: time::Instant,
    /// What it took when that was too much.
    exceeded: Option<Exceeded>,
}

/// The limit was reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exceeded {
    limit: Bytes,
    recorded: Bytes,
    other: Bytes,
}

impl Guard {
    pub(crate) fn new(limit: Option<Bytes>) -> Self {
        Self {
            limit,
            before: resident().unwrap_or(0),
            looked: time::Instant::now(),
            exceeded: None,
        }
    }

    /// Whether the run must end.
    pub(crate) fn is_exceeded(&mut self, at: &Progress) -> bool {
        let Some(limit) = self.limit else {
            return false;
        };
        if self.looked.elapsed() < LOOK_EVERY {
            return false;
        }
        self.looked = time::Instant::now();
        let recorded = at.recorded;
        // Where nobody says what the process takes: what has been recorded, which is most of it.
        let taken = resident().map_or(recorded, |r| r.saturating_sub(self.before));
        // Tables will be as large as what they are made from.
        if taken.saturating_add(recorded) <= limit.get() {
            return false;
        }
        self.exceeded.get_or_insert(Exceeded {
            limit,
            recorded: Bytes::new(recorded.saturating_mul(2)),
            other: Bytes::new(taken.saturating_sub(recorded)),
        });
        true
    }

    /// Why the run ended early, if it was this.
    pub(crate) const fn exceeded(&self) -> Option<Exceeded> {
        self.exceeded
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ended early: the run reached its memory limit of {} (records and their tables {}, flows and packets {}); record less (record.interval, flows, links, events, decisions, gauges), or raise the limit (--memory-limit, memory_limit)",
            shown(self.limit),
            shown(self.recorded),
            shown(self.other)
        )
    }
}

/// Resident memory of this process in bytes; `None` where the system does not say.
fn resident() -> Option<u64> {
    // Pages are 4 KiB where there is this file, or more: then the guard is generous.
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(PAGE)
}

/// Half of the memory that this process could still have, of the machine and of its control group;
/// `None` where the system does not say.
pub fn usual_limit() -> Option<Bytes> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let info = read("/proc/meminfo")?;
    let available = info.lines().find_map(|l| {
        let kib = l.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?;
        Some(kib.trim().parse::<u64>().ok()?.saturating_mul(1024))
    })?;
    let number = |path: String| read(&path)?.trim().parse::<u64>().ok();
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let left = groups.lines().filter_map(|l| {
        // "0::/path" (version 2) or "4:memory:/path" (version 1); inside of a container the path may
        // be that of the host, and the root is ours.
        let mut parts = l.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, most, now) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            "memory" => (
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            ),
            _ => return None,
        };
        [path, ""].into_iter().find_map(|path| {
            let most = number(format!("{root}{path}/{most}"))?;
            Some(most.saturating_sub(number(format!("{root}{path}/{now}"))?))
        })
    });
    let least = left.fold(available, u64::min);
    Some(Bytes::new(least / 2))
}
