//! Virtual time as programs read it, and their random bytes.

/// What calendar clocks show at the start: 1 January 2025, 00:00 UTC.
const CALENDAR_START: u64 = 1_735_689_600 * SECOND;
/// What the others show: as if the machine had just been started, but not at 0, which some programs take for "never".
const UPTIME: u64 = 1000 * SECOND;
/// Nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// What a clock shows at an instant since the start of the run.
pub fn shown(clock: i32, now: u64) -> u64 {
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => {
            CALENDAR_START + now
        }
        _ => UPTIME + now,
    }
}

/// The instant at which a clock shows this.
pub fn instant(clock: i32, shows: u64) -> u64 {
    shows.saturating_sub(shown(clock, 0))
}

/// Random bytes: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    /// Those of one program.
    pub fn new(seed: u64, program: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9).wrapping_add(program))
    }

    /// The next bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(length + 8);
        while out.len() < length {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            out.extend_from_slice(&(z ^ (z >> 31)).to_le_bytes());
        }
        out.truncate(length);
        out
    }
}
