use std::sync::Arc;

use gargalo_cc::ControllerFactory;
use gargalo_tcp::Config;
use gargalo_units::Duration;

use super::protocol::{self, Parameters};

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// When the test ends.
    pub end: End,
    /// Length of the omitted period at the start.
    pub omit: Duration,
    /// Streams in each direction.
    pub parallel: u32,
    /// The direction of the data.
    pub direction: Direction,
    /// Rate of each stream in bit/s; 0: unlimited.
    pub rate: u64,
    /// Block size in bytes.
    pub block: u32,
    /// `-M`: sent to the server; 0: the server's default. Ours is in the TCP configuration.
    pub mss: u32,
    /// `-w`: sent to the server; 0: the server's default. Ours is in the TCP configuration.
    pub window: u64,
    /// The server shall use this congestion control, too (`-C`).
    pub congestion: Option<String>,
    /// How results are reported.
    pub report: ReportOptions,
}

/// When a test ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// After a time, in whole seconds.
    Time(u64),
    /// After so many bytes, of all streams together.
    Bytes(u64),
    /// After so many blocks.
    Blocks(u64),
}

/// The direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The client sends.
    Upload,
    /// The server sends (`-R`).
    Reverse,
    /// Both sides send (`--bidir`).
    Both,
}

/// The role of an end: client or server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Server,
}

/// How results are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportOptions {
    /// Tables or JSON.
    pub format: Format,
    /// Time between two reports; zero: only at the end.
    pub interval: Duration,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Tables as text.
    Text,
    /// One object at the end (`-J`).
    Json,
    /// A JSON object per line, as events occur (`--json-stream`).
    JsonStream,
}

/// The configuration of the connections of a test.
#[derive(Clone, Debug)]
pub struct Transport {
    /// TCP options of every connection of the test.
    pub tcp: Arc<Config>,
    /// Congestion control of every connection of the test.
    pub congestion: Arc<dyn ControllerFactory>,
}

/// The environment of a program that has no clock of its own.
pub struct Environment {
    /// Unix time at instant zero of the host's clock, in seconds.
    pub epoch: f64,
    /// The machine, as in `uname`.
    pub system: String,
    /// Processor time used so far.
    pub cpu: Box<dyn Fn() -> Cpu + Send>,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("epoch", &self.epoch)
            .field("system", &self.system)
            .finish_non_exhaustive()
    }
}

/// Processor time in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cpu {
    /// In user mode.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            end: End::Time(10),
            omit: Duration::ZERO,
            parallel: 1,
            direction: Direction::Upload,
            rate: 0,
            block: protocol::BLOCK as u32,
            mss: 0,
            window: 0,
            congestion: None,
            report: ReportOptions::default(),
        }
    }
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self {
            format: Format::Text,
            interval: Duration::from_secs(1),
        }
    }
}

impl Settings {
    /// The parameters that are sent to the server.
    pub fn parameters(&self) -> Parameters {
        let (time, num, blockcount) = match self.end {
            End::Time(s) => (s, 0, 0),
            End::Bytes(n) => (0, n, 0),
            End::Blocks(n) => (0, 0, n),
        };
        Parameters {
            tcp: true,
            omit: self.omit.as_millis() / 1000,
            time,
            num,
            blockcount,
            mss: u64::from(self.mss),
            parallel: u64::from(self.parallel),
            reverse: self.direction == Direction::Reverse,
            bidirectional: self.direction == Direction::Both,
            window: self.window,
            len: u64::from(self.block),
            bandwidth: self.rate,
            pacing_timer: 1000,
            congestion: self.congestion.clone(),
            client_version: version().to_owned(),
            ..Parameters::default()
        }
    }

    /// The settings that a client requested.
    ///
    /// # Errors
    /// When they exceed iperf3's limits or request something that is not supported.
    pub fn of(p: &Parameters, report: ReportOptions) -> Result<Self, String> {
        let limit = |name: &str, value: u64, most: u64| {
            if value <= most {
                Ok(value)
            } else {
                Err(format!(
                    "the client asks for {name} = {value}, more than {most}"
                ))
            }
        };
        if p.udp || p.sctp || !p.tcp {
            return Err("the client asks for another protocol than TCP".to_owned());
        }
        let time = limit("time", p.time, protocol::LONGEST_TIME)?;
        let omit = limit("omit", p.omit, protocol::LONGEST_OMIT)?;
        let streams = u64::from(protocol::MOST_STREAMS);
        let parallel = limit("parallel", p.parallel.max(1), streams)?;
        let block = limit("len", p.len, protocol::LARGEST_BLOCK)?;
        let mss = limit("MSS", p.mss, 32_767)?;
        let window = limit("window", p.window, 512 << 20)?;
        Ok(Self {
            end: match (p.num, p.blockcount) {
                (0, 0) => End::Time(time),
                (0, blocks) => End::Blocks(blocks),
                (bytes, _) => End::Bytes(bytes),
            },
            omit: Duration::from_secs(omit),
            parallel: parallel as u32,
            direction: match (p.bidirectional, p.reverse) {
                (true, _) => Direction::Both,
                (false, true) => Direction::Reverse,
                (false, false) => Direction::Upload,
            },
            rate: p.bandwidth,
            block: if block == 0 { protocol::BLOCK } else { block } as u32,
            mss: mss as u32,
            window,
            congestion: p.congestion.clone(),
            report,
        })
    }

    /// Number of bytes after which the test ends, if it ends by bytes.
    pub fn byte_limit(&self) -> Option<u64> {
        match self.end {
            End::Time(_) => None,
            End::Bytes(n) => Some(n),
            End::Blocks(n) => Some(n.saturating_mul(u64::from(self.block))),
        }
    }
}

/// The name and version in reports.
pub const fn version() -> &'static str {
    concat!("gargalo ", env!("CARGO_PKG_VERSION"))
}

impl Direction {
    /// Whether this end sends.
    pub(super) fn sends(self, role: Role) -> bool {
        match self {
            Self::Both => true,
            Self::Upload => role == Role::Client,
            Self::Reverse => role == Role::Server,
        }
    }

    /// Whether this end receives.
    pub(super) fn receives(self, role: Role) -> bool {
        self == Self::Both || !self.sends(role)
    }
}
