//! Ends of flows over UDP, with QUIC or without it: the same steps on kernel sockets and on our own stack.

use std::net::SocketAddr;

use gargalo_flow::Edge;
use gargalo_units::Instant;

use super::flow::Flow;
use super::quic::Quic;
use super::recorder::Recorder;
use super::stream::{Datagrams, Interest};

/// One end of a flow over UDP.
#[derive(Debug)]
pub struct DatagramEnd {
    side: usize,
    /// Its connection, over QUIC.
    quic: Option<Quic>,
}

impl DatagramEnd {
    /// Creates the end at a side of a flow that has not started.
    pub fn new(flow: &Flow, side: usize) -> Self {
        let quic = flow.quic().map(|_| Quic::new(flow, side));
        Self { side, quic }
    }

    /// The addresses of its sockets.
    pub fn locals(flow: &Flow, side: usize) -> Vec<SocketAddr> {
        let mut locals: Vec<_> = flow.paths.iter().map(|p| p[side]).collect();
        locals.dedup();
        locals
    }

    /// Lets it read what arrived, act and send.
    pub fn drive(
        &mut self,
        now: Instant,
        flow: &Flow,
        sockets: &mut dyn Datagrams,
        recorder: &Recorder,
    ) -> Interest {
        match &mut self.quic {
            Some(quic) => quic.drive(now, flow, sockets, recorder),
            None => flow.drive_datagrams(now, self.side, sockets, recorder),
        }
    }

    /// Records a sample of its sender, if it has one.
    pub fn sample(&mut self, now: Instant, flow: &Flow, recorder: &Recorder) {
        match &mut self.quic {
            Some(quic) => quic.sample(now, flow, recorder),
            None if self.side == 0 => {
                let sample = flow.sample(now);
                sample.into_iter().for_each(|s| recorder.sample(s));
            }
            None => {}
        }
    }

    /// Takes the counts at an edge of the measured window.
    pub fn mark(&mut self, edge: Edge, flow: &Flow, recorder: &Recorder) {
        if let Some(quic) = &mut self.quic {
            quic.mark(edge, flow, recorder);
        }
    }

    /// Keeps the counters of its connection, and closes it.
    pub fn finish(
        &mut self,
        now: Instant,
        flow: &Flow,
        sockets: &mut dyn Datagrams,
        recorder: &Recorder,
    ) {
        if let Some(quic) = &mut self.quic {
            quic.finish(now, flow, sockets, recorder);
        }
    }
}
