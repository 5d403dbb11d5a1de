//! From the text of a script to a verdict.

use gargalo_units::Duration;

use crate::ast::{Action, Choice, Command, Only, Script};
use crate::fault::Fault;
use crate::ours::Ours;
use crate::reader::read;
use crate::run::{Verdict, check, run};
use crate::stack::{Setup, StackError};

/// Tolerance of packetdrill; virtual time needs it for what scripts round.
const TOLERANCE: Duration = Duration::from_millis(4);

/// What the caller of a script chooses.
#[derive(Clone, Debug)]
pub struct Choices {
    /// The stack.
    pub stack: Only,
    /// Tolerance of the kernel's real time; a script's own counts if it is longer.
    pub tolerance: Duration,
    /// Options of our stack, in addition to the script's.
    pub gargalo: Vec<(String, String)>,
}

/// Reads a script and runs it.
pub fn run_text(text: &str, choices: &Choices) -> Verdict {
    match prepare(text, choices) {
        Ok((script, setup)) => start(&script, &setup, choices.stack),
        Err(fault) => Verdict::Unsupported(fault),
    }
}

fn prepare(text: &str, choices: &Choices) -> Result<(Script, Setup), Fault> {
    let script = read(text)?;
    let setup = setup(&script, choices)?;
    check(&script, &setup)?;
    Ok((script, setup))
}

fn start(script: &Script, setup: &Setup, stack: Only) -> Verdict {
    let ended = match stack {
        Only::Ours => Ours::new(setup).map(|mut s| run(script, setup, stack, &mut s)),
        #[cfg(target_os = "linux")]
        Only::Kernel => {
            crate::kernel::Kernel::with(setup, |kernel| run(script, setup, stack, kernel))
        }
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
        congestion: "reno".to_owned(),
        gargalo: Vec::new(),
        mptcp: Vec::new(),
        manages: script.events.iter().any(|e| {
            let Action::Commands(list) = &e.action else {
                return false;
            };
            list.iter().any(|c| matches!(c, Command::Manage(_)))
        }),
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
