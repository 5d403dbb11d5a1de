//! Shell files that scripts name, such as the `defaults.sh` of public suites, and the file of `--init`: the settings in
//! them are read, and nothing is run.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::ast::{Action, At, Command, Script};
use crate::fault::Fault;
use crate::reader::shell::{Meaning, lines, meaning};

/// Longest file, in bytes.
const LONGEST: u64 = 1 << 20;
/// Files that name files.
const DEEPEST: u32 = 4;

/// Replaces the files that a script names, by paths from its directory, by the settings in them. `notes` gets the lines
/// that do something else. With `has_init` a file need not be there.
///
/// # Errors
/// A file that cannot be read, or a setting in it that is not valid.
pub(crate) fn replace(
    script: &mut Script,
    directory: Option<&Path>,
    has_init: bool,
    notes: &mut Vec<String>,
) -> Result<(), Fault> {
    for event in &mut script.events {
        let Action::Commands(list) = &mut event.action else {
            continue;
        };
        let mut new = Vec::with_capacity(list.len());
        for command in std::mem::take(list) {
            let Command::File(name) = &command else {
                new.push(command);
                continue;
            };
            match read(directory, name) {
                Ok((path, text)) => new.extend(settings(&path, &text, DEEPEST, notes)?),
                Err(_) if has_init => {}
                Err(message) => {
                    let fault = Fault::new(event.at, format!("the file {name}: {message}"));
                    return Err(fault.help("give another one with --init FILE"));
                }
            }
        }
        *list = new;
    }
    Ok(())
}

fn read(directory: Option<&Path>, name: &str) -> Result<(PathBuf, String), String> {
    let Some(directory) = directory else {
        return Err("the script has no directory".to_owned());
    };
    let path = directory.join(name);
    let file = std::fs::File::open(&path).map_err(|e| e.to_string())?;
    let mut text = String::new();
    let mut file = file.take(LONGEST + 1);
    file.read_to_string(&mut text).map_err(|e| e.to_string())?;
    if text.len() as u64 > LONGEST {
        return Err(format!("it has more than {LONGEST} bytes"));
    }
    Ok((path, text))
}

/// The settings in a file.
///
/// # Errors
/// A setting that is not valid, with the name of the file.
pub(crate) fn settings(
    path: &Path,
    text: &str,
    depth: u32,
    notes: &mut Vec<String>,
) -> Result<Vec<Command>, Fault> {
    let file = path.file_name().unwrap_or(path.as_os_str());
    let file = file.to_string_lossy();
    let mut list = Vec::new();
    for line in lines(text, At { line: 1, column: 1 }) {
        let found = meaning(&line).map_err(|fault| {
            let message = format!("{file}:{}: {}", line.at.line, fault.message);
            Fault::new(At { line: 1, column: 1 }, message).help(fault.help)
        })?;
        let commands = match found {
            Meaning::Commands(commands) => commands,
            Meaning::Nothing => continue,
            Meaning::Other => {
                notes.push(format!(
                    "{file}:{}: `{}` is not run",
                    line.at.line, line.text
                ));
                continue;
            }
        };
        for command in commands {
            match command {
                Command::Set(name, value) => list.push(Command::SetIfKnown(name, value)),
                Command::File(name) if depth > 0 => match read(path.parent(), &name) {
                    Ok((path, text)) => list.extend(settings(&path, &text, depth - 1, notes)?),
                    Err(message) => {
                        notes.push(format!("{file}:{}: {name}: {message}", line.at.line));
                    }
                },
                other => list.push(other),
            }
        }
    }
    Ok(list)
}
