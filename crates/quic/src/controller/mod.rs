//! Congestion controls under noq: ours through an adapter, noq's own through a thin wrapper.

mod adapter;
mod foreign;
mod records;
mod report;
mod rtt;
mod sender;

use report::Reporter;
pub(crate) use report::{PathReport, Report};

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use gargalo_cc as cc;
use gargalo_units::{Bytes, Duration};
use noq_proto::congestion::{
    Bbr3Config, Controller, ControllerFactory, CubicConfig, NewRenoConfig,
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::realm::Timeline;
use crate::tls::lock;
use crate::{Build, Config, Congestion};
use adapter::Adapter;
use foreign::Foreign;

/// A rate that is effectively no pacing, in bytes per second: noq has no other way to turn it off. One packet is
/// sent per nanosecond at most; noq's pacer allows bursts of up to 256 packets.
const UNPACED: u64 = 10_000_000_000_000;

fn ours(d: std::time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}

/// The settings of every path's controller.
#[derive(Clone, Copy, Debug)]
struct Settings {
    initial_window: u64,
    max_window: u64,
    pacing: bool,
    time: Timeline,
}

/// Creates a controller for each path.
pub(crate) struct Factory {
    congestion: Congestion,
    settings: Settings,
    /// Each controller is for another path.
    multipath: bool,
    rng: Mutex<Pcg64>,
    built: AtomicU64,
    report: Arc<Report>,
}

impl Factory {
    pub(crate) fn new(
        congestion: &Congestion,
        config: &Config,
        time: Timeline,
        rng: Pcg64,
        report: Arc<Report>,
    ) -> Self {
        Self {
            congestion: congestion.clone(),
            settings: Settings {
                initial_window: config.initial_window().get(),
                max_window: config.max_window().map_or(u64::MAX, Bytes::get),
                pacing: config.pacing,
                time,
            },
            multipath: config.paths() > 1,
            rng: Mutex::new(rng),
            built: AtomicU64::new(0),
            report,
        }
    }

    /// Checks that the controller can be built.
    pub(crate) fn check(&self, config: &Config, now: gargalo_units::Instant) -> Result<(), String> {
        match &self.congestion {
            Congestion::Ours(build) => {
                // Not from the generator: the first real build must get the first draws.
                let rng = lock(&self.rng).clone();
                build(self.init(now, config.datagram_size, rng)).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn init(&self, now: gargalo_units::Instant, mtu: u16, rng: Pcg64) -> cc::Init {
        cc::Init {
            now,
            mss: Bytes::new(u64::from(mtu)),
            initial_window: Bytes::new(self.settings.initial_window),
            rng,
        }
    }

    fn ours(
        &self,
        build: &Build,
        now: std::time::Instant,
        mtu: u16,
        report: Reporter,
    ) -> Result<Box<dyn Controller>, String> {
        let rng = {
            let mut rng = lock(&self.rng);
            let mut seed = [0; 32];
            rng.fill_bytes(&mut seed);
            Pcg64::from_seed(seed)
        };
        let now = self.settings.time.to_ours(now);
        let controller = build(self.init(now, mtu, rng))?;
        Ok(Box::new(Adapter::new(
            controller,
            now,
            mtu,
            self.settings,
            report,
        )))
    }

    fn foreign(
        &self,
        inner: Box<dyn Controller>,
        phase: Option<&'static str>,
        mtu: u16,
        report: Reporter,
    ) -> Box<dyn Controller> {
        Box::new(Foreign::new(inner, phase, self.settings, report, mtu))
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: std::time::Instant, mtu: u16) -> Box<dyn Controller> {
        let first = self.built.fetch_add(1, Relaxed) == 0;
        let report = Reporter::new(self.report.clone(), first || !self.multipath);
        let window = self.settings.initial_window;
        let newreno = |now| {
            let mut config = NewRenoConfig::default();
            config.initial_window(window);
            Arc::new(config).build(now, mtu)
        };
        match &self.congestion {
            Congestion::Ours(build) => match self.ours(build, now, mtu, report.clone()) {
                Ok(controller) => controller,
                Err(why) => {
                    // The endpoint ends the connection before this one sends anything.
                    self.report.on_failure(why);
                    self.foreign(newreno(now), None, mtu, report)
                }
            },
            Congestion::NoqCubic => {
                let mut config = CubicConfig::default();
                config.initial_window(window);
                self.foreign(Arc::new(config).build(now, mtu), None, mtu, report)
            }
            Congestion::NoqNewReno => self.foreign(newreno(now), None, mtu, report),
            Congestion::NoqBbr3 => {
                let mut config = Bbr3Config::default();
                config.initial_window(window);
                self.foreign(Arc::new(config).build(now, mtu), Some("bbr3"), mtu, report)
            }
        }
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Factory")
            .field("congestion", &self.congestion)
            .finish_non_exhaustive()
    }
}
