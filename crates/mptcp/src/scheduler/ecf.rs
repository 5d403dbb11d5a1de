//! ECF, earliest completion first: a slower path is not used if the fastest one would complete all waiting data
//! before the slower one delivers a segment.
//!
//! With k bytes waiting, f the path with the lowest round-trip time (without room) and s the best of those with
//! room, delta = max(deviation of either), beta = 1/4: waits if rtt_f (max(k, cwnd_f) + cwnd_f) < cwnd_f (rtt_s +
//! delta) (1 + beta if waiting already) and rtt_s max(k, cwnd_s) >= cwnd_s (2 rtt_f + delta).

use gargalo_cc::params::Declared;
use gargalo_settings::settings;
use gargalo_units::Duration;

use super::{Choice, Context, Entry, Scheduler};

settings! {
    /// Parameters of [`Ecf`].
    struct EcfParams: Copy as "Ecf", const {
        /// Hysteresis of waiting (beta).
        beta: f64 = 0.25, in 0.0..=10.0;
    }
}

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "ecf",
    aliases: &[],
    summary: "waits for the fastest path where it completes earlier",
    source: "Lim et al., ECF, CoNEXT 2017; Linux MPTCP v0.9x, mptcp_ecf",
    params: EcfParams::params,
    build: |params| {
        let params = EcfParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(Ecf {
            beta: params.beta,
            waiting: false,
        }))
    },
};

#[derive(Debug)]
struct Ecf {
    beta: f64,
    waiting: bool,
}

impl Scheduler for Ecf {
    fn select(&mut self, context: &Context<'_>) -> Choice {
        let Some((fast, f)) = context.candidates().min_by_key(|(_, p)| p.latency()) else {
            return Choice::Wait;
        };
        if f.can_send {
            return Choice::Send(fast);
        }
        let Some(slow) = context.lowest_latency() else {
            return Choice::Wait;
        };
        let s = &context.paths[slow];
        let (Some(rtt_f), Some(rtt_s)) = (f.srtt, s.srtt) else {
            return Choice::Send(slow);
        };
        let seconds = |d: Option<Duration>| d.map_or(0.0, Duration::as_secs_f64);
        let delta = seconds(f.rttvar.max(s.rttvar));
        let (rtt_f, rtt_s) = (rtt_f.as_secs_f64(), rtt_s.as_secs_f64());
        let (cwnd_f, cwnd_s, k) = (f.cwnd as f64, s.cwnd as f64, context.unsent as f64);
        let echo_wait = 1.0 + if self.waiting { self.beta } else { 0.0 };
        if rtt_f * (k.max(cwnd_f) + cwnd_f) < cwnd_f * (rtt_s + delta) * echo_wait {
            if rtt_s * k.max(cwnd_s) >= cwnd_s * (2.0 * rtt_f + delta) {
                self.waiting = true;
                return Choice::Wait;
            }
        } else {
            self.waiting = false;
        }
        Choice::Send(slow)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MSS, context, path};
    use super::*;
    use gargalo_cc::params::Params;

    fn ecf() -> Box<dyn Scheduler> {
        (ENTRY.build)(&Params::new()).unwrap()
    }

    #[test]
    fn the_fastest_while_it_has_room_and_the_slower_for_much_data() {
        let mut paths = [path(0, 200, 10, 2), path(1, 20, 10, 2)];
        assert_eq!(ecf().select(&context(&paths)), Choice::Send(1));
        paths[1].can_send = false;
        assert_eq!(ecf().select(&context(&paths)), Choice::Send(0));
    }

    #[test]
    fn little_data_waits_for_the_fastest_with_hysteresis() {
        // delta 25 ms: waits while 20 (k + 10) < 10 (200 + 25): k < 102.5 segments.
        let paths = [path(0, 200, 10, 2), path(1, 20, 10, 10)];
        let mut c = context(&paths);
        let mut e = ecf();
        c.unsent = 103 * MSS;
        assert_eq!(e.select(&c), Choice::Send(0));
        c.unsent = 102 * MSS;
        assert_eq!(e.select(&c), Choice::Wait);
        // Waiting already: k < 130.6.
        c.unsent = 130 * MSS;
        assert_eq!(e.select(&c), Choice::Wait);
        c.unsent = 131 * MSS;
        assert_eq!(e.select(&c), Choice::Send(0));
        c.unsent = 103 * MSS;
        assert_eq!(e.select(&c), Choice::Send(0));
    }

    #[test]
    fn a_path_that_is_hardly_slower_is_used() {
        // rtt_s max(k, cwnd_s) = 30 * 10 < 10 * (2 * 20 + 3.75).
        let paths = [path(0, 30, 10, 2), path(1, 20, 10, 10)];
        let mut c = context(&paths);
        c.unsent = MSS;
        assert_eq!(ecf().select(&c), Choice::Send(0));
    }
}
