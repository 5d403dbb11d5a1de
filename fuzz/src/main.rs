//! Runs fuzz targets on stable Rust: `cargo run --release -p gargalo-fuzz`.
#![forbid(unsafe_code)]

use std::alloc::System;
use std::path::PathBuf;
use std::process::ExitCode;

use cap::Cap;
use gargalo_fuzz::{Runner, TARGETS, Target};

/// No target needs nearly this much memory: an allocation above it is a fault, and the process is aborted.
const MOST_MEMORY: usize = 1 << 30;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, MOST_MEMORY);

const USAGE: &str = "\
usage: gargalo-fuzz [TARGET...] [--inputs N] [--seed S]   kept inputs and N made ones; default: every target
       gargalo-fuzz replay TARGET FILE...                 these inputs
       gargalo-fuzz list                                  what targets there are";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match command(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn find(name: &str) -> Result<&'static Target, String> {
    gargalo_fuzz::target(name).ok_or_else(|| format!("there is no target \"{name}\"\n{USAGE}"))
}

fn command(args: &[String]) -> Result<(), String> {
    match args.first().map(String::as_str) {
        Some("list") => {
            for t in TARGETS {
                println!("{:<16}{}", t.name, t.about);
            }
            Ok(())
        }
        Some("replay") => {
            let [_, name, files @ ..] = args else {
                return Err(USAGE.to_owned());
            };
            let target = find(name)?;
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            Runner::new(target).replay(target, &files)?;
            println!("{}: {} inputs without a failure", target.name, files.len());
            Ok(())
        }
        _ => run(args),
    }
}

fn run(args: &[String]) -> Result<(), String> {
    let (mut targets, mut inputs, mut seed) = (Vec::new(), None, 1);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut number = || {
            let n = args.next().and_then(|n| n.parse::<u64>().ok());
            n.ok_or_else(|| format!("{arg} needs a number\n{USAGE}"))
        };
        match arg.as_str() {
            "--inputs" => inputs = Some(number()?),
            "--seed" => seed = number()?,
            "--help" | "-h" => {
                println!("{USAGE}");
                return Ok(());
            }
            name => targets.push(find(name)?),
        }
    }
    if targets.is_empty() {
        targets.extend(TARGETS);
    }
    for target in targets {
        let own = Runner::new(target);
        let runner = Runner {
            seed,
            inputs: inputs.unwrap_or(own.inputs),
            ..own
        };
        let report = runner.run(target)?;
        println!(
            "{:<16}{} kept and {} made inputs, {} kB; slowest {} ms; most memory so far {} MB",
            target.name,
            report.kept,
            report.made,
            report.bytes / 1000,
            report.slowest.as_millis(),
            ALLOCATOR.max_allocated() / 1_000_000
        );
    }
    Ok(())
}
