//! Programs that run on hosts with the kernel's stack.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use gargalo_units::{Duration, Instant};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::spec::CommandSpec;
use crate::{Error, Result};
use gargalo_device::NetNs;

/// The result of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandResult {
    /// Index of the host.
    pub host: u32,
    /// The command line.
    pub run: String,
    /// When it started; `None`: the run ended before.
    pub start: Option<Instant>,
    /// When it ended by itself.
    pub end: Option<Instant>,
    /// Its exit code; 128 plus the number of the signal if a signal ended it; `None`: it was still running.
    pub exit_code: Option<i32>,
    /// The file of its standard output.
    pub stdout: PathBuf,
    /// The file of its standard error.
    pub stderr: PathBuf,
}

/// How long a program may take to end after the request.
const GRACE: Duration = Duration::from_millis(500);

/// All programs of a run.
#[derive(Debug)]
pub(crate) struct Commands {
    all: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    spec: CommandSpec,
    host: Arc<NetNs>,
    environment: Vec<(String, String)>,
    child: Option<Child>,
    result: CommandResult,
}

impl Commands {
    /// Creates the programs, none of which runs yet; their output goes to files in `directory`.
    pub(crate) fn new(
        specs: Vec<(CommandSpec, Arc<NetNs>)>,
        environment: &[(String, String)],
        directory: &std::path::Path,
    ) -> Result<Self> {
        if !specs.is_empty() {
            std::fs::create_dir_all(directory).map_err(|reason| Error::file(directory, reason))?;
        }
        let all = specs.into_iter().enumerate().map(|(i, (spec, host))| {
            let file = |kind| directory.join(format!("command-{i}.{kind}"));
            let result = CommandResult {
                host: spec.host,
                run: spec.run.clone(),
                start: None,
                end: None,
                exit_code: None,
                stdout: file("out"),
                stderr: file("err"),
            };
            Running {
                spec,
                host,
                environment: environment.to_vec(),
                child: None,
                result,
            }
        });
        Ok(Self { all: all.collect() })
    }

    /// Starts the programs that are due and records those that have ended.
    pub(crate) fn advance(&mut self, now: Instant) -> Result<()> {
        for c in &mut self.all {
            if c.result.start.is_none() && now >= c.spec.start {
                c.child = Some(c.spawn()?);
                c.result.start = Some(now);
            }
            c.reap(now);
        }
        Ok(())
    }

    /// Whether no foreground program is running or still to be started.
    pub(crate) fn are_done(&self) -> bool {
        self.all
            .iter()
            .all(|c| c.spec.background || c.result.exit_code.is_some())
    }

    /// Whether there is a program for which the run waits.
    pub(crate) fn any_in_foreground(&self) -> bool {
        self.all.iter().any(|c| !c.spec.background)
    }

    /// Ends the programs that are running, first with SIGTERM.
    pub(crate) fn finish(&mut self) {
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            for child in self.all.iter().filter_map(|c| c.child.as_ref()) {
                // Each leads its own process group.
                let _ = kill(Pid::from_raw(-(child.id() as i32)), signal);
            }
            let patience = std::time::Duration::from_nanos(GRACE.as_nanos());
            let start = std::time::Instant::now();
            while start.elapsed() < patience {
                for c in &mut self.all {
                    if let Some(child) = &mut c.child
                        && !matches!(child.try_wait(), Ok(None))
                    {
                        c.child = None;
                    }
                }
                if self.all.iter().all(|c| c.child.is_none()) {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    }

    /// Returns the results of the programs.
    pub(crate) fn into_results(self) -> Vec<CommandResult> {
        self.all.into_iter().map(|c| c.result).collect()
    }
}

impl Running {
    fn spawn(&self) -> Result<Child> {
        use std::os::unix::process::CommandExt;
        let create =
            |path: &PathBuf| File::create(path).map_err(|reason| Error::file(path, reason));
        let (out, err) = (create(&self.result.stdout)?, create(&self.result.stderr)?);
        self.host.run(|| {
            Command::new("/bin/sh")
                .arg("-c")
                .arg(&self.spec.run)
                .envs(self.environment.iter().map(|(k, v)| (k, v)))
                .stdin(Stdio::null())
                .stdout(out)
                .stderr(err)
                .process_group(0)
                .spawn()
                .map_err(|e| Error::system("starting /bin/sh", e))
        })
    }

    fn reap(&mut self, now: Instant) {
        use std::os::unix::process::ExitStatusExt;
        let Some(child) = &mut self.child else { return };
        let status = match child.try_wait() {
            Ok(None) => return,
            Ok(Some(status)) => status.code().or(status.signal().map(|s| 128 + s)),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return,
            Err(_) => None,
        };
        self.result.exit_code = Some(status.unwrap_or(-1));
        self.result.end = Some(now);
        self.child = None;
    }
}
