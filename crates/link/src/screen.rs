//! What can happen to a packet before it enters the queue: loss, outages, a policer, duplication.

use gargalo_units::Instant;
use rand_pcg::Pcg64;

use crate::chance::Coin;
use crate::config::LinkConfig;
use crate::loss::Loss;
use crate::packet::Packet;
use crate::policer::Bucket;
use crate::stats::DropReason;

/// In place of an outage where no further one follows: it never begins.
const NEVER: (Instant, Instant) = (Instant::MAX, Instant::MAX);

/// The stages before the queue of a link. Most links have none.
#[derive(Debug)]
pub(crate) struct Screen {
    loss: Loss,
    /// The current or next outage, and the later ones.
    outage: (Instant, Instant),
    later_outages: std::vec::IntoIter<(Instant, Instant)>,
    policer: Option<Bucket>,
    duplicate: Option<Coin>,
}

/// The decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Enters,
    EntersTwice,
    Dropped(DropReason),
}

impl Screen {
    /// `None`: every packet enters the queue once. The two random streams are for losses and for duplicates.
    pub(crate) fn new(config: &LinkConfig, losses: Pcg64, duplicates: Pcg64) -> Option<Box<Self>> {
        let loss = Loss::new(&config.loss, losses);
        let duplicate = Coin::new(config.duplicate, duplicates);
        let is_reliable = matches!(loss, Loss::None) && config.outages.is_empty();
        if is_reliable && config.policer.is_none() && duplicate.is_none() {
            return None;
        }
        let mut later_outages = config.outages.clone().into_iter();
        Some(Box::new(Self {
            loss,
            outage: later_outages.next().unwrap_or(NEVER),
            later_outages,
            policer: config.policer.as_ref().map(Bucket::new),
            duplicate,
        }))
    }

    /// What comes of a packet that arrives at `now`. Called once for each, in order.
    pub(crate) fn pass<P>(&mut self, now: Instant, packet: &mut Packet<P>) -> Fate {
        // The loss model advances during an outage, so that later losses do not depend on it.
        if self.loss.next() | self.is_out(now) {
            return Fate::Dropped(DropReason::Loss);
        }
        if let Some(bucket) = &mut self.policer
            && !bucket.admit(now, packet.bytes)
        {
            return Fate::Dropped(DropReason::Aqm);
        }
        if let Some(coin) = &mut self.duplicate
            && coin.throw()
        {
            return Fate::EntersTwice;
        }
        Fate::Enters
    }

    /// Whether `now` is within an outage.
    fn is_out(&mut self, now: Instant) -> bool {
        while now >= self.outage.1 {
            self.outage = self.later_outages.next().unwrap_or(NEVER);
        }
        now >= self.outage.0
    }
}
