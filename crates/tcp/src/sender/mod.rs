//! The sender of a connection: transmission, loss detection, recovery, and reports to the congestion control.
//!
//! Per acknowledgement, in the order of the [`Controller`](gargalo_cc::Controller)'s contract: the
//! scoreboard learns what was delivered, losses are marked, an epoch may begin or end, the delivery
//! rate is sampled, the controller is called, and [`Sender::poll`] sends what the windows allow.

mod ack;
mod chrono;
mod episode;
mod hold;
mod mtu_search;
mod notice;
mod prr;
mod rack;
mod scoreboard;
mod snapshot;
mod timeout;
mod transmit;
mod undo;
mod written;

pub(crate) use hold::Hold;
pub use notice::Notice;

use std::collections::VecDeque;
use std::sync::Arc;

use gargalo_cc::pacer::{Pacer, rate_of_window};
use gargalo_cc::rate::RateSampler;
use gargalo_cc::{Controller, Established, Path, Sibling};
use gargalo_units::{Bytes, Duration, Instant, Rate, SenderCounters};

use crate::config::{Config, Pacing, Recovery};
use crate::rtt::RttEstimator;
use chrono::Chrono;
use episode::{Episode, Frto, Phase};
use mtu_search::MtuSearch;
use rack::Rack;
use scoreboard::{Scoreboard, Sent};
use timeout::Timeouts;
use undo::Undo;
use written::Written;

/// The contents of an acknowledgement, in stream offsets (0 is the first byte after SYN).
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckFacts<'a> {
    pub now: Instant,
    /// Cumulative acknowledgement: everything before this has arrived. Below SND.UNA if a later acknowledgement has
    /// overtaken this one: then only its SACK blocks are new information.
    pub ack: u64,
    /// SACK blocks above `ack`.
    pub sacks: &'a [(u64, u64)],
    /// Duplicate data reported by the peer (D-SACK, RFC 2883).
    pub dsack: Option<(u64, u64)>,
    /// The peer's window in bytes from `ack` on.
    pub window: u64,
    /// Round-trip time by the echoed timestamp, to a millisecond.
    pub echo_rtt: Option<Duration>,
    /// The echoed timestamp, in milliseconds of our clock.
    pub tsecr: Option<u32>,
    /// The segment has the ECE flag, and ECN was negotiated (RFC 3168 §6.1).
    pub ece: bool,
    /// Neither data, FIN nor a new window: may be a duplicate acknowledgement (RFC 5681 §2).
    pub pure: bool,
}

/// The result of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckOutcome {
    /// The FIN has arrived.
    pub fin_acked: bool,
    /// A round-trip sample.
    pub rtt: Option<Duration>,
}

/// A segment to send.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendOrder {
    pub offset: u64,
    pub len: u32,
    pub fin: bool,
    pub psh: bool,
    pub retransmission: bool,
    pub cwr: bool,
    /// A zero-window probe: no data, one before the left edge, so that the peer must answer.
    pub probe: bool,
}

/// The sending half of a connection.
#[derive(Debug)]
pub(crate) struct Sender {
    controller: Box<dyn Controller>,
    /// Every transmission is reported to the controller, not only of the first after an idle time
    /// ([`Controller::watches_sends`]).
    tells_sends: bool,
    sampler: RateSampler,
    pacer: Pacer,
    board: Scoreboard,
    rtt: RttEstimator,
    rack: Rack,
    undo: Undo,
    episode: Episode,
    /// SND.UNA as an offset.
    una: u64,
    /// SND.NXT as an offset.
    nxt: u64,
    pub(crate) written: Written,
    pub(crate) hold: Hold,
    chrono: Chrono,
    peer: PeerWindow,
    mss: u32,
    /// The search for a larger one; `None`: not wanted.
    search: Option<Box<MtuSearch>>,
    duplicates: Duplicates,
    cwr: Cwr,
    round_end: u64,
    last_sent: Instant,
    /// The application limited the sender then.
    was_app_limited: bool,
    limited: Limited,
    timers: Timers,
    timeouts: Timeouts,
    tlp: TailLossProbe,
    path_probe: PathProbe,
    rate: LatestRate,
    /// Bytes delivered at the latest congestion event, and between the latest two.
    loss_marks: (u64, u64),
    config: Arc<Config>,
    /// How losses are detected with this peer: as the configuration says, or without SACK.
    recovery: Recovery,
    /// How long data may stay unacknowledged (RFC 5482), instead of a number of retransmissions.
    user_timeout: Option<Duration>,
    counters: SenderCounters,
    counts: Counts,
    notices: VecDeque<Notice>,
    coupled: Coupled,
    /// Segments that are being marked lost; empty in between.
    marked: Vec<Sent>,
}

/// The amount in flight when a loss or mark was detected.
#[derive(Clone, Copy, Debug)]
struct Flight {
    /// Sent and not cumulatively acknowledged (RFC 5681's FlightSize).
    size: u64,
    /// Of that, neither selectively acknowledged nor lost (RFC 6675's pipe).
    pipe: u64,
}

/// The peer's receive window.
#[derive(Clone, Copy, Debug, Default)]
struct PeerWindow {
    /// Right edge: the offset in our stream up to which the peer accepts data.
    end: u64,
    /// Largest window ever offered, for silly window avoidance (RFC 9293 §3.8.6.2.1).
    largest: u64,
    /// A zero-window probe is due.
    probe_due: bool,
    /// Zero-window probes so far, answered or not: their interval backs off (RFC 9293 §3.8.6.1).
    probes: u32,
    /// Zero-window probes in a row without an answer.
    unanswered: u32,
    /// When the first probe was due; `None`: there was none since data could be sent.
    probing_since: Option<Instant>,
}

/// Duplicate acknowledgements (RFC 5681 §2).
#[derive(Clone, Copy, Debug, Default)]
struct Duplicates {
    /// Without SACK: bytes that have left the network according to them.
    bytes: u64,
    /// Without SACK: how many in a row.
    acks: u32,
    /// With SACK: bytes reported outside of recovery and not yet acknowledged cumulatively, for which the window has
    /// not grown.
    reported: u64,
}

/// The answer to ECN echoes (RFC 3168 §6.1.2).
#[derive(Clone, Copy, Debug, Default)]
struct Cwr {
    /// The next new segment carries CWR: the window was reduced.
    due: bool,
    /// End of the latest segment that carried it: echoes before its arrival are answered already.
    end: u64,
}

/// The first segment sent once more during an outage, to learn whether the path passes packets again.
#[derive(Clone, Copy, Debug, Default)]
struct PathProbe {
    due: bool,
    /// It was sent, and nothing was acknowledged since.
    sent: bool,
}

/// State of the tail loss probe (RFC 8985 §7).
#[derive(Clone, Copy, Debug, Default)]
struct TailLossProbe {
    in_flight: Option<Probe>,
    due: bool,
}

/// A tail loss probe in flight (RFC 8985 §7.1).
#[derive(Clone, Copy, Debug)]
struct Probe {
    end: u64,
    retransmission: bool,
}

/// Whether the window limits the sender (Linux's rule, similar to RFC 7661).
#[derive(Clone, Copy, Debug, Default)]
struct Limited {
    now: bool,
    most_in_flight: u64,
    until: u64,
}

/// The latest delivery-rate sample that counts.
#[derive(Clone, Copy, Debug, Default)]
struct LatestRate {
    /// Bytes, and the time they took.
    sample: Option<(Bytes, Duration)>,
    /// The application limited it.
    app_limited: bool,
}

/// The subflows of one Multipath TCP connection, for coupled congestion controls.
#[derive(Debug, Default)]
struct Coupled {
    siblings: Vec<Sibling>,
    /// Which of them this sender is.
    index: usize,
}

#[derive(Clone, Copy, Debug)]
struct Timers {
    rto: Instant,
    probe: Instant,
    reorder: Instant,
    persist: Instant,
    pacing: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Loss marks, including repeated marks of one transmission.
    marks: u64,
    retransmitted_bytes: u64,
    delivered_packets: u64,
    delivered_ce_packets: u64,
    dsack_packets: u64,
}

impl Sender {
    pub(crate) fn new(
        config: &Arc<Config>,
        controller: Box<dyn Controller>,
        mss: u16,
        now: Instant,
    ) -> Self {
        let mss = u32::from(mss.max(1));
        let quantum = Bytes::new(2 * u64::from(mss));
        Self {
            tells_sends: controller.watches_sends(),
            controller,
            sampler: RateSampler::new(),
            pacer: Pacer::new(quantum),
            board: Scoreboard::default(),
            rtt: RttEstimator::new(config),
            rack: Rack::default(),
            undo: Undo::default(),
            episode: Episode::default(),
            una: 0,
            nxt: 0,
            written: Written::default(),
            hold: Hold::new(config),
            chrono: Chrono::default(),
            peer: PeerWindow::default(),
            mss,
            search: None,
            duplicates: Duplicates::default(),
            cwr: Cwr::default(),
            round_end: 0,
            last_sent: now,
            was_app_limited: false,
            limited: Limited::default(),
            timers: Timers::NONE,
            timeouts: Timeouts::new(now),
            tlp: TailLossProbe::default(),
            path_probe: PathProbe::default(),
            rate: LatestRate::default(),
            loss_marks: (0, 0),
            config: Arc::clone(config),
            recovery: if config.sack {
                config.recovery
            } else {
                config.recovery.without_sack()
            },
            user_timeout: config.user_timeout,
            counters: SenderCounters::default(),
            counts: Counts::default(),
            notices: VecDeque::new(),
            coupled: Coupled::default(),
            marked: Vec::new(),
        }
    }

    /// The peer does not acknowledge selectively.
    pub(crate) fn without_sack(&mut self) {
        self.recovery = self.recovery.without_sack();
    }

    /// The handshake is complete; the SYN, or SYN-ACK, was sent `syn_transmissions` times.
    pub(crate) fn on_established(
        &mut self,
        now: Instant,
        rtt: Option<Duration>,
        syn_transmissions: u32,
        window: u64,
    ) {
        match rtt {
            Some(rtt) => self.rtt.on_sample(rtt),
            None if syn_transmissions > 1 => self.rtt.on_syn_lost(),
            None => {}
        }
        self.last_sent = now;
        self.on_window(window);
        let mss = u64::from(self.mss);
        let established = Established {
            now,
            window: self.config.window_after_handshake(mss, syn_transmissions),
        };
        let (controller, path) = self.parts();
        controller.on_established(&established, &path);
    }

    fn report_mss(&mut self) {
        let (controller, path) = self.parts();
        controller.on_mss(&path);
    }

    /// Appends bytes written by the application; `buffer_full` says whether the send buffer is full now.
    #[inline]
    pub(crate) fn append(&mut self, bytes: u64, buffer_full: bool) {
        self.written.end += bytes;
        self.written.buffer_full = buffer_full;
        self.hold.on_write(false);
    }

    /// Written and never sent.
    #[inline]
    pub(crate) fn unsent(&self) -> u64 {
        self.written.end.saturating_sub(self.nxt)
    }

    /// Sets whether the upper layer has more data than it has written.
    pub(crate) fn set_more(&mut self, more: bool) {
        self.written.more_follows = more;
    }

    /// Nothing more will be written: the FIN follows the last byte.
    pub(crate) fn finish(&mut self) {
        self.written.finished = true;
        self.written.buffer_full = false;
    }

    /// When to call [`Sender::on_timeout`] or [`Sender::poll`] next.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let t = &self.timers;
        let least = t
            .rto
            .min(t.probe)
            .min(t.reorder)
            .min(t.persist)
            .min(t.pacing);
        (least < Instant::MAX).then_some(least)
    }

    /// Too many timeouts in a row.
    pub(crate) fn has_given_up(&self) -> bool {
        self.timeouts.given_up
    }

    /// Halves the window without a congestion event; not in recovery, nor while data was selectively acknowledged.
    pub(crate) fn halve_window(&mut self) -> bool {
        let open = self.episode.phase == Phase::Open && self.board.sacked() == 0;
        if open {
            self.controller.halve();
        }
        open
    }

    /// Sets the subflows of a coupled connection and the index of this one.
    pub(crate) fn set_siblings(&mut self, siblings: &[Sibling], index: usize) {
        self.coupled.siblings.clear();
        self.coupled.siblings.extend_from_slice(siblings);
        self.coupled.index = index;
    }

    /// Changes the maximum payload of a segment after a change of the path MTU; a search continues below it.
    pub(crate) fn set_mss(&mut self, now: Instant, mss: u16) {
        let limit = u32::from(mss.max(1));
        let mss = self.limit_search(limit);
        self.resize(now, mss, limit);
    }

    /// Segments have room for `room` bytes from now on, as other options are sent. Those in flight fit the path.
    pub(crate) fn set_room(&mut self, now: Instant, room: u16) {
        let mss = self.limit_search(u32::from(room.max(1)));
        self.resize(now, mss, u32::MAX);
    }

    /// Segments have at most `mss` bytes from now on. Those in flight that are longer than `longest` cannot have
    /// arrived: they are split and retransmitted, which is no congestion event.
    fn resize(&mut self, now: Instant, mss: u32, longest: u32) {
        if mss == self.mss && self.search.is_none() {
            return;
        }
        if (longest < self.mss || self.search.is_some()) && self.board.lose_longer(longest) {
            self.board.split(mss);
            self.episode.resend_due = true;
            self.tlp.in_flight = None;
            self.tlp.due = false;
            // The timeouts so far were caused by the MTU and not by congestion.
            self.undo.end();
            self.episode.frto = Frto::Off;
            self.timers.rto = now + self.rtt.rto();
            self.timers.probe = Instant::MAX;
        }
        if mss != self.mss {
            self.mss = mss;
            self.report_mss();
        }
    }

    /// Payload of a full segment.
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// A tail loss probe is in flight, or due.
    pub(crate) fn is_probing(&self) -> bool {
        self.tlp.in_flight.is_some() || self.tlp.due
    }

    /// Timeouts since anything new was acknowledged.
    pub(crate) fn timeouts_in_a_row(&self) -> u32 {
        self.timeouts.in_a_row
    }

    pub(crate) fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    // ---- used by the submodules ----

    #[inline]
    fn flight(&self) -> Flight {
        Flight {
            size: self.nxt.saturating_sub(self.una),
            pipe: self.pipe(),
        }
    }

    /// Bytes estimated to be in the network.
    #[inline]
    pub(crate) fn pipe(&self) -> u64 {
        self.board.pipe().saturating_sub(self.duplicates.bytes)
    }

    /// The window in force: PRR's in recovery, else the controller's.
    #[inline]
    fn window(&self) -> u64 {
        match &self.episode.prr {
            Some(_) => self.episode.prr_window,
            None => self.controller.cwnd().get(),
        }
    }

    #[inline]
    fn parts(&mut self) -> (&mut Box<dyn Controller>, Path<'_>) {
        let path = Path {
            mss: Bytes::new(u64::from(self.mss)),
            srtt: self.rtt.srtt(),
            latest_rtt: self.rtt.latest(),
            min_rtt: self.rtt.min(),
            in_flight: Bytes::new(self.board.pipe().saturating_sub(self.duplicates.bytes)),
            siblings: &self.coupled.siblings,
            index: self.coupled.index,
            sack: self.recovery.is_selective(),
        };
        (&mut self.controller, path)
    }

    /// The latest delivery rate.
    fn delivery_rate(&self) -> Option<Rate> {
        self.rate.sample.map(|(bytes, time)| bytes / time)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        if self.config.pacing == Pacing::Off {
            return None;
        }
        if let Some(rate) = self.controller.pacing_rate() {
            return Some(rate);
        }
        let Pacing::Window(factors) = self.config.pacing else {
            return None;
        };
        let cwnd = self.controller.cwnd();
        let gain = if self.controller.in_slow_start() {
            factors.slow_start
        } else {
            factors.avoidance
        };
        rate_of_window(cwnd, self.rtt.srtt()?, gain)
    }

    fn on_window(&mut self, window: u64) {
        self.peer.end = self.una + window;
        self.peer.largest = self.peer.largest.max(window);
    }

    fn notice(&mut self, notice: Notice) {
        if self.config.notices {
            self.notices.push_back(notice);
        }
    }
}

impl Timers {
    const NONE: Self = Self {
        rto: Instant::MAX,
        probe: Instant::MAX,
        reorder: Instant::MAX,
        persist: Instant::MAX,
        pacing: Instant::MAX,
    };
}

#[cfg(test)]
mod tests;
