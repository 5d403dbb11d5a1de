//! A script on a stack.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gargalo_units::{Duration, Ecn, Instant};
use gargalo_wire::ip::Addresses;
use serde::Serialize;

use crate::assertion;
use crate::ast::{
    Action, At, Body, Call, Command, EcnField, Event, Expr, Only, Outcome, Packet, Script,
    Statement, Time,
};
use crate::calls;
use crate::cookies::Cookies;
use crate::fault::Fault;
use crate::multipath::{Multipath, Side, number_of};
use crate::packet::{Connection, Live, differences};
use crate::sockets::{Pending, Sockets};
use crate::stack::{Sent, Setup, Stack, StackError};

/// Packets that are shown with a mismatch.
const SHOWN: usize = 40;

/// How a script ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// Everything was as the script says.
    Passed,
    /// Something differed from the script.
    Failed(Mismatch),
    /// A part of it cannot be read, or the stack cannot do it.
    Unsupported(Fault),
    /// The system refused something.
    Broken {
        /// What was refused, with the error of the system.
        message: String,
    },
}

/// The first difference from the script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Position of the event in the text of the script.
    #[serde(flatten)]
    pub at: At,
    /// The event in the words of the language.
    pub expected: String,
    /// What was observed instead.
    pub came: String,
    /// The packets so far, oldest first.
    pub packets: Vec<String>,
}

/// Ends a run early.
pub(crate) enum Stop {
    Mismatch(At, String, String),
    Fault(Fault),
    Broken(String),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

pub(crate) type Step<T = ()> = Result<T, Stop>;

/// Checks what can be checked without running: calls, assertions, that the script has events.
///
/// # Errors
/// The first part that is not supported.
pub fn check(script: &Script, setup: &Setup) -> Result<(), Fault> {
    if script.events.is_empty() {
        let fault = Fault::new(At { line: 1, column: 1 }, "the script has no events");
        return Err(fault.help("an event is a time and a packet, a call or an assertion"));
    }
    let mut variables = BTreeSet::new();
    for event in &script.events {
        match &event.action {
            Action::Call(call) => {
                let asked = calls::understand(call, setup.v6);
                asked.map_err(|(message, help)| Fault::new(event.at, message).help(help))?;
            }
            Action::Code(list) => {
                let checked = list
                    .iter()
                    .try_for_each(|s| assertion::check(s, &mut variables));
                checked.map_err(|fault| fault.or_at(event.at))?;
            }
            Action::Packet(Packet {
                inbound: true,
                body: Body::Tcp(s),
                ..
            }) if s.options.is_none() => {
                let fault = Fault::new(event.at, "an inbound packet has no options `<...>`");
                return Err(fault.help("write its options, or none"));
            }
            Action::Packet(_) | Action::Commands(_) => {}
        }
        if let Action::Packet(p) = &event.action {
            for name in [&p.between.0, &p.between.1].into_iter().flatten() {
                number_of(name).map_err(|message| {
                    Fault::new(event.at, message).help("write addr[caddr1] > addr[saddr0]")
                })?;
            }
        }
    }
    Ok(())
}

/// Runs a script that was checked; `notes` gets the settings that are not set.
pub fn run(
    script: &Script,
    setup: &Setup,
    only: Only,
    stack: &mut dyn Stack,
    notes: &mut Vec<String>,
) -> Verdict {
    let mut events: Vec<&Event> = script.events.iter().collect();
    events.retain(|e| e.only.is_none_or(|o| o == only));
    // Settings at the start belong to the system that the script finds.
    let first = events
        .iter()
        .take_while(|e| matches!(e.action, Action::Commands(_)));
    for event in first {
        let Action::Commands(list) = &event.action else {
            break;
        };
        for command in list {
            match command_of(stack, command, notes).map_err(|e| stopped(e, event.at)) {
                Err(Stop::Broken(message)) => return Verdict::Broken { message },
                Err(Stop::Fault(fault)) => return Verdict::Unsupported(fault),
                _ => {}
            }
        }
    }
    let start = stack.now();
    let mut runner = Runner {
        setup,
        stack,
        only,
        start,
        base: 0,
        connections: Vec::new(),
        current: 0,
        sockets: Sockets::default(),
        pending: None,
        sent: VecDeque::new(),
        slip: 0,
        log: Vec::new(),
        cookies: Cookies::default(),
        multipath: Multipath::new(setup.bases()),
        ports: 0,
        listens: false,
        variables: BTreeMap::new(),
        notes,
    };
    let ended = events
        .iter()
        .skip_while(|e| matches!(e.action, Action::Commands(_)))
        .try_for_each(|e| runner.event(e))
        .and_then(|()| runner.finish(events.last().copied()));
    match ended {
        Ok(()) => Verdict::Passed,
        Err(Stop::Fault(fault)) => Verdict::Unsupported(fault),
        Err(Stop::Broken(message)) => Verdict::Broken { message },
        Err(Stop::Mismatch(at, expected, came)) => {
            let skipped = runner.log.len().saturating_sub(SHOWN);
            Verdict::Failed(Mismatch {
                at,
                expected,
                came,
                packets: runner.log.split_off(skipped),
            })
        }
    }
}

pub(crate) struct Runner<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) stack: &'a mut dyn Stack,
    only: Only,
    /// When the script's time began.
    start: Instant,
    /// Time of the event before, in microseconds.
    base: u64,
    connections: Vec<Connection>,
    /// Index of the connection of the packet before.
    current: usize,
    pub(crate) sockets: Sockets,
    /// A call that has not returned.
    pub(crate) pending: Option<Pending>,
    /// Packets of the stack that no event has expected yet.
    sent: VecDeque<(Instant, Duration, Live)>,
    /// How late events were, in microseconds.
    pub(crate) slip: u64,
    log: Vec<String>,
    cookies: Cookies,
    multipath: Multipath,
    /// Ports of the other end that were used.
    ports: u16,
    /// A socket listens, and no connection was opened to it.
    listens: bool,
    /// Variables of code.
    variables: BTreeMap<String, i64>,
    notes: &'a mut Vec<String>,
}

impl Runner<'_> {
    fn event(&mut self, event: &Event) -> Step {
        let (from, to) = match event.time {
            Time::Absolute(t) => (t, t),
            Time::Relative(t) => (self.base + t, self.base + t),
            Time::Any => (0, u64::MAX / 4_000),
            Time::Between(a, b) => (a, b),
            Time::RelativeBetween(a, b) => (self.base + a, self.base + b),
        };
        let before = self.base;
        self.base = from;
        match &event.action {
            Action::Packet(p) if !p.inbound => {
                let is_exact = matches!(event.time, Time::Absolute(_) | Time::Relative(_));
                let came = self.expect(event, p, from, to)?;
                if !is_exact {
                    self.base = self.micros(came);
                }
                return Ok(());
            }
            _ => self.reach(from)?,
        }
        self.catch_up(from);
        match &event.action {
            Action::Packet(p) => {
                self.inject(event, p)?;
                self.catch_up(from);
                Ok(())
            }
            Action::Call(call) => {
                self.listens |= call.name == "listen";
                let relative = matches!(event.time, Time::Relative(_));
                let until = call.until.map(|t| if relative { before + t } else { t });
                self.call(event, call, until)?;
                if until.is_none() {
                    self.catch_up(from);
                }
                Ok(())
            }
            Action::Commands(list) => list.iter().try_for_each(|command| {
                let done = command_of(self.stack, command, self.notes);
                done.map_err(|e| stopped(e, event.at))
            }),
            Action::Code(list) => {
                self.settle(event)?;
                list.iter().try_for_each(|s| self.code(event, s))
            }
        }
    }

    /// Where this process did not run in time, all later times are measured from when it did.
    fn catch_up(&mut self, planned: u64) {
        if self.only == Only::Kernel {
            let late = self.now().saturating_sub(planned);
            self.start += Duration::from_micros(late);
            self.slip += late;
        }
    }

    fn instant(&self, micros: u64) -> Instant {
        self.start + Duration::from_micros(micros)
    }

    pub(crate) fn micros(&self, at: Instant) -> u64 {
        at.saturating_since(self.start).as_micros()
    }

    /// The time since the start, in microseconds.
    pub(crate) fn now(&self) -> u64 {
        self.micros(self.stack.now())
    }

    pub(crate) fn tolerance(&self) -> u64 {
        self.setup.tolerance.as_micros()
    }

    /// Lets the stack go on until `until`, or until it has sent a packet if `one` is wanted.
    pub(crate) fn go(&mut self, until: u64, one: bool) -> Step {
        let until = self.instant(until);
        loop {
            let busy = self.pending.as_ref().is_some_and(|p| p.done.is_none());
            let came = self.stack.wait(until, busy);
            let came = came.map_err(|e| stopped(e, At::default()))?;
            let is_idle = came.is_none();
            if let Some(Sent { at, doubt, bytes }) = came
                && let Some(live) = Live::parse(&bytes)
                && self.setup.number_of_remote(live.remote).is_some()
            {
                let index = self.connection_of(&live);
                if let Some(c) = self.connections.get_mut(index) {
                    for option in live.multipath() {
                        self.multipath.observe(&mut c.flow, Side::Stack, &option);
                    }
                }
                let line = self.line(index, &live);
                self.note(at, &line);
                self.sent.push_back((at, doubt, live));
            }
            self.try_pending()?;
            if (one && !self.sent.is_empty()) || (is_idle && self.stack.now() >= until) {
                return Ok(());
            }
        }
    }

    fn reach(&mut self, at: u64) -> Step {
        self.go(at, false)
    }

    /// A packet of the stack as a script would write it.
    fn line(&self, index: usize, live: &Live) -> String {
        let Some(c) = self.connections.get(index) else {
            return String::new();
        };
        let mut packet = c.describe(live);
        self.multipath.tell(&c.flow, &mut packet);
        if packet.ecn == Some(EcnField::Is(Ecn::NotEct)) {
            packet.ecn = None;
        }
        if self.connections.len() == 1 {
            packet.connection = None;
        }
        packet.to_string()
    }

    fn note(&mut self, at: Instant, line: &str) {
        let t = self.micros(at);
        let line = format!("{}.{:06} {line}", t / 1_000_000, t % 1_000_000);
        self.log.push(line);
    }

    /// Index of the connection of a packet; a new one if there is none.
    fn connection_of(&mut self, live: &Live) -> usize {
        let number = |n: Option<u8>| n.unwrap_or_default();
        let addresses = [
            number(self.setup.number_of_local(live.local)),
            number(self.setup.number_of_remote(live.remote)),
        ];
        let same = |c: &Connection| {
            let ports = (c.local_port, c.remote_port);
            ports == (live.local_port, live.remote_port) && c.flow.addresses == addresses
        };
        if let Some(i) = self.connections.iter().position(same) {
            return i;
        }
        let number = self.next_number();
        let new = Connection::new(number, live.local_port, live.remote_port, addresses);
        self.connections.push(new);
        self.connections.len() - 1
    }

    fn next_number(&self) -> u32 {
        let numbers = self.connections.iter().map(|c| c.number);
        numbers.max().unwrap_or(0) + 1
    }

    fn inject(&mut self, event: &Event, packet: &Packet) -> Step {
        self.current = self.connection_for(event, packet)?;
        let mut live = self.cookies.live(packet);
        let Some(c) = self.connections.get_mut(self.current) else {
            return Ok(());
        };
        let options = self.multipath.live(&mut c.flow, &mut live);
        options.map_err(|message| {
            let help =
                "the packets before must show it, as in mpcapable v1 flags[flag_h] key[skey]";
            Fault::new(event.at, message).help(help)
        })?;
        let [local, remote] = c.flow.addresses;
        let (local, remote) = (
            self.setup.address(false, local),
            self.setup.address(true, remote),
        );
        let between = Addresses::new(remote, local);
        let datagram = between.and_then(|between| c.write(&live, between));
        let Some(datagram) = datagram else {
            let fault = Fault::new(event.at, "this packet does not exist in this version of IP");
            return Err(Stop::Fault(fault.help(
                "a datagram has at most 65535 bytes; IPv6 has packet_too_big instead of frag_needed (set --ip_version)",
            )));
        };
        let now = self.stack.now();
        self.note(now, &packet.to_string());
        let received = self.stack.receive(datagram);
        received.map_err(|e| stopped(e, event.at))?;
        self.try_pending()
    }

    /// The connection of a packet to the stack; the other end opens it if there is none.
    fn connection_for(&mut self, event: &Event, packet: &Packet) -> Step<usize> {
        let number = |name: &Option<String>| {
            let name = name.as_deref();
            name.and_then(|n| number_of(n).ok())
        };
        let (from, to) = (number(&packet.between.0), number(&packet.between.1));
        let fits = |c: &Connection| {
            let [local, remote] = c.flow.addresses;
            to.is_none_or(|n| n == local) && from.is_none_or(|n| n == remote)
        };
        let opens = matches!(&packet.body, Body::Tcp(s) if s.flags & 0x12 == 0x02);
        let addresses = [to.unwrap_or(0), from.unwrap_or(0)];
        let found = match packet.connection {
            Some(n) => self.connections.iter().position(|c| c.number == n),
            // What listens anew is for another connection.
            None if opens && self.listens && from.is_none() && to.is_none() => None,
            None if from.is_none() && to.is_none() => {
                (!self.connections.is_empty()).then_some(self.current)
            }
            None => {
                let now = self.connections.get(self.current).is_some_and(fits);
                let last = self.connections.iter().rposition(fits);
                if now { Some(self.current) } else { last }
            }
        };
        match found.and_then(|i| Some((i, self.connections.get(i)?))) {
            Some((i, c)) if fits(c) => Ok(i),
            Some((_, c)) => {
                let message = format!("connection {} has other addresses", c.number);
                let help = "leave them out, or give another number to a new connection";
                Err(Fault::new(event.at, message).help(help).into())
            }
            None if opens || self.connections.is_empty() || packet.connection.is_some() => {
                Ok(self.open(packet.connection, addresses))
            }
            None => {
                let fault = Fault::new(event.at, "no connection has these addresses");
                Err(fault.help("a connection begins with a SYN").into())
            }
        }
    }

    /// A connection that the other end opens.
    fn open(&mut self, number: Option<u32>, addresses: [u8; 2]) -> usize {
        let number = number.unwrap_or_else(|| self.next_number());
        self.listens = false;
        self.ports += 1;
        let remote = 40_000 + self.ports;
        let new = Connection::new(number, self.setup.local_port(), remote, addresses);
        self.connections.push(new);
        self.connections.len() - 1
    }

    fn expect(&mut self, event: &Event, packet: &Packet, from: u64, to: u64) -> Step<Instant> {
        let tolerance = self.tolerance();
        let mismatch = |came: String| Stop::Mismatch(event.at, event.to_string(), came);
        // An event that was late made the round trip longer, and the timeout three times that (RFC 6298 §2.2), which
        // back-off doubles.
        let latest = to.saturating_add(tolerance + 12 * self.slip);
        let Some((at, doubt, live, several)) = self.next_packet(packet, latest)? else {
            return Err(mismatch("no packet".to_owned()));
        };
        let index = self.connection_of(&live);
        let expected_index = match packet.connection {
            Some(n) => self.connections.iter().position(|c| c.number == n),
            // A connection that the stack opens becomes the current one.
            None if live.is_syn() => Some(index),
            None => Some(self.current.min(self.connections.len().saturating_sub(1))),
        };
        let ticks = self.setup.tick.map(|tick| {
            let late = self.setup.tolerance + Duration::from_micros(self.slip);
            let ticks = late.as_nanos() / tick.as_nanos().max(1) + 1;
            u32::try_from(ticks).unwrap_or(u32::MAX)
        });
        let Some(c) = self.connections.get_mut(index) else {
            return Err(mismatch("no packet".to_owned()));
        };
        if let Body::Tcp(segment) = &packet.body {
            c.learn(segment, &live);
        }
        let mut came = c.describe(&live);
        self.cookies.name(packet, &mut came);
        let mut expected = packet.clone();
        let wrong = self.multipath.settle(&mut c.flow, &mut expected, &mut came);
        let mut differences = differences(&expected, &came, ticks, several);
        differences.extend(wrong);
        let [local, remote] = c.flow.addresses;
        for (name, there) in [(&packet.between.0, local), (&packet.between.1, remote)] {
            let wanted = name.as_deref().and_then(|n| number_of(n).ok());
            if wanted.is_some_and(|n| n != there) {
                differences.push(format!(
                    "its addresses are {local} of the stack, {remote} of the other end"
                ));
            }
        }
        if expected_index != Some(index) {
            differences.push(format!("it belongs to connection {}", c.number));
        }
        self.current = index;
        let t = self.micros(at);
        let earliest = t.saturating_sub(doubt.as_micros());
        if t + tolerance + self.slip < from || earliest > latest {
            let (a, b) = (from as f64 / 1e6, to as f64 / 1e6);
            let time = t as f64 / 1e6;
            differences.push(format!(
                "time: expected {a:.6} to {b:.6} s, came {time:.6} s"
            ));
        }
        if differences.is_empty() {
            return Ok(at);
        }
        let line = self.line(index, &live);
        Err(mismatch(format!("{line} ({})", differences.join("; "))))
    }

    /// The next packet of the stack, with when the last part of it came. What is expected to be longer than a segment
    /// may come as several, as Linux leaves it to the device to cut; then the last is `true`.
    fn next_packet(
        &mut self,
        expected: &Packet,
        latest: u64,
    ) -> Step<Option<(Instant, Duration, Live, bool)>> {
        // With `*` a packet may take as long as a call of a user.
        let most = latest.min(self.now() + 200_000_000);
        let (mut at, mut doubt, mut live) = loop {
            if self.sent.is_empty() {
                self.go(most, true)?;
            }
            match self.sent.pop_front() {
                None => return Ok(None),
                Some((_, _, live)) if self.is_of_another(expected, &live) => {}
                Some(came) => break came,
            }
        };
        let mut several = false;
        let wanted = match &expected.body {
            Body::Tcp(s) if self.may_be_several(s.len) && live.len > 0 => s.len,
            _ => 0,
        };
        while live.len < wanted {
            if self.sent.is_empty() {
                self.go(most, true)?;
            }
            match self.sent.front() {
                Some((_, _, next)) if live.len + next.len <= wanted && live.join(next) => {}
                _ => break,
            }
            several = true;
            if let Some((later, more, _)) = self.sent.pop_front() {
                (at, doubt) = (later, more);
            }
        }
        Ok(Some((at, doubt, live, several)))
    }

    /// Whether a packet is of an earlier connection, which a script that does not number connections has left.
    fn is_of_another(&mut self, expected: &Packet, live: &Live) -> bool {
        let is_named = expected.connection.is_some() || expected.between != (None, None);
        if self.setup.strict_end || is_named || live.is_syn() {
            return false;
        }
        let opens = matches!(&expected.body, Body::Tcp(s) if s.flags & 0x12 == 0x02);
        let known = self.connections.len();
        opens || (known > 1 && self.connection_of(live) != self.current)
    }

    /// Whether so many bytes are more than a segment of the stack has.
    fn may_be_several(&mut self, len: u32) -> bool {
        if self.setup.strict_segments {
            return false;
        }
        let socket = self.sockets.latest();
        let mss = socket.and_then(|s| self.stack.info(s, "snd_mss"));
        mss.is_none_or(|mss| i64::from(len) > mss)
    }

    /// Runs a statement of code.
    fn code(&mut self, event: &Event, statement: &Statement) -> Step {
        let mut known = BTreeMap::new();
        match statement {
            Statement::Assert(e) => {
                if self.value(event, e, &mut known)? != 0 {
                    return Ok(());
                }
                let values = known.iter().map(|(name, n)| format!("{name} = {n}"));
                let came: Vec<String> = values.collect();
                let expected = format!("assert {e}");
                Err(Stop::Mismatch(event.at, expected, came.join(", ")))
            }
            Statement::Assign(name, e) => {
                let value = self.value(event, e, &mut known)?;
                self.variables.insert(name.clone(), value);
                Ok(())
            }
            Statement::Print(list) => {
                let mut names = Vec::new();
                list.iter().for_each(|e| assertion::names_of(e, &mut names));
                let mut shown = Vec::new();
                for (at, name) in names {
                    let e = Expr::Name(at, name.clone());
                    let n = self.value(event, &e, &mut known)?;
                    shown.push(format!("{name} = {n}"));
                }
                let now = self.stack.now();
                self.note(now, &format!("print: {}", shown.join(", ")));
                Ok(())
            }
        }
    }

    /// The value of an expression; `known` gets those of the fields and variables in it.
    fn value(&mut self, event: &Event, e: &Expr, known: &mut BTreeMap<String, i64>) -> Step<i64> {
        let socket = self.sockets.latest();
        let (stack, variables) = (&mut self.stack, &self.variables);
        let value = assertion::value(e, &mut |at, name| {
            let found = known.get(name).or_else(|| variables.get(name)).copied();
            if let Some(n) = found.or_else(|| assertion::constant(name)) {
                if name.starts_with(|c: char| c.is_ascii_lowercase()) {
                    known.insert(name.to_owned(), n);
                }
                return Ok(n);
            }
            let Some(socket) = socket else {
                let fault = Fault::new(at, "there is no connection to ask for TCP_INFO");
                return Err(fault.help("assert after accept or connect, and before close"));
            };
            let field = name.trim_start_matches("tcpi_");
            let n = stack.info(socket, field).ok_or_else(|| {
                let fault = Fault::new(at, format!("this stack does not have {name}"));
                fault.help("put the assertion behind `kernel:` or `ours:`, or leave it out")
            })?;
            known.insert(name.to_owned(), n);
            Ok(n)
        });
        value.map_err(|fault| Stop::Fault(fault.or_at(event.at)))
    }

    /// The end: no call is left and, if that is required, the stack has sent nothing before the last event that no
    /// event expected.
    fn finish(&mut self, last: Option<&Event>) -> Step {
        let Some(last) = last else {
            return Ok(());
        };
        self.settle(last)?;
        if !self.setup.strict_end {
            return Ok(());
        }
        let end = self.base.saturating_sub(self.tolerance());
        let left = self.sent.iter().find(|(at, ..)| self.micros(*at) < end);
        let Some((at, _, live)) = left.cloned() else {
            return Ok(());
        };
        let index = self.connection_of(&live);
        let packet = self.line(index, &live);
        let t = self.micros(at) as f64 / 1e6;
        let came = format!("{packet} at {t:.6} s, which no event expects");
        Err(Stop::Mismatch(
            last.at,
            "no other packet until the last event".to_owned(),
            came,
        ))
    }
}

/// The result of a call in the words of a script.
pub(crate) fn outcome_text(call: &Call, outcome: &Outcome) -> String {
    format!("{}(...) = {outcome}", call.name)
}

fn command_of(
    stack: &mut dyn Stack,
    command: &Command,
    notes: &mut Vec<String>,
) -> Result<(), StackError> {
    match command {
        Command::Set(name, value) => stack.set(name, value),
        Command::SetIfKnown(name, value) => match stack.set(name, value) {
            Err(StackError::Unsupported(_)) => {
                notes.push(format!("this stack does not take {name}={value}"));
                Ok(())
            }
            other => other,
        },
        // These were replaced by what is in them.
        Command::File(_) => Ok(()),
        Command::Manage(manage) => stack.manage(manage),
        Command::Pace => stack.pace(),
        Command::Parameter(module, name, value) => stack.set_parameter(module, name, value),
    }
}

pub(crate) fn stopped(e: StackError, at: At) -> Stop {
    match e {
        StackError::Unsupported(message) => Stop::Fault(Fault::new(at, message)),
        StackError::System(message) => Stop::Broken(message),
    }
}
