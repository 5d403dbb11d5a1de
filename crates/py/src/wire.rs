//! `gargalo iperf3` and `gargalo connect`: programs on a user-space host, with the interpreter free
//! while they run.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gargalo_cc::{ControllerFactory, ParamValue, Params, Registered};
use gargalo_host::SocketOptions;
use gargalo_native::congestion::NativeFactory;
use gargalo_native::{Contents, Faults};
use gargalo_programs::application::{Application, Outcome, Output};
use gargalo_programs::connect::{Connect, Habits, Opening};
use gargalo_programs::iperf3::{
    Client, Cpu, Direction, End, Environment, Format, ReportOptions, Server, Settings, Transport,
};
use gargalo_programs::wire::{Nat, Outlet, Watch, Wire, WireOptions};
use gargalo_tcp::{Config, Pacing, PacingFactors};
use gargalo_units::{Bytes, Duration, read_file, reason};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::errors::{Diagnostic, RunError, scenario_error};

/// What both commands know; filled in by `cli/wire.py`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Common {
    congestion: String,
    params: Vec<(String, String)>,
    /// Shared libraries with more congestion controls.
    plugins: Vec<PathBuf>,
    /// `None`: as the congestion control wants.
    pacing: Option<bool>,
    mtu: u32,
    offload: bool,
    nat: bool,
    capture: Option<PathBuf>,
}

/// Options of `gargalo iperf3`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Iperf3 {
    common: Common,
    /// The server's address and what the user called it; `None`: be a server.
    server: Option<(IpAddr, String)>,
    port: u16,
    /// Seconds between reports.
    interval: f64,
    format: String,
    one_off: bool,
    /// Families to serve.
    v4: bool,
    v6: bool,
    time: Option<u64>,
    bytes: Option<u64>,
    blocks: Option<u64>,
    omit: u64,
    parallel: u32,
    reverse: bool,
    bidir: bool,
    rate: u64,
    block: u32,
    mss: u32,
    window: u64,
    /// The server shall use the congestion control too.
    tell_congestion: bool,
}

/// Options of `gargalo connect`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConnectTo {
    common: Common,
    remote: Option<IpAddr>,
    port: u16,
    window: u64,
    send: Option<PathBuf>,
    receive: Option<PathBuf>,
    progress: bool,
    keep_open: bool,
}

fn bad(e: impl std::fmt::Display) -> PyErr {
    scenario_error(e.to_string(), vec![Diagnostic::says(e)])
}

fn failed(e: impl std::fmt::Display) -> PyErr {
    RunError::new_err(e.to_string())
}

impl Common {
    fn transport(&self, mss: u32, window: u64, faults: &Arc<Faults>) -> PyResult<Transport> {
        let params: Params = self
            .params
            .iter()
            .map(|(name, text)| (name.clone(), value(text)))
            .collect();
        let congestion = self.controllers(params, faults)?;
        let mut tcp = Config::modern();
        // The host takes off what IPv6 needs more.
        tcp.fill_packets(self.mtu);
        if (1..u32::from(tcp.announced_mss())).contains(&mss) {
            tcp.announce(u16::try_from(mss).unwrap_or(u16::MAX));
        }
        // Linux's limits of automatic tuning.
        tcp.send_buffer = Bytes::new(if window > 0 { window } else { 4 << 20 });
        tcp.receive_buffer = Bytes::new(if window > 0 { window } else { 6 << 20 });
        tcp.pacing = match self.pacing {
            None => tcp.pacing,
            Some(false) => Pacing::Off,
            Some(true) => Pacing::Window(PacingFactors::default()),
        };
        let transport = Transport {
            tcp: Arc::new(tcp),
            congestion,
        };
        check(&transport)?;
        Ok(transport)
    }

    /// What makes the controllers: of a plug-in if one has the name.
    fn controllers(
        &self,
        params: Params,
        faults: &Arc<Faults>,
    ) -> PyResult<Arc<dyn ControllerFactory>> {
        for file in &self.plugins {
            let name = file.display().to_string();
            let library = read_file(file).map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => bad(format!("--plugin {name}: no such file")),
                _ => bad(format!("--plugin {name}: cannot be read: {}", reason(&e))),
            })?;
            let contents =
                Contents::load(&name, &library).map_err(|e| bad(format!("--plugin {e}")))?;
            let Some(plugin) = contents.congestion else {
                return Err(bad(format!(
                    "--plugin {name}: has a QUIC stack and no congestion control; this command runs over TCP"
                )));
            };
            let mut found = plugin.algorithms().iter();
            if let Some(algorithm) = found.find(|a| a.name() == self.congestion) {
                let faults = Arc::clone(faults);
                let factory = NativeFactory::new(algorithm, &params, faults).map_err(bad)?;
                return Ok(Arc::new(factory));
            }
        }
        let registered = Registered::new(&self.congestion, params).map_err(bad)?;
        Ok(Arc::new(registered))
    }

    fn open(&self) -> PyResult<Wire> {
        let options = WireOptions {
            mtu: self.mtu,
            // A capture shall show whole datagrams with their checksums.
            offload: self.offload && self.capture.is_none(),
            seed: seed(),
        };
        let mut wire = Wire::open(options).map_err(failed)?;
        if let Some(path) = &self.capture {
            wire.capture(path).map_err(failed)?;
        }
        Ok(wire)
    }
}

/// Parameters are refused before anything is made.
fn check(transport: &Transport) -> PyResult<()> {
    use rand::SeedableRng as _;
    let mss = Bytes::new(u64::from(transport.tcp.mss));
    let init = gargalo_cc::Init {
        now: gargalo_units::Instant::ZERO,
        mss,
        initial_window: Bytes::new(10 * mss.get()),
        rng: rand_pcg::Pcg64::seed_from_u64(0),
    };
    transport.congestion.build(init).map(drop).map_err(bad)
}

fn value(text: &str) -> ParamValue {
    match text {
        "true" => true.into(),
        "false" => false.into(),
        _ => text
            .parse::<f64>()
            .map_or_else(|_| text.into(), ParamValue::from),
    }
}

/// Ports, sequence numbers and addresses of a real network must not be guessed.
fn seed() -> u64 {
    let mut bytes = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut bytes));
    match read {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => epoch().to_bits() ^ u64::from(std::process::id()),
    }
}

fn epoch() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |d| d.as_secs_f64())
}

fn environment() -> Environment {
    let (system, cpu) = gargalo_programs::wire::system();
    Environment {
        epoch: epoch(),
        system,
        cpu: Box::new(move || {
            let (user, system) = cpu();
            Cpu { user, system }
        }),
    }
}

/// Runs iperf3's client or server; `options` is the JSON of [`Iperf3`], `write(text, is_error)` takes
/// what is to be printed. Gives the sentence that says what went wrong, if something did.
#[pyfunction]
pub fn wire_iperf3(py: Python<'_>, options: &str, write: Py<PyAny>) -> PyResult<Option<String>> {
    let o: Iperf3 = serde_json::from_str(options).map_err(bad)?;
    let faults = Faults::new();
    faults.end_process_if_stuck();
    let transport = o.common.transport(o.mss, o.window, &faults)?;
    let report = ReportOptions {
        format: match o.format.as_str() {
            "json" => Format::Json,
            "json-stream" => Format::JsonStream,
            _ => Format::Text,
        },
        interval: Duration::from_secs_f64(o.interval),
    };
    let mut wire = o.common.open()?;
    let mut nat = None;
    let mut app: Box<dyn Application + Send> = match &o.server {
        Some((address, name)) => {
            let remote = SocketAddr::new(*address, o.port);
            let (remote, held) = reach(py, &wire, remote, o.common.nat, &write)?;
            nat = held;
            Box::new(Client::new(
                remote,
                name,
                o.settings(report),
                &transport,
                environment(),
                seed(),
            ))
        }
        None => {
            let listen = o.families();
            announce(py, &wire, &listen, &write)?;
            let server = Server::new(listen, transport, report, o.one_off, environment(), seed());
            Box::new(server)
        }
    };
    let done = drive(py, &mut wire, app.as_mut(), &write, None, &faults);
    drop(nat);
    done
}

impl Iperf3 {
    fn settings(&self, report: ReportOptions) -> Settings {
        Settings {
            end: match (self.bytes, self.blocks) {
                (Some(n), _) => End::Bytes(n),
                (None, Some(n)) => End::Blocks(n),
                (None, None) => End::Time(self.time.unwrap_or(10)),
            },
            omit: Duration::from_secs(self.omit),
            parallel: self.parallel,
            direction: match (self.bidir, self.reverse) {
                (true, _) => Direction::Both,
                (false, true) => Direction::Reverse,
                (false, false) => Direction::Upload,
            },
            rate: self.rate,
            block: self.block,
            mss: self.mss,
            window: self.window,
            congestion: self.tell_congestion.then(|| self.common.congestion.clone()),
            report,
        }
    }

    fn families(&self) -> Vec<SocketAddr> {
        families(self.v4, self.v6, self.port)
    }
}

fn families(v4: bool, v6: bool, port: u16) -> Vec<SocketAddr> {
    let mut all = Vec::new();
    if v4 {
        all.push(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port));
    }
    if v6 {
        all.push(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port));
    }
    all
}

/// Opens or awaits one TCP connection; `options` is the JSON of [`ConnectTo`].
#[pyfunction]
pub fn wire_connect(py: Python<'_>, options: &str, write: Py<PyAny>) -> PyResult<Option<String>> {
    let o: ConnectTo = serde_json::from_str(options).map_err(bad)?;
    let faults = Faults::new();
    faults.end_process_if_stuck();
    let transport = o.common.transport(0, o.window, &faults)?;
    let file = |path: &PathBuf, e: io::Error| bad(format!("{}: {}", path.display(), reason(&e)));
    let input: Option<Box<dyn Read + Send>> = match &o.send {
        Some(path) => Some(Box::new(File::open(path).map_err(|e| file(path, e))?)),
        None => None,
    };
    let output: Option<Box<dyn Write + Send>> = match &o.receive {
        Some(path) => Some(Box::new(File::create(path).map_err(|e| file(path, e))?)),
        None => None,
    };
    let habits = Habits {
        waits_for_input: input.is_some() || !io::stdin().is_terminal(),
        closes_at_end: !o.keep_open,
        tells_progress: o.progress,
    };
    let mut wire = o.common.open()?;
    let mut nat = None;
    let opening = match o.remote {
        Some(address) => {
            let remote = SocketAddr::new(address, o.port);
            let (remote, held) = reach(py, &wire, remote, o.common.nat, &write)?;
            nat = held;
            Opening::To(remote)
        }
        None => {
            let listen = families(true, true, o.port);
            announce(py, &wire, &listen, &write)?;
            Opening::From(listen)
        }
    };
    let options = SocketOptions {
        tcp: transport.tcp,
        congestion: transport.congestion,
        mptcp: None,
        fast_open: false,
        dscp: 0,
    };
    let mut app = Connect::new(opening, options, habits);
    let done = drive(
        py,
        &mut wire,
        &mut app,
        &write,
        Some((input, output)),
        &faults,
    );
    drop(nat);
    done
}

fn reach(
    py: Python<'_>,
    wire: &Wire,
    remote: SocketAddr,
    nat: bool,
    write: &Py<PyAny>,
) -> PyResult<(SocketAddr, Option<Nat>)> {
    let mut remarks = Vec::new();
    let reached = wire.reach(remote, nat, &mut remarks).map_err(failed)?;
    for remark in remarks {
        say(py, write, Output::Err(remark + "\n"))?;
    }
    Ok(reached)
}

/// Where a server is found: its addresses are new ones.
fn announce(py: Python<'_>, wire: &Wire, listen: &[SocketAddr], write: &Py<PyAny>) -> PyResult<()> {
    let place = wire.place();
    let ours = listen.iter().map(|a| place.ours(a.ip()).to_string());
    let ours: Vec<_> = ours.collect();
    let port = listen.first().map_or(0, SocketAddr::port);
    let line = format!("listening on {} port {port}\n", ours.join(" and "));
    say(py, write, Output::Err(line))
}

fn say(py: Python<'_>, write: &Py<PyAny>, text: Output) -> PyResult<()> {
    let (text, is_error) = match text {
        Output::Out(text) => (text, false),
        Output::Err(text) => (text, true),
    };
    write.bind(py).call1((text, is_error)).map(drop)
}

type Files = (Option<Box<dyn Read + Send>>, Option<Box<dyn Write + Send>>);

/// Runs a program to its end, with the interpreter free.
fn drive(
    py: Python<'_>,
    wire: &mut Wire,
    app: &mut (dyn Application + Send),
    write: &Py<PyAny>,
    files: Option<Files>,
    faults: &Faults,
) -> PyResult<Option<String>> {
    let mut host = wire.host().map_err(failed)?;
    let mut raised: Option<PyErr> = None;
    let mut interrupt: Option<PyErr> = None;
    let has_data = files.is_some();
    let (input, output) = files.unwrap_or_default();
    let outcome = py.detach(|| {
        let mut print = |text| {
            Python::attach(|py| say(py, write, text)).map_err(|e| {
                raised = Some(e);
                gargalo_programs::Error::Unsupported("the output cannot be written".to_owned())
            })
        };
        let mut watch = || match Python::attach(|py| py.check_signals()) {
            Ok(()) if faults.raised() => Watch::Stop,
            Ok(()) => Watch::GoOn,
            Err(e) => {
                interrupt = Some(e);
                Watch::Interrupt
            }
        };
        wire.run(
            &mut host,
            app,
            Outlet {
                print: &mut print,
                watch: &mut watch,
                input,
                output,
                has_data,
            },
        )
    });
    if let Some(e) = raised {
        return Err(e);
    }
    if let Some(fault) = faults.first() {
        return Err(failed(fault));
    }
    match (interrupt, outcome) {
        (Some(e), _) if e.is_instance_of::<PyKeyboardInterrupt>(py) => Err(e),
        (Some(e), _) => Err(e),
        (None, Ok(Outcome::Done)) => Ok(None),
        (None, Ok(Outcome::Failed(why))) => Ok(Some(why)),
        (None, Err(e)) => Err(failed(e)),
    }
}
