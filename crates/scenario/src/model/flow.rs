//! Flows as written.

use gargalo_settings::{names, settings};
use gargalo_units::Duration;
use gargalo_workload::Workload;
use gargalo_workload::quantity::PerSecond;

use super::transport::Transport;

settings! {
    /// Data from one host to another; with `count` or `arrivals`, many of the same kind.
    pub struct Flow as "Flow" {
        /// The host that sends the data (with requests: that asks for it). `left*` puts copy i on host
        /// `left`i.
        from: String;
        /// The other host.
        to: String;
        /// The path of `topology.multipath` that it takes in both directions, by number: 1 is `path1`. Multipath TCP
        /// and multipath QUIC choose among all paths themselves. Default: 0.
        path: Option<u8> = None, in Some(0)..=Some(255);
        /// When the flow starts, or arrivals begin.
        start: Duration = Duration::ZERO;
        /// When its application stops. Default: at the end of the run.
        stop: Option<Duration> = None;
        /// Number of copies. Default: 1, or with a `*` as many as there are hosts of that name.
        count: Option<u32> = None, in Some(1)..=Some(100_000);
        /// Name in results and pictures; results are grouped by it. Default: the congestion control, or
        /// `udp`.
        label: Option<String> = None;
        /// How data is carried.
        transport: Transport;
        /// What is carried. Default: bulk without end.
        workload: Workload = Workload::default();
        /// Makes the flow a template of which copies start at random.
        arrivals: Option<Arrivals> = None;
        /// What is kept of it: a row in the tables, or no more than totals in the summary. Default: `full`,
        /// for web, ftp and mix `summary`.
        record: Option<RecordName> = None;
    }
}

names! {
    /// What is kept of a flow.
    pub enum RecordName {
        /// A row, samples and events.
        Full = "full",
        /// Totals of all flows of the label: memory stays the same however many there are.
        Summary = "summary",
    }
}

settings! {
    /// Copies of a flow that start at random times (a Poisson process), each with its own connection.
    pub struct Arrivals: Copy as "Arrivals" {
        /// Mean number of new flows per time.
        rate: PerSecond;
    }
}
