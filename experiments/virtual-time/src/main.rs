//! Runs programs that speak UDP in virtual time, as they are: `virtual-time [OPTIONS] -- SERVER... -- CLIENT...`.
//!
//! Each program is traced (ptrace), and a seccomp filter stops it at the calls of the system that have to do with
//! time, chance or the network. Only one runs at any instant. When all wait, time passes to the next thing that
//! happens: a datagram that arrives, or the end of a wait. The same programs with the same options therefore do the
//! same, whatever else the machine does.

mod clock;
mod link;
mod trace;
mod wait;
mod world;

use std::ffi::CString;
use std::process::ExitCode;

use link::Link;
use world::World;

const USAGE: &str = "usage: virtual-time [--delay MS] [--rate MBIT] [--queue PACKETS] [--until SECONDS] \
                     [--seed N] [--log] \
                     -- SERVER ARGS... -- CLIENT ARGS...";

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(why) => {
            eprintln!("virtual-time: {why}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<u8, String> {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let mut parts = all.split(|a| a == "--");
    let options = parts.next().unwrap_or_default();
    let programs: Vec<Vec<CString>> = parts
        .map(|words| words.iter().map(|w| CString::new(w.as_str())).collect())
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    if programs.is_empty() || programs.iter().any(Vec::is_empty) {
        return Err(USAGE.to_owned());
    }
    let (mut delay, mut rate, mut queue) = (10.0, 10.0, 100.0);
    let (mut until, mut seed, mut log) = (60.0, 1.0, false);
    let mut words = options.iter();
    while let Some(word) = words.next() {
        let value = match word.as_str() {
            "--delay" => &mut delay,
            "--rate" => &mut rate,
            "--queue" => &mut queue,
            "--until" => &mut until,
            "--seed" => &mut seed,
            "--log" => {
                log = true;
                continue;
            }
            _ => return Err(format!("{word} is no option\n{USAGE}")),
        };
        let given = words.next().and_then(|w| w.parse::<f64>().ok());
        *value = given
            .filter(|n| n.is_finite() && *n >= 0.0)
            .ok_or_else(|| format!("{word} needs a number of 0 or more"))?;
    }
    if rate <= 0.0 {
        return Err("--rate must be more than 0".to_owned());
    }
    let link = Link::new((delay * 1e6) as u64, rate * 1e6, queue as usize);
    World::new(link, (until * 1e9) as u64, seed as u64, log).run(&programs)
}
