//! Code: assertions, variables and `print`, with the part of Python's expressions that compares and computes with
//! numbers.

use super::cursor::{Cursor, Read, is_word};
use crate::ast::{Expr, Op, Statement};
use crate::fault::Fault;

/// Levels of nesting.
const DEEPEST: u32 = 64;
/// The level of `not`, between `and` and comparisons.
const NOT: u8 = 2;
const HIGHEST: u8 = 7;

pub(super) fn block(c: &mut Cursor<'_>) -> Read<Vec<Statement>> {
    let at = c.at();
    if !c.eat_here("%{") {
        return Err(c.wrong("`%{` is missing before an assertion"));
    }
    let mut list = Vec::new();
    loop {
        spaces(c, true);
        if c.eat_here(";") {
            continue;
        }
        if c.eat_here("}%") {
            return Ok(list);
        }
        if c.is_at_end() {
            return Err(Fault::new(at, "the assertion has no end").help("close it with }%"));
        }
        list.push(statement(c)?);
        spaces(c, false);
        let ends = c.is_at_end()
            || ["\n", ";", "}%", "#"]
                .iter()
                .any(|e| c.rest().starts_with(e));
        if !ends {
            let fault = c.wrong("an operator is missing");
            return Err(fault.help("operators are and, or, not, == != < <= > >=, + - * // % & |"));
        }
    }
}

fn statement(c: &mut Cursor<'_>) -> Read<Statement> {
    let start = c.at();
    let word = c.take_while(is_word).to_owned();
    let mut reader = Reader {
        open: 0,
        depth: DEEPEST,
    };
    if word == "assert" {
        let condition = reader.level(c, 0)?;
        spaces(c, false);
        if c.eat_here(",") {
            // What Python would print: values are shown anyway.
            reader.level(c, 0)?;
        }
        return Ok(Statement::Assert(condition));
    }
    spaces(c, false);
    if word == "print" {
        if !c.eat_here("(") {
            return Err(c.wrong("`(` is missing after print"));
        }
        return Ok(Statement::Print(reader.list(c)?.0));
    }
    let compound = |c: &mut Cursor<'_>| {
        let all = [("+=", Op::Add), ("-=", Op::Sub), ("*=", Op::Mul)];
        let found = all.into_iter().find(|(text, _)| c.eat_here(text));
        found.map(|(_, op)| op)
    };
    let is_name = word.starts_with(|x: char| !x.is_ascii_digit());
    let op = compound(c);
    if is_name && (op.is_some() || c.eat_here("=")) {
        let value = reader.level(c, 0)?;
        let value = match op {
            Some(op) => {
                let before = Expr::Name(start, word.clone());
                Expr::Binary(op, Box::new(before), Box::new(value))
            }
            None => value,
        };
        return Ok(Statement::Assign(word, value));
    }
    let fault = Fault::new(start, format!("`{word}` is not supported in %{{ }}%"));
    Err(fault.help(
        "statements are assert, NAME = VALUE, NAME += VALUE and print(...), with comparisons, and, or, not and \
         arithmetic over tcpi_ fields and variables; it is not Python",
    ))
}

/// Skips spaces, lines that go on behind a backslash and, with `lines`, ends of lines and comments.
fn spaces(c: &mut Cursor<'_>, lines: bool) {
    loop {
        c.take_while(|x| x.is_whitespace() && (lines || x != '\n'));
        if lines && c.peek() == Some('#') {
            c.take_while(|x| x != '\n');
        } else if !c.eat_here("\\\n") {
            return;
        }
    }
}

struct Reader {
    /// Open parentheses: lines end an expression only outside of them.
    open: u32,
    depth: u32,
}

impl Reader {
    fn level(&mut self, c: &mut Cursor<'_>, level: u8) -> Read<Expr> {
        self.depth = self
            .depth
            .checked_sub(1)
            .ok_or_else(|| c.wrong("the expression is nested too deeply"))?;
        let read = self.binary(c, level);
        self.depth += 1;
        read
    }

    fn binary(&mut self, c: &mut Cursor<'_>, level: u8) -> Read<Expr> {
        if level > HIGHEST {
            return self.unary(c);
        }
        if level == NOT {
            spaces(c, self.open > 0);
            if self.eat_op(c, "not") {
                return Ok(Expr::Not(Box::new(self.level(c, NOT)?)));
            }
            return self.binary(c, level + 1);
        }
        let mut left = self.binary(c, level + 1)?;
        let mut middle: Option<Expr> = None;
        while let Some(op) = self.operator(c, level) {
            let right = self.binary(c, level + 1)?;
            // As in Python, a <= b <= c means a <= b and b <= c.
            left = match middle.take() {
                Some(m) => {
                    let second = Expr::Binary(op, Box::new(m), Box::new(right.clone()));
                    Expr::Binary(Op::And, Box::new(left), Box::new(second))
                }
                None => Expr::Binary(op, Box::new(left), Box::new(right.clone())),
            };
            middle = (level == 3).then_some(right);
        }
        Ok(left)
    }

    fn eat_op(&mut self, c: &mut Cursor<'_>, text: &str) -> bool {
        if text.starts_with(is_word) {
            let word = c.rest().strip_prefix(text);
            word.is_some_and(|r| !r.starts_with(is_word)) && c.eat_here(text)
        } else {
            c.eat_here(text)
        }
    }

    fn operator(&mut self, c: &mut Cursor<'_>, level: u8) -> Option<Op> {
        spaces(c, self.open > 0);
        if c.rest().starts_with("}%") {
            return None;
        }
        let of_level = |(_, _, l): &&(Op, &str, u8)| *l == level;
        for (op, text, _) in Op::ALL.iter().filter(of_level) {
            if self.eat_op(c, text) {
                return Some(*op);
            }
        }
        (level == HIGHEST && c.eat_here("/")).then_some(Op::Div)
    }

    fn unary(&mut self, c: &mut Cursor<'_>) -> Read<Expr> {
        spaces(c, self.open > 0);
        if c.eat_here("-") {
            return Ok(Expr::Minus(Box::new(self.level(c, HIGHEST + 1)?)));
        }
        if c.eat_here("(") {
            let (mut list, is_tuple) = self.list(c)?;
            return match list.pop() {
                Some(only) if list.is_empty() && !is_tuple => Ok(only),
                last => {
                    list.extend(last);
                    Ok(Expr::Tuple(list))
                }
            };
        }
        if let Some(quote) = c.peek().filter(|x| matches!(x, '"' | '\'')) {
            c.bump();
            let text = c.take_while(|x| x != quote && x != '\n').to_owned();
            if c.bump() != Some(quote) {
                return Err(c.wrong("a text has no end"));
            }
            return Ok(Expr::Text(text));
        }
        match c.peek() {
            Some(x) if x.is_ascii_digit() => Ok(Expr::Int(c.number("a number")?)),
            Some(x) if is_word(x) => {
                let at = c.at();
                Ok(Expr::Name(at, c.take_while(is_word).to_owned()))
            }
            _ => {
                let fault = c.wrong("a number or a name is missing");
                Err(fault.help(
                    "names are fields such as tcpi_snd_cwnd, and constants such as TCP_CA_Open",
                ))
            }
        }
    }

    /// Expressions up to `)`, and whether a comma stood among them.
    fn list(&mut self, c: &mut Cursor<'_>) -> Read<(Vec<Expr>, bool)> {
        self.open += 1;
        let (mut list, mut is_tuple) = (Vec::new(), false);
        loop {
            spaces(c, true);
            if c.eat_here(")") {
                self.open -= 1;
                return Ok((list, is_tuple));
            }
            list.push(self.level(c, 0)?);
            spaces(c, true);
            if c.eat_here(",") {
                is_tuple = true;
            } else if !c.rest().starts_with(')') {
                return Err(c.wrong("`)` is missing"));
            }
        }
    }
}
