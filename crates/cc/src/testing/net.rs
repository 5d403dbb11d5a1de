//! A paced sender with unlimited data on an ideal bottleneck: fixed rate and propagation delay.

use std::collections::VecDeque;

use gargalo_units::{Bytes, Duration, Instant, Rate};

use super::{MSS, ack, congestion, path, sent};
use crate::Controller;
use crate::event::{Acked, Cause, Lost, SendState};
use crate::pacer::Pacer;
use crate::path::Path;
use crate::rate::RateSampler;

pub(crate) const RATE: Rate = Rate::from_mbps(8); // one segment a millisecond
pub(crate) const DELAY: Duration = Duration::from_millis(40);

struct InFlight {
    /// When its acknowledgement arrives, if it is not lost.
    arrives: Instant,
    state: SendState,
    is_lost: bool,
}

pub(crate) struct Net<C> {
    pub(crate) now: Instant,
    pub(crate) cc: C,
    pub(crate) sampler: RateSampler,
    pub(crate) link_free: Instant,
    pub(crate) rate: Rate,
    /// Size of the queue; packets beyond it are lost.
    pub(crate) buffer: Bytes,
    /// The application pauses between segments at least so long.
    pub(crate) gap: Duration,
    pub(crate) phases: Vec<&'static str>,
    pub(crate) losses: u64,
    pacer: Pacer,
    flight: VecDeque<InFlight>,
    srtt: Option<Duration>,
    last_sent: Instant,
    recovery_until: Option<Bytes>,
}

impl<C: Controller> Net<C> {
    pub(crate) fn new(cc: C) -> Self {
        Self {
            now: Instant::ZERO,
            phases: vec![cc.phase()],
            cc,
            sampler: RateSampler::new(),
            pacer: Pacer::new(MSS),
            flight: VecDeque::new(),
            link_free: Instant::ZERO,
            rate: RATE,
            buffer: Bytes::MAX,
            gap: Duration::ZERO,
            srtt: None,
            losses: 0,
            last_sent: Instant::ZERO,
            recovery_until: None,
        }
    }

    pub(crate) fn in_flight(&self) -> Bytes {
        MSS * self.flight.len() as u64
    }

    pub(crate) fn bdp() -> Bytes {
        RATE * (DELAY + Duration::from_millis(1))
    }

    /// Everything in flight disappears: the path was idle until now.
    pub(crate) fn idle_until(&mut self, now: Instant) {
        self.flight.clear();
        self.now = now;
        self.link_free = now;
    }

    /// The next event: a departure or an acknowledgement.
    pub(crate) fn step(&mut self) {
        let window = self.in_flight() + MSS <= self.cc.cwnd();
        let departure = window.then(|| {
            let paced = self.pacer.next_release(self.now);
            paced.max(self.last_sent + self.gap)
        });
        let arrival = self.flight.iter().find(|f| !f.is_lost).map(|f| f.arrives);
        match (departure, arrival) {
            (Some(d), a) if a.is_none_or(|a| d <= a) => {
                self.now = self.now.max(d);
                self.send();
            }
            (_, Some(a)) => {
                self.now = a;
                self.acknowledge();
            }
            _ => panic!("nothing in flight and no window"),
        }
        let phase = self.cc.phase();
        if *self.phases.last().unwrap() != phase {
            self.phases.push(phase);
        }
    }

    pub(crate) fn send(&mut self) {
        let in_flight = self.in_flight();
        let app_limited = !self.gap.is_zero();
        if app_limited {
            self.sampler.set_app_limited(in_flight);
        }
        let state = self.sampler.on_send(self.now, MSS, in_flight);
        let mut s = sent(MSS, in_flight);
        s.now = self.now;
        s.app_limited = app_limited;
        self.cc.on_send(&s, &path(DELAY));
        self.pacer
            .set_quantum(self.cc.send_quantum().unwrap_or(MSS));
        self.pacer.on_send(self.now, MSS, self.cc.pacing_rate());
        self.last_sent = self.now;
        let wait = self.link_free.saturating_since(self.now);
        let is_lost = self.buffer != Bytes::MAX && self.rate * wait > self.buffer;
        if !is_lost {
            self.link_free = self.link_free.max(self.now) + MSS / self.rate;
        }
        self.flight.push_back(InFlight {
            arrives: self.link_free + DELAY,
            state,
            is_lost,
        });
    }

    /// The next acknowledgement arrives; what was sent before it and has not arrived is lost.
    pub(crate) fn acknowledge(&mut self) {
        let before = self.in_flight();
        let p = path(DELAY);
        let mut burst = true;
        let segment = loop {
            let segment = self.flight.pop_front().unwrap();
            if !segment.is_lost {
                break segment;
            }
            self.losses += 1;
            self.sampler.on_lost(MSS);
            let lost = Lost {
                now: self.now,
                bytes: MSS,
                state: segment.state,
                new_burst: std::mem::take(&mut burst),
                in_flight: self.in_flight(),
            };
            self.cc.on_loss(&lost, &p);
        };
        let (now, state) = (segment.arrives, segment.state);
        self.sampler.on_delivered(now, &state, MSS, false);
        if !burst && self.recovery_until.is_none() {
            self.recovery_until = Some(self.sampler.delivered() + self.in_flight());
            self.cc.on_congestion(&congestion(Cause::Loss, before), &p);
        }
        if self
            .recovery_until
            .is_some_and(|d| self.sampler.delivered() >= d)
        {
            self.recovery_until = None;
            self.cc.on_recovered(now, &p);
        }
        let rtt = now - state.sent_at;
        self.srtt = Some(rtt);
        let ack = Acked {
            now,
            rtt: Some(rtt),
            in_flight_before: before,
            in_flight: self.in_flight(),
            sample: self.sampler.finish(None),
            in_recovery: self.recovery_until.is_some(),
            ..ack(MSS.get())
        };
        let p = Path {
            srtt: self.srtt,
            latest_rtt: Some(rtt),
            ..path(DELAY)
        };
        self.cc.on_ack(&ack, &p);
    }

    pub(crate) fn run_until(&mut self, secs: f64) {
        while self.now.as_secs_f64() < secs {
            self.step();
        }
    }

    pub(crate) fn run_to_phase(&mut self, phase: &str) {
        while self.cc.phase() != phase {
            self.step();
        }
    }

    /// The mean rate of delivery while running for `secs`.
    pub(crate) fn throughput(&mut self, secs: f64) -> Rate {
        let (before, start) = (self.sampler.delivered(), self.now);
        self.run_until(start.as_secs_f64() + secs);
        (self.sampler.delivered() - before) / (self.now - start)
    }
}
