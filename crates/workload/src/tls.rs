//! TLS 1.3 over TCP: the flights of the handshake and the records of the data, as bytes and round trips.
//!
//! Nothing is encrypted: both ends derive the content from positions in the byte stream. The handshake is that of
//! RFC 8446 §2: ClientHello; the server's flight up to its Finished; the client's Finished, with which data may be
//! sent. Data is sent in records, which the receiver can decrypt only when they are complete (§5.2). With early
//! data (§2.3) it follows the ClientHello at once. Alerts, session tickets and key updates are left out.

use std::collections::VecDeque;

use gargalo_settings::support::Map;
use gargalo_settings::{Error, Files, Json, Switch, kinds, settings};
use gargalo_units::{Bytes, Instant};
use rand::Rng;
use rand_pcg::Pcg64;

use super::{Action, App};

/// Overhead of a record: header of 5 bytes, content type of one, authentication tag of 16
/// (RFC 8446 §5.2, §5.3).
pub const RECORD_OVERHEAD: u64 = 22;

settings! {
    /// TLS 1.3 as flights of these sizes, headers of records included. The defaults are the sizes of rustls 0.23
    /// with a self-signed Ed25519 certificate of 289 bytes and one application protocol.
    pub struct Tls: Copy as "TlsMap", over Tls::usual {
        /// ClientHello. Default with `early_data`: 330 B, as it then carries a ticket.
        client_hello: Bytes = Tls::FULL.client_hello, in FLIGHT;
        /// From ServerHello to Finished; 3 to 4 kB with a typical certificate chain. Default with `early_data`: 232
        /// B, as there is no certificate.
        server_flight: Bytes = Tls::FULL.server_flight, in FLIGHT;
        /// The client's Finished. Default with `early_data`: 100 B, with EndOfEarlyData before it.
        client_finished: Bytes = Tls::FULL.client_finished, in FLIGHT;
        /// Maximum data in a record; the receiver decrypts a record when it is complete (RFC 8446 §5.1).
        record_size: Bytes = Tls::FULL.record_size, in Bytes::new(1)..=Bytes::new(16_384);
        /// The client has a ticket of an earlier connection and sends data with its ClientHello (0-RTT).
        early_data: bool = false;
    }
}

/// Valid sizes of flights: a larger one is taken for a mistake.
const FLIGHT: std::ops::RangeInclusive<Bytes> = Bytes::new(1)..=Bytes::new(1_000_000);

kinds! {
    /// TLS between TCP and the application.
    pub enum TlsVersion: Copy as "TlsSpec" {
        open {
            /// TLS 1.3 (RFC 8446), with the sizes of its handshake and records.
            "1.3" => V13(Tls);
        }
    }
}

impl TlsVersion {
    /// The chosen handshake; `None`: no TLS.
    pub const fn chosen(switch: Switch<Self>) -> Option<Tls> {
        match switch {
            Switch::Off => None,
            Switch::On => Some(Tls::FULL),
            Switch::To(Self::V13(tls)) => Some(tls),
        }
    }
}

impl Tls {
    /// A full handshake of rustls 0.23 with a self-signed Ed25519 certificate of 289 bytes and one
    /// application protocol.
    pub const FULL: Self = Self {
        client_hello: Bytes::new(225),
        server_flight: Bytes::new(600),
        client_finished: Bytes::new(80),
        record_size: Bytes::new(16_384),
        early_data: false,
    };

    /// The same after an earlier connection, with early data: the ClientHello carries a ticket, there is no
    /// certificate, and EndOfEarlyData precedes the client's Finished.
    pub const RESUMED: Self = Self {
        client_hello: Bytes::new(330),
        server_flight: Bytes::new(232),
        client_finished: Bytes::new(100),
        record_size: Bytes::new(16_384),
        early_data: true,
    };

    /// The default sizes of keys that a table does not give.
    fn usual(given: &Map<String, Json>, _: &mut Files) -> Result<Self, Error> {
        match given.get("early_data") {
            Some(Json::Bool(true)) => Ok(Self::RESUMED),
            _ => Ok(Self::FULL),
        }
    }

    /// The bytes of data in records, if written at once.
    pub(crate) fn protected(&self, bytes: u64) -> u64 {
        let records = bytes.div_ceil(self.record_size.get().max(1));
        bytes.saturating_add(records.saturating_mul(RECORD_OVERHEAD))
    }
}

/// An application over TLS, both ends of it.
#[derive(Debug)]
pub struct TlsApp {
    app: App,
    spec: Tls,
    /// The streams from client to server, and from server to client.
    streams: [Stream; 2],
    /// Created when the connection is up, for the start of the application.
    rng: Option<Pcg64>,
    /// The server has sent its flight.
    has_answered: bool,
    /// The client has sent its Finished.
    is_complete: bool,
    /// The client closes after its Finished.
    closes: bool,
}

impl TlsApp {
    pub(super) fn new(app: App, spec: Tls) -> Self {
        Self {
            app,
            spec,
            streams: [(); 2].map(|()| Stream::new(spec.record_size.get())),
            rng: None,
            has_answered: false,
            is_complete: false,
            closes: false,
        }
    }

    /// The application over TLS.
    pub(super) fn app(&self) -> &App {
        &self.app
    }

    /// Whether the client's application may write.
    pub(super) fn is_open(&self) -> bool {
        self.is_complete || (self.spec.early_data && self.rng.is_some())
    }

    /// The TCP connection is up.
    pub(super) fn connected(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        let mut word = || u128::from(rng.next_u64());
        self.rng = Some(Pcg64::new((word() << 64) | word(), word()));
        let hello = self.flight(0, self.spec.client_hello);
        if self.spec.early_data {
            hello.and(self.start(now))
        } else {
            hello
        }
    }

    fn start(&mut self, now: Instant) -> Action {
        let Some(rng) = &mut self.rng else {
            return Action::default();
        };
        let action = self.app.on_start(now, rng);
        self.protect(0, action)
    }

    pub(super) fn on_timer(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        let action = self.app.on_timer(now, rng);
        self.protect(0, action)
    }

    /// Processes arrived records: continues the handshake, and passes data on to [`App::on_delivered`] of the
    /// application.
    pub(super) fn on_delivered(
        &mut self,
        now: Instant,
        side: usize,
        bytes: u64,
        sent: u64,
    ) -> (u64, Action) {
        let opened = self.streams[1 - side].take(bytes);
        let mut action = Action::default();
        if opened.flights > 0 && side == 1 && !self.has_answered {
            self.has_answered = true;
            action = self.flight(1, self.spec.server_flight);
        }
        if opened.flights > 0 && side == 0 && !self.is_complete {
            action = self.flight(0, self.spec.client_finished);
            self.is_complete = true;
            action.close = std::mem::take(&mut self.closes);
            if !self.spec.early_data {
                action = action.and(self.start(now));
            }
        }
        if opened.data == 0 {
            return (0, action);
        }
        let sent = self.streams[side].data_until(sent);
        let (data, next) = self.app.on_delivered(now, side, opened.data, sent);
        (data, action.and(self.protect(side, next)))
    }

    /// As [`App::data_within`], of the records behind those decrypted.
    pub(super) fn data_within(&self, side: usize, bytes: u64) -> u64 {
        let data = self.streams[1 - side].data_within(bytes);
        self.app.data_within(side, data)
    }

    fn flight(&mut self, side: usize, bytes: Bytes) -> Action {
        Action {
            write: self.streams[side].flight(bytes.get()),
            ..Action::default()
        }
    }

    /// Translates an action of the application into one on the TLS stream.
    fn protect(&mut self, side: usize, action: Action) -> Action {
        // After its Finished, not before.
        let waits = side == 0 && !self.is_complete;
        self.closes |= waits && action.close;
        Action {
            write: self.streams[side].write(action.write),
            close: action.close && !waits,
            ..action
        }
    }
}

/// One direction of the byte stream, from the first byte that was not decrypted.
#[derive(Debug)]
struct Stream {
    /// Maximum data in a record.
    most: u64,
    units: VecDeque<Units>,
    /// Bytes of the first unit that have arrived.
    arrived: u64,
    /// Position of the first unit, and data before it.
    start: u64,
    data: u64,
}

/// A sequence of flights or records of equal size.
#[derive(Debug)]
struct Units {
    count: u64,
    /// On the stream, at least one byte.
    size: u64,
    /// Data in each; `None`: a flight of the handshake.
    data: Option<u64>,
}

/// The decrypted data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Opened {
    flights: u64,
    data: u64,
}

impl Stream {
    fn new(most: u64) -> Self {
        Self {
            most: most.max(1),
            units: VecDeque::new(),
            arrived: 0,
            start: 0,
            data: 0,
        }
    }

    /// Writes a flight of the handshake; returns its bytes.
    fn flight(&mut self, bytes: u64) -> u64 {
        let size = bytes.max(1);
        self.units.push_back(Units {
            count: 1,
            size,
            data: None,
        });
        size
    }

    /// Writes data at once; returns the bytes of its records. `u64::MAX` is unlimited data.
    fn write(&mut self, bytes: u64) -> u64 {
        if bytes == u64::MAX {
            self.records(u64::MAX, self.most);
            return u64::MAX;
        }
        let (full, rest) = (bytes / self.most, bytes % self.most);
        self.records(full, self.most);
        self.records(u64::from(rest > 0), rest);
        let count = full + u64::from(rest > 0);
        bytes.saturating_add(count.saturating_mul(RECORD_OVERHEAD))
    }

    fn records(&mut self, count: u64, data: u64) {
        match self.units.back_mut() {
            _ if count == 0 => {}
            Some(last) if last.data == Some(data) => last.count = last.count.saturating_add(count),
            _ => self.units.push_back(Units {
                count,
                size: data + RECORD_OVERHEAD,
                data: Some(data),
            }),
        }
    }

    /// Processes received bytes; returns what can be decrypted now.
    fn take(&mut self, bytes: u64) -> Opened {
        let mut opened = Opened::default();
        self.arrived += bytes;
        while let Some(first) = self.units.front_mut() {
            let whole = (self.arrived / first.size).min(first.count);
            if whole == 0 {
                break;
            }
            self.arrived -= whole * first.size;
            self.start += whole * first.size;
            match first.data {
                None => opened.flights += whole,
                Some(data) => opened.data += whole * data,
            }
            first.count -= whole;
            if first.count > 0 {
                break;
            }
            self.units.pop_front();
        }
        self.data += opened.data;
        opened
    }

    /// The amount of data in the next `bytes` bytes of the stream, after those received: of a record that is not
    /// complete what exceeds its overhead.
    fn data_within(&self, bytes: u64) -> u64 {
        let mut left = self.arrived.saturating_add(bytes);
        let mut data = 0_u64;
        for units in &self.units {
            let whole = (left / units.size).min(units.count);
            let each = units.data.unwrap_or(0);
            data = data.saturating_add(whole.saturating_mul(each));
            left -= whole * units.size;
            if whole < units.count {
                return data.saturating_add(left.saturating_sub(RECORD_OVERHEAD).min(each));
            }
        }
        data
    }

    /// The amount of data in records that begin before a position of the stream, which is at or before the first
    /// byte not decrypted.
    fn data_until(&self, position: u64) -> u64 {
        let mut left = position.saturating_sub(self.start);
        let mut data = self.data;
        for units in &self.units {
            let begun = left.div_ceil(units.size).min(units.count);
            data = data.saturating_add(units.data.unwrap_or(0).saturating_mul(begun));
            left = left.saturating_sub(units.size.saturating_mul(begun));
            if left == 0 {
                break;
            }
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Request, Workload};

    const NOW: Instant = Instant::ZERO;

    fn rng() -> Pcg64 {
        crate::stream(1, "t")
    }

    fn tls(workload: &Workload, spec: Tls) -> App {
        App::new(workload, true, rng).inside(Some(spec))
    }

    fn request() -> Workload {
        Workload::Request(Request::of([Bytes::new(20_000)]))
    }

    #[test]
    fn a_full_handshake_comes_before_the_request() {
        let mut app = tls(&request(), Tls::FULL);
        let hello = app.on_start(NOW, &mut rng());
        assert_eq!(
            (hello.write, hello.close, app.is_open()),
            (225, false, false)
        );
        assert_eq!(app.on_delivered(NOW, 1, 224, 0), (0, Action::default()));
        let (data, flight) = app.on_delivered(NOW, 1, 1, 0);
        assert_eq!((data, flight.write), (0, 600));
        assert_eq!(app.on_delivered(NOW, 0, 599, 225), (0, Action::default()));
        assert!(!app.is_open());
        let (data, finished) = app.on_delivered(NOW, 0, 1, 225);
        assert!(app.is_open());
        assert_eq!((data, finished.write, finished.close), (0, 80 + 122, true));
        // The answer: one full record and one with what is left.
        let (data, answer) = app.on_delivered(NOW, 1, 80 + 122, 600);
        assert_eq!((data, answer.write, answer.close), (100, 20_044, true));
        assert_eq!(app.on_delivered(NOW, 0, 16_405, 427).0, 0, "not whole");
        assert_eq!(app.on_delivered(NOW, 0, 1, 427).0, 16_384);
        assert_eq!(app.on_delivered(NOW, 0, 3638, 427).0, 3616);
        assert_eq!((app.total(), app.sender()), (Some(20_000), 1));
    }

    #[test]
    fn early_data_goes_with_the_hello_and_the_close_after_finished() {
        let mut app = tls(&request(), Tls::RESUMED);
        let hello = app.on_start(NOW, &mut rng());
        assert_eq!((hello.write, hello.close), (330 + 122, false));
        assert!(app.is_open());
        let (data, answer) = app.on_delivered(NOW, 1, 452, 0);
        assert_eq!(
            (data, answer.write, answer.close),
            (100, 232 + 20_044, true)
        );
        let (data, finished) = app.on_delivered(NOW, 0, 232 + 16_406, 452);
        assert_eq!((data, finished.write, finished.close), (16_384, 100, true));
        assert_eq!(
            app.on_delivered(NOW, 1, 100, 20_276),
            (0, Action::default())
        );
        assert_eq!(app.on_delivered(NOW, 0, 3638, 552).0, 3616);
    }

    #[test]
    fn bulk_without_end_comes_in_full_records() {
        let mut app = tls(&Workload::default(), Tls::FULL);
        app.on_start(NOW, &mut rng());
        app.on_delivered(NOW, 1, 225, 0);
        let (_, action) = app.on_delivered(NOW, 0, 600, 225);
        assert_eq!((action.write, action.close), (u64::MAX, false));
        assert_eq!(
            app.on_delivered(NOW, 1, 80 + 3 * 16_406 + 5, 600).0,
            3 * 16_384
        );
        assert_eq!(app.total(), None);
    }

    #[test]
    fn data_of_a_part_of_a_record_is_what_exceeds_its_overhead() {
        let mut stream = Stream::new(100);
        assert_eq!(stream.flight(50), 50);
        assert_eq!(stream.write(250), 250 + 3 * 22);
        let told = |s: &Stream, n: [u64; 5]| n.map(|n| s.data_within(n));
        assert_eq!(told(&stream, [0, 50, 72, 73, 172]), [0, 0, 0, 1, 100]);
        assert_eq!(
            told(&stream, [195, 294, 326, 366, 9999]),
            [101, 200, 210, 250, 250]
        );
        stream.take(50 + 122 + 30); // eight bytes of the second record's data wait
        assert_eq!(told(&stream, [0, 1, 92, 93, 120]), [8, 9, 100, 100, 106]);
    }

    #[test]
    fn records_count_as_sent_once_they_begin() {
        let mut stream = Stream::new(100);
        assert_eq!(stream.flight(50), 50);
        assert_eq!(stream.write(250), 250 + 3 * 22);
        for (position, data) in [(50, 0), (51, 100), (172, 100), (173, 200), (1000, 250)] {
            assert_eq!(stream.data_until(position), data, "{position}");
        }
        let opened = stream.take(50 + 122 + 3);
        assert_eq!((opened.flights, opened.data), (1, 100));
        assert_eq!(stream.data_until(175), 200);
        assert_eq!(stream.data_until(172), 100);
    }

    #[test]
    fn overhead_by_arithmetic_is_that_of_the_stream() {
        for bytes in [0, 1, 16_384, 16_385, 1_000_000] {
            let written = Stream::new(16_384).write(bytes);
            assert_eq!(Tls::FULL.protected(bytes), written);
        }
    }
}
