//! The kernel's information about a TCP connection (`TCP_INFO`, tcp(7)).

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};

use gargalo_flow::{FlowSample, Reached};
use gargalo_units::{Bytes, Duration, Instant, Rate, SenderCounters};
use nix::libc;

/// The kernel's `TCP_INFINITE_SSTHRESH`: there is no slow-start threshold.
const INFINITE: u32 = 0x7fff_ffff;

const ESTABLISHED: u8 = 1;
const CLOSE: u8 = 7;
const CLOSE_WAIT: u8 = 8;

/// The quantities of a connection, in the kernel's units.
pub(crate) struct TcpInfo(libc::tcp_info);

impl TcpInfo {
    /// Queries the kernel; `None` if it does not answer.
    pub(crate) fn of(socket: BorrowedFd<'_>) -> Option<Self> {
        // SAFETY: tcp_info is plain numbers; an older kernel fills a shorter part and the rest stays 0.
        let mut info: libc::tcp_info = unsafe { MaybeUninit::zeroed().assume_init() };
        let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
        // SAFETY: pointer and length are those of `info`.
        let done = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut info).cast(),
                &raw mut length,
            )
        };
        (done == 0).then_some(Self(info))
    }

    /// Builds it from the kernel's bytes; fields that an older kernel does not fill are 0.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        // SAFETY: tcp_info is plain numbers.
        let mut info: libc::tcp_info = unsafe { MaybeUninit::zeroed().assume_init() };
        let n = bytes.len().min(size_of::<libc::tcp_info>());
        // SAFETY: both are at least `n` bytes long and do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut info).cast(), n) };
        Self(info)
    }

    /// Whether it may send: its handshake is complete, and it has been neither reset nor closed by this end (the
    /// `enum` of linux/tcp_states.h).
    pub(crate) fn may_send(&self) -> bool {
        matches!(self.0.tcpi_state, ESTABLISHED | CLOSE_WAIT)
    }

    /// Whether its counters are valid: those of a connection that was reset are zero.
    pub(crate) fn counts(&self) -> bool {
        !matches!(self.0.tcpi_state, 0 | CLOSE)
    }

    /// Whether it may be the same connection as `earlier`: counters never decrease.
    pub(crate) fn is_later_than(&self, earlier: &Self) -> bool {
        let counts = |i: &Self| [i.0.tcpi_segs_out, i.0.tcpi_segs_in];
        counts(self)
            .into_iter()
            .zip(counts(earlier))
            .all(|(n, then)| n >= then)
    }

    /// Payload bytes received in order.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.0.tcpi_bytes_received
    }

    /// Payload bytes that the peer has acknowledged.
    pub(crate) fn acknowledged_bytes(&self) -> u64 {
        self.0.tcpi_bytes_acked
    }

    /// Smoothed round-trip time.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        (self.0.tcpi_rtt > 0).then(|| micros(self.0.tcpi_rtt))
    }

    /// What the sender counted.
    pub(crate) fn counters(&self) -> SenderCounters {
        let i = &self.0;
        let retransmitted = u64::from(i.tcpi_total_retrans).into();
        SenderCounters {
            sent_packets: u64::from(i.tcpi_data_segs_out).into(),
            sent_bytes: i.tcpi_bytes_sent.into(),
            retransmitted_packets: retransmitted,
            // The kernel does not count loss marks; retransmitted segments are counted as lost.
            lost_packets: retransmitted,
            ..SenderCounters::UNKNOWN
        }
    }

    /// Congestion Experienced marks that the receiver reported to this sender.
    pub(crate) fn ce_marks(&self) -> u64 {
        u64::from(self.0.tcpi_delivered_ce)
    }

    /// Builds a row of the flow samples.
    pub(crate) fn sample(&self, time: Instant, flow: u64, reached: Reached) -> FlowSample {
        let i = &self.0;
        let packets = |n: u32| Bytes::new(u64::from(n) * u64::from(i.tcpi_snd_mss));
        let rate = |bytes_per_s: u64| {
            let known = bytes_per_s > 0 && bytes_per_s < u64::MAX / 8;
            known.then(|| Rate::from_bps(bytes_per_s * 8))
        };
        // RFC 6675's pipe, as the kernel computes it.
        let in_flight =
            (i.tcpi_unacked + i.tcpi_retrans).saturating_sub(i.tcpi_sacked + i.tcpi_lost);
        FlowSample {
            time,
            flow,
            cwnd: packets(i.tcpi_snd_cwnd),
            ssthresh: (i.tcpi_snd_ssthresh < INFINITE).then(|| packets(i.tcpi_snd_ssthresh)),
            in_flight: Some(packets(in_flight)),
            srtt: self.srtt(),
            pacing_rate: rate(i.tcpi_pacing_rate),
            delivery_rate: rate(i.tcpi_delivery_rate),
            delivered: reached.delivered,
            received: reached.received,
            phase: phase(i.tcpi_ca_state),
            out_of_order: None,
        }
    }
}

/// Combines the samples of two subflows: sums, and the least round-trip time.
pub(super) fn sum(a: FlowSample, b: FlowSample) -> FlowSample {
    let both = |a: Option<Rate>, b| match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    FlowSample {
        cwnd: a.cwnd + b.cwnd,
        ssthresh: None,
        in_flight: a.in_flight.zip(b.in_flight).map(|(a, b)| a + b),
        srtt: [a.srtt, b.srtt].into_iter().flatten().min(),
        pacing_rate: both(a.pacing_rate, b.pacing_rate),
        delivery_rate: both(a.delivery_rate, b.delivery_rate),
        ..a
    }
}

fn micros(us: u32) -> Duration {
    Duration::from_micros(u64::from(us))
}

/// The name of a state of `enum tcp_ca_state`.
fn phase(state: u8) -> &'static str {
    match state {
        0 => "open",
        1 => "disorder",
        2 => "cwr",
        3 => "recovery",
        4 => "loss",
        _ => "unknown",
    }
}
