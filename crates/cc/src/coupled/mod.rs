//! The view of the subflows of a connection for coupled algorithms.
//!
//! Windows are in bytes, times in seconds, rates in bytes per second. A sibling is included once it can send and
//! has a round-trip time; one without a sample is excluded from every sum, as in Linux. An idle sibling and one in
//! slow start count with their window. The calling subflow is always included, with the current window of its own
//! controller.

use gargalo_units::{Bytes, Duration};

use crate::path::{Path, Sibling};

mod whole;

pub use whole::Arithmetic;
pub(super) use whole::{Whole, eighths, segments};

/// An included subflow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Subflow {
    /// Settled window w in bytes.
    pub window: f64,
    /// Smoothed round-trip time in seconds, never zero.
    pub rtt: f64,
    /// OLIA's l: the larger of the bytes acknowledged since the last loss and between the last two.
    pub between_losses: f64,
}

impl Subflow {
    /// x = w/rtt.
    pub fn rate(&self) -> f64 {
        self.window / self.rtt
    }

    fn of(sibling: &Sibling) -> Option<Self> {
        if !sibling.can_send {
            return None;
        }
        Some(Self {
            window: sibling.cwnd.as_f64(),
            rtt: seconds(sibling.srtt?),
            between_losses: between_losses(sibling),
        })
    }
}

/// Sums and maxima over the subflows of a connection, with windows w and rates x.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    /// Σ w in bytes.
    pub window: f64,
    /// Σ x in bytes per second.
    pub rate: f64,
    /// max w in bytes.
    pub largest: f64,
    /// max x in bytes per second.
    pub fastest: f64,
    /// max w/rtt² in bytes per second squared.
    pub best: f64,
}

impl Totals {
    fn add(&mut self, s: &Subflow) {
        let rate = s.rate();
        self.window += s.window;
        self.rate += rate;
        self.largest = self.largest.max(s.window);
        self.fastest = self.fastest.max(rate);
        self.best = self.best.max(rate / s.rtt);
    }
}

/// The calling subflow, with at least one other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coupling<'a> {
    pub own: Subflow,
    pub totals: Totals,
    siblings: &'a [Sibling],
    index: usize,
}

impl<'a> Coupling<'a> {
    /// `None` if no other subflow is included, or before this one has a round-trip time: the algorithm is then its
    /// single-path base.
    pub fn of(window: Bytes, path: &Path<'a>) -> Option<Self> {
        let own = Subflow {
            window: window.as_f64(),
            rtt: seconds(path.srtt?),
            between_losses: path.siblings.get(path.index).map_or(0.0, between_losses),
        };
        let mut coupling = Self {
            own,
            totals: Totals::default(),
            siblings: path.siblings,
            index: path.index,
        };
        let mut totals = Totals::default();
        let mut n = 0_usize;
        for s in coupling.all() {
            totals.add(&s);
            n += 1;
        }
        coupling.totals = totals;
        (n > 1).then_some(coupling)
    }

    /// All included subflows, in the connection's order, so that every subflow computes the same sums.
    pub fn all(&self) -> impl Iterator<Item = Subflow> {
        // An invalid index is an error of the transport; this subflow then comes last.
        let listed = self.index < self.siblings.len();
        let siblings = self.siblings.iter().enumerate().filter_map(|(i, s)| {
            if i == self.index {
                Some(self.own)
            } else {
                Subflow::of(s)
            }
        });
        siblings.chain((!listed).then_some(self.own))
    }

    /// The first term of OLIA and BALIA, (w/rtt²)/(Σ x)², in 1/bytes: Reno's 1/w for one alone.
    pub fn linked(&self) -> f64 {
        self.own.rate() / self.own.rtt / (self.totals.rate * self.totals.rate)
    }
}

/// The included siblings other than `index`.
fn others(siblings: &[Sibling], index: usize) -> impl Iterator<Item = Subflow> {
    let siblings = siblings.iter().enumerate();
    siblings.filter_map(move |(i, s)| (i != index).then(|| Subflow::of(s)).flatten())
}

/// Whether this is not the only subflow.
pub(super) fn has_siblings(path: &Path<'_>) -> bool {
    others(path.siblings, path.index).next().is_some()
}

/// Σ x of the other subflows.
pub(super) fn other_rates(path: &Path<'_>) -> f64 {
    others(path.siblings, path.index).map(|s| s.rate()).sum()
}

/// A round-trip time as a divisor: at least one nanosecond.
pub(super) fn seconds(rtt: Duration) -> f64 {
    rtt.max(Duration::from_nanos(1)).as_secs_f64()
}

fn between_losses(sibling: &Sibling) -> f64 {
    sibling.since_loss.max(sibling.between_losses).as_f64()
}

#[cfg(test)]
mod fairness;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::subflows::{among, sibling};

    #[test]
    fn who_takes_part() {
        let unmeasured = Sibling {
            srtt: None,
            ..sibling(10, 100)
        };
        let failed = Sibling {
            can_send: false,
            ..sibling(10, 100)
        };
        let alone = [sibling(10, 100), unmeasured, failed];
        assert!(Coupling::of(Bytes::new(10_000), &among(&alone, 0)).is_none());
        assert!(!has_siblings(&among(&alone, 0)));
        assert!(Coupling::of(Bytes::new(10_000), &among(&[], 0)).is_none());
        // Before its own first sample it is alone too.
        assert!(Coupling::of(Bytes::new(10_000), &among(&alone, 1)).is_none());

        // A failed subflow that receives late acknowledgements sees the others.
        assert!(Coupling::of(Bytes::new(10_000), &among(&alone, 2)).is_some());
        assert!(has_siblings(&among(&alone, 2)));
    }

    #[test]
    fn its_own_window_is_the_one_it_holds() {
        let two = [sibling(10, 100), sibling(40, 200)];
        let c = Coupling::of(Bytes::new(20_000), &among(&two, 0)).unwrap();
        let windows: Vec<f64> = c.all().map(|s| s.window).collect();
        assert_eq!(windows, [20_000.0, 40_000.0]);
        assert!((c.totals.rate - 400_000.0).abs() < 1e-6);
        assert!((other_rates(&among(&two, 0)) - 200_000.0).abs() < 1e-6);
    }

    #[test]
    fn zero_round_trip_times_and_wrong_indices_are_survived() {
        let two = [sibling(10, 0), sibling(10, 100)];
        let mut path = among(&two, 1);
        let c = Coupling::of(path.mss * 10, &path).unwrap();
        assert!(c.totals.rate.is_finite() && c.totals.best.is_finite());
        path.index = 7;
        let c = Coupling::of(path.mss * 10, &path).unwrap();
        assert_eq!(c.all().count(), 3);
    }
}
