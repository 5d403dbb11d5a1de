//! qlog traces in virtual time.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Mutex;

use gargalo_units::Instant;
use noq_proto::{ConnectionId, QlogConfig, QlogFactory, Side};

use crate::realm::Timeline;
use crate::tls::lock;

type Writer = Box<dyn Write + Send + Sync>;

/// Gives the one connection of an endpoint its trace.
pub(super) struct Qlog {
    writer: Mutex<Option<Writer>>,
    title: String,
    time: Timeline,
}

impl Qlog {
    pub(super) fn new(writer: Writer, title: String, time: Timeline) -> Self {
        Self {
            writer: Mutex::new(Some(writer)),
            title,
            time,
        }
    }
}

impl QlogFactory for Qlog {
    fn for_connection(
        &self,
        _: Side,
        _: SocketAddr,
        _: ConnectionId,
        _: std::time::Instant,
    ) -> Option<QlogConfig> {
        let mut config = QlogConfig::new(lock(&self.writer).take()?);
        config
            .title(Some(self.title.clone()))
            .start_time(self.time.to_std(Instant::ZERO));
        Some(config)
    }
}
