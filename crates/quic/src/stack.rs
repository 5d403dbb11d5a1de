//! What the worlds need of a QUIC implementation: ours is [`Noq`](crate::Noq); others are shared libraries or Python
//! classes.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

use bytes::{Bytes, BytesMut};
use gargalo_units::{Duration, Ecn, Instant};

use crate::{
    Chunk, Config, Crypto, Datagram, Direction, Error, Event, Handshake, Init, Notice, Offered,
    PathSnapshot, Realm, Snapshot, Stats, StreamId, Uses,
};

/// One end of a connection of any QUIC implementation, sans-IO.
///
/// After every call with a time, and after writing, the caller polls: events, data, datagrams, and last the timer.
pub trait Stack: Debug + Send {
    /// Processes a datagram received at `local` from `remote`.
    fn handle(
        &mut self,
        now: Instant,
        payload: BytesMut,
        ecn: Ecn,
        local: SocketAddr,
        remote: SocketAddr,
    );
    /// Runs the timers due at `now`; to be called at the time of [`Stack::poll_timeout`].
    fn handle_timeout(&mut self, now: Instant);
    /// When to call [`Stack::handle_timeout`]; always later than the latest call.
    fn poll_timeout(&mut self) -> Option<Instant>;
    /// The next datagram to send; call until `None` after every other call.
    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram>;
    /// The next event.
    fn poll_event(&mut self) -> Option<Event>;
    /// The next piece of received stream data.
    fn poll_read(&mut self) -> Option<Chunk>;
    /// Opens a stream; `None` if the limit of streams is reached.
    fn open(&mut self, now: Instant, direction: Direction) -> Option<StreamId>;
    /// Writes to a stream, opened by either side; returns how many bytes were taken.
    fn write(&mut self, now: Instant, stream: StreamId, data: Bytes) -> usize;
    /// Room for [`Stack::write`]; 0 before keys are available and after the end.
    fn write_room(&mut self, stream: StreamId) -> u64;
    /// Finishes a stream after the written data.
    fn finish(&mut self, now: Instant, stream: StreamId);
    /// Ends a stream at once: what was written is not sent any more (RESET_STREAM, RFC 9000 §3.1).
    fn reset(&mut self, now: Instant, stream: StreamId);
    /// Asks the peer to end a stream; what arrives on it is not read any more (STOP_SENDING, RFC 9000 §3.5).
    fn stop(&mut self, now: Instant, stream: StreamId);
    /// Sets the urgency of a stream's data, from 0, which goes first, to 7 (RFC 9218 §4.1).
    fn set_urgency(&mut self, now: Instant, stream: StreamId, urgency: u8);
    /// Offers a datagram (RFC 9221).
    fn send_datagram(&mut self, now: Instant, data: &Bytes) -> Offered;
    /// The next datagram that has arrived (RFC 9221).
    fn poll_datagram(&mut self) -> Option<Bytes>;
    /// Begins to send with the next keys; false: that is not allowed yet (RFC 9001 §6.1).
    fn update_keys(&mut self, now: Instant) -> bool;
    /// Ends the connection now.
    fn close(&mut self, now: Instant);
    /// All data written has been acknowledged, on streams that have been finished. An implementation that does not
    /// report it returns true.
    fn all_acknowledged(&mut self) -> bool;
    /// Whether the connection has ended and nothing is pending.
    fn is_over(&self) -> bool;
    /// The client's address has changed: sends from `local` from now on (RFC 9000 §9).
    fn migrate(&mut self, now: Instant, local: SocketAddr);
    /// The network reports that a datagram that was sent was larger than the MTU of a link; `mtu` is in bytes with the
    /// IP header (RFC 1191, RFC 8201). Anybody can forge such a report: an implementation that ignores it is right
    /// (RFC 9000 §14.2.1).
    fn on_packet_too_big(
        &mut self,
        _now: Instant,
        _local: SocketAddr,
        _remote: SocketAddr,
        _mtu: u32,
    ) {
    }
    /// Counters since the start of the connection.
    fn stats(&mut self) -> Stats;
    /// Bytes of stream data that have arrived, each counted once, and that [`Stack::poll_read`] has not returned;
    /// `None`: the implementation does not report it.
    fn buffered(&mut self) -> Option<u64> {
        None
    }
    /// The state of the first path's sender.
    fn snapshot(&mut self) -> Snapshot;
    /// The round-trip sample of the first path's latest acknowledgement, once.
    fn take_rtt_sample(&mut self) -> Option<Duration>;
    /// Collects notices from now on.
    fn record_notices(&mut self);
    /// The next notice of the protocol, if they are collected.
    fn poll_notice(&mut self) -> Option<Notice>;
    /// A line of an `SSLKEYLOGFILE`, as soon as the secret exists.
    fn poll_secret(&mut self) -> Option<String>;
    /// Client: opens a further path (draft-ietf-quic-multipath).
    fn open_path(&mut self, _now: Instant, _local: IpAddr, _remote: SocketAddr) {}
    /// Every path that can or could carry data, in the order of opening; empty without multipath.
    fn paths(&mut self) -> Vec<PathSnapshot> {
        Vec::new()
    }
    /// The round-trip samples of the latest acknowledgements, each once, with the path's identifier.
    fn take_path_rtt_samples(&mut self) -> Vec<(u32, Duration)> {
        Vec::new()
    }
}

/// A QUIC implementation with a choice of congestion control.
pub trait Implementation: Debug + Send + Sync {
    /// Its name in scenarios.
    fn name(&self) -> &str;

    /// Whether it cannot use Ed25519, so that certificates of its connections must be ECDSA with P-256
    /// ([`Realm::with_ecdsa`]).
    fn needs_ecdsa(&self) -> bool {
        false
    }

    /// Checks that it can do what the options request and the flow uses, at the client's or the server's end.
    ///
    /// # Errors
    /// Names the first option that it cannot follow.
    fn check(&self, config: &Config, uses: Uses, is_client: bool) -> Result<(), Error>;

    /// Creates one end: a client that connects, or a server that waits for one connection.
    ///
    /// # Errors
    /// When an option is invalid.
    fn end(
        &self,
        realm: &Realm,
        config: &Config,
        init: Init,
        is_client: bool,
    ) -> Result<Box<dyn Stack>, Error>;
}

/// What an implementation other than noq can do besides connections, streams and loss recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Early data with a session of an earlier connection (RFC 9001 §4.6).
    pub zero_rtt: bool,
    /// Address validation by Retry, as a server (RFC 9000 §8.1.2).
    pub retry: bool,
    /// A new local address, as a client (RFC 9000 §9).
    pub migration: bool,
    /// Explicit congestion notification (RFC 9000 §13.4).
    pub ecn: bool,
    /// Pacing can be switched off.
    pub no_pacing: bool,
    /// Searches for larger datagrams (RFC 8899).
    pub mtu_discovery: bool,
    /// Starts with another window than ten packets (RFC 9002 §7.2).
    pub initial_window: bool,
    /// Takes options of its own.
    pub options: bool,
    /// Says from which of its addresses each datagram leaves.
    pub local_address: bool,
    /// Unidirectional streams (RFC 9000 §2.1).
    pub unidirectional: bool,
    /// Datagrams (RFC 9221).
    pub datagrams: bool,
    /// Streams that are reset, and that the peer is asked to end (RFC 9000 §3.5).
    pub cancel: bool,
    /// Streams of different urgency (RFC 9218 §4.1).
    pub urgency: bool,
    /// Updates its keys when it is asked to (RFC 9001 §6).
    pub key_update: bool,
    /// Several paths at once (draft-ietf-quic-multipath).
    pub multipath: bool,
    /// Writes qlog.
    pub qlog: bool,
    /// Reports its packets, of which the host writes qlog if the stack does not.
    pub packets: bool,
    /// Cannot use Ed25519: the certificate of its connections is ECDSA with P-256.
    pub ecdsa: bool,
}

/// The stack's name, of those in `own`, for a congestion control that a scenario names: the same name, or if the stack
/// does not know it and it is an alias of one of this project's, the name that it stands for.
pub fn own_name<'a>(own: &'a [String], asked: &str) -> Option<&'a str> {
    let known = |name: &str| own.iter().find(|n| *n == name).map(String::as_str);
    known(asked).or_else(|| known(gargalo_cc::find(asked).ok()?.name))
}

impl Features {
    /// Each by the word that names it in lists.
    pub fn by_word(&mut self) -> [(&'static str, &mut bool); 18] {
        [
            ("0-rtt", &mut self.zero_rtt),
            ("retry", &mut self.retry),
            ("migration", &mut self.migration),
            ("ecn", &mut self.ecn),
            ("no-pacing", &mut self.no_pacing),
            ("mtu-discovery", &mut self.mtu_discovery),
            ("initial-window", &mut self.initial_window),
            ("options", &mut self.options),
            ("local-address", &mut self.local_address),
            ("unidirectional", &mut self.unidirectional),
            ("datagrams", &mut self.datagrams),
            ("cancel", &mut self.cancel),
            ("urgency", &mut self.urgency),
            ("key-update", &mut self.key_update),
            ("multipath", &mut self.multipath),
            ("qlog", &mut self.qlog),
            ("packets", &mut self.packets),
            ("ecdsa", &mut self.ecdsa),
        ]
    }

    /// Checks what a scenario requests of the stack of this name, with these congestion controls, at one end.
    ///
    /// # Errors
    /// Names the first option that it cannot follow, and what can be done.
    pub fn check(
        self,
        name: &str,
        congestion: &[String],
        config: &Config,
        uses: Uses,
        is_client: bool,
    ) -> Result<(), Error> {
        config.check_ranges()?;
        let usual = Config::default();
        let cannot = |what: &str, help: &str| {
            Err(Error::Option(format!(
                "stack = \"{name}\" cannot do {what}; {help}"
            )))
        };
        let chosen = &config.congestion.name;
        if own_name(congestion, chosen).is_none() {
            return cannot(
                &format!("congestion = \"{chosen}\""),
                &format!(
                    "it has its own congestion controls: {}",
                    congestion.join(", ")
                ),
            );
        }
        let only_noq = "leave it out, or use stack = \"noq\"";
        let own: [(&str, bool); 6] = [
            ("crypto = \"null\"", config.crypto == Crypto::Null),
            ("max_window", config.max_window.is_some()),
            ("ack", config.ack.is_some()),
            (
                "packet_threshold",
                config.packet_threshold != usual.packet_threshold,
            ),
            (
                "time_threshold",
                config.time_threshold != usual.time_threshold,
            ),
            (
                "parameters of a congestion control",
                config.congestion.params.iter().next().is_some(),
            ),
        ];
        if let Some((what, _)) = own.iter().find(|(_, asked)| *asked) {
            return cannot(what, only_noq);
        }
        let leave = "leave it out, or use another stack";
        let optional: [(&str, bool); 11] = [
            (
                "options",
                !config.options_of(is_client).is_empty() && !self.options,
            ),
            (
                "handshake = \"0-rtt\"",
                config.handshake == Handshake::ZeroRtt && !self.zero_rtt,
            ),
            ("retry = true", config.retry && !is_client && !self.retry),
            (
                "migration",
                config.migration.is_some() && is_client && !self.migration,
            ),
            ("ecn = true", config.ecn && !self.ecn),
            (
                "unidirectional = true",
                config.unidirectional && !self.unidirectional,
            ),
            (
                "key_update",
                config.key_update.is_some() && is_client && !self.key_update,
            ),
            ("multipath", config.paths() > 1 && !self.multipath),
            ("datagrams", uses.datagrams && !self.datagrams),
            ("give_up", uses.cancel && !self.cancel),
            ("urgency", uses.urgency && !is_client && !self.urgency),
        ];
        if let Some((what, _)) = optional.iter().find(|(_, asked)| *asked) {
            return cannot(what, leave);
        }
        let usual_window = 10 * u64::from(config.datagram_size);
        if config.initial_window().get() != usual_window && !self.initial_window {
            let asked = config.initial_window();
            return cannot(
                &format!("initial_window = \"{asked}\""),
                "it starts with ten packets",
            );
        }
        if !config.pacing && !self.no_pacing {
            return cannot("pacing = false", leave);
        }
        Ok(())
    }
}
