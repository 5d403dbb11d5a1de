//! Window-based algorithms: a [`Window`] and the [`Policy`] that changes it.
//!
//! A policy says how the window grows and how far it falls. Slow start, the floor and ceiling of the
//! window, undo, idle restart and the plumbing of [`Controller`] are [`WindowBased`]'s.

use std::fmt::Debug;

use gargalo_units::{Bytes, Instant, Rate};

use crate::Controller;
use crate::event::{Acked, Cause, Congestion, Established, Lost, Sent, Spurious};
use crate::path::Path;
use crate::registry::Init;
use crate::window::{Window, WindowParams};

/// How an algorithm moves its window; only [`Policy::increase`] and [`Policy::decrease`] are needed.
pub trait Policy: Clone + Debug + Send + Sync + 'static {
    /// Whether [`Policy::on_send`] is of use for every packet; see [`Controller::watches_sends`].
    const WATCHES_SENDS: bool = false;

    /// Congestion avoidance: `acked` bytes (never zero) that slow start has left over were
    /// acknowledged while cwnd limited the sender, outside of recovery.
    fn increase(&mut self, window: &mut Window, acked: Bytes, ack: &Acked, path: &Path<'_>);

    /// The new slow-start threshold after `event`; [`Window::reduce`] does the rest: cwnd falls to it
    /// (after a timeout to one segment). Also called for repeated timeouts, whose answer is unused.
    fn decrease(&mut self, window: &Window, event: &Congestion, path: &Path<'_>) -> Bytes;

    /// Every acknowledgement, before anything grows, in recovery too: the place for filters of
    /// round-trip time and bandwidth.
    fn observe(&mut self, _window: &mut Window, _ack: &Acked, _path: &Path<'_>) {}

    /// Slow start: grows `window` and returns what is left for congestion avoidance.
    #[inline]
    fn slow_start(&mut self, window: &mut Window, ack: &Acked, _path: &Path<'_>) -> Bytes {
        window.slow_start(ack)
    }

    /// A packet leaves; `restarted`: after an idle period cwnd fell to the restart window. Only packets that end an
    /// idle period are sure to be reported, unless [`Policy::WATCHES_SENDS`].
    fn on_send(&mut self, _window: &mut Window, _sent: &Sent, _restarted: bool) {}

    /// A segment was marked lost; comes before the congestion event, if there is one.
    fn lost(&mut self, _window: &mut Window, _lost: &Lost, _path: &Path<'_>) {}

    /// The window has just been reduced because of `event`.
    fn reduced(&mut self, _window: &mut Window, _event: &Congestion) {}

    /// The latest congestion event was spurious and the window is what it was; `before` is this policy
    /// as it was then.
    fn restore(&mut self, before: &Self) {
        self.clone_from(before);
    }

    /// The initial window in bytes, where the transport would take `given`.
    fn first_window(&self, given: Bytes, _mss: Bytes) -> Bytes {
        given
    }

    /// The segment size changed from `old` to `window.mss()`.
    fn on_mss(&mut self, _window: &Window, _old: Bytes) {}

    /// The pacing rate; `None` lets the transport choose. See [`Controller::pacing_rate`].
    fn pacing_rate(&self, _window: &Window) -> Option<Rate> {
        None
    }

    /// Maximum size of a burst when pacing; `None` lets the transport choose. See [`Controller::send_quantum`].
    fn send_quantum(&self, _window: &Window) -> Option<Bytes> {
        None
    }

    /// Whether the transport uses cwnd unchanged during recovery. See [`Controller::governs_recovery`].
    fn governs_recovery(&self) -> bool {
        false
    }

    /// One word for plots; that of the window unless the policy has phases of its own. See [`Controller::phase`].
    fn phase(&self, window: &Window) -> &'static str {
        window.phase()
    }

    /// Appends internal quantities worth plotting. See [`Controller::gauges`].
    fn gauges(&self, _window: &Window, _out: &mut Vec<(&'static str, f64)>) {}
}

/// A [`Controller`] from a [`Policy`].
#[derive(Clone, Debug)]
pub struct WindowBased<P> {
    window: Window,
    policy: P,
    /// The policy before the latest reduction, for undo.
    before: Option<P>,
}

impl<P: Policy> WindowBased<P> {
    /// In slow start.
    pub fn new(policy: P, params: WindowParams, init: &Init) -> Self {
        let mut start = init.clone();
        start.initial_window = policy.first_window(init.initial_window, init.mss);
        Self {
            window: Window::new(&start, params),
            policy,
            before: None,
        }
    }

    /// The window that the policy changes.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The window, to set its state directly: initial values of a policy, and tests.
    pub fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    /// The policy that changes the window.
    pub fn policy(&self) -> &P {
        &self.policy
    }
}

impl<P: Policy> Controller for WindowBased<P> {
    #[inline]
    fn on_send(&mut self, sent: &Sent, _path: &Path<'_>) {
        let restarted = self.window.on_send(sent);
        self.policy.on_send(&mut self.window, sent, restarted);
    }

    fn watches_sends(&self) -> bool {
        P::WATCHES_SENDS
    }

    #[inline]
    fn on_ack(&mut self, ack: &Acked, path: &Path<'_>) {
        self.policy.observe(&mut self.window, ack, path);
        let left = self.policy.slow_start(&mut self.window, ack, path);
        if !left.is_zero() {
            self.policy.increase(&mut self.window, left, ack, path);
        }
    }

    fn on_loss(&mut self, lost: &Lost, path: &Path<'_>) {
        self.policy.lost(&mut self.window, lost, path);
    }

    fn on_congestion(&mut self, event: &Congestion, path: &Path<'_>) {
        match event.cause {
            Cause::Ecn => self.before = None, // a mark cannot be spurious
            // The window keeps what it was before the first timeout of several.
            Cause::Timeout { consecutive } if consecutive > 1 => {}
            Cause::Loss | Cause::Timeout { .. } => self.before = Some(self.policy.clone()),
        }
        let target = self.policy.decrease(&self.window, event, path);
        self.window.reduce(event, target);
        self.policy.reduced(&mut self.window, event);
    }

    fn on_spurious(&mut self, event: &Spurious, _path: &Path<'_>) {
        if self.window.undo(event)
            && let Some(before) = self.before.take()
        {
            self.policy.restore(&before);
        }
    }

    fn on_recovered(&mut self, _now: Instant, _path: &Path<'_>) {
        self.window.on_recovered();
    }

    fn halve(&mut self) {
        self.window.halve();
    }

    fn on_established(&mut self, established: &Established, path: &Path<'_>) {
        let is_starting = self.window.in_slow_start();
        self.on_mss(path);
        let mss = self.window.mss();
        self.window
            .set_cwnd(self.policy.first_window(established.window, mss));
        if !is_starting {
            self.window.exit_slow_start();
        }
    }

    fn on_mss(&mut self, path: &Path<'_>) {
        let old = self.window.mss();
        self.window.on_mss(path.mss);
        self.policy.on_mss(&self.window, old);
        self.before = None;
    }

    #[inline]
    fn cwnd(&self) -> Bytes {
        self.window.cwnd()
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.window.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.policy.pacing_rate(&self.window)
    }

    fn send_quantum(&self) -> Option<Bytes> {
        self.policy.send_quantum(&self.window)
    }

    fn governs_recovery(&self) -> bool {
        self.policy.governs_recovery()
    }

    fn in_slow_start(&self) -> bool {
        self.window.in_slow_start()
    }

    fn phase(&self) -> &'static str {
        self.policy.phase(&self.window)
    }

    fn gauges(&self, out: &mut Vec<(&'static str, f64)>) {
        self.policy.gauges(&self.window, out);
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
