//! LEDBAT's parameters.

use gargalo_settings::settings;
use gargalo_units::Duration;

use crate::window::WindowParams;

settings! {
    /// Parameters of [`Ledbat`](super::Ledbat); the defaults are those of RFC 6817: TARGET at its
    /// maximum (§2.5), GAIN 1, no slow start as in the pseudocode (§2.4.2).
    pub struct LedbatParams: Copy as "Ledbat", const {
        /// Target queueing delay (TARGET; RFC 6817: at most 100 ms; LEDBAT++: 60 ms).
        target: Duration = Duration::from_millis(100),
            in Duration::from_micros(1)..=Duration::from_secs(10);
        /// Growth in segments per round trip at the full distance from the target (GAIN; RFC 6817:
        /// at most 1).
        gain: f64 = 1.0, in 0.001..=100.0;
        /// Minutes over which the base delay is the minimum (BASE_HISTORY).
        base_history: u32 = 10, in 1..=1000;
        /// Number of samples whose minimum is the current delay (CURRENT_FILTER).
        current_filter: u32 = 4, in 1..=1000;
        /// Segments by which the window may exceed the data in flight (ALLOWED_INCREASE).
        allowed_increase: f64 = 1.0, in 0.0..=1000.0;
        /// Least window on delay and loss, segments (MIN_CWND).
        min_cwnd: f64 = 2.0, in 1.0..=1000.0;
        /// Initial window, segments; 0: the transport's (INIT_CWND).
        init_cwnd: f64 = 2.0, in 0.0..=1000.0;
        /// Window kept after a loss or mark, as a fraction.
        decrease: f64 = 0.5, in 0.01..=0.99;
        /// Use slow start at the beginning and after timeouts.
        initial_slow_start: bool = false;
        /// Fraction of the target delay at which slow start ends.
        slow_start_exit: f64 = 0.75, in 0.0..=1.0;
        /// LEDBAT++ §4.2: divide the gain by min(16, ceil(2 target / base delay)).
        dynamic_gain: bool = false;
        /// LEDBAT++ §4.3: above the target the window falls in proportion to itself.
        multiplicative_decrease: bool = false;
        /// LEDBAT++ §4.4: slow down to two segments periodically, to measure the base delay.
        slowdowns: bool = false;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}
