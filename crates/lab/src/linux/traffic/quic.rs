//! QUIC between two hosts of the lab: the same endpoints as in the simulator, over UDP sockets of the kernel or of our
//! stack.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use bytes::BytesMut;
use gargalo_flow::quic_paths::{SendingPath, arrived, sample, sending};
use gargalo_flow::{ArrivedDatagram, Edge, FlowSample, QuicEnd, QuicEvent, QuicPaths, gauges_of};
use gargalo_quic::{Change, Notice};
use gargalo_units::{Bytes, Ecn, Instant};

use super::flow::Flow;
use super::quic_run::QuicRun;
use super::recorder::Recorder;
use super::stream::{Arrival, Datagrams, Interest};

/// One end of a flow over QUIC.
#[derive(Debug)]
pub struct Quic {
    side: usize,
    /// Created when the flow starts, or when the first datagram arrives.
    end: Option<QuicEnd>,
    migration: Instant,
    paths: QuicPaths,
    arrivals: Vec<(SocketAddr, SocketAddr, Ecn, BytesMut)>,
}

impl Quic {
    /// Creates the end at a side of a flow that has not started.
    pub fn new(flow: &Flow, side: usize) -> Self {
        let migration = flow.quic().and_then(|q| q.config.migration);
        let migration = migration.filter(|_| side == 0);
        Self {
            side,
            end: None,
            migration: migration.map_or(Instant::MAX, |m| flow.spec.start + m.after),
            paths: QuicPaths::default(),
            arrivals: Vec::new(),
        }
    }

    /// Lets it read what arrived, act and send.
    pub fn drive(
        &mut self,
        now: Instant,
        flow: &Flow,
        sockets: &mut dyn Datagrams,
        recorder: &Recorder,
    ) -> Interest {
        if let Err(why) = self.turn(now, flow, sockets, recorder) {
            flow.fail(now, why);
        }
        let due = flow.converse(now, |talk| match self.side == 0 || talk.is_on_frames() {
            true => talk.due(),
            false => Instant::MAX,
        });
        let timeout = self.end.as_mut().and_then(|e| e.endpoint.poll_timeout());
        let timeout = timeout.unwrap_or(Instant::MAX).min(self.migration);
        let is_over = self.end.as_ref().is_some_and(QuicEnd::is_over);
        Interest {
            read: true,
            write: false,
            until: due.min(timeout).min(flow.stop),
            over: flow.is_over() || is_over,
        }
    }

    fn turn(
        &mut self,
        now: Instant,
        flow: &Flow,
        sockets: &mut dyn Datagrams,
        recorder: &Recorder,
    ) -> Result<(), &'static str> {
        let (Some(quic), Some(run)) = (flow.quic(), &flow.run) else {
            return Ok(());
        };
        let arrivals = &mut self.arrivals;
        let mut take = |a: Arrival, data: &[u8]| {
            arrivals.push((a.local, a.remote, a.ecn, BytesMut::from(data)));
        };
        while sockets.receive(&mut take).map_err(|e| super::reason(&e))? {}
        if self.end.is_none() {
            if self.side == 1 && self.arrivals.is_empty() {
                return Ok(());
            }
            let made = run.endpoint(&flow.spec, quic, (self.side, flow.paths[0]), now);
            let endpoint = made.map_err(|_| "socket error")?;
            let of = (flow.spec.id, self.side);
            let end = QuicEnd::new(endpoint, of, &quic.config, flow.verifies(), now);
            self.end = Some(end);
        }
        let Some(end) = &mut self.end else {
            return Ok(());
        };
        let mut marks = 0;
        for (local, remote, ecn, payload) in self.arrivals.drain(..) {
            marks += u64::from(ecn == Ecn::Ce);
            end.endpoint.handle(now, payload, ecn, local, remote);
        }
        if end.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            end.endpoint.handle_timeout(now);
        }
        if self.migration <= now {
            self.migration = Instant::MAX;
            let [mut local, _] = flow.paths[0];
            match (quic.config.migration, flow.other) {
                (Some(m), Some(other)) if m.change == Change::Address => local.set_ip(other),
                _ => local.set_port(local.port() ^ 1),
            }
            sockets.bind(local).map_err(|e| super::reason(&e))?;
            end.endpoint.migrate(now, local);
        }
        let tell = |kind, detail| {
            if flow.spec.rows {
                recorder.event(now, flow.spec.id, kind, detail);
            }
        };
        flow.converse(now, |talk| {
            talk.ce_marks += marks;
            if (self.side == 0 || talk.is_on_frames()) && talk.due() <= now {
                talk.expire(now);
            }
            while let Some(event) = end.poll_event(now, talk) {
                match event {
                    QuicEvent::Established => {
                        for [near, far] in flow.paths.iter().skip(1) {
                            end.endpoint.open_path(now, near.ip(), *far);
                        }
                    }
                    QuicEvent::Failed(detail) => tell("failed", detail),
                }
            }
            end.exchange(now, talk);
            for arrived in end.recent_datagrams().filter(|_| flow.spec.rows) {
                recorder.datagram(ArrivedDatagram::new(now, flow.spec.id, &arrived));
            }
        });
        send(now, end, run, sockets)?;
        let sends = self.side == flow.sender();
        let looks = recorder.tables.gauges && flow.spec.rows && sends && flow.paths.len() == 1;
        let show = |notice: Notice| tell(notice.kind, notice.detail);
        recorder.look(end.notices(now, flow.spec.id, looks, show));
        if sends {
            let paths = &mut self.paths;
            flow.converse(now, |talk| match flow.paths.len() {
                1 => {
                    if let Some(rtt) = end.endpoint.take_rtt_sample() {
                        talk.round_trip(rtt);
                    }
                }
                _ => paths.rtt_samples(&mut *end.endpoint, |rtt| talk.round_trip(rtt)),
            });
        }
        Ok(())
    }

    /// Records a sample of its sender, if one is due.
    pub fn sample(&mut self, now: Instant, flow: &Flow, recorder: &Recorder) {
        let Some(end) = &mut self.end else { return };
        if self.side != flow.sender() {
            flow.buffered(end.endpoint.buffered());
            if flow.paths.len() > 1 {
                flow.arrived(arrived(&mut *end.endpoint));
            }
            return;
        }
        if flow.is_over() {
            return;
        }
        if flow.paths.len() > 1 {
            let about = (now, flow.spec.id, flow.reached());
            let (total, samples) = sample(self.sending(flow, recorder), about);
            samples.into_iter().for_each(|s| recorder.subflow(s));
            recorder.sample(total);
            return;
        }
        let s = end.endpoint.snapshot();
        if s.cwnd != Bytes::ZERO {
            let (id, reached) = (flow.spec.id, flow.reached());
            let sample = FlowSample::of_quic(now, id, reached, s);
            if recorder.tables.gauges && flow.spec.rows {
                recorder.look(gauges_of(&sample, "sample", &[]));
            }
            recorder.sample(sample);
        }
    }

    fn sending(&mut self, flow: &Flow, recorder: &Recorder) -> Vec<SendingPath> {
        let Some(end) = &mut self.end else {
            return Vec::new();
        };
        let arrived: BTreeMap<u32, u64> = flow.has_arrived();
        sending(&mut *end.endpoint, &arrived, |p| {
            Some(recorder.links_of(SocketAddr::new(p.local, 0), p.remote))
        })
    }

    /// Takes the counts at an edge of the measured window.
    pub fn mark(&mut self, edge: Edge, flow: &Flow, recorder: &Recorder) {
        if self.side != flow.sender() {
            if let Some(end) = self.end.as_mut().filter(|_| flow.paths.len() > 1) {
                flow.arrived(arrived(&mut *end.endpoint));
            }
            return;
        }
        if flow.paths.len() > 1 {
            let all = self.sending(flow, recorder);
            self.paths.mark(edge, all);
        }
        if let Some(end) = &mut self.end {
            flow.count_at(edge, end.endpoint.stats().sender);
        }
    }

    /// Keeps the counters of the connection and its paths, and closes it.
    pub fn finish(
        &mut self,
        now: Instant,
        flow: &Flow,
        sockets: &mut dyn Datagrams,
        recorder: &Recorder,
    ) {
        let sends = self.side == flow.sender();
        if sends && flow.paths.len() > 1 {
            let all = self.sending(flow, recorder);
            flow.paths_ended(self.paths.standing(all));
        }
        let Some(end) = &mut self.end else { return };
        if sends {
            flow.count(end.endpoint.stats().sender);
        } else if flow.paths.len() > 1 {
            flow.arrived(arrived(&mut *end.endpoint));
        }
        end.endpoint.close(now);
        if let Some(run) = &flow.run {
            let _ = send(now, end, run, sockets);
        }
    }
}

/// Sends the pending datagrams, and writes the new TLS secrets.
fn send(
    now: Instant,
    end: &mut QuicEnd,
    run: &QuicRun,
    sockets: &mut dyn Datagrams,
) -> Result<(), &'static str> {
    while let Some(out) = end.endpoint.poll_transmit(now) {
        match sockets.send(&out.payload, out.ecn, out.local, out.remote) {
            // The queue is full: the datagram is lost, as anywhere else on the path.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            // An error caused by an earlier datagram.
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
            other => other.map_err(|e| super::reason(&e))?,
        }
    }
    while let Some(line) = end.endpoint.poll_secret() {
        run.secret(&line).map_err(|_| "secrets not written")?;
    }
    Ok(())
}
