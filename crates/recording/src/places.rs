//! Where packets were captured, and the clocks there.

use gargalo_units::{Duration, Instant};

use crate::capture::Frame;
use crate::crossings::Span;
use crate::facts::Clock;

/// Link type of `tcpdump -i any`, which names the interface in each frame.
const COOKED_2: i32 = 276;
/// Packets of several queues of a device are written a little out of order. More than this is a clock that was set.
const JUMP: Duration = Duration::from_secs(1);

/// Later times are damage: so long after its first packet no capture ends.
const LATEST: Instant = Instant::from_nanos(1 << 61);

/// A place of capture: an interface of a file.
#[derive(Debug)]
pub struct Place {
    file: usize,
    interface: usize,
    /// The kernel's number of the interface, where frames have it.
    device: Option<u32>,
    first: Option<Instant>,
    latest: Instant,
    /// What was added to its times since the clock was set back.
    ahead: Duration,
}

/// All places.
#[derive(Debug, Default)]
pub struct Places {
    all: Vec<Place>,
    files: usize,
    last: usize,
    clock: Clock,
}

impl Places {
    /// Packets of another file follow.
    pub const fn begin_file(&mut self) {
        self.files += 1;
    }

    /// The number of a frame's place.
    pub fn of(&mut self, frame: &Frame<'_>) -> usize {
        let device = match frame.link_type {
            COOKED_2 => frame
                .bytes
                .get(4..)
                .and_then(|b| b.first_chunk())
                .map(|b| u32::from_be_bytes(*b)),
            _ => None,
        };
        let same =
            |p: &Place| (p.file, p.interface, p.device) == (self.files, frame.interface, device);
        if self.all.get(self.last).is_some_and(same) {
            return self.last;
        }
        self.last = self.all.iter().position(same).unwrap_or_else(|| {
            self.all.push(Place {
                file: self.files,
                interface: frame.interface,
                device,
                first: None,
                latest: Instant::ZERO,
                ahead: Duration::ZERO,
            });
            self.all.len() - 1
        });
        self.last
    }

    /// The time of a packet as one that never goes back: one that is written late gets the time of the packet before,
    /// and after a clock was set back all times are later by as much.
    pub fn time(&mut self, place: usize, stamped: Instant) -> Instant {
        let place = &mut self.all[place];
        let time = stamped.min(LATEST) + place.ahead;
        if time < place.latest {
            let back = place.latest.saturating_since(time);
            self.clock.late_packets += 1;
            if back > JUMP {
                self.clock.set_back += 1;
                place.ahead = (place.ahead + back).min(LATEST.saturating_since(Instant::ZERO));
            }
            return place.latest;
        }
        place.first.get_or_insert(time);
        place.latest = time;
        time
    }

    /// The times of the first and the last packet of a place.
    pub fn span(&self, place: usize) -> Span {
        let known = self.all.get(place);
        known.map_or((Instant::ZERO, Instant::ZERO), |p| {
            (p.first.unwrap_or(p.latest), p.latest)
        })
    }

    /// Whether two places are of one file, which has one clock.
    pub fn same_clock(&self, a: usize, b: usize) -> bool {
        let file = |place: usize| self.all.get(place).map(|p| p.file);
        file(a) == file(b)
    }

    /// What was seen of clocks.
    pub const fn clock(&self) -> Clock {
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(interface: usize, link_type: i32, bytes: &[u8]) -> Frame<'_> {
        Frame {
            time_ns: 0,
            interface,
            link_type,
            bytes,
            length: bytes.len() as u32,
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_place_is_an_interface_of_a_file_or_the_device_that_a_frame_names() {
        let mut places = Places::default();
        places.begin_file();
        let cooked = |device: u32| [&[8, 0, 0, 0][..], &device.to_be_bytes(), &[0; 20]].concat();
        let found = [
            places.of(&frame(0, 1, &[])),
            places.of(&frame(1, 1, &[])),
            places.of(&frame(0, COOKED_2, &cooked(7))),
            places.of(&frame(0, COOKED_2, &cooked(8))),
            places.of(&frame(0, 1, &[])),
        ];
        assert_eq!(found, [0, 1, 2, 3, 0]);
        places.begin_file();
        assert_eq!(places.of(&frame(0, 1, &[])), 4);
    }

    #[test]
    fn times_never_go_back_and_a_clock_that_was_set_goes_on() {
        let mut places = Places::default();
        places.begin_file();
        let place = places.of(&frame(0, 1, &[]));
        let stamps = [0, 10, 9, 12, 5_012, 12, 22, 4_000];
        let times = stamps.map(|ms| places.time(place, at(ms)));
        assert_eq!(times, [0, 10, 10, 12, 5_012, 5_012, 5_022, 9_000].map(at));
        let clock = places.clock();
        assert_eq!((clock.late_packets, clock.set_back), (2, 1));
    }
}
