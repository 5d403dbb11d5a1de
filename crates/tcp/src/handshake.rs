use bytes::Bytes;
use gargalo_cc::Controller;
use gargalo_units::{Duration, Ecn, Instant};
use gargalo_wire::tcp::{Extra, Flags, Options, Payload, Segment, Timestamps};

use crate::Config;
use crate::config::TIMESTAMPS_LEN;
use crate::receiver::shift_for;

/// The MSS of a peer that sends no MSS option, over IPv4 or IPv6 (RFC 9293 §3.7.1).
pub const fn default_mss(is_ipv6: bool) -> u16 {
    if is_ipv6 { 1220 } else { 536 }
}
/// Whether this is a Fast Open cookie, 4 to 16 bytes and an even number of them, or empty: a request (RFC 7413
/// §4.1.1). Others are ignored.
pub(crate) fn is_fast_open(cookie: &Bytes) -> bool {
    matches!(cookie.len(), 0 | 4 | 6 | 8 | 10 | 12 | 14 | 16)
}
/// The smallest accepted MSS: options alone take up to 40 bytes, so that less cannot work.
pub(crate) const LEAST_MSS: u16 = 48;
/// The longest wait for an answer to a SYN (RFC 6298 §2.5 asks for at least 60 s).
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The state of a connection that is being opened; dropped once it is.
#[derive(Debug)]
pub(crate) struct Handshake {
    /// Kept here until the sender is created.
    pub(crate) controller: Option<Box<dyn Controller>>,
    /// Known once the peer's SYN has arrived.
    pub(crate) agreed: Option<Agreed>,
    /// The Fast Open cookie: the server's when connecting, the client's when listening.
    pub(crate) cookie: Option<Bytes>,
    /// Stream bytes sent with the SYN (RFC 7413).
    pub(crate) early_data: u32,
    /// The SYN, or SYN-ACK, has to be sent.
    pub(crate) due: bool,
    /// Cookie to grant with the SYN-ACK.
    pub(crate) grant: Option<Bytes>,
    /// Simultaneous open: the data and the FIN of the peer's SYN, for when the connection is open.
    pub(crate) queued: Option<Queued>,
    first_sent: Instant,
    transmissions: u32,
    ambiguous: bool,
    /// When to send it again; [`Instant::MAX`]: not sent yet.
    pub(crate) deadline: Instant,
}

impl Handshake {
    pub(crate) fn new(controller: Option<Box<dyn Controller>>, cookie: Option<Bytes>) -> Self {
        Self {
            controller,
            agreed: None,
            cookie,
            early_data: 0,
            due: false,
            grant: None,
            queued: None,
            first_sent: Instant::MAX,
            transmissions: 0,
            ambiguous: false,
            deadline: Instant::MAX,
        }
    }

    /// The SYN or SYN-ACK is sent; `timeout` is the retransmission timeout after the first one.
    pub(crate) fn on_sent(&mut self, now: Instant, timeout: Duration) {
        self.due = false;
        self.transmissions += 1;
        if self.transmissions == 1 {
            self.first_sent = now;
        }
        let wait = timeout.saturating_mul(1 << (self.transmissions - 1).min(20));
        self.deadline = now + wait.min(LONGEST_WAIT.max(timeout));
    }

    /// When it was sent first; [`Instant::MAX`]: not yet.
    pub(crate) fn first_sent(&self) -> Instant {
        self.first_sent
    }

    /// How often it was sent.
    pub(crate) fn transmissions(&self) -> u32 {
        self.transmissions
    }

    /// Sends a SYN-ACK instead of the SYN (simultaneous open). An answer may be for either, so there is no
    /// round-trip sample.
    pub(crate) fn restart(&mut self) {
        self.due = true;
        self.ambiguous = true;
        self.transmissions = 0;
        self.deadline = Instant::MAX;
    }

    /// Returns to waiting for a SYN.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.controller.take(), self.cookie.take());
    }

    /// Round-trip time of the handshake, if nothing was retransmitted (RFC 6298 §3).
    pub(crate) fn rtt(&self, now: Instant) -> Option<Duration> {
        (self.transmissions == 1 && !self.ambiguous).then(|| now - self.first_sent)
    }
}

/// What a SYN carries beside the SYN.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) payload: Payload,
    pub(crate) flags: Flags,
    pub(crate) ecn: Ecn,
}

/// The options of a segment with SYN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerSyn {
    pub(crate) mss: u16,
    pub(crate) shift: Option<u8>,
    pub(crate) sack: bool,
    pub(crate) timestamps: Option<Timestamps>,
    pub(crate) ecn: bool,
    pub(crate) window: u16,
    /// Fast Open cookie; empty is a request.
    pub(crate) cookie: Option<Bytes>,
}

impl PeerSyn {
    pub(crate) fn of(segment: &Segment, is_ipv6: bool) -> Self {
        let extra = segment.options.extra.as_deref();
        let both = Flags::ECE | Flags::CWR;
        // RFC 3168 §6.1.1: ECE and CWR offer ECN, ECE alone accepts it.
        let ecn = if segment.flags.contains(Flags::ACK) {
            segment.flags.contains(Flags::ECE) && !segment.flags.contains(Flags::CWR)
        } else {
            segment.flags.contains(both)
        };
        Self {
            mss: extra.and_then(|x| x.mss).unwrap_or(default_mss(is_ipv6)),
            shift: extra.and_then(|x| x.window_scale).map(|s| s.min(14)),
            sack: extra.is_some_and(|x| x.sack_permitted),
            timestamps: segment.options.timestamps,
            ecn,
            window: segment.window,
            cookie: extra.and_then(|x| x.fast_open.clone()).filter(is_fast_open),
        }
    }
}

/// The negotiated options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Payload bytes in a segment that we send: the smaller of both MSS options, less the options that each
    /// segment has (RFC 9293 §3.7.1).
    pub(crate) mss: u16,
    /// Shift of the windows we send and of those we receive (RFC 7323 §2).
    pub(crate) scaling: Option<(u8, u8)>,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) ecn: bool,
}

impl Agreed {
    pub(crate) fn new(config: &Config, peer: &PeerSyn) -> Self {
        let timestamps = config.timestamps && peer.timestamps.is_some();
        let options = if timestamps { TIMESTAMPS_LEN } else { 0 };
        let ours = config.announced_mss().saturating_sub(options);
        let theirs = peer.mss.saturating_sub(options);
        let scaling = peer.shift.filter(|_| config.window_scaling);
        Self {
            mss: ours.min(theirs.max(LEAST_MSS)),
            scaling: scaling.map(|theirs| (own_shift(config), theirs)),
            sack: config.sack && peer.sack,
            timestamps,
            ecn: config.ecn.is_enabled() && peer.ecn,
        }
    }
}

fn own_shift(config: &Config) -> u8 {
    shift_for(config.receive_buffer.get())
}

/// The options of our SYN, or, in answer to `peer`, of our SYN-ACK.
pub(crate) fn options(
    config: &Config,
    peer: Option<&Agreed>,
    timestamps: Timestamps,
    cookie: Option<Bytes>,
) -> Options {
    let agreed = |wanted: bool, by_peer: fn(&Agreed) -> bool| wanted && peer.is_none_or(by_peer);
    let use_timestamps = agreed(config.timestamps, |a| a.timestamps);
    let scale = agreed(config.window_scaling, |a| a.scaling.is_some());
    Options {
        timestamps: use_timestamps.then_some(timestamps),
        extra: Some(Box::new(Extra {
            mss: Some(config.announced_mss()),
            window_scale: scale.then(|| own_shift(config)),
            sack_permitted: agreed(config.sack, |a| a.sack),
            fast_open: cookie,
            other: Vec::new(),
        })),
        ..Options::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute() {
        let mut h = Handshake::new(None, None);
        let mut now = Instant::ZERO;
        let mut waits = Vec::new();
        for _ in 0..8 {
            h.on_sent(now, Duration::from_secs(1));
            waits.push((h.deadline - now).as_millis() / 1000);
            now = h.deadline;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(h.rtt(now), None);
    }

    #[test]
    fn only_an_unambiguous_answer_is_a_round_trip() {
        let mut h = Handshake::new(None, None);
        let t = Instant::from_nanos(5);
        h.on_sent(t, Duration::from_secs(1));
        assert_eq!(
            h.rtt(t + Duration::from_millis(3)),
            Some(Duration::from_millis(3))
        );
        h.restart();
        h.on_sent(t, Duration::from_secs(1));
        assert_eq!(h.rtt(t + Duration::from_millis(3)), None);
        assert_eq!(h.transmissions(), 1);
    }

    #[test]
    fn a_peer_that_says_nothing_gets_the_least() {
        let config = Config::default();
        let six = PeerSyn::of(&Segment::default(), true);
        assert_eq!(Agreed::new(&config, &six).mss, 1220);
        let plain = PeerSyn::of(&Segment::default(), false);
        let agreed = Agreed::new(&config, &plain);
        assert_eq!(agreed.mss, 536);
        assert_eq!(
            (agreed.scaling, agreed.sack, agreed.timestamps),
            (None, false, false)
        );
        let tiny = PeerSyn { mss: 1, ..plain };
        assert_eq!(Agreed::new(&config, &tiny).mss, LEAST_MSS);
    }
}
