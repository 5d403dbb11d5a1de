//! Queueing disciplines: which packets wait, in which order they leave, which are dropped or marked.
//!
//! Each has its own file and a line in `disciplines!` here.

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

pub(crate) use droptail::DropTail;
pub use droptail::QueueLimit;
pub use pie::PieEstimator;

/// One line declares a discipline: its word in scenarios, module, type and settings. The type has a constructor
/// `new(config, around, rng)` and implements [`QueueDiscipline`].
macro_rules! disciplines {
    ($(
        $(#[doc = $doc:literal])*
        $word:literal => $module:ident::$Queue:ident($Config:ident);
    )*) => {
        $(pub use $module::$Config;)*

        kinds! {
            /// The queue in front of a link: a name, or a table with its parameters.
            pub enum QueueConfig: Copy as "QueueMap" {
                named {
                    /// First in, first out; what does not fit is dropped. In packets, bytes, time, or multiples of
                    /// BDP: the link's rate (the highest of steps, the mean of a trace) times the base round-trip time
                    /// of the longest route through the link that a flow takes.
                    ///
                    /// RFC 7567 §2.1
                    "droptail" => DropTail(QueueLimit);
                    $($(#[doc = $doc])* $word => $Queue($Config);)*
                }
            }
        }

        /// The disciplines that a link serves packet by packet.
        #[derive(Debug)]
        pub(crate) enum Discipline<P> {
            /// Tail drop served packet by packet, to check the fast path against.
            Plain(droptail::Plain<P>),
            $($Queue($module::$Queue<P>),)*
        }

        impl<P: Copy> Discipline<P> {
            pub(crate) fn new(config: &QueueConfig, around: Surroundings, rng: Pcg64) -> Self {
                match config {
                    QueueConfig::DropTail(limit) => Self::Plain(droptail::Plain::new(*limit)),
                    $(QueueConfig::$Queue(c) => Self::$Queue($module::$Queue::new(*c, around, rng)),)*
                }
            }
        }

        impl<P: Copy> QueueDiscipline<P> for Discipline<P> {
            #[inline]
            fn enqueue(&mut self, now: Instant, queued: Queued<P>, ledger: &mut Ledger<P>) {
                match self {
                    Self::Plain(q) => q.enqueue(now, queued, ledger),
                    $(Self::$Queue(q) => q.enqueue(now, queued, ledger),)*
                }
            }
            #[inline]
            fn dequeue(&mut self, now: Instant, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
                match self {
                    Self::Plain(q) => q.dequeue(now, ledger),
                    $(Self::$Queue(q) => q.dequeue(now, ledger),)*
                }
            }
            #[inline]
            fn packets(&self) -> u64 {
                match self {
                    Self::Plain(q) => q.packets(),
                    $(Self::$Queue(q) => q.packets(),)*
                }
            }
            #[inline]
            fn bytes(&self) -> u64 {
                match self {
                    Self::Plain(q) => q.bytes(),
                    $(Self::$Queue(q) => q.bytes(),)*
                }
            }
        }
    };
}

disciplines! {
    /// Random Early Detection: drops at random by the average queue length.
    ///
    /// Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993; gentle: Floyd 2000
    "red" => red::Red(RedConfig);
    /// Controlled Delay: drops at a growing pace while packets wait too long.
    ///
    /// RFC 8289
    "codel" => codel::CoDel(CoDelConfig);
    /// A queue per flow, sparse flows first, with CoDel on each.
    ///
    /// RFC 8290
    "fq-codel" => fq_codel::FqCoDel(FqCoDelConfig);
    /// Proportional Integral controller Enhanced: steers the drop probability so that the delay meets a
    /// target.
    ///
    /// RFC 8033
    "pie" => pie::Pie(PieConfig);
    /// Tail drop that marks every packet which finds more than a threshold waiting.
    ///
    /// RFC 8257 §3.1; Alizadeh et al., SIGCOMM 2010 §3.1; in time: RFC 9332
    "step" => step::Step(StepConfig);
    /// The coupled dual queue of L4S: a shallow queue for ECT(1), PI2 for the others, about equal rates.
    ///
    /// RFC 9332; defaults: tc-dualpi2(8)
    "dualpi2" => dualpi2::DualPi2(DualPi2Config);
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

#[cfg(test)]
pub(crate) mod testing {
    //! Packets and accounts for the tests of the disciplines.

    use gargalo_units::{Duration, Ecn, Instant};
    use rand_pcg::Pcg64;

    use super::{Queued, Surroundings};
    use crate::ledger::{Item, Ledger};
    use crate::packet::Packet;

    pub(crate) fn around() -> Surroundings {
        Surroundings {
            mtu: 1500,
            packet_time: Duration::from_millis(1),
        }
    }

    pub(crate) fn rng() -> Pcg64 {
        Pcg64::new(1, 1)
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
