//! The configuration of a connection.

use std::net::IpAddr;
use std::sync::Arc;

use gargalo_settings::support::Map;
use gargalo_settings::{Error, Files, Json, Setting, Switch, names, settings, switch};
use gargalo_tcp::Profile;
use gargalo_units::Duration;
use rand_pcg::Pcg64;

use crate::Names;
use crate::path_manager::{self, PathManager};
use crate::registry::Factory;
use crate::scheduler::{self, Scheduler};

/// The shortest time between probes of a path, which bounds the load they cause.
const LEAST_PROBE: Duration = Duration::from_millis(1);
/// The usual time between probes.
const PROBE: Duration = Duration::from_secs(1);

names! {
    /// How data sequence numbers and DATA_ACKs are written (RFC 8684 §3.3.1, §3.3.2).
    pub enum DataNumbers {
        /// The low 32 bits: saves 4 bytes per packet, and allows up to 2^31 bytes in flight.
        Short = "short",
        /// All 64 bits.
        Long = "long",
    }
}

names! {
    /// When data that fills the window is retransmitted on a faster path.
    pub enum OpportunisticRetransmission {
        /// Never: the data waits for its acknowledgement on the slower path.
        Off = "off",
        /// What the faster path delivers sooner, or is late, segment by segment.
        Late = "late",
        /// The first missing segment only, where the faster path has less than a quarter of the round-trip time, or the
        /// slower one a window of four segments at most (multipath-tcp.org, 0.90).
        Head = "head",
    }
}
switch!(
    OpportunisticRetransmission,
    OpportunisticRetransmission::Off,
    OpportunisticRetransmission::Late
);

names! {
    /// What happens to a path that filled the window.
    pub enum Penalisation {
        /// Nothing: the path may fill the window again.
        Off = "off",
        /// It may have half as much in flight for a while; its congestion window does not change.
        Cap = "cap",
        /// Its congestion window is halved, and its slow-start threshold, unless it is in slow start, recovers or has
        /// just learned of a gap: once in a round trip of each path that waits (multipath-tcp.org, 0.90).
        Halve = "halve",
    }
}
switch!(Penalisation, Penalisation::Off, Penalisation::Cap);

settings! {
    /// Options of a connection, in addition to those of its subflows.
    pub struct Options: Copy as "MptcpOptions", over Options::usual, checked by Options::consistent {
        /// Opportunistic retransmission: when data on a slower path fills the window, retransmit that data on a
        /// faster path that would be idle otherwise (Raiciu et al., NSDI 2012, mechanism 1). True is `late`; the
        /// profile `linux-4.1-mptcp-0.90` has `head`.
        opportunistic_retransmission: OpportunisticRetransmission as Switch<OpportunisticRetransmission>
            = OpportunisticRetransmission::Late;
        /// Penalisation: a path that filled the window in this way may carry half as much for a while, at most once
        /// per round trip (the same, mechanism 2). Under a scheduler that accounts for the window itself, only if it
        /// carries less than the path that waits. True is `cap`; the profile `linux-4.1-mptcp-0.90` has `halve`.
        penalisation: Penalisation as Switch<Penalisation> = Penalisation::Cap;
        /// Interval at which a path that the scheduler does not use carries a copy of a segment, so that its
        /// measurements stay current; false: never. Backups carry no copies.
        probe_interval: Switch<Duration> = Switch::To(PROBE);
        /// Request checksums over data and mappings (RFC 8684 §3.3.1); they are used if either side requests them.
        checksum: bool = false;
        /// Length of data sequence numbers on the wire; Linux has `long`.
        data_numbers: DataNumbers = DataNumbers::Short;
        /// Length of DATA_ACKs on the wire. They are `long` in any case once the peer's data sequence numbers are (RFC
        /// 8684 §3.3.2), as in Linux.
        data_acks: DataNumbers = DataNumbers::Short;
        /// Maximum number of subflows at a time; further joins are refused.
        max_subflows: u32 = 32, in 1..=64;
    }
}

impl Options {
    /// Time between probes of an unused path; `None`: no probes.
    pub const fn probes(&self) -> Option<Duration> {
        match self.probe_interval {
            Switch::Off => None,
            Switch::On => Some(PROBE),
            Switch::To(interval) => Some(interval),
        }
    }

    /// The defaults of options that a table does not give: those of its profile.
    fn usual(given: &Map<String, Json>, files: &mut Files) -> Result<Self, Error> {
        let profile = given.get("profile").map(|p| Profile::read(p, files));
        let profile = profile.transpose().map_err(|e| e.at("profile"))?;
        Ok(match profile {
            Some(Profile::Linux41) => Self {
                opportunistic_retransmission: OpportunisticRetransmission::Head,
                penalisation: Penalisation::Halve,
                probe_interval: Switch::Off,
                ..Self::default()
            },
            _ => Self::default(),
        })
    }

    fn consistent(&self) -> Result<(), Error> {
        match self.probe_interval {
            Switch::To(every) if every < LEAST_PROBE => {
                let message = format!("probe_interval = \"{every}\" is too short");
                let help = "give 1ms or more, or false for no probes";
                Err(Error::of("probe_interval", message).help(help))
            }
            _ => Ok(()),
        }
    }
}

/// Configuration of a connection.
#[derive(Clone, Debug)]
pub struct Config {
    /// The configuration of every subflow; its receive and send buffers are those of the whole connection.
    pub tcp: Arc<gargalo_tcp::Config>,
    /// The scheduler: selects the path of the next segment.
    pub scheduler: Arc<dyn Factory<dyn Scheduler>>,
    /// The path manager: decides which subflows are opened.
    pub path_manager: Arc<dyn Factory<dyn PathManager>>,
    /// The options of the user.
    pub options: Options,
    /// Maximum number of stored addresses of the peer.
    pub max_remote_addresses: usize,
    /// How often an ADD_ADDR without echo is retransmitted.
    pub address_retries: u32,
    /// Time before a subflow that ended is opened again; it backs off up to a minute.
    pub retry_after: Duration,
    /// Time before a connection without a usable subflow is given up.
    pub orphan_timeout: Duration,
    /// Collect [`Notice`](crate::Notice)s for [`Connection::poll_notice`](crate::Connection::poll_notice).
    pub notices: bool,
    /// Collect a notice for every decision of the scheduler, one per segment.
    pub decisions: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            tcp: Arc::new(gargalo_tcp::Config::default()),
            scheduler: Arc::new(scheduler::Registered::standard()),
            path_manager: Arc::new(path_manager::Registered::standard()),
            options: Options::default(),
            max_remote_addresses: 16,
            address_retries: 3,
            retry_after: Duration::from_secs(1),
            orphan_timeout: Duration::from_secs(60),
            notices: false,
            decisions: false,
        }
    }
}

/// What distinguishes a connection from others of the same configuration.
#[derive(Clone, Debug)]
pub struct Init {
    /// Our key; the caller draws it, and draws another if its token is taken (RFC 8684 §3.1).
    pub key: u64,
    /// For sequence numbers, ports and nonces of subflows, and for congestion controls.
    pub rng: Pcg64,
    /// The addresses of this host that subflows may use. The initial subflow's need not be among them.
    pub addresses: Vec<IpAddr>,
    /// The addresses of `addresses` whose subflows are backups.
    pub backups: Vec<IpAddr>,
    /// Gateways of the network of this host, for the path manager `binder`.
    pub gateways: Vec<IpAddr>,
    /// Names of the addresses of both hosts.
    pub names: Names,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[(&str, Json)]) -> Result<Options, String> {
        let given = given.iter().map(|(k, v)| ((*k).to_owned(), v.clone()));
        let read = Options::read(&Json::Object(given.collect()), &mut Files::default());
        read.map_err(|e| e.to_string())
    }

    #[test]
    fn the_profile_of_mptcp_0_90_has_the_rules_of_its_time() {
        let usual = |profile: Option<&str>| {
            let given = profile.map(|p| ("profile".to_owned(), p.into()));
            Options::usual(&given.into_iter().collect(), &mut Files::default())
        };
        let old = usual(Some("linux-4.1-mptcp-0.90")).unwrap();
        assert_eq!(
            (
                old.opportunistic_retransmission,
                old.penalisation,
                old.probes()
            ),
            (OpportunisticRetransmission::Head, Penalisation::Halve, None)
        );
        assert_eq!(old.max_subflows, Options::default().max_subflows);
        for profile in [None, Some("modern")] {
            assert_eq!(usual(profile).unwrap(), Options::default());
        }
        assert!(usual(Some("new")).is_err());
    }

    #[test]
    fn probes_come_once_a_second_unless_it_is_said_otherwise_and_not_too_often() {
        let probes = |given: Json| read(&[("probe_interval", given)]).map(|o| o.probes());
        assert_eq!(Options::default().probes(), Some(PROBE));
        assert_eq!(probes(true.into()), Ok(Some(PROBE)));
        assert_eq!(probes(false.into()), Ok(None));
        assert_eq!(probes("1ms".into()), Ok(Some(LEAST_PROBE)));
        let error = probes("999us".into()).unwrap_err();
        assert!(
            error.contains("probe_interval = \"999us\" is too short"),
            "{error}"
        );
    }
}
