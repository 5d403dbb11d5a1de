//! Memory of a run: the least that it will record is known before it starts, and its use is watched while it runs.

use std::fmt;
use std::time;

use gargalo_flow::Progress;
use gargalo_units::{Bytes, Duration, Instant};
use gargalo_workload::media_frames::MediaFrame;
use gargalo_workload::{Echo, Workload};
use serde_json::Value as Json;

use crate::resolved::{Scenario, Transport};

/// Time between two measurements of the process's memory.
const LOOK_EVERY: time::Duration = time::Duration::from_millis(20);

/// Rows that a run will certainly record, and their size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Samples of flows and links, echo requests of pings and frames of calls.
    pub rows: u64,
    /// Bytes during the run and after conversion to tables.
    pub bytes: u64,
    /// Of these, the bytes of pings.
    pub pings: u64,
    /// Of these, the bytes of frames.
    pub frames: u64,
}

impl Estimate {
    /// Estimates samples, echo requests and frames only, and only while a flow certainly sends: unlimited flows and
    /// arrivals. The records of limited transfers depend on the network.
    pub fn of(scenario: &Scenario) -> Self {
        let record = &scenario.record;
        let end = Instant::ZERO + scenario.duration;
        let interval = record.interval.as_nanos().max(1);
        let mut last = Instant::ZERO;
        let (mut flow_rows, mut subflow_rows, mut gauge_rows) = (0_u64, 0_u64, 0_u64);
        let (mut ping_rows, mut frame_rows) = (0_u64, 0_u64);
        for f in &scenario.flows {
            let until = f.stop.unwrap_or(Instant::MAX).min(end);
            if f.arrivals.is_some() {
                last = last.max(until);
            } else if f.workload.is_endless() {
                last = last.max(until);
                let within = until.saturating_since(f.start);
                match &*f.workload {
                    Workload::Ping(ping) if f.rows => {
                        ping_rows = ping_rows.saturating_add(ping.requests(within));
                    }
                    Workload::Media(media) if f.rows => {
                        frame_rows = frame_rows.saturating_add(media.frames(within));
                    }
                    _ => {}
                }
                if f.rows && f.transport != Transport::Udp {
                    let samples = until.saturating_since(f.start).as_nanos() / interval;
                    flow_rows = flow_rows.saturating_add(samples);
                    match &f.transport {
                        // One subflow at least.
                        Transport::Mptcp(_) => subflow_rows = subflow_rows.saturating_add(samples),
                        Transport::Tcp(_) | Transport::Quic(_) if record.gauges => {
                            let gauges = samples.saturating_mul(SENDER_GAUGES);
                            gauge_rows = gauge_rows.saturating_add(gauges);
                        }
                        _ => {}
                    }
                }
            }
        }
        let samples = last.as_nanos() / interval;
        let directions = 2 * scenario.links.len() as u64;
        let link_rows = samples.saturating_mul(directions);
        let all = [
            (record.flows, flow_rows, FLOW_ROW),
            (record.flows, subflow_rows, SUBFLOW_ROW),
            (record.flows, gauge_rows, GAUGE_ROW),
            (record.links, link_rows, LINK_ROW),
            (true, ping_rows, PING_ROW),
            (true, frame_rows, FRAME_ROW),
        ];
        let mut sum = Self {
            pings: ping_rows.saturating_mul(PING_ROW),
            frames: frame_rows.saturating_mul(FRAME_ROW),
            ..Self::default()
        };
        for (_, rows, each) in all.into_iter().filter(|(wanted, ..)| *wanted) {
            sum.rows = sum.rows.saturating_add(rows);
            sum.bytes = sum.bytes.saturating_add(rows.saturating_mul(each));
        }
        sum
    }

    /// Returns the estimate, or an error if it exceeds `limit` bytes.
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
            most: match self.bytes / 2 {
                half if self.pings > half => Most::Pings,
                half if self.frames > half => Most::Frames,
                _ => Most::Samples,
            },
        })
    }
}

/// The records will not fit into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch {
    /// Number of samples.
    pub rows: u64,
    /// Memory that the samples take.
    pub bytes: Bytes,
    /// Memory that they may take: the limit of the run's options.
    pub limit: Bytes,
    /// Sampling interval of the scenario.
    pub interval: Duration,
    /// Sampling interval that would fit.
    pub enough: Duration,
    /// What takes most of it.
    pub most: Most,
}

/// What takes most of the memory of a run's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Most {
    /// The samples of flows and links.
    Samples,
    /// The echo requests of pings.
    Pings,
    /// The frames of calls.
    Frames,
}

impl std::error::Error for TooMuch {}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rows,
            interval,
            enough,
            ..
        } = self;
        let (cause, remedy) = match self.most {
            Most::Frames => (
                "workload.media".to_owned(),
                "give the calls a lower `frame_rate`, or their flow record = \"summary\"".to_owned(),
            ),
            Most::Pings => (
                "workload.ping".to_owned(),
                "give the pings a longer `interval` or a `count`, or their flow record = \"summary\"".to_owned(),
            ),
            Most::Samples => (
                format!("record.interval = \"{interval}\""),
                format!(
                    "write record.interval = \"{enough}\" or more, record.flows = false, record.links = false or \
                     record.gauges = false"
                ),
            ),
        };
        write!(
            f,
            "{cause} would record at least {rows} rows, {} in memory, and the limit is {}: {remedy}, or raise the \
             limit (--memory-limit, memory_limit)",
            shown(self.bytes),
            shown(self.limit)
        )
    }
}

/// Formats a size with three digits.
fn shown(bytes: Bytes) -> String {
    let scale = 10_u64.pow(bytes.get().max(1).ilog10().saturating_sub(2));
    Bytes::new((bytes.get() + scale / 2) / scale * scale).to_string()
}

/// Bytes of a row as the engine keeps it, and in its table with names of ordinary length.
const FLOW_ROW: u64 = size_of::<gargalo_flow::FlowSample>() as u64 + 11 * 9 + 24;
const SUBFLOW_ROW: u64 = size_of::<gargalo_flow::SubflowSample>() as u64 + 9 * 9 + 2 * 20;
const GAUGE_ROW: u64 = size_of::<gargalo_flow::Gauge>() as u64 + 3 * 9 + 3 * 20;
/// Number of gauges of a sender that every congestion control has.
const SENDER_GAUGES: u64 = 5;
const LINK_ROW: u64 = size_of::<gargalo_flow::LinkSample>() as u64 + 8 * 9 + 2 * 20;
/// The log exists twice when the flow ends; beside it is the number of the answer.
const PING_ROW: u64 = 2 * size_of::<Echo>() as u64 + 4 + 7 * 9;
/// The log, too, exists twice when the flow ends; beside it are the number of its last packet, and bits for packets.
const FRAME_ROW: u64 = 2 * size_of::<MediaFrame>() as u64 + 8 + 8 * 9;

/// Watches the memory of a run.
#[derive(Debug)]
pub(crate) struct Guard {
    limit: Option<Bytes>,
    /// Memory of the process before the run.
    before: u64,
    looked: time::Instant,
    /// Memory of the process when the limit was exceeded.
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
        // Where the system does not report the memory of the process, the size of the records is used, which is most
        // of it.
        let taken = resident().map_or(recorded, |r| r.saturating_sub(self.before));
        // The tables will be as large as the records from which they are built.
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

    /// Records in the results that the run ended early for this reason.
    pub(crate) fn tell(&self, json: &mut Json) {
        let Some(why) = self.exceeded.map(|e| e.to_string()) else {
            return;
        };
        if let Some(list) = json["run"]["warnings"].as_array_mut() {
            list.insert(0, why.as_str().into());
        }
        json["run"]["ended_early"] = why.into();
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ended early: the run reached its memory limit of {} (records and their tables {}, flows and packets \
             {}); record less (record.interval, flows, links, events, decisions, gauges), or raise the limit \
             (--memory-limit, memory_limit)",
            shown(self.limit),
            shown(self.recorded),
            shown(self.other)
        )
    }
}

/// Resident memory of this process in bytes; `None` where the system does not say.
fn resident() -> Option<u64> {
    kibibytes(&read_file("/proc/self/status")?, "VmRSS:")
}

fn read_file(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The bytes of a line such as "VmRSS: 1234 kB".
fn kibibytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(key))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

/// Half of the memory that is still available to this process: of the machine, of its control group and of those above
/// it; `None` where the system does not report it.
pub fn usual_limit() -> Option<Bytes> {
    Some(Bytes::new(left(read_file)? / 2))
}

/// The file names of a version of control groups.
struct Names {
    root: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// In `memory.stat`: of the group and those below it.
    inactive: &'static str,
}

const VERSION_2: Names = Names {
    root: "/sys/fs/cgroup",
    limit: "memory.max",
    usage: "memory.current",
    inactive: "inactive_file",
};
const VERSION_1: Names = Names {
    root: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    inactive: "total_inactive_file",
};

/// The available memory, according to the system's files that `read` returns.
pub(crate) fn left(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let available = kibibytes(&read("/proc/meminfo")?, "MemAvailable:")?;
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let left = groups.lines().filter_map(|l| {
        // "0::/path" (version 2) or "4:memory:/path" (version 1).
        let mut parts = l.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let names = match controllers {
            "" => VERSION_2,
            _ if controllers.split(',').any(|c| c == "memory") => VERSION_1,
            _ => return None,
        };
        // Inside a container the path may be that of the host, and the root is the container's: a missing file means
        // no limit.
        let mut path = path.trim_end_matches('/');
        let mut least: Option<u64> = None;
        loop {
            if let Some(left) = left_in(&format!("{}{path}", names.root), &names, &read) {
                least = Some(least.map_or(left, |l| l.min(left)));
            }
            match path.rfind('/') {
                Some(end) => path = &path[..end],
                None => return least,
            }
        }
    });
    Some(left.fold(available, u64::min))
}

/// The available memory of one group; `None`: it has no limit, or does not exist.
fn left_in(group: &str, names: &Names, read: &impl Fn(&str) -> Option<String>) -> Option<u64> {
    let number = |file: &str| read(&format!("{group}/{file}"))?.trim().parse::<u64>().ok();
    let (limit, used) = (number(names.limit)?, number(names.usage)?);
    // Inactive page cache counts as used, and is freed before an allocation fails.
    let stat = read(&format!("{group}/memory.stat")).unwrap_or_default();
    let inactive = stat.lines().find_map(|l| {
        let (key, value) = l.split_once(' ')?;
        (key == names.inactive).then(|| value.trim().parse::<u64>().ok())?
    });
    let held = used.saturating_sub(inactive.unwrap_or(0));
    Some(limit.saturating_sub(held))
}
