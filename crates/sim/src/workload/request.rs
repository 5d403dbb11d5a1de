//! Objects asked for on one connection.

use std::sync::Arc;

use gargalo_units::{Bytes, Duration, Instant};

use super::Action;

/// Objects asked for on one connection.
#[derive(Clone, Debug)]
pub struct Request {
    /// Size of each request.
    pub request_size: Bytes,
    /// Sizes of the answers, in order.
    pub objects: Arc<[Bytes]>,
    /// Time between the end of an answer and the next request.
    pub think_time: Duration,
    /// Ask for everything at once instead of one after another.
    pub pipelined: bool,
}

/// State of a request workload.
#[derive(Debug)]
pub struct RequestApp {
    spec: Request,
    asked: usize,
    /// Request bytes that reached the server.
    server_received: u64,
    answered: usize,
    /// Answer bytes still missing of what was asked so far.
    outstanding: u64,
}

impl RequestApp {
    pub(super) fn new(spec: &Request) -> Self {
        Self {
            spec: spec.clone(),
            asked: 0,
            server_received: 0,
            answered: 0,
            outstanding: 0,
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.spec.objects.iter().map(|b| b.get()).sum()
    }

    pub(super) fn ask(&mut self) -> Action {
        let n = self.spec.objects.len();
        let until = if self.spec.pipelined {
            n
        } else {
            (self.asked + 1).min(n)
        };
        let objects = &self.spec.objects[self.asked..until];
        self.outstanding += objects.iter().map(|b| b.get()).sum::<u64>();
        let write = objects.len() as u64 * self.spec.request_size.get();
        self.asked = until;
        Action {
            write,
            close: until == n,
            timer: None,
        }
    }

    pub(super) fn serve(&mut self, bytes: u64) -> Action {
        self.server_received += bytes;
        let whole = (self.server_received / self.spec.request_size.get().max(1)) as usize;
        let until = whole.min(self.spec.objects.len());
        if until <= self.answered {
            return Action::default();
        }
        let write = self.spec.objects[self.answered..until]
            .iter()
            .map(|b| b.get())
            .sum();
        self.answered = until;
        Action {
            write,
            close: until == self.spec.objects.len(),
            timer: None,
        }
    }

    pub(super) fn answered(&mut self, now: Instant, bytes: u64) -> Action {
        self.outstanding = self.outstanding.saturating_sub(bytes);
        if self.outstanding > 0 || self.asked == self.spec.objects.len() {
            return Action::default();
        }
        if self.spec.think_time.is_zero() {
            self.ask()
        } else {
            Action {
                timer: Some(now + self.spec.think_time),
                ..Action::default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{App, Workload};

    #[test]
    fn request_asks_one_after_another() {
        let sizes = [Bytes::new(1000), Bytes::new(2000)];
        let mut app = App::new(&Workload::Request(Request {
            request_size: Bytes::new(100),
            objects: sizes.into(),
            think_time: Duration::ZERO,
            pipelined: false,
        }));
        let mut rng = crate::rng::stream(1, "t");
        let now = Instant::ZERO;
        assert_eq!(app.on_start(now, &mut rng).write, 100);
        assert_eq!(app.on_delivered(now, 1, 60), Action::default());
        let answer = app.on_delivered(now, 1, 40);
        assert_eq!((answer.write, answer.close), (1000, false));
        assert_eq!(app.on_delivered(now, 0, 999), Action::default());
        let second = app.on_delivered(now, 0, 1);
        assert_eq!((second.write, second.close), (100, true));
        let last = app.on_delivered(now, 1, 100);
        assert_eq!((last.write, last.close), (2000, true));
        assert_eq!(app.total(), Some(3000));
    }
}
