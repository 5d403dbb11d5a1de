//! What a caller gives to a run, and why a run fails.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use gargalo_cc::Params;
use gargalo_flow::{ControllerFactory, Progress, Registered, TcpSpec};
use gargalo_mptcp::Factory;
use gargalo_mptcp::path_manager::PathManager;
use gargalo_mptcp::scheduler::Scheduler;
use gargalo_quic::Implementation;
use gargalo_sim::BuildError;
use gargalo_units::{Bytes, Duration};
use gargalo_workload::tls::TlsVersion;

use crate::diagnostic::Diagnostics;
use crate::jitter;
use crate::memory::TooMuch;
use crate::resolved::{Flow, Scenario, Tcp};
use crate::streams::Streams;

/// A callback that receives the progress of a run and may stop it: results until then are kept, except while they are
/// being written.
pub type Watch = Box<dyn FnMut(&Progress) -> ControlFlow<()> + Send>;

/// Options of a run besides the scenario.
#[derive(Default)]
pub struct RunOptions {
    /// Called regularly; if it breaks, the run stops and keeps what was recorded.
    pub progress: Option<Watch>,
    /// Congestion controls in addition to the registry's, by name.
    pub controllers: BTreeMap<String, Arc<dyn ControllerFactory>>,
    /// Schedulers of Multipath TCP in addition to the registry's, by name.
    pub schedulers: BTreeMap<String, Arc<dyn Factory<dyn Scheduler>>>,
    /// Path managers of Multipath TCP in addition to the registry's, by name.
    pub path_managers: BTreeMap<String, Arc<dyn Factory<dyn PathManager>>>,
    /// QUIC stacks in addition to noq, by name.
    pub stacks: BTreeMap<String, Arc<dyn Implementation>>,
    /// Folder for captures.
    pub output: Option<PathBuf>,
    /// Memory limit of the run, records and their tables included; `None`: no limit.
    pub memory_limit: Option<Bytes>,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The world cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A scheduler or path manager is unknown.
    #[error("{0}")]
    Multipath(String),
    /// A congestion control is unknown.
    #[error("{0}")]
    Congestion(String),
    /// A QUIC stack is unknown.
    #[error("{0}")]
    Stack(String),
    /// The records would exceed the memory limit.
    #[error(transparent)]
    Memory(#[from] TooMuch),
    /// It was stopped while results were being written.
    #[error("stopped while results were being written; nothing was kept")]
    Stopped,
    /// Captures need a folder.
    #[error("{0} were asked for, but no output directory: add --output DIR")]
    NoOutput(&'static str),
    /// The world does not support something that the scenario requests.
    #[error(transparent)]
    Lacking(#[from] Diagnostics),
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] gargalo_lab::Error),
    /// The folder of the traces could not be created.
    #[error("cannot create {}: {}; choose another --output", path.display(), gargalo_units::reason(.reason))]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// What the system says.
        reason: std::io::Error,
    },
}

/// Congestion controls; flows of one kind share one factory.
pub(crate) struct Factories<'a> {
    pub(crate) options: &'a RunOptions,
    made: BTreeMap<String, Arc<dyn ControllerFactory>>,
    /// Names of random streams.
    pub(crate) streams: Streams,
    /// Start jitter of each flow, in their order.
    later: Vec<Duration>,
    /// The last TCP transport as resolved, whether its ends give notices, and what was made of it.
    last: Option<(Arc<Tcp>, bool, TcpSpec)>,
}

impl<'a> Factories<'a> {
    pub(crate) fn new(scenario: &Scenario, options: &'a RunOptions) -> Self {
        let streams = Streams::of(scenario);
        Self {
            options,
            made: BTreeMap::new(),
            later: jitter::later(scenario, &streams),
            streams,
            last: None,
        }
    }

    /// How much later a flow starts.
    pub(crate) fn later(&self, f: &Flow) -> Duration {
        self.later[f.id as usize]
    }

    /// The name of a flow's random streams.
    pub(crate) fn stream(&self, f: &Flow) -> Arc<str> {
        Arc::clone(&self.streams.names[f.id as usize])
    }

    /// A TCP transport; copies of a flow share theirs.
    pub(crate) fn tcp(&mut self, tcp: &Arc<Tcp>, notices: bool) -> Result<TcpSpec, RunError> {
        if let Some((resolved, gave, made)) = &self.last
            && Arc::ptr_eq(resolved, tcp)
            && *gave == notices
        {
            return Ok(made.clone());
        }
        let config = gargalo_tcp::Config {
            notices,
            ..tcp.config.clone()
        };
        let made = TcpSpec {
            config: config.into(),
            congestion: self.get(&tcp.congestion.name, &tcp.congestion.params)?,
            tls: TlsVersion::chosen(tcp.tls),
            misbehaviour: tcp.receiver,
        };
        self.last = Some((Arc::clone(tcp), notices, made.clone()));
        Ok(made)
    }

    pub(crate) fn get(
        &mut self,
        name: &str,
        params: &Params,
    ) -> Result<Arc<dyn ControllerFactory>, RunError> {
        let key = format!("{name} {params:?}");
        if let Some(known) = self.made.get(&key) {
            return Ok(Arc::clone(known));
        }
        let made = factory(name, params, self.options)?;
        self.made.insert(key, Arc::clone(&made));
        Ok(made)
    }
}

fn factory(
    congestion: &str,
    params: &Params,
    options: &RunOptions,
) -> Result<Arc<dyn ControllerFactory>, RunError> {
    if let Some(own) = options.controllers.get(congestion) {
        return Ok(Arc::clone(own));
    }
    let registered = Registered::new(congestion, params.clone()).map_err(RunError::Congestion)?;
    Ok(Arc::new(registered))
}
