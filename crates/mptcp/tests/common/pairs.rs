//! Random pairs of paths: both together against the better one alone.

use gargalo_units::{Duration, Rate};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::{Net, Path, config, ms, scheduler};

/// Receive buffers in bytes with which a pair is run, in addition to a random one.
pub const BUFFERS: [u64; 4] = [256_000, 1_000_000, 4_000_000, 16_000_000];

/// Draws a log-uniformly distributed value between `low` and `high`.
pub fn between(rng: &mut Pcg64, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.random::<f64>())
}

/// 1 to 60 Mbit/s, 2 to 150 ms one way, 0.3 to 3 bandwidth-delay products of queue (at least 20 packets);
/// three of ten lose 0.01 to 2% of the packets.
pub fn random_path(rng: &mut Pcg64) -> Path {
    let rate = Rate::from_bps_f64(between(rng, 1e6, 60e6));
    let delay = Duration::from_secs_f64(between(rng, 0.002, 0.15));
    let bdp = (rate * (delay * 2)).get() as f64;
    let queue = ((bdp * between(rng, 0.3, 3.0)) as u64).max(30_000);
    let loss = if rng.random::<f64>() < 0.3 {
        between(rng, 1e-4, 2e-2)
    } else {
        0.0
    };
    Path {
        rate,
        delay,
        queue,
        loss,
        ..Path::new(1, 1)
    }
}

/// Two paths and a receive buffer.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub seed: u64,
    pub paths: [Path; 2],
    pub buffer: u64,
}

/// What was measured, Mbit/s.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub single: [f64; 2],
    pub both: f64,
}

impl Outcome {
    /// Goodput of both together per that of the better one alone.
    pub fn ratio(&self) -> f64 {
        self.both / self.single[0].max(self.single[1])
    }
}

impl Pair {
    /// The pair of a seed, with a receive buffer of 256 kB to 16 MB.
    pub fn random(seed: u64) -> Self {
        let mut rng = Pcg64::new(u128::from(seed), 5);
        let paths = [random_path(&mut rng), random_path(&mut rng)];
        let buffer = between(&mut rng, 256e3, 16e6) as u64;
        Self {
            seed,
            paths,
            buffer,
        }
    }

    pub fn with_buffer(self, buffer: u64) -> Self {
        Self { buffer, ..self }
    }

    /// Goodput of a bulk transfer by uncoupled cubic, each path alone and both, for 16 s after a start of
    /// 4 s. `loss_seed` determines the lost packets.
    pub fn measure(&self, name: &str, loss_seed: u64) -> Outcome {
        let one = |paths: &[Path]| {
            let mut c = config(self.buffer);
            c.scheduler = scheduler(name);
            Net::new(paths, c, "cubic", loss_seed).goodput(ms(4000), ms(16_000))
        };
        Outcome {
            single: [one(&self.paths[..1]), one(&self.paths[1..])],
            both: one(&self.paths),
        }
    }

    /// The same; where loss is random and one run falls below `bound`, the mean of five.
    pub fn judge(&self, name: &str, bound: f64) -> Outcome {
        let mut total = self.measure(name, self.seed);
        let lossy = self.paths.iter().any(|p| p.loss > 0.0);
        if total.ratio() >= bound || !lossy {
            return total;
        }
        for run in 1..5 {
            let o = self.measure(name, self.seed + 1_000_000 * run);
            total.both += o.both;
            total.single[0] += o.single[0];
            total.single[1] += o.single[1];
        }
        Outcome {
            single: total.single.map(|s| s / 5.0),
            both: total.both / 5.0,
        }
    }
}

impl std::fmt::Display for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.seed)?;
        for p in &self.paths {
            write!(
                f,
                " [{:.1} Mbit/s {} ms queue {} kB loss {:.2}%]",
                p.rate.as_bps() as f64 * 1e-6,
                p.delay.as_millis(),
                p.queue / 1000,
                p.loss * 100.0
            )?;
        }
        write!(f, " buffer {} kB", self.buffer / 1000)
    }
}
