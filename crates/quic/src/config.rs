//! What both ends of a connection are told, as scenarios write it.

use gargalo_cc::chosen::Congestion;
use gargalo_settings::support::overlay;
use gargalo_settings::{Error, Files, Json, Setting, Switch, Window, names, settings};
use gargalo_units::{Bytes, Duration};
use serde_json::Map;

use crate::Profile;
use crate::congestion::OursOrOwn;

settings! {
    /// QUIC (RFC 9000): a production implementation in virtual time. What is not said is as the profile has it.
    pub struct Config as "Quic", over Config::usual, checked by Config::consistent {
        /// Congestion control of both ends: a name, or a table of one name and its parameters. `noq-cubic`,
        /// `noq-newreno` and `noq-bbr3` are the implementation's own.
        congestion: Congestion as OursOrOwn = Congestion::default();
        /// Named set of defaults for all that follows.
        profile: Profile = Profile::Standard;
        /// `0-rtt` sends data before the handshake is complete, with a ticket of an earlier connection of the
        /// same hosts.
        handshake: Handshake = Handshake::OneRtt;
        /// `null` has the same packets at the same times, but does not encrypt: for large sweeps.
        crypto: Crypto = Crypto::Tls;
        /// Initial congestion window, in packets or bytes.
        initial_window: Window = Window::Bytes(Bytes::new(12_000));
        /// The congestion window never counts for more than this. Default: no such limit.
        max_window: Option<Window> = None;
        /// UDP payload of a full packet, before discovery finds room for more. Default: the profile's, or
        /// less if the route's MTU is smaller.
        datagram_size: u16 as Bytes = 1200, in LEAST..=MOST;
        /// Discovery of larger datagrams (RFC 8899): true up to 1452 bytes, or up to a size.
        mtu_discovery: Switch<Bytes> = Switch::On;
        /// Spread packets over the round trip; false: only where the congestion control gives a rate.
        pacing: bool = true;
        /// Ask the peer to acknowledge less often (draft-ietf-quic-ack-frequency). Default: each second packet
        /// (RFC 9000 §13.2.2).
        ack: Option<AckFrequency> = None;
        /// Streams that a bulk transfer is spread over.
        streams: u32 = 1, in 1..=10_000;
        /// What the peer may send on a stream ahead of its reader.
        stream_window: u64 as Bytes = 64 << 20;
        /// What the peer may send on all streams ahead of their reader.
        connection_window: u64 as Bytes = 64 << 20;
        /// What the application may write ahead of acknowledgements.
        send_window: u64 as Bytes = 64 << 20;
        /// A packet is lost when one this much later was acknowledged (RFC 9002 §6.1.1).
        packet_threshold: u32 = 3, in 1..=1_000_000;
        /// Or after this share of a round trip (RFC 9002 §6.1.2).
        time_threshold: f64 = 1.125, in 1.0..=100.0;
        /// Explicit congestion notification.
        ecn: bool = false;
        /// A silent connection is dropped after this.
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
    /// When the peer acknowledges.
    pub struct AckFrequency: Copy as "AckMap" {
        /// Each so many packets.
        every: u32 = 2, in 1..=10_000;
        /// Longest delay. Default: the peer's.
        max_delay: Option<Duration> = None, in Some(Duration::from_millis(1))..;
        /// A gap of so many packets is acknowledged at once; 0: never.
        reordering: u32 = 3, in 0..=10_000;
    }
}

settings! {
    /// The client moves.
    pub struct Migration: Copy as "MigrationMap" {
        /// So long after the flow's start.
        after: Duration;
        /// What changes: the address, or only the port as behind a NAT that forgot.
        change: Change = Change::Address;
    }
}

names! {
    /// What of the client's address changes.
    pub enum Change {
        /// Address and path.
        Address = "address",
        /// The port alone.
        Port = "port",
    }
}

names! {
    /// How a connection begins.
    pub enum Handshake {
        /// Data after a round trip.
        OneRtt = "1-rtt",
        /// Data at once.
        ZeroRtt = "0-rtt",
    }
}

names! {
    /// How packets are protected.
    pub enum Crypto {
        /// TLS 1.3 (RFC 9001).
        Tls = "tls",
        /// The handshake of TLS 1.3 and packets of the same sizes, not encrypted.
        Null = "null",
    }
}

/// Assumed before the first sample (RFC 9002 §6.2.2).
pub(crate) const INITIAL_RTT: Duration = Duration::from_millis(333);
/// Streams that the peer may have open at once.
pub(crate) const MAX_STREAMS: u32 = 100;

/// Least and largest UDP payload (RFC 9000 §14, and IPv6's largest).
const LEAST: u16 = 1200;
const MOST: u16 = 65_527;
/// Largest UDP payload that discovery tries unless told otherwise.
const DISCOVERED: u16 = 1452;
/// IPv4 and UDP header.
const HEADERS: u32 = 28;
/// Most paths of a connection.
const MOST_PATHS: u32 = 8;

impl Config {
    /// The options of a connection over a route of this MTU: what was given takes the place of what its profile has.
    ///
    /// # Errors
    /// The first value that cannot be, or does not fit the route.
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
        let config = Self::read(&table, files)?;
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

    /// What options that a table does not say are: as the profile has them.
    fn usual(given: &Map<String, Json>, files: &mut Files) -> Result<Self, Error> {
        let profile = given.get("profile").map(|p| Profile::read(p, files));
        let profile = profile.transpose().map_err(|e| e.at("profile"))?;
        let mut usual = profile.unwrap_or(Profile::Standard).config();
        if given.contains_key("congestion") {
            // Parameters are of the one that is named, not added to the profile's.
            usual.congestion = Congestion::default();
        }
        Ok(usual)
    }

    /// The initial congestion window.
    pub const fn initial_window(&self) -> Bytes {
        self.initial_window.bytes(self.datagram_size as u64)
    }

    /// What the congestion window never counts for more than.
    pub fn max_window(&self) -> Option<Bytes> {
        self.max_window
            .map(|w| w.bytes(u64::from(self.datagram_size)))
    }

    /// The largest UDP payload that is looked for; `None`: no discovery.
    pub(crate) fn discovered(&self) -> Option<u16> {
        match self.mtu_discovery {
            Switch::Off => None,
            Switch::On => Some(DISCOVERED.max(self.datagram_size)),
            Switch::To(size) => Some(u16::try_from(size).unwrap_or(u16::MAX)),
        }
    }

    /// Most paths at once; 1: no multipath.
    pub const fn paths(&self) -> u32 {
        match self.multipath {
            Switch::Off => 1,
            Switch::On => MOST_PATHS,
            Switch::To(n) => n,
        }
    }

    /// What is wrong with values that depend on each other.
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
