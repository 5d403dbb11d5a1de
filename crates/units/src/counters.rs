//! What a sender counts, declared once: a stack counts it, and results, sums and tables carry it whole.

use std::cmp::Ordering;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// A number of events or bytes that may be unknown, because the stack does not report it.
///
/// A sum with an unknown part is unknown, and so is a difference; nothing is larger or smaller than an unknown count.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Count(u64);

impl Count {
    /// Stands for a count that is not reported. No count is as large.
    pub const UNKNOWN: Self = Self(u64::MAX);

    /// Creates a known count.
    #[inline]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The number; `None`: it is unknown.
    #[inline]
    pub const fn get(self) -> Option<u64> {
        match self {
            Self::UNKNOWN => None,
            Self(n) => Some(n),
        }
    }
}

impl From<u64> for Count {
    fn from(n: u64) -> Self {
        Self(n)
    }
}

impl From<Option<u64>> for Count {
    fn from(n: Option<u64>) -> Self {
        n.map_or(Self::UNKNOWN, Self)
    }
}

impl Add for Count {
    type Output = Self;
    /// The sum. It saturates at the unknown.
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Count {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl AddAssign<u64> for Count {
    #[inline]
    fn add_assign(&mut self, n: u64) {
        *self = *self + Self(n);
    }
}

impl Sub for Count {
    type Output = Self;
    /// The difference to an earlier count. It is at least 0: two ends may have been asked at different instants.
    fn sub(self, before: Self) -> Self {
        match (self, before) {
            (Self::UNKNOWN, _) | (_, Self::UNKNOWN) => Self::UNKNOWN,
            (Self(n), Self(before)) => Self(n.saturating_sub(before)),
        }
    }
}

impl Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), Add::add)
    }
}

impl PartialEq<u64> for Count {
    #[inline]
    fn eq(&self, n: &u64) -> bool {
        self.get() == Some(*n)
    }
}

impl PartialOrd<u64> for Count {
    #[inline]
    fn partial_cmp(&self, n: &u64) -> Option<Ordering> {
        self.get().map(|own| own.cmp(n))
    }
}

impl PartialOrd for Count {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        other.get().and_then(|n| self.partial_cmp(&n))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(n) => n.fmt(f),
            None => f.pad("unknown"),
        }
    }
}

impl fmt::Debug for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A counter as it is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name in results.
    pub name: &'static str,
    /// "packet", "byte", or "1" for events.
    pub unit: &'static str,
    /// What it counts.
    pub doc: &'static str,
}

macro_rules! counters {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident {
            $( $(#[doc = $counter_doc:literal])+ $counter:ident [$unit:literal], )+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $( $(#[doc = $counter_doc])+ pub $counter: Count, )+
        }

        impl $name {
            /// The counters in the order of their declaration.
            pub const DECLARED: &'static [Counter] = &[$( Counter {
                name: stringify!($counter),
                unit: $unit,
                doc: concat!($($counter_doc),+),
            } ),+];

            /// Nothing is reported.
            pub const UNKNOWN: Self = Self { $( $counter: Count::UNKNOWN ),+ };

            /// The counts in the order of [`Self::DECLARED`].
            pub fn counts(&self) -> impl Iterator<Item = Count> {
                [$( self.$counter ),+].into_iter()
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                $( self.$counter += other.$counter; )+
            }
        }

        impl Sub for $name {
            type Output = Self;
            /// What was counted since `before`.
            fn sub(self, before: Self) -> Self {
                Self { $( $counter: self.$counter - before.$counter ),+ }
            }
        }
    };
}

counters! {
    /// What the sender of a connection, or of one of its paths, has counted.
    ///
    /// To add a counter: declare it here, count it in the stacks that can, and name it in the
    /// tables that shall show it (`schema.rs` of `gargalo-trace`).
    pub struct SenderCounters {
        /// Data packets sent, retransmissions included; of a QUIC connection all ack-eliciting packets, those of the
        /// handshake too, of one of its paths those with stream data. This and the other counters of the sender are
        /// missing where its stack does not report them.
        sent_packets ["packet"],
        /// Payload sent, retransmissions included.
        sent_bytes ["byte"],
        /// Of the packets sent, retransmissions of data (of a subflow of MPTCP: of data that it has sent before).
        retransmitted_packets ["packet"],
        /// Packets that the sender declared lost, each transmission at most once; UDP: packets that the network
        /// dropped or, in the lab, that did not arrive.
        lost_packets ["packet"],
        /// Retransmission timeouts with data in flight (RFC 6298); QUIC: probe timeouts (RFC 9002).
        timeouts ["1"],
        /// Congestion events that turned out to be spurious.
        spurious_losses ["1"],
        /// Duplicate acknowledgements received: without data, for a segment that is acknowledged already, while others
        /// are in flight (RFC 5681), whether they report SACK blocks or not; TCP only.
        duplicate_acks ["1"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_to_the_unknown_stays_unknown() {
        let mut sum = Count::new(3);
        sum += 4;
        assert_eq!((sum, sum.get()), (Count::new(7), Some(7)));
        sum += Count::UNKNOWN;
        sum += 1;
        assert_eq!(sum.get(), None);
        assert_eq!(Count::from(None) - Count::new(1), Count::UNKNOWN);
        assert_eq!(Count::new(1) - Count::UNKNOWN, Count::UNKNOWN);
        assert_eq!(Count::new(1) - Count::new(3), Count::new(0));
        assert_eq!([1, 2].map(Count::new).into_iter().sum::<Count>(), 3);
    }

    #[test]
    fn nothing_is_said_about_the_size_of_the_unknown() {
        let unknown = Count::UNKNOWN;
        assert!(!(unknown > 5 || unknown <= 5 || unknown == 0));
        assert!(!(Count::new(5) < unknown || Count::new(5) > unknown));
        assert!(Count::new(5) > Count::new(4) && Count::new(5) >= 5);
        assert_eq!(format!("{unknown} {}", Count::new(5)), "unknown 5");
    }

    #[test]
    fn all_counters_are_added_and_subtracted() {
        let mut all = SenderCounters::default();
        all.sent_packets += 5;
        let before = all;
        all += SenderCounters {
            sent_packets: Count::new(2),
            ..SenderCounters::UNKNOWN
        };
        let known: Vec<_> = (all - before).counts().map(Count::get).collect();
        assert_eq!(known.len(), SenderCounters::DECLARED.len());
        assert_eq!(known[0], Some(2));
        assert!(known[1..].iter().all(Option::is_none));
    }
}
