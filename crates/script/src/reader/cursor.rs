//! The text and a position in it.

use crate::ast::At;
use crate::fault::Fault;

pub(super) type Read<T> = Result<T, Fault>;

pub(super) struct Cursor<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, pos: 0 }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.pos..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        Some(c)
    }

    /// Where the position is.
    pub(super) fn at(&self) -> At {
        let before = self.text.get(..self.pos).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let last = before.rfind('\n').map_or(0, |n| n + 1);
        let column = before.get(last..).unwrap_or_default().chars().count() + 1;
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        At {
            line: number(line),
            column: number(column),
        }
    }

    /// Skips spaces, and comments from `//` or `#` to the end of the line or from `/*` to `*/`.
    pub(super) fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.pos += rest.len() - trimmed.len();
            if trimmed.starts_with("//") || trimmed.starts_with('#') {
                self.take_while(|c| c != '\n');
            } else if trimmed.starts_with("/*") {
                let n = trimmed.find("*/").map_or(trimmed.len(), |n| n + 2);
                self.pos += n;
            } else {
                return;
            }
        }
    }

    pub(super) fn take_while(&mut self, f: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let n = rest.find(|c| !f(c)).unwrap_or(rest.len());
        self.pos += n;
        rest.get(..n).unwrap_or_default()
    }

    /// Takes `text` if it comes next, after spaces.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        self.skip();
        self.eat_here(text)
    }

    /// Takes `text` if it comes next.
    pub(super) fn eat_here(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.pos += text.len();
        }
        found
    }

    /// Takes a word if it comes next, after spaces, and nothing else follows it directly.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        self.skip();
        let rest = self.rest();
        let found = rest
            .strip_prefix(word)
            .is_some_and(|r| !r.starts_with(is_word));
        if found {
            self.pos += word.len();
        }
        found
    }

    pub(super) fn expect(&mut self, text: &str, what: &str) -> Read<()> {
        if self.eat(text) {
            return Ok(());
        }
        Err(self.wrong(format!("`{text}` is missing {what}")))
    }

    /// A fault here that shows what was found.
    pub(super) fn wrong(&self, message: impl Into<String>) -> Fault {
        let found: String = self.rest().chars().take_while(|c| *c != '\n').collect();
        let found: String = found.chars().take(20).collect();
        let found = if found.is_empty() {
            "the end of the line".to_owned()
        } else {
            format!("`{found}`")
        };
        Fault::new(self.at(), format!("{}, found {found}", message.into()))
    }

    /// A word of letters, digits and underscores; empty if there is none.
    pub(super) fn word(&mut self) -> &'a str {
        self.skip();
        self.take_while(is_word)
    }

    /// A number, decimal or with 0x, that fits.
    pub(super) fn number<T: TryFrom<i128>>(&mut self, what: &str) -> Read<T> {
        self.skip();
        let at = self.at();
        let minus = self.eat_here("-");
        let (digits, radix) = if self.eat_here("0x") || self.eat_here("0X") {
            (self.take_while(|c| c.is_ascii_hexdigit()), 16)
        } else {
            (self.take_while(|c| c.is_ascii_digit()), 10)
        };
        if digits.is_empty() {
            return Err(self.wrong(format!("{what} must be a number")));
        }
        i128::from_str_radix(digits, radix)
            .ok()
            .map(|n| if minus { -n } else { n })
            .and_then(|n| T::try_from(n).ok())
            .ok_or_else(|| Fault::new(at, format!("{what} {digits} is out of range")))
    }

    /// Seconds with a fraction, in microseconds.
    pub(super) fn seconds(&mut self) -> Read<u64> {
        self.skip();
        let at = self.at();
        let whole = self.take_while(|c| c.is_ascii_digit());
        let mut fraction = "";
        let mut after = self.rest().chars();
        if after.next() == Some('.') && after.next().is_some_and(|c| c.is_ascii_digit()) {
            self.bump();
            fraction = self.take_while(|c| c.is_ascii_digit());
        }
        if whole.is_empty() && fraction.is_empty() {
            return Err(self.wrong("a time in seconds is missing"));
        }
        let too_exact = fraction.len() > 6 && fraction.bytes().skip(6).any(|b| b != b'0');
        if too_exact || whole.len() > 7 {
            let message = format!("a time of {whole}.{fraction} seconds is not supported");
            return Err(Fault::new(at, message)
                .help("times have at most 7 digits before the point and 6 after it"));
        }
        let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
        let micros: u64 = digits.parse().unwrap_or(0);
        let secs: u64 = whole.parse().unwrap_or(0);
        Ok(secs * 1_000_000 + micros)
    }

    /// Text in quotation marks, without them.
    pub(super) fn quoted(&mut self) -> Read<Option<String>> {
        if !self.eat("\"") {
            return Ok(None);
        }
        let text = self.take_while(|c| c != '"' && c != '\n').to_owned();
        self.expect("\"", "at the end of a text")?;
        Ok(Some(text))
    }
}

pub(super) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
