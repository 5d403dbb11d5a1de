//! Workloads: the applications at both ends of a flow, and sources of flows.
//!
//! A workload is a sans-IO state machine per flow: it has no clock, no socket and no random source of its own, and
//! does not depend on a transport. Its inputs are delivered bytes and expirations of its own timer, its outputs the
//! bytes to write; the engine moves bytes in and out of the transport. Over TCP there may be TLS in between
//! ([`tls`]). [`web`] and [`ftp`] are sources of flows instead: they create a flow for each transfer, up to the
//! requested load ([`plan`]).
#![forbid(unsafe_code)]

mod bulk;
pub mod distribution;
pub mod emodel;
pub mod frames;
pub mod ftp;
pub mod media;
pub mod media_frames;
pub mod mix;
pub mod nada;
mod objects;
mod ping;
pub mod plan;
pub mod quantity;
pub mod random;
mod request;
mod ticks;
pub mod tls;
pub mod video;
pub mod voice;
pub mod web;
pub mod wire;

use std::fmt::Debug;

use gargalo_settings::kinds;
use gargalo_units::{Bytes, Ecn, Instant};
use rand_pcg::Pcg64;

pub use bulk::Bulk;
use ftp::Ftp;
use media::{Media, MediaApp, MediaResult};
use mix::Mix;
pub use objects::{ObjectResult, RequestResult};
use ping::PingApp;
pub use ping::{Echo, Ping, PingResult};
pub use request::{Order, Request, RequestApp};
pub use ticks::{Cbr, CbrRate, OnOff, Period, TickApp, exponential};
use tls::{Tls, TlsApp};
use video::{Video, VideoApp, VideoResult};
use voice::{Voice, VoiceApp, VoiceResult};
use web::Web;

kinds! {
    /// The traffic of a flow: one of the following.
    pub enum Workload as "Workload" {
        tables {
            /// One transfer, as fast as the network allows.
            "bulk" => Bulk(Bulk);
            /// `from` sends requests, `to` answers with objects.
            "request" => Request(Request);
            /// Packets at a constant rate.
            "cbr" => Cbr(Cbr);
            /// A constant rate in on periods, no packets in off periods.
            "onoff" => OnOff(OnOff);
            /// Web browsing: sessions of pages, each object a short flow.
            "web" => Web(Box<Web>);
            /// Files that start at random instants, each a flow.
            "ftp" => Ftp(Box<Ftp>);
            /// Background traffic as a share of a link's capacity.
            "mix" => Mix(Box<Mix>);
            /// One direction of a video call with congestion control.
            "media" => Media(Media);
            /// One direction of a call.
            "voice" => Voice(Voice);
            /// Echo requests: round trips over time.
            "ping" => Ping(Ping);
            /// Adaptive streaming: a video in segments, whose rate the player chooses.
            "video" => Video(Video);
        }
    }
}

impl Default for Workload {
    fn default() -> Self {
        Self::Bulk(Bulk::ENDLESS)
    }
}

/// The kind of transport that an application needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A reliable stream of bytes.
    Stream,
    /// Datagrams, which may be lost or reordered.
    Datagrams,
    /// Either of them: the workload is the same over both.
    Either,
}

impl Workload {
    /// The kind of transport it needs.
    pub const fn carrier(&self) -> Carrier {
        match self {
            Self::Bulk(_) | Self::Request(_) | Self::Video(_) => Carrier::Stream,
            Self::Web(_) | Self::Ftp(_) | Self::Mix(_) => Carrier::Stream,
            Self::Media(_) | Self::Voice(_) | Self::Ping(_) => Carrier::Datagrams,
            Self::Cbr(_) | Self::OnOff(_) => Carrier::Either,
        }
    }

    /// Whether it creates flows instead of being carried by one.
    pub const fn is_source(&self) -> bool {
        matches!(self, Self::Web(_) | Self::Ftp(_) | Self::Mix(_))
    }

    /// Whether it runs until the flow stops.
    pub const fn is_endless(&self) -> bool {
        match self {
            Self::Bulk(bulk) => bulk.bytes.is_none(),
            Self::Video(video) => video.length.is_none(),
            Self::Cbr(_) | Self::OnOff(_) => true,
            Self::Media(_) | Self::Voice(_) | Self::Ping(_) => true,
            Self::Request(_) | Self::Web(_) | Self::Ftp(_) | Self::Mix(_) => false,
        }
    }

    /// Whether the data is requested: the receiver of the data opens the connection and sends requests.
    pub const fn is_asked_for(&self) -> bool {
        matches!(self, Self::Web(_) | Self::Video(_))
    }

    /// The workload of each of its connections, with the defaults that depend on other keys written out.
    pub fn connections(self) -> Vec<Self> {
        match self {
            Self::Request(r) => r.connections().into_iter().map(Self::Request).collect(),
            Self::Web(web) => vec![Self::Web(Box::new(web.complete()))],
            Self::Video(video) => vec![Self::Video(video.complete())],
            other => vec![other],
        }
    }
}

/// The next actions of an application.
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

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// The receiving side: 1 is `to`.
    pub side: usize,
    /// Its number among those of its direction, from 0.
    pub number: u64,
    /// Payload size in bytes, without UDP and IP headers.
    pub bytes: u64,
    /// When it was sent.
    pub sent_at: Instant,
    /// It carries a Congestion Experienced mark.
    pub marked: bool,
}

/// The results of an application for its user.
#[derive(Clone, Debug, PartialEq)]
pub enum AppResult {
    /// Of a [`Request`] workload: when each object was requested and received.
    Request(RequestResult),
    /// Of a [`Media`] workload: rate, loss and jitter of the media stream.
    Media(MediaResult),
    /// Of a [`Voice`] workload: the quality of the call.
    Voice(VoiceResult),
    /// Of a [`Ping`] workload: what became of each request.
    Ping(PingResult),
    /// Of a [`Video`] workload: startup time, stalls and rates.
    Video(VideoResult),
}

/// What the applications at both ends of a flow do: a state machine without clock, socket and transport.
pub trait Application: Debug + Send {
    /// Bytes that have to reach the receiver for the flow to be complete; `None` without end or not known yet.
    fn total(&self) -> Option<u64> {
        None
    }
    /// The side that sends the bulk of the data: 0 is `from`.
    fn sender(&self) -> usize {
        0
    }
    /// Whether a side closes as soon as its peer has closed (all but servers that still have to answer).
    fn closes_after_peer(&self) -> bool {
        true
    }
    /// The connection is up (or, for UDP, the flow starts); called on the client side.
    fn on_start(&mut self, now: Instant, rng: &mut Pcg64) -> Action;
    /// Its timer fired; called on the client side.
    fn on_timer(&mut self, now: Instant, rng: &mut Pcg64) -> Action;
    /// `bytes` of the stream arrived at `side`, which has sent `sent` bytes of its own stream: how many of
    /// them are data of the workload (without headers of frames), and what that side does now.
    fn on_delivered(&mut self, now: Instant, side: usize, bytes: u64, sent: u64) -> (u64, Action) {
        let _ = (now, side, sent);
        (bytes, Action::default())
    }
    /// A datagram arrived: what is sent now, `write` by `from` and `reply` by `to`.
    fn on_datagram(&mut self, now: Instant, datagram: &Datagram) -> Action {
        let _ = (now, datagram);
        Action::default()
    }
    /// The ECN codepoint of its datagrams.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    /// The rates of an application that adapts its sending rate.
    fn rates(&self) -> Option<media::Snapshot> {
        None
    }
    /// What its user noticed until `now`; `lost` datagrams were dropped by the network.
    fn result(&self, now: Instant, lost: u64) -> Option<AppResult> {
        let _ = (now, lost);
        None
    }
}

/// The state of a running workload.
#[derive(Debug)]
pub enum App {
    /// A single transfer, see [`Workload::Bulk`]; also a source, which sends nothing itself.
    Bulk {
        /// Total bytes; `None` if unlimited.
        total: Option<u64>,
    },
    /// Requests and answers, see [`Workload::Request`].
    Request(Box<RequestApp>),
    /// Any other workload, behind the common interface.
    Other(Box<dyn Application>),
    /// One of the others over TLS.
    Tls(Box<TlsApp>),
}

impl App {
    /// The application of a workload. It keeps a result per object if the results have a row for each (`has_rows`);
    /// `sizes` is created only if the sizes of objects are drawn.
    pub fn new(workload: &Workload, has_rows: bool, sizes: impl FnOnce() -> Pcg64) -> Self {
        match workload {
            Workload::Bulk(bulk) => Self::Bulk {
                total: bulk.bytes.map(Bytes::get),
            },
            Workload::Request(spec) => {
                Self::Request(Box::new(RequestApp::new(spec, has_rows, sizes)))
            }
            Workload::Cbr(cbr) => Self::other(TickApp::stepped(&cbr.rate.steps(), cbr.packet_size)),
            Workload::OnOff(o) => {
                Self::other(TickApp::new(o.rate, o.packet_size, Some((o.on, o.off))))
            }
            Workload::Media(spec) => Self::other(MediaApp::new(spec, has_rows)),
            Workload::Voice(spec) => Self::other(VoiceApp::new(spec)),
            Workload::Ping(spec) => Self::other(PingApp::new(spec, has_rows)),
            Workload::Video(spec) => Self::other(VideoApp::new(spec)),
            // A source creates flows and sends nothing itself.
            Workload::Web(_) | Workload::Ftp(_) | Workload::Mix(_) => Self::Bulk { total: Some(0) },
        }
    }

    fn other(app: impl Application + 'static) -> Self {
        Self::Other(Box::new(app))
    }

    /// The application over TLS; unchanged for `None`.
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

    /// Bytes that must reach the receiver for the flow to be complete; `None` if unlimited or not known yet.
    #[inline]
    pub fn total(&self) -> Option<u64> {
        match self {
            Self::Bulk { total } => *total,
            Self::Request(r) => Some(r.total()),
            Self::Other(app) => app.total(),
            Self::Tls(t) => t.app().total(),
        }
    }

    /// The side that sends the bulk of the data: 0 is `from`.
    pub fn sender(&self) -> usize {
        match self {
            Self::Request(_) => 1,
            Self::Other(app) => app.sender(),
            Self::Tls(t) => t.app().sender(),
            _ => 0,
        }
    }

    /// Whether a side closes as soon as its peer has closed (all except servers with data still to send).
    pub fn closes_after_peer(&self) -> bool {
        match self {
            Self::Request(_) => false,
            Self::Other(app) => app.closes_after_peer(),
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
            Self::Other(app) => app.on_start(now, rng),
            Self::Tls(t) => t.connected(now, rng),
        }
    }

    /// `bytes` of the stream arrived at `side`, which has sent `sent` bytes of its own stream: returns how many of
    /// them are data of the workload (without headers of frames and records), and the actions of that side.
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
            Self::Other(app) => app.on_delivered(now, side, bytes, sent),
            Self::Tls(t) => t.on_delivered(now, side, bytes, sent),
            _ => (bytes, Action::default()),
        }
    }

    /// How many of the next `bytes` of the stream at `side`, which have arrived there and were not delivered, are data
    /// of the workload (without headers of frames and records).
    pub fn data_within(&self, side: usize, bytes: u64) -> u64 {
        match self {
            Self::Request(r) if side == 0 => r.data_within(bytes),
            Self::Tls(t) => t.data_within(side, bytes),
            _ => bytes,
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

    /// A datagram arrived: what is sent now, `write` by `from` and `reply` by `to`.
    #[inline]
    pub fn on_datagram(&mut self, now: Instant, datagram: &Datagram) -> Action {
        match self {
            Self::Other(app) => app.on_datagram(now, datagram),
            _ => Action::default(),
        }
    }

    /// The ECN codepoint of its datagrams.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        match self {
            Self::Other(app) => app.ecn(),
            _ => Ecn::NotEct,
        }
    }

    /// The rates of a workload with its own congestion control.
    pub fn rates(&self) -> Option<media::Snapshot> {
        match self {
            Self::Other(app) => app.rates(),
            _ => None,
        }
    }

    /// The application's timer fired; called on the client side.
    pub fn on_timer(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        match self {
            Self::Bulk { .. } => Action::default(),
            Self::Request(r) => r.ask(now),
            Self::Other(app) => app.on_timer(now, rng),
            Self::Tls(t) => t.on_timer(now, rng),
        }
    }

    /// The results until `now`; `lost` datagrams were dropped by the network.
    pub fn result(&self, now: Instant, lost: u64) -> Option<AppResult> {
        match self {
            Self::Request(r) => r.result().map(AppResult::Request),
            Self::Other(app) => app.result(now, lost),
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

#[cfg(test)]
mod tests {
    use super::*;
    use gargalo_settings::{Files, Json, Setting};

    fn read(text: &str) -> Workload {
        let json: Json = serde_json::from_str(text).unwrap();
        Workload::read(&json, &mut Files::default()).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn what_is_carried_reads_as_it_is_written_and_can_be() {
        let mut kinds: Vec<&str> = Vec::new();
        for text in [
            r#"{ "bulk": {} }"#,
            r#"{ "request": { "objects": 5, "size": "10kB", "connections": 2, "pipelined": true } }"#,
            r#"{ "request": { "sizes": ["1B", "2kB", "3kB"], "connections": 3, "think_time": "1s" } }"#,
            r#"{ "cbr": { "rate": { "steps": [["0s", "1Mbit/s"], ["1s", "0bit/s"]] } } }"#,
            r#"{ "onoff": { "rate": "1Mbit/s", "on": "1s", "off": { "exponential": "2s" } } }"#,
            r#"{ "web": { "load": 0.07, "model": "surge", "embedded": 3 } }"#,
            r#"{ "ftp": { "files": "7/min" } }"#,
            r#"{ "mix": { "load": "50%", "shares": { "web": 1 }, "web": { "persistent": true } } }"#,
            r#"{ "media": { "max_rate": "2Mbit/s", "ecn": true } }"#,
            r#"{ "voice": { "codec": "g729", "playout": "60ms" } }"#,
            r#"{ "ping": { "interval": "20ms", "count": 7 } }"#,
            r#"{ "video": { "selection": "buffer", "segment": "2s" } }"#,
        ] {
            let workload = read(text);
            kinds.push(workload.kind());
            let parts = workload.clone().connections();
            assert!(!parts.is_empty(), "{text}");
            for w in parts.iter().chain([&workload]) {
                assert_eq!(w.check(), Ok(()), "{text}");
                assert_eq!(read(&w.write().to_string()), *w, "{text}");
            }
        }
        kinds.dedup();
        assert_eq!(kinds, Workload::KINDS);
    }
}
