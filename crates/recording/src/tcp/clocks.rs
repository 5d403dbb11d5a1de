//! How far the clocks of two captures are apart, by the data and the acknowledgements of a connection that both have.

use gargalo_units::{Duration, Instant};

/// Most positions of a stream whose times are kept.
const MOST: usize = 2_048;
/// Bytes between two positions at first.
const STRIDE: u64 = 4_096;
/// Parts of a connection's time in each of which the offset is estimated.
const PARTS: usize = 8;
/// No clock of a machine drifts more, in parts per million: what does is a queue that grows or shrinks.
const MOST_DRIFT_PPM: f64 = 1_000.0;
/// Least positions in a part.
const LEAST_IN_PART: usize = 8;

/// When a stream passed positions at equal distances, at one place. The distance doubles when there are too many.
#[derive(Debug)]
pub struct Passages {
    stride: u64,
    times: Vec<Instant>,
}

impl Default for Passages {
    fn default() -> Self {
        Self {
            stride: STRIDE,
            times: Vec::new(),
        }
    }
}

impl Passages {
    /// The stream has now passed this position.
    pub fn record(&mut self, position: u64, now: Instant) {
        // A peer may name any position: the last multiple is below 2^64.
        while let Some(next) = (self.times.len() as u64 + 1).checked_mul(self.stride)
            && next <= position
        {
            if self.times.len() == MOST {
                // What is left are the even multiples.
                self.times = self.times.iter().copied().skip(1).step_by(2).collect();
                self.stride *= 2;
                continue;
            }
            self.times.push(now);
        }
    }

    /// When a position was passed that is a multiple of the stride.
    fn at(&self, position: u64) -> Option<Instant> {
        let number = position.checked_div(self.stride)?.checked_sub(1)?;
        self.times.get(usize::try_from(number).ok()?).copied()
    }

    /// Times of positions that both have, in seconds: at this place, and how much later at the other.
    fn later_at(&self, other: &Self) -> Vec<(f64, f64)> {
        let stride = self.stride.max(other.stride);
        let positions = (1..=MOST as u64).map(|n| n.saturating_mul(stride));
        let times =
            positions.map_while(|p| Some((self.at(p)?.as_secs_f64(), other.at(p)?.as_secs_f64())));
        times.map(|(own, other)| (own, other - own)).collect()
    }
}

/// What must be taken from the times of a second clock to have those of the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offset {
    /// At the beginning, in seconds.
    pub offset_s: f64,
    /// How much it grows, in parts per million; `None` if the connection was too short to tell.
    pub drift_ppm: Option<f64>,
}

/// Estimates the offset between the clock of a place near the sender and one near the receiver.
///
/// The shortest time of data from one to the other, and that of acknowledgements back, contain the offset with opposite
/// signs; both ways are taken as equally long (as RFC 5905 does). `None` if there is nothing in common.
pub fn offset(near: [&Passages; 2], far: [&Passages; 2]) -> Option<Offset> {
    offset_by(&near[0].later_at(far[0]), &far[1].later_at(near[1]))
}

/// The same by the times of any packets: when each passed the place where it was seen first, and how much later it was
/// seen at the other, each by the clock of the place.
pub fn offset_by(there: &[(f64, f64)], back: &[(f64, f64)]) -> Option<Offset> {
    // By the clock of the place near the sender, too.
    let back: Vec<_> = back.iter().map(|(t, d)| (t + d, *d)).collect();
    let parts = (there.len().min(back.len()) / LEAST_IN_PART).clamp(1, PARTS);
    let (begin, end) = (there.first()?.0, there.last()?.0);
    let width = ((end - begin) / parts as f64).max(f64::MIN_POSITIVE);
    let least = |times: &[(f64, f64)], part: usize| {
        let inside = times
            .iter()
            .filter(|(t, _)| (((t - begin) / width) as usize).min(parts - 1) == part);
        inside.map(|(_, d)| *d).min_by(f64::total_cmp)
    };
    let points: Vec<(f64, f64)> = (0..parts)
        .filter_map(|part| {
            let offset = (least(there, part)? - least(&back, part)?) / 2.0;
            Some((begin + (part as f64 + 0.5) * width, offset))
        })
        .collect();
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (t, o) = (mean(|p| p.0), mean(|p| p.1));
    let spread: f64 = points.iter().map(|p| (p.0 - t) * (p.0 - t)).sum();
    let slope = points.iter().map(|p| (p.0 - t) * (p.1 - o)).sum::<f64>() / spread;
    match points.len() {
        0 => None,
        1 | 2 => Some(Offset {
            offset_s: o,
            drift_ppm: None,
        }),
        _ if slope.abs() * 1e6 > MOST_DRIFT_PPM => {
            let least = |times: &[(f64, f64)]| times.iter().map(|(_, d)| *d).reduce(f64::min);
            Some(Offset {
                offset_s: (least(there)? - least(&back)?) / 2.0,
                drift_ppm: None,
            })
        }
        _ => Some(Offset {
            offset_s: o - slope * t,
            drift_ppm: Some(slope * 1e6),
        }),
    }
}

impl Offset {
    /// What must be taken from the times of the first clock to have those of the second.
    pub fn inverted(&self) -> Self {
        let faster = 1.0 + self.drift_ppm.unwrap_or(0.0) / 1e6;
        Self {
            offset_s: -self.offset_s / faster,
            drift_ppm: self.drift_ppm.map(|ppm| -ppm / faster),
        }
    }

    /// The time of the first clock.
    pub fn corrected(&self, time: Instant) -> Instant {
        let seconds = time.as_secs_f64();
        let drift = self.drift_ppm.unwrap_or(0.0) / 1e6;
        let corrected = (seconds - self.offset_s) / (1.0 + drift);
        Instant::ZERO + Duration::from_secs_f64(corrected.clamp(0.0, 1e9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn any_position_may_be_passed() {
        let mut passages = Passages::default();
        for position in [u64::MAX - 1, u64::MAX] {
            passages.record(position, at(1.0));
            assert!(passages.times.len() <= MOST);
        }
        assert_eq!(passages.at(passages.stride), Some(at(1.0)));
    }

    /// Passages of data and acknowledgements at both ends; the far clock is `ahead` and runs fast by `ppm`.
    fn transfer(seconds: f64, ahead: f64, ppm: f64) -> [[Passages; 2]; 2] {
        let far = |t: f64| at(t * (1.0 + ppm / 1e6) + ahead);
        let mut marks: [[Passages; 2]; 2] = Default::default();
        let packets = (seconds * 400.0) as u64;
        for n in 0..packets {
            let sent = n as f64 / 400.0;
            // A queue that fills and drains, on the way there only.
            let queue = 0.03 * (sent * 1.7).sin().abs();
            let (arrived, end) = (sent + 0.02 + queue, (n + 1) * 1_448);
            marks[0][0].record(end, at(sent));
            marks[1][0].record(end, far(arrived));
            marks[1][1].record(end, far(arrived));
            marks[0][1].record(end, at(arrived + 0.02));
        }
        marks
    }

    fn estimated(marks: &[[Passages; 2]; 2]) -> Offset {
        let [near, far] = marks;
        offset([&near[0], &near[1]], [&far[0], &far[1]]).unwrap()
    }

    #[test]
    fn offset_and_drift_are_found_behind_a_queue_that_varies() {
        for (ahead, ppm) in [(0.0, 0.0), (3.5, 40.0), (-0.25, -40.0)] {
            let marks = transfer(60.0, ahead + 1.0, ppm);
            let found = estimated(&marks);
            assert!((found.offset_s - ahead - 1.0).abs() < 1e-3, "{found:?}");
            assert!((found.drift_ppm.unwrap() - ppm).abs() < 15.0, "{found:?}");
            let there = found.corrected(at(30.0 * (1.0 + ppm / 1e6) + ahead + 1.0));
            assert!((there.as_secs_f64() - 30.0).abs() < 1e-3);
        }
    }

    #[test]
    fn an_offset_the_other_way_takes_a_time_back() {
        let there = Offset {
            offset_s: 3.5,
            drift_ppm: Some(400.0),
        };
        let time = at(100.0);
        let found = there.inverted().corrected(there.corrected(time));
        assert!((found.as_secs_f64() - 100.0).abs() < 1e-8);
    }

    #[test]
    fn a_queue_that_grows_is_no_drift() {
        let mut marks: [[Passages; 2]; 2] = Default::default();
        for n in 0..800u64 {
            // Without a queue at first, and 10 ms longer each second.
            let (sent, end) = (n as f64 / 400.0, (n + 1) * 1_448);
            let arrived = sent + 0.02 + sent * 0.01;
            marks[0][0].record(end, at(sent));
            marks[1][0].record(end, at(arrived + 2.0));
            marks[1][1].record(end, at(arrived + 2.0));
            marks[0][1].record(end, at(arrived + 0.02));
        }
        let found = estimated(&marks);
        assert!((found.offset_s - 2.0).abs() < 1e-3, "{found:?}");
        assert_eq!(found.drift_ppm, None);
    }

    #[test]
    fn of_a_short_transfer_the_drift_is_unknown() {
        let found = estimated(&transfer(0.1, 2.0, 0.0));
        assert!((found.offset_s - 2.0).abs() < 5e-3, "{found:?}");
        assert_eq!(found.drift_ppm, None);
        let none = Passages::default();
        assert_eq!(offset([&none, &none], [&none, &none]), None);
    }

    #[test]
    fn positions_are_bounded_and_the_same_at_both_places() {
        let mut marks = Passages::default();
        for n in 1..=100_000u64 {
            marks.record(n * 1_000, Instant::from_nanos(n));
        }
        assert!(marks.times.len() <= MOST && marks.times.len() > MOST / 3);
        // The first packet that passed it.
        assert_eq!(
            marks.at(marks.stride),
            Some(Instant::from_nanos(marks.stride.div_ceil(1_000)))
        );
        let mut other = Passages::default();
        (1..=50u64).for_each(|n| other.record(n * 1_000_000, Instant::from_nanos(n)));
        assert!(!marks.later_at(&other).is_empty());
    }
}
