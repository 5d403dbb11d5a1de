//! Assertions: the part of Python's expressions that compares and computes with numbers.

use super::cursor::{Cursor, Read, is_word};
use crate::ast::{Expr, Op};
use crate::fault::Fault;

/// Levels of nesting.
const DEEPEST: u32 = 64;
/// The level of `not`, between `and` and comparisons.
const NOT: u8 = 2;
const HIGHEST: u8 = 7;

pub(super) fn block(c: &mut Cursor<'_>) -> Read<Vec<Expr>> {
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
        let start = c.at();
        let word = c.take_while(is_word);
        if word != "assert" {
            let fault = Fault::new(start, format!("`{word}` is not supported in %{{ }}%"));
            return Err(fault.help(
                "the only statement is assert, with comparisons, and, or, not and arithmetic over tcpi_ fields; it \
                 is not Python",
            ));
        }
        let mut reader = Reader {
            open: 0,
            depth: DEEPEST,
        };
        list.push(reader.level(c, 0)?);
        // What Python would print is shown anyway.
        spaces(c, false);
        if c.eat_here(",") {
            spaces(c, false);
            if c.quoted()?.is_none() {
                reader.level(c, 0)?;
            }
        }
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

fn spaces(c: &mut Cursor<'_>, lines: bool) {
    c.take_while(|x| x.is_whitespace() && (lines || x != '\n'));
    while lines && c.peek() == Some('#') {
        c.take_while(|x| x != '\n');
        c.take_while(char::is_whitespace);
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
            self.open += 1;
            let inner = self.level(c, 0)?;
            spaces(c, true);
            self.open -= 1;
            if !c.eat_here(")") {
                return Err(c.wrong("`)` is missing"));
            }
            return Ok(inner);
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
}
