//! Growth of the receive window with what the application reads: dynamic right-sizing (Fisk and Feng, "Dynamic
//! right-sizing in TCP", 2001), with the constants of Linux 6.

use gargalo_units::{Duration, Instant};

/// The buffer grows when the application has read more in a round trip than ever before: to twice that amount, and
/// further in proportion to the growth, so that a sender in slow start is not held back. The window grows towards the
/// buffer with each segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Autotune {
    /// The largest buffer.
    most: u64,
    buffer: u64,
    /// The largest window now.
    limit: u64,
    mss: u64,
    /// The round-trip time as the receiver sees it, without timestamps its least.
    rtt: Option<Duration>,
    /// TSecr of the latest sample.
    echo: Option<u32>,
    /// Without timestamps: the arrival of data up to this offset ends a round trip that began then.
    round: Option<(Instant, u64)>,
    /// When the present measurement began, and the offset up to which the application had read.
    since: (Instant, u64),
    /// The most bytes read in a round trip.
    space: u64,
}

impl Autotune {
    /// A buffer that grows from `initial` to `most` bytes; `first` bytes in the first round trip need no growth.
    pub(super) fn new(initial: u64, most: u64, mss: u64, first: u64) -> Self {
        let buffer = initial.min(most);
        Self {
            most,
            buffer,
            limit: buffer.min(u64::from(u16::MAX)),
            mss,
            rtt: None,
            echo: None,
            round: None,
            since: (Instant::ZERO, 0),
            space: first.min(buffer).max(1),
        }
    }

    /// The most bytes read in a round trip.
    pub(super) fn space(&self) -> u64 {
        self.space
    }

    /// The buffer and the largest window now.
    pub(super) fn bounds(&self) -> (u64, u64) {
        (self.buffer, self.limit)
    }

    /// A full segment with this TSecr is `rtt` younger than the segment of ours that it echoes; `drained` if the
    /// application had read all before it. A smaller sample counts at once, a larger one by an eighth, and not while
    /// the application is behind.
    pub(super) fn on_echo(&mut self, echo: u32, rtt: Duration, drained: bool) {
        if self.echo.replace(echo) == Some(echo) {
            return;
        }
        let rtt = rtt.max(Duration::from_millis(1));
        self.rtt = Some(match self.rtt {
            Some(old) if rtt >= old && drained => old + (rtt - old) / 8,
            Some(old) => old.min(rtt),
            None => rtt,
        });
    }

    /// `len` bytes arrived in order, up to `next`; the window announced before ends at `edge`. Returns whether the
    /// window may grow, which is announced at once.
    pub(super) fn on_data(
        &mut self,
        now: Instant,
        len: u64,
        read: u64,
        next: u64,
        edge: u64,
    ) -> bool {
        if self.echo.is_none() {
            match self.round {
                Some((_, end)) if next < end => {}
                round => {
                    if let Some((began, _)) = round {
                        let rtt = now - began;
                        self.rtt = Some(self.rtt.map_or(rtt, |least| least.min(rtt)));
                    }
                    self.round = Some((now, edge));
                }
            }
        }
        if self.rtt.is_some_and(|rtt| now - self.since.0 >= rtt) {
            let copied = read - self.since.1;
            if copied > self.space {
                let window = 2 * copied;
                let grown = u128::from(window) * u128::from(copied - self.space);
                let grown = (grown / u128::from(self.space)).min(u128::from(self.most)) as u64;
                self.buffer = self.buffer.max((window + 2 * grown).min(self.most));
                self.space = copied;
            }
            self.since = (now, read);
        }
        let free = self.buffer.saturating_sub(next - read);
        let room = free.saturating_sub(self.limit);
        self.limit += room.min(2 * self.mss.max(len));
        room > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Round trips in each of which `segments` of 1448 bytes arrive and are read.
    fn rounds(a: &mut Autotune, timestamps: bool, segments: &[u64]) -> Vec<u64> {
        let mut next = 0;
        let mut found = Vec::new();
        for (round, n) in segments.iter().enumerate() {
            let start = Instant::ZERO + RTT * (round as u64 + 1);
            if timestamps {
                a.on_echo(round as u32, RTT, true);
            }
            for i in 0..*n {
                let now = start + Duration::from_micros(10 * i);
                let edge = next + a.limit;
                a.on_data(now, 1448, next, next + 1448, edge);
                next += 1448;
            }
            found.push(a.buffer);
        }
        found
    }

    #[test]
    fn the_buffer_is_twice_what_is_read_in_a_round_trip_and_more_while_that_grows() {
        let mut a = Autotune::new(65_536, 16 << 20, 1448, 14_480);
        // Growth comes a round trip late. 20 segments: 2 * 28960, and twice (28960 - 14480) / 14480 of it.
        let buffers = rounds(&mut a, true, &[10, 20, 40, 40, 40, 40]);
        assert_eq!(buffers[..2], [65_536, 65_536]);
        assert_eq!(buffers[2], 2 * 28_960 + 2 * 2 * 28_960);
        assert_eq!(buffers[3], 2 * 57_920 + 2 * 2 * 57_920);
        assert_eq!(buffers[5], buffers[3], "no growth, no larger buffer");
    }

    #[test]
    fn a_longer_round_trip_counts_by_an_eighth_unless_the_application_is_behind() {
        let mut a = Autotune::new(65_536, 16 << 20, 1448, 14_480);
        a.on_echo(1, RTT, true);
        a.on_echo(1, RTT * 9, true);
        assert_eq!(a.rtt, Some(RTT), "one sample for each timestamp");
        a.on_echo(2, RTT * 9, true);
        assert_eq!(a.rtt, Some(RTT * 2));
        a.on_echo(3, RTT * 9, false);
        assert_eq!(a.rtt, Some(RTT * 2));
        a.on_echo(4, RTT / 2, false);
        assert_eq!(a.rtt, Some(RTT / 2));
    }

    #[test]
    fn the_window_follows_the_buffer_by_two_segments_a_segment() {
        let mut a = Autotune::new(80_000, 16 << 20, 1448, 14_480);
        assert_eq!(a.bounds(), (80_000, 65_535));
        for i in 1..=4 {
            assert!(a.on_data(Instant::ZERO, 1448, i * 1448, i * 1448, 65_535));
            assert_eq!(a.limit, 65_535 + i * 2896);
        }
        for _ in 0..10 {
            a.on_data(Instant::ZERO, 1448, 9000, 9000, 65_535);
        }
        assert_eq!(a.limit, 80_000);
        assert!(!a.on_data(Instant::ZERO, 1448, 9000, 9000, 65_535));
    }

    #[test]
    fn unread_data_takes_its_part() {
        let mut a = Autotune::new(100_000, 16 << 20, 1448, 14_480);
        assert!(!a.on_data(Instant::ZERO, 1448, 0, 40_000, 65_535));
        assert_eq!(a.limit, 65_535);
    }

    #[test]
    fn without_timestamps_a_window_of_data_is_a_round_trip() {
        let mut a = Autotune::new(65_536, 16 << 20, 1448, 14_480);
        rounds(&mut a, false, &[40, 40, 40, 40]);
        let rtt = a.rtt.unwrap();
        assert!(
            rtt >= RTT - Duration::from_millis(1) && rtt <= RTT * 2,
            "{rtt}"
        );
        assert!(a.buffer > 65_536);
    }

    #[test]
    fn the_largest_buffer_bounds_it() {
        let mut a = Autotune::new(65_536, 100_000, 1448, 14_480);
        rounds(&mut a, true, &[10, 40, 40, 40, 40, 40]);
        // The segment that has just arrived is not read yet.
        assert_eq!(a.bounds(), (100_000, 100_000 - 1448));
    }
}
