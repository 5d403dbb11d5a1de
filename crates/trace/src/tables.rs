//! The tables of a run.

use std::ops::ControlFlow;

use crate::schema::{
    Datagrams, Events, FlowSamples, Flows, Gauges, LinkSamples, Links, MediaFrames, Objects,
    Packets, Pings, SubflowSamples, Subflows,
};
use crate::table::{Columns, Table};
use crate::{Error, RunDir};

/// The results tables of a run.
#[derive(Debug, Default)]
pub struct Tables {
    /// A row per flow.
    pub flows: Table<Flows>,
    /// A row per link direction.
    pub links: Table<Links>,
    /// A row per flow and sampling instant.
    pub flow_samples: Table<FlowSamples>,
    /// A row per link direction and sampling instant.
    pub link_samples: Table<LinkSamples>,
    /// A row per protocol event.
    pub events: Table<Events>,
    /// A row per quantity of a congestion control and recording instant.
    pub gauges: Table<Gauges>,
    /// A row per requested object.
    pub objects: Table<Objects>,
    /// A row per datagram that arrived.
    pub datagrams: Table<Datagrams>,
    /// A row per echo request.
    pub pings: Table<Pings>,
    /// A row per frame of a call.
    pub media_frames: Table<MediaFrames>,
    /// A row per packet with data of a recording.
    pub packets: Table<Packets>,
    /// A row per subflow of a Multipath TCP flow or path of a multipath QUIC one.
    pub subflows: Table<Subflows>,
    /// A row per subflow and sampling instant.
    pub subflow_samples: Table<SubflowSamples>,
}

impl Tables {
    /// All of them, in the order of the reference.
    pub fn all(&self) -> [&Columns; 13] {
        [
            &self.flows,
            &self.links,
            &self.flow_samples,
            &self.link_samples,
            &self.events,
            &self.gauges,
            &self.objects,
            &self.datagrams,
            &self.pings,
            &self.media_frames,
            &self.packets,
            &self.subflows,
            &self.subflow_samples,
        ]
    }

    /// Writes each as `<name>.parquet`: `flows` always, the others if they have rows. `go_on` is called at
    /// intervals with the completed share, 0 to 1.
    ///
    /// # Errors
    /// When a file cannot be written, or `go_on` breaks.
    pub fn write_to(
        &self,
        dir: &RunDir,
        go_on: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let all: usize = self.all().iter().map(|t| t.len()).sum();
        let mut before = 0;
        for table in self.all() {
            if !table.is_empty() || table.schema().name == self.flows.schema().name {
                dir.write_table(table, &mut |rows| {
                    go_on((before + rows) as f64 / all.max(1) as f64)
                })?;
            }
            before += table.len();
        }
        Ok(())
    }
}
