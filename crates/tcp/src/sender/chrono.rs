//! How long the sender had something to do, and what it waited for: `busy_time`, `rwnd_limited` and `sndbuf_limited` of
//! Linux's `TCP_INFO`.

use gargalo_units::{Duration, Instant};

use super::Sender;

/// What limits the sender; the later one counts if two do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing is unsent or unacknowledged.
    #[default]
    None,
    /// The congestion window, pacing, or the application, which has written little.
    Busy,
    /// The peer's window.
    Window,
    /// The send buffer, which is too small for the congestion window.
    Buffer,
}

/// A stopwatch for each of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chrono {
    work: Work,
    since: Instant,
    times: [Duration; 4],
    /// SND.NXT when it was last looked at.
    nxt: u64,
}

impl Chrono {
    #[inline]
    pub(super) fn set(&mut self, now: Instant, work: Work) {
        if self.work != work {
            self.times[self.work as usize] += now - self.since;
            self.since = now;
            self.work = work;
        }
    }

    /// The time with this work until `now`.
    pub(super) fn time(&self, now: Instant, work: Work) -> Duration {
        let before = self.times[work as usize];
        if self.work == work {
            before + now.saturating_since(self.since)
        } else {
            before
        }
    }
}

impl Sender {
    /// Nothing more can be sent now: finds out why.
    #[inline]
    pub(super) fn note_work(&mut self, now: Instant) {
        let unsent = self.unsent();
        let work = if unsent > 0 {
            let mss = u64::from(self.mss);
            let pipe = self.pipe();
            let usable = self.peer.end.saturating_sub(self.nxt);
            let by_network = pipe + mss > self.window() && pipe > 0;
            if !by_network && usable < unsent.min(mss) {
                Work::Window
            } else {
                Work::Busy
            }
        } else if !self.written.wants_room {
            Work::Busy
        } else if self.nxt != self.chrono.nxt {
            if self.is_cwnd_limited() {
                Work::Busy
            } else {
                Work::Buffer
            }
        } else if self.chrono.work == Work::Buffer {
            Work::Buffer
        } else {
            Work::Busy
        };
        self.chrono.nxt = self.nxt;
        self.chrono.set(now, work);
    }
}
