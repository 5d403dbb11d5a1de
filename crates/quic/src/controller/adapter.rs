//! An adapter of our congestion controls to noq's interface.
//!
//! noq reports an acknowledgement before the losses it reveals; our controls expect losses first. So an
//! acknowledgement is held back until noq reads the window again, which it does before it sends anything, or
//! reports the next event.

use std::any::Any;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant as StdInstant;

use gargalo_cc as cc;
use gargalo_units::Instant;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerMetrics};

use super::report::Reporter;
use super::sender::Sender;
use super::{Settings, UNPACED};
use crate::tls::lock;

/// The absent value in [`Adapter`]'s copies.
const NONE: u64 = u64::MAX;

/// One of our congestion controls behind noq's interface.
pub(super) struct Adapter {
    sender: Mutex<Sender>,
    /// An acknowledgement is held back.
    held: AtomicBool,
    /// The latest outputs of the controller, cached: they are read far more often than they change.
    window: AtomicU64,
    ssthresh: AtomicU64,
    pacing_rate: AtomicU64,
    quantum: AtomicU64,
    settings: Settings,
}

impl Adapter {
    pub(super) fn new(
        controller: Box<dyn cc::Controller>,
        now: Instant,
        mtu: u16,
        settings: Settings,
        report: Reporter,
    ) -> Self {
        Self::around(
            Sender::new(controller, now, mtu, settings, report),
            settings,
        )
    }

    fn around(sender: Sender, settings: Settings) -> Self {
        let adapter = Self {
            sender: Mutex::new(sender),
            held: AtomicBool::new(false),
            window: AtomicU64::new(0),
            ssthresh: AtomicU64::new(NONE),
            pacing_rate: AtomicU64::new(NONE),
            quantum: AtomicU64::new(NONE),
            settings,
        };
        adapter.copy(&lock(&adapter.sender));
        adapter
    }

    fn copy(&self, sender: &Sender) {
        let or_none = |n: Option<u64>| n.unwrap_or(NONE);
        self.window.store(sender.window(), Relaxed);
        self.ssthresh.store(or_none(sender.ssthresh()), Relaxed);
        let rate = sender
            .pacing_rate()
            .map_or(UNPACED, |r| (r.bytes_per_sec() as u64).clamp(1, UNPACED));
        self.pacing_rate.store(rate, Relaxed);
        self.quantum.store(or_none(sender.quantum()), Relaxed);
    }

    /// Reports the acknowledgement that was held back.
    #[inline]
    fn release(&self) {
        if self.held.load(Relaxed) {
            let mut sender = lock(&self.sender);
            self.held.store(false, Relaxed);
            sender.release();
            self.copy(&sender);
        }
    }

    fn event(&mut self, now: StdInstant) -> (&mut Sender, Instant) {
        let now = self.settings.time.to_ours(now);
        let sender = self.sender.get_mut().unwrap_or_else(|e| e.into_inner());
        (sender, now)
    }

    fn changed(&self) {
        self.copy(&lock(&self.sender));
    }
}

impl Controller for Adapter {
    #[inline]
    fn on_packet_sent(&mut self, now: StdInstant, bytes: u16, pn: u64) {
        self.release();
        let (sender, now) = self.event(now);
        if sender.on_sent(now, bytes, pn) {
            self.changed();
        }
    }

    fn on_cwnd_limited(&mut self) {
        let sender = self.sender.get_mut().unwrap_or_else(|e| e.into_inner());
        sender.on_window_limited();
    }

    #[inline]
    fn on_ack(
        &mut self,
        now: StdInstant,
        sent: StdInstant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.release();
        let sent = self.settings.time.to_ours(sent);
        let (sender, now) = self.event(now);
        sender.on_acked(now, sent, bytes, pn, app_limited, rtt.get());
    }

    fn on_end_acks(
        &mut self,
        _: StdInstant,
        in_flight: u64,
        _: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        let sender = self.sender.get_mut().unwrap_or_else(|e| e.into_inner());
        if sender.end_of_acks(in_flight, largest_packet_num_acked) {
            self.held.store(true, Relaxed);
        }
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: StdInstant) {
        let (sender, now) = self.event(now);
        sender.on_lost(now, lost_bytes, pn);
    }

    fn on_congestion_event(
        &mut self,
        now: StdInstant,
        sent: StdInstant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        _: u64,
    ) {
        let sent = self.settings.time.to_ours(sent);
        let (sender, now) = self.event(now);
        sender.on_congestion(now, sent, is_persistent_congestion, is_ecn, lost_bytes);
        self.changed();
    }

    fn on_spurious_congestion_event(&mut self) {
        self.release();
        let sender = self.sender.get_mut().unwrap_or_else(|e| e.into_inner());
        sender.on_spurious();
        self.changed();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        let sender = self.sender.get_mut().unwrap_or_else(|e| e.into_inner());
        sender.on_mtu(new_mtu);
        self.changed();
    }

    #[inline]
    fn window(&self) -> u64 {
        self.release();
        self.window.load(Relaxed)
    }

    #[inline]
    fn metrics(&self) -> ControllerMetrics {
        self.release();
        let some = |n: &AtomicU64| Some(n.load(Relaxed)).filter(|n| *n != NONE);
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window.load(Relaxed);
        metrics.ssthresh = some(&self.ssthresh);
        metrics.pacing_rate = some(&self.pacing_rate);
        metrics.send_quantum = some(&self.quantum);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        self.release();
        Box::new(Self::around(
            lock(&self.sender).on_new_path(),
            self.settings,
        ))
    }

    fn initial_window(&self) -> u64 {
        lock(&self.sender).answer();
        self.settings.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter")
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}
