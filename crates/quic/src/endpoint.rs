//! One end of a connection, sans-IO.

use std::net::{IpAddr, SocketAddr};

use bytes::{Bytes, BytesMut};
use gargalo_trace::Quantiles;
use gargalo_units::{Bytes as Size, Duration, Ecn, Instant, Rate};
use rand_pcg::Pcg64;

use crate::{Config, Congestion, Error, Realm};

/// Number of a stream (RFC 9000 §2.1).
pub type StreamId = u64;

/// What an endpoint starts from.
pub struct Init {
    /// When.
    pub now: Instant,
    /// Its own address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// The endpoint's random stream.
    pub rng: Pcg64,
    /// Client: use a ticket of an earlier connection to the same `remote` address from the same `local` one,
    /// if there is one, to send before the handshake is complete.
    pub zero_rtt: bool,
    /// Collect TLS secrets for [`Endpoint::poll_secret`].
    pub secrets: bool,
    /// Where the qlog trace goes (JSON-SEQ), and its title.
    pub qlog: Option<(Box<dyn std::io::Write + Send + Sync>, String)>,
}

/// A UDP datagram on its way.
#[derive(Debug)]
pub struct Datagram {
    /// UDP payload.
    pub payload: BytesMut,
    /// Mark.
    pub ecn: Ecn,
    /// From.
    pub local: SocketAddr,
    /// To.
    pub remote: SocketAddr,
}

/// What an application learns from its endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Data may be sent: the handshake is complete, or 0-RTT keys are there (`early`).
    Connected {
        /// Before the handshake is complete.
        early: bool,
    },
    /// The handshake is complete; `zero_rtt` tells whether early data was accepted, if any was offered.
    HandshakeComplete {
        /// `None`: no early data was offered.
        zero_rtt: Option<bool>,
    },
    /// The connection has ended in order, by either side.
    Closed,
    /// The connection failed.
    Failed(String),
}

/// What happened on a connection so far.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Packets with data or other ack-eliciting content sent (first flights included).
    pub sent_packets: u64,
    /// Bytes of stream data sent, repetitions included.
    pub sent_bytes: u64,
    /// Of the packets sent, those that repeat stream data.
    pub retransmitted_packets: u64,
    /// Packets taken for lost.
    pub lost_packets: u64,
    /// Probe timeouts that fired (RFC 9002 §6.2).
    pub timeouts: u64,
    /// Congestion events withdrawn as spurious.
    pub spurious: u64,
    /// Congestion Experienced marks on received packets.
    pub ce_marks: u64,
    /// UDP datagrams sent, of any kind.
    pub sent_datagrams: u64,
    /// UDP payload bytes sent.
    pub sent_datagram_bytes: u64,
    /// Round-trip samples.
    pub rtt: Quantiles,
}

/// The state of the first path's sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Congestion window.
    pub cwnd: Size,
    /// Slow-start threshold; `None`: infinite or none.
    pub ssthresh: Option<Size>,
    /// Bytes in flight.
    pub in_flight: Size,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Pacing rate; `None`: not paced.
    pub pacing_rate: Option<Rate>,
    /// Latest delivery-rate sample; `None` with noq's own congestion controls.
    pub delivery_rate: Option<Rate>,
    /// One word for the controller's phase.
    pub phase: &'static str,
}

/// Something the protocol did, for the table of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// One or two words: `loss`, `recovery`, `timeout`, `handshake`, `zero-rtt`, `path`, `mtu`, ….
    pub kind: &'static str,
    /// What else there is to say.
    pub detail: String,
}

/// Data of a stream, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Which stream.
    pub stream: StreamId,
    /// Content; may be empty if `end`.
    pub data: Bytes,
    /// Nothing follows on this stream.
    pub end: bool,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Endpoint {}

impl Endpoint {
    /// A client that connects.
    ///
    /// # Errors
    /// When an option is impossible.
    pub fn connect(
        realm: &Realm,
        config: &Config,
        congestion: &Congestion,
        init: Init,
    ) -> Result<Self, Error> {
        let _ = (realm, config, congestion, init);
        todo!()
    }

    /// A server that waits for one connection.
    ///
    /// # Errors
    /// As for [`Endpoint::connect`].
    pub fn listen(
        realm: &Realm,
        config: &Config,
        congestion: &Congestion,
        init: Init,
    ) -> Result<Self, Error> {
        let _ = (realm, config, congestion, init);
        todo!()
    }

    /// A datagram has arrived at `local` from `remote`.
    pub fn handle(
        &mut self,
        now: Instant,
        payload: BytesMut,
        ecn: Ecn,
        local: SocketAddr,
        remote: SocketAddr,
    ) {
        let _ = (now, payload, ecn, local, remote);
        todo!()
    }

    /// The time of [`Endpoint::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// When [`Endpoint::handle_timeout`] wants to be called.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        todo!()
    }

    /// The next datagram to send; call until `None` after every other call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let _ = now;
        todo!()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        todo!()
    }

    /// The next piece of a stream that the peer has written.
    pub fn poll_read(&mut self) -> Option<Chunk> {
        todo!()
    }

    /// Opens a bidirectional stream; `None` when there may be no more of them now.
    pub fn open(&mut self) -> Option<StreamId> {
        todo!()
    }

    /// Writes to a stream, opened by either side; returns how many bytes were taken.
    pub fn write(&mut self, stream: StreamId, data: Bytes) -> usize {
        let _ = (stream, data);
        todo!()
    }

    /// Room for [`Endpoint::write`]: 0 also before keys are there and after the end.
    pub fn write_room(&mut self, stream: StreamId) -> u64 {
        let _ = stream;
        todo!()
    }

    /// Ends a stream after what was written.
    pub fn finish(&mut self, stream: StreamId) {
        let _ = stream;
        todo!()
    }

    /// Ends the connection now.
    pub fn close(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// All data written has been acknowledged.
    pub fn all_acknowledged(&mut self) -> bool {
        todo!()
    }

    /// Nothing is left to do or to wait for.
    pub fn is_over(&self) -> bool {
        todo!()
    }

    /// The client's address has changed: sends from `local` from now on (RFC 9000 §9).
    pub fn migrate(&mut self, now: Instant, local: SocketAddr) {
        let _ = (now, local);
        todo!()
    }

    /// Client: opens a further path (draft-ietf-quic-multipath).
    pub fn open_path(&mut self, now: Instant, local: IpAddr, remote: SocketAddr) {
        let _ = (now, local, remote);
        todo!()
    }

    /// Counters.
    pub fn stats(&mut self) -> Stats {
        todo!()
    }

    /// The sender's state.
    pub fn snapshot(&mut self) -> Snapshot {
        todo!()
    }

    /// The next round-trip sample.
    pub fn take_rtt_sample(&mut self) -> Option<Duration> {
        todo!()
    }

    /// What the protocol did, if anybody asked for it with [`Endpoint::record_notices`].
    pub fn poll_notice(&mut self) -> Option<Notice> {
        todo!()
    }

    /// Collects notices from now on.
    pub fn record_notices(&mut self) {
        todo!()
    }

    /// A line of an `SSLKEYLOGFILE`, as soon as the secret exists.
    pub fn poll_secret(&mut self) -> Option<String> {
        todo!()
    }
}
