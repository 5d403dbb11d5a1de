//! Packetization layer path MTU discovery (RFC 4821): the search for the longest segment that the path carries. A
//! data segment that is longer than the others is the probe. Its loss is no sign of congestion; its data is sent
//! again in segments of the present size.

use gargalo_units::{Duration, Instant};

use super::scoreboard::Sent;
use super::{AckFacts, Frto, Phase, Sender};

/// A search ends when it can gain no more than this, in bytes (Linux: `tcp_probe_threshold`).
const LEAST_GAIN: u32 = 8;
/// Then it waits, in case the path has changed (RFC 8899, PMTU_RAISE_TIMER; Linux: `tcp_probe_interval`).
const PAUSE: Duration = Duration::from_secs(600);
/// Lost probes of a size after which it is too long (RFC 8899, MAX_PROBES): a single one may have been lost by
/// congestion.
const MOST_LOSSES: u32 = 3;
/// A window of fewer segments than this is not risked (Linux: 11).
const LEAST_WINDOW: u64 = 11;
/// Segments of data that must follow a probe, so that its loss is detected by acknowledgements.
const FOLLOWERS: u64 = 4;
/// Timeouts in a row that suggest a black hole (Linux: `tcp_retries1`).
const SUSPICIOUS: u32 = 3;

/// The state of the search. Sizes are payloads of a segment in bytes; the segment size in use is the largest that
/// has been acknowledged (search_low).
#[derive(Clone, Copy, Debug)]
pub(super) struct MtuSearch {
    /// The largest size that the handshake allows.
    limit: u32,
    /// Larger sizes are tried.
    upward: bool,
    /// The largest size not known to be too long (search_high).
    high: u32,
    /// It is a likely one, and tried first: what the handshake allows or a router reports.
    likely: bool,
    /// Lost probes of the size tried now.
    losses: u32,
    /// The probe in flight: first offset and length.
    probe: Option<(u64, u32)>,
    /// After the end of a search: when the next begins.
    resume: Option<Instant>,
    /// Timeouts in a row when the size was last lowered for them.
    blamed: u32,
}

impl MtuSearch {
    /// The size of the next probe, above `low`: the likely one, then the middle.
    fn next(&mut self, now: Instant, low: u32) -> Option<u32> {
        if !self.upward || self.probe.is_some() || self.resume.is_some_and(|t| now < t) {
            return None;
        }
        if self.resume.take().is_some() {
            (self.high, self.likely) = (self.limit, true);
        }
        let gain = self.high.saturating_sub(low);
        if gain < LEAST_GAIN {
            if low < self.limit {
                self.resume = Some(now + PAUSE);
            }
            return None;
        }
        Some(if self.likely {
            self.high
        } else {
            low + gain.div_ceil(2)
        })
    }

    fn is_probe(&self, s: &Sent) -> bool {
        self.probe == Some((s.start, s.len))
    }
}

impl Sender {
    /// Searches for a larger segment size than the present one, up to `limit`, if `upward`; otherwise the size falls
    /// only.
    pub(crate) fn search_mss(&mut self, limit: u16, upward: bool) {
        let limit = u32::from(limit).max(self.mss);
        self.search = Some(Box::new(MtuSearch {
            limit,
            upward,
            high: limit,
            likely: true,
            losses: 0,
            probe: None,
            resume: None,
            blamed: 0,
        }));
    }

    /// The length of a probe, if one is due as the next segment.
    pub(super) fn mtu_probe(&mut self, now: Instant) -> Option<u32> {
        let search = self.search.as_mut()?;
        let calm = self.episode.phase == Phase::Open
            && self.episode.frto == Frto::Off
            && self.board.sacked() == 0
            && self.duplicates.bytes == 0
            && !self.board.has_lost()
            && self.tlp.in_flight.is_none()
            && self.timeouts.in_a_row == 0;
        if !calm {
            return None;
        }
        let len = search.next(now, self.mss)?;
        let mss = u64::from(self.mss);
        let needed = u64::from(len) + FOLLOWERS * mss;
        let window = self.controller.cwnd().get();
        let whole = self.hold.cut().saturating_sub(self.nxt) >= u64::from(len);
        let enough = whole
            && window >= (LEAST_WINDOW * mss).max(needed)
            && self.written.end.saturating_sub(self.nxt) >= needed
            && self.peer.end.saturating_sub(self.nxt) >= needed;
        enough.then_some(len)
    }

    /// The probe is sent.
    pub(super) fn on_mtu_probe_sent(&mut self, offset: u64, len: u32) {
        if let Some(search) = &mut self.search {
            search.probe = Some((offset, len));
        }
    }

    /// A probe that has arrived raises the segment size.
    pub(super) fn confirm_mtu_probe(&mut self, facts: &AckFacts<'_>) {
        let Some(search) = &mut self.search else {
            return;
        };
        let Some((start, len)) = search.probe else {
            return;
        };
        let end = start + u64::from(len);
        let sacked = |(left, right): &(u64, u64)| *left <= start && end <= *right;
        if facts.ack >= end || facts.sacks.iter().any(sacked) {
            search.probe = None;
            search.losses = 0;
            self.mss = self.mss.max(len);
            self.report_mss();
        }
    }

    /// Takes the probe, if it is among the segments marked lost, out of what is reported as a loss.
    pub(super) fn is_mtu_probe(&self, s: &Sent) -> bool {
        self.search.as_ref().is_some_and(|m| m.is_probe(s))
    }

    /// The probe was marked lost: its data is sent again in segments of the present size. If others were lost
    /// with it, its loss says nothing about its size.
    pub(super) fn on_mtu_probe_lost(&mut self, alone: bool) {
        let Some(search) = &mut self.search else {
            return;
        };
        let Some((_, len)) = search.probe.take() else {
            return;
        };
        if alone {
            search.losses += 1;
            if search.losses >= MOST_LOSSES {
                search.losses = 0;
                (search.high, search.likely) = (len - 1, false);
            }
        }
        self.board.split(self.mss);
        self.episode.resend_due = true;
    }

    /// After timeouts in a row: the path may drop long segments without an ICMP error (a black hole). The size falls
    /// to `base`, then by halves to `least`, and rises again by a search.
    pub(crate) fn suspect_black_hole(&mut self, now: Instant, base: u16, least: u16) {
        let timeouts = self.timeouts.in_a_row;
        let Some(search) = &mut self.search else {
            return;
        };
        if timeouts < SUSPICIOUS {
            search.blamed = 0;
            return;
        }
        if timeouts == search.blamed {
            return;
        }
        let (base, least) = (u32::from(base), u32::from(least));
        let lower = if self.mss > base { base } else { self.mss / 2 };
        let lower = lower.max(least);
        if lower >= self.mss {
            return;
        }
        search.blamed = timeouts;
        (search.high, search.likely) = (search.limit, true);
        search.losses = 0;
        search.probe = None;
        search.resume = None;
        self.resize(now, lower, lower);
    }

    /// The size in use when the path carries `limit` bytes: with a search, what has been acknowledged.
    pub(super) fn limit_search(&mut self, limit: u32) -> u32 {
        let Some(search) = &mut self.search else {
            return limit;
        };
        // What the handshake allows is tried again after the pause.
        if limit < search.high {
            (search.high, search.likely) = (limit, true);
        }
        if search.probe.is_some_and(|(_, len)| len > limit) {
            search.probe = None;
            search.losses = 0;
        }
        self.mss.min(limit)
    }
}
