//! LEDBAT's delays: the current one, filtered, and the base delay from a history of minutes.

use std::collections::VecDeque;

use gargalo_units::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// Current and base delay (RFC 6817 §2.4.2, §3.1).
#[derive(Clone, Debug)]
pub(super) struct Delays {
    /// The last CURRENT_FILTER delays.
    current: VecDeque<Duration>,
    filter: usize,
    /// The least delay of each of the last BASE_HISTORY intervals, the newest last.
    base: VecDeque<Duration>,
    history: usize,
    /// When the newest interval began.
    since: Option<Instant>,
}

impl Delays {
    pub fn new(filter: usize, history: usize) -> Self {
        Self {
            current: VecDeque::new(),
            filter: filter.max(1),
            base: VecDeque::new(),
            history: history.max(1),
            since: None,
        }
    }

    /// Takes a sample.
    pub fn observe(&mut self, now: Instant, delay: Duration) {
        if self.current.len() >= self.filter {
            self.current.pop_front();
        }
        self.current.push_back(delay);
        self.roll(now, delay);
    }

    fn roll(&mut self, now: Instant, delay: Duration) {
        let since = *self.since.get_or_insert(now);
        let minutes = (now - since).as_nanos() / MINUTE.as_nanos();
        if minutes == 0 && !self.base.is_empty() {
            if let Some(newest) = self.base.back_mut() {
                *newest = (*newest).min(delay);
            }
            return;
        }
        // Minutes without a sample are not in the history.
        self.since = Some(since + MINUTE * minutes);
        if self.base.len() >= self.history {
            self.base.pop_front();
        }
        self.base.push_back(delay);
    }

    /// FILTER(current_delays): the least, as the RFC recommends.
    pub fn current(&self) -> Option<Duration> {
        self.current.iter().copied().min()
    }

    /// MIN(base_delays): the least delay in the history; `None` before the first sample.
    pub fn base(&self) -> Option<Duration> {
        self.base.iter().copied().min()
    }

    /// The queueing delay; `None` before the first sample.
    pub fn queueing(&self) -> Option<Duration> {
        Some(self.current()?.saturating_sub(self.base()?))
    }

    /// Forgets the current delays: the path was idle.
    pub fn forget_current(&mut self) {
        self.current.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn the_least_of_the_last_four() {
        let mut d = Delays::new(4, 10);
        assert_eq!(d.queueing(), None);
        for (delay, want) in [(90, 90), (50, 50), (80, 50), (70, 50), (60, 50), (75, 60)] {
            d.observe(at(1), ms(delay));
            assert_eq!(d.current(), Some(ms(want)));
        }
        assert_eq!(d.queueing(), Some(ms(10)));
    }

    #[test]
    fn the_base_is_forgotten_after_ten_minutes() {
        let mut d = Delays::new(1, 10);
        d.observe(at(0), ms(40));
        for minute in 1..10 {
            d.observe(at(60 * minute), ms(100));
            assert_eq!(d.base(), Some(ms(40)), "minute {minute}");
        }
        d.observe(at(600), ms(100));
        assert_eq!(d.base(), Some(ms(100)));
    }

    #[test]
    fn silence_keeps_the_history() {
        let mut d = Delays::new(1, 10);
        d.observe(at(0), ms(40));
        d.observe(at(100_000), ms(90));
        d.observe(at(100_001), ms(80));
        assert_eq!(d.base(), Some(ms(40)));
        assert_eq!(d.base.len(), 2);
    }
}
