//! A script as it was read.

pub mod mptcp;

use gargalo_units::Ecn;
use serde::Serialize;

/// A position in the text. All positions are equal, so that scripts compare by what they say.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct At {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl PartialEq for At {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for At {}

/// A script: options, then events in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Lines such as `--ip_version=ipv6`.
    pub options: Vec<Choice>,
    /// Packets, calls, commands and code, in the order of the text.
    pub events: Vec<Event>,
}

/// An option of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Position of the option in the text.
    pub at: At,
    /// Its name, without dashes.
    pub name: String,
    /// Its value, without spaces around it; empty if there is none.
    pub value: String,
}

/// The stack that an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Our stack (`ours:`).
    Ours,
    /// The kernel (`kernel:`).
    Kernel,
}

/// One event: what is done or expected at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Position of the event in the text.
    pub at: At,
    /// The stack that it is for; `None`: any.
    pub only: Option<Only>,
    /// When it happens.
    pub time: Time,
    /// What is done, or expected of the stack.
    pub action: Action,
}

/// A time of a script, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Time since the start of the script.
    Absolute(u64),
    /// Time since the event before (`+.1`).
    Relative(u64),
    /// Any time (`*`), for packets that the stack sends.
    Any,
    /// Between two times since the start (`1~1.5`).
    Between(u64, u64),
    /// Between two times since the event before (`+1~+1.5`).
    RelativeBetween(u64, u64),
}

/// What an event does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A packet that is given to the stack, or expected from it.
    Packet(Packet),
    /// A call of a socket function.
    Call(Call),
    /// Commands in backticks.
    Commands(Vec<Command>),
    /// Assertions over `tcpi_` fields, and variables.
    Code(Vec<Statement>),
}

/// A shell command that is understood; no shell runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A setting of the system: name with dots, value.
    Set(String, String),
    /// The same, where the stack has the setting.
    SetIfKnown(String, String),
    /// A shell file, whose settings are read: its path from the directory of the script.
    File(String),
    /// Configuration of the path manager of Multipath TCP.
    Manage(mptcp::Manage),
    /// The queue of the device is `fq`: senders pace.
    Pace,
    /// A parameter of a module of the kernel: module, parameter, value.
    Parameter(String, String, String),
}

/// A packet that the stack is given, or is expected to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// To the stack (`<`) instead of from it (`>`).
    pub inbound: bool,
    /// Number of the connection (`[conn 2]`); `None`: that of the packet before.
    pub connection: Option<u32>,
    /// Names of the source and destination address (`addr[caddr1] > addr[saddr0]`); the digits at their ends count the
    /// addresses of a host.
    pub between: (Option<String>, Option<String>),
    /// ECN field; `None`: not ECN-capable where it is sent, not compared where it is expected.
    pub ecn: Option<EcnField>,
    /// The TCP segment or the ICMP error that it carries.
    pub body: Body,
}

/// The ECN field of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnField {
    /// This codepoint (`noecn`, `ect0`, `ect1`, `ce`).
    Is(Ecn),
    /// ECT(0) or ECT(1) (`ect01`), for packets that are expected.
    Capable,
    /// The whole byte of traffic class or type of service (`tos 0x28`): DSCP and ECN field.
    Class(u8),
}

impl EcnField {
    /// The byte of traffic class; `None` if it is not known.
    pub(crate) fn class(self) -> Option<u8> {
        match self {
            Self::Is(ecn) => Some(ecn as u8),
            Self::Class(class) => Some(class),
            Self::Capable => None,
        }
    }
}

/// What a packet carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A TCP segment.
    Tcp(Segment),
    /// An ICMP error about a segment of the stack.
    Icmp(Icmp),
}

/// A TCP segment; sequence numbers are relative to the initial ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Control bits, as in the header.
    pub flags: u16,
    /// Sequence number of the first byte of payload; in a SYN the initial sequence number.
    pub seq: u32,
    /// Bytes of payload.
    pub len: u32,
    /// Acknowledgement number; `None` with ACK counts as 0.
    pub ack: Option<u32>,
    /// Window field, not scaled; `None`: not compared, 0 where it is sent.
    pub window: Option<u16>,
    /// Urgent pointer; `None` counts as 0.
    pub urgent: Option<u16>,
    /// Options; `None`: any (`<...>`).
    pub options: Option<Vec<TcpOption>>,
}

impl Segment {
    /// The acknowledgement number that it has; with ACK and without a number it is 0, the initial sequence number.
    pub(crate) fn acknowledges(&self) -> Option<u32> {
        self.ack.or((self.flags & 0x010 != 0).then_some(0))
    }
}

/// A TCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// `nop`: one byte of padding between options.
    Nop,
    /// `eol`: the end of the list; not compared where it is expected.
    Eol,
    /// `mss 1460`: maximum segment size in bytes.
    Mss(u16),
    /// `wscale 7`: shift of the window scale.
    WindowScale(u8),
    /// `sackOK`: SACK is permitted.
    SackPermitted,
    /// `sack 1:2 5:6`
    Sack(Vec<(u32, u32)>),
    /// `TS val 1 ecr 2`
    Timestamps(u32, u32),
    /// `FO` or `FO 0123456789abcdef`
    FastOpen(Vec<u8>),
    /// `FOEXP` or `FOEXP 0123456789abcdef`
    FastOpenExperimental(Vec<u8>),
    /// An option of Multipath TCP.
    Mptcp(mptcp::Mptcp),
    /// `kind 253 0123`: another option and its bytes after kind and length.
    Other(u8, Vec<u8>),
}

/// An ICMP error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// The segment in question: sequence number and payload.
    pub about: (u32, u32),
    /// Type, such as `unreachable`.
    pub kind: String,
    /// Code, such as `frag_needed`.
    pub code: Option<String>,
    /// MTU of the next link.
    pub mtu: Option<u32>,
}

/// A call of a socket function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The time at which a call that blocks returns, in microseconds from where its start counts.
    pub until: Option<u64>,
    /// Name of the function.
    pub name: String,
    /// Arguments, in the order of the text.
    pub args: Vec<Arg>,
    /// What it returns.
    pub result: Outcome,
}

/// An argument of a call as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// `...`: what the runner supplies, such as a buffer or an address.
    Dots,
    /// A number, decimal or hexadecimal (`0x`).
    Int(i64),
    /// `A|B`: one name, or several combined.
    Symbols(Vec<String>),
    /// `[1, 2]`: a list of arguments; values of options may be lists of one.
    List(Vec<Arg>),
    /// `{fd=3, events=POLLIN}`; names may end with a number or dots in parentheses, as in `msg_iov(2)`.
    Fields(Vec<(String, Arg)>),
    /// `{..., 40}`: a buffer of a message and its length.
    Parts(Vec<Arg>),
    /// `"reno"`: text in quotation marks.
    Text(String),
    /// `NULL`: a null pointer, such as no buffer.
    Null,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Any result (`?`): it is not compared.
    Any,
    /// This value; -1 accepts any error.
    Value(i64),
    /// -1 and an error number, such as `EAGAIN`.
    Error(String),
}

/// A statement of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// `assert a`: a mismatch if the value is 0.
    Assert(Expr),
    /// `a = b`; `a += b` is `a = a + b`.
    Assign(String, Expr),
    /// `print(a, b)`: notes the values of all names in the list among the packets.
    Print(Vec<Expr>),
}

/// An expression over `tcpi_` fields and variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A number, decimal or hexadecimal (`0x`).
    Int(i64),
    /// A field, a variable or a constant.
    Name(At, String),
    /// `'a'`, for what Python would print.
    Text(String),
    /// `(a, b)`, for what Python would print.
    Tuple(Vec<Expr>),
    /// `not a`: 1 if the value is 0, otherwise 0.
    Not(Box<Expr>),
    /// `-a`: the negative value.
    Minus(Box<Expr>),
    /// `a op b`
    Binary(Op, Box<Expr>, Box<Expr>),
}

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `or`: the first operand unless it is 0, otherwise the second.
    Or,
    /// `and`: 0 if the first operand is 0, otherwise the second.
    And,
    /// `==`: 1 if equal, otherwise 0.
    Eq,
    /// `!=`: 1 if not equal, otherwise 0.
    Ne,
    /// `<=`: 1 if less or equal, otherwise 0.
    Le,
    /// `>=`: 1 if greater or equal, otherwise 0.
    Ge,
    /// `<`: 1 if less, otherwise 0.
    Lt,
    /// `>`: 1 if greater, otherwise 0.
    Gt,
    /// `|`: bitwise or.
    BitOr,
    /// `&`: bitwise and.
    BitAnd,
    /// `+`: the sum, which saturates at 64 bits.
    Add,
    /// `-`: the difference, which saturates at 64 bits.
    Sub,
    /// `*`: the product, which saturates at 64 bits.
    Mul,
    /// `//` or `/`: towards minus infinity
    Div,
    /// `%`: the remainder of `//`, with the sign of the divisor.
    Rem,
}

impl Op {
    /// All, with text and level; a higher level binds more tightly.
    pub(crate) const ALL: [(Self, &'static str, u8); 15] = [
        (Self::Or, "or", 0),
        (Self::And, "and", 1),
        (Self::Eq, "==", 3),
        (Self::Ne, "!=", 3),
        (Self::Le, "<=", 3),
        (Self::Ge, ">=", 3),
        (Self::Lt, "<", 3),
        (Self::Gt, ">", 3),
        (Self::BitOr, "|", 4),
        (Self::BitAnd, "&", 5),
        (Self::Add, "+", 6),
        (Self::Sub, "-", 6),
        (Self::Mul, "*", 7),
        (Self::Div, "//", 7),
        (Self::Rem, "%", 7),
    ];

    pub(crate) fn text(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(op, ..)| *op == self)
            .map_or("", |(_, text, _)| text)
    }
}
