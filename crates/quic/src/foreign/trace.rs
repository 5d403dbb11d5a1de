//! The trace of a stack that writes none itself and reports its packets.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;

use gargalo_units::{Duration, Instant};

use super::packet::{Packet, PacketEvent};
use super::sender::Sender;
use crate::qlog::{Metrics, string, write_addresses, write_event, write_head};

/// The trace of one end.
pub(crate) struct Reported {
    writer: Box<dyn io::Write + Send + Sync>,
    metrics: Metrics,
    record: String,
}

impl Reported {
    /// Begins the trace of an end that is created now, with its own address and its peer's.
    pub(crate) fn begin(
        writer: Box<dyn io::Write + Send + Sync>,
        (title, is_client): (&str, bool),
        [local, remote]: [SocketAddr; 2],
        now: Instant,
    ) -> io::Result<Self> {
        let mut trace = Self {
            writer,
            metrics: Metrics::default(),
            record: String::new(),
        };
        write_head(&mut trace.record, title, is_client, None);
        trace.put()?;
        trace.event(now, "connectivity:connection_started", |out| {
            write_addresses(out, local, remote);
        })?;
        Ok(trace)
    }

    /// Something has happened to a packet.
    pub(crate) fn packet(&mut self, now: Instant, packet: &Packet) -> io::Result<()> {
        let (kind, number) = (packet.kind.name(), packet.number);
        let name = match packet.event {
            PacketEvent::Sent => "transport:packet_sent",
            PacketEvent::Received => "transport:packet_received",
            PacketEvent::Lost => "recovery:packet_lost",
            PacketEvent::Acknowledged => {
                let space = packet.kind.space();
                return self.event(now, "transport:packets_acked", |out| {
                    let _ = write!(
                        out,
                        "\"packet_number_space\":\"{space}\",\"packet_numbers\":[{number}]"
                    );
                });
            }
        };
        self.event(now, name, |out| {
            let _ = write!(
                out,
                "\"header\":{{\"packet_type\":\"{kind}\",\"packet_number\":{number}}}"
            );
            if let Some(size) = packet.size {
                let _ = write!(out, ",\"raw\":{{\"length\":{size}}}");
            }
        })
    }

    /// The sender's state after a call, and the latest round-trip sample.
    pub(crate) fn sender(
        &mut self,
        now: Instant,
        sender: &Sender,
        latest: Option<Duration>,
    ) -> io::Result<()> {
        let before = self.metrics;
        let metrics = Metrics {
            congestion_window: sender.cwnd.map(|b| b.get()),
            bytes_in_flight: sender.in_flight.map(|b| b.get()),
            ssthresh: sender.ssthresh.map(|b| b.get()),
            smoothed_rtt: sender.srtt,
            latest_rtt: latest.or(before.latest_rtt),
            pacing_rate: sender.pacing_rate,
            phase: sender.phase,
            ..Metrics::default()
        };
        self.metrics = metrics;
        if metrics.phase != before.phase {
            self.event(now, "recovery:congestion_state_updated", |out| {
                out.push_str("\"new\":");
                string(out, metrics.phase);
            })?;
        }
        let fields = metrics.changed(before);
        match fields.strip_prefix(',') {
            Some(fields) => self.event(now, "recovery:metrics_updated", |out| {
                out.push_str(fields);
            }),
            None => Ok(()),
        }
    }

    /// The connection has ended; `failure` says why if not in order.
    pub(crate) fn closed(&mut self, now: Instant, failure: Option<&str>) -> io::Result<()> {
        self.event(now, "connectivity:connection_closed", |out| {
            let trigger = if failure.is_some() { "error" } else { "clean" };
            let _ = write!(out, "\"trigger\":\"{trigger}\"");
            if let Some(why) = failure {
                out.push_str(",\"reason\":");
                string(out, why);
            }
        })?;
        self.writer.flush()
    }

    fn event(
        &mut self,
        now: Instant,
        name: &str,
        data: impl FnOnce(&mut String),
    ) -> io::Result<()> {
        write_event(&mut self.record, now, name, data);
        self.put()
    }

    fn put(&mut self) -> io::Result<()> {
        self.writer.write_all(self.record.as_bytes())
    }
}
