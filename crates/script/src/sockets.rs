//! Calls of a script while it runs: sockets by their number, and calls that block.

use std::collections::BTreeMap;

use crate::ast::{At, Call, Event, Outcome};
use crate::calls::{self, O_NONBLOCK, O_RDWR, Request};
use crate::fault::Fault;
use crate::run::{Runner, Step, Stop, outcome_text};
use crate::stack::{Handle, Op, Reply, Value, Watch};

/// POLLERR, POLLHUP and POLLNVAL are reported without a request.
const ALWAYS: i64 = 0x8 | 0x10 | 0x20;

/// POLLOUT: there is room to write.
const OUT: i64 = 0x4;

#[derive(Clone, Copy, Debug)]
struct Socket {
    handle: Handle,
    blocks: bool,
}

/// The sockets of a script.
#[derive(Default)]
pub(crate) struct Sockets {
    by_number: BTreeMap<i64, Socket>,
    /// Numbers of connections, latest last.
    latest: Vec<i64>,
}

impl Sockets {
    /// The connection that was opened last and is not closed.
    pub(crate) fn latest(&self) -> Option<Handle> {
        let numbers = self.latest.iter().rev();
        let open = numbers.filter_map(|n| self.by_number.get(n));
        open.map(|s| s.handle).next()
    }
}

/// A call that blocks.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    at: At,
    expected: String,
    call: Call,
    what: Waiting,
    /// The time at which it shall return, in microseconds since the start.
    until: u64,
    /// Bytes written before.
    written: i64,
    /// It was attempted at least once.
    tried: bool,
    /// Its result and the time of it in microseconds, once it has returned.
    pub(crate) done: Option<(u64, Answer)>,
}

#[derive(Clone, Debug)]
enum Waiting {
    Op {
        handle: Handle,
        op: Op,
        nonblocking: bool,
        expected: Option<Value>,
        /// The call waits until it can return, instead of failing with EAGAIN.
        blocks: bool,
    },
    Poll(Vec<(Handle, i64, i64)>),
}

/// The result of a call.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Gave(Outcome),
    /// A new socket.
    Socket(Handle, bool),
    /// Something else than a number differs.
    Wrong(String),
    Unsupported(String),
}

impl Runner<'_> {
    /// Makes a call; one that blocks may return later, until `until`.
    pub(crate) fn call(&mut self, event: &Event, call: &Call, until: Option<u64>) -> Step {
        self.settle(event)?;
        let request = calls::understand(call, self.setup.v6)
            .map_err(|(message, help)| Fault::new(event.at, message).help(help))?;
        let started = self.now();
        let mut pending = Pending {
            at: event.at,
            expected: event.to_string(),
            call: call.clone(),
            what: Waiting::Poll(Vec::new()),
            until: until.unwrap_or(started),
            written: 0,
            tried: false,
            done: None,
        };
        let blocks = self.begin(event, request, &mut pending)?;
        let refused = if pending.done.is_none() {
            self.attempt(&mut pending)
        } else {
            None
        };
        if let Some(name) = refused {
            if blocks && until.is_some() {
                self.pending = Some(pending);
                return Ok(());
            }
            let answer = match blocks {
                true => {
                    Answer::Wrong("the call blocks; give it a time to return: +0...0.2".to_owned())
                }
                false if pending.written > 0 => Answer::Gave(Outcome::Value(pending.written)),
                false if name.is_empty() => Answer::Gave(Outcome::Value(0)),
                false => Answer::Gave(Outcome::Error(name.to_owned())),
            };
            pending.done = Some((started, answer));
        }
        self.pending = Some(pending);
        self.settle(event)
    }

    /// Finds out what a call needs, or makes it if it never blocks; whether it may block.
    fn begin(&mut self, event: &Event, request: Request, pending: &mut Pending) -> Step<bool> {
        let started = self.now();
        Ok(match request {
            Request::Socket {
                nonblocking,
                multipath,
            } => {
                let answer = match self.stack.socket(multipath) {
                    Reply::Socket(handle) => Answer::Socket(handle, !nonblocking),
                    other => answer_of(other),
                };
                pending.done = Some((started, answer));
                false
            }
            Request::Flags { fd, set } => {
                let socket = self.socket(event, fd)?;
                let value = match set {
                    Some(nonblocking) => {
                        socket.blocks = !nonblocking;
                        0
                    }
                    None if socket.blocks => O_RDWR,
                    None => O_RDWR | O_NONBLOCK,
                };
                pending.done = Some((started, Answer::Gave(Outcome::Value(value))));
                false
            }
            Request::Epoll => {
                let answer = match self.stack.epoll() {
                    Reply::Socket(handle) => Answer::Socket(handle, true),
                    other => answer_of(other),
                };
                pending.done = Some((started, answer));
                false
            }
            Request::Watch {
                fd,
                how,
                target,
                events,
                data,
            } => {
                let target = self.socket(event, target)?.handle;
                pending.what = Waiting::Op {
                    handle: self.socket(event, fd)?.handle,
                    op: Op::Watch(Watch {
                        how,
                        target,
                        events,
                        data,
                    }),
                    nonblocking: false,
                    expected: None,
                    blocks: false,
                };
                false
            }
            Request::Poll { list, timeout } => {
                let list: Step<Vec<_>> = list
                    .into_iter()
                    .map(|(fd, events, revents)| {
                        Ok((self.socket(event, fd)?.handle, events, revents))
                    })
                    .collect();
                pending.what = Waiting::Poll(list?);
                timeout != 0
            }
            Request::Op {
                fd,
                op,
                dont_wait,
                nonblocking,
                expected,
            } => {
                let socket = *self.socket(event, fd)?;
                let opens = matches!(op, Op::Connect | Op::FastOpen(_));
                if opens && !self.sockets.latest.contains(&fd) {
                    self.sockets.latest.push(fd);
                }
                if op == Op::Close {
                    self.sockets.by_number.remove(&fd);
                    self.sockets.latest.retain(|n| *n != fd);
                }
                let blocks = socket.blocks && !dont_wait;
                pending.what = Waiting::Op {
                    handle: socket.handle,
                    op,
                    nonblocking,
                    expected,
                    blocks,
                };
                blocks
            }
        })
    }

    fn socket(&mut self, event: &Event, fd: i64) -> Step<&mut Socket> {
        let known: Vec<String> = self
            .sockets
            .by_number
            .keys()
            .map(ToString::to_string)
            .collect();
        self.sockets.by_number.get_mut(&fd).ok_or_else(|| {
            let fault = Fault::new(event.at, format!("there is no socket {fd}"));
            Stop::Fault(fault.help(format!("open sockets: {}", known.join(", "))))
        })
    }

    /// Tries a call; the name of the error if it would block, empty for poll.
    fn attempt(&mut self, pending: &mut Pending) -> Option<&'static str> {
        let now = self.now();
        let answer = match &pending.what {
            Waiting::Poll(list) => {
                let mut ready = 0;
                let mut wrong = String::new();
                for (handle, events, expected) in list {
                    let bits = self.stack.poll(*handle).0 & (events | ALWAYS);
                    ready += i64::from(bits != 0);
                    if bits != *expected {
                        wrong = format!("revents: expected {expected:#x}, came {bits:#x}");
                    }
                }
                if ready == 0 {
                    return Some("");
                }
                if wrong.is_empty() {
                    Answer::Gave(Outcome::Value(ready))
                } else {
                    Answer::Wrong(wrong)
                }
            }
            Waiting::Op {
                handle,
                op,
                nonblocking,
                expected,
                blocks,
            } => {
                let opens = matches!(op, Op::FastOpen(_)) && *blocks;
                let op = match op {
                    Op::Write(message) => Op::Write(message.after(pending.written as usize)),
                    // What did not fit into the SYN follows the handshake.
                    Op::FastOpen(message) if opens && pending.written > 0 => {
                        Op::Write(message.after(pending.written as usize))
                    }
                    other => other.clone(),
                };
                // A call that waits for room continues when poll(2) says so.
                let again = std::mem::replace(&mut pending.tried, true);
                if again
                    && matches!(op, Op::Write(_))
                    && self.stack.poll(*handle).0 & (OUT | ALWAYS) == 0
                {
                    return Some("EAGAIN");
                }
                let is_rest = matches!(op, Op::Write(_)) || opens;
                match self.stack.call(*handle, &op) {
                    Reply::Blocks(name) => return Some(name),
                    Reply::Value(n) => match op {
                        Op::Write(wanted) | Op::FastOpen(wanted) if n >= 0 => {
                            pending.written += n;
                            if is_rest && (n as usize) < wanted.total() {
                                return Some("EAGAIN");
                            }
                            let ready = if opens {
                                self.stack.poll(*handle).0
                            } else {
                                OUT
                            };
                            if ready & (OUT | ALWAYS) == 0 {
                                return Some("EINPROGRESS");
                            }
                            let request = Op::Get("SO_ERROR".to_owned());
                            let failed =
                                (ready & ALWAYS != 0).then(|| self.stack.call(*handle, &request));
                            Answer::Gave(match failed {
                                Some(Reply::Got(Value::Text(name))) => Outcome::Error(name),
                                _ => Outcome::Value(pending.written),
                            })
                        }
                        _ => Answer::Gave(Outcome::Value(n)),
                    },
                    Reply::Socket(new) => Answer::Socket(new, !nonblocking),
                    Reply::Events(list) if list.is_empty() => return Some(""),
                    Reply::Events(list) => {
                        let n = list.len() as i64;
                        let came = Value::Events(list);
                        if expected.as_ref() == Some(&came) {
                            Answer::Gave(Outcome::Value(n))
                        } else {
                            Answer::Wrong(format!("events: expected {expected:x?}, came {came:x?}"))
                        }
                    }
                    Reply::Got(value) if expected.as_ref() == Some(&value) => {
                        Answer::Gave(Outcome::Value(0))
                    }
                    Reply::Got(value) => {
                        Answer::Wrong(format!("value: expected {expected:?}, came {value:?}"))
                    }
                    other => answer_of(other),
                }
            }
        };
        pending.done = Some((now, answer));
        None
    }

    /// Tries the call that blocks again.
    pub(crate) fn try_pending(&mut self) -> Step {
        if let Some(mut pending) = self.pending.take() {
            if pending.done.is_none() {
                self.attempt(&mut pending);
            }
            self.pending = Some(pending);
        }
        Ok(())
    }

    /// Waits for the call that blocks, and compares what it gave.
    pub(crate) fn settle(&mut self, _: &Event) -> Step {
        loop {
            let Some(pending) = &self.pending else {
                return Ok(());
            };
            let latest = pending.until + self.tolerance();
            if pending.done.is_none() && self.now() < latest {
                let step = (self.now() + 1_000).min(latest);
                self.go(step, false)?;
                continue;
            }
            let Some(mut pending) = self.pending.take() else {
                return Ok(());
            };
            let has_timeout = match &pending.what {
                Waiting::Poll(_) => true,
                Waiting::Op { op, .. } => matches!(op, Op::Wait(_)),
            };
            if pending.done.is_none() && has_timeout {
                // Its time is over.
                pending.done = Some((pending.until, Answer::Gave(Outcome::Value(0))));
            }
            return self.compare(pending);
        }
    }

    fn compare(&mut self, pending: Pending) -> Step {
        let Pending {
            at,
            expected,
            call,
            until,
            ..
        } = pending;
        let mismatch = |came: String| Err(Stop::Mismatch(at, expected.clone(), came));
        let Some((when, answer)) = pending.done else {
            let until = until as f64 / 1e6;
            return mismatch(format!("the call did not return until {until:.6} s"));
        };
        let outcome = match answer {
            Answer::Gave(outcome) => outcome,
            Answer::Wrong(came) => return mismatch(came),
            Answer::Unsupported(message) => return Err(Stop::Fault(Fault::new(at, message))),
            Answer::Socket(handle, blocks) => {
                let Outcome::Value(fd) = call.result else {
                    return mismatch("a socket".to_owned());
                };
                let new = Socket { handle, blocks };
                if self.sockets.by_number.insert(fd, new).is_some() {
                    let fault = Fault::new(at, format!("there is a socket {fd} already"));
                    return Err(fault.help("give the new one another number").into());
                }
                if call.name.starts_with("accept") {
                    self.sockets.latest.push(fd);
                }
                Outcome::Value(fd)
            }
        };
        let is_any_error =
            call.result == Outcome::Value(-1) && matches!(outcome, Outcome::Error(_));
        if call.result != Outcome::Any && call.result != outcome && !is_any_error {
            return mismatch(outcome_text(&call, &outcome));
        }
        if call.until.is_some() && when.abs_diff(until) > self.tolerance() + self.slip {
            let (when, until) = (when as f64 / 1e6, until as f64 / 1e6);
            return mismatch(format!(
                "it returned at {when:.6} s instead of {until:.6} s"
            ));
        }
        Ok(())
    }
}

fn answer_of(reply: Reply) -> Answer {
    match reply {
        Reply::Error(name) => Answer::Gave(Outcome::Error(name)),
        Reply::Blocks(name) => Answer::Gave(Outcome::Error(name.to_owned())),
        Reply::Unsupported(message) => Answer::Unsupported(message),
        Reply::Value(n) => Answer::Gave(Outcome::Value(n)),
        Reply::Socket(_) | Reply::Got(_) | Reply::Events(_) => {
            Answer::Wrong("something else".to_owned())
        }
    }
}
