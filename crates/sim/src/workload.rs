//! What the applications at both ends of a flow do.
//!
//! A workload is a small state machine per flow. It sees delivered bytes and ticks of its own
//! timer, and answers with what to write; the engine moves bytes in and out of the transport.

use std::sync::Arc;

use gargalo_units::{Bytes, Duration, Instant, Rate};
use rand::{Rng, RngExt};
use rand_pcg::Pcg64;

/// A workload as configured.
#[derive(Clone, Debug)]
pub enum Workload {
    /// `from` sends this much, or until the flow stops.
    Bulk {
        /// `None`: until the end.
        bytes: Option<Bytes>,
    },
    /// `from` asks, `to` answers with objects one after another on one connection.
    Request(Request),
    /// `from` sends packets at a constant rate.
    Cbr {
        /// Payload rate.
        rate: Rate,
        /// Payload of a packet.
        packet_size: Bytes,
    },
    /// Constant rate in on periods, silence in off periods.
    OnOff {
        /// Payload rate while on.
        rate: Rate,
        /// Payload of a packet.
        packet_size: Bytes,
        /// Length of the on periods.
        on: Period,
        /// Length of the off periods.
        off: Period,
    },
}

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

/// Length of a period.
#[derive(Clone, Copy, Debug)]
pub enum Period {
    /// Always the same.
    Fixed(Duration),
    /// Exponentially distributed with this mean.
    Exponential(Duration),
}

impl Period {
    /// Draws a length.
    pub fn draw<R: Rng>(&self, rng: &mut R) -> Duration {
        match self {
            Self::Fixed(d) => *d,
            Self::Exponential(mean) => exponential(*mean, rng),
        }
    }
}

/// An exponentially distributed span with the given mean, by inversion.
pub fn exponential<R: Rng>(mean: Duration, rng: &mut R) -> Duration {
    let u: f64 = rng.random();
    mean.mul_f64(-libm::log(1.0 - u))
}

/// What an application wants next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// Bytes to write to the stream, or the payload of one datagram.
    pub write: u64,
    /// Nothing more will be written on this side.
    pub close: bool,
    /// When to call [`App::on_timer`].
    pub timer: Option<Instant>,
}

impl Action {
    /// Both actions, one after the other.
    #[inline]
    #[must_use]
    pub fn and(self, next: Self) -> Self {
        Self {
            write: self.write.saturating_add(next.write),
            close: self.close || next.close,
            timer: next.timer.or(self.timer),
        }
    }
}

/// A workload as it runs.
#[derive(Debug)]
pub enum App {
    /// See [`Workload::Bulk`].
    Bulk {
        /// All that will be written; `None` without end.
        total: Option<u64>,
    },
    /// See [`Workload::Request`].
    Request(RequestApp),
    /// See [`Workload::Cbr`] and [`Workload::OnOff`].
    Ticks(TickApp),
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

/// State of a constant-rate or on-off workload.
#[derive(Debug)]
pub struct TickApp {
    packet: u64,
    spacing: Duration,
    periods: Option<(Period, Period)>,
    on_until: Instant,
}

impl App {
    /// The application of a workload.
    pub fn new(workload: &Workload) -> Self {
        match workload {
            Workload::Bulk { bytes } => Self::Bulk {
                total: bytes.map(Bytes::get),
            },
            Workload::Request(spec) => Self::Request(RequestApp {
                spec: spec.clone(),
                asked: 0,
                server_received: 0,
                answered: 0,
                outstanding: 0,
            }),
            Workload::Cbr { rate, packet_size } => Self::Ticks(TickApp {
                packet: packet_size.get(),
                spacing: *packet_size / *rate,
                periods: None,
                on_until: Instant::MAX,
            }),
            Workload::OnOff {
                rate,
                packet_size,
                on,
                off,
            } => Self::Ticks(TickApp {
                packet: packet_size.get(),
                spacing: *packet_size / *rate,
                periods: Some((*on, *off)),
                on_until: Instant::ZERO,
            }),
        }
    }

    /// Bytes that have to reach the receiver for the flow to be complete; `None` without end.
    pub fn total(&self) -> Option<u64> {
        match self {
            Self::Bulk { total } => *total,
            Self::Request(r) => Some(r.spec.objects.iter().map(|b| b.get()).sum()),
            Self::Ticks(_) => None,
        }
    }

    /// The side that sends the bulk of the data: 0 is `from`.
    pub fn sender(&self) -> usize {
        match self {
            Self::Request(_) => 1,
            _ => 0,
        }
    }

    /// Whether a side closes as soon as its peer has closed (all but servers that still owe data).
    pub fn closes_after_peer(&self) -> bool {
        !matches!(self, Self::Request(_))
    }

    /// The connection is up (or, for UDP, the flow starts); called on the client side.
    pub fn on_start(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        match self {
            Self::Bulk { total } => Action {
                write: total.unwrap_or(u64::MAX),
                close: total.is_some(),
                timer: None,
            },
            Self::Request(r) => r.ask(),
            Self::Ticks(t) => t.tick(now, rng),
        }
    }

    /// `bytes` arrived at `side`; what that side does now.
    #[inline]
    pub fn on_delivered(&mut self, now: Instant, side: usize, bytes: u64) -> Action {
        match self {
            Self::Request(r) if side == 1 => r.serve(bytes),
            Self::Request(r) => r.answered(now, bytes),
            _ => Action::default(),
        }
    }

    /// The application's timer fired; called on the client side.
    pub fn on_timer(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        match self {
            Self::Bulk { .. } => Action::default(),
            Self::Request(r) => r.ask(),
            Self::Ticks(t) => t.tick(now, rng),
        }
    }
}

impl RequestApp {
    fn ask(&mut self) -> Action {
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

    fn serve(&mut self, bytes: u64) -> Action {
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

    fn answered(&mut self, now: Instant, bytes: u64) -> Action {
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

impl TickApp {
    fn tick(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        if now < self.on_until {
            return Action {
                write: self.packet,
                close: false,
                timer: Some(now + self.spacing),
            };
        }
        let Some((on, off)) = self.periods else {
            return Action::default();
        };
        // The off period ends, or the flow begins: an on period starts after a silence.
        let start = if self.on_until == Instant::ZERO {
            now
        } else {
            now + off.draw(rng)
        };
        self.on_until = start + on.draw(rng) + Duration::from_nanos(1);
        Action {
            timer: Some(start),
            ..Action::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn on_off_keeps_its_mean_rate() {
        let mut app = App::new(&Workload::OnOff {
            rate: Rate::from_mbps(1),
            packet_size: Bytes::new(125),
            on: Period::Exponential(Duration::from_millis(100)),
            off: Period::Exponential(Duration::from_millis(300)),
        });
        let mut rng = crate::rng::stream(7, "t");
        let mut now = Instant::ZERO;
        let mut sent = 0;
        let mut action = app.on_start(now, &mut rng);
        while now < Instant::ZERO + Duration::from_secs(1000) {
            sent += action.write;
            now = action.timer.unwrap();
            action = app.on_timer(now, &mut rng);
        }
        let mean = sent as f64 * 8.0 / 1000.0;
        // A quarter of 1 Mbit/s: 2,500 periods give a standard error of about 2%.
        assert!((mean - 250_000.0).abs() < 20_000.0, "mean rate {mean}");
    }
}
