//! Fields of `TCP_INFO` of our host.

use gargalo_tcp::{Activity, Detail, Endpoint, Snapshot, State};
use gargalo_units::Duration;

use super::Ours;
use crate::stack::Handle;

impl Ours {
    /// A field of `TCP_INFO`, in the kernel's units; `None` if our stack does not have it.
    pub(super) fn field(&self, socket: Handle, field: &str) -> Option<i64> {
        let id = self.connection(socket)?;
        let endpoint = self.host.endpoint(id)?;
        let mss = i64::from(endpoint.mss()).max(1);
        let stats = self.host.tcp_stats(id)?;
        Some(match field {
            "state" => state(endpoint.state()),
            "snd_mss" => mss,
            "unacked" => {
                let bytes = endpoint.unacknowledged() - endpoint.unsent();
                (bytes as i64 + mss - 1) / mss
            }
            "notsent_bytes" => endpoint.unsent() as i64,
            "total_retrans" => stats.sender.retransmitted_packets.get()? as i64,
            "bytes_sent" => stats.sender.sent_bytes.get()? as i64,
            "data_segs_out" => stats.sender.sent_packets.get()? as i64,
            "segs_out" => stats.sent_segments as i64,
            "segs_in" => stats.received_segments as i64,
            "snd_wnd" => endpoint.peer_window() as i64,
            "pmtu" => i64::from(self.host.path_mtu(id)?),
            _ => {
                if let Some(n) = of_activity(endpoint, &endpoint.activity(self.now), field) {
                    return Some(n);
                }
                let found = of_snapshot(&endpoint.snapshot(self.now), endpoint, field);
                return found.or_else(|| of_detail(&endpoint.detail(), endpoint, field));
            }
        })
    }
}

/// `enum` of linux/tcp_states.h.
fn state(s: State) -> i64 {
    match s {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    }
}

fn of_activity(endpoint: &Endpoint, a: &Activity, field: &str) -> Option<i64> {
    let micros = |d: Duration| d.as_micros() as i64;
    let millis = |d: Duration| d.as_millis() as i64;
    Some(match field {
        "busy_time" => micros(a.busy),
        "rwnd_limited" => micros(a.window_limited),
        "sndbuf_limited" => micros(a.buffer_limited),
        "last_data_sent" => millis(a.since_sent),
        "last_data_recv" => millis(a.since_received),
        "last_ack_recv" => millis(a.since_heard),
        // The kernel does not remember it.
        "last_ack_sent" => 0,
        // The SYN counts.
        "delivered" => a.delivered_packets as i64 + i64::from(endpoint.mss() > 0),
        "delivered_ce" => a.delivered_ce_packets as i64,
        "bytes_retrans" => a.retransmitted_bytes as i64,
        "dsack_dups" => a.dsack_packets as i64,
        "reord_seen" => a.reorderings as i64,
        "data_segs_in" => a.received_data_segments as i64,
        "delivery_rate_app_limited" => i64::from(a.app_limited),
        "advmss" => i64::from(a.announced_mss),
        "rcv_space" if a.receive_space.get() > 0 => a.receive_space.get() as i64,
        _ => return None,
    })
}

fn of_snapshot(s: &Snapshot, endpoint: &Endpoint, field: &str) -> Option<i64> {
    let mss = i64::from(endpoint.mss()).max(1);
    let micros = |d: Option<Duration>| d.map_or(0, |d| d.as_micros() as i64);
    Some(match field {
        "ca_state" => {
            let d = endpoint.detail();
            match (s.phase, d.sacked + d.lost + d.resent) {
                _ if d.reducing => 2,
                ("recovery", _) => 3,
                ("loss", _) => 4,
                (_, 0) => 0,
                _ => 1,
            }
        }
        "snd_cwnd" => s.cwnd.get() as i64 / mss,
        "snd_ssthresh" => s.ssthresh.map_or(0x7fff_ffff, |t| t.get() as i64 / mss),
        "rtt" => micros(s.srtt),
        "rttvar" => micros(s.rttvar),
        "min_rtt" => micros(s.min_rtt),
        "delivery_rate" => s.delivery_rate.map_or(0, |r| r.bytes_per_sec() as i64),
        "rto" => s.rto.as_micros() as i64,
        _ => return None,
    })
}

fn of_detail(d: &Detail, endpoint: &Endpoint, field: &str) -> Option<i64> {
    let (ours, theirs) = d.scaling.unwrap_or((0, 0));
    Some(match field {
        "sacked" => d.sacked.into(),
        "lost" => d.lost.into(),
        "retrans" => d.resent.into(),
        "reordering" => d.dup_thresh.into(),
        "retransmits" => d.timeouts.into(),
        "backoff" => d.backoff.into(),
        "probes" => d.probes.into(),
        // TCPI_OPT_TIMESTAMPS, SACK, WSCALE and ECN.
        "options" => {
            i64::from(d.timestamps)
                | i64::from(d.sack) << 1
                | i64::from(d.scaling.is_some()) << 2
                | i64::from(endpoint.is_ecn_capable()) << 3
        }
        "snd_wscale" => theirs.into(),
        "rcv_wscale" => ours.into(),
        "rcv_mss" => d.received_mss.into(),
        "bytes_acked" => d.acked_bytes as i64,
        "bytes_received" => d.received_bytes as i64,
        _ => return None,
    })
}
