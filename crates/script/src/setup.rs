//! From the text of a script to a verdict.

use std::net::IpAddr;
use std::path::PathBuf;

use gargalo_units::Duration;
use serde::Serialize;

use crate::ast::{Action, At, Choice, Command, Event, Only, Script, Time};
use crate::fault::Fault;
use crate::files;
use crate::ours::Ours;
use crate::reader::read;
use crate::run::{Verdict, check, run};
use crate::stack::{Setup, StackError};

/// Tolerance of packetdrill; virtual time needs it for what scripts round.
const TOLERANCE: Duration = Duration::from_millis(4);

/// What the caller of a script chooses.
#[derive(Clone, Debug)]
pub struct Choices {
    /// The stack that runs the script.
    pub stack: Only,
    /// Tolerance of the kernel's real time; a script's own counts if it is longer.
    pub tolerance: Duration,
    /// Options of our stack, in addition to the script's.
    pub gargalo: Vec<(String, String)>,
    /// A shell file whose settings each script begins with: its path, and its text.
    pub init: Option<(PathBuf, String)>,
    /// Words of scripts, and what stands for them.
    pub defines: Vec<(String, String)>,
    /// A packet of the stack that no event expects is a fault also if it is the last.
    pub strict_end: bool,
}

impl Choices {
    /// Scripts as they are, on this stack.
    pub fn new(stack: Only) -> Self {
        Self {
            stack,
            tolerance: Duration::from_millis(20),
            gargalo: Vec::new(),
            init: None,
            defines: Vec::new(),
            strict_end: false,
        }
    }
}

/// A script as it is found.
#[derive(Clone, Debug)]
pub struct Source {
    /// The script as written; [`Choices::defines`] are replaced when it is run.
    pub text: String,
    /// The directory that paths in it count from.
    pub directory: Option<PathBuf>,
}

/// The outcome of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether it was read, and everything in it is known; what the stack does not support is found only when it runs.
    pub read: bool,
    /// How it ended.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Commands that were not run, and settings that the stack does not have, of shell files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Reads a script and runs it.
pub fn run_text(text: &str, choices: &Choices) -> Verdict {
    let source = Source {
        text: text.to_owned(),
        directory: None,
    };
    run_source(&source, choices).verdict
}

/// Reads a script and runs it; files that it names are read.
pub fn run_source(source: &Source, choices: &Choices) -> Report {
    let mut notes = Vec::new();
    let prepared = prepare(source, choices, &mut notes);
    let read = prepared.is_ok();
    let verdict = match prepared {
        Ok((script, setup)) => start(&script, &setup, choices.stack, &mut notes),
        Err(fault) => Verdict::Unsupported(fault),
    };
    Report {
        read,
        verdict,
        notes,
    }
}

fn prepare(
    source: &Source,
    choices: &Choices,
    notes: &mut Vec<String>,
) -> Result<(Script, Setup), Fault> {
    let mut script = read(&defined(&source.text, &choices.defines))?;
    let init = choices.init.as_ref();
    files::replace(
        &mut script,
        source.directory.as_deref(),
        init.is_some(),
        notes,
    )?;
    if let Some((path, text)) = init {
        let event = Event {
            at: At { line: 1, column: 1 },
            only: None,
            time: Time::Relative(0),
            action: Action::Commands(files::settings(path, text, 0, notes)?),
        };
        script.events.insert(0, event);
    }
    let setup = setup(&script, choices)?;
    check(&script, &setup)?;
    Ok((script, setup))
}

/// A text with words replaced.
fn defined(text: &str, defines: &[(String, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let n = match rest.find(|x| is_word(x) != is_word(c)) {
            Some(n) => n,
            None => rest.len(),
        };
        let (word, after) = rest.split_at_checked(n).unwrap_or((rest, ""));
        let found = defines.iter().find(|(name, _)| name == word);
        out.push_str(found.map_or(word, |(_, value)| value));
        rest = after;
    }
    out
}

fn start(script: &Script, setup: &Setup, stack: Only, notes: &mut Vec<String>) -> Verdict {
    let ended = match stack {
        Only::Ours => Ours::new(setup).map(|mut s| run(script, setup, stack, &mut s, notes)),
        #[cfg(target_os = "linux")]
        Only::Kernel => crate::kernel::Kernel::with(setup, |k| run(script, setup, stack, k, notes)),
        #[cfg(not(target_os = "linux"))]
        Only::Kernel => Err(StackError::System(
            "the kernel's stack needs Linux".to_owned(),
        )),
    };
    match ended {
        Ok(verdict) => verdict,
        Err(StackError::Unsupported(message)) => {
            let at = script.options.first().map(|o| o.at).unwrap_or_default();
            Verdict::Unsupported(Fault::new(at, message))
        }
        Err(StackError::System(message)) => Verdict::Broken { message },
    }
}

fn setup(script: &Script, choices: &Choices) -> Result<Setup, Fault> {
    let mut setup = Setup {
        v6: false,
        tolerance: TOLERANCE,
        tick: None,
        mtu: 1500,
        bind_port: None,
        connect_port: 8080,
        local_ip: None,
        remote_ip: None,
        congestion: "reno".to_owned(),
        gargalo: Vec::new(),
        mptcp: Vec::new(),
        manages: script.events.iter().any(|e| {
            let Action::Commands(list) = &e.action else {
                return false;
            };
            list.iter().any(|c| matches!(c, Command::Manage(_)))
        }),
        strict_segments: false,
        strict_end: choices.strict_end,
    };
    if choices.stack == Only::Kernel {
        setup.tolerance = choices.tolerance;
    }
    for option in &script.options {
        apply(option, &mut setup)?;
    }
    setup.gargalo.extend(choices.gargalo.iter().cloned());
    Ok(setup)
}

fn apply(option: &Choice, setup: &mut Setup) -> Result<(), Fault> {
    let value = option.value.as_str();
    let wrong = |help: &str| {
        let message = format!("--{}={value} is not valid", option.name);
        Err(Fault::new(option.at, message).help(help))
    };
    match option.name.as_str() {
        "ip_version" => match value {
            "ipv4" => setup.v6 = false,
            "ipv6" => setup.v6 = true,
            _ => return wrong("write ipv4 or ipv6"),
        },
        "tolerance_usecs" => match value.parse() {
            Ok(n) if n <= 10_000_000 => {
                setup.tolerance = setup.tolerance.max(Duration::from_micros(n));
            }
            _ => return wrong("write microseconds, at most 10000000"),
        },
        "tcp_ts_tick_usecs" => match value.parse() {
            Ok(0) => setup.tick = None,
            Ok(n) if n <= 1_000_000 => setup.tick = Some(Duration::from_micros(n)),
            _ => return wrong("write microseconds, at most 1000000; 0: values are not compared"),
        },
        "mtu" => match value.parse() {
            Ok(n) if (576..=65_535).contains(&n) => setup.mtu = n,
            _ => return wrong("write 576 to 65535 bytes"),
        },
        "bind_port" | "connect_port" => match value.parse() {
            Ok(port) if port > 0 => {
                if option.name == "bind_port" {
                    setup.bind_port = Some(port);
                } else {
                    setup.connect_port = port;
                }
            }
            _ => return wrong("write a port, 1 to 65535"),
        },
        "local_ip" | "remote_ip" => match value.parse::<IpAddr>() {
            Ok(ip) if !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback() => {
                if option.name == "local_ip" {
                    setup.local_ip = Some(ip);
                } else {
                    setup.remote_ip = Some(ip);
                }
            }
            _ => return wrong("write an address such as 192.0.2.1"),
        },
        "strict_segments" => setup.strict_segments = true,
        // Scripts say what the other end sends, and any value of a timestamp may be echoed.
        "mss" | "tcp_ts_ecr_scaled" => {}
        "congestion" => value.clone_into(&mut setup.congestion),
        name => {
            for pair in value.split_whitespace() {
                let Some((key, value)) = pair.split_once('=') else {
                    return wrong("write KEY=VALUE with spaces between, such as profile=modern");
                };
                if key == "congestion" {
                    return wrong("write --congestion=NAME, which is for both stacks");
                }
                let list = match name {
                    "mptcp" => &mut setup.mptcp,
                    _ => &mut setup.gargalo,
                };
                list.push((key.to_owned(), value.to_owned()));
            }
        }
    }
    Ok(())
}
