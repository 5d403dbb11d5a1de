//! RTP in datagrams (RFC 3550): lost packets and jitter of a stream.

use gargalo_units::{Duration, Instant};

/// Length of the fixed header.
const HEADER: usize = 12;
/// Rates of the time stamps of usual audio and video, in Hz.
const CLOCKS: [f64; 7] = [
    8_000.0, 16_000.0, 24_000.0, 32_000.0, 44_100.0, 48_000.0, 90_000.0,
];
/// A sequence number that is further away belongs to another stream (RFC 3550, appendix A.1: MAX_DROPOUT).
const MOST_STEP: i16 = 3_000;
/// Packets of one source in a row that are a stream.
const LEAST: u64 = 16;

/// The fields that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    sequence: u16,
    stamp: u32,
    source: u32,
}

impl Header {
    /// Those of a datagram's payload, if it can be RTP.
    pub fn of(payload: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER] = payload.first_chunk()?;
        // Version 2, and no packet type of RTCP (RFC 5761, section 4).
        if header[0] >> 6 != 2 || (192..=223).contains(&header[1]) {
            return None;
        }
        Some(Self {
            sequence: u16::from_be_bytes([header[2], header[3]]),
            stamp: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            source: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
        })
    }
}

/// What was received of a stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    latest: Option<Header>,
    received: u64,
    /// From the first sequence number to the highest.
    expected: u64,
    others: u64,
    /// The last packet with another time stamp than the one before: when it came, and its stamp.
    paced: Option<(Instant, u32)>,
    /// Time and time stamps since the first of them.
    elapsed: (f64, f64),
    /// The jitter by each clock, and the sum of all so far; how many there are.
    jitter: [(f64, f64); CLOCKS.len()],
    steps: u64,
}

impl Stream {
    /// Takes a datagram, which may be none of RTP.
    pub fn take(&mut self, now: Instant, header: Option<Header>) {
        let Some(header) = header else {
            self.others += 1;
            return;
        };
        let Some(latest) = self.latest else {
            (self.latest, self.received, self.expected) = (Some(header), 1, 1);
            self.paced = Some((now, header.stamp));
            return;
        };
        let step = header.sequence.wrapping_sub(latest.sequence) as i16;
        if header.source != latest.source || step.abs() > MOST_STEP {
            self.others += 1;
            return;
        }
        self.received += 1;
        if step <= 0 {
            return;
        }
        self.expected += u64::from(step.unsigned_abs());
        self.latest = Some(header);
        if let Some((before, stamp)) = self.paced
            && stamp != header.stamp
        {
            let time = now.saturating_since(before).as_secs_f64();
            let stamps = header.stamp.wrapping_sub(stamp) as i32;
            self.elapsed.0 += time;
            self.elapsed.1 += f64::from(stamps);
            self.steps += 1;
            for ((jitter, sum), clock) in self.jitter.iter_mut().zip(CLOCKS) {
                let late = time - f64::from(stamps) / clock;
                *jitter += (late.abs() - *jitter) / 16.0;
                *sum += *jitter;
            }
            self.paced = Some((now, header.stamp));
        }
    }

    /// Whether it was a stream of RTP: nearly all datagrams were of one source, with sequence numbers in a row.
    pub const fn is_one(&self) -> bool {
        self.received >= LEAST
            && self.others * 20 <= self.received
            && self.expected <= self.received * 4
    }

    /// Share of the packets that did not arrive here.
    pub fn loss(&self) -> f64 {
        let lost = self.expected.saturating_sub(self.received);
        lost as f64 / self.expected.max(1) as f64
    }

    /// The mean of the interarrival jitter (RFC 3550, section 6.4.1); `None` if its clock is none of the usual.
    pub fn jitter(&self) -> Option<Duration> {
        let (time, stamps) = self.elapsed;
        let rate = stamps / time;
        let near = |clock: &f64| (rate / clock - 1.0).abs() < 0.02;
        let number = CLOCKS.iter().position(near)?;
        let (_, sum) = self.jitter[number];
        Some(Duration::from_secs_f64(sum / self.steps as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(sequence: u16, stamp: u32) -> Option<Header> {
        let mut payload = vec![0x80, 96];
        payload.extend_from_slice(&sequence.to_be_bytes());
        payload.extend_from_slice(&stamp.to_be_bytes());
        payload.extend_from_slice(&7u32.to_be_bytes());
        Header::of(&payload)
    }

    fn at(ms: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(ms / 1e3)
    }

    #[test]
    fn lost_packets_are_numbers_that_are_missing_over_a_wrap() {
        let mut stream = Stream::default();
        for n in 0..100u16 {
            // Every tenth is lost, and two come in the other order.
            let n = [n, 43, 42][usize::from(n == 42) + 2 * usize::from(n == 43)];
            if n % 10 != 9 {
                let number = n.wrapping_add(65_500);
                stream.take(at(f64::from(n) * 20.0), header(number, u32::from(n) * 160));
            }
        }
        assert!(stream.is_one());
        assert_eq!((stream.received, stream.expected), (90, 99));
        assert!((stream.loss() - 9.0 / 99.0).abs() < 1e-9);
    }

    #[test]
    fn jitter_is_that_of_the_rfc_once_the_clock_is_known() {
        let mut stream = Stream::default();
        // Frames of 33.3 ms of two packets, every other one 4 ms late: the difference is 4 ms each time.
        for n in 0..400u32 {
            let late = f64::from(n % 2) * 4.0;
            for part in 0..2 {
                let number = (n * 2 + part) as u16;
                stream.take(
                    at(f64::from(n) * 100.0 / 3.0 + late),
                    header(number, n * 3_000),
                );
            }
        }
        let jitter = stream.jitter().unwrap().as_secs_f64();
        assert!((jitter - 0.004).abs() < 0.0004, "{jitter}");
        // No usual clock: 1,000 stamps in 33 ms.
        let mut other = Stream::default();
        for n in 0..400u32 {
            other.take(at(f64::from(n) * 100.0 / 3.0), header(n as u16, n * 1_000));
        }
        assert_eq!(other.jitter(), None);
    }

    #[test]
    fn other_datagrams_are_no_stream() {
        let mut stream = Stream::default();
        for n in 0..100u32 {
            // QUIC's short header has the version's first bit only; RTCP has a packet type of its own.
            stream.take(at(f64::from(n)), Header::of(&[0x40; 40]));
            stream.take(
                at(f64::from(n)),
                Header::of(&[0x80, 200, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
            );
        }
        assert!(!stream.is_one());
        let mut random = Stream::default();
        for n in 0..100u16 {
            random.take(at(f64::from(n)), header(n.wrapping_mul(17_389), 0));
        }
        assert!(!random.is_one());
    }
}
