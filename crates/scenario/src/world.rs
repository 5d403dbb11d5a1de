//! The worlds in which scenarios run.

use gargalo_settings::names;

names! {
    /// Where a scenario runs.
    pub enum World {
        /// In virtual time.
        Sim = "sim",
        /// In real time on this machine.
        Lab = "lab",
    }
}
