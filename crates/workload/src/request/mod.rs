//! `request`: objects requested on one connection.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use gargalo_settings::{Error, names, settings};
use gargalo_units::{Bytes, Duration, Instant};
use rand_pcg::Pcg64;

use super::Action;
use super::distribution::Distribution;
use super::frames::Frames;
use super::objects::{Log, RequestResult};
use super::random::{LARGEST, Size};

settings! {
    /// `from` sends requests, `to` answers with objects.
    pub struct Request as "Request", checked by Request::consistent {
        /// Number of objects. Default: as many as there are `sizes`, or 1.
        objects: Option<u32> = None, in Some(1)..=Some(1_000_000);
        /// Size of every object: one for all, or a distribution from which each flow draws anew; or give
        /// `sizes`.
        size: Option<Size> = None;
        /// Size of each object, in order.
        sizes: Option<Arc<[Bytes]>> = None;
        /// Size of a request.
        request_size: Bytes = Bytes::new(100), in Bytes::new(1)..=LARGEST;
        /// Time between the end of an answer and the next request, with `order = "sequential"`.
        think_time: Duration = Duration::ZERO;
        /// Order of requests, and multiplexing of the answers on a connection. Default: `sequential`.
        order: Option<Order> = None;
        /// With `order = "multiplexed"` on one byte stream: maximum content of a frame, to which a header of 9
        /// bytes is added (RFC 9113 section 4.1). Over QUIC each object has its own stream instead. Default: 16KiB.
        frame: Option<Bytes> = None;
        /// The same as `order = "pipelined"`. Default: `false`.
        pipelined: Option<bool> = None;
        /// An answer that is not complete this long after its request is cancelled (RFC 9000 §3.5), and the client goes
        /// on without it. Over QUIC, where each object has its own stream. Default: never.
        give_up: Option<Duration> = None, in Some(Duration::from_nanos(1))..;
        /// Urgency of each object, in order: from 0, whose answer goes first, to 7 (RFC 9218 §4.1); of the rest, 3.
        /// Over QUIC, with `order = "multiplexed"`.
        urgency: Option<Arc<[u8]>> = None;
        /// Parallel connections, each its own flow; objects are assigned to them in turn.
        connections: u32 = 1, in 1..=1000;
    }
}

names! {
    /// Order of requests, and multiplexing of the answers on a connection.
    pub enum Order {
        /// The next object is requested when the previous one has arrived (HTTP/1.1).
        Sequential = "sequential",
        /// All objects are requested at once and arrive one after another (HTTP/1.1 with pipelining).
        Pipelined = "pipelined",
        /// All objects are requested at once and are multiplexed: over TCP in frames on one byte stream (HTTP/2),
        /// over QUIC each on its own stream (HTTP/3).
        Multiplexed = "multiplexed",
    }
}

/// Content of a frame (RFC 9113 section 6.5.2, SETTINGS_MAX_FRAME_SIZE): the initial and the largest value.
const FRAME: (u64, u64) = (16_384, 16_777_215);
/// Urgencies (RFC 9218 §4.1): the default and the greatest.
const URGENCY: u8 = 3;
const LEAST_URGENT: u8 = 7;
/// Maximum number of objects.
const MOST: usize = 1_000_000;

impl Request {
    /// Objects of these sizes, one after another.
    pub fn of(sizes: impl Into<Arc<[Bytes]>>) -> Self {
        Self {
            sizes: Some(sizes.into()),
            ..Self::default()
        }
    }

    /// The number of objects.
    pub fn count(&self) -> usize {
        match &self.sizes {
            Some(sizes) => sizes.len(),
            None => self.objects.unwrap_or(1) as usize,
        }
    }

    /// The order of requests.
    pub fn order(&self) -> Order {
        let pipelined = self.pipelined == Some(true);
        self.order.unwrap_or(if pipelined {
            Order::Pipelined
        } else {
            Order::Sequential
        })
    }

    /// The requests of each connection, with all defaults written out: objects are assigned in turn.
    pub fn connections(&self) -> Vec<Self> {
        let (count, n, order) = (self.count(), self.connections as usize, self.order());
        let of = |c: usize| {
            let dealt = |all: &Arc<[Bytes]>| all.iter().copied().skip(c).step_by(n).collect();
            Self {
                objects: Some((count - c).div_ceil(n) as u32),
                size: self.size,
                sizes: self.sizes.as_ref().map(dealt),
                request_size: self.request_size,
                think_time: match order {
                    Order::Sequential => self.think_time,
                    _ => Duration::ZERO,
                },
                order: Some(order),
                frame: (order == Order::Multiplexed).then(|| self.frame()),
                pipelined: None,
                give_up: self.give_up,
                urgency: self
                    .urgency
                    .as_ref()
                    .map(|all| all.iter().copied().skip(c).step_by(n).collect()),
                connections: 1,
            }
        };
        (0..n.min(count)).map(of).collect()
    }

    fn frame(&self) -> Bytes {
        self.frame.unwrap_or(Bytes::new(FRAME.0))
    }

    /// The sizes of one flow; `rng` is created only if sizes are drawn.
    fn drawn(&self, rng: impl FnOnce() -> Pcg64) -> Arc<[Bytes]> {
        match (&self.sizes, self.size) {
            (Some(sizes), _) => Arc::clone(sizes),
            (None, Some(Size::Fixed(size))) => vec![size; self.count()].into(),
            (None, Some(random)) => {
                let (mut rng, size) = (rng(), Distribution::from(random).sampler());
                let most = LARGEST.as_f64();
                let mut draw = || libm::round(size.draw(&mut rng)).clamp(1.0, most) as u64;
                (0..self.count()).map(|_| Bytes::new(draw())).collect()
            }
            (None, None) => Arc::default(),
        }
    }

    fn consistent(&self) -> Result<(), Error> {
        self.objects_fit()?;
        self.streams_fit()?;
        let explicit = self.order.filter(|o| *o != Order::Sequential);
        let (key, message, help) = if self.order.is_some() && self.pipelined.is_some() {
            let help = "keep order: `pipelined = true` means `order = \"pipelined\"`";
            ("pipelined", "both order and pipelined are given", help)
        } else if !self.think_time.is_zero() && explicit.is_some() {
            let message = "a think_time, but all objects are requested at once";
            let help = "leave it out, or set order = \"sequential\"";
            ("think_time", message, help)
        } else if self.frame.is_some() && self.order() != Order::Multiplexed {
            let message = "a frame size, but the answers have no frames";
            let help = "leave it out, or set order = \"multiplexed\"";
            ("frame", message, help)
        } else if !(1..=FRAME.1).contains(&self.frame().get()) {
            let message = format!("a frame of {}", self.frame());
            let help = "give 1B to 16777215B; 16KiB is usual";
            return Err(Error::of("frame", message).help(help));
        } else if self.connections as usize > self.count() {
            let message = format!(
                "{} connections for {} objects",
                self.connections,
                self.count()
            );
            let help = "give at most one for each object";
            return Err(Error::of("connections", message).help(help));
        } else {
            return Ok(());
        };
        Err(Error::of(key, message).help(help))
    }

    /// Checks what only objects on streams of their own can have.
    fn streams_fit(&self) -> Result<(), Error> {
        let order = self.order();
        if self.give_up.is_some() && order == Order::Pipelined {
            let message = "give_up, but all answers share one stream";
            let help = "leave it out, or set order = \"sequential\" or \"multiplexed\"";
            return Err(Error::of("give_up", message).help(help));
        }
        let Some(urgency) = &self.urgency else {
            return Ok(());
        };
        let error = |message: &str, help: &str| Err(Error::of("urgency", message).help(help));
        if order != Order::Multiplexed {
            let help = "leave it out, or set order = \"multiplexed\"";
            return error("an urgency, but the answers do not compete", help);
        }
        if let Some(beyond) = urgency.iter().find(|u| **u > LEAST_URGENT) {
            return error(&format!("an urgency of {beyond}"), "give 0 (first) to 7");
        }
        if urgency.len() > self.count() {
            let (given, count) = (urgency.len(), self.count());
            let message = format!("{given} urgencies for {count} objects");
            return error(&message, "give at most one for each object");
        }
        Ok(())
    }

    /// Whether each object must have a stream of its own, which is so over QUIC only.
    pub fn needs_streams(&self) -> bool {
        self.give_up.is_some() || self.urgency.is_some()
    }

    fn objects_fit(&self) -> Result<(), Error> {
        let Some(sizes) = &self.sizes else {
            if self.size.is_none() {
                let message = "neither size nor sizes is given";
                return Err(Error::new(message).help("add `size = \"10kB\"`"));
            }
            return Ok(());
        };
        let error = |message: &str, help: &str| Err(Error::of("sizes", message).help(help));
        if self.size.is_some() {
            return error("both size and sizes are given", "keep one of them");
        }
        if !(1..=MOST).contains(&sizes.len()) {
            let message = format!("{} sizes are given", sizes.len());
            return error(&message, "give 1 to 1000000");
        }
        if let Some(objects) = self.objects.filter(|n| *n as usize != sizes.len()) {
            let message = format!("objects is {objects}, but {} sizes are given", sizes.len());
            return Err(Error::of("objects", message).help("leave objects out"));
        }
        if sizes.iter().any(|s| s.is_zero()) {
            return error("an object of size zero", "give objects of 1B or more");
        }
        if sizes.iter().any(|s| *s > LARGEST) {
            return error("an object of more than 1TB", "use workload.bulk");
        }
        Ok(())
    }
}

/// State of a request workload: both ends of it.
///
/// A transport with one byte stream uses [`App`](super::App). One with streams gets the objects to request from
/// [`RequestApp::ask_streams`], answers a request of [`RequestApp::request_size`] bytes with
/// [`RequestApp::object_size`] bytes on the same stream, and reports received bytes to
/// [`RequestApp::received_on_stream`].
#[derive(Debug)]
pub struct RequestApp {
    request_size: u64,
    sizes: Arc<[Bytes]>,
    think_time: Duration,
    order: Order,
    urgency: Option<Arc<[u8]>>,
    give_up: Option<Duration>,
    /// With `give_up`: when the requested objects are cancelled, in the order of requests.
    limits: VecDeque<(usize, Instant)>,
    /// Cancelled objects, and their bytes that are not to come.
    given_up: BTreeSet<usize>,
    cancelled: u64,
    /// The next request is due, after a think time.
    next_due: Option<Instant>,
    asked: usize,
    /// Request bytes that reached the server, and how many requests it has answered.
    server_received: u64,
    answered: usize,
    /// Answer bytes still missing of the requests so far.
    outstanding: u64,
    incoming: Incoming,
    log: Log,
}

/// The state of received answers.
#[derive(Debug)]
enum Incoming {
    /// One after another: the current object and its received bytes.
    InOrder(usize, u64),
    /// Interleaved in frames of one stream.
    Framed(Frames),
    /// Each on its own stream: the received bytes of each.
    Streams(Vec<u64>),
}

impl RequestApp {
    /// Times of objects are recorded if `keeps_times`; `rng` is created only if sizes are drawn.
    pub(super) fn new(spec: &Request, keeps_times: bool, rng: impl FnOnce() -> Pcg64) -> Self {
        Self {
            request_size: spec.request_size.get().max(1),
            sizes: spec.drawn(rng),
            think_time: spec.think_time,
            order: spec.order(),
            urgency: spec.urgency.clone(),
            give_up: spec.give_up,
            limits: VecDeque::new(),
            given_up: BTreeSet::new(),
            cancelled: 0,
            next_due: None,
            asked: 0,
            server_received: 0,
            answered: 0,
            outstanding: 0,
            incoming: match spec.order() {
                Order::Multiplexed => Incoming::Framed(Frames::new(spec.frame().get())),
                _ => Incoming::InOrder(0, 0),
            },
            log: Log::new(keeps_times),
        }
    }

    /// Bytes of all objects, without the rest of cancelled ones.
    pub(super) fn total(&self) -> u64 {
        self.sizes.iter().map(|b| b.get()).sum::<u64>() - self.cancelled
    }

    /// The urgency of an object (RFC 9218 §4.1); `None`: none differs.
    pub fn urgency(&self, object: usize) -> Option<u8> {
        let all = self.urgency.as_ref()?;
        Some(all.get(object).copied().unwrap_or(URGENCY))
    }

    /// The number of objects.
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

    /// Whether all requests and answers share one stream, in order.
    pub fn shares_stream(&self) -> bool {
        self.order == Order::Pipelined
    }

    /// The objects to request now (none if all have been): one, or all with an order other than sequential. Each is
    /// requested on its own stream, unless [`RequestApp::shares_stream`].
    pub fn ask_streams(&mut self, now: Instant) -> Range<usize> {
        if !self.shares_stream() && !matches!(self.incoming, Incoming::Streams(_)) {
            self.incoming = Incoming::Streams(vec![0; self.sizes.len()]);
        }
        self.next_due = None;
        self.ask_next(now)
    }

    /// The request for an object has been sent, on a stream of its own.
    pub fn asked_on_stream(&mut self, now: Instant, object: usize) {
        if let Some(patience) = self.give_up {
            self.limits.push_back((object, now + patience));
        }
    }

    /// When to call [`RequestApp::expire`].
    pub fn due(&mut self) -> Option<Instant> {
        while let Some((object, _)) = self.limits.front()
            && self.missing(*object) == 0
        {
            self.limits.pop_front();
        }
        let limit = self.limits.front().map(|(_, limit)| *limit);
        [self.next_due, limit].into_iter().flatten().min()
    }

    /// A timer is due: returns the objects that are cancelled now, each on its own stream, and those to request now, as
    /// [`RequestApp::ask_streams`].
    pub fn expire(&mut self, now: Instant) -> (Vec<usize>, Range<usize>) {
        let mut late = Vec::new();
        while let Some((object, limit)) = self.limits.front().copied()
            && limit <= now
        {
            self.limits.pop_front();
            let missing = self.missing(object);
            if missing > 0 {
                self.cancelled += missing;
                self.outstanding = self.outstanding.saturating_sub(missing);
                self.given_up.insert(object);
                late.push(object);
            }
        }
        let action = match late.is_empty() {
            true => Action::default(),
            false => self.follow(now),
        };
        self.next_due = action.timer.or(self.next_due);
        let asks = action.write > 0 || self.next_due.is_some_and(|due| due <= now);
        let asked = if asks { self.ask_streams(now) } else { 0..0 };
        (late, asked)
    }

    /// Bytes of an object on its own stream that are still to arrive.
    fn missing(&self, object: usize) -> u64 {
        match &self.incoming {
            Incoming::Streams(received) if !self.given_up.contains(&object) => {
                let got = received.get(object).copied().unwrap_or(0);
                self.object_size(object).saturating_sub(got)
            }
            _ => 0,
        }
    }

    /// What follows when something of the requested objects has arrived or is not to come.
    fn follow(&self, now: Instant) -> Action {
        if self.outstanding > 0 || self.asked == self.sizes.len() {
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

    /// Answer bytes of an object have arrived on its stream; on a shared stream `object` is ignored. Returns how many
    /// of them are new data of an object, and what follows.
    ///
    /// If the next object is to be requested, the action says when: at once if [`Action::write`] is not zero (it is
    /// then the size of the request), or at [`Action::timer`]. The engine then calls [`RequestApp::ask_streams`].
    /// [`Action::close`] is never set: all has arrived when the delivered bytes are [`App::total`](super::App::total).
    pub fn received_on_stream(&mut self, now: Instant, object: usize, bytes: u64) -> (u64, Action) {
        let bytes = match &mut self.incoming {
            Incoming::Streams(received) => {
                let size = self.sizes.get(object).map_or(0, |b| b.get());
                let Some(got) = received.get_mut(object) else {
                    return (0, Action::default());
                };
                let new = match self.given_up.contains(&object) {
                    true => 0,
                    false => bytes.min(size - *got),
                };
                *got += new;
                if new > 0 {
                    self.log.arrived(now, object, *got == size);
                }
                new
            }
            _ => self.take_in(now, bytes),
        };
        self.outstanding = self.outstanding.saturating_sub(bytes);
        let action = match bytes {
            0 => Action::default(),
            _ => self.follow(now),
        };
        self.next_due = action.timer.or(self.next_due);
        (bytes, action)
    }

    /// The objects to request now; records the requests.
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

    /// The client sends requests on a byte stream.
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

    /// Answer bytes reached the client on a byte stream: returns how many of them belong to objects, and the next
    /// action.
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

    /// Assigns bytes of a shared stream to objects; returns the number of object bytes.
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

    /// How many of the next `bytes` of the stream belong to objects.
    pub(super) fn data_within(&self, bytes: u64) -> u64 {
        match &self.incoming {
            Incoming::Framed(frames) => frames.content_within(bytes),
            Incoming::InOrder(..) | Incoming::Streams(_) => bytes,
        }
    }

    /// When objects were requested and received; `None` if times are not recorded.
    pub(super) fn result(&self) -> Option<RequestResult> {
        self.log.result()
    }
}

#[cfg(test)]
mod tests;
