//! A link between the programs: a rate, a delay and a queue, the same in each direction.

/// IPv4 and UDP header.
const HEADERS: usize = 28;

/// The link; a direction is the program that sends.
#[derive(Debug)]
pub struct Link {
    delay: u64,
    bits_per_second: f64,
    queue: usize,
    /// When the packets that wait or are being sent have left, by direction.
    leaving: Vec<Vec<u64>>,
}

impl Link {
    /// A link with this delay in nanoseconds, this rate, and room for so many packets.
    pub fn new(delay: u64, bits_per_second: f64, queue: usize) -> Self {
        Self {
            delay,
            bits_per_second,
            queue,
            leaving: Vec::new(),
        }
    }

    /// When a datagram of this payload arrives that is sent now; `None`: the queue is full.
    pub fn arrival(&mut self, direction: usize, now: u64, payload: usize) -> Option<u64> {
        if self.leaving.len() <= direction {
            self.leaving.resize(direction + 1, Vec::new());
        }
        let leaving = &mut self.leaving[direction];
        leaving.retain(|at| *at > now);
        if leaving.len() > self.queue {
            return None;
        }
        let bits = (payload + HEADERS) as f64 * 8.0;
        let takes = (bits / self.bits_per_second * 1e9) as u64;
        let left = leaving.last().copied().unwrap_or(now) + takes;
        leaving.push(left);
        Some(left + self.delay)
    }
}
