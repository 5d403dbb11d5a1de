//! Calls of socket functions.

use super::cursor::{Cursor, Read};
use crate::ast::{Arg, Call, Outcome};
use crate::fault::Fault;

/// Levels of nesting in arguments.
const DEEPEST: u32 = 8;

pub(super) fn call(c: &mut Cursor<'_>, until: Option<u64>) -> Read<Call> {
    let at = c.at();
    let name = c.word().to_owned();
    if !crate::calls::NAMES.contains(&name.as_str()) {
        let fault = Fault::new(at, format!("the call {name} is not supported"));
        return Err(fault.help(format!("supported: {}", crate::calls::NAMES.join(", "))));
    }
    c.expect("(", "after the name of a call")?;
    let args = list(c, ")", DEEPEST)?;
    c.expect("=", "before the result of the call")?;
    let result = outcome(c)?;
    Ok(Call {
        until,
        name,
        args,
        result,
    })
}

fn outcome(c: &mut Cursor<'_>) -> Read<Outcome> {
    if c.eat("?") {
        return Ok(Outcome::Any);
    }
    let value: i64 = c.number("the result of a call")?;
    let mut error = None;
    // On the same line, so that the next event is not read as an error number.
    c.take_while(|x| x == ' ' || x == '\t');
    if value == -1 && c.peek() == Some('E') {
        error = Some(c.word().to_owned());
    }
    c.take_while(|x| x == ' ' || x == '\t');
    if c.eat_here("(") {
        c.take_while(|x| x != ')' && x != '\n');
        c.expect(")", "after the explanation of a result")?;
    }
    Ok(error.map_or(Outcome::Value(value), Outcome::Error))
}

pub(super) fn list(c: &mut Cursor<'_>, end: &str, depth: u32) -> Read<Vec<Arg>> {
    let mut list = Vec::new();
    if c.eat(end) {
        return Ok(list);
    }
    loop {
        list.push(arg(c, depth)?);
        if c.eat(end) {
            return Ok(list);
        }
        c.expect(",", "between two arguments")?;
    }
}

pub(super) fn arg(c: &mut Cursor<'_>, depth: u32) -> Read<Arg> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(c.wrong("arguments are nested too deeply"));
    };
    if c.eat("...") {
        return Ok(Arg::Dots);
    }
    if let Some(text) = c.quoted()? {
        return Ok(Arg::Text(text));
    }
    if c.eat("[") {
        return Ok(Arg::List(list(c, "]", depth)?));
    }
    if c.eat("{") {
        return super::structure::structure(c, depth);
    }
    c.skip();
    match c.peek() {
        Some(x) if x.is_ascii_digit() || x == '-' => Ok(Arg::Int(c.number("an argument")?)),
        Some(x) if x.is_ascii_alphabetic() => {
            if c.eat_word("NULL") {
                return Ok(Arg::Null);
            }
            let mut names = vec![c.word().to_owned()];
            while c.eat("|") {
                let name = c.word();
                if name.is_empty() {
                    return Err(c.wrong("a name is missing after `|`"));
                }
                names.push(name.to_owned());
            }
            Ok(Arg::Symbols(names))
        }
        _ => Err(c.wrong("an argument is missing")),
    }
}
