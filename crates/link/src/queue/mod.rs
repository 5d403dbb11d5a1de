//! Queueing disciplines: which packets wait, in which order they leave, which are dropped or marked.
//!
//! Each is declared in its own file and registered in [`QueueConfig`] and `Discipline` here.

mod codel;
mod droptail;
mod dualpi2;
mod fifo;
mod fq_codel;
mod pie;
mod red;
mod step;

use gargalo_settings::kinds;
use gargalo_units::{Duration, Instant};
use rand_pcg::Pcg64;

use crate::ledger::{Item, Ledger};

pub use codel::CoDelConfig;
pub(crate) use droptail::DropTail;
pub use droptail::QueueLimit;
pub use dualpi2::DualPi2Config;
pub use fq_codel::FqCoDelConfig;
pub use pie::{PieConfig, PieEstimator};
pub use red::RedConfig;
pub use step::StepConfig;

kinds! {
    /// The queue in front of a link: a name, or a table with its parameters.
    pub enum QueueConfig: Copy as "QueueMap" {
        named {
            /// First in, first out; what does not fit is dropped. In packets, bytes, time, or multiples of BDP: the
            /// link's rate (the highest of steps, the mean of a trace) times the base round-trip time of the longest
            /// route through the link that a flow takes.
            ///
            /// RFC 7567 §2.1
            "droptail" => DropTail(QueueLimit);
            /// Random Early Detection: drops at random by the average queue length.
            ///
            /// Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993; gentle: Floyd 2000
            "red" => Red(RedConfig);
            /// Controlled Delay: drops at a growing pace while packets wait too long.
            ///
            /// RFC 8289
            "codel" => CoDel(CoDelConfig);
            /// A queue per flow, sparse flows first, with CoDel on each.
            ///
            /// RFC 8290
            "fq-codel" => FqCoDel(FqCoDelConfig);
            /// Proportional Integral controller Enhanced: steers the drop probability so that the delay meets a
            /// target.
            ///
            /// RFC 8033
            "pie" => Pie(PieConfig);
            /// Tail drop that marks every packet which finds more than a threshold waiting.
            ///
            /// RFC 8257 §3.1; Alizadeh et al., SIGCOMM 2010 §3.1; in time: RFC 9332
            "step" => Step(StepConfig);
            /// The coupled dual queue of L4S: a shallow queue for ECT(1), PI2 for the others, about equal rates.
            ///
            /// RFC 9332; defaults: tc-dualpi2(8)
            "dualpi2" => DualPi2(DualPi2Config);
        }
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self::DropTail(QueueLimit::default())
    }
}

impl QueueConfig {
    /// The size in it that may be in bandwidth-delay products.
    pub const fn size(&mut self) -> Option<&mut QueueLimit> {
        match self {
            Self::DropTail(limit) => Some(limit),
            Self::Step(config) => Some(&mut config.mark_above),
            Self::DualPi2(config) => Some(&mut config.step_threshold),
            _ => None,
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
            QueueConfig::DropTail(limit) => Self::Plain(droptail::Plain::new(*limit)),
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
