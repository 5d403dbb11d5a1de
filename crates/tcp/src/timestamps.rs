use gargalo_units::{Duration, Instant};
use gargalo_wire::tcp;

/// Nanoseconds per tick of the timestamp clock: 1 ms (RFC 7323 §5.4).
const TICK: u64 = 1_000_000;
/// A TS.Recent older than this is invalid (RFC 7323 §5.5): 24 days.
const OUTDATED: Duration = Duration::from_secs(24 * 24 * 3600);

/// The timestamps option of one connection (RFC 7323 §3 to §5).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamps {
    /// Both sides sent the option with their SYN.
    enabled: bool,
    /// Added to our clock (RFC 7323 §7.1).
    offset: u32,
    /// TS.Recent: the peer's timestamp that is echoed (RFC 7323 §4.3).
    recent: u32,
    /// When TS.Recent was updated.
    recent_at: Instant,
    /// Last.ACK.sent as an offset in the peer's stream.
    last_ack_sent: u64,
}

impl Timestamps {
    pub(crate) fn new(offset: u32) -> Self {
        Self {
            enabled: false,
            offset,
            recent: 0,
            recent_at: Instant::ZERO,
            last_ack_sent: 0,
        }
    }

    /// Both sides sent the option; `recent` is the TSval of the peer's SYN.
    pub(crate) fn enable(&mut self, now: Instant, recent: u32) {
        self.enabled = true;
        self.recent = recent;
        self.recent_at = now;
    }

    /// The connection starts again.
    pub(crate) fn disable(&mut self) {
        *self = Self::new(self.offset);
    }

    /// Both sides sent the option.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// TS.Recent, if the option is in use.
    pub(crate) fn recent(&self) -> Option<u32> {
        self.enabled.then_some(self.recent)
    }

    /// Ticks of our clock without the offset.
    #[inline]
    pub(crate) fn ticks(now: Instant) -> u32 {
        (now.as_nanos() / TICK) as u32
    }

    /// TSval of a segment that is sent now: the ticks with the offset.
    #[inline]
    pub(crate) fn value(&self, now: Instant) -> u32 {
        Self::ticks(now).wrapping_add(self.offset)
    }

    /// The option for a segment that leaves now.
    #[inline]
    pub(crate) fn option(&self, now: Instant) -> Option<tcp::Timestamps> {
        self.enabled.then(|| tcp::Timestamps {
            value: self.value(now),
            echo: self.recent,
        })
    }

    /// A peer's TSecr in ticks of our clock without the offset.
    #[inline]
    pub(crate) fn ticks_of(&self, echo: u32) -> u32 {
        echo.wrapping_sub(self.offset)
    }

    /// Round-trip time by an echo, to a tick; `None` for an echo from the future.
    #[inline]
    pub(crate) fn rtt(&self, now: Instant, echo: u32) -> Option<Duration> {
        let ticks = self.value(now).wrapping_sub(echo) as i32;
        u64::try_from(ticks).ok().map(Duration::from_millis)
    }

    /// An old segment by its timestamp: protection against wrapped sequence numbers (RFC 7323
    /// §5.3 R1).
    #[inline]
    pub(crate) fn is_old(&self, now: Instant, value: u32) -> bool {
        (value.wrapping_sub(self.recent) as i32) < 0 && now - self.recent_at < OUTDATED
    }

    /// An acceptable segment that begins at `offset` arrived (RFC 7323 §4.3 (2)).
    #[inline]
    pub(crate) fn on_segment(&mut self, now: Instant, value: u32, offset: i64) {
        if offset <= self.last_ack_sent as i64 && !self.is_old(now, value) {
            self.recent = value;
            self.recent_at = now;
        }
    }

    /// A segment that acknowledges everything before `next` is sent.
    #[inline]
    pub(crate) fn on_ack_sent(&mut self, next: u64) {
        self.last_ack_sent = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Instant {
        Instant::from_nanos(n * TICK)
    }

    #[test]
    fn the_echo_is_of_the_segment_that_the_acknowledgement_answers() {
        let mut t = Timestamps::new(0);
        t.enable(ms(0), 10);
        t.on_ack_sent(1000);
        t.on_segment(ms(1), 11, 1000);
        // Delayed acknowledgement: the earlier of two segments counts.
        t.on_segment(ms(2), 12, 2000);
        assert_eq!(t.option(ms(3)).unwrap().echo, 11);
        t.on_ack_sent(3000);
        t.on_segment(ms(4), 13, 3000);
        assert_eq!(t.option(ms(5)).unwrap().echo, 13);
    }

    #[test]
    fn old_is_judged_across_the_wrap_and_not_after_a_long_silence() {
        let mut t = Timestamps::new(0);
        t.enable(ms(0), u32::MAX);
        assert!(!t.is_old(ms(1), 3));
        assert!(t.is_old(ms(1), u32::MAX - 1));
        assert!(!t.is_old(ms(1) + OUTDATED, u32::MAX - 1));
    }

    #[test]
    fn round_trips_are_told_by_the_echo_whatever_the_offset() {
        let t = Timestamps::new(u32::MAX - 5);
        let echo = t.value(ms(3));
        assert_eq!(t.rtt(ms(53), echo), Some(Duration::from_millis(50)));
        assert_eq!(t.rtt(ms(2), echo), None);
        assert_eq!(t.ticks_of(echo), 3);
    }
}
