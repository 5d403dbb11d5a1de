//! Objects asked for on one connection.

use std::ops::Range;
use std::sync::Arc;

use gargalo_units::{Bytes, Duration, Instant};
use rand_pcg::Pcg64;

use super::Action;
use super::frames::Frames;
use super::objects::{Log, Objects, RequestResult};

/// Objects asked for on one connection.
#[derive(Clone, Debug)]
pub struct Request {
    /// Size of each request.
    pub request_size: Bytes,
    /// Sizes of the answers, in order.
    pub objects: Objects,
    /// Time between the end of an answer and the next request.
    pub think_time: Duration,
    /// What is asked for when, and how the answers share the connection.
    pub order: Order,
}

/// What is asked for when, and how the answers share the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The next object is asked for when the one before has arrived (and the think time has passed).
    #[default]
    Sequential,
    /// All are asked for at once and come one after another on one stream.
    Pipelined,
    /// All are asked for at once and come in turns: on one byte stream in frames, on streams of their
    /// own as the transport has it.
    Multiplexed {
        /// Most bytes of an object in a frame; the frame has a header of
        /// [`FRAME_HEADER`](super::frames::FRAME_HEADER) bytes besides.
        frame: Bytes,
    },
}

/// State of a request workload: both ends of it.
///
/// A transport with one byte stream goes through [`App`](super::App). One with streams asks
/// [`RequestApp::ask_streams`] what to ask for, answers a request of
/// [`RequestApp::request_size`] bytes with [`RequestApp::object_size`] bytes on the same stream, and
/// tells [`RequestApp::received_on_stream`] what of them arrived.
#[derive(Debug)]
pub struct RequestApp {
    request_size: u64,
    sizes: Arc<[Bytes]>,
    think_time: Duration,
    order: Order,
    asked: usize,
    /// Request bytes that reached the server, and how many requests it has answered.
    server_received: u64,
    answered: usize,
    /// Answer bytes still missing of what was asked so far.
    outstanding: u64,
    incoming: Incoming,
    log: Log,
}

/// How answers come in.
#[derive(Debug)]
enum Incoming {
    /// One after another: the object that is coming and how many of its bytes have.
    InOrder(usize, u64),
    /// In frames.
    Framed(Frames),
    /// Each on a stream of its own: how many bytes of each have come.
    Streams(Vec<u64>),
}

impl RequestApp {
    /// Times of objects are kept if `keeps_times`; `rng` is made only if sizes are drawn.
    pub(super) fn new(spec: &Request, keeps_times: bool, rng: impl FnOnce() -> Pcg64) -> Self {
        Self {
            request_size: spec.request_size.get().max(1),
            sizes: spec.objects.sizes(rng),
            think_time: spec.think_time,
            order: spec.order,
            asked: 0,
            server_received: 0,
            answered: 0,
            outstanding: 0,
            incoming: match spec.order {
                Order::Multiplexed { frame } => Incoming::Framed(Frames::new(frame.get())),
                _ => Incoming::InOrder(0, 0),
            },
            log: Log::new(keeps_times),
        }
    }

    /// Bytes of all objects.
    pub(super) fn total(&self) -> u64 {
        self.sizes.iter().map(|b| b.get()).sum()
    }

    /// How many objects there are.
    pub fn objects(&self) -> usize {
        self.sizes.len()
    }

    /// Size of an object in bytes; 0 beyond the last.
    pub fn object_size(&self, object: usize) -> u64 {
        self.sizes.get(object).map_or(0, |b| b.get())
    }

    /// Size of a request in bytes, at least one.
    pub fn request_size(&self) -> u64 {
        self.request_size
    }

    /// All requests and answers share one stream, in order.
    pub fn shares_stream(&self) -> bool {
        self.order == Order::Pipelined
    }

    /// The objects to ask for now (none if all have been): one, or with an order other than sequential
    /// all. Each is asked for on a stream of its own, unless [`RequestApp::shares_stream`].
    pub fn ask_streams(&mut self, now: Instant) -> Range<usize> {
        if !self.shares_stream() && !matches!(self.incoming, Incoming::Streams(_)) {
            self.incoming = Incoming::Streams(vec![0; self.sizes.len()]);
        }
        self.ask_next(now)
    }

    /// Answer bytes of an object have arrived on its stream; on a shared stream `object` is of no
    /// account.
    ///
    /// If the next object is to be asked for, the action says when: at once if
    /// [`Action::write`] is not zero (it is then the size of the request), or at [`Action::timer`]. The
    /// engine then calls [`RequestApp::ask_streams`]. [`Action::close`] is never set: all has arrived when
    /// the delivered bytes are [`App::total`](super::App::total).
    pub fn received_on_stream(&mut self, now: Instant, object: usize, bytes: u64) -> Action {
        let bytes = match &mut self.incoming {
            Incoming::Streams(received) => {
                let size = self.sizes.get(object).map_or(0, |b| b.get());
                let Some(got) = received.get_mut(object) else {
                    return Action::default();
                };
                let new = bytes.min(size - *got);
                *got += new;
                if new > 0 {
                    self.log.arrived(now, object, *got == size);
                }
                new
            }
            _ => self.take_in(now, bytes),
        };
        self.outstanding = self.outstanding.saturating_sub(bytes);
        if bytes == 0 || self.outstanding > 0 || self.asked == self.sizes.len() {
            return Action::default();
        }
        if self.think_time.is_zero() {
            Action {
                write: self.request_size,
                ..Action::default()
            }
        } else {
            Action {
                timer: Some(now + self.think_time),
                ..Action::default()
            }
        }
    }

    /// What to ask for now; takes note of it.
    fn ask_next(&mut self, now: Instant) -> Range<usize> {
        let n = self.sizes.len();
        let until = match self.order {
            Order::Sequential => (self.asked + 1).min(n),
            _ => n,
        };
        let range = self.asked..until;
        for size in &self.sizes[range.clone()] {
            self.outstanding = self.outstanding.saturating_add(size.get());
            self.log.requested(now, *size);
        }
        self.asked = until;
        range
    }

    /// The client asks, on a byte stream.
    pub(super) fn ask(&mut self, now: Instant) -> Action {
        let asked = self.ask_next(now);
        Action {
            write: (asked.len() as u64).saturating_mul(self.request_size),
            close: asked.end == self.sizes.len(),
            ..Action::default()
        }
    }

    /// Request bytes reached the server, on a byte stream of which it has sent `sent` bytes so far.
    pub(super) fn serve(&mut self, bytes: u64, sent: u64) -> Action {
        self.server_received += bytes;
        let whole = usize::try_from(self.server_received / self.request_size);
        let until = whole.unwrap_or(usize::MAX).min(self.sizes.len());
        if until <= self.answered {
            return Action::default();
        }
        let new = self.answered..until;
        self.answered = until;
        let sizes = self.sizes[new.clone()].iter().map(|b| b.get());
        Action {
            write: match &mut self.incoming {
                Incoming::Framed(frames) => frames.add(sent, new.zip(sizes)),
                _ => sizes.fold(0, u64::saturating_add),
            },
            close: until == self.sizes.len(),
            ..Action::default()
        }
    }

    /// Answer bytes reached the client on a byte stream: how many of them belong to objects, and what
    /// it does now.
    pub(super) fn answered(&mut self, now: Instant, bytes: u64) -> (u64, Action) {
        let bytes = self.take_in(now, bytes);
        self.outstanding = self.outstanding.saturating_sub(bytes);
        if bytes == 0 || self.outstanding > 0 || self.asked == self.sizes.len() {
            return (bytes, Action::default());
        }
        let action = if self.think_time.is_zero() {
            self.ask(now)
        } else {
            Action {
                timer: Some(now + self.think_time),
                ..Action::default()
            }
        };
        (bytes, action)
    }

    /// Sorts bytes of a shared stream by objects; returns how many are theirs.
    fn take_in(&mut self, now: Instant, bytes: u64) -> u64 {
        let log = &mut self.log;
        match &mut self.incoming {
            Incoming::InOrder(object, got) => {
                let mut left = bytes;
                while left > 0
                    && let Some(size) = self.sizes.get(*object)
                {
                    let part = left.min(size.get() - *got);
                    *got += part;
                    left -= part;
                    let is_last = *got == size.get();
                    log.arrived(now, *object, is_last);
                    if is_last {
                        (*object, *got) = (*object + 1, 0);
                    }
                }
                bytes
            }
            Incoming::Framed(frames) => frames.take(bytes, |object, is_last| {
                log.arrived(now, object, is_last);
            }),
            Incoming::Streams(_) => bytes,
        }
    }

    /// When objects were asked for and arrived; `None` if that was not kept.
    pub(super) fn result(&self) -> Option<RequestResult> {
        self.log.result()
    }
}

#[cfg(test)]
mod tests;
