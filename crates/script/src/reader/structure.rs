//! Structures in the arguments of calls.

use super::call::{arg, list};
use super::cursor::{Cursor, Read};
use crate::ast::Arg;

/// What follows `{`: fields with names, or parts without.
pub(super) fn structure(c: &mut Cursor<'_>, depth: u32) -> Read<Arg> {
    c.skip();
    if !c.peek().is_some_and(|x| x.is_ascii_alphabetic()) {
        return Ok(Arg::Parts(list(c, "}", depth)?));
    }
    let mut fields = Vec::new();
    loop {
        let name = name(c)?;
        c.expect("=", "after the name of a field")?;
        fields.push((name, arg(c, depth)?));
        if c.eat("}") {
            return Ok(Arg::Fields(fields));
        }
        c.expect(",", "between two fields")?;
    }
}

/// `events`, or `msg_iov(2)`: a length in parentheses.
fn name(c: &mut Cursor<'_>) -> Read<String> {
    let mut name = c.word().to_owned();
    if name.is_empty() {
        return Err(c.wrong("the name of a field is missing"));
    }
    if c.eat("(") {
        let length = c.take_while(|x| x.is_ascii_digit() || x == '.');
        name = format!("{name}({length})");
        c.expect(")", "after the length of a field")?;
    }
    Ok(name)
}
