//! What the applications at both ends of a flow do, and where flows come from.
//!
//! A workload is a small state machine per flow, sans-IO: it has no clock, no socket and no randomness that it was
//! not given, and knows no transport. It sees delivered bytes and ticks of its own timer, and answers with what to
//! write; the engine moves bytes in and out of the transport. Over TCP there may be TLS in between ([`tls`]).
//! [`web`] and [`ftp`] are sources of flows instead: they make one for every transfer, as many as the load asked
//! for takes ([`plan`]).
#![forbid(unsafe_code)]

pub mod distribution;
pub mod emodel;
pub mod frames;
pub mod ftp;
pub mod media;
pub mod nada;
mod objects;
pub mod plan;
mod request;
mod ticks;
pub mod tls;
pub mod video;
pub mod voice;
pub mod web;
pub mod wire;

use gargalo_units::{Bytes, Ecn, Instant, Rate};
use rand_pcg::Pcg64;

use media::{Media, MediaApp, MediaResult};
pub use objects::{ObjectResult, Objects, RequestResult};
pub use request::{Order, Request, RequestApp};
pub use ticks::{Period, TickApp, exponential};
use tls::{Tls, TlsApp};
use video::{Video, VideoApp, VideoResult};
use voice::{Voice, VoiceApp, VoiceResult};

/// A workload as configured.
#[derive(Clone, Debug)]
pub enum Workload {
    /// `from` sends this much, or until the flow stops.
    Bulk {
        /// `None`: until the end.
        bytes: Option<Bytes>,
    },
    /// `from` asks, `to` answers with objects on one connection.
    Request(Request),
    /// `from` sends packets at a constant rate.
    Cbr {
        /// Payload rate: from each instant on the one beside it; the first instant is zero, the others
        /// increase. A rate of zero is a pause.
        rate: Vec<(Instant, Rate)>,
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
    /// `from` shows itself, at a rate that follows the network.
    Media(Media),
    /// `from` speaks.
    Voice(Voice),
    /// `from` watches what `to` has.
    Video(Video),
}

/// What an application wants next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// Bytes to write to the stream, or the payload of one datagram.
    pub write: u64,
    /// The payload of one datagram from the other side.
    pub reply: u64,
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
            reply: self.reply.saturating_add(next.reply),
            close: self.close || next.close,
            timer: next.timer.or(self.timer),
        }
    }
}

/// A datagram that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Where: 1 is `to`.
    pub side: usize,
    /// Its number among those of its direction, from 0.
    pub number: u64,
    /// Payload.
    pub bytes: u64,
    /// When it was sent.
    pub sent_at: Instant,
    /// It carries a Congestion Experienced mark.
    pub marked: bool,
}

/// What the user of an application noticed.
#[derive(Clone, Debug, PartialEq)]
pub enum AppResult {
    /// See [`Request`].
    Request(RequestResult),
    /// See [`Media`].
    Media(MediaResult),
    /// See [`Voice`].
    Voice(VoiceResult),
    /// See [`Video`].
    Video(VideoResult),
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
    /// See [`Workload::Media`].
    Media(Box<MediaApp>),
    /// See [`Workload::Voice`].
    Voice(Box<VoiceApp>),
    /// See [`Workload::Video`].
    Video(Box<VideoApp>),
    /// One of the others inside TLS.
    Tls(Box<TlsApp>),
}

impl App {
    /// The application of a workload. It keeps a result for each object if it is to have a row in the
    /// results (`has_rows`); `sizes` is made only if the sizes of objects are drawn.
    pub fn new(workload: &Workload, has_rows: bool, sizes: impl FnOnce() -> Pcg64) -> Self {
        match workload {
            Workload::Bulk { bytes } => Self::Bulk {
                total: bytes.map(Bytes::get),
            },
            Workload::Request(spec) => Self::Request(RequestApp::new(spec, has_rows, sizes)),
            Workload::Cbr { rate, packet_size } => {
                Self::Ticks(TickApp::stepped(rate, *packet_size))
            }
            Workload::OnOff {
                rate,
                packet_size,
                on,
                off,
            } => Self::Ticks(TickApp::new(*rate, *packet_size, Some((*on, *off)))),
            Workload::Media(spec) => Self::Media(Box::new(MediaApp::new(spec))),
            Workload::Voice(spec) => Self::Voice(Box::new(VoiceApp::new(spec))),
            Workload::Video(spec) => Self::Video(Box::new(VideoApp::new(spec))),
        }
    }

    /// The same inside TLS, or as it is.
    #[must_use]
    pub fn inside(self, tls: Option<Tls>) -> Self {
        match tls {
            Some(spec) => Self::Tls(Box::new(TlsApp::new(self, spec))),
            None => self,
        }
    }

    /// Whether the client may write, once [`App::on_start`] was called: with TLS not before its handshake.
    #[inline]
    pub fn is_open(&self) -> bool {
        match self {
            Self::Tls(t) => t.is_open(),
            _ => true,
        }
    }

    /// Bytes that have to reach the receiver for the flow to be complete; `None` without end or
    /// not known yet.
    pub fn total(&self) -> Option<u64> {
        match self {
            Self::Bulk { total } => *total,
            Self::Request(r) => Some(r.total()),
            Self::Video(v) => v.total(),
            Self::Tls(t) => t.app().total(),
            Self::Ticks(_) | Self::Media(_) | Self::Voice(_) => None,
        }
    }

    /// The side that sends the bulk of the data: 0 is `from`.
    pub fn sender(&self) -> usize {
        match self {
            Self::Request(_) | Self::Video(_) => 1,
            Self::Tls(t) => t.app().sender(),
            _ => 0,
        }
    }

    /// Whether a side closes as soon as its peer has closed (all but servers that still owe data).
    pub fn closes_after_peer(&self) -> bool {
        match self {
            Self::Request(_) | Self::Video(_) => false,
            Self::Tls(t) => t.app().closes_after_peer(),
            _ => true,
        }
    }

    /// The connection is up (or, for UDP, the flow starts); called on the client side.
    pub fn on_start(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        match self {
            Self::Bulk { total } => Action {
                write: total.unwrap_or(u64::MAX),
                close: total.is_some(),
                ..Action::default()
            },
            Self::Request(r) => r.ask(now),
            Self::Ticks(t) => t.tick(now, rng),
            Self::Media(m) => m.start(now, rng),
            Self::Voice(v) => v.start(now, rng),
            Self::Video(v) => v.ask(now),
            Self::Tls(t) => t.connected(now, rng),
        }
    }

    /// `bytes` of the stream arrived at `side`, which has sent `sent` bytes of its own stream: how many of
    /// them are data of the workload (without headers of frames and records), and what that side does now.
    #[inline]
    pub fn on_delivered(
        &mut self,
        now: Instant,
        side: usize,
        bytes: u64,
        sent: u64,
    ) -> (u64, Action) {
        match self {
            Self::Request(r) if side == 1 => (bytes, r.serve(bytes, sent)),
            Self::Request(r) => r.answered(now, bytes),
            Self::Video(v) if side == 1 => (bytes, v.serve(bytes)),
            Self::Video(v) => (bytes, v.received(now, bytes)),
            Self::Tls(t) => t.on_delivered(now, side, bytes, sent),
            _ => (bytes, Action::default()),
        }
    }

    /// A request workload, for transports with streams.
    #[inline]
    pub fn as_request(&mut self) -> Option<&mut RequestApp> {
        match self {
            Self::Request(r) => Some(r),
            _ => None,
        }
    }

    /// A datagram arrived.
    #[inline]
    pub fn on_datagram(&mut self, now: Instant, datagram: &Datagram) {
        match self {
            Self::Voice(v) => v.received(now, datagram.sent_at),
            Self::Media(m) => m.received(now, datagram),
            _ => {}
        }
    }

    /// What its datagrams carry.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        match self {
            Self::Media(m) if m.is_ecn_capable() => Ecn::Ect0,
            _ => Ecn::NotEct,
        }
    }

    /// The rates of one whose datagrams follow the network.
    pub fn rates(&self) -> Option<media::Snapshot> {
        match self {
            Self::Media(m) => Some(m.snapshot()),
            _ => None,
        }
    }

    /// The application's timer fired; called on the client side.
    pub fn on_timer(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        match self {
            Self::Bulk { .. } => Action::default(),
            Self::Request(r) => r.ask(now),
            Self::Ticks(t) => t.tick(now, rng),
            Self::Media(m) => m.tick(now, rng),
            Self::Voice(v) => v.tick(now, rng),
            Self::Video(v) => v.ask(now),
            Self::Tls(t) => t.on_timer(now, rng),
        }
    }

    /// What its user noticed until `now`; `lost` datagrams were dropped by the network.
    pub fn result(&self, now: Instant, lost: u64) -> Option<AppResult> {
        match self {
            Self::Request(r) => r.result().map(AppResult::Request),
            Self::Media(m) => Some(AppResult::Media(m.result(now, lost))),
            Self::Voice(v) => Some(AppResult::Voice(v.result(lost))),
            Self::Video(v) => Some(AppResult::Video(v.result(now))),
            Self::Tls(t) => t.app().result(now, lost),
            _ => None,
        }
    }
}

/// A random stream for tests.
#[cfg(test)]
fn stream(seed: u64, name: &str) -> Pcg64 {
    let sum = name
        .bytes()
        .fold(0, |sum: u128, b| sum * 31 + u128::from(b));
    Pcg64::new(seed.into(), sum)
}
