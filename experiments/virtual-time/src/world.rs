//! Virtual time: the programs, what is on its way between them, and which of them runs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ffi::CString;

use libc::{c_long, pid_t, user_regs_struct};

use crate::clock::{self, Chance, SECOND};
use crate::link::Link;
use crate::trace;
use crate::wait::Waiting;

/// The first port that a socket without one gets.
const FIRST_PORT: u16 = 49_152;
/// Reads of clocks without a wait, after which a program counts as one that waits by looking at the time.
const MOST_LOOKS: u32 = 100_000;

/// A traced program.
struct Program {
    pid: pid_t,
    state: State,
    chance: Chance,
    /// Its sockets of UDP, shared with it.
    sockets: BTreeMap<i32, i32>,
    /// It does this call again.
    again: Option<Box<Waiting>>,
    looks: u32,
}

/// What a program does.
enum State {
    /// It can go on, with this signal.
    Ready(i32),
    /// Until then.
    Asleep(u64),
    /// For something to read.
    Waiting(Box<Waiting>),
    /// It has ended with this code.
    Ended(i32),
}

/// What a stop leads to.
enum Next {
    Go,
    Stop(State),
}

/// A datagram on its way.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Flying {
    at: u64,
    number: u64,
    /// The sender's socket, shared.
    socket: i32,
    to: Option<Vec<u8>>,
    payload: Vec<u8>,
}

/// All of it.
pub struct World {
    link: Link,
    now: u64,
    until: u64,
    seed: u64,
    log: bool,
    programs: Vec<Program>,
    flying: BinaryHeap<Reverse<Flying>>,
    numbers: u64,
    ports: u16,
}

impl World {
    /// A world that ends at this instant.
    pub fn new(link: Link, until: u64, seed: u64, log: bool) -> Self {
        Self {
            link,
            now: 0,
            until,
            seed,
            log,
            programs: Vec::new(),
            flying: BinaryHeap::new(),
            numbers: 0,
            ports: 0,
        }
    }

    /// Runs the programs until the last one ends; returns its code.
    pub fn run(mut self, programs: &[Vec<CString>]) -> Result<u8, String> {
        for words in programs {
            let number = self.programs.len();
            self.programs.push(Program {
                pid: trace::start(words)?,
                state: State::Ready(0),
                chance: Chance::new(self.seed, number as u64),
                sockets: BTreeMap::new(),
                again: None,
                looks: 0,
            });
            // A server listens before a client begins.
            self.go_on(number)?;
        }
        let last = programs.len() - 1;
        let outcome = loop {
            if let State::Ended(code) = self.programs[last].state {
                break Ok(u8::try_from(code).unwrap_or(1));
            }
            let ready = |p: &Program| matches!(p.state, State::Ready(_));
            if let Some(number) = self.programs.iter().position(ready) {
                self.go_on(number)?;
            } else if !self.pass()? {
                break Err(match self.now >= self.until {
                    true => format!("not ended at {} s", self.until as f64 / 1e9),
                    false => "all programs wait for ever".to_owned(),
                });
            }
        };
        for p in &self.programs {
            // SAFETY: it takes numbers.
            unsafe { libc::kill(p.pid, libc::SIGKILL) };
        }
        eprintln!("virtual-time: {:.6} s", self.now as f64 / 1e9);
        outcome
    }

    /// Lets time pass to what happens next; false: nothing does.
    fn pass(&mut self) -> Result<bool, String> {
        let ends = self.programs.iter().filter_map(|p| match &p.state {
            State::Asleep(until) => Some(*until),
            State::Waiting(w) => w.deadline,
            State::Ready(_) | State::Ended(_) => None,
        });
        let arrives = self.flying.peek().map(|Reverse(f)| f.at);
        let Some(next) = ends.chain(arrives).min() else {
            return Ok(false);
        };
        self.now = self.now.max(next);
        if self.now >= self.until {
            return Ok(false);
        }
        let mut arrived = false;
        while let Some(Reverse(f)) = self.flying.peek()
            && f.at <= self.now
        {
            arrived = true;
            if let Some(Reverse(f)) = self.flying.pop() {
                deliver(&f);
            }
        }
        for p in &mut self.programs {
            let wakes = match &p.state {
                State::Asleep(until) => *until <= self.now,
                State::Waiting(w) => arrived || w.deadline.is_some_and(|d| d <= self.now),
                State::Ready(_) | State::Ended(_) => false,
            };
            if wakes && let State::Waiting(w) = std::mem::replace(&mut p.state, State::Ready(0)) {
                w.again(p.pid)?;
                p.again = Some(w);
            }
        }
        Ok(true)
    }

    /// Lets a program run until it waits or ends.
    fn go_on(&mut self, number: usize) -> Result<(), String> {
        let pid = self.programs[number].pid;
        self.programs[number].looks = 0;
        while let State::Ready(signal) = self.programs[number].state {
            trace::request(libc::PTRACE_CONT, pid, 0, signal as usize, "go on")?;
            self.programs[number].state = State::Ready(0);
            let status = trace::wait(pid)?;
            self.programs[number].state = match status {
                s if libc::WIFEXITED(s) => State::Ended(libc::WEXITSTATUS(s)),
                s if libc::WIFSIGNALED(s) => State::Ended(128 + libc::WTERMSIG(s)),
                s if s >> 16 == libc::PTRACE_EVENT_SECCOMP => match self.call(number)? {
                    Next::Go => State::Ready(0),
                    Next::Stop(state) => state,
                },
                s if s >> 16 != 0 => {
                    let what = match s >> 16 {
                        libc::PTRACE_EVENT_CLONE => "a thread",
                        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => "a process",
                        _ => "another program",
                    };
                    return Err(format!(
                        "program {number} starts {what}: only one can run at any instant, and who is first \
                         would be chance"
                    ));
                }
                s => State::Ready(libc::WSTOPSIG(s)),
            };
        }
        Ok(())
    }

    /// A call at which a program has stopped.
    fn call(&mut self, number: usize) -> Result<Next, String> {
        let now = self.now;
        let p = &mut self.programs[number];
        let regs = trace::registers(p.pid)?;
        let call = regs.orig_rax as c_long;
        match call {
            libc::SYS_clock_gettime => {
                write_time(p.pid, regs.rsi, clock::shown(regs.rdi as i32, now), 1)?;
                return look(p, &regs, 0, now);
            }
            libc::SYS_gettimeofday => {
                let shows = clock::shown(libc::CLOCK_REALTIME, now);
                if regs.rdi != 0 {
                    write_time(p.pid, regs.rdi, shows, 1000)?;
                }
                return look(p, &regs, 0, now);
            }
            libc::SYS_time => {
                let seconds = clock::shown(libc::CLOCK_REALTIME, now) / SECOND;
                if regs.rdi != 0 {
                    trace::write(p.pid, regs.rdi, &seconds.to_le_bytes())?;
                }
                return look(p, &regs, seconds as i64, now);
            }
            libc::SYS_getrandom => {
                let data = p.chance.bytes(regs.rsi.min(1 << 16) as usize);
                trace::write(p.pid, regs.rdi, &data)?;
                skip(p.pid, &regs, data.len() as i64)?;
            }
            libc::SYS_timerfd_create => skip(p.pid, &regs, -i64::from(libc::ENOSYS))?,
            libc::SYS_nanosleep => {
                let until = now + trace::timespec(p.pid, regs.rdi)?;
                skip(p.pid, &regs, 0)?;
                return Ok(Next::Stop(State::Asleep(until)));
            }
            libc::SYS_clock_nanosleep => {
                let time = trace::timespec(p.pid, regs.rdx)?;
                let until = match regs.rsi as i32 & libc::TIMER_ABSTIME {
                    0 => now + time,
                    _ => clock::instant(regs.rdi as i32, time),
                };
                skip(p.pid, &regs, 0)?;
                return Ok(Next::Stop(State::Asleep(until)));
            }
            _ if Waiting::is_one(call) => return self.wait(number, &regs),
            _ => return self.network(number, &regs, call),
        }
        Ok(Next::Go)
    }

    /// A call that waits for sockets and files.
    fn wait(&mut self, number: usize, regs: &user_regs_struct) -> Result<Next, String> {
        let now = self.now;
        let p = &mut self.programs[number];
        let waiting = match p.again.take() {
            Some(before) => before,
            None => Box::new(Waiting::of(p.pid, regs, now)?),
        };
        let result = complete(p.pid, &waiting.without(p.pid)?, regs)?;
        if result != 0 || waiting.deadline.is_some_and(|d| d <= now) {
            return Ok(Next::Go);
        }
        Ok(Next::Stop(State::Waiting(waiting)))
    }

    /// A call for a socket: of UDP it is done here, any other by the system.
    fn network(
        &mut self,
        number: usize,
        regs: &user_regs_struct,
        call: c_long,
    ) -> Result<Next, String> {
        let Some(socket) = self.programs[number].socket(regs.rdi as i32)? else {
            return Ok(Next::Go);
        };
        let pid = self.programs[number].pid;
        match call {
            libc::SYS_bind | libc::SYS_connect => {
                let family = trace::read(pid, regs.rsi, 4)?;
                let has_port = family[2] != 0 || family[3] != 0;
                if call == libc::SYS_bind && !has_port {
                    let port = self.port();
                    trace::write(pid, regs.rsi + 2, &port.to_be_bytes())?;
                } else if call == libc::SYS_connect {
                    self.give_port(socket);
                }
            }
            libc::SYS_sendto => {
                let payload = trace::read(pid, regs.rsi, regs.rdx as usize)?;
                let to = match regs.r8 {
                    0 => None,
                    at => Some(trace::read(pid, at, regs.r9 as usize)?),
                };
                let length = payload.len() as i64;
                self.send(number, socket, to, payload);
                skip(pid, regs, length)?;
            }
            libc::SYS_sendmsg => {
                let length = self.send_message(number, socket, regs.rsi)?;
                skip(pid, regs, length)?;
            }
            libc::SYS_sendmmsg => {
                for i in 0..regs.rdx {
                    let at = regs.rsi + 64 * i;
                    let length = self.send_message(number, socket, at)?;
                    trace::write(pid, at + 56, &(length as u32).to_le_bytes())?;
                }
                skip(pid, regs, regs.rdx as i64)?;
            }
            _ => return self.receive(number, socket, regs, call),
        }
        Ok(Next::Go)
    }

    /// A call that receives a datagram.
    fn receive(
        &mut self,
        number: usize,
        socket: i32,
        regs: &user_regs_struct,
        call: c_long,
    ) -> Result<Next, String> {
        let flags = match call {
            libc::SYS_recvmsg => regs.rdx,
            _ => regs.r10,
        };
        // SAFETY: it takes numbers.
        let modes = unsafe { libc::fcntl(socket, libc::F_GETFL) };
        if flags & libc::MSG_DONTWAIT as u64 != 0 || modes & libc::O_NONBLOCK != 0 {
            return Ok(Next::Go);
        }
        let now = self.now;
        let p = &mut self.programs[number];
        let waiting = p.again.take().unwrap_or_else(|| {
            let lasts = receive_timeout(socket);
            Box::new(Waiting::for_datagram(regs, lasts.map(|l| now + l)))
        });
        let result = complete(p.pid, &waiting.without(p.pid)?, regs)?;
        let nothing = result == -i64::from(libc::EAGAIN);
        if !nothing || waiting.deadline.is_some_and(|d| d <= now) {
            return Ok(Next::Go);
        }
        Ok(Next::Stop(State::Waiting(waiting)))
    }

    /// Sends what a `struct msghdr` says; returns its length.
    fn send_message(&mut self, number: usize, socket: i32, at: u64) -> Result<i64, String> {
        let pid = self.programs[number].pid;
        let (name, pieces) = (trace::word(pid, at)?, trace::word(pid, at + 16)?);
        let name_length = trace::word(pid, at + 8)? as u32;
        let to = match name {
            0 => None,
            name => Some(trace::read(pid, name, name_length as usize)?),
        };
        let mut payload = Vec::new();
        for i in 0..trace::word(pid, at + 24)? {
            let (from, length) = (
                trace::word(pid, pieces + 16 * i)?,
                trace::word(pid, pieces + 16 * i + 8)?,
            );
            payload.extend(trace::read(pid, from, length as usize)?);
        }
        let (control, length) = (trace::word(pid, at + 32)?, trace::word(pid, at + 40)?);
        let segment = match control {
            0 => None,
            control => segment_size(&trace::read(pid, control, length as usize)?),
        };
        let all = payload.len() as i64;
        for piece in payload.chunks(segment.unwrap_or(usize::MAX).max(1)) {
            self.send(number, socket, to.clone(), piece.to_vec());
        }
        Ok(all)
    }

    /// Puts a datagram onto the link.
    fn send(&mut self, number: usize, socket: i32, to: Option<Vec<u8>>, payload: Vec<u8>) {
        self.give_port(socket);
        let (now, length) = (self.now as f64 / 1e9, payload.len());
        let at = self.link.arrival(number, self.now, length);
        if self.log {
            let end = at.map_or("is dropped".to_owned(), |at| {
                format!("arrives at {:.6}", at as f64 / 1e9)
            });
            eprintln!("virtual-time: {now:.6} program {number} sends {length} bytes: {end}");
        }
        if let Some(at) = at {
            self.numbers += 1;
            self.flying.push(Reverse(Flying {
                at,
                number: self.numbers,
                socket,
                to,
                payload,
            }));
        }
    }

    /// A port that is not chosen by the system.
    fn port(&mut self) -> u16 {
        self.ports += 1;
        FIRST_PORT + self.ports
    }

    /// Gives a socket a port, if it has none.
    fn give_port(&mut self, socket: i32) {
        // SAFETY: the address is alive, and as large as said.
        unsafe {
            let mut address: libc::sockaddr_storage = std::mem::zeroed();
            let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            let to = (&raw mut address).cast();
            if libc::getsockname(socket, to, &raw mut length) != 0 {
                return;
            }
            let port = (&raw mut address).cast::<u16>().add(1);
            if *port == 0 {
                *port = self.port().to_be();
                libc::bind(socket, (&raw const address).cast(), length);
            }
        }
    }
}

impl Program {
    /// Its socket of this number, shared, if it is one of UDP.
    fn socket(&mut self, fd: i32) -> Result<Option<i32>, String> {
        if let Some(known) = self.sockets.get(&fd) {
            return Ok(Some(*known));
        }
        let own = trace::share(self.pid, fd)?;
        let is =
            |option, wanted: &[i32]| option_of(own, option).is_some_and(|v| wanted.contains(&v));
        if is(libc::SO_TYPE, &[libc::SOCK_DGRAM])
            && is(libc::SO_DOMAIN, &[libc::AF_INET, libc::AF_INET6])
        {
            self.sockets.insert(fd, own);
            return Ok(Some(own));
        }
        // SAFETY: it takes a number.
        unsafe { libc::close(own) };
        Ok(None)
    }
}

fn option_of(socket: i32, option: i32) -> Option<i32> {
    let (mut value, mut length) = (0_i32, 4);
    let to = (&raw mut value).cast();
    // SAFETY: the value is alive, and as large as said.
    let got = unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, option, to, &raw mut length) };
    (got == 0).then_some(value)
}

/// How long a socket waits for a datagram; `None`: without end.
fn receive_timeout(socket: i32) -> Option<u64> {
    // SAFETY: the value is alive, and as large as said.
    unsafe {
        let mut value: libc::timeval = std::mem::zeroed();
        let mut length = size_of::<libc::timeval>() as libc::socklen_t;
        let (level, option) = (libc::SOL_SOCKET, libc::SO_RCVTIMEO);
        libc::getsockopt(
            socket,
            level,
            option,
            (&raw mut value).cast(),
            &raw mut length,
        );
        let nanos = value.tv_sec as u64 * SECOND + value.tv_usec as u64 * 1000;
        (nanos > 0).then_some(nanos)
    }
}

/// The size of the datagrams that a message is cut into (UDP_SEGMENT), in its control data.
fn segment_size(control: &[u8]) -> Option<usize> {
    let mut rest = control;
    while rest.len() >= 16 {
        let length = u64::from_le_bytes(rest[..8].try_into().ok()?) as usize;
        let level = i32::from_le_bytes(rest[8..12].try_into().ok()?);
        let kind = i32::from_le_bytes(rest[12..16].try_into().ok()?);
        if (level, kind) == (libc::SOL_UDP, libc::UDP_SEGMENT) && rest.len() >= 18 {
            return Some(u16::from_le_bytes(rest[16..18].try_into().ok()?).into());
        }
        rest = rest.get(length.max(16).next_multiple_of(8)..)?;
    }
    None
}

/// Sends a datagram over the loopback device, where it arrives at once.
fn deliver(f: &Flying) {
    let (to, length) =
        f.to.as_ref()
            .map_or((std::ptr::null(), 0), |a| (a.as_ptr(), a.len()));
    // SAFETY: the payload and the address are as long as said. Where nobody listens it is lost, as on any network.
    unsafe {
        libc::sendto(
            f.socket,
            f.payload.as_ptr().cast(),
            f.payload.len(),
            libc::MSG_DONTWAIT,
            to.cast(),
            length as libc::socklen_t,
        );
    }
}

/// Lets the system do a call with these registers; returns its result. The registers of the program are as before.
fn complete(
    pid: pid_t,
    changed: &user_regs_struct,
    asked: &user_regs_struct,
) -> Result<i64, String> {
    trace::set_registers(pid, changed)?;
    trace::request(libc::PTRACE_SYSCALL, pid, 0, 0, "a call")?;
    trace::wait(pid)?;
    let result = trace::registers(pid)?.rax;
    trace::set_registers(
        pid,
        &user_regs_struct {
            rax: result,
            orig_rax: u64::MAX,
            ..*asked
        },
    )?;
    Ok(result as i64)
}

/// Answers a call in place of the system.
fn skip(pid: pid_t, regs: &user_regs_struct, result: i64) -> Result<(), String> {
    trace::set_registers(
        pid,
        &user_regs_struct {
            orig_rax: u64::MAX,
            rax: result as u64,
            ..*regs
        },
    )
}

/// Answers a look at a clock. A program that only looks waits for time to pass: then some does.
fn look(p: &mut Program, regs: &user_regs_struct, result: i64, now: u64) -> Result<Next, String> {
    skip(p.pid, regs, result)?;
    p.looks += 1;
    Ok(match p.looks > MOST_LOOKS {
        true => Next::Stop(State::Asleep(now + 1_000_000)),
        false => Next::Go,
    })
}

fn write_time(pid: pid_t, at: u64, nanos: u64, unit: u64) -> Result<(), String> {
    let (seconds, rest) = (nanos / SECOND, nanos % SECOND / unit);
    let both = [seconds.to_le_bytes(), rest.to_le_bytes()].concat();
    trace::write(pid, at, &both)
}
