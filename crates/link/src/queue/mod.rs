//! Queueing disciplines: which packets wait, in which order they leave, which are dropped or marked.
//!
//! [`QUEUES`] lists them with their parameters.

mod codel;
mod droptail;
mod dualpi2;
mod fifo;
mod fq_codel;
mod pie;
mod red;
mod registry;
mod step;

use gargalo_units::{Duration, Instant};
use rand_pcg::Pcg64;

use crate::config::ConfigError;
use crate::ledger::{Item, Ledger};

pub use codel::CoDelConfig;
pub(crate) use droptail::DropTail;
pub use droptail::QueueLimit;
pub use dualpi2::DualPi2Config;
pub use fq_codel::FqCoDelConfig;
pub use pie::{PieConfig, PieEstimator};
pub use red::RedConfig;
pub use registry::{QUEUES, QueueInfo, QueueParam};
pub use step::StepConfig;

/// The queue in front of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueConfig {
    /// First in, first out; what does not fit is dropped.
    DropTail {
        /// How much may wait.
        limit: QueueLimit,
    },
    /// Random Early Detection.
    Red(RedConfig),
    /// Controlled Delay (RFC 8289).
    CoDel(CoDelConfig),
    /// Flow queueing with CoDel on each queue (RFC 8290).
    FqCoDel(FqCoDelConfig),
    /// Proportional Integral controller Enhanced (RFC 8033).
    Pie(PieConfig),
    /// Step marking, as DCTCP asks for (RFC 8257).
    Step(StepConfig),
    /// The coupled dual queue of L4S (RFC 9332).
    DualPi2(DualPi2Config),
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self::DropTail {
            limit: QueueLimit::default(),
        }
    }
}

impl QueueConfig {
    /// Name in [`QUEUES`].
    pub const fn name(&self) -> &'static str {
        match self {
            Self::DropTail { .. } => "droptail",
            Self::Red(_) => "red",
            Self::CoDel(_) => "codel",
            Self::FqCoDel(_) => "fq-codel",
            Self::Pie(_) => "pie",
            Self::Step(_) => "step",
            Self::DualPi2(_) => "dualpi2",
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::DropTail { .. } => Ok(()),
            Self::Red(c) => c.validate(),
            Self::CoDel(c) => c.validate(),
            Self::FqCoDel(c) => c.validate(),
            Self::Pie(c) => c.validate(),
            Self::Step(c) => c.validate(),
            Self::DualPi2(c) => c.validate(),
        }
    }
}

/// A packet in a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued<P> {
    pub(crate) item: Item<P>,
    /// When it came.
    pub(crate) enqueued: Instant,
}

/// What a queue knows of its link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    /// Largest packet in bytes.
    pub(crate) mtu: u32,
    /// Time to send a packet of that size.
    pub(crate) packet_time: Duration,
}

/// What every discipline does. Whoever drops a packet tells the ledger.
pub(crate) trait QueueDiscipline<P: Copy> {
    /// A packet comes.
    fn enqueue(&mut self, now: Instant, queued: Queued<P>, ledger: &mut Ledger<P>);
    /// The server is free and takes the next packet. `None` only if none is left, perhaps because
    /// the last ones were dropped.
    fn dequeue(&mut self, now: Instant, ledger: &mut Ledger<P>) -> Option<Queued<P>>;
    /// Packets waiting.
    fn packets(&self) -> u64;
    /// Their bytes.
    fn bytes(&self) -> u64;
}

/// The disciplines that a link serves packet by packet.
#[derive(Debug)]
pub(crate) enum Discipline<P> {
    Red(red::Red<P>),
    CoDel(codel::CoDel<P>),
    FqCoDel(fq_codel::FqCoDel<P>),
    Pie(pie::Pie<P>),
    Step(step::Step<P>),
    DualPi2(dualpi2::DualPi2<P>),
    /// Tail drop served packet by packet, to check the fast path against.
    Plain(droptail::Plain<P>),
}

impl<P: Copy> Discipline<P> {
    pub(crate) fn new(config: &QueueConfig, around: Surroundings, rng: Pcg64) -> Self {
        match config {
            QueueConfig::DropTail { limit } => Self::Plain(droptail::Plain::new(*limit)),
            QueueConfig::Red(c) => Self::Red(red::Red::new(*c, around, rng)),
            QueueConfig::CoDel(c) => Self::CoDel(codel::CoDel::new(*c, around)),
            QueueConfig::FqCoDel(c) => Self::FqCoDel(fq_codel::FqCoDel::new(*c, around, rng)),
            QueueConfig::Pie(c) => Self::Pie(pie::Pie::new(*c, around, rng)),
            QueueConfig::Step(c) => Self::Step(step::Step::new(*c)),
            QueueConfig::DualPi2(c) => Self::DualPi2(dualpi2::DualPi2::new(*c, around, rng)),
        }
    }
}

macro_rules! each {
    ($self:ident, $q:ident => $e:expr) => {
        match $self {
            Self::Red($q) => $e,
            Self::CoDel($q) => $e,
            Self::FqCoDel($q) => $e,
            Self::Pie($q) => $e,
            Self::Step($q) => $e,
            Self::DualPi2($q) => $e,
            Self::Plain($q) => $e,
        }
    };
}

impl<P: Copy> QueueDiscipline<P> for Discipline<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, queued: Queued<P>, ledger: &mut Ledger<P>) {
        each!(self, q => q.enqueue(now, queued, ledger))
    }
    #[inline]
    fn dequeue(&mut self, now: Instant, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        each!(self, q => q.dequeue(now, ledger))
    }
    #[inline]
    fn packets(&self) -> u64 {
        each!(self, q => q.packets())
    }
    #[inline]
    fn bytes(&self) -> u64 {
        each!(self, q => q.bytes())
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Packets and accounts for the tests of the disciplines.

    use gargalo_units::{Duration, Ecn, Instant};

    use super::{Queued, Surroundings};
    use crate::ledger::{Item, Ledger};
    use crate::packet::Packet;

    pub(crate) fn around() -> Surroundings {
        Surroundings {
            mtu: 1500,
            packet_time: Duration::from_millis(1),
        }
    }

    pub(crate) fn ledger() -> Ledger<u32> {
        Ledger::new()
    }

    /// A packet that came at zero.
    pub(crate) fn queued(payload: u32, bytes: u32) -> Queued<u32> {
        Queued {
            item: Item::new(Packet {
                bytes,
                flow: 0,
                ecn: Ecn::NotEct,
                payload,
            }),
            enqueued: Instant::ZERO,
        }
    }
}
