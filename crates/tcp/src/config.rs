//! What a user says about a TCP endpoint, and the named profiles that fix a system's defaults.

use gargalo_units::{Bytes, Duration, Ecn};

use crate::ecn::Echo;

/// Configuration of an endpoint; [`Config::modern`] is the default.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Payload bytes of a full segment. The MSS option announces that much plus the length of the
    /// timestamps option when timestamps are on, so that 1448 fills a packet of 1500 bytes.
    pub mss: u16,
    /// Initial congestion window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Offer timestamps (RFC 7323 §3).
    pub timestamps: bool,
    /// Offer window scaling (RFC 7323 §2).
    pub window_scaling: bool,
    /// Offer selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Report duplicates (RFC 2883).
    pub dsack: bool,
    /// Explicit congestion notification.
    pub ecn: EcnMode,
    /// Receive buffer: the largest window ever announced.
    pub receive_buffer: Bytes,
    /// Send buffer: what the application may write ahead of acknowledgements, in bytes of the stream.
    pub send_buffer: Bytes,
    /// Acknowledge every so many full segments (RFC 5681 §4.2: 2; 1 acknowledges each).
    pub ack_every: u32,
    /// Longest delay of an acknowledgement.
    pub ack_timeout: Duration,
    /// So many first segments are acknowledged at once (Linux's quick acknowledgements).
    pub quick_acks: u32,
    /// How often a SYN is repeated before the connection is given up.
    pub syn_retries: u32,
    /// How often a SYN-ACK is repeated.
    pub syn_ack_retries: u32,
    /// First retransmission timeout, of the SYN and before an RTT is known (RFC 6298 §2.1: 1 s).
    pub syn_timeout: Duration,
    /// Length of TIME-WAIT, 2 MSL (RFC 9293 §3.6.1). It must outlast the peer's repeated FINs, or they
    /// are answered by resets; 60 s as in Linux. A world that knows the peer to be closed may drop an
    /// endpoint earlier.
    pub time_wait: Duration,
    /// Keep-alive probes (RFC 9293 §3.8.4); `None`: never.
    pub keep_alive: Option<KeepAlive>,
    /// When the sender paces.
    pub pacing: Pacing,
    /// How losses are found.
    pub recovery: Recovery,
    /// Proportional rate reduction in recovery (RFC 6937).
    pub prr: bool,
    /// Tail loss probes (RFC 8985 §7); need [`Recovery::RackTlp`].
    pub tail_loss_probe: bool,
    /// Detect spurious timeouts (RFC 5682).
    pub frto: bool,
    /// Detect spurious retransmissions by timestamps (Eifel, RFC 3522) and by reports of duplicates
    /// (RFC 3708), and take their effect back.
    pub undo: bool,
    /// Send new data on the first duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Least retransmission timeout.
    pub min_rto: Duration,
    /// Linux's rule: the least timeout bounds the variance term, so RTO >= SRTT + minimum; otherwise
    /// it bounds the sum (RFC 6298 §2.4).
    pub min_rto_above_srtt: bool,
    /// Largest retransmission timeout.
    pub max_rto: Duration,
    /// Timeouts in a row before the connection is given up (Linux: 15).
    pub data_retries: u32,
    /// Hold back small segments while data is outstanding (RFC 9293 §3.7.4). Off in every profile:
    /// programs that mind set `TCP_NODELAY`.
    pub nagle: bool,
    /// Shrink the window to the restart window after an idle period (RFC 5681 §4.1).
    pub slow_start_after_idle: bool,
    /// Collect [`Notice`](crate::Notice)s.
    pub notices: bool,
}

/// When the sender paces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// Never, even if the congestion control asks for a rate.
    Off,
    /// At the rate the congestion control asks for, if it does (Linux without `fq` for window-based
    /// algorithms).
    Controller,
    /// Like [`Pacing::Controller`], and otherwise at a multiple of cwnd/srtt (Linux with `fq`).
    Window {
        /// Multiple in slow start (Linux: 2).
        slow_start: f64,
        /// Multiple in congestion avoidance (Linux: 1.2).
        avoidance: f64,
    },
}

/// How losses are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// By time (RFC 8985) beside the classic count of three.
    RackTlp,
    /// By selective acknowledgements (RFC 6675).
    Sack,
    /// By duplicate acknowledgements alone (RFC 6582), even where SACK blocks arrive.
    NewReno,
}

/// Keep-alive probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Silence before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes before the connection is given up.
    pub probes: u32,
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnMode {
    /// Not offered and not accepted.
    Off,
    /// RFC 3168: echo until the sender has reduced its window.
    Classic,
    /// RFC 8257: the echo mirrors the marks.
    Dctcp,
    /// RFC 9331: data carries ECT(1), repetitions too, and the echo mirrors the marks as with `Dctcp`
    /// (not AccECN, RFC 9768).
    L4s,
}

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
    /// What data carries; repetitions are not ECN-capable by RFC 3168 §6.1.5.
    pub(crate) fn codepoint(self, retransmission: bool) -> Ecn {
        match self {
            Self::L4s => Ecn::Ect1,
            _ if retransmission => Ecn::NotEct,
            _ => Ecn::Ect0,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::modern()
    }
}

impl Config {
    /// Like a current Linux, except for buffers: 64 MiB each without autotuning, because here the
    /// congestion control shall be what limits a flow.
    pub fn modern() -> Self {
        Self {
            mss: 1448,
            initial_window: 10,
            timestamps: true,
            window_scaling: true,
            sack: true,
            dsack: true,
            ecn: EcnMode::Off,
            receive_buffer: Bytes::new(64 << 20),
            send_buffer: Bytes::new(64 << 20),
            ack_every: 2,
            ack_timeout: Duration::from_millis(200),
            quick_acks: 1,
            syn_retries: 6,
            syn_ack_retries: 5,
            syn_timeout: Duration::from_secs(1),
            time_wait: Duration::from_secs(60),
            keep_alive: None,
            pacing: Pacing::Controller,
            recovery: Recovery::RackTlp,
            prr: true,
            tail_loss_probe: true,
            frto: true,
            undo: true,
            limited_transmit: true,
            min_rto: Duration::from_millis(200),
            min_rto_above_srtt: true,
            max_rto: Duration::from_secs(120),
            data_retries: 15,
            nagle: false,
            slow_start_after_idle: true,
            notices: false,
        }
    }

    /// The defaults of ns-3.27, under which many comparisons were published: segments of 536 bytes,
    /// an initial window of one, 128 KiB buffers, delayed acknowledgements of 200 ms, SACK with RFC
    /// 6675 recovery (its attribute `Sack` came with that release), no pacing.
    ///
    /// Its NewReno grows by one segment per acknowledgement in slow start, however much
    /// that covers: to compare, set the parameter `abc_limit` of `reno` to 1.
    pub fn ns3_3_27() -> Self {
        Self {
            mss: 536,
            initial_window: 1,
            dsack: false,
            receive_buffer: Bytes::new(131_072),
            send_buffer: Bytes::new(131_072),
            ack_timeout: Duration::from_millis(200),
            quick_acks: 0,
            syn_timeout: Duration::from_secs(3),
            pacing: Pacing::Off,
            recovery: Recovery::Sack,
            prr: false,
            tail_loss_probe: false,
            frto: false,
            undo: false,
            min_rto: Duration::from_secs(1),
            min_rto_above_srtt: false,
            max_rto: Duration::from_secs(60),
            data_retries: 6,
            slow_start_after_idle: false,
            ..Self::modern()
        }
    }

    /// The standards of 2009: RFC 5681 with SACK recovery (RFC 6675), initial window 3, one second
    /// as the least timeout, no timestamps-based undo, no pacing, no probes.
    pub fn rfc5681() -> Self {
        Self {
            mss: 1460,
            initial_window: 3,
            timestamps: false,
            dsack: false,
            ack_timeout: Duration::from_millis(200),
            quick_acks: 0,
            pacing: Pacing::Off,
            recovery: Recovery::Sack,
            prr: false,
            tail_loss_probe: false,
            frto: false,
            undo: false,
            min_rto: Duration::from_secs(1),
            min_rto_above_srtt: false,
            max_rto: Duration::from_secs(60),
            ..Self::modern()
        }
    }
}

/// A named set of defaults.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// As written in scenarios.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Where the values come from.
    pub source: &'static str,
    /// The configuration.
    pub config: fn() -> Config,
}

/// All profiles, sorted by name.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "modern",
        summary: "like a current Linux: MSS 1448, initial window 10, SACK, RACK-TLP, PRR",
        source: "RFC 9293, 6928, 8985, 6937; Linux defaults",
        config: Config::modern,
    },
    Profile {
        name: "ns3-3.27",
        summary: "defaults of ns-3.27: MSS 536, initial window 1, 128 KiB buffers, RFC 6675",
        source: "ns-3.27 attribute defaults",
        config: Config::ns3_3_27,
    },
    Profile {
        name: "rfc5681",
        summary: "the standards of 2009: initial window 3, RFC 6675 recovery, least RTO 1 s",
        source: "RFC 5681, 6298, 6675",
        config: Config::rfc5681,
    },
];
