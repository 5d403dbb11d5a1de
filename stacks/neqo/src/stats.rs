//! What neqo tells of its sender, and what its threshold and phase are, which only its text for debugging has.

use std::net::IpAddr;

use gargalo_plugin::stack::{Stats, host};
use gargalo_stack_common::debug;
use neqo_transport::{Connection, Pmtud, Stats as Told};

fn declared_lost(told: &Told) -> u64 {
    // Those that were acknowledged after all no longer count as lost there.
    (told.lost + told.late_ack) as u64
}

fn timeouts(told: &Told) -> u64 {
    told.pto_counts.iter().zip(1..).map(|(times, in_a_row)| *times as u64 * in_a_row).sum()
}

/// Reports losses, timeouts and a new size of datagrams since the last time.
pub struct Noticed {
    lost: u64,
    timeouts: [usize; Told::MAX_PTO_COUNTS],
    /// Of packets, and their headers of IP and UDP.
    size: usize,
    headers: usize,
}

impl Noticed {
    pub fn new(remote: IpAddr) -> Self {
        Self { lost: 0, timeouts: [0; Told::MAX_PTO_COUNTS], size: 0, headers: Pmtud::header_size(remote) }
    }

    pub fn update(&mut self, connection: &Connection) {
        let told = connection.stats();
        let (lost, size) = (declared_lost(&told), told.pmtud_pmtu);
        if lost > self.lost {
            host::notice("loss", &format!("packets={}", lost - self.lost));
        }
        if let Some(i) = told.pto_counts.iter().zip(self.timeouts).rposition(|(now, before)| *now > before) {
            host::notice("timeout", &format!("consecutive={}", i + 1));
        }
        if size != self.size && self.size > 0 {
            host::notice("mtu", &format!("datagram_bytes={}", size - self.headers));
        }
        (self.lost, self.timeouts, self.size) = (lost, told.pto_counts, size);
    }
}

/// The state of a congestion control in the host's words.
fn phase(connection: &Connection) -> Option<String> {
    let word = debug::field(connection, "phase")?;
    Some(match word.as_str() {
        "recovery-start" => "recovery".to_owned(),
        "persistent-congestion" => "slow-start".to_owned(),
        _ => word,
    })
}

pub fn stats(connection: &Connection) -> Stats {
    let told = connection.stats();
    let has_path = told.cc.cwnd > 0;
    let threshold = debug::field(connection, "ssthresh").and_then(|text| text.parse().ok());
    Stats {
        lost_packets: Some(declared_lost(&told)),
        spurious: Some(told.late_ack as u64),
        timeouts: Some(timeouts(&told)),
        cwnd: has_path.then_some(told.cc.cwnd as u64),
        in_flight: has_path.then_some(told.cc.bytes_in_flight as u64),
        ssthresh: threshold.filter(|bytes| *bytes != u64::MAX),
        srtt: (told.frame_rx.ack > 0).then_some(told.rtt),
        phase: phase(connection),
        ..Stats::default()
    }
}
