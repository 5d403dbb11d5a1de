//! Shell commands: those that change settings are read, and nothing is run.

use super::cursor::Read;
use super::mptcp;
use crate::ast::{At, Command};
use crate::fault::Fault;

/// A line of a shell file or of a command in backticks.
pub(crate) struct Line {
    /// Where it begins.
    pub(crate) at: At,
    /// Its text, without comments; lines that a backslash joins are one.
    pub(crate) text: String,
}

/// What a line does.
pub(crate) enum Meaning {
    /// It stands for these commands.
    Commands(Vec<Command>),
    /// Nothing here: what it would change does not exist for a script, or is so already.
    Nothing,
    /// Something that is not done.
    Other,
}

/// The commands of a text that begins at `at`: lines and what semicolons separate, with lines that go on behind a
/// backslash joined, and without comments.
pub(crate) fn lines(text: &str, at: At) -> Vec<Line> {
    let mut list = Vec::new();
    let mut before = String::new();
    let mut begin = None;
    for (n, raw) in text.split('\n').enumerate() {
        let indent = raw.chars().take_while(|c| c.is_whitespace()).count();
        let column = indent as u32 + if n == 0 { at.column } else { 1 };
        let here = At {
            line: at.line + n as u32,
            column,
        };
        let start = *begin.get_or_insert(here);
        if let Some(part) = raw.strip_suffix('\\') {
            before.push_str(part);
            before.push(' ');
            continue;
        }
        before.push_str(raw);
        for part in split(&before) {
            let text = part.trim().to_owned();
            if !text.is_empty() {
                list.push(Line { at: start, text });
            }
        }
        before.clear();
        begin = None;
    }
    list
}

/// A line at its semicolons, without its comment; those in quotation marks are none.
fn split(line: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut quote, mut last) = (None, ' ');
    for c in line.chars() {
        match (quote, c) {
            (None, '#') if last.is_whitespace() || last == ';' => break,
            (None, ';') => parts.push(String::new()),
            _ => {
                if quote == Some(c) {
                    quote = None;
                } else if quote.is_none() && matches!(c, '"' | '\'') {
                    quote = Some(c);
                }
                if let Some(part) = parts.last_mut() {
                    part.push(c);
                }
            }
        }
        last = c;
    }
    parts
}

/// The words of a line, without quotation marks.
fn words(line: &str) -> Vec<String> {
    let line = computed(line);
    let mut list = Vec::new();
    let (mut word, mut quote) = (String::new(), None);
    for c in line.chars().chain([' ']) {
        match quote {
            Some(q) if c == q => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if c.is_whitespace() => {
                if !word.is_empty() {
                    list.push(std::mem::take(&mut word));
                }
            }
            _ => word.push(c),
        }
    }
    list
}

/// A line with the values of `$((A*B))`.
fn computed(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("$((") {
        let Some((inner, after)) = after.split_once("))") else {
            break;
        };
        out.push_str(before);
        let factors = inner.split('*').map(|n| n.trim().parse::<u64>().ok());
        let product = factors.reduce(|a, b| a?.checked_mul(b?)).flatten();
        match product {
            Some(n) => out.push_str(&n.to_string()),
            None => out.push_str(&format!("$(({inner}))")),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// What a line does.
///
/// # Errors
/// When a line that changes settings is not valid.
pub(crate) fn meaning(line: &Line) -> Read<Meaning> {
    let all = words(&line.text);
    let target = all.iter().position(|w| w.starts_with('>'));
    let is_redirection = |w: &String| [">", "2>", "&>"].iter().any(|r| w.starts_with(r));
    let end = all.iter().position(is_redirection).unwrap_or(all.len());
    let (words, rest) = all.split_at_checked(end).unwrap_or((&[], &[]));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some((program, arguments)) = words.split_first() else {
        return Ok(Meaning::Other);
    };
    let name = program.rsplit('/').next().unwrap_or_default();
    let is_path = program.starts_with("../") || program.starts_with("./");
    Ok(match (name, arguments) {
        ("sysctl", _) => Meaning::Commands(settings(arguments, line.at)?),
        ("set_sysctls.py", _) => Meaning::Commands(settings(arguments, line.at)?),
        ("echo", [value]) if target == Some(end) => {
            let file = rest.concat();
            let file = file.trim_start_matches('>').trim();
            if let Some(parameter) = parameter(file, value) {
                return Ok(Meaning::Commands(vec![parameter]));
            }
            if !file.starts_with("/proc/sys/") {
                return Ok(Meaning::Other);
            }
            Meaning::Commands(vec![setting(&format!("{file}={value}"), line.at, false)?])
        }
        ("ip", ["mptcp", ..]) if !words.iter().any(|w| w.starts_with('$')) => Meaning::Commands(
            vec![Command::Manage(mptcp::manage(&words.join(" "), line.at)?)],
        ),
        (_, []) if is_path && name.ends_with(".sh") => {
            Meaning::Commands(vec![Command::File((*program).to_owned())])
        }
        // Each script has settings and metrics of its own.
        ("ip", ["tcp_metrics", "flush", "all"]) => Meaning::Nothing,
        (_, []) if name.starts_with("sysctl_restore_") => Meaning::Nothing,
        // The device of a script has no offloads, and a queue without pacing.
        ("tc", ["qdisc", "add" | "replace", "dev", _, "root", "pfifo"])
        | ("tc", ["qdisc", "delete" | "del", "dev", _, "root"]) => Meaning::Nothing,
        ("tc", ["qdisc", "add" | "replace", "dev", _, "root", "fq"]) => {
            Meaning::Commands(vec![Command::Pace])
        }
        ("ethtool", ["-K", _, offloads @ ..])
            if offloads
                .chunks(2)
                .all(|pair| matches!(pair, ["gso" | "tso" | "gro", "off"])) =>
        {
            Meaning::Nothing
        }
        _ => Meaning::Other,
    })
}

/// A parameter of a module: `/sys/module/MODULE/parameters/NAME`.
fn parameter(file: &str, value: &str) -> Option<Command> {
    let (module, name) = file
        .strip_prefix("/sys/module/")?
        .split_once("/parameters/")?;
    let is_plain = |text: &str| {
        let known = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !text.is_empty() && text.chars().all(known)
    };
    let plain = is_plain(module) && is_plain(name) && is_plain(value);
    plain.then(|| Command::Parameter(module.to_owned(), name.to_owned(), value.to_owned()))
}

/// `NAME=VALUE` of sysctl, with dots or slashes, and of files below `/proc/sys`.
fn settings(words: &[&str], at: At) -> Read<Vec<Command>> {
    let flags: String = words.iter().filter_map(|w| w.strip_prefix('-')).collect();
    let named = words.iter().filter(|w| !w.starts_with('-'));
    let all: Read<Vec<Command>> = named.map(|w| setting(w, at, flags.contains('e'))).collect();
    let all = all?;
    if all.is_empty() {
        let fault = Fault::new(at, "the command sets nothing");
        return Err(fault.help("write NAME=VALUE, such as net.ipv4.tcp_sack=0"));
    }
    Ok(all)
}

/// A setting; one that need not exist is set where the stack has one.
fn setting(word: &str, at: At, if_known: bool) -> Read<Command> {
    let Some((name, value)) = word.split_once('=') else {
        let fault = Fault::new(at, format!("`{word}` sets nothing"));
        return Err(fault.help("write NAME=VALUE, such as net.ipv4.tcp_sack=0"));
    };
    let name = name.trim().trim_start_matches("/proc/sys/");
    // As sysctl does, the first separator says which of the two is used.
    let name = match name.find(['.', '/']).and_then(|i| name.get(i..)) {
        Some(rest) if rest.starts_with('/') => name.replace('/', "."),
        _ => name.to_owned(),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.starts_with("net.") || !name.chars().all(is_plain) || name.contains("..") {
        let fault = Fault::new(at, format!("{name} is not a setting of the network"));
        return Err(fault.help("names begin with net.ipv4. or net.ipv6."));
    }
    let value = value.trim().to_owned();
    Ok(if if_known {
        Command::SetIfKnown(name, value)
    } else {
        Command::Set(name, value)
    })
}

/// The commands in backticks.
///
/// # Errors
/// A command that is not read.
pub(super) fn commands(text: &str, at: At) -> Read<Vec<Command>> {
    let mut list = Vec::new();
    for line in lines(text, at) {
        match meaning(&line)? {
            Meaning::Commands(new) => list.extend(new),
            Meaning::Nothing => {}
            Meaning::Other => {
                let fault = Fault::new(line.at, format!("the command `{}` is not run", line.text));
                return Err(fault.help(
                    "of shell commands only `sysctl NAME=VALUE`, `echo VALUE > /proc/sys/NAME`, files of these, `ip \
                     mptcp`, \
                     parameters of modules and the queues pfifo and fq are read; what others set up are options of \
                    the script, such as --congestion",
                ));
            }
        }
    }
    Ok(list)
}
