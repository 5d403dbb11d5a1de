//! One transfer between two hosts joined by several paths, and what is to be known of it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use gargalo_cc::{Params, Registered};
use gargalo_flow::{
    AddressChange, CaptureEnds, CaptureSpec, FlowResult, FlowSample, FlowSpec, LinkSpec, MptcpSpec,
    Node, TcpSpec, Topology, TransportSpec,
};
use gargalo_lab::multipath::{
    HostCounters, KernelMptcp, MultipathReport, MultipathSpec, SubflowReport,
};
use gargalo_lab::{LabOutcome, LabSpec, Stack};
use gargalo_link::Strip;
use gargalo_link::{Delay, LinkConfig, QueueConfig, QueueLimit, RateModel};
use gargalo_mptcp::path_manager;
use gargalo_units::{Bytes, Duration, Instant, Rate};
use gargalo_workload::{Bulk, Request, Workload};

/// Whose stack the two hosts have: `client` opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    pub client: Side,
    pub server: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Ours,
    Kernel,
}
use Side::{Kernel, Ours};

pub const OURS_TO_KERNEL: Who = Who {
    client: Ours,
    server: Kernel,
};
pub const KERNEL_TO_OURS: Who = Who {
    client: Kernel,
    server: Ours,
};
pub const OURS: Who = Who {
    client: Ours,
    server: Ours,
};
pub const KERNELS: Who = Who {
    client: Kernel,
    server: Kernel,
};

#[derive(Clone, Debug)]
pub struct Case {
    pub who: Who,
    /// Megabits a second and one-way delay in milliseconds of each path.
    pub paths: Vec<(u64, u64)>,
    pub bytes: u64,
    /// The server sends, asked by the client; else the client does.
    pub download: bool,
    /// Time between the first answer, a fiftieth of the bytes, and the next request.
    pub think: Duration,
    /// Plain TCP in place of Multipath TCP.
    pub plain: bool,
    /// With plain TCP: number of the path that it takes.
    pub path: u8,
    pub path_manager: &'static str,
    /// Paths that are backups, by number.
    pub backups: Vec<usize>,
    /// Addresses that come and go.
    pub changes: Vec<AddressChange>,
    pub kernels: BTreeMap<u32, KernelMptcp>,
    /// Paths on which options are taken out, by number: upwards and downwards.
    pub strips: BTreeMap<usize, [Strip; 2]>,
    /// Times in which nothing passes a path, by its number.
    pub outages: BTreeMap<usize, (Instant, Instant)>,
    pub receive_buffer: u64,
    pub seconds: u64,
    pub congestion: &'static str,
    pub scheduler: Option<&'static str>,
    pub checksum: bool,
    /// Data sequence numbers of 8 bytes.
    pub long: bool,
    pub settings: Vec<(String, String)>,
    /// Every byte is compared.
    pub verify: bool,
    /// Keep samples of the flow, that often.
    pub sample: Option<Duration>,
    /// Where the packets go.
    pub capture: Option<PathBuf>,
}

impl Case {
    pub fn new(who: Who, paths: &[(u64, u64)], bytes: u64) -> Self {
        Self {
            who,
            paths: paths.to_vec(),
            bytes,
            download: false,
            think: Duration::from_millis(100),
            plain: false,
            path: 0,
            path_manager: "single-mesh",
            backups: Vec::new(),
            changes: Vec::new(),
            kernels: BTreeMap::new(),
            strips: BTreeMap::new(),
            outages: BTreeMap::new(),
            receive_buffer: 64 << 20,
            seconds: 60,
            congestion: "cubic",
            scheduler: None,
            checksum: false,
            long: false,
            settings: Vec::new(),
            verify: true,
            sample: None,
            capture: None,
        }
    }

    pub fn spec(&self) -> LabSpec {
        let node = |name: &str| Node {
            name: name.to_owned(),
            is_host: true,
        };
        let link = |(n, (mbit, ms)): (usize, &(u64, u64))| {
            // A queue of a round trip, at least of 30 ms.
            let queue = Duration::from_millis((2 * ms).max(30));
            let config = LinkConfig {
                rate: RateModel::Constant(Rate::from_bps(mbit * 1_000_000)),
                delay: Delay::Constant(Duration::from_millis(*ms)),
                outages: self.outages.get(&n).copied().into_iter().collect(),
                queue: QueueConfig::DropTail(QueueLimit::Time(queue)),
                ..LinkConfig::default()
            };
            let [up, down] = self.strips.get(&n).copied().unwrap_or([Strip::None; 2]);
            LinkSpec {
                name: format!("path{n}"),
                a: 0,
                b: 1,
                up: LinkConfig {
                    strip_mptcp: up,
                    ..config.clone()
                },
                down: LinkConfig {
                    strip_mptcp: down,
                    ..config
                },
            }
        };
        let stack = |side| match side {
            Ours => Stack::Gargalo,
            Kernel => Stack::Kernel {
                congestion: None,
                settings: self.settings.clone(),
            },
        };
        let workload = if self.download {
            Workload::Request(Request {
                // A client that has asked for the last object closes its direction, and then the
                // kernel, on either side, opens no more subflows.
                think_time: self.think,
                ..Request::of([
                    Bytes::new(self.bytes / 50),
                    Bytes::new(self.bytes - self.bytes / 50),
                ])
            })
        } else {
            Workload::Bulk(Bulk::of(Bytes::new(self.bytes)))
        };
        let mut tcp = gargalo_tcp::Config::modern();
        tcp.receive_buffer = Bytes::new(self.receive_buffer);
        let manager = path_manager::Registered::new(self.path_manager, Params::new()).unwrap();
        let mut config = gargalo_mptcp::Config {
            path_manager: Arc::new(manager),
            options: gargalo_mptcp::Options {
                checksum: self.checksum,
                ..Default::default()
            },
            ..gargalo_mptcp::Config::default()
        };
        if self.long {
            config.options.data_numbers = gargalo_mptcp::DataNumbers::Long;
        }
        if let Some(name) = self.scheduler {
            let scheduler = gargalo_mptcp::scheduler::Registered::new(name, Params::new());
            config.scheduler = Arc::new(scheduler.unwrap());
        }
        let congestion = Arc::new(Registered::new(self.congestion, Params::new()).unwrap());
        let transport = if self.plain {
            TransportSpec::Tcp(TcpSpec {
                config: Arc::new(tcp),
                congestion,
                tls: None,
                misbehaviour: gargalo_flow::Misbehaviour::None,
            })
        } else {
            config.tcp = Arc::new(tcp);
            TransportSpec::Mptcp(Box::new(MptcpSpec {
                config: Arc::new(config),
                congestion,
                tls: None,
                links: None,
                backups: self.backups.clone(),
                gateways: Vec::new(),
                changes: self.changes.clone(),
            }))
        };
        let topology = Topology {
            nodes: vec![node("client"), node("server")],
            links: self.paths.iter().enumerate().map(link).collect(),
        };
        LabSpec {
            captures: self.capture.clone().map(|path| self.captures(path)),
            topology,
            stacks: vec![stack(self.who.client), stack(self.who.server)],
            flows: vec![FlowSpec {
                id: 1,
                label: "transfer".into(),
                stream: "1".into(),
                from: 0,
                to: 1,
                path: self.path,
                start: Instant::ZERO,
                stop: None,
                transport,
                workload: workload.into(),
                arrivals: None,
                group: None,
                rows: true,
            }],
            population: Default::default(),
            commands: Vec::new(),
            seed: 1,
            end: Instant::ZERO + Duration::from_secs(self.seconds),
            measure: None,
            verify: self.verify,
            interval: self.sample,
            sample_flows: self.sample.is_some(),
            sample_links: false,
            gauges: false,
            events: true,
            datagrams: false,
            tuning: Default::default(),
            devices: Default::default(),
            directory: std::env::temp_dir(),
            qlog: None,
            multipath: MultipathSpec {
                kernels: self.kernels.clone(),
            },
        }
    }

    fn captures(&self, path: PathBuf) -> CaptureSpec {
        CaptureSpec {
            path,
            links: (0..self.paths.len()).map(|n| format!("path{n}")).collect(),
            ends: CaptureEnds::Both,
            payload: true,
            comment: String::new(),
        }
    }

    /// Runs it; panics if the run itself fails.
    #[track_caller]
    pub fn run(&self) -> Done {
        let mut spec = self.spec();
        if let (None, Some(path)) = (&spec.captures, std::env::var_os("GARGALO_MPTCP_CAPTURE")) {
            spec.captures = Some(self.captures(path.into()));
        }
        let outcome = gargalo_lab::run(spec, &mut |_| ControlFlow::Continue(()));
        let done = Done {
            outcome: outcome.unwrap_or_else(|e| panic!("{e}")),
            bytes: self.bytes,
        };
        if std::env::var_os("GARGALO_MPTCP_SHOW").is_some() {
            done.show(self);
        }
        done
    }
}

/// What became of it.
#[derive(Debug)]
pub struct Done {
    pub outcome: LabOutcome,
    bytes: u64,
}

impl Done {
    pub fn flow(&self) -> &FlowResult {
        &self.outcome.outcome.flows[0]
    }

    pub fn samples(&self) -> &[FlowSample] {
        &self.outcome.outcome.samples.flows
    }

    /// What `side` (0: client) tells.
    #[track_caller]
    pub fn report(&self, side: usize) -> &MultipathReport {
        let all = &self.outcome.multipath;
        let own = all.iter().find(|r| r.side == side);
        own.unwrap_or_else(|| panic!("no report of side {side}: {all:?}"))
    }

    /// Counters of a host with the kernel's stack.
    #[track_caller]
    pub fn counters(&self, host: u32) -> &HostCounters {
        let all = &self.outcome.counters;
        let own = all.iter().find(|c| c.host == host);
        own.unwrap_or_else(|| panic!("no counters of host {host}"))
    }

    /// Megabits a second from the start to the last byte, or to the end of the run.
    pub fn goodput(&self) -> f64 {
        let f = self.flow();
        let time = f.completion.unwrap_or(f.end.saturating_since(f.start));
        f.delivered.get() as f64 * 8e-6 / time.as_secs_f64()
    }

    /// Everything arrived, and as it was sent.
    #[track_caller]
    pub fn is_whole(&self) {
        let f = self.flow();
        assert_eq!(f.failure, None, "{f:?}");
        assert_eq!(f.delivered.get(), self.bytes, "{f:?}");
        assert!(!f.corrupted && f.completion.is_some(), "{f:?}");
    }

    /// Addresses of `side` that carried data to the peer, with how much.
    pub fn carried(&self, side: usize) -> Vec<(IpAddr, u64)> {
        let all = self.report(side).subflows.iter();
        let sent = |s: &SubflowReport| s.result.counters.sent_bytes.get().unwrap();
        all.map(|s| (s.local.ip(), sent(s))).collect()
    }

    fn show(&self, case: &Case) {
        let f = self.flow();
        eprintln!(
            "{:?} {:?} download={} plain={} {} bytes: {:?} s, {:.2} Mbit/s, retransmitted {}, failure {:?}",
            case.who,
            case.paths,
            case.download,
            case.plain,
            f.delivered.get(),
            f.completion.map(Duration::as_secs_f64),
            f.completion
                .map_or(0.0, |t| self.bytes as f64 * 8e-6 / t.as_secs_f64()),
            f.counters.retransmitted_packets,
            f.failure,
        );
        for r in &self.outcome.multipath {
            eprintln!("  side {} fell_back={}", r.side, r.fell_back);
            for s in &r.subflows {
                eprintln!(
                    "    {} > {} sent {} received {} retransmitted {} srtt {:?}",
                    s.local,
                    s.remote,
                    s.result.counters.sent_bytes,
                    s.received_bytes,
                    s.result.counters.retransmitted_packets,
                    s.result.rtt.summary().map(|r| r.mean)
                );
            }
            if let Some(stats) = &r.stats {
                eprintln!("    {stats:?}");
            }
        }
        for c in &self.outcome.counters {
            let grown = c
                .counts
                .keys()
                .map(|n| (n, c.grew(n)))
                .filter(|(_, n)| *n > 0);
            eprintln!("  host {}: {:?}", c.host, grown.collect::<BTreeMap<_, _>>());
        }
        eprintln!("  {:?}", self.outcome.engine);
    }
}
