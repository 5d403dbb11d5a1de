//! Queueing disciplines: which packets wait, in which order they leave, which are dropped or marked.
//!
//! Each discipline has its own file and an entry in `disciplines!` below.

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

/// One entry declares a discipline: its name in scenarios, module, type and settings. The type has a constructor
/// `new(config, context, rng)` and implements [`QueueDiscipline`].
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
                    /// First in, first out; packets that do not fit are dropped. The limit is in packets, bytes,
                    /// time, or multiples of BDP: the link's rate (the highest of steps, the mean of a trace) times
                    /// the base round-trip time of the longest route through the link that a flow takes.
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
            pub(crate) fn new(config: &QueueConfig, context: LinkContext, rng: Pcg64) -> Self {
                match config {
                    QueueConfig::DropTail(limit) => Self::Plain(droptail::Plain::new(*limit)),
                    $(QueueConfig::$Queue(c) => Self::$Queue($module::$Queue::new(*c, context, rng)),)*
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
    /// Random Early Detection: drops with a probability that depends on the average queue length.
    ///
    /// Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993; gentle: Floyd 2000
    "red" => red::Red(RedConfig);
    /// Controlled Delay: drops at an increasing rate while the queueing delay stays above the target.
    ///
    /// RFC 8289
    "codel" => codel::CoDel(CoDelConfig);
    /// A queue per flow, sparse flows first, with CoDel on each.
    ///
    /// RFC 8290
    "fq-codel" => fq_codel::FqCoDel(FqCoDelConfig);
    /// Proportional Integral controller Enhanced: adjusts the drop probability to keep the queueing delay at a
    /// target.
    ///
    /// RFC 8033
    "pie" => pie::Pie(PieConfig);
    /// Tail drop that marks every packet that finds more than a threshold in the queue.
    ///
    /// RFC 8257 §3.1; Alizadeh et al., SIGCOMM 2010 §3.1; in time: RFC 9332
    "step" => step::Step(StepConfig);
    /// The coupled dual queue of L4S: a shallow queue for ECT(1), PI2 for all other packets, with about equal
    /// rates.
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
    /// The setting that may be given in bandwidth-delay products.
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
    /// When it was enqueued.
    pub(crate) enqueued: Instant,
}

/// The properties of the link that a queue may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkContext {
    /// Largest packet in bytes.
    pub(crate) mtu: u32,
    /// Time to send a packet of that size.
    pub(crate) packet_time: Duration,
}

/// The interface of every discipline. Drops are recorded in the ledger.
pub(crate) trait QueueDiscipline<P: Copy> {
    /// Enqueues, marks or drops a packet.
    fn enqueue(&mut self, now: Instant, queued: Queued<P>, ledger: &mut Ledger<P>);
    /// Returns the next packet for the idle server. `None` only if the queue is empty, possibly because the last
    /// packets were dropped.
    fn dequeue(&mut self, now: Instant, ledger: &mut Ledger<P>) -> Option<Queued<P>>;
    /// Number of waiting packets.
    fn packets(&self) -> u64;
    /// Number of bytes in the waiting packets.
    fn bytes(&self) -> u64;
}

#[cfg(test)]
pub(crate) mod testing {
    //! Packets and ledgers for the tests of the disciplines.

    use gargalo_units::{Duration, Ecn, Instant};
    use rand_pcg::Pcg64;

    use super::{LinkContext, Queued};
    use crate::ledger::{Item, Ledger};
    use crate::packet::Packet;

    pub(crate) fn context() -> LinkContext {
        LinkContext {
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

    /// A packet enqueued at time zero.
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
