//! What a scenario asks, in quinn's types.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use gargalo_plugin::stack::{CALENDAR_START, Config, host};
use gargalo_stack_common::{debug, thread};
use quinn_proto::congestion::{Bbr, BbrConfig, Controller, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, MtuDiscoveryConfig, QlogConfig, TimeSource, TransportConfig};

/// quinn's BBR seeds itself from the generator of the thread.
struct SeededBbr(BbrConfig);

impl ControllerFactory for SeededBbr {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let config = Arc::new(self.0.clone());
        thread::seeded(move || config.build(now, mtu))
    }
}

fn congestion(name: &str, window: u64) -> Arc<dyn ControllerFactory + Send + Sync> {
    match name {
        "newreno" => Arc::new(NewRenoConfig::default().initial_window(window).clone()),
        "bbr" => Arc::new(SeededBbr(BbrConfig::default().initial_window(window).clone())),
        _ => Arc::new(CubicConfig::default().initial_window(window).clone()),
    }
}

/// The word of a congestion control for its state. Of BBR, quinn shows it only as text for debugging.
pub fn phase(control: &dyn Controller) -> Option<String> {
    if let Ok(bbr) = control.clone_box().into_any().downcast::<Bbr>() {
        return debug::field(&bbr, "mode");
    }
    let now = control.metrics();
    let slow = now.congestion_window < now.ssthresh.unwrap_or(u64::MAX);
    Some(if slow { "slow-start" } else { "congestion-avoidance" }.to_owned())
}

/// Connection IDs and calendar time of the host.
pub struct Host;

impl TimeSource for Host {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + CALENDAR_START + host::now().unwrap_or_default()
    }
}

impl ConnectionIdGenerator for Host {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&host::random_array::<8>())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

pub fn transport(asked: &Config<'_>, start: Instant) -> Result<Arc<TransportConfig>, Box<dyn Error>> {
    let mut t = TransportConfig::default();
    t.initial_mtu(asked.datagram_size)
        .stream_receive_window(asked.stream_window.try_into()?)
        .receive_window(asked.connection_window.try_into()?)
        .send_window(asked.send_window)
        .initial_rtt(asked.initial_rtt)
        .max_concurrent_bidi_streams(asked.max_streams.try_into()?)
        .max_idle_timeout(Some(asked.idle_timeout.try_into()?))
        .congestion_controller_factory(congestion(asked.congestion, asked.initial_window))
        .enable_segmentation_offload(false);
    if asked.max_datagram_frame > 0 {
        // What is more waits at the host, which knows what is too old.
        t.datagram_send_buffer_size(1 << 14);
    }
    if asked.max_unidirectional_streams > 0 {
        t.max_concurrent_uni_streams(asked.max_unidirectional_streams.try_into()?);
    }
    if asked.max_datagram_size > asked.datagram_size {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(asked.max_datagram_size);
        t.mtu_discovery_config(Some(discovery));
    } else {
        // A suspected black hole must not change the size either.
        t.mtu_discovery_config(None).min_mtu(asked.datagram_size);
    }
    if asked.qlog {
        let mut qlog = QlogConfig::default();
        qlog.writer(Box::new(host::QlogFile)).start_time(start);
        t.qlog_stream(qlog.into_stream());
    }
    Ok(Arc::new(t))
}
