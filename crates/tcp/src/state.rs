use std::fmt;

/// The states of a connection (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// No connection: not yet opened, or over.
    #[default]
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// SYN sent, waiting for the peer's.
    SynSent,
    /// Both SYNs seen, ours not acknowledged yet.
    SynReceived,
    /// The connection is open in both directions.
    Established,
    /// We closed, our FIN is not acknowledged, the peer may still send.
    FinWait1,
    /// Our FIN is acknowledged, the peer may still send.
    FinWait2,
    /// The peer closed, we may still send.
    CloseWait,
    /// Both closed at once; our FIN is not acknowledged.
    Closing,
    /// The peer closed first, then we did; our FIN is not acknowledged.
    LastAck,
    /// Both FINs acknowledged; waits until old segments have left the network (2 MSL).
    TimeWait,
}

impl State {
    /// All states, in the order of RFC 9293 §3.3.2 with CLOSED first.
    pub const ALL: [Self; 11] = [
        Self::Closed,
        Self::Listen,
        Self::SynSent,
        Self::SynReceived,
        Self::Established,
        Self::FinWait1,
        Self::FinWait2,
        Self::CloseWait,
        Self::Closing,
        Self::LastAck,
        Self::TimeWait,
    ];

    /// The states that may follow this one (RFC 9293 §3.3.2 figure 5 and §3.10). Every state may
    /// fall to CLOSED by a reset, an abort or a timeout.
    pub const fn successors(self) -> &'static [Self] {
        use State::{
            CloseWait, Closed, Closing, Established, FinWait1, FinWait2, LastAck, Listen,
            SynReceived, SynSent, TimeWait,
        };
        match self {
            Closed => &[Listen, SynSent],
            Listen => &[SynReceived, Closed],
            // SYN-RECEIVED by a simultaneous open.
            SynSent => &[SynReceived, Established, Closed],
            // Back to LISTEN by a reset when the open was passive; FIN-WAIT-1 by a close (our
            // endpoint lets it wait for ESTABLISHED); CLOSE-WAIT by way of ESTABLISHED.
            SynReceived => &[Established, FinWait1, Listen, Closed],
            Established => &[FinWait1, CloseWait, Closed],
            // TIME-WAIT directly: the segment that acknowledges our FIN carries the peer's.
            FinWait1 => &[FinWait2, Closing, TimeWait, Closed],
            FinWait2 => &[TimeWait, Closed],
            CloseWait => &[LastAck, Closed],
            Closing => &[TimeWait, Closed],
            LastAck => &[Closed],
            TimeWait => &[Closed],
        }
    }

    /// Whether `next` may follow directly.
    pub fn may_become(self, next: Self) -> bool {
        self.successors().contains(&next)
    }

    /// ESTABLISHED or later: both initial sequence numbers are agreed. (RFC 9293 counts
    /// SYN-RECEIVED as synchronised for resets only in part; it is not included here.)
    #[inline]
    pub const fn is_synchronised(self) -> bool {
        !matches!(
            self,
            Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived
        )
    }

    /// The peer's data is still accepted.
    #[inline]
    pub const fn may_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// The application may still write.
    #[inline]
    pub const fn may_send(self) -> bool {
        matches!(
            self,
            Self::SynSent | Self::SynReceived | Self::Established | Self::CloseWait
        )
    }

    /// The name in RFC 9293.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::Listen => "LISTEN",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::State;

    #[test]
    fn the_table_of_transitions_is_this_one() {
        let table: Vec<String> = State::ALL
            .iter()
            .map(|from| {
                let to: Vec<_> = from.successors().iter().map(|s| s.name()).collect();
                format!("{from} -> {}", to.join(", "))
            })
            .collect();
        let expected = "\
CLOSED -> LISTEN, SYN-SENT
LISTEN -> SYN-RECEIVED, CLOSED
SYN-SENT -> SYN-RECEIVED, ESTABLISHED, CLOSED
SYN-RECEIVED -> ESTABLISHED, FIN-WAIT-1, LISTEN, CLOSED
ESTABLISHED -> FIN-WAIT-1, CLOSE-WAIT, CLOSED
FIN-WAIT-1 -> FIN-WAIT-2, CLOSING, TIME-WAIT, CLOSED
FIN-WAIT-2 -> TIME-WAIT, CLOSED
CLOSE-WAIT -> LAST-ACK, CLOSED
CLOSING -> TIME-WAIT, CLOSED
LAST-ACK -> CLOSED
TIME-WAIT -> CLOSED";
        assert_eq!(table.join("\n"), expected);
    }

    #[test]
    fn every_state_is_reached_from_closed_and_leads_back() {
        let mut reached = vec![State::Closed];
        let mut i = 0;
        while i < reached.len() {
            for next in reached[i].successors() {
                if !reached.contains(next) {
                    reached.push(*next);
                }
            }
            i += 1;
        }
        assert_eq!(reached.len(), State::ALL.len());
        for s in State::ALL {
            assert!(s == State::Closed || s.may_become(State::Closed), "{s}");
            assert!(!s.may_become(s), "{s}");
        }
    }
}
