//! Stateless passive opens: SYN cookies (RFC 4987 §3.6).

use std::sync::Arc;

use gargalo_cc::Controller;
use gargalo_units::Instant;
use gargalo_wire::tcp::{self, Flags, Segment};

use super::{Endpoint, Init};
use crate::handshake::{self, Agreed, PeerSyn};
use crate::receiver::initial_window;
use crate::timestamps::Timestamps;
use crate::{Config, State};

impl Endpoint {
    /// The SYN-ACK that a listening endpoint would send to `syn`, without creating one: a listener under attack
    /// answers without keeping state. The negotiated options must be recovered from the acknowledgement, for
    /// [`Endpoint::resume`].
    pub fn answer(config: &Config, init: &Init, now: Instant, syn: &Segment) -> Segment {
        let peer = PeerSyn::of(syn, init.is_ipv6);
        let agreed = Agreed::new(config, &peer);
        let timestamps = tcp::Timestamps {
            value: Timestamps::new(init.ts_offset).value(now),
            echo: peer.timestamps.map_or(0, |t| t.value),
        };
        let mut flags = Flags::SYN | Flags::ACK;
        if agreed.ecn {
            flags = flags | Flags::ECE;
        }
        Segment {
            src_port: init.local_port,
            dst_port: init.remote_port,
            seq: init.isn,
            ack: syn.seq + 1,
            flags,
            window: initial_window(config.receive_buffer.get()),
            options: handshake::options(config, Some(&agreed), timestamps, None),
            ..Segment::default()
        }
    }

    /// A connection whose SYN was answered by [`Endpoint::answer`] without state: `syn` is the reconstructed SYN.
    /// Pass the acknowledgement of the answer to [`handle`](Self::handle) next; it opens the connection.
    pub fn resume(
        config: impl Into<Arc<Config>>,
        controller: Box<dyn Controller>,
        init: Init,
        now: Instant,
        syn: &Segment,
    ) -> Self {
        let peer = PeerSyn::of(syn, init.is_ipv6);
        let mut endpoint = Self::listen(config, controller, init, now);
        endpoint.on_peer_syn(now, syn, &peer);
        endpoint.become_state(State::SynReceived);
        endpoint
    }
}
