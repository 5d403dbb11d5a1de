//! Adaptive: switches between largest window space, lowest time-space and highest sending rate by the state of the
//! paths. The dissertation that proposed the three names this as future work.
//!
//! Once per `interval` it decides by the measurements since the last decision:
//! 1. Mean loss of all paths at `loss` or more: largest window space, which performed best there, as windows are
//!    small and room in them decides.
//! 2. Else, if the largest minimum round-trip time is at least `spread` times the smallest: lowest time-space,
//!    which weighs delay against room.
//! 3. Else, if the largest cwnd / RTT is at least `spread` times the smallest: highest sending rate.
//! 4. Else the paths are similar, and largest window space spreads load evenly.
//!
//! The scheduler changes after two equal decisions in a row.

use gargalo_cc::params::Declared;
use gargalo_settings::settings;
use gargalo_units::{Duration, Instant};

use super::highest_sending_rate::HighestSendingRate;
use super::largest_window_space::LargestWindowSpace;
use super::lowest_time_space::LowestTimeSpace;
use super::{Choice, Context, Entry, PathView, Scheduler};

settings! {
    /// Parameters of [`Adaptive`].
    struct AdaptiveParams: Copy as "Adaptive", const {
        /// Loss ratio from which the paths count as lossy.
        loss: f64 = 0.03, in 0.0..=1.0;
        /// Ratio of round-trip times, or of rates, from which paths count as unequal.
        spread: f64 = 2.0, in 1.0..=1000.0;
        /// Time between two decisions.
        interval: Duration = Duration::from_secs(1),
            in Duration::from_millis(1)..=Duration::from_secs(3600);
    }
}

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "adaptive",
    aliases: &[],
    summary: "largest-window-space, lowest-time-space or highest-sending-rate, by the state of the paths",
    source: "future work of MPTCP schedulers, master's dissertation, UNIFEI 2017; rule of this project",
    params: AdaptiveParams::params,
    build: |params| {
        let params = AdaptiveParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(Adaptive::new(params)))
    },
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    WindowSpace,
    TimeSpace,
    SendingRate,
}

#[derive(Debug)]
struct Adaptive {
    params: AdaptiveParams,
    next_decision: Instant,
    /// Packets sent and lost, all paths, at the last decision.
    sent: u64,
    lost: u64,
    current: Rule,
    proposed: Rule,
}

/// Largest value divided by the smallest among the paths; 1 for fewer than two.
fn ratio(paths: &[PathView], value: impl Fn(&PathView) -> Option<f64>) -> f64 {
    let usable = paths.iter().filter(|p| p.usable);
    let (mut least, mut most) = (f64::INFINITY, 0.0f64);
    for v in usable.filter_map(value) {
        least = least.min(v);
        most = most.max(v);
    }
    if least > 0.0 && least.is_finite() {
        most / least
    } else {
        1.0
    }
}

impl Adaptive {
    fn new(params: AdaptiveParams) -> Self {
        Self {
            params,
            next_decision: Instant::ZERO,
            sent: 0,
            lost: 0,
            current: Rule::WindowSpace,
            proposed: Rule::WindowSpace,
        }
    }

    fn decide(&mut self, context: &Context<'_>) {
        self.next_decision = context.now + self.params.interval;
        let total = |f: fn(&PathView) -> u64| context.paths.iter().map(f).sum::<u64>();
        let (sent, lost) = (total(|p| p.sent_packets), total(|p| p.lost_packets));
        // The counts of a closed path are not included any more.
        let (new, gone) = (
            sent.saturating_sub(self.sent),
            lost.saturating_sub(self.lost),
        );
        (self.sent, self.lost) = (sent, lost);
        let rtt = |p: &PathView| p.min_rtt.map(Duration::as_secs_f64);
        let rate = |p: &PathView| p.srtt.map(|r| p.cwnd as f64 / r.as_secs_f64().max(1e-9));
        let rule = if new > 0 && gone as f64 >= self.params.loss * new as f64 && gone > 0 {
            Rule::WindowSpace
        } else if ratio(context.paths, rtt) >= self.params.spread {
            Rule::TimeSpace
        } else if ratio(context.paths, rate) >= self.params.spread {
            Rule::SendingRate
        } else {
            Rule::WindowSpace
        };
        if rule == self.proposed {
            self.current = rule;
        }
        self.proposed = rule;
    }
}

impl Scheduler for Adaptive {
    fn select(&mut self, context: &Context<'_>) -> Choice {
        if context.now >= self.next_decision {
            self.decide(context);
        }
        match self.current {
            Rule::WindowSpace => LargestWindowSpace.select(context),
            Rule::TimeSpace => LowestTimeSpace.select(context),
            Rule::SendingRate => HighestSendingRate.select(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{context, path};
    use super::*;

    fn adaptive() -> Adaptive {
        Adaptive::new(AdaptiveParams::DEFAULT)
    }

    /// Two decisions, with 1000 packets sent and `lost` of them lost by each path before each.
    fn settle(a: &mut Adaptive, paths: &mut [PathView], lost: u64) -> Rule {
        for _ in 0..2 {
            for p in &mut *paths {
                p.sent_packets += 1000;
                p.lost_packets += lost;
            }
            let mut c = context(paths);
            c.now = a.next_decision;
            a.select(&c);
        }
        a.current
    }

    #[test]
    fn the_rule_follows_the_paths() {
        let mut a = adaptive();
        let mut alike = [path(0, 20, 10, 2), path(1, 30, 12, 2)];
        assert_eq!(settle(&mut a, &mut alike, 0), Rule::WindowSpace);
        let mut far = [path(0, 20, 10, 2), path(1, 40, 12, 2)];
        assert_eq!(settle(&mut a, &mut far, 0), Rule::TimeSpace);
        assert_eq!(settle(&mut a, &mut far, 30), Rule::WindowSpace);
        let mut thick = [path(0, 20, 10, 2), path(1, 30, 60, 2)];
        assert_eq!(settle(&mut a, &mut thick, 29), Rule::SendingRate);
    }

    #[test]
    fn one_decision_changes_nothing() {
        let mut a = adaptive();
        let far = [path(0, 20, 10, 2), path(1, 400, 12, 2)];
        a.select(&context(&far));
        assert_eq!(
            (a.current, a.proposed),
            (Rule::WindowSpace, Rule::TimeSpace)
        );
        // Called again before the interval is over: no second decision.
        a.select(&context(&far));
        assert_eq!(a.current, Rule::WindowSpace);
    }
}
