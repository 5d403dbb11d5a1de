//! Functions for a host with many connections.

use std::sync::Arc;

use gargalo_cc::ControllerFactory;
use gargalo_tcp::Endpoint;
use gargalo_units::{Instant, Seq};
use gargalo_wire::tcp::Segment;

use super::Connection;
use super::opening::Plan;
use crate::addresses::Addresses;
use crate::error::ConfigError;
use crate::subflow::Origin;
use crate::{Config, Init};

impl Connection {
    /// A stateless passive open: `syn` is the reconstructed SYN, `tcp` the configuration of the answer,
    /// [`Init::key`] the key in it. Pass the acknowledgement to [`handle`](Self::handle) next; it opens the
    /// connection (RFC 4987 §3.6; for this purpose the third packet repeats both keys, RFC 8684 §3.1).
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub fn resume(
        config: impl Into<Arc<Config>>,
        congestion: Arc<dyn ControllerFactory>,
        init: Init,
        addresses: Addresses,
        tcp: gargalo_tcp::Init,
        now: Instant,
        syn: &Segment,
    ) -> Result<Self, ConfigError> {
        let mut connection = Self::new(config.into(), congestion, init, false)?;
        connection.address_table.set_initial(addresses);
        let mut rng = connection.rng.clone();
        let controller = connection.controller(now, &mut rng)?;
        connection.rng = rng;
        let endpoint = Endpoint::resume(connection.tcp.clone(), controller, tcp, now, syn);
        let plan = Plan {
            addresses,
            gateway: None,
            origin: Origin::Initial,
            local_id: 0,
            remote_id: Some(0),
            backup: false,
            active: false,
        };
        let i = connection.install(now, plan, endpoint, 0);
        connection.on_capable_syn(now, i, syn);
        Ok(connection)
    }

    /// A counter that grows with every added or removed subflow: while it is unchanged,
    /// [`subflow_addresses`](Self::subflow_addresses) are the same.
    #[inline]
    pub fn subflow_changes(&self) -> u64 {
        2 * u64::from(self.next_id) - self.subflows.len() as u64
    }

    /// The endpoint of a subflow.
    pub fn endpoint(&self, addresses: Addresses) -> Option<&Endpoint> {
        Some(&self.subflows[self.index_of(addresses)?].endpoint)
    }

    /// Ends TIME-WAIT of a subflow early: a successor needs the ports, or there are too many. Returns the sequence
    /// number that it reached, as [`Endpoint::end_time_wait`].
    pub fn end_time_wait(&mut self, addresses: Addresses) -> Option<Seq> {
        let i = self.index_of(addresses)?;
        let s = &mut self.subflows[i];
        let last = s.endpoint.end_time_wait()?;
        self.work.active |= s.bit();
        Some(last)
    }
}
