//! LEDBAT's parameters.

use gargalo_units::Duration;

use super::ALGORITHM;
use crate::params::{BuildError, Param, Params, Values};
use crate::window::WindowParams;

/// Parameters of [`Ledbat`](super::Ledbat).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LedbatParams {
    /// TARGET.
    pub target: Duration,
    /// GAIN.
    pub gain: f64,
    /// BASE_HISTORY.
    pub base_history: u32,
    /// CURRENT_FILTER.
    pub current_filter: u32,
    /// ALLOWED_INCREASE in segments.
    pub allowed_increase: f64,
    /// MIN_CWND in segments.
    pub min_cwnd: f64,
    /// INIT_CWND in segments; 0 takes the transport's initial window.
    pub init_cwnd: f64,
    /// Window kept after a loss or mark.
    pub decrease: f64,
    /// Begin with slow start.
    pub initial_slow_start: bool,
    /// The part of TARGET at which slow start ends.
    pub slow_start_exit: f64,
    /// LEDBAT++ §4.2: GAIN falls with TARGET over the base delay.
    pub dynamic_gain: bool,
    /// LEDBAT++ §4.3: the window falls in proportion to itself.
    pub multiplicative_decrease: bool,
    /// LEDBAT++ §4.4: the window is given up now and then to measure the base delay.
    pub slowdowns: bool,
    /// The shared part.
    pub window: WindowParams,
}

impl LedbatParams {
    /// RFC 6817: TARGET at its maximum (§2.5), GAIN 1, no slow start in the pseudocode (§2.4.2).
    pub const DEFAULT: Self = Self {
        target: Duration::from_millis(100),
        gain: 1.0,
        base_history: 10,
        current_filter: 4,
        allowed_increase: 1.0,
        min_cwnd: 2.0,
        init_cwnd: 2.0,
        decrease: 0.5,
        initial_slow_start: false,
        slow_start_exit: 0.75,
        dynamic_gain: false,
        multiplicative_decrease: false,
        slowdowns: false,
        window: WindowParams::STANDARD,
    };

    pub(super) fn from_params(params: &Params) -> Result<Self, BuildError> {
        let v = Values::check(ALGORITHM.name, ALGORITHM.params, params)?;
        Ok(Self {
            target: v.duration("target"),
            gain: v.number("gain"),
            base_history: v.number("base_history") as u32,
            current_filter: v.number("current_filter") as u32,
            allowed_increase: v.number("allowed_increase"),
            min_cwnd: v.number("min_cwnd"),
            init_cwnd: v.number("init_cwnd"),
            decrease: v.number("decrease"),
            initial_slow_start: v.bool("initial_slow_start"),
            slow_start_exit: v.number("slow_start_exit"),
            dynamic_gain: v.bool("dynamic_gain"),
            multiplicative_decrease: v.bool("multiplicative_decrease"),
            slowdowns: v.bool("slowdowns"),
            window: WindowParams::read(&v),
        })
    }
}

impl Default for LedbatParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

const DEFAULT: LedbatParams = LedbatParams::DEFAULT;

pub(super) const PARAMS: [Param; 13 + WindowParams::PARAMS] = DEFAULT.window.after([
    Param::duration(
        "target",
        "queueing delay aimed at (RFC 6817: at most 100 ms; LEDBAT++: 60ms)",
        DEFAULT.target,
        Duration::from_micros(1),
        Duration::from_secs(10),
    ),
    Param::number(
        "gain",
        "segments per round trip at full distance from the target (RFC 6817: at most 1)",
        DEFAULT.gain,
        0.001,
        100.0,
    ),
    Param::integer(
        "base_history",
        "minutes over which the base delay is the least one",
        DEFAULT.base_history as f64,
        1.0,
        1000.0,
    ),
    Param::integer(
        "current_filter",
        "samples of which the least is the current delay",
        DEFAULT.current_filter as f64,
        1.0,
        1000.0,
    ),
    Param::number(
        "allowed_increase",
        "segments the window may exceed what was in flight",
        DEFAULT.allowed_increase,
        0.0,
        1000.0,
    ),
    Param::number(
        "min_cwnd",
        "least window on delay and loss, segments",
        DEFAULT.min_cwnd,
        1.0,
        1000.0,
    ),
    Param::number(
        "init_cwnd",
        "initial window in segments; 0: the transport's",
        DEFAULT.init_cwnd,
        0.0,
        1000.0,
    ),
    Param::number(
        "decrease",
        "window kept after a loss or mark, as a fraction",
        DEFAULT.decrease,
        0.01,
        0.99,
    ),
    Param::bool(
        "initial_slow_start",
        "begin, and begin again after timeouts, with slow start",
        DEFAULT.initial_slow_start,
    ),
    Param::number(
        "slow_start_exit",
        "slow start ends at this part of the target delay",
        DEFAULT.slow_start_exit,
        0.0,
        1.0,
    ),
    Param::bool(
        "dynamic_gain",
        "LEDBAT++: divide the gain by min(16, ceil(2 target / base delay))",
        DEFAULT.dynamic_gain,
    ),
    Param::bool(
        "multiplicative_decrease",
        "LEDBAT++: above the target the window falls in proportion to itself",
        DEFAULT.multiplicative_decrease,
    ),
    Param::bool(
        "slowdowns",
        "LEDBAT++: periodic slowdowns to two segments, which measure the base delay",
        DEFAULT.slowdowns,
    ),
]);
