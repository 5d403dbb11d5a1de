//! Logs a link in the format of mahimahi's `mm-link`, for tools that draw it.
//!
//! Lines are `T + BYTES` (an IP packet arrives), `T - BYTES DELAY` (it has left the queue, DELAY milliseconds after it
//! arrived; written when it is at the other end, so that others may come before it) and `T # BYTES` (the bytes that
//! could be sent since the last such line). Times are whole milliseconds.

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
        let open = |i: usize, name: &str| {
            let path = paths[i].as_ref();
            path.map(|p| Direction::create(p, links[i], name))
                .transpose()
        };
        Ok(Self {
            directions: [open(0, "Uplink")?, open(1, "Downlink")?],
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
            let at = Instant::from_nanos(passage.due.as_nanos().saturating_sub(d.base.as_nanos()));
            // As a reader sees it, who knows the packet by the time of its arrival.
            let queued = millis(at).saturating_sub(millis(passage.entered));
            d.line(format_args!("{} - {bytes} {queued}", millis(at)));
        }
    }
}

impl Direction {
    fn create(path: &PathBuf, link: &LinkConfig, name: &str) -> Result<Self> {
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
        made.line(format_args!(
            "# gargalo shell ({name})\n# base timestamp: 0"
        ));
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
