//! From text to a script.

mod call;
mod cursor;
mod expr;
mod mptcp;
mod packet;
pub(crate) mod shell;
mod structure;

use crate::ast::{Action, At, Choice, Command, Event, Only, Script, Time};
use crate::fault::Fault;
use cursor::{Cursor, Read};

/// Options of a script, with their meaning.
pub const OPTIONS: [(&str, &str); 14] = [
    ("ip_version", "ipv4 (the default) or ipv6"),
    (
        "tolerance_usecs",
        "how early or late a packet or a call may be, in microseconds",
    ),
    (
        "tcp_ts_tick_usecs",
        "length of a tick of the timestamp clock: values of timestamps are compared",
    ),
    ("mtu", "MTU of the device, in bytes; default 1500"),
    (
        "bind_port",
        "port of the stack's socket; default: 8080, or chosen by the stack when it connects",
    ),
    ("connect_port", "port of the other end; default 8080"),
    (
        "local_ip",
        "first address of the stack; default 192.168.0.1 or fd3d:a0b:17d6::1",
    ),
    (
        "remote_ip",
        "first address of the other end; default 192.0.2.1 or fd3d:fa7b:d17d::1",
    ),
    (
        "congestion",
        "congestion control of the stack; default reno",
    ),
    (
        "mss",
        "most payload of the other end's segments; has no effect here, where scripts say what the other end sends",
    ),
    (
        "strict_segments",
        "a segment that is expected is one segment of the stack, also if it is longer than the MSS",
    ),
    (
        "tcp_ts_ecr_scaled",
        "values of timestamps may be echoed that the stack has not sent: always so here",
    ),
    (
        "gargalo",
        "options of our stack as KEY=VALUE with spaces between, such as profile=modern",
    ),
    (
        "mptcp",
        "options of our Multipath TCP as KEY=VALUE with spaces between, such as data_numbers=short",
    ),
];

/// Options without a value.
const FLAGS: [&str; 2] = ["strict_segments", "tcp_ts_ecr_scaled"];

/// Reads a script.
///
/// # Errors
/// The first part that is wrong or not supported.
pub fn read(text: &str) -> Result<Script, Fault> {
    let mut c = Cursor::new(text);
    let mut script = Script::default();
    loop {
        c.skip();
        if c.is_at_end() {
            return Ok(script);
        }
        if c.rest().starts_with("--") {
            if !script.events.is_empty() {
                let fault = Fault::new(c.at(), "an option stands after the first event");
                return Err(fault.help("put options at the start of the script"));
            }
            script.options.push(option(&mut c)?);
        } else {
            script.events.push(event(&mut c)?);
        }
    }
}

fn option(c: &mut Cursor<'_>) -> Read<Choice> {
    let at = c.at();
    c.eat_here("--");
    let name = c.take_while(cursor::is_word).to_owned();
    let rest = c.take_while(|c| c != '\n');
    let rest = rest.split("//").next().unwrap_or_default();
    let value = rest.trim_start_matches(['=', ' ']).trim().to_owned();
    if !OPTIONS.iter().any(|(n, _)| *n == name) {
        let names = OPTIONS.map(|(n, _)| n);
        let fault = Fault::new(at, format!("the option --{name} is not supported"));
        return Err(match gargalo_units::nearest(&name, names) {
            Some(near) => fault.help(format!("did you mean --{near}?")),
            None => fault.help(format!("options are --{}", names.join(", --"))),
        });
    }
    if value.is_empty() && !FLAGS.contains(&name.as_str()) {
        let fault = Fault::new(at, format!("the option --{name} has no value"));
        return Err(fault.help(format!("write --{name}=VALUE")));
    }
    Ok(Choice { at, name, value })
}

fn event(c: &mut Cursor<'_>) -> Read<Event> {
    let at = c.at();
    let only = if c.eat("ours:") {
        Some(Only::Ours)
    } else if c.eat("kernel:") {
        Some(Only::Kernel)
    } else {
        None
    };
    c.skip();
    if c.peek() == Some('`') {
        let time = Time::Relative(0);
        let action = Action::Commands(command(c)?);
        return Ok(Event {
            at,
            only,
            time,
            action,
        });
    }
    let (time, until) = time(c)?;
    c.skip();
    let action = match c.peek() {
        Some('<' | '>') => Action::Packet(packet::packet(c)?),
        Some('`') => Action::Commands(command(c)?),
        Some('%') => Action::Code(expr::block(c)?),
        Some(x) if x.is_ascii_alphabetic() => Action::Call(call::call(c, until)?),
        _ => {
            let fault = c.wrong("a packet, a call, a command or an assertion is missing");
            return Err(fault.help("packets begin with < or >, assertions with %{"));
        }
    };
    let is_awaited = matches!(&action, Action::Packet(p) if !p.inbound);
    if !is_awaited && !matches!(time, Time::Absolute(_) | Time::Relative(_)) {
        let fault = Fault::new(at, "only packets that the stack sends have a range of time");
        return Err(fault.help("give one time"));
    }
    if until.is_some() && !matches!(action, Action::Call(_)) {
        let fault = Fault::new(at, "only calls have a time at which they return");
        return Err(fault.help("for a range of time write ~"));
    }
    Ok(Event {
        at,
        only,
        time,
        action,
    })
}

/// The time of an event, and that at which a call that blocks returns.
fn time(c: &mut Cursor<'_>) -> Read<(Time, Option<u64>)> {
    let at: At = c.at();
    if c.eat("*") {
        return Ok((Time::Any, None));
    }
    let relative = c.eat("+");
    let start = c.seconds().map_err(|f| {
        f.help(
            "an event begins with its time: 1.5 since the start, +1.5 since the event before, or *",
        )
    })?;
    if c.eat("...") {
        c.eat("+");
        let until = c.seconds()?;
        if until < start {
            return Err(Fault::new(at, "the call returns before it begins"));
        }
        let time = if relative {
            Time::Relative(start)
        } else {
            Time::Absolute(start)
        };
        return Ok((time, Some(until)));
    }
    if c.eat("~") {
        c.eat("+");
        let end = c.seconds()?;
        if end < start {
            return Err(Fault::new(at, "the range of time ends before it begins"));
        }
        let time = if relative {
            Time::RelativeBetween(start, end)
        } else {
            Time::Between(start, end)
        };
        return Ok((time, None));
    }
    Ok(if relative {
        (Time::Relative(start), None)
    } else {
        (Time::Absolute(start), None)
    })
}

/// Commands in backticks.
fn command(c: &mut Cursor<'_>) -> Read<Vec<Command>> {
    let at = c.at();
    c.eat_here("`");
    let inside = c.at();
    let text = c.take_while(|c| c != '`').to_owned();
    if !c.eat_here("`") {
        return Err(Fault::new(at, "the command has no end").help("close it with a backtick"));
    }
    shell::commands(&text, inside)
}
