//! Logs a link in the format of mahimahi's `mm-link`, for tools that draw it.
//!
//! Lines are `T + BYTES` (a packet arrives), `T - BYTES DELAY` (it has left the queue, DELAY milliseconds after it
//! arrived) and `T # BYTES` (the bytes that could be sent since the last such line). Times are whole milliseconds.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use gargalo_link::{Delay, LinkConfig, RateModel};
use gargalo_units::{Bytes, Duration, Instant};

use crate::linux::fabric::Passage;
use crate::{Error, Result};

/// The log files of the uplink and the downlink.
pub(super) struct Log {
    directions: [Option<Direction>; 2],
}

struct Direction {
    file: BufWriter<File>,
    /// Propagation delay, which is not part of the logged delay.
    base: Duration,
    rate: RateModel,
    /// The time until which delivery opportunities were written, and the remaining part of one.
    logged_until: Instant,
}

impl Log {
    /// Opens the requested files.
    pub(super) fn create(paths: &[Option<PathBuf>; 2], links: [&LinkConfig; 2]) -> Result<Self> {
        let open = |path: &Option<PathBuf>, link: &LinkConfig| {
            path.as_ref()
                .map(|p| Direction::create(p, link))
                .transpose()
        };
        Ok(Self {
            directions: [open(&paths[0], links[0])?, open(&paths[1], links[1])?],
        })
    }

    /// Logs the arrival of a packet of `bytes` at a direction.
    #[inline]
    pub(super) fn entered(&mut self, now: Instant, direction: usize, bytes: usize) {
        if let Some(d) = &mut self.directions[direction] {
            d.opportunities(now);
            d.line(format_args!("{} + {bytes}", millis(now)));
        }
    }

    /// Logs a packet that left at the other end.
    #[inline]
    pub(super) fn left(&mut self, direction: usize, bytes: usize, passage: Passage) {
        if let Some(d) = &mut self.directions[direction] {
            let total = passage.due.saturating_since(passage.entered);
            let queued = Duration::from_nanos(total.as_nanos().saturating_sub(d.base.as_nanos()));
            let at = Instant::from_nanos(passage.due.as_nanos().saturating_sub(d.base.as_nanos()));
            d.line(format_args!(
                "{} - {bytes} {}",
                millis(at),
                queued.as_millis()
            ));
        }
    }
}

impl Direction {
    fn create(path: &PathBuf, link: &LinkConfig) -> Result<Self> {
        let file = File::create(path).map_err(|reason| Error::file(path, reason))?;
        let mut made = Self {
            file: BufWriter::new(file),
            base: match &link.delay {
                Delay::Constant(d) => *d,
                Delay::Steps(_) => Duration::ZERO,
            },
            rate: link.rate.clone(),
            logged_until: Instant::ZERO,
        };
        made.line(format_args!("# gargalo shell\n# base timestamp: 0"));
        Ok(made)
    }

    /// Logs what could have been sent since the last time, in packets of 1500 bytes.
    fn opportunities(&mut self, now: Instant) {
        let RateModel::Constant(rate) = self.rate else {
            return;
        };
        let packet = rate.transmission_time(Bytes::new(1500));
        // After a long idle period the missed opportunities are not logged.
        const MOST: u32 = 100_000;
        for _ in 0..MOST {
            if packet.is_zero() || self.logged_until + packet > now {
                return;
            }
            self.logged_until += packet;
            self.line(format_args!("{} # 1500", millis(self.logged_until)));
        }
        self.logged_until = now;
    }

    /// Writes a line. A full disk must not stop the program behind the link.
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.file, "{text}");
    }
}

fn millis(t: Instant) -> u64 {
    t.as_nanos() / 1_000_000
}
