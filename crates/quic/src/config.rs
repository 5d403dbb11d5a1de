//! The configuration of both ends of a connection, as in scenarios.

use gargalo_cc::{Params, chosen::Congestion};
use gargalo_settings::support::overlay;
use gargalo_settings::{Error, Files, Json, Setting, Switch, Window, names, settings};
use gargalo_units::{Bytes, Duration};
use serde_json::Map;

use crate::Profile;
use crate::congestion::OursOrOwn;
use crate::stacks::{NOQ, Options, Stacks};

settings! {
    /// QUIC (RFC 9000): a production implementation in virtual time. Options that are not given have the profile's
    /// value.
    pub struct Config as "Quic", over Config::usual, checked by Config::consistent {
        /// The implementation: `noq`, or the name of a plug-in; a table `{ client, server }` for different ends.
        stack: Stacks = Stacks::default();
        /// Options that a plug-in's stack has by itself, handed over as they are; tables `client` and `server`
        /// for different ones. Default: none.
        options: Option<Options> = None;
        /// Congestion control of both ends: a name, or a table of one name and its parameters. `noq-cubic`,
        /// `noq-newreno` and `noq-bbr3` are the implementation's own.
        congestion: Congestion as OursOrOwn = Congestion::default();
        /// Named set of defaults for all other options.
        profile: Profile = Profile::Standard;
        /// `0-rtt` sends data before the handshake is complete, with a ticket of an earlier connection of the
        /// same hosts.
        handshake: Handshake = Handshake::OneRtt;
        /// The server validates the client's address with a Retry packet before anything else (RFC 9000 §8.1.2).
        retry: bool = false;
        /// `null` sends packets of the same sizes at the same times, but does not encrypt: for large sweeps.
        crypto: Crypto = Crypto::Tls;
        /// Initial congestion window, in packets or bytes.
        initial_window: Window = Window::Bytes(Bytes::new(12_000));
        /// Upper limit of the effective congestion window. Default: no limit.
        max_window: Option<Window> = None;
        /// UDP payload of a full packet, before discovery increases it. Default: the profile's, or less if the
        /// route's MTU is smaller.
        datagram_size: u16 as Bytes = 1200, in LEAST..=MOST;
        /// Discovery of larger datagrams (RFC 8899): true up to 1452 bytes, or up to a size.
        mtu_discovery: Switch<Bytes> = Switch::On;
        /// Pace packets over the round trip; false: only where the congestion control gives a rate.
        pacing: bool = true;
        /// Request fewer acknowledgements from the peer (draft-ietf-quic-ack-frequency). Default: every second
        /// packet is acknowledged (RFC 9000 §13.2.2).
        ack: Option<AckFrequency> = None;
        /// Number of streams of a bulk transfer.
        streams: u32 = 1, in 1..=10_000;
        /// The streams of a bulk transfer are unidirectional (RFC 9000 §2.1).
        unidirectional: bool = false;
        /// The client updates its keys this often (RFC 9001 §6). Default: never.
        key_update: Option<Duration> = None, in Some(Duration::from_millis(1))..;
        /// Receive window of a stream.
        stream_window: u64 as Bytes = 64 << 20;
        /// Receive window of the connection.
        connection_window: u64 as Bytes = 64 << 20;
        /// Capacity of the send buffer.
        send_window: u64 as Bytes = 64 << 20;
        /// Packet threshold of loss detection (RFC 9002 §6.1.1).
        packet_threshold: u32 = 3, in 1..=1_000_000;
        /// Time threshold of loss detection, in round trips (RFC 9002 §6.1.2).
        time_threshold: f64 = 1.125, in 1.0..=100.0;
        /// Explicit congestion notification.
        ecn: bool = false;
        /// An idle connection is closed after this time.
        idle_timeout: Duration = Duration::from_secs(30),
            in Duration::from_millis(10)..=Duration::from_secs(86_400);
        /// Use disjoint paths between the hosts at once (draft-ietf-quic-multipath): true for up to eight,
        /// or how many at most.
        multipath: Switch<u32> = Switch::Off;
        /// The client's address changes (RFC 9000 §9). Default: it stays.
        migration: Option<Migration> = None;
    }
}

settings! {
    /// The acknowledgement frequency of the peer.
    pub struct AckFrequency: Copy as "AckMap" {
        /// Number of packets per acknowledgement.
        every: u32 = 2, in 1..=10_000;
        /// Maximum acknowledgement delay. Default: the peer's.
        max_delay: Option<Duration> = None, in Some(Duration::from_millis(1))..;
        /// Reordering of this many packets is acknowledged at once; 0: never.
        reordering: u32 = 3, in 0..=10_000;
    }
}

settings! {
    /// A migration of the client.
    pub struct Migration: Copy as "MigrationMap" {
        /// Time after the start of the flow.
        after: Duration;
        /// What changes: the address, only the port as after a NAT rebinding, or the path.
        change: Change = Change::Address;
    }
}

names! {
    /// The part of the client's address that changes.
    pub enum Change {
        /// The address; the links are the same.
        Address = "address",
        /// The port only.
        Port = "port",
        /// The address, and the path: the second of those that share no link.
        Path = "path",
    }
}

names! {
    /// The handshake of a connection.
    pub enum Handshake {
        /// Data after one round trip.
        OneRtt = "1-rtt",
        /// Data at once, as 0-RTT.
        ZeroRtt = "0-rtt",
    }
}

names! {
    /// How packets are protected.
    pub enum Crypto {
        /// TLS 1.3 (RFC 9001).
        Tls = "tls",
        /// The handshake of TLS 1.3; packets of the same sizes that are not encrypted.
        Null = "null",
    }
}

/// The round-trip time assumed before the first sample (RFC 9002 §6.2.2).
pub const INITIAL_RTT: Duration = Duration::from_millis(333);
/// Streams that the peer may have open at once.
pub const MAX_STREAMS: u32 = 100;

/// Least and largest UDP payload (RFC 9000 §14, and IPv6's largest).
const LEAST: u16 = 1200;
const MOST: u16 = 65_527;
/// Largest UDP payload that discovery tries by default.
const DISCOVERED: u16 = 1452;
/// IPv4 and UDP header.
const HEADERS: u32 = 28;
/// Maximum number of paths of a connection.
const MOST_PATHS: u32 = 8;

impl Profile {
    /// The options of the profile.
    pub fn config(self) -> Config {
        match self {
            Self::Standard => Config::default(),
            Self::GoogleV41 => {
                let params = Params::new().with("connections", 2.0);
                let params = params.with("slow_start", "hystart");
                Config {
                    profile: self,
                    congestion: Congestion::new("cubic", params),
                    datagram_size: 1350,
                    mtu_discovery: Switch::Off,
                    // 32 and 2000 datagrams of 1350 bytes, independently of `datagram_size`.
                    initial_window: Window::Bytes(Bytes::new(43_200)),
                    max_window: Some(Window::Bytes(Bytes::new(2_700_000))),
                    ..Config::default()
                }
            }
        }
    }
}

impl Config {
    /// The options of a connection over a route of this MTU: `given` overrides the profile.
    ///
    /// # Errors
    /// The first value that is out of range, or does not fit the route.
    pub fn on_route(given: &Map<String, Json>, mtu: u32, files: &mut Files) -> Result<Self, Error> {
        let room = u16::try_from(mtu.saturating_sub(HEADERS)).unwrap_or(u16::MAX);
        if room < LEAST {
            let message = format!(
                "the route's MTU of {mtu} bytes leaves {room} for a datagram, and QUIC needs {LEAST} \
                 (RFC 9000 §14)"
            );
            let least = u32::from(LEAST) + HEADERS;
            return Err(Error::new(message).help(format!("raise the mtu of the links to {least}B")));
        }
        let mut usual = Self::usual(given, files)?;
        usual.datagram_size = usual.datagram_size.min(room);
        let table = overlay(&usual.write(), given).into();
        let mut config = Self::read(&table, files)?;
        let usual = config.profile.config().congestion;
        if config.stack.is_noq() && config.congestion.name == usual.name {
            config.congestion.params.complete_with(&usual.params);
        }
        // An alias of one of ours may be the name of another in a stack: it is kept as it was written.
        if !config.stack.is_noq()
            && let Some(name) = given.get("congestion").and_then(written_name)
        {
            name.clone_into(&mut config.congestion.name);
        }
        if config.datagram_size > room {
            let message = format!(
                "datagram_size = \"{}\" does not fit: with {HEADERS} bytes of headers the route's MTU of \
                 {mtu} bytes leaves {room}, so the handshake would never arrive",
                Bytes::from(config.datagram_size)
            );
            let help = format!(
                "give {LEAST}B to {room}B and let mtu_discovery find more, or raise the mtu of the links"
            );
            return Err(Error::of("datagram_size", message).help(help));
        }
        Ok(config)
    }

    /// The defaults of options that a table does not give: those of the profile.
    fn usual(given: &Map<String, Json>, files: &mut Files) -> Result<Self, Error> {
        let profile = given.get("profile").map(|p| Profile::read(p, files));
        let profile = profile.transpose().map_err(|e| e.at("profile"))?;
        let mut usual = profile.unwrap_or(Profile::Standard).config();
        if given.contains_key("congestion") {
            // What is named may be another congestion control than the profile's.
            usual.congestion = Congestion::default();
        }
        Ok(usual)
    }

    /// The initial congestion window.
    pub const fn initial_window(&self) -> Bytes {
        self.initial_window.bytes(self.datagram_size as u64)
    }

    /// The upper limit of the effective congestion window.
    pub fn max_window(&self) -> Option<Bytes> {
        self.max_window
            .map(|w| w.bytes(u64::from(self.datagram_size)))
    }

    /// Checks every value, and the values that depend on each other.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn check_ranges(&self) -> Result<(), crate::Error> {
        self.check()
            .map_err(|e| crate::Error::Option(e.to_string()))
    }

    /// Fills in the congestion control's parameters that were not given.
    ///
    /// After a loss QUIC reduces its congestion window (RFC 9002 §7.3.2), and TCP reduces the bytes in flight (RFC 5681
    /// §3.1): this sets the choice where an algorithm has one and the scenario does not.
    pub fn complete_congestion(&mut self) {
        const KEY: &str = "reduce_from";
        let congestion = &mut self.congestion;
        let has_choice = gargalo_cc::find(&congestion.name)
            .is_ok_and(|algorithm| (algorithm.params)().iter().any(|p| p.name == KEY));
        if has_choice && congestion.params.iter().all(|(key, _)| key != KEY) {
            congestion.params.push(KEY, "cwnd".into());
        }
        congestion.complete();
    }

    /// The largest UDP payload that discovery tries; `None`: no discovery.
    pub fn discovered(&self) -> Option<u16> {
        match self.mtu_discovery {
            Switch::Off => None,
            Switch::On => Some(DISCOVERED.max(self.datagram_size)),
            Switch::To(size) => Some(u16::try_from(size).unwrap_or(u16::MAX)),
        }
    }

    /// Maximum number of paths at once; 1: no multipath.
    pub const fn paths(&self) -> u32 {
        match self.multipath {
            Switch::Off => 1,
            Switch::On => MOST_PATHS,
            Switch::To(n) => n,
        }
    }

    /// Options of the stack's own, of one end.
    pub fn options_of(&self, is_client: bool) -> Map<String, Json> {
        let given = self.options.as_ref();
        given.map_or_else(Map::new, |options| options.of(is_client).clone())
    }

    /// Checks the values that depend on each other.
    fn consistent(&self) -> Result<(), Error> {
        let datagram = u64::from(self.datagram_size);
        let sizes = Bytes::new(datagram)..=Bytes::from(MOST);
        if let Switch::To(size) = self.mtu_discovery
            && !sizes.contains(&size)
        {
            let message = format!("mtu_discovery = \"{size}\" is out of range");
            let help = format!("give {datagram}B (datagram_size) to {MOST}B");
            return Err(Error::of("mtu_discovery", message).help(help));
        }
        let (least, most) = (Bytes::new(2 * datagram), Bytes::new(1 << 40));
        for (key, window) in [
            ("initial_window", Some(self.initial_window())),
            ("max_window", self.max_window()),
            ("stream_window", Some(Bytes::new(self.stream_window))),
            (
                "connection_window",
                Some(Bytes::new(self.connection_window)),
            ),
            ("send_window", Some(Bytes::new(self.send_window))),
        ] {
            if let Some(window) = window
                && !(least..=most).contains(&window)
            {
                let message = format!("{key} = \"{window}\" is out of range");
                let help = format!("give {least} (two datagrams, RFC 9002 §7.2) to {most}");
                return Err(Error::of(key, message).help(help));
            }
        }
        for (stack, is_client) in [(&self.stack.client, true), (&self.stack.server, false)] {
            if stack == NOQ && !self.options_of(is_client).is_empty() {
                let message = "noq has no options of its own";
                let help = "leave them out: its settings are keys of quic itself";
                return Err(Error::of("options", message).help(help));
            }
        }
        let paths = self.paths();
        if !(1..=MOST_PATHS).contains(&paths) {
            let message = format!("multipath = {paths} is out of range");
            return Err(Error::of("multipath", message).help(format!("give 1 to {MOST_PATHS}")));
        }
        if paths > 1 && self.migration.is_some() {
            let message = "migration of a connection with several paths";
            let help = "leave one of multipath and migration out";
            return Err(Error::of("migration", message).help(help));
        }
        Ok(())
    }
}

/// The name of a congestion control, of itself or of a table of its name and parameters.
fn written_name(congestion: &Json) -> Option<&str> {
    match congestion {
        Json::Object(table) => table.keys().next().map(String::as_str),
        name => name.as_str(),
    }
}
