use gargalo_units::{Duration, Instant, Rate};

use crate::names::Label;

/// The view of a subflow that a scheduler gets. Amounts are in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// The number of the subflow; numbers are not reused in a connection.
    pub id: u32,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time.
    pub rttvar: Option<Duration>,
    /// Latest round-trip sample.
    pub latest_rtt: Option<Duration>,
    /// Least round-trip time.
    pub min_rtt: Option<Duration>,
    /// Retransmission timeout with its backoff.
    pub rto: Duration,
    /// Congestion window in bytes; the limit of a penalised subflow, if it is less.
    pub cwnd: u64,
    /// Slow-start threshold; `None`: infinite or none.
    pub ssthresh: Option<u64>,
    /// The window about doubles every round trip: slow start, or Startup of a model-based control.
    pub in_slow_start: bool,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Assigned to the subflow and not sent yet.
    pub queued: u64,
    /// Part of the peer's window held by this subflow: data last assigned to it and not acknowledged at data level.
    pub held: u64,
    /// Payload of a full segment.
    pub mss: u64,
    /// Latest delivery rate that was not application-limited.
    pub delivery_rate: Option<Rate>,
    /// Pacing rate; `None`: not paced.
    pub pacing_rate: Option<Rate>,
    /// A backup: used only when no other path works (RFC 8684 §3.3.8).
    pub backup: bool,
    /// A retransmission timer has expired and nothing new was acknowledged since.
    pub in_loss: bool,
    /// New data may be assigned to it; false while it is opening or closing.
    pub usable: bool,
    /// Its windows have room and its pacer is ready.
    pub can_send: bool,
    /// Data packets sent so far.
    pub sent_packets: u64,
    /// Packets marked lost so far.
    pub lost_packets: u64,
    /// Equal for two views of a connection only if they differ in nothing but `in_flight`, `queued`, `held`,
    /// `can_send` and `sent_packets`, so that a scheduler may keep what follows from the rest; 0: unknown.
    pub version: u64,
}

impl PathView {
    /// cwnd less bytes in flight, in whole segments; negative when the window has shrunk.
    pub fn space(&self) -> i64 {
        let segments = |n: u64| (n / self.mss.max(1)) as i64;
        segments(self.cwnd) - segments(self.in_flight)
    }

    /// The smoothed round-trip time for comparisons: an unknown one counts as the longest.
    #[inline]
    pub fn latency(&self) -> Duration {
        self.srtt.unwrap_or(Duration::MAX)
    }
}

/// The input of a scheduler's decision.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The current time.
    pub now: Instant,
    /// All subflows, in the order in which they were opened.
    pub paths: &'a [PathView],
    /// The names of their links; empty if there are none.
    pub labels: &'a [Label],
    /// Bytes written and never sent.
    pub unsent: u64,
    /// The application wants to write more than the send buffer takes: more data follows `unsent`.
    pub more: bool,
    /// The peer's window, from the first byte that it has not acknowledged, or the send buffer if that is
    /// smaller.
    pub window: u64,
    /// The part of the window that new data may still fill.
    pub window_room: u64,
    /// Opportunistic retransmissions so far.
    pub blocked: u64,
}

impl<'a> Context<'a> {
    /// Paths that new data may use, with their index: open, not in loss, and backups only if there is no other
    /// path.
    pub fn candidates(&self) -> impl Iterator<Item = (usize, &'a PathView)> + Clone {
        let is_candidate = self.candidate();
        let paths = self.paths.iter().enumerate();
        paths.filter(move |(_, p)| is_candidate(p))
    }

    /// Whether a path is one of the [candidates](Self::candidates).
    #[inline]
    pub(super) fn candidate(&self) -> impl Fn(&PathView) -> bool + Clone + use<> {
        let fit = |p: &PathView| p.usable && !p.in_loss;
        let regular = self.paths.iter().any(|p| fit(p) && !p.backup);
        move |p| fit(p) && !(regular && p.backup)
    }

    /// The candidates that can send now.
    pub fn ready(&self) -> impl Iterator<Item = (usize, &'a PathView)> + Clone {
        self.candidates().filter(|(_, p)| p.can_send)
    }

    /// The ready path with the lowest smoothed round-trip time; ties go to the earlier path.
    pub fn lowest_latency(&self) -> Option<usize> {
        let best = self.ready().min_by_key(|(_, p)| p.latency());
        best.map(|(i, _)| i)
    }
}
