//! The configuration of a TCP endpoint.
//!
//! Each field of [`Config`] is a key of the table `tcp` in scenarios, which is flat.

use gargalo_settings::support::Map;
use gargalo_settings::{
    Error, Files, Json, Setting, Switch, Window, kinds, names, settings, switch,
};
use gargalo_units::{Bytes, Duration, Ecn};

use crate::ecn::Echo;

mod controls;
mod profiles;

pub use controls::Control;
pub use profiles::Profile;

/// IPv4 and TCP header without options.
const HEADERS: u32 = 40;
/// Length of the timestamps option with its padding (RFC 7323 appendix A).
pub(crate) const TIMESTAMPS_LEN: u16 = 12;
/// MTU of Ethernet.
const USUAL_MTU: u32 = 1500;
/// Largest send buffer.
const LARGEST: Bytes = Bytes::new(1 << 40);

settings! {
    /// Options of an endpoint. Options that are not given have the profile's value; the defaults are those of
    /// `modern`.
    pub struct Config as "TcpOptions", over Config::usual, checked by Config::consistent {
        /// Named set of defaults for all other options.
        profile: Profile = Profile::Modern;
        /// Payload of a full segment. The MSS option announces that much plus the length of the timestamps option
        /// when timestamps are on, so that 1448 fills a packet of 1500 bytes; with a peer that has none, segments
        /// are that much longer (RFC 9293 §3.7.1). Default: the profile's, or less if the route's MTU is smaller.
        /// Where the profile's fills a packet of 1500 bytes, it is 1460 without timestamps and 1448 with them.
        mss: u16 as Bytes = 1448, in 1..;
        /// Initial congestion window, in packets or bytes. A packet is a full segment of the size that the handshake
        /// agrees on. Default: the profile's. `modern` has 10 segments, but at most 14600 bytes or 2 segments,
        /// whichever is larger (RFC 6928 §2); `linux-6` and `linux-4.1-mptcp-0.90` have 10
        /// segments of any size; `rfc5681` has 2 to 4 segments
        /// by their size (RFC 5681 §3.1); `ns3-3.27` has 1.
        initial_window: Option<Window> = None;
        /// The standard that says the initial window where `initial_window` does not, and the one after a lost SYN.
        initial_window_rule: WindowRule = WindowRule::Rfc6928;
        /// The largest receive window that is announced.
        receive_buffer: Bytes = Bytes::new(64 << 20);
        /// Growth of the receive window with what the application reads in a round trip, up to `receive_buffer`
        /// (dynamic right-sizing, as Linux has it). Not for Multipath TCP, whose window is that of the connection.
        /// Default: the window is `receive_buffer` from the start.
        receive_autotuning: Option<Autotuning> as Switch<Autotuning> = None;
        /// Capacity of the send buffer: bytes written and not acknowledged, sent or not. (Linux counts memory,
        /// which is more.) Default: the profile's, or `receive_buffer` if that is larger.
        send_buffer: Bytes = Bytes::new(64 << 20);
        /// Timestamps (RFC 7323 §3).
        timestamps: bool = true;
        /// Window scaling (RFC 7323 §2).
        window_scaling: bool = true;
        /// Selective acknowledgements (RFC 2018).
        sack: bool = true;
        /// Duplicate SACK reports (D-SACK, RFC 2883).
        dsack: bool = true;
        /// Explicit congestion notification; true is `classic`, with `congestion = "dctcp"` it is `dctcp`
        /// and with `"prague"` `l4s`, which are the defaults there.
        ecn: EcnMode as Switch<EcnMode> = EcnMode::Off;
        /// When the sender paces; false is `off`, true is `window`.
        pacing: Pacing as Switch<Pacing> = Pacing::Controller;
        /// Packets at the start of a connection that leave at once, before pacing begins (Linux: 10, with `fq` and
        /// without).
        unpaced_segments: u64 = 0, in 0..=1_000_000;
        /// Delayed acknowledgements; false acknowledges each segment at once.
        delayed_ack: DelayedAck as Switch<DelayedAck> = DelayedAck::default();
        /// How losses are detected.
        recovery: Recovery = Recovery::RackTlp;
        /// The duplicate threshold grows with the reordering that SACK blocks show, from 3 segments up to this number
        /// (Linux: 300). 3: it is fixed (RFC 5681 §3.2, RFC 6675 §2). With `rack-tlp` it counts only until reordering
        /// is seen (RFC 8985 §6.2).
        max_dup_thresh: u32 = 3, in 3..=300;
        /// Proportional rate reduction in recovery (RFC 9937).
        prr: bool = true;
        /// Tail loss probes (RFC 8985 §7); they need recovery by `rack-tlp` or `fack`.
        tail_loss_probe: bool = true;
        /// Several segments in flight are probed 2 ms after two round trips on short paths too, as Linux does;
        /// otherwise at most a round trip after (RFC 8985 §7.2 has no such slack).
        probe_slack_fixed: bool = false;
        /// Detection of spurious timeouts (RFC 5682).
        frto: bool = true;
        /// Detection of spurious retransmissions by timestamps (Eifel, RFC 3522) and by D-SACK (RFC 3708); the
        /// window reduction is undone.
        undo: bool = true;
        /// New data on the first duplicate acknowledgements (RFC 3042).
        limited_transmit: bool = true;
        /// In recovery by `sack`, when nothing is known to be lost and nothing new can be sent, the highest segment is
        /// sent again, once (RFC 6675 §4, NextSeg (4)).
        rescue_retransmission: bool = true;
        /// Amounts are whole segments, as Linux counts: PRR rounds up to them and reduces the window instead of what is
        /// in flight, and without SACK a segment that a duplicate acknowledgement stood for is not delivered twice.
        whole_segments: bool = false;
        /// The acknowledgement that ends recovery grows the window too, as in Linux. Otherwise it does not: RFC 5681
        /// §3.2 (6) sets the window to ssthresh.
        growth_at_recovery_end: bool = false;
        /// Minimum retransmission timeout.
        min_rto: Duration = Duration::from_millis(200);
        /// Linux's rule: `min_rto` bounds the variance term, so that the timeout is at least the round-trip time
        /// plus `min_rto`. Otherwise it bounds the sum (RFC 6298 §2.4).
        min_rto_above_srtt: bool = true;
        /// Maximum retransmission timeout.
        max_rto: Duration = Duration::from_secs(120), in Duration::from_millis(1)..;
        /// From when the retransmission timeout counts after an acknowledgement; they differ by at most a round trip.
        rto_restart: RtoRestart = RtoRestart::Acknowledgement;
        /// Retransmission timeout of the handshake, and until there is a round-trip sample (RFC 6298 §2.1: 1 s).
        syn_timeout: Duration = Duration::from_secs(1), in Duration::from_millis(1)..;
        /// Retransmissions of a SYN before the connection is given up.
        syn_retries: u32 = 6, in 0..=255;
        /// Retransmissions of a SYN-ACK before the connection is given up.
        syn_ack_retries: u32 = 5, in 0..=255;
        /// Clock granularity G of the retransmission timeout: the least of four times the variance (RFC 6298 §2).
        clock_granularity: Duration = Duration::from_millis(1), in Duration::from_nanos(1)..;
        /// Timeouts in a row before the connection is given up (Linux: 15).
        data_retries: u32 = 15, in 0..=255;
        /// Length of TIME-WAIT, 2 MSL (RFC 9293 §3.6.1; Linux: 60 s). It must be longer than the peer retransmits
        /// its FIN; later FINs are answered with resets.
        time_wait: Duration = Duration::from_secs(60);
        /// Keep-alive probes (RFC 9293 §3.8.4). Default: never.
        keep_alive: Option<KeepAlive> as Switch<KeepAlive> = None;
        /// Nagle algorithm: hold back small segments while data is outstanding (RFC 9293 §3.7.4); true is
        /// `standard`, and Linux has `minshall`. Real programs turn it off with `TCP_NODELAY`.
        nagle: Nagle as Switch<Nagle> = Nagle::Off;
        /// A FIN belongs to the last segment, as in Linux, also where the peer's window ends between them: it then goes
        /// past the window behind other segments, and a last segment alone waits for the window probe, which is without
        /// FIN. Otherwise the FIN waits for room in the window.
        fin_in_last_segment: bool = false;
        /// Contents that are written to an open connection are kept in super-segments as in Linux, each half of the
        /// largest window and 64 KiB at most: a write is taken in whole ones, and PSH stays at the end of a write.
        super_segments: bool = false;
        /// Search of the path MTU with data segments (RFC 4821), for paths that drop long packets without an ICMP
        /// error. Linux's default is `off` too. The segments of Multipath TCP's subflows only become smaller.
        mtu_probing: MtuProbing = MtuProbing::Off;
        /// Shrink the window to the restart window after an idle period (RFC 5681 §4.1).
        slow_start_after_idle: bool = true;
    } beside {
        /// Collect [`Notice`](crate::Notice)s for [`Endpoint::poll_notice`](crate::Endpoint::poll_notice).
        notices: bool = false;
        /// [`Endpoint::set_cork`](crate::Endpoint::set_cork) from the start.
        cork: bool = false;
        /// [`Endpoint::set_notsent_lowat`](crate::Endpoint::set_notsent_lowat) from the start.
        notsent_lowat: Option<Bytes> = None;
        /// [`Endpoint::set_user_timeout`](crate::Endpoint::set_user_timeout) from the start.
        user_timeout: Option<Duration> = None;
    }
}

kinds! {
    /// When the sender paces.
    pub enum Pacing: Copy as "PacingSpec" {
        words {
            /// Never, even if the congestion control gives a rate.
            "off" => Off;
            /// At the rate of the congestion control, if it gives one (Linux without `fq` for window-based
            /// algorithms).
            "controller" => Controller;
        }
        open {
            /// At the rate of the congestion control, or at a multiple of window over round-trip time if it gives
            /// none (Linux with `fq`).
            "window" => Window(PacingFactors);
        }
    }
}
switch!(
    Pacing,
    Pacing::Off,
    Pacing::Window(PacingFactors::default())
);

settings! {
    /// Pacing rate as a multiple of window over round-trip time; the defaults are Linux's.
    pub struct PacingFactors: Copy as "PacingMap" {
        /// In slow start.
        slow_start: f64 = 2.0, in 0.1..=100.0;
        /// In congestion avoidance.
        avoidance: f64 = 1.2, in 0.1..=100.0;
        /// Segments leave in bursts of what the rate gives in this time, of two segments at least and 64 KiB at most,
        /// as those of segmentation offload (Linux: 1 ms). Controls that give a rate set their own bursts.
        burst: Duration = Duration::ZERO;
    }
}

settings! {
    /// Delayed acknowledgements; options that are not given have the profile's value.
    pub struct DelayedAck: Copy as "DelayedAck" {
        /// Number of full segments per acknowledgement (RFC 5681 §4.2: 2).
        every: u32 = 2, in 1..=1000;
        /// Longest time for which an acknowledgement is delayed (RFC 5681 §4.2: at most 500 ms).
        timeout: Duration = Duration::from_millis(200);
        /// Number of segments at the start that are acknowledged at once (Linux's quick acknowledgements).
        quick: u32 = 1, in 0..=1_000_000;
    }
}
switch!(
    DelayedAck,
    DelayedAck {
        every: 1,
        ..DelayedAck::default()
    },
    DelayedAck::default()
);

names! {
    /// How losses are detected.
    pub enum Recovery {
        /// By time (RFC 8985), in addition to three duplicate acknowledgements.
        RackTlp = "rack-tlp",
        /// By selective acknowledgements (RFC 6675).
        Sack = "sack",
        /// By forward acknowledgement, as Linux did before RACK: three segments below the highest selectively
        /// acknowledged one until reordering is seen, then as `sack`. Retransmissions count as lost when later new data
        /// has arrived. With early retransmit (RFC 5827) of fewer than four segments, after a quarter of a round trip.
        Fack = "fack",
        /// By duplicate acknowledgements alone (RFC 6582), even where SACK blocks arrive.
        NewReno = "newreno",
        /// By duplicate acknowledgements alone, of which the third has everything sent again from the first missing
        /// segment on, as after a timeout (smoltcp).
        GoBackN = "go-back-n",
    }
}

impl Recovery {
    /// Whether it keeps what SACK blocks say.
    pub(crate) const fn is_selective(self) -> bool {
        !matches!(self, Self::NewReno | Self::GoBackN)
    }

    /// The same for a peer or a setting without SACK.
    pub(crate) const fn without_sack(self) -> Self {
        match self {
            Self::GoBackN => Self::GoBackN,
            _ => Self::NewReno,
        }
    }

    /// The least time to a tail loss probe: Linux before RACK had 10 ms.
    pub(crate) const fn least_probe(self) -> Duration {
        match self {
            Self::Fack => Duration::from_millis(10),
            _ => Duration::ZERO,
        }
    }

    /// Whether it evaluates tail loss probes.
    pub(crate) const fn probes(self) -> bool {
        matches!(self, Self::RackTlp | Self::Fack)
    }
}

names! {
    /// The standard of the initial window.
    pub enum WindowRule {
        /// 10 segments, but at most 14600 bytes or 2 segments, whichever is larger (RFC 6928 §2); one segment after two
        /// lost SYNs, as one retransmission may only mean that the timeout was short.
        Rfc6928 = "rfc6928",
        /// 2 to 4 segments by their size; one segment after a lost SYN (RFC 5681 §3.1).
        Rfc5681 = "rfc5681",
    }
}

names! {
    /// Search of the path MTU with data segments.
    pub enum MtuProbing {
        /// Only ICMP errors lower the segment size (Linux: `tcp_mtu_probing` 0).
        Off = "off",
        /// After three timeouts in a row: down to 1024 bytes, then upward (Linux: 1).
        BlackHole = "black-hole",
        /// From 1024 bytes upward (Linux: 2).
        Always = "always",
    }
}

names! {
    /// From when the retransmission timeout counts.
    pub enum RtoRestart {
        /// From the acknowledgement of new data (RFC 6298 §5.3).
        Acknowledgement = "acknowledgement",
        /// From the last transmission of the first segment in flight, if a tail loss probe or a reordering timer was
        /// due before (Linux); the least that RFC 6298 §5 allows.
        Transmission = "transmission",
    }
}

names! {
    /// When small segments are held back.
    pub enum Nagle {
        /// Never: small segments are sent at once, as with `TCP_NODELAY`.
        Off = "off",
        /// While any data is outstanding (RFC 9293 §3.7.4, RFC 1122 §4.2.3.4).
        Standard = "standard",
        /// While a small segment is outstanding, so that the rest of a write leaves behind its full segments
        /// (RFC 9293 §A.3).
        Minshall = "minshall",
    }
}
switch!(Nagle, Nagle::Off, Nagle::Standard);

settings! {
    /// Growth of the receive window; the default is Linux's.
    pub struct Autotuning: Copy as "ReceiveAutotuning" {
        /// The receive buffer at the start.
        initial: Bytes = Bytes::new(80 << 10), in Bytes::new(1 << 10)..=Bytes::new(1 << 40);
    }
}

settings! {
    /// Keep-alive probes; the defaults are Linux's.
    pub struct KeepAlive: Copy as "KeepAlive" {
        /// Idle time before the first probe.
        idle: Duration = Duration::from_secs(7200);
        /// Time between probes.
        interval: Duration = Duration::from_secs(75);
        /// Unanswered probes before the connection is given up.
        probes: u32 = 9, in 1..=255;
    }
}

names! {
    /// Explicit congestion notification.
    pub enum EcnMode {
        /// Not offered and not accepted.
        Off = "off",
        /// RFC 3168: echo until the sender has reduced its window.
        Classic = "classic",
        /// RFC 8257: the echo follows the marks of the acknowledged segments.
        Dctcp = "dctcp",
        /// RFC 9331: data carries ECT(1), retransmissions too, for the low-latency queue of `dualpi2`. The echo is
        /// that of RFC 8257, not AccECN (RFC 9768).
        L4s = "l4s",
    }
}
switch!(EcnMode, EcnMode::Off, EcnMode::Classic);

impl EcnMode {
    pub(crate) fn is_enabled(self) -> bool {
        !matches!(self, Self::Off)
    }
    pub(crate) fn echo(self) -> Echo {
        match self {
            Self::Off => Echo::Off,
            Self::Classic => Echo::UntilCwr,
            Self::Dctcp | Self::L4s => Echo::Mirror,
        }
    }
    /// The ECN codepoint of data; by RFC 3168 §6.1.5 retransmissions are not ECN-capable.
    pub(crate) fn codepoint(self, retransmission: bool) -> Ecn {
        match self {
            Self::L4s => Ecn::Ect1,
            _ if retransmission => Ecn::NotEct,
            _ => Ecn::Ect0,
        }
    }
}

impl Config {
    /// The defaults of options that a table does not give: those of the profile, except where they follow from
    /// other options.
    fn usual(given: &Map<String, Json>, files: &mut Files) -> Result<Self, Error> {
        let profile = given.get("profile").map(|p| Profile::read(p, files));
        let profile = profile.transpose().map_err(|e| e.at("profile"))?;
        let mut usual = profile.unwrap_or(Profile::Modern).config();
        // D-SACK and loss detection by SACK need selective acknowledgements.
        if given.get("sack") == Some(&false.into()) {
            usual.dsack = false;
            usual.recovery = usual.recovery.without_sack();
        }
        let recovery = given.get("recovery").map(|r| Recovery::read(r, files));
        let recovery = recovery.transpose().map_err(|e| e.at("recovery"))?;
        if !recovery.unwrap_or(usual.recovery).probes() {
            usual.tail_loss_probe = false;
        }
        if let Some(timestamps) = given.get("timestamps") {
            // Full packets stay full: what the MSS option announces does not depend on options (RFC 9293 §3.7.1).
            let fills = usual.fills_packets();
            usual.timestamps = bool::read(timestamps, files).map_err(|e| e.at("timestamps"))?;
            if fills {
                usual.fill_packets(USUAL_MTU);
            }
        }
        if let Some(buffer) = given.get("receive_buffer") {
            let buffer = Bytes::read(buffer, files).map_err(|e| e.at("receive_buffer"))?;
            usual.send_buffer = usual.send_buffer.max(buffer);
        }
        Ok(usual)
    }

    /// Checks the options that depend on each other.
    fn consistent(&self) -> Result<(), Error> {
        if self.min_rto > self.max_rto {
            let is_raised = self.min_rto != self.profile.config().min_rto;
            let key = if is_raised { "min_rto" } else { "max_rto" };
            let (least, most) = (self.min_rto, self.max_rto);
            let message = format!("min_rto ({least}) is above max_rto ({most})");
            return Err(Error::of(key, message).help("200ms and 120s are usual"));
        }
        if self.tail_loss_probe && !self.recovery.probes() {
            let message = "tail_loss_probe needs recovery = \"rack-tlp\" or \"fack\"";
            let help = "set it to false, or choose one of these";
            return Err(Error::of("tail_loss_probe", message).help(help));
        }
        Ok(())
    }

    /// Sets the sizes that depend on the MTU of the route, `mtu` bytes. Options in `given` are not changed.
    ///
    /// # Errors
    /// The first size that is out of range.
    pub fn settle(&mut self, given: &Map<String, Json>, mtu: u32) -> Result<(), Error> {
        let headers = HEADERS + u32::from(self.options_len());
        let room = mtu.saturating_sub(headers).clamp(1, 65_483);
        let room = u16::try_from(room).unwrap_or(u16::MAX);
        if self.mss > room {
            if given.contains_key("mss") {
                let message = format!(
                    "mss = \"{}B\" does not fit: with {headers} bytes of headers the route's MTU of {mtu} bytes \
                     leaves {room}",
                    self.mss
                );
                let help = format!("give 1B to {room}B, or raise the mtu of the links");
                return Err(Error::of("mss", message).help(help));
            }
            // Larger segments would never arrive: use the size that path MTU discovery would find.
            self.mss = room;
        }
        if let Some(window) = self.initial_window {
            let mss = u64::from(self.mss);
            let segments = window.packets(mss);
            if !(1..=100_000).contains(&segments) {
                let message = format!("an initial_window of {segments} packets is out of range");
                return Err(
                    Error::of("initial_window", message).help("give 1 packets to 100000 packets")
                );
            }
            // Bytes are rounded up to full segments of our size, and stay bytes if the peer's segments are smaller.
            if let Window::Bytes(_) = window {
                self.initial_window = Some(Window::Bytes(Bytes::new(segments * mss)));
            }
        }
        // The largest window that can be announced: 65535 shifted by 14 (RFC 7323 §2.3).
        let scale = if self.window_scaling { 14 } else { 0 };
        let announced = Bytes::new(65_535 << scale);
        let least = Bytes::from(self.mss);
        for (key, value, most) in [
            ("receive_buffer", self.receive_buffer, announced),
            ("send_buffer", self.send_buffer, LARGEST),
        ] {
            if given.contains_key(key) && !(least..=most).contains(&value) {
                let message = format!("{key} = \"{value}\" is out of range");
                let help = format!("give {least} (one segment) to {most}");
                return Err(Error::of(key, message).help(help));
            }
        }
        self.receive_buffer = self.receive_buffer.min(announced);
        Ok(())
    }

    /// Length of the options that each segment has.
    pub const fn options_len(&self) -> u16 {
        if self.timestamps { TIMESTAMPS_LEN } else { 0 }
    }

    /// The MSS option that is sent: options are not counted (RFC 9293 §3.7.1, RFC 6691 §2).
    pub const fn announced_mss(&self) -> u16 {
        self.mss.saturating_add(self.options_len())
    }

    /// Sets `mss` so that the MSS option announces `mss` bytes.
    pub fn announce(&mut self, mss: u16) {
        self.mss = mss.saturating_sub(self.options_len()).max(1);
    }

    /// Whether full segments fill packets of 1500 bytes over IPv4, and not because of a size that was chosen.
    pub const fn fills_packets(&self) -> bool {
        self.announced_mss() as u32 + HEADERS == USUAL_MTU
    }

    /// Sets `mss` so that full segments fill packets of `mtu` bytes over IPv4.
    pub fn fill_packets(&mut self, mtu: u32) {
        let announced = mtu.saturating_sub(HEADERS);
        self.announce(u16::try_from(announced).unwrap_or(u16::MAX));
    }

    /// The initial congestion window with segments of our size.
    pub const fn first_window(&self) -> Bytes {
        self.first_window_with(self.mss as u64)
    }

    /// The initial congestion window with segments of `mss` bytes.
    pub(crate) const fn first_window_with(&self, mss: u64) -> Bytes {
        if let Some(window) = self.initial_window {
            return window.bytes(mss);
        }
        Bytes::new(match self.initial_window_rule {
            // RFC 6928 §2: min(10 MSS, max(2 MSS, 14600)).
            WindowRule::Rfc6928 if 10 * mss <= 14_600 => 10 * mss,
            WindowRule::Rfc6928 if 2 * mss <= 14_600 => 14_600,
            WindowRule::Rfc6928 => 2 * mss,
            // RFC 5681 §3.1.
            WindowRule::Rfc5681 if mss > 2190 => 2 * mss,
            WindowRule::Rfc5681 if mss > 1095 => 3 * mss,
            WindowRule::Rfc5681 => 4 * mss,
        })
    }

    /// The window after a handshake whose SYN or SYN-ACK was sent `transmissions` times: one segment after a
    /// loss (RFC 5681 §3.1), which one retransmission does not prove, as the timeout of 1 s may be too short for
    /// the path (RFC 6928 §2).
    pub(crate) fn window_after_handshake(&self, mss: u64, transmissions: u32) -> Bytes {
        let unproven = match self.initial_window_rule {
            WindowRule::Rfc5681 => 1,
            WindowRule::Rfc6928 => 2,
        };
        let first = self.first_window_with(mss);
        if transmissions > unproven {
            first.min(Bytes::new(mss))
        } else {
            first
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: Json) -> Result<Config, Error> {
        Config::read(&json, &mut Files::default())
    }

    #[test]
    fn what_is_not_said_is_as_the_profile_has_it() {
        for profile in Profile::ALL {
            let config = profile.config();
            assert_eq!(config.profile, *profile);
            assert_eq!(config.check(), Ok(()));
            assert_eq!(
                read(json!({ "profile": profile.name() })),
                Ok(config.clone())
            );
            assert_eq!(read(config.write()), Ok(config));
        }
        let old = read(json!({ "profile": "ns3-3.27", "delayed_ack": { "every": 4 } })).unwrap();
        let expected = DelayedAck {
            every: 4,
            quick: 0,
            ..DelayedAck::default()
        };
        assert_eq!(old.delayed_ack, expected);
        let same = read(json!({ "profile": "ns3-3.27", "delayed_ack": true })).unwrap();
        assert_eq!(same, Config::ns3_3_27());
    }

    #[test]
    fn what_follows_from_other_options_can_be_said_otherwise() {
        let plain = read(json!({ "sack": false })).unwrap();
        assert_eq!((plain.dsack, plain.recovery), (false, Recovery::NewReno));
        assert!(!plain.tail_loss_probe);
        let read_back =
            read(json!({ "sack": false, "dsack": true, "recovery": "rack-tlp" })).unwrap();
        assert_eq!(
            (read_back.dsack, read_back.recovery),
            (true, Recovery::RackTlp)
        );
        assert!(read_back.tail_loss_probe);
        let error = read(json!({ "recovery": "sack", "tail_loss_probe": true })).unwrap_err();
        assert_eq!(error.path, "tail_loss_probe");
        let buffers = read(json!({ "receive_buffer": "100MB" })).unwrap();
        assert_eq!(buffers.send_buffer, Bytes::new(100_000_000));
    }

    #[test]
    fn full_packets_stay_full_without_timestamps_and_with_them() {
        let sizes = |json: Json| {
            let config = read(json).unwrap();
            (config.mss, config.announced_mss())
        };
        for profile in Profile::ALL {
            let with =
                |timestamps: bool| json!({ "profile": profile.name(), "timestamps": timestamps });
            let (plain, stamped) = match profile {
                // Segments of ns-3 have a size of their own.
                Profile::Ns3 => ((536, 536), (536, 548)),
                _ => ((1460, 1460), (1448, 1460)),
            };
            assert_eq!(sizes(with(false)), plain, "{profile:?}");
            assert_eq!(sizes(with(true)), stamped, "{profile:?}");
        }
        let given = json!({ "timestamps": false, "mss": "1448B" });
        assert_eq!(sizes(given), (1448, 1448));
    }

    #[test]
    fn sizes_are_settled_by_the_route() {
        let settled = |json: Json, mtu| {
            let mut config = read(json.clone())?;
            config.settle(json.as_object().unwrap(), mtu)?;
            Ok::<_, Error>((config.mss, config.initial_window))
        };
        assert_eq!(settled(json!({}), 576), Ok((524, None)));
        assert_eq!(
            settled(json!({ "timestamps": false }), 576),
            Ok((536, None))
        );
        let window = json!({ "mss": "1000B", "initial_window": "4001B" });
        let rounded = Window::Bytes(Bytes::new(5000));
        assert_eq!(settled(window, 1500), Ok((1000, Some(rounded))));
        for (wrong, key) in [
            (json!({ "mss": "1449B" }), "mss"),
            (json!({ "initial_window": "0 packets" }), "initial_window"),
            (json!({ "receive_buffer": "1kB" }), "receive_buffer"),
            (
                json!({ "window_scaling": false, "receive_buffer": "64KiB" }),
                "receive_buffer",
            ),
            (json!({ "max_rto": "100ms" }), "max_rto"),
            (json!({ "min_rto": "200s" }), "min_rto"),
        ] {
            assert_eq!(settled(wrong, 1500).unwrap_err().path, key);
        }
    }

    #[test]
    fn the_initial_window_follows_the_segment_size() {
        let windows = |config: Config| {
            let of = |mss| config.first_window_with(mss).get();
            [100, 536, 1095, 1096, 1460, 1461, 2190, 2191, 8948].map(of)
        };
        // RFC 6928 §2, RFC 5681 §3.1.
        let modern = [
            1000, 5360, 10_950, 10_960, 14_600, 14_600, 14_600, 14_600, 17_896,
        ];
        assert_eq!(windows(Config::modern()), modern);
        let standard = [400, 2144, 4380, 3288, 4380, 4383, 6570, 4382, 17_896];
        assert_eq!(windows(Config::rfc5681()), standard);
        assert_eq!(windows(Config::linux_6())[8], 89_480);
        let given = |window| Config {
            initial_window: Some(window),
            ..Config::modern()
        };
        assert_eq!(windows(given(Window::Packets(10)))[8], 89_480);
        assert_eq!(windows(given(Window::Bytes(Bytes::new(5000))))[0], 5000);
        assert_eq!(Config::modern().first_window().get(), 14_480);
        assert_eq!(Config::ns3_3_27().first_window().get(), 536);
    }

    #[test]
    fn a_lost_syn_leaves_one_segment() {
        let after = |config: Config, sent| {
            let window = config.window_after_handshake(1000, sent);
            window.get()
        };
        let modern = [1, 2, 3].map(|sent| after(Config::modern(), sent));
        assert_eq!(modern, [10_000, 10_000, 1000]);
        let standard = [1, 2, 3].map(|sent| after(Config::rfc5681(), sent));
        assert_eq!(standard, [4000, 1000, 1000]);
    }
}
