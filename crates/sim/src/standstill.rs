//! Notices that virtual time has stopped: a flow without an end whose round trip takes no time sends for
//! ever at one instant.
//!
//! What reaches a receiver in order at one instant was sent within the window that it had offered before,
//! unless data and acknowledgements take no time: no more than a receive buffer. A flow that got several
//! times as much goes round in a circle. Transfers with an end are left alone, however fast they are.

use gargalo_units::Instant;

use crate::BuildError;
use crate::flow::{Flow, TransportSpec};
use crate::world::World;

/// Receive buffers that may arrive at one instant.
const BUFFERS: u64 = 4;
/// At least so many bytes.
const LEAST: u64 = 64 << 20;

/// At most so many: a run that had more on its way would not fit any memory.
const MOST: u64 = 64 << 30;
/// Events and packets at one instant before flows are looked at.
const PATIENCE: u64 = 1 << 16;

/// The instant that is looked at, and how much each flow had got when it was first.
#[derive(Debug, Default)]
pub(crate) struct Standstill {
    at: Instant,
    /// Work done when the instant was first seen, and when it is looked at next.
    work: (u64, u64),
    /// Generation and bytes of flows by slot.
    got: Vec<(u32, u64)>,
}

impl World {
    /// Whether something goes round in a circle at this instant; called now and then with the work done
    /// so far. What it costs is a small share of that work: looks at one instant get ever rarer.
    pub(crate) fn check_standstill(&mut self, work: u64) -> Result<(), BuildError> {
        let Self {
            standstill, flows, ..
        } = self;
        if standstill.at != self.now {
            standstill.at = self.now;
            standstill.work = (work, work + PATIENCE);
            standstill.got.clear();
            return Ok(());
        }
        if work < standstill.work.1 {
            return Ok(());
        }
        standstill.work.1 = work + (work - standstill.work.0);
        standstill.got.resize(flows.capacity(), (0, 0));
        for (slot, flow) in flows.iter_mut() {
            let Some(most) = most(flow) else { continue };
            let before = &mut standstill.got[slot as usize];
            if before.0 != flow.generation {
                *before = (flow.generation, flow.delivered);
            } else if flow.delivered - before.1 > most {
                let route = flow.sides[flow.app.sender()].route;
                let links = self.net.links_of(route);
                let links = links.map(|l| self.topology.links[l].name.as_str());
                return Err(BuildError::Standstill {
                    flow: flow.spec.label.to_string(),
                    id: flow.id,
                    links: links.collect::<Vec<_>>().join(", "),
                    at_s: self.now.as_secs_f64(),
                });
            }
        }
        Ok(())
    }
}

/// Most bytes that a flow without an end may get at one instant; `None` for others.
fn most(flow: &Flow) -> Option<u64> {
    if flow.app.total().is_some() {
        return None;
    }
    let buffer = match &flow.spec.transport {
        TransportSpec::Tcp(t) => t.config.receive_buffer.get(),
        TransportSpec::Mptcp(m) => m.config.tcp.receive_buffer.get(),
        TransportSpec::Quic(q) => q.config.connection_window,
        TransportSpec::Udp => return None,
    };
    Some(buffer.saturating_mul(BUFFERS).clamp(LEAST, MOST))
}
