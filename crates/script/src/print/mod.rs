//! Scripts as text; reading the text gives the same script.

mod mptcp;

use std::fmt::{self, Display, Formatter, Write as _};

use crate::ast::{
    Action, Arg, Body, Call, Command, EcnField, Event, Expr, Icmp, Only, Outcome, Packet, Script,
    Segment, Statement, TcpOption, Time,
};
use crate::words::{FLAGS, ecn_word};

struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

impl Display for Script {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for o in &self.options {
            f.write_str("--")?;
            f.write_str(&o.name)?;
            f.write_str(if o.value.is_empty() { "" } else { "=" })?;
            writeln!(f, "{}", o.value)?;
        }
        self.events.iter().try_for_each(|e| writeln!(f, "{e}"))
    }
}

impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.only {
            None => {}
            Some(Only::Ours) => f.write_str("ours: ")?,
            Some(Only::Kernel) => f.write_str("kernel: ")?,
        }
        write!(f, "{}", self.time)?;
        if let Action::Call(Call { until: Some(t), .. }) = &self.action {
            write!(f, "...{}", Seconds(*t))?;
        }
        write!(f, " {}", self.action)
    }
}

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Absolute(t) => write!(f, "{}", Seconds(t)),
            Self::Relative(t) => write!(f, "+{}", Seconds(t)),
            Self::Any => f.write_str("*"),
            Self::Between(a, b) => write!(f, "{}~{}", Seconds(a), Seconds(b)),
            Self::RelativeBetween(a, b) => write!(f, "+{}~+{}", Seconds(a), Seconds(b)),
        }
    }
}

impl Display for Action {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet(p) => write!(f, "{p}"),
            Self::Call(c) => write!(f, "{c}"),
            Self::Commands(list) => {
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                write!(f, "`{}`", list.join("; "))
            }
            Self::Code(list) => {
                f.write_str("%{ ")?;
                list.iter().try_for_each(|s| write!(f, "{s}; "))?;
                f.write_str("}%")
            }
        }
    }
}

impl Display for Command {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(name, value) => write!(f, "sysctl -q {name}=\"{value}\""),
            Self::SetIfKnown(name, value) => write!(f, "sysctl -e -q {name}=\"{value}\""),
            Self::File(path) => f.write_str(path),
            Self::Manage(m) => write!(f, "{m}"),
            Self::Pace => f.write_str("tc qdisc replace dev tun0 root fq"),
            Self::Parameter(module, name, value) => {
                write!(f, "echo {value} > /sys/module/{module}/parameters/{name}")
            }
        }
    }
}

impl Display for Packet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.inbound { "<" } else { ">" })?;
        match self.ecn {
            None => {}
            Some(EcnField::Capable) => f.write_str(" [ect01]")?,
            Some(EcnField::Is(e)) => write!(f, " [{}]", ecn_word(e))?,
            Some(EcnField::Class(class)) => write!(f, " [tos {class:#04x}]")?,
        }
        if let Some(n) = self.connection {
            write!(f, " [conn {n}]")?;
        }
        let (from, to) = &self.between;
        from.iter().try_for_each(|a| write!(f, " addr[{a}]"))?;
        to.iter().try_for_each(|a| write!(f, " > addr[{a}]"))?;
        match &self.body {
            Body::Tcp(s) => write!(f, " {s}"),
            Body::Icmp(i) => write!(f, " {i}"),
        }
    }
}

impl Display for Segment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&flags_text(self.flags))?;
        let end = self.seq.wrapping_add(self.len);
        write!(f, " {}:{end}({})", self.seq, self.len)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        if let Some(urgent) = self.urgent {
            write!(f, " urg {urgent}")?;
        }
        match &self.options {
            None => f.write_str(" <...>"),
            Some(list) if list.is_empty() => Ok(()),
            Some(list) => {
                f.write_str(" <")?;
                for (i, o) in list.iter().enumerate() {
                    f.write_str(if i > 0 { "," } else { "" })?;
                    write!(f, "{o}")?;
                }
                f.write_str(">")
            }
        }
    }
}

/// Control bits in packetdrill's letters; `-` if there are none.
pub(crate) fn flags_text(bits: u16) -> String {
    let text: String = FLAGS
        .iter()
        .filter(|(_, bit)| bits & bit != 0)
        .map(|(letter, _)| *letter)
        .collect();
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}

impl Display for TcpOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nop => f.write_str("nop"),
            Self::Eol => f.write_str("eol"),
            Self::Mss(n) => write!(f, "mss {n}"),
            Self::WindowScale(n) => write!(f, "wscale {n}"),
            Self::SackPermitted => f.write_str("sackOK"),
            Self::Sack(blocks) => {
                f.write_str("sack")?;
                blocks.iter().try_for_each(|(a, b)| write!(f, " {a}:{b}"))
            }
            Self::Timestamps(val, ecr) => write!(f, "TS val {val} ecr {ecr}"),
            Self::FastOpen(cookie) => cookie_text(f, "FO", cookie),
            Self::FastOpenExperimental(cookie) => cookie_text(f, "FOEXP", cookie),
            Self::Mptcp(m) => write!(f, "{m}"),
            Self::Other(kind, data) => cookie_text(f, &format!("kind {kind}"), data),
        }
    }
}

fn cookie_text(f: &mut Formatter<'_>, name: &str, cookie: &[u8]) -> fmt::Result {
    f.write_str(name)?;
    if !cookie.is_empty() {
        f.write_char(' ')?;
    }
    cookie.iter().try_for_each(|b| write!(f, "{b:02x}"))
}

impl Display for Icmp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (seq, len) = self.about;
        let end = seq.wrapping_add(len);
        write!(f, "[{seq}:{end}({len})] icmp {}", self.kind)?;
        if let Some(code) = &self.code {
            write!(f, " {code}")?;
        }
        if let Some(mtu) = self.mtu {
            write!(f, " mtu {mtu}")?;
        }
        Ok(())
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        comma_separated(f, &self.args)?;
        write!(f, ") = {}", self.result)
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("?"),
            Self::Value(n) => write!(f, "{n}"),
            Self::Error(name) => write!(f, "-1 {name}"),
        }
    }
}

fn comma_separated<T: Display>(f: &mut Formatter<'_>, list: &[T]) -> fmt::Result {
    for (i, arg) in list.iter().enumerate() {
        f.write_str(if i > 0 { ", " } else { "" })?;
        write!(f, "{arg}")?;
    }
    Ok(())
}

impl Display for Arg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dots => f.write_str("..."),
            Self::Int(n) => write!(f, "{n}"),
            Self::Symbols(names) => f.write_str(&names.join("|")),
            Self::List(list) => {
                f.write_str("[")?;
                comma_separated(f, list)?;
                f.write_str("]")
            }
            Self::Fields(fields) => {
                f.write_str("{")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    write!(f, "{name}={value}")?;
                }
                f.write_str("}")
            }
            Self::Parts(list) => {
                f.write_str("{")?;
                comma_separated(f, list)?;
                f.write_str("}")
            }
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Null => f.write_str("NULL"),
        }
    }
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Assert(e) => write!(f, "assert {e}"),
            Self::Assign(name, e) => write!(f, "{name} = {e}"),
            Self::Print(list) => {
                f.write_str("print(")?;
                comma_separated(f, list)?;
                f.write_str(")")
            }
        }
    }
}

impl Display for Expr {
    /// With all parentheses.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(n) => write!(f, "{n}"),
            Self::Name(_, name) => f.write_str(name),
            Self::Text(text) if text.contains('\'') => write!(f, "\"{text}\""),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Tuple(list) => {
                f.write_str("(")?;
                list.iter().try_for_each(|e| write!(f, "{e}, "))?;
                f.write_str(")")
            }
            Self::Not(e) => write!(f, "(not {e})"),
            Self::Minus(e) => write!(f, "(-{e})"),
            Self::Binary(op, a, b) => write!(f, "({a} {} {b})", op.text()),
        }
    }
}
