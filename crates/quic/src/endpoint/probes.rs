//! Counts probe timeouts (RFC 9002 §6.2), of which noq does not tell.

use gargalo_units::{Duration, Instant};
use noq_proto::Connection;

use crate::controller::Report;

/// No probe timeout is shorter: kGranularity of RFC 9002.
const SHORTEST: Duration = Duration::from_millis(1);

/// Recognises probes by what they are made of.
///
/// noq asks for an immediate acknowledgement (draft-ietf-quic-ack-frequency) with each probe that it
/// sends after the handshake, and otherwise only with probes of the path's MTU, which it counts. During a
/// handshake there is nothing else that a timer could send.
#[derive(Debug)]
pub(super) struct Probes {
    timeouts: u64,
    /// Ack-eliciting packets so far, and when the last one left.
    sent: u64,
    last: Instant,
    /// A timer has expired that may have been the one.
    watch: Option<Watch>,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    at: Instant,
    handshake: bool,
    requests: u64,
}

impl Probes {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            timeouts: 0,
            sent: 0,
            last: now,
            watch: None,
        }
    }

    pub(super) fn timeouts(&self) -> u64 {
        self.timeouts
    }

    #[inline]
    pub(super) fn before_timeout(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        report: &Report,
    ) {
        self.watch = None;
        self.sent = report.sent_packets();
        if now - self.last >= SHORTEST {
            self.watch = Some(Watch {
                at: now,
                handshake: connection.is_handshaking(),
                requests: requests(connection),
            });
        }
    }

    #[inline]
    pub(super) fn after_transmit(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        report: &Report,
    ) {
        let sent = report.sent_packets();
        if sent == self.sent {
            return;
        }
        self.sent = sent;
        self.last = now;
        if let Some(watch) = self.watch.take_if(|w| w.at == now)
            && (watch.handshake || requests(connection) > watch.requests)
        {
            self.timeouts += 1;
            report.notice("timeout", String::new);
        }
    }
}

/// Immediate acknowledgements asked for, but not of probes of the MTU.
fn requests(connection: &mut Connection) -> u64 {
    connection
        .paths()
        .into_iter()
        .filter_map(|id| connection.path_stats(id))
        .map(|s| {
            s.frame_tx
                .immediate_ack
                .saturating_sub(s.sent_plpmtud_probes)
        })
        .sum()
}
